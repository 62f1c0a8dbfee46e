"""What a wire format does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...core.questions import Answer, Question, State
from ..shown import one_line


@dataclass(frozen=True)
class Decoded:
    """One response, read."""

    answers: Mapping[str, Answer]
    """A checked answer per question asked."""
    model: str | None
    """The id of the model that answered, as it reports it."""
    input_tokens: int | None
    """Tokens that the model read; None when it does not say."""


class Codec(Protocol):
    """A wire format. Pure: no I/O, no clock."""

    def encode(self, model: str | None, state: State, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Return the request's document."""
        ...

    def decode(self, body: object, questions: Mapping[str, Question]) -> Decoded:
        """Read a response.

        Raises:
            BadAnswer: The document as a whole is not a response of this format.
        """
        ...


def model_of(body: Mapping[str, Any]) -> str | None:
    """Return the model id that a response reports, None if it has none."""
    model = body.get("model")
    return one_line(model) if isinstance(model, str) and model else None


def input_tokens_of(body: Mapping[str, Any]) -> int | None:
    """Return `usage.input_tokens`, None if it is not a count."""
    usage = body.get("usage")
    tokens = usage.get("input_tokens") if isinstance(usage, Mapping) else None
    if isinstance(tokens, bool) or not isinstance(tokens, int | float) or not 0 <= tokens < float("inf"):
        return None
    return int(tokens)
