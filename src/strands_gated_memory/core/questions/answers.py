"""A decider is asked, and what it returns is checked: each answer is safe to use, or says why there is none."""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import BadReturn
from ..types import UNDECIDED
from .decider import Decider, as_model_id, attribute_of, is_ours, is_share, read_safely, thresholds_of
from .question import Answer, Choice, NoAnswer, Noul, Question, Reply, Score, State

_ROUNDING = 1e-3
"""How far reported probabilities may be off for having been rounded."""
_SUM_TOLERANCE = 0.02
"""How far the options' probabilities may be from 1 in sum: 255 options rounded to four digits."""
_HOW_TO_ANSWER = {
    "noul": '{"type": "noul", "noul": P(yes) from 0 to 1}',
    "choice": '{"type": "choice", "probabilities": {option: P}}, every option of the question, 1 in sum',
    "score": '{"type": "score", "probabilities": {level: P}}, every level from "0" on, 1 in sum',
}
_HOW_TO_REPLY = f"{{id: {_HOW_TO_ANSWER['noul']} for id in questions}}"


def asked(decider: Decider, state: State, questions: Mapping[str, Question]) -> Reply:
    """Ask a decider, with copies that it may change as it likes, and return its checked reply.

    Raises:
        BadReturn: It returned no mapping.
        Exception: Whatever it raises.
    """
    given: State = {"message": state["message"], "previous": list(state["previous"])}
    asks = dict(questions) if is_ours(decider) else {name: _copied(question) for name, question in questions.items()}
    return checked_reply(decider, decider.decide(given, asks), questions)


def _copied(question: Question) -> Question:
    criteria = question.criteria
    if criteria is None or isinstance(criteria, tuple):
        return question
    return dataclasses.replace(question, criteria=dict(criteria) if isinstance(criteria, Mapping) else list(criteria))


def checked_reply(decider: Decider, raw: object, questions: Mapping[str, Question]) -> Reply:
    """Return a reply that holds a checked answer to every question, and no other.

    Args:
        decider: Who answered; its `model_id` and `thresholds` count where the reply says nothing of them.
        raw: What it returned.
        questions: What was asked.

    Raises:
        BadReturn: It returned no mapping.
    """
    if inspect.iscoroutine(raw):
        raw.close()  # or Python warns that nobody awaited it
        raise BadReturn("the decider returned a coroutine, not a mapping: it is async, make it plain")
    if not isinstance(raw, Mapping):
        raise BadReturn(
            f"the decider returned {type(raw).__name__}, not a mapping of id to answer; write {_HOW_TO_REPLY}"
        )
    answers = {name: checked(raw.get(name), question) for name, question in questions.items()}
    if raw and not any(name in raw for name in questions):
        why = f"of the {type(raw).__name__} that came, none of its keys is the id of a question; write {_HOW_TO_REPLY}"
        answers = dict.fromkeys(questions, NoAnswer("missing", why))
    if not isinstance(raw, Reply):
        return Reply(answers, model=as_model_id(attribute_of(decider, "model_id")), thresholds=thresholds_of(decider))
    if not _is_well_formed(raw):
        raise BadReturn("the decider returned a Reply whose fields beside the answers are not of its types")
    return Reply(answers, **{**vars(raw), "model": as_model_id(raw.model)})


def _is_well_formed(reply: Reply) -> bool:
    if not isinstance(reply.passed_over, tuple):
        return False
    texts = [*reply.passed_over, *reply.untuned.values(), *reply.explanations.values()]
    return (
        all(isinstance(text, str) for text in texts)
        and all(name is None or isinstance(name, str) for name in (reply.model, reply.answered_by))
        and isinstance(reply.truncated, int)
        and {*reply.thresholds} <= {"gate", "router", "validator", "relative"}
        and all(is_share(value) for value in reply.thresholds.values())
    )


def checked(answer: object, question: Question) -> Answer:
    """Return an answer that is safe to use, or say why there is none.

    Args:
        answer: What the decider returned for the question: an `Answer`, or a mapping in wire shape.
        question: The question that was asked.

    Returns:
        The answer if its type matches, its numbers are finite and within range, and its options are
        the question's; else `NoAnswer("missing")` for None and `NoAnswer("invalid")` for the rest, with what came and
        what to write. Never raises.
    """
    if isinstance(answer, NoAnswer):
        return answer
    if type(answer) is dict and question.type == "noul" and answer.get("type") == "noul":  # what most answers are
        noul = answer.get("noul")
        if type(noul) is float and 0.0 <= noul <= 1.0:
            return Noul(noul)
    valid = read_safely(lambda: _checked(answer, question), None)
    if valid is not None:
        return valid
    came = read_safely(lambda: _what_came(answer), type(answer).__name__)
    why = f"{came} came as the answer to a {question.type} question; write {_HOW_TO_ANSWER[question.type]}"
    return NoAnswer("missing" if answer is None else "invalid", why)


def _what_came(answer: object) -> str:
    """Say what came without a word of it but the names of its types."""
    if answer is None:
        return "nothing, or None,"
    value: object = answer
    if isinstance(answer, Mapping):
        if answer.get("type", "noul") != "noul":
            return f"a {type(answer).__name__} of another type, or whose probabilities do not fit,"
        if "noul" not in answer:
            return f"a {type(answer).__name__} without 'noul'"
        value = answer["noul"]
    elif isinstance(answer, Noul):
        value = answer.noul
    if value is answer:
        return f"{type(answer).__name__} alone"
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return f"'noul' with {'a number outside 0 to 1' if is_number else type(value).__name__}"


def _checked(answer: object, question: Question) -> Answer | None:
    if isinstance(answer, Mapping):
        answer = _from_wire(answer)
    if isinstance(answer, NoAnswer):
        return answer
    if question.type == "noul" and isinstance(answer, Noul):
        probability = _probability(answer.noul)
        return answer if probability is answer.noul else Noul(probability)
    if question.type == "choice" and isinstance(answer, Choice) and isinstance(question.criteria, Mapping):
        probabilities = {str(key): _probability(value) for key, value in answer.probabilities.items()}
        # A choice that is not the likeliest option contradicts itself: neither half can be trusted.
        likeliest = probabilities.get(str(answer.choice), -1.0) >= max(probabilities.values()) - _ROUNDING
        if set(probabilities) == set(question.criteria) and _is_distribution(probabilities) and likeliest:
            return Choice(str(answer.choice), probabilities)
    if question.type == "score" and isinstance(answer, Score) and isinstance(question.criteria, Sequence):
        probabilities = {str(key): _probability(value) for key, value in answer.probabilities.items()}
        levels = {str(level) for level in range(len(question.criteria))}
        if set(probabilities) == levels and _is_distribution(probabilities):
            return Score(sum(int(level) * p for level, p in probabilities.items()), probabilities)
    return None


def _is_distribution(probabilities: Mapping[str, float]) -> bool:
    return abs(sum(probabilities.values()) - 1.0) <= _SUM_TOLERANCE


def _from_wire(answer: Mapping[str, Any]) -> Answer | None:
    kind = answer.get("type", "noul" if "noul" in answer else None)
    if kind == "noul":
        return Noul(answer["noul"])
    if kind == "choice":
        probabilities = answer["probabilities"]
        return Choice(answer.get("choice") or max(probabilities, key=probabilities.get), probabilities)
    if kind == "score":
        return Score(0.0, answer["probabilities"])
    return NoAnswer("refused") if kind in ("refusal", "refused") else None


def _probability(value: object) -> float:
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, numbers.Real)):
        raise TypeError(f"a probability is a number, got {type(value).__name__}")
    number = float(value)
    if not (math.isfinite(number) and 0.0 <= number <= 1.0):
        raise ValueError(f"a probability lies in 0..1, got {number}")
    return value if type(value) is float else number


def probability_of(answer: Answer) -> float | None:
    """Return P(yes) of a noul answer, None without a decision."""
    return answer.noul if isinstance(answer, Noul) else None


def unanswered(answers: Mapping[str, Answer]) -> dict[str, int]:
    """Count the questions without a usable answer, by reason."""
    counts: dict[str, int] = {}
    for answer in answers.values():
        if isinstance(answer, NoAnswer):
            counts[answer.reason] = counts.get(answer.reason, 0) + 1
    return counts


def explanations_of(answers: Mapping[str, Answer]) -> dict[str, str]:
    """Return, per reason of a `NoAnswer`, why the first one has it, where that is known."""
    explanations: dict[str, str] = {}
    for answer in answers.values():
        if isinstance(answer, NoAnswer) and answer.why is not None:
            explanations.setdefault(answer.reason, answer.why)
    return explanations


def is_usable(answers: Mapping[str, Answer]) -> bool:
    """Tell whether a decider works: it gave an answer or an abstention, or is being loaded, or nothing was asked."""
    return not answers or any(
        not isinstance(answer, NoAnswer) or answer.reason in UNDECIDED for answer in answers.values()
    )
