"""Is a lookup worth making? One answer against one threshold."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from .questions import Answer, NoAnswer, probability_of
from .settings import Probability, Settings
from .types import GateOutcome
from .wordings import GATE_CRITERIA, Wording, as_wording


class GateSettings(Settings):
    """When memory is searched at all."""

    threshold: Probability | None = None
    """P(a lookup is worth making) from which on it is made, 0..1; None: the decider's own, else 0.2."""
    question: Annotated[Wording, BeforeValidator(lambda value: as_wording(value, "gate.question", subject=False))] = (
        GATE_CRITERIA
    )
    """What is asked: a `Wording`, or a noul `Question`. A threshold holds for one wording."""


_UNDECIDED: dict[str, GateOutcome] = {"abstained": "abstained", "warming": "warming"}


def read_gate(answer: Answer, threshold: float) -> tuple[GateOutcome, float | None]:
    """Return what the gate's answer means, and its probability.

    Args:
        answer: The answer to the gate question.
        threshold: A probability, 0..1; equal opens the gate.

    Returns:
        "open" or "closed" with the probability; "abstained", "warming" or "failed" with None.
    """
    probability = probability_of(answer)
    if probability is None:
        return _UNDECIDED.get(answer.reason, "failed") if isinstance(answer, NoAnswer) else "failed", None
    return ("open" if probability >= threshold else "closed"), probability
