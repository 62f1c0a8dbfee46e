"""From a conversation's messages to the turn that the decision model is asked about.

Messages are plain mappings with `role` and `content` blocks. Nothing is changed, only read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import Field

from .settings import Count, Settings
from .types import Turn

Message: TypeAlias = Mapping[str, Any]


class TurnSettings(Settings):
    """What of the conversation the decision model sees."""

    history_pairs: Count = Field(default=1, ge=0, le=20)
    """How many exchanges before the message it sees: last user text and final assistant text each.

    The embedded model reads three at most."""
    history_characters: Count = Field(default=400, ge=1, le=100_000)
    """Where each of those texts is cut, in characters."""


def find_ask(messages: Sequence[Message] | None) -> Message | None:
    """Return the message that carries the user's ask: the last user text among an invocation's input.

    Args:
        messages: The input messages of one invocation. Tool results are not asks.
    """
    for message in reversed(messages or ()):
        if _is_user_text(message):
            return message
    return None


def ask_text(message: Message, context_tag: str) -> str:
    """Return all text of a message, blocks joined by newlines, our own recall block left out.

    Args:
        message: A user message; an image or document may come before its text.
        context_tag: The tag of the recall block.
    """
    return "\n".join(_texts(message, context_tag)).strip()


def turn_of(text: str, history: Sequence[Message], settings: TurnSettings, context_tag: str) -> Turn:
    """Return the turn: the ask and the exchanges before it.

    Args:
        text: The user's ask.
        history: The messages before the ask, oldest first.
        settings: How much of the history to take.
        context_tag: The tag of the recall block, which is never part of the history.

    Returns:
        A turn whose `previous` alternates user and assistant and ends with the assistant's. Messages
        that hold only tool calls or results are skipped.
    """
    previous: list[str] = []
    assistant: str | None = None
    for message in reversed(history):
        if len(previous) >= 2 * settings.history_pairs:
            break
        said = "\n".join(_texts(message, context_tag)).strip()
        if not said or _has_tool_result(message):
            continue
        if message.get("role") == "assistant":
            assistant = assistant or said
        elif assistant is not None:
            previous[:0] = [said[: settings.history_characters], assistant[: settings.history_characters]]
            assistant = None
    return Turn(text, tuple(previous))


def _is_user_text(message: Message) -> bool:
    return (
        message.get("role") == "user"
        and not _has_tool_result(message)
        and any(text.strip() for text in _all_texts(message))
    )


def _texts(message: Message, context_tag: str) -> list[str]:
    opening, closing = f"<{context_tag}>", f"</{context_tag}>"
    return [
        text
        for text in _all_texts(message)
        if not (text.strip().startswith(opening) and text.strip().endswith(closing))
    ]


def _all_texts(message: Message) -> list[str]:
    return [block["text"] for block in _blocks(message) if isinstance(block.get("text"), str)]


def _has_tool_result(message: Message) -> bool:
    return any("toolResult" in block for block in _blocks(message))


def _blocks(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list | tuple) else []
