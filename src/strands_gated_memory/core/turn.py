"""Strands messages as plain mappings: `role`, `content` blocks, and the `tracking_id` that Strands gives each one.

Nothing is changed; what differs is returned as a copy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..policy import TurnSettings
from .types import Turn

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


_RECORDED_CALL = re.compile(r"^agent\.tool\.(.+) direct tool call\.$", re.MULTILINE)
_FORMAT_PROMPT = "You must format the previous response as structured output."
"""What Strands says as the user when a model has answered without the format that was asked for."""


def find_ask(messages: Sequence[Message] | None) -> Message | None:
    """Return the message that carries the user's ask: the last one with a text of the user.

    Args:
        messages: The input messages of one invocation. A text beside a tool result is the user's; the tool
            result is not.
    """
    return next((message for message in reversed(messages or ()) if _is_user_text(message)), None)


def find_unanswered(messages: Sequence[Message]) -> Message | None:
    """Return the last message with a text of the user if no final answer follows it, else None.

    Args:
        messages: A conversation, oldest first. Tool calls and their results are no answers; what Strands says
            itself as user and assistant is neither ask nor answer.
    """
    said = without_recorded_calls(messages)
    if said and _is_format_prompt(said[-1]):
        del said[-2:]  # the answer before it is not final: the model is still to format it
    for message in reversed(said):
        if is_answer(message):
            return None
        if _is_user_text(message) and not _is_format_prompt(message):
            return message
    return None


def without_recorded_calls(messages: Sequence[Message]) -> list[Message]:
    """Return a conversation without the messages, four each, by which Strands records a direct tool call."""
    kept: list[Message] = []
    index = 0
    while index < len(messages):
        if _is_recorded_call(messages[index : index + 4]):
            index += 4
        else:
            kept.append(messages[index])
            index += 1
    return kept


def is_answer(message: Message) -> bool:
    """Tell whether a message is a final answer: the assistant's, without a tool call."""
    return message.get("role") == "assistant" and not any("toolUse" in block for block in blocks_of(message))


def text_in(message: Message, recalled: Sequence[str] = ()) -> str:
    """Return all text of a message, guarded text included, blocks joined by newlines and stripped.

    Args:
        message: A message; an image or document may come before its text.
        recalled: The recall blocks that this package has put into the message, which are left out.
    """
    texts = [text for text in map(text_of, blocks_of(message)) if text is not None]
    for block in recalled:
        texts = [text.replace(block, "", 1) for text in texts if text.strip() != block]
    return "\n".join(texts).strip()


def turn_of(
    text: str, history: Sequence[Message], settings: TurnSettings, recalled: Mapping[str, Sequence[str]] | None = None
) -> Turn:
    """Return the turn: the ask and the exchanges before it.

    Args:
        text: The user's ask.
        history: The messages before the ask, oldest first.
        settings: How much of the history to take.
        recalled: The recall blocks in the history by the `tracking_id` of their message, which are left out.

    Returns:
        A turn whose `previous` alternates user and assistant and ends with the assistant's. Messages
        that hold only tool calls or results are skipped.
    """
    previous: list[str] = []
    assistant: str | None = None
    for message in reversed(history):
        if len(previous) >= 2 * settings.history_pairs:
            break
        tracking_id = message.get("tracking_id")
        said = text_in(message, recalled.get(tracking_id, ()) if recalled and isinstance(tracking_id, str) else ())
        if not said:
            continue
        if message.get("role") == "assistant":
            assistant = assistant or said
        elif assistant is not None:
            previous[:0] = [said[: settings.history_characters], assistant[: settings.history_characters]]
            assistant = None
    return Turn(text, tuple(previous))


def _is_user_text(message: Message) -> bool:
    return message.get("role") == "user" and bool(text_in(message))


def _is_format_prompt(message: Message) -> bool:
    return message.get("role") == "user" and text_in(message) == _FORMAT_PROMPT


def _is_recorded_call(messages: Sequence[Message]) -> bool:
    if [message.get("role") for message in messages] != ["user", "assistant"] * 2:
        return False
    called = _RECORDED_CALL.search(text_in(messages[0]))
    return called is not None and text_in(messages[3]) == f"agent.tool.{called[1]} was called."
