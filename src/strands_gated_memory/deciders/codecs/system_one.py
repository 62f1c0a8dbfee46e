"""The System One format: strands-decider, TypeSafe Jev, OpenRouter, Liquid and others.

Questions are an object by id, answers too; yes-or-no is a `noul`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.questions import Question, State, checked
from ...errors import BadAnswer
from .base import Decoded, input_tokens_of, model_of


class SystemOne:
    """Codec for `POST /v1/systemone`."""

    def encode(self, model: str | None, state: State, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Return the request's document; without a model the field is left out."""
        body: dict[str, Any] = {"model": model} if model else {}
        body["state"] = dict(state)
        body["questions"] = {name: question.wire() for name, question in questions.items()}
        return body

    def decode(self, body: object, questions: Mapping[str, Question]) -> Decoded:
        """Read a response; answers that nobody asked for are ignored."""
        if not isinstance(body, Mapping) or not isinstance(body.get("answers"), Mapping):
            raise BadAnswer("the response has no `answers` object: is this a System One server?")
        answers = body["answers"]
        return Decoded(
            {name: checked(answers.get(name), question) for name, question in questions.items()},
            model_of(body),
            input_tokens_of(body),
        )
