"""Ask a decider everything that a measurement needs: several runs, a progress bar, errors counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from strands_gated_memory.core.questions import Answer, NoAnswer, Question, State, probability_of
from strands_gated_memory.core.wordings import SUBJECT, Wording

from ..data.datasets import Dataset
from ..errors import HarnessError, RunFailed
from ..recording.recorder import RecordingDecider
from .options import Settings
from .tables import NOT_ANSWERED, NOTHING, Finding, Result, Table

_ROUNDING = 1e-6
"""How far two answers of single precision may be apart and still be the same."""

Request = tuple[State, Mapping[str, Question]]


@dataclass
class Replies:
    """The answers, per run and request, and what went wrong."""

    decider: RecordingDecider
    runs: list[list[Mapping[str, Answer]]] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    asked: int = 0
    ms: list[float] = field(default_factory=list)
    """Per request."""

    @property
    def stamp(self) -> str | None:
        """What every table of these answers has to say first; None without errors."""
        count = sum(self.errors.values())
        if not count:
            return None
        kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(self.errors.items()))
        return (
            f"!! decider errors  {count} of {self.asked} answers of {self.decider.name} ({kinds}): "
            "unanswered items are left out of its rows"
        )

    def scores(self, run: int, request: int, wording: Wording, key: str) -> float | None:
        """Return P(yes) of one answer, None without one."""
        return probability_of(wording.read(self.runs[run][request][key]))

    @property
    def timing(self) -> dict[str, float]:
        """Milliseconds: requests, median and total."""
        ordered = sorted(self.ms)
        return {
            "requests": float(len(ordered)),
            "median_ms": ordered[len(ordered) // 2] if ordered else 0.0,
            "total_ms": sum(ordered),
        }

    def result(
        self,
        command: str,
        data: Dataset,
        tables: Iterable[Table],
        *,
        figures: dict[str, Any],
        plots: dict[str, Any],
        sentences: Sequence[str] = (),
        findings: Mapping[str, Finding] | None = None,
    ) -> Result:
        """Return what a command made of these answers; every table is stamped when there were errors."""
        return Result(
            command=command,
            data=data.name,
            data_sha256=data.sha256,
            decider=self.decider.name,
            model=self.decider.model_id,
            tables=tuple(table.model_copy(update={"stamp": self.stamp}) for table in tables),
            sentences=tuple(sentences),
            findings=dict(findings or {}),
            figures=figures,
            plots=plots,
            timing=self.timing,
            errors=sum(self.errors.values()),
        )


def ask_all(decider: RecordingDecider, requests: Sequence[Request], settings: Settings, title: str) -> Replies:
    """Ask every request in every run.

    Raises:
        RunFailed: A request failed or an answer is unusable, and errors are not allowed; at the first one.
    """
    replies = Replies(decider)
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=settings.runs * len(requests))
        for run in range(settings.runs):
            decider.run = run
            answers: list[Mapping[str, Answer]] = []
            for state, questions in requests:
                answers.append(_ask(decider, state, questions, replies, allow=settings.allow_errors))
                progress.advance(task)
            replies.runs.append(answers)
    decider.run = 0
    return replies


def _ask(
    decider: RecordingDecider, state: State, questions: Mapping[str, Question], replies: Replies, *, allow: bool
) -> Mapping[str, Answer]:
    if not questions:
        return {}
    before = Counter(decider.errors)
    answers: Mapping[str, Answer]
    cause = ""
    try:
        answers = decider.decide(state, questions)
    except RunFailed:
        raise
    except Exception as error:
        cause = f": {error}" if str(error) else ""
        answers = dict.fromkeys(questions, NoAnswer("missing"))
    found = Counter(decider.errors)
    found.subtract(before)
    replies.asked += len(questions)
    replies.errors.update(+found)
    replies.ms.append(decider.calls[-1].ms)
    if +found and not allow:
        raise RunFailed(
            f"{decider.name} failed at request {len(replies.ms)} ({', '.join(sorted(+found))}{cause}), so there is "
            "nothing to measure; mend it, or pass --allow-errors to leave such items out and have every table say so"
        )
    return answers


def same_answers(columns: Mapping[str, Sequence[float | None]]) -> dict[str, str]:
    """Return, per wording, the earlier one whose answers are the same up to rounding: nobody read the wording."""
    same: dict[str, str] = {}
    for at, (key, scores) in enumerate(columns.items()):
        if all(score is None for score in scores):
            continue
        for earlier in list(columns)[:at]:
            if earlier not in same and _alike(columns[earlier], scores):
                same[key] = earlier
                break
    return same


def _alike(some: Sequence[float | None], others: Sequence[float | None]) -> bool:
    return all(
        (a is None and b is None) or (a is not None and b is not None and abs(a - b) <= _ROUNDING)
        for a, b in zip(some, others, strict=True)
    )


def unread_rows(
    name: str, answered: Mapping[str, bool], same: Mapping[str, str], figures: int
) -> list[tuple[str, ...]]:
    """Return the rows that stand for wordings without figures of their own, one per reason.

    Args:
        name: The decider's.
        answered: Per wording, whether there is any answer.
        same: As `same_answers`.
        figures: How many dashes follow the third cell.
    """
    rows: list[tuple[str, ...]] = []
    for earlier in dict.fromkeys(same.values()):
        keys = ", ".join(key for key, other in same.items() if other == earlier)
        rows.append((name, keys, f"as {earlier}", *[NOTHING] * figures))
    if silent := [key for key, any_answer in answered.items() if not any_answer]:
        every = "every wording" if len(silent) == len(answered) else ", ".join(silent)
        rows.append((name, every, NOT_ANSWERED, *[NOTHING] * figures))
    return rows


def read_wordings(path: Path | None, kind: str) -> tuple[Wording, ...]:
    """Read a user's wordings: {"gate": [{"id": …, "instructions": …}, …], "record": […]}.

    Args:
        path: The file; None: no wordings.
        kind: "gate" or "record".

    Raises:
        HarnessError: The file is wrong; names file, item and field.
    """
    if path is None:
        return ()
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(value, dict) or not set(value) <= {"gate", "record"}:
        raise HarnessError(f'{path}: must be an object with "gate" and "record", each a list of wordings')
    items = value.get(kind, [])
    if not isinstance(items, list):
        raise HarnessError(f"{path}: {kind} must be a list, got {type(items).__name__}")
    return tuple(_wording(item, f"{path}: {kind}[{at}]", kind) for at, item in enumerate(items))


_FIELDS = ("id", "instructions", "criteria", "type", "version", "inverted", "yes")


def _wording(item: Any, place: str, kind: str) -> Wording:
    if not isinstance(item, dict):
        raise HarnessError(f"{place}: must be an object, got {type(item).__name__}")
    for name in item:
        if name not in _FIELDS:
            raise HarnessError(f"{place}: has no field {name!r}; it has {', '.join(_FIELDS)}")
    for name in ("id", "instructions"):
        if not isinstance(item.get(name), str) or not item[name].strip():
            raise HarnessError(f"{place}.{name}: must be a text")
    if kind == "record" and SUBJECT not in item["instructions"]:
        raise HarnessError(f"{place}.instructions: must hold {SUBJECT}, where the record is put")
    if item.get("type", "noul") not in ("noul", "choice", "score"):
        raise HarnessError(f'{place}.type: must be "noul", "choice" or "score", got {item["type"]!r}')
    try:
        return Wording(**{**item, "yes": tuple(item.get("yes", ()))})
    except (TypeError, ValueError) as error:
        raise HarnessError(f"{place}: {error}") from error


def unread_notes(decider: str, command: str, answered: Mapping[str, bool], same: Mapping[str, str]) -> list[str]:
    """Return why a decider's wordings have no figures of their own, and the command of one that reads them."""
    notes = []
    if same:
        notes.append(
            f"{decider} answers by what a question is about and does not read its wording: its answers to "
            f"{', '.join(same)} are those to {', '.join(dict.fromkeys(same.values()))}."
        )
    if not all(answered.values()) and decider not in ("stock", "cosine"):
        notes.append(
            f'"{NOT_ANSWERED}": {decider} abstains from wordings that are not its own. A decider that reads any '
            f"wording is needed, such as strands-decider: `python -m harness {command} --decider strands-decider`."
        )
    return notes
