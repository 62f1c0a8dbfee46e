"""Is a lookup worth making, and where? The gate's question and the router's, asked in one request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator

from .cuts import CutsInForce
from .questions import GATE_ID, Answer, NoAnswer, Question, probability_of
from .router import RouterSettings, choose
from .settings import Probability, Settings
from .types import GateDecision, GateOutcome
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


def questions_about(
    namespaces: Sequence[str], gate: GateSettings, router: RouterSettings, describe: Callable[[str], str | None]
) -> dict[str, Question]:
    """Return the questions of a turn by id: the gate's, and one for each namespace of which is known what it holds.

    Args:
        namespaces: Those that the gate decides about; of a single one the gate has said everything.
        gate: The gate's settings.
        router: The router's settings.
        describe: Returns what a namespace holds, None where that is not known; the router's descriptions win.
    """
    asked = {GATE_ID: gate.question.question()}
    for position, name in enumerate(namespaces if len(namespaces) > 1 else ()):
        if description := router.descriptions.get(name) or describe(name):
            asked[_id(position)] = router.question.question(description)
    return asked


def ungated(namespaces: Sequence[str], gated: Sequence[str]) -> GateDecision:
    """Return the decision where nobody decides: all that the gate would decide about is searched."""
    return GateDecision(True, None, dict.fromkeys(namespaces), tuple(gated), "ungated")


def decide(
    answers: Mapping[str, Answer],
    namespaces: Sequence[str],
    gated: Sequence[str],
    *,
    gate: GateSettings,
    router: RouterSettings,
    cuts: CutsInForce,
) -> GateDecision:
    """Return what the answers to `questions_about` mean.

    Args:
        answers: An answer per question.
        namespaces: Every configured namespace.
        gated: Those that were asked about, in the same order.
        gate: The gate's settings.
        router: The router's settings.
        cuts: Those in force.
    """
    outcome, probability = read_gate(gate.question.read(answers[GATE_ID]), cuts.gate.value)
    probabilities: dict[str, float | None] = dict.fromkeys(namespaces)
    for position, name in enumerate(gated):
        if (answer := answers.get(_id(position))) is not None:
            probabilities[name] = probability_of(router.question.read(answer))
    if outcome == "closed":
        return GateDecision(False, probability, probabilities, (), outcome)
    return GateDecision(True, probability, probabilities, choose(gated, probabilities, cuts.router.value), outcome)


def _id(position: int) -> str:
    return f"namespace_{position}"


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
