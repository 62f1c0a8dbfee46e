"""Ask a decider everything that a measurement needs: several runs, a progress bar, errors counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.progress import Progress

from strands_gated_memory.core.questions import Answer, NoAnswer, Question, State, probability_of
from strands_gated_memory.core.wordings import Wording

from ..data.datasets import Dataset
from ..errors import RunFailed
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

    def probability(self, run: int, request: int, wording: Wording, key: str) -> float | None:
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


@dataclass(frozen=True)
class Readings:
    """Which wordings a decider answers, and which of them it answers without reading them."""

    decider: str
    answered: Mapping[str, bool]
    """Per wording, whether there is any answer."""
    same: Mapping[str, str]
    """Per wording, the earlier one whose answers are the same up to rounding: nobody read the wording."""

    @classmethod
    def of(cls, decider: str, columns: Mapping[str, Sequence[float | None]]) -> Readings:
        """Return what the scores per wording say."""
        answered = {key: any(score is not None for score in scores) for key, scores in columns.items()}
        same: dict[str, str] = {}
        for at, key in enumerate(columns):
            earlier = [other for other in list(columns)[:at] if other not in same]
            alike = next((other for other in earlier if _alike(columns[other], columns[key])), None)
            if answered[key] and alike is not None:
                same[key] = alike
        return cls(decider, answered, same)

    @property
    def own(self) -> list[str]:
        """The wordings that have figures of their own."""
        return [key for key, any_answer in self.answered.items() if any_answer and key not in self.same]

    def rows(self, figures: int) -> list[tuple[str, ...]]:
        """Return the rows that stand for the other wordings, one per reason, with so many dashes."""
        rows: list[tuple[str, ...]] = []
        for earlier in dict.fromkeys(self.same.values()):
            keys = ", ".join(key for key, other in self.same.items() if other == earlier)
            rows.append((self.decider, keys, f"as {earlier}", *[NOTHING] * figures))
        if silent := [key for key, any_answer in self.answered.items() if not any_answer]:
            every = "every wording" if len(silent) == len(self.answered) else ", ".join(silent)
            rows.append((self.decider, every, NOT_ANSWERED, *[NOTHING] * figures))
        return rows

    def notes(self, command: str) -> list[str]:
        """Return why these have no figures of their own, and the command of a decider that reads wordings."""
        notes = []
        if self.same:
            notes.append(
                f"{self.decider} answers by what a question is about and does not read its wording: its answers to "
                f"{', '.join(self.same)} are those to {', '.join(dict.fromkeys(self.same.values()))}."
            )
        if not all(self.answered.values()) and self.decider not in ("stock", "cosine"):
            notes.append(
                f'"{NOT_ANSWERED}": {self.decider} abstains from wordings that are not its own. A decider that reads '
                "any wording is needed, such as strands-decider: "
                f"`python -m harness {command} --decider strands-decider`."
            )
        return notes


def _alike(some: Sequence[float | None], others: Sequence[float | None]) -> bool:
    return all(
        (a is None and b is None) or (a is not None and b is not None and abs(a - b) <= _ROUNDING)
        for a, b in zip(some, others, strict=True)
    )
