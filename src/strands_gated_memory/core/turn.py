"""From a conversation's messages to the turn that the decision model is asked about: which text is the user's ask.

Messages are plain mappings with `role` and `content` blocks. Nothing is changed, only read. A recall block that
stands in the conversation (`inject.mode="history"`) is known by its message, never by its tag: what a user types
is an ask, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from .messages import Message, blocks_of, text_of
from .settings import Count, Settings
from .types import Turn


class TurnSettings(Settings):
    """What of the conversation the decision model sees."""

    history_pairs: Count = Field(default=1, ge=0, le=20)
    """How many exchanges before the message it sees: last user text and final assistant text each."""
    history_characters: Count = Field(default=400, ge=1, le=100_000)
    """Where each of those texts is cut, in characters."""


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
        messages: A conversation, oldest first. Tool calls and their results are no answers.
    """
    for message in reversed(messages):
        if is_answer(message):
            return None
        if _is_user_text(message):
            return message
    return None


def is_answer(message: Message) -> bool:
    """Tell whether a message is a final answer: the assistant's, without a tool call."""
    return message.get("role") == "assistant" and not any("toolUse" in block for block in blocks_of(message))


def text_in(message: Message, block: str | None = None) -> str:
    """Return all text of a message, guarded text included, blocks joined by newlines and stripped.

    Args:
        message: A message; an image or document may come before its text.
        block: The recall block that this package has put into the message, which is left out.
    """
    texts = [text for text in map(text_of, blocks_of(message)) if text is not None]
    if block is not None:
        texts = [text.replace(block, "", 1) for text in texts if text.strip() != block]
    return "\n".join(texts).strip()


def turn_of(
    text: str, history: Sequence[Message], settings: TurnSettings, recalled: Mapping[str, str] | None = None
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
        said = text_in(message, recalled.get(tracking_id) if recalled and isinstance(tracking_id, str) else None)
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
