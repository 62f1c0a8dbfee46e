"""The OpenAI Decisions format: questions and answers are lists, yes-or-no is a `predicate`, models may refuse.

A predicate has no criteria, so they are folded into its instructions. The state is sent as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...core.questions import Answer, Choice, NoAnswer, Noul, Question, Score, State, checked
from ...errors import BadAnswer
from .base import Decoded, input_tokens_of, model_of


class OpenAIDecisions:
    """Codec for `POST /v1/decisions`."""

    def encode(self, model: str | None, state: State, questions: Mapping[str, Question]) -> dict[str, Any]:
        """Return the request's document."""
        return {
            "model": model,
            "input": json.dumps(dict(state), ensure_ascii=False),
            "questions": [_encode(name, question) for name, question in questions.items()],
        }

    def decode(self, body: object, questions: Mapping[str, Question]) -> Decoded:
        """Read a response; a name answered twice has no answer that can be trusted."""
        if not isinstance(body, Mapping) or not isinstance(body.get("answers"), list):
            raise BadAnswer("the response has no `answers` list: is this an OpenAI Decisions server?")
        found: dict[str, Answer] = {}
        for item in body["answers"]:
            name = item.get("name") if isinstance(item, Mapping) else None
            if isinstance(name, str) and name in questions:
                found[name] = NoAnswer("invalid") if name in found else _decode(item, questions[name])
        return Decoded(
            {name: found.get(name, NoAnswer("missing")) for name in questions}, model_of(body), input_tokens_of(body)
        )


def _encode(name: str, question: Question) -> dict[str, Any]:
    criteria = question.criteria
    if question.type == "noul":
        parts = [question.instructions]
        if isinstance(criteria, Mapping):
            parts += [f"{side.capitalize()} means: {text}" for side, text in criteria.items() if text]
        return {"type": "predicate", "name": name, "instructions": " ".join(parts)}
    if question.type == "choice" and isinstance(criteria, Mapping):
        choices = [{"value": value, **({"description": text} if text else {})} for value, text in criteria.items()]
        return {"type": "choice", "name": name, "instructions": question.instructions, "choices": choices}
    levels = [{"label": str(at), "description": text} for at, text in enumerate(criteria or ())]
    return {"type": "score", "name": name, "instructions": question.instructions, "levels": levels}


def _decode(item: Mapping[str, Any], question: Question) -> Answer:
    kind = item.get("type")
    try:
        if kind == "refusal":
            return NoAnswer("refused")
        if kind == "predicate":
            return checked(Noul(item["probability"]), question)
        if kind == "choice":
            return checked(Choice(item["choice"], _probabilities(item["probabilities"])), question)
        if kind == "score":
            return checked(Score(0.0, _probabilities(item["probabilities"])), question)
    except (KeyError, TypeError, ValueError):
        pass
    return NoAnswer("invalid")


def _probabilities(entries: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for entry in entries:
        value = str(entry["value"])
        if value in found:
            raise ValueError("an option is listed twice")
        found[value] = entry["probability"]
    return found
