"""Which message of an agent's invocation is the user's ask, and whether it still waits for an answer.

An invocation begins (`begin`), its messages are added to the conversation one by one (`added`), and it ends (`end`).
One without a text of the user, as after an interrupt or an error, goes on with the last ask that has no answer
(`resumed`). Nothing here searches or shows anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .core.turn import (
    Message,
    find_ask,
    find_unanswered,
    has_tool_result,
    is_answer,
    is_same,
    position_of,
    text_in,
    without_recorded_calls,
)

RECALL_SWITCH = "recall"
"""`agent(prompt, invocation_state={"recall": False})` switches recall off for one call."""


class Asks:
    """The asks of one agent.

    Attributes:
        ask: The message of the conversation that carries the ask of the running invocation, or of the last one if
            that has no answer.
        invocation: Stands for the running invocation, compared by identity; None between two.
        enabled: Whether the running invocation may recall.
        resuming: Whether the invocation came without a text of the user, and its first model call is still to come.
        missed: Whether the last invocation ended without a message that carries its ask, though one with a user's
            text came: something had replaced it.
    """

    def __init__(self) -> None:
        self.ask: Message | None = None
        self.invocation: object = None
        self.enabled = True
        self.resuming = False
        self.missed = False
        self._awaited: Message | None = None
        self._other_text = False
        self._last: Message | None = None
        self._answered = True

    def begin(self, given: Sequence[Message] | None, conversation: Sequence[Message], state: Any) -> None:
        """Begin an invocation.

        Args:
            given: Its input messages.
            conversation: The messages before it, oldest first.
            state: The caller's `invocation_state`.
        """
        self.invocation = object()
        self.enabled = not _is_switched_off(state)
        self._awaited = find_ask(given)
        self._other_text = False
        self.resuming = self._awaited is None
        self.ask = self._unanswered(conversation) if self.resuming else None

    def added(self, message: Message) -> str | None:
        """Note a message that has been added to the conversation, and return its text if it carries the ask."""
        if self._awaited is None:
            return None
        if not _carries(message, self._awaited):
            self._other_text = self._other_text or find_ask([message]) is not None
            return None
        text = text_in(self._awaited)
        self._awaited, self.ask = None, message
        return text

    def resumed(self, conversation: Sequence[Message]) -> tuple[Message | None, bool]:
        """Return the ask that the invocation goes on with, and whether there was one that is gone.

        Args:
            conversation: The messages before the first model call.
        """
        self.resuming = False
        place = None if self.ask is None else position_of(conversation, self.ask)
        if place is not None:
            return conversation[place], False
        # The tool was called for an ask that is no longer in the conversation.
        return None, bool(conversation) and has_tool_result(conversation[-1])

    def redacted(self, message: Message) -> bool:
        """Forget the ask if this message carries it, and tell whether it did."""
        if self.ask is None or not is_same(self.ask, message):
            return False
        self.ask = None
        return True

    def end(self, conversation: Sequence[Message], result: Any) -> bool:
        """End the invocation, and tell whether its ask has been answered.

        Args:
            conversation: The messages then.
            result: Strands' `AgentResult`, None after an error.
        """
        # An error, a cancellation, or a human who is asked, leaves the ask without an answer whatever the
        # conversation ends with.
        broken_off = result is None or result.stop_reason in ("interrupt", "cancelled")
        made = getattr(result, "structured_output", None) is not None
        self._last = conversation[-1] if conversation else None
        self._answered = not broken_off and (made or self._last is None or is_answer(self._last))
        self.missed = self._awaited is not None and self._other_text and self.enabled
        self._awaited = self.invocation = None
        self.resuming = False
        if self._answered:
            self.ask = None
        return self._answered

    def _unanswered(self, conversation: Sequence[Message]) -> Message | None:
        said = without_recorded_calls(conversation)
        if self._last is not None and said and is_same(said[-1], self._last):
            # Nothing came since: what Strands and its plugins said in that invocation, as users, is no ask.
            return None if self._answered else self.ask
        return find_unanswered(conversation)


def _is_switched_off(state: Any) -> bool:
    """Tell whether a caller has switched recall off: by any false value but None, so 0 counts too."""
    try:
        value = state.get(RECALL_SWITCH) if state else None
        return value is not None and not value
    except (AttributeError, TypeError, ValueError):  # no mapping; or neither true nor false, such as an array
        return False


def _carries(message: Mapping[str, Any], ask: Mapping[str, Any]) -> bool:
    """Tell whether a message is the ask, or holds its blocks because Strands merged it into another one."""
    if message is ask:
        return True
    blocks = {id(block) for block in message.get("content") or ()}
    return any(id(block) in blocks for block in ask.get("content") or ())
