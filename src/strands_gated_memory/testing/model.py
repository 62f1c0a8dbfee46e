"""A Strands model that answers offline and keeps what it was shown."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel
from strands.models import Model

from ..core.turn import text_of

_T = TypeVar("_T", bound=BaseModel)


@dataclass(frozen=True)
class ToolCall:
    """A reply that calls a tool."""

    name: str
    input: Any
    tool_use_id: str = "tool-1"


Reply = str | ToolCall | BaseException
"""What the model does on one call: say a text, call a tool, or fail."""


class ScriptedModel(Model):
    """Answers from a script, or from a function of the messages it is shown.

    Args:
        replies: One reply per model call, in order; or a function `(messages) -> reply`.

    Attributes:
        calls: A deep copy of the messages of each call, in order: exactly what a provider would see.
    """

    def __init__(self, replies: Iterable[Reply] | Callable[[list[Any]], Reply]) -> None:
        self.calls: list[list[Any]] = []
        if callable(replies):
            self._reply = replies
        else:
            script = iter(replies)
            self._reply = lambda _messages: next(script)

    def update_config(self, **model_config: Any) -> None:
        """Accept and ignore configuration."""

    def get_config(self) -> Any:
        """Return an empty configuration."""
        return {}

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncIterable[Any]:
        """Stream one reply.

        Raises:
            StopIteration: (as RuntimeError) the script is over; BaseException: the script says so.
        """
        self.calls.append(copy.deepcopy(list(messages)))
        reply = self._reply(list(messages))
        if isinstance(reply, BaseException):
            raise reply
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(reply, ToolCall):
            called_with = reply.input if isinstance(reply.input, str) else json.dumps(reply.input)
            yield {"contentBlockStart": {"start": {"toolUse": {"name": reply.name, "toolUseId": reply.tool_use_id}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": called_with}}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "tool_use"}}
        else:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": reply}}}
            yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn"}}
        yield {
            "metadata": {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}, "metrics": {"latencyMs": 0}}
        }

    async def structured_output(
        self, output_model: type[_T], prompt: Any, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, _T | Any], None]:
        """Not scripted; structured output by tool call is: reply with a `ToolCall`."""
        raise NotImplementedError("script a ToolCall with the name of the output model")
        yield {}


def blocks_shown(messages: Iterable[Any], context_tag: str = "user_context") -> list[str]:
    """Return every recall block in a call's messages, oldest first, tags included.

    A block is a content block of its own, or stands in the user's text, where a message holds a tool result too.
    """
    tag = re.escape(context_tag)
    within = re.compile(rf"^<{tag}>\n.*?\n</{tag}>$", re.DOTALL | re.MULTILINE)
    shown: list[str] = []
    for text in (text_of(block) for message in messages for block in message["content"]):
        if text is None:
            continue
        shown += within.findall(text) or ([text.strip()] if text.strip().startswith(f"<{context_tag}>") else [])
    return shown
