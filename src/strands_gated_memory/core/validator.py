"""Does a record belong in the prompt, now? One question per row, and one more where instructions are to be dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..policy import ValidatorSettings
from .instructions import instructs
from .questions import Answer, NoAnswer, Question, probability_of
from .remembered import SHORT
from .render import LONGEST_TEXT
from .types import UNDECIDED, Row
from .wordings import RECORD_INSTRUCTIONS


def questions_about(rows: Sequence[Row], settings: ValidatorSettings, answers_custom: bool) -> dict[str, Question]:
    """Return the questions by id: each row that is not left out, and then whether it tries to instruct.

    Args:
        rows: The rows.
        settings: The validator's.
        answers_custom: Whether the decider answers questions of a wording that is not its own.
    """
    present = [(position, row) for position, row in enumerate(rows) if row.reason is None]
    asked = {_about(position): settings.question.question(row.text) for position, row in present}
    if asked and settings.drop_instructions and answers_custom:
        asked |= {_instructs(position): RECORD_INSTRUCTIONS.question(row.text) for position, row in present}
    return asked


def judged(
    rows: Sequence[Row], answers: Mapping[str, Answer], settings: ValidatorSettings, is_late: Callable[[], bool]
) -> list[Row]:
    """Return the rows with their probabilities; those that try to instruct the assistant are left out, if so set.

    Args:
        rows: As asked about.
        answers: Those that came.
        settings: The validator's.
        is_late: Whether the recall's deadline has passed.
    """
    if not answers and not settings.drop_instructions:
        return list(rows)
    read = []
    for position, row in enumerate(rows):
        answer = answers.get(_about(position)) if row.reason is None else None
        probability = None if answer is None else probability_of(settings.question.read(answer))
        reason = row.reason
        if reason is None and settings.drop_instructions:
            threshold = settings.instructions_threshold
            reason = "instructions" if _tries(row, answers.get(_instructs(position)), threshold, is_late) else None
        read.append(row._replace(probability=probability, reason=reason))
    return read


def _tries(row: Row, answer: Answer | None, threshold: float, is_late: Callable[[], bool]) -> bool:
    """Tell whether a record tries to instruct the assistant."""
    if len(row.record.text) > SHORT and is_late():
        return False  # without an answer in time a record is kept
    if answer is None or (isinstance(answer, NoAnswer) and answer.reason in UNDECIDED):
        text = row.record.text[:LONGEST_TEXT]
        return instructs(row.text) or (text != row.text and instructs(text))
    probability = probability_of(answer)
    return probability is not None and probability >= threshold


def _about(position: int) -> str:
    return f"record_{position}"


def _instructs(position: int) -> str:
    return f"instructions_{position}"
