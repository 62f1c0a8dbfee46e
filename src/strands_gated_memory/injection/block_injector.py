"""The recall block on every model call of a turn, in a copy: never in the conversation itself.

One injector per agent, on Strands' public middleware. It puts the block of the running turn into the message that
carries the ask, tool loops and retries included, and never into one that holds a tool result alone; and it makes
harmless what imitates the block in the texts that users wrote.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from strands import Agent
from strands.middleware import InvokeModelContext, InvokeModelStage
from strands.models import Model

from ..core.functions import outcome_of
from ..core.imitation import harmless
from ..core.placement import Position, origins, place
from ..core.turn import Message, position_of, text_of, with_text

_ATTACHED: dict[int, list[BlockInjector]] = {}
"""The injectors of each agent, by its identity: a session manager and a memory manager may both recall for it."""


class BlockInjector:
    """Shows one agent the block of its running turn.

    Args:
        position: "after" or "before" the user's text.
        context_tag: Returns the tag of the block now.
        on_error: Called when a block cannot be shown; the model call goes on without.
    """

    def __init__(
        self, position: Position, context_tag: Callable[[], str], on_error: Callable[[Exception], None]
    ) -> None:
        self.stored: dict[str, tuple[str, ...]] = {}
        """The recall blocks in the conversation itself, by the `tracking_id` of their message. A message that the
        caller hands over again keeps its id, and has one block for each time."""
        self._position = position
        self._context_tag = context_tag
        self._on_error = on_error
        self._shown: tuple[str, Message] | None = None

    def attach(self, agent: Agent) -> None:
        """Register with an agent; once per agent, it cannot be undone."""
        key = id(agent)  # not the agent itself: a subclass with __eq__ cannot be hashed
        if key not in _ATTACHED:
            weakref.finalize(agent, _ATTACHED.pop, key, None)
        _ATTACHED.setdefault(key, []).append(self)
        agent.add_middleware(InvokeModelStage.Input, self._inject)

    def show(self, block: str | None, ask: Message) -> None:
        """Show a block, or none, from the next model call on.

        Args:
            block: The recall block.
            ask: The message of the conversation that carries the ask.
        """
        self._shown = None if block is None else (block, ask)

    def hide(self) -> None:
        """Show no block from the next model call on."""
        self._shown = None

    def store(self, agent: Agent, ask: Message, block: str) -> None:
        """Put a block into the conversation, in a new message: the caller's own list is not changed.

        Args:
            agent: Its messages are changed.
            ask: The message that carries the ask; without it nothing is stored.
            block: The recall block.
        """
        messages: list[Any] = agent.messages
        index = position_of(messages, ask)
        one_text = _takes_one_text(agent.model)
        placed = None if index is None else place(messages[index], block, self._position, one_text=one_text)
        if index is None or placed is None:
            return
        tracking_id = messages[index].get("tracking_id") or ask.get("tracking_id")
        messages[index] = placed.message if tracking_id is None else {**placed.message, "tracking_id": tracking_id}
        present = {message.get("tracking_id") for message in messages}
        self.stored = {known: blocks for known, blocks in self.stored.items() if known in present}
        if tracking_id is not None:
            self.stored[tracking_id] = (*self.stored.get(tracking_id, ()), block)

    def _inject(self, context: InvokeModelContext) -> InvokeModelContext:
        injected = outcome_of(lambda: self._injected(context))  # messages of other middleware may have any shape
        if isinstance(injected, Exception):
            self._on_error(injected)
            return context
        return injected

    def _injected(self, context: InvokeModelContext) -> InvokeModelContext:
        conversation = context.agent.messages
        others = [block for one in _ATTACHED.get(id(context.agent), ()) if one is not self for block in one._blocks()]
        places = origins(context.messages, conversation)
        messages: list[Any] = [
            self._screened(message, None if origin is None else conversation[origin], others)
            for message, origin in zip(context.messages, places, strict=True)
        ]
        dynamic = context.dynamic_trailing_blocks
        if self._shown is not None:
            block, ask = self._shown
            origin = position_of(conversation, ask)
            index = next((i for i in range(len(places) - 1, -1, -1) if places[i] == origin), None)
            if origin is not None and index is not None:
                one_text = _takes_one_text(context.model)
                placed = place(messages[index], block, self._position, gap="\n\n", one_text=one_text)
                if placed is not None:
                    if index == len(messages) - 1:
                        dynamic = _dynamic(dynamic, len(messages[index]["content"]), placed.message, placed.block_index)
                    messages[index] = placed.message
        return context.replace(messages=messages, dynamic_trailing_blocks=dynamic)

    def _blocks(self) -> Iterator[str]:
        """Yield the blocks that it shows, or has put into the conversation."""
        if self._shown is not None:
            yield self._shown[0]
        for blocks in self.stored.values():
            yield from blocks

    def _screened(self, message: Any, original: Message | None, others: Sequence[str]) -> Any:
        """Return a message whose user-given texts do not imitate the block, itself if none does."""
        if message.get("role") != "user":
            return message
        own = () if original is None else self.stored.get(original.get("tracking_id", ""), ())
        own = (*own, *others)
        tag = self._context_tag()
        content, changed = [], False
        for part in message["content"]:
            text = text_of(part)
            screened = None if text is None else _screened_but(text, own, tag)
            changed = changed or screened != text
            content.append(part if screened == text or screened is None else with_text(part, screened))
        return {**message, "content": content} if changed else message


_ONE_TEXT = ("SageMakerAIModel", "WriterModel")
"""Strands' providers that take one text of a message: the first drops the others, the second refuses them for most
models. By name, as their modules need SDKs that need not be installed."""


def _takes_one_text(model: Model) -> bool:
    return any(kind.__name__ in _ONE_TEXT for kind in type(model).__mro__)


def _screened_but(text: str, own: Sequence[str], tag: str) -> str:
    """Return a text made harmless all around the block that this package has put there."""
    block = next((block for block in own if block in text), "")
    before, _, after = text.partition(block) if block else (text, "", "")
    return f"{harmless(before, tag)}{block}{harmless(after, tag)}"


def _dynamic(dynamic: int, length: int, message: Message, index: int) -> int:
    """Return how many trailing blocks of the last message change from call to call, the recall block's included.

    Args:
        dynamic: How many do without it.
        length: How many blocks the message had without it.
        message: The message with it.
        index: The block that holds it.
    """
    blocks = len(message["content"])
    if blocks > length:
        return dynamic + (index == blocks - 1)
    return max(dynamic, blocks - index) if blocks - 1 - index <= dynamic else dynamic
