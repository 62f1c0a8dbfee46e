"""The recall block on every model call of a turn, in a copy: never in the conversation itself.

One injector per agent. It holds the block of the running turn; Strands folds it into the newest user
message of each call, tool loops and retries included. With position "after" this is Strands' public
`ContextInjector`; with "before" it is the same middleware stage with another fold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from strands.vended_plugins.context_injector import ContextInjector

from ..core.turn import find_ask
from ..errors import ConfigurationError


class BlockInjector:
    """Shows one agent the block of its running turn.

    Args:
        position: "after" or "before" the user's text.
    """

    def __init__(self, position: Literal["after", "before"]) -> None:
        self.block: str | None = None
        self._position = position

    def attach(self, agent: Any) -> None:
        """Register with an agent; once per agent, it cannot be undone.

        Raises:
            ConfigurationError: "before" on a Strands release without public middleware (before 1.62).
        """
        if self._position == "after":
            plugin = ContextInjector(
                lambda _context: self.block, name="strands-gated-memory:recall", trigger="everyTurn"
            )
            plugin.init_agent(agent)
        else:
            agent.add_middleware(_input_stage(), self._before)

    def _before(self, context: Any) -> Any:
        ask = find_ask(context.messages)
        if self.block is None or ask is None:
            return context
        folded = {**ask, "content": [{"text": f"{self.block}\n\n"}, *ask["content"]]}
        return replace(context, messages=[folded if message is ask else message for message in context.messages])


def check_position(position: Literal["after", "before"]) -> None:
    """Fail early when this Strands release cannot place the block there.

    Raises:
        ConfigurationError: "before" on a Strands release without public middleware.
    """
    if position == "before":
        _input_stage()


def _input_stage() -> Any:
    try:
        from strands.middleware import InvokeModelStage
    except ImportError as error:
        raise ConfigurationError(
            'inject.position="before" with inject.mode="turn" needs strands-agents >= 1.62; '
            'write inject.position="after" (the default), which also keeps the prompt cache'
        ) from error
    return InvokeModelStage.Input
