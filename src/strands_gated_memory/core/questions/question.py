"""What is asked, and what an answer is.

`Question` carries the fields of the System One wire format (type, instructions, criteria) and some of our own,
such as `about` and `subject`, that tell a model in this process what the question is for. `wire` drops those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypedDict

from ..types import Turn

About = Literal["gate", "namespace", "record", "custom"]
"""What a question decides.

- `"gate"`: is a lookup worth making?
- `"namespace"`: is this namespace, described in `subject`, worth searching?
- `"record"`: does this record, rendered in `subject`, belong in the prompt?
- `"custom"`: the caller's own wording.
"""

Criteria: TypeAlias = Mapping[str, str | None] | Sequence[str] | None


class State(TypedDict):
    """What every question of a request is asked about. The message comes first: long states lose their tail."""

    message: str
    previous: list[str]


@dataclass(frozen=True)
class Question:
    """One typed question.

    Attributes:
        type: "noul" (yes or no), "choice" (one of `criteria`'s keys) or "score" (a level of `criteria`).
        instructions: The proposition or the task.
        criteria: noul: what makes it true and false; choice: option -> description; score: levels, lowest first.
        about: What the question decides; not sent over a wire.
        subject: The namespace's description or the rendered record; not sent over a wire.
        wording: Id and version of the published wording, such as "gate/criteria/1"; not sent over a wire.
    """

    type: Literal["noul", "choice", "score"]
    instructions: str = field(repr=False)
    criteria: Criteria = field(default=None, repr=False)
    about: About = "custom"
    subject: str | None = field(default=None, repr=False)
    wording: str | None = None

    def wire(self) -> dict[str, Any]:
        """Return the fields of the System One wire format alone."""
        fields: dict[str, Any] = {"type": self.type, "instructions": self.instructions}
        if self.criteria is not None:
            fields["criteria"] = dict(self.criteria) if isinstance(self.criteria, Mapping) else list(self.criteria)
        return fields


@dataclass(frozen=True)
class Noul:
    """A yes-or-no answer: `noul` is P(yes), 0..1."""

    noul: float


@dataclass(frozen=True)
class Choice:
    """An answer that picks an option, with P(option) for each."""

    choice: str
    probabilities: Mapping[str, float]


@dataclass(frozen=True)
class Score:
    """An answer on a scale: `score` is the expected level, 0 the lowest, with P(level) for each."""

    score: float
    probabilities: Mapping[str, float]


NoAnswerReason = Literal["abstained", "warming", "refused", "missing", "invalid", "timeout", "too_long"]
"""Why a question has no usable answer.

- `"abstained"`: the model says that it cannot read this; not a failure.
- `"warming"`: the model is still being loaded; not a failure.
- `"refused"`: the model declined.
- `"missing"`: the reply lacks the question's id.
- `"invalid"`: wrong type, not a finite number, outside 0..1, or unknown options.
- `"timeout"`: it came too late.
- `"too_long"`: the question does not fit the model's window, so it was not cut but left unasked.
"""


@dataclass(frozen=True)
class NoAnswer:
    """No decision for this question: the pipeline fails open for it and counts it under `reason`.

    Attributes:
        reason: See `NoAnswerReason`.
        why: What came instead of an answer, and what to write; it quotes nothing of it. None when that is unknown.
    """

    reason: NoAnswerReason
    why: str | None = field(default=None, compare=False, repr=False)


Answer: TypeAlias = Noul | Choice | Score | NoAnswer


class Reply(dict[str, Answer]):
    """Answers per question id, and who gave them: what `decide` may return instead of a plain mapping.

    Attributes:
        model: The id of the model that answered, as it reports it.
        answered_by: Which decider of a list answered; None outside a list.
        passed_over: Deciders of a list that gave no answer before, as "name: kind of failure".
        thresholds: Probability per stage ("gate", "router", "validator") measured for this model.
        untuned: Per stage, why the threshold in use may not suit the model that answered.
        truncated: How many requests lost text to the model's window.
        explanations: Per member passed over, as there, what it returned instead of answers, and what to write.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        *,
        model: str | None = None,
        answered_by: str | None = None,
        passed_over: tuple[str, ...] = (),
        thresholds: Mapping[str, float] | None = None,
        untuned: Mapping[str, str] | None = None,
        truncated: int = 0,
        explanations: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(answers)
        self.model = model
        self.answered_by = answered_by
        self.passed_over = passed_over
        self.thresholds = dict(thresholds or {})
        self.untuned = dict(untuned or {})
        self.truncated = truncated
        self.explanations = dict(explanations or {})


def state_of(turn: Turn) -> State:
    """Return the state that a turn's questions are asked about."""
    return {"message": turn.text, "previous": list(turn.previous)}


GATE_ID = "gate"
"""The gate question's id in a request; others are "namespace_0", "record_0" and so on, by position."""
