"""Strands messages as plain mappings: `role`, `content` blocks, and the `tracking_id` that Strands gives each one.

Nothing is changed; what differs is returned as a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Message: TypeAlias = Mapping[str, Any]
Block: TypeAlias = Mapping[str, Any]


def blocks_of(message: Message) -> list[Block]:
    """Return a message's content blocks; [] for content of another shape."""
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list | tuple) else []


def text_of(block: Block) -> str | None:
    """Return the text of a text block or of a guarded one (`guardContent`), None for any other block."""
    text = block.get("text")
    if isinstance(text, str):
        return text
    guarded = block.get("guardContent")
    inner = guarded.get("text") if isinstance(guarded, Mapping) else None
    text = inner.get("text") if isinstance(inner, Mapping) else None
    return text if isinstance(text, str) else None


def with_text(block: Block, text: str) -> dict[str, Any]:
    """Return a copy of a block that `text_of` reads, with another text."""
    if isinstance(block.get("text"), str):
        return {**block, "text": text}
    guarded = block["guardContent"]
    return {**block, "guardContent": {**guarded, "text": {**guarded["text"], "text": text}}}


def has_tool_result(message: Message) -> bool:
    """Tell whether a message holds a tool result."""
    return any("toolResult" in block for block in blocks_of(message))


def is_same(message: Message, other: Message) -> bool:
    """Tell whether two messages are one, or one is a copy that Strands made of the other."""
    if message is other:
        return True
    tracking_id = message.get("tracking_id")
    return tracking_id is not None and tracking_id == other.get("tracking_id")


def position_of(messages: Sequence[Message], message: Message) -> int | None:
    """Return where a message stands, the last place if it stands there twice; None if it is gone.

    A conversation that was rebuilt without tracking ids is searched for a message that says exactly the same.
    """
    places = range(len(messages) - 1, -1, -1)
    place = next((place for place in places if is_same(messages[place], message)), None)
    if place is not None:
        return place
    return next((place for place in places if _is_copy_without_id(messages[place], message)), None)


def _is_copy_without_id(message: Message, original: Message) -> bool:
    unmarked = not message.get("tracking_id") and message.get("role") == original.get("role")
    return unmarked and message.get("content") == original.get("content")
