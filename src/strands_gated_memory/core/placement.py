"""Where the recall block stands in the messages of one model call.

Middleware of others hands over copies, shortened lists and rewritten texts: a message is found by the `tracking_id`
that Strands gives it, and where a copy has lost that, by what stands around it and by its blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from .turn import Message, blocks_of, has_tool_result, text_of, with_text

Position = Literal["after", "before"]


class Placed(NamedTuple):
    """A message with the recall block in it."""

    message: dict[str, Any]
    block_index: int
    """Which of its content blocks holds the recall block."""


def place(message: Message, block: str, position: Position, *, gap: str = "", one_text: bool = False) -> Placed | None:
    """Return a copy of a message with the recall block beside its text, None where it has no place for one.

    A message that holds a tool result gets no block of its own: several providers refuse text beside a tool
    result. What such a message says, the recall block then says in the same content block, so that what
    providers see keeps its shape. The message stays what it was but for that text.

    Args:
        message: The message that carries the ask.
        block: The recall block.
        position: "after" the user's text, or "before" it.
        gap: What stands between a recall block of its own and the text: some providers join neighbouring texts.
        one_text: Whether the provider takes one text of a message, so that the block must stand in the first.
    """
    content = list(message.get("content") or ())
    if one_text or has_tool_result(message):
        spoken = [index for index, part in enumerate(content) if (text_of(part) or "").strip()]
        if not spoken:
            return None
        index = spoken[-1] if position == "after" and not one_text else spoken[0]
        text = text_of(content[index])
        joined = f"{text}\n\n{block}" if position == "after" else f"{block}\n\n{text}"
        content[index] = with_text(content[index], joined)
    elif position == "after":
        index = len(content)
        content.append({"text": f"{gap}{block}"})
    else:
        index = 0
        content.insert(0, {"text": f"{block}{gap}"})
    return Placed({**message, "content": content}, index)


def origins(copies: Sequence[Message], originals: Sequence[Message]) -> list[int | None]:
    """Return for each message of a model call which message of the conversation it is a copy of.

    Args:
        copies: The messages of the call, as other middleware has left them.
        originals: The conversation.

    Returns:
        A position in the conversation per copy; None where there is none, as for a message that was put in.
    """
    tracked: dict[str, list[int]] = {}
    for number, original in enumerate(originals):
        if isinstance(tracking_id := original.get("tracking_id"), str):
            tracked.setdefault(tracking_id, []).append(number)
    found: list[int | None] = [None] * len(copies)
    for index in range(len(copies) - 1, -1, -1):
        tracking_id = copies[index].get("tracking_id")
        if isinstance(tracking_id, str) and tracked.get(tracking_id):
            found[index] = tracked[tracking_id].pop()
    end, end_original = len(copies), len(originals)
    for index in range(len(copies) - 1, -2, -1):
        start_original = found[index] if index >= 0 else -1
        if start_original is None:
            continue
        if end - index > 1:
            _match(copies, originals, range(index + 1, end), range(start_original + 1, end_original), found)
        end, end_original = index, start_original
    return found


def _match(
    copies: Sequence[Message],
    originals: Sequence[Message],
    unmatched: range,
    candidates: range,
    found: list[int | None],
) -> None:
    """Match copies without a tracking id to the messages that stood between the same neighbours."""
    if [copies[index].get("role") for index in unmatched] == [originals[index].get("role") for index in candidates]:
        for index, candidate in zip(unmatched, candidates, strict=True):
            found[index] = candidate
        return
    limit = candidates.stop
    for index in reversed(unmatched):
        for candidate in range(limit - 1, candidates.start - 1, -1):
            if _holds(copies[index], originals[candidate]):
                found[index] = limit = candidate
                break


def _holds(copy: Message, original: Message) -> bool:
    """Tell whether a copy holds every block of the original, others perhaps added."""
    blocks = blocks_of(original)
    kept = blocks_of(copy)
    return copy.get("role") == original.get("role") and bool(blocks) and all(block in kept for block in blocks)
