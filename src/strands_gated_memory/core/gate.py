"""Which namespaces are worth searching? What each holds, in words, and one answer each."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from ..policy import CutsInForce, GateSettings, RouterSettings
from .questions import GATE_ID, Answer, NoAnswer, Question, probability_of
from .types import GateDecision, GateOutcome

_PURPOSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"pref|taste|likes"), "the user's preferences, tastes, habits and how they want things done"),
    (re.compile(r"summar|conversation|dialog|chat"), "summaries of earlier conversations with the user"),
    (re.compile(r"episod|experience"), "past episodes: what the user tried or did, and how it went"),
    (re.compile(r"reflect|lesson|insight"), "lessons learned from past episodes"),
    (re.compile(r"semantic|facts?\b|knowledge"), "facts about the user: their life, health, people, places and work"),
    (re.compile(r"profile|about"), "the user's profile: who they are, their life and work"),
)

_GENERIC = re.compile(
    r"actors?|users?|customers?|members?|tenants?|sessions?|strateg(y|ies)|memor(y|ies)|records?|"
    r"namespaces?|long[-_ ]?term|ltm|default|v\d+|app|agents?|data|store"
)
_IDS_FOLLOW = re.compile(r"(actors?|users?|customers?|members?|tenants?|sessions?|strateg(y|ies)|agents?)")


@lru_cache(maxsize=1024)
def describe(namespace: str, strategy: str | None = None) -> str | None:
    """Say what a namespace holds, from its path, else from its strategy's name.

    Args:
        namespace: A namespace path or template, such as "/preferences/{actorId}/".
        strategy: The strategy's id or type, such as "user_preference-a1b2c3d4e5", if known.

    Returns:
        A phrase, or None when neither says anything: such a namespace is always searched.
    """
    words = _purpose_words(namespace)
    for source in (" ".join(words), (strategy or "").lower()):
        for pattern, purpose in _PURPOSES:
            if pattern.search(source):
                return purpose
    return f"the user's {' '.join(words)}" if words else None


def _purpose_words(namespace: str) -> list[str]:
    words: list[str] = []
    previous = ""
    for segment in namespace.lower().split("/"):
        is_id = bool(_IDS_FOLLOW.fullmatch(previous))
        previous = segment
        if not segment or "{" in segment or is_id or _GENERIC.fullmatch(segment) or re.search(r"\d", segment):
            continue
        words += [word for word in re.split(r"[-_:.\s]+", segment) if word]
    return words


def choose(namespaces: Sequence[str], probabilities: Mapping[str, float | None], threshold: float) -> tuple[str, ...]:
    """Return the namespaces to search, in the order given.

    Args:
        namespaces: All configured namespaces.
        probabilities: P(needed) per namespace; None where there was no decision.
        threshold: A probability, 0..1; equal is searched.

    Returns:
        Those at or above the threshold and those without a decision; all of them when no decided
        namespace reaches the threshold, because the gate has already said that memory is needed.
    """
    decided = {name: p for name in namespaces if (p := probabilities.get(name)) is not None}
    if not any(p >= threshold for p in decided.values()):
        return tuple(namespaces)
    return tuple(name for name in namespaces if name not in decided or decided[name] >= threshold)


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
