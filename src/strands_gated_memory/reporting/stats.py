"""Counters over turns: what was decided, searched, injected, and what failed.

A fail-open that nobody counts looks like a system that works, so failures come first in the text.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from ..core.types import UNDECIDED, GateOutcome, Lookup, Recall, TurnTrace
from ..runtime import threads
from .empty_namespaces import EmptyNamespaces
from .report import Counts, counts_of

StatsLog = Literal["block", "line", "json", "off"]
"""How the counters are logged."""

_RECENT = 100
"""Turns that the error rate is about."""
_ENOUGH = 20
"""Turns before an alarm means anything."""
_ALARMING = 0.5
_RECOVERED = 0.25
_MOST_BREAKERS = 64
_MOST_NAMES = 200
"""Names of one kind, such as ids of models, that are counted apart."""


class Counted(NamedTuple):
    """Where one more turn left the counters."""

    turns: int
    """Turns counted so far."""
    first_degradation: bool
    """Whether this turn brought the first failure."""
    alarming_rate: float | None
    """The error rate, 0..1, if with this turn most of the recent ones have failed open: once, until that is over."""


class _Named(Counter[str]):
    """Counts by names that come from outside: once there are many, a new one counts as "other"."""

    def __setitem__(self, name: str, count: int) -> None:
        if name not in self and len(self) >= _MOST_NAMES:
            name, count = "other", self["other"] + count
        super().__setitem__(name, count)


class RecallStats:
    """Counters, thread-safe; one object may be shared by many managers.

    Servers that build one agent per request pass the same object to each manager.
    """

    def __init__(self) -> None:
        nothing = counts_of(Recall((), None, (), TurnTrace(None, started=0.0)))
        self._lock = threads.Lock()
        self._totals: dict[str, float] = dict.fromkeys(nothing.totals, 0)
        self._by_name: dict[str, Counter[str]] = {name: _Named() for name in nothing.by_name}
        self._reporter_errors: Counter[str] = _Named()
        self._recent: deque[bool] = deque(maxlen=_RECENT)
        self._alarmed = False
        self._degraded = False
        self._managers = 0
        self._empty = EmptyNamespaces()
        self._logged_turns = 0
        self._breakers: dict[str, str] = {}

    def add(self, recall: Recall) -> Counted:
        """Count one turn, and say where that leaves the counters."""
        return self.add_counts(counts_of(recall), recall.trace.breakers)

    def add_counts(self, counts: Counts, breakers: Mapping[str, str]) -> Counted:
        """Count one turn, and say where that leaves the counters.

        Args:
            counts: The turn's.
            breakers: State after the turn of each circuit breaker that it met, by name.
        """
        with self._lock:
            first_degradation = counts.failed and not self._degraded
            self._degraded = self._degraded or counts.failed
            for name, count in counts.totals.items():
                self._totals[name] += count
            for group, named in counts.by_name.items():
                for name, times in named.items():
                    self._by_name[group][name] += times
            self._breakers.update(breakers)
            if len(self._breakers) > _MOST_BREAKERS:
                met = [(name, state) for name, state in self._breakers.items() if state != "closed"]
                self._breakers = dict(met[-_MOST_BREAKERS:])
            alarming_rate = None if counts.disabled else self._alarming_rate(counts.failed)
            return Counted(int(self._totals["turns"]), first_degradation, alarming_rate)

    def add_lookups(self, memory_id: str, lookups: Iterable[Lookup]) -> None:
        """Count a turn's lookups per namespace, to tell of those that never find anything."""
        self._empty.add(memory_id, lookups)

    def count_manager(self) -> None:
        """Note one more manager that adds to these counters."""
        with self._lock:
            self._managers += 1

    def note_logged(self) -> None:
        """Note that the counters have been logged as they are now."""
        with self._lock:
            self._logged_turns = int(self._totals["turns"])

    def is_worth_logging(self, every: int) -> bool:
        """Tell whether a manager that closes should log the counters, and note that it does.

        Those of one manager are, if anything is new. Those that several share are once, and then every so many
        turns: a server that makes a manager per request would log them with each request.

        Args:
            every: As `RecallPolicy.stats_every`.
        """
        with self._lock:
            turns = int(self._totals["turns"])
            new = turns - self._logged_turns
            due = new > 0 and (self._managers <= 1 or self._logged_turns == 0 or new >= every)
            if due:
                self._logged_turns = turns
            return due

    def count_reporter_error(self, name: str) -> bool:
        """Count a turn that a reporter could not be told of; return whether it is that reporter's first."""
        with self._lock:
            self._reporter_errors[name] += 1
            return self._reporter_errors[name] == 1

    @property
    def turns(self) -> int:
        """Turns counted, switched-off ones included."""
        return int(self.as_dict()["turns"])

    @property
    def decider_errors(self) -> int:
        """Requests to the decision model that failed, and answers that were missing, refused or invalid."""
        return int(self.as_dict()["decider_errors"])

    @property
    def retrieval_errors(self) -> int:
        """Searches of a namespace that failed."""
        return int(self.as_dict()["retrieval_errors"])

    @property
    def degraded(self) -> bool:
        """Whether anything has failed so far; abstentions are not failures."""
        with self._lock:
            return self._degraded

    @property
    def error_rate(self) -> float | None:
        """Share, 0..1, of the last 100 turns in which anything failed open; None before the first.

        Turns for which recall was switched off do not count.
        """
        with self._lock:
            return self._error_rate()

    def as_dict(self) -> dict[str, Any]:
        """Return every counter, for machines; times in milliseconds."""
        with self._lock:
            error_rate = self._error_rate()
            totals = {name: round(n, 3) if isinstance(n, float) else n for name, n in self._totals.items()}
            by_name = {name: dict(sorted(counts.items())) for name, counts in self._by_name.items()}
            reporter_errors = dict(sorted(self._reporter_errors.items()))
            breakers = dict(sorted(self._breakers.items()))
        errors = {
            name.removesuffix("_by_kind"): sum(kinds.values())
            for name, kinds in by_name.items()
            if name.endswith("_by_kind")
        }
        return {
            **totals,
            **errors,
            "trace_errors": reporter_errors.get("trace file", 0),
            "error_rate": error_rate,
            **by_name,
            "gate": {outcome: by_name["gate"].get(outcome, 0) for outcome in get_args(GateOutcome)},
            "namespaces_without_records": self._empty.suspect(),
            "reporter_errors": reporter_errors,
            "breakers": breakers,
        }

    def __str__(self) -> str:
        counts = self.as_dict()
        return "\n".join([*_alarms(counts), *_aligned(_rows(counts)), *_doubts(counts)])

    def __repr__(self) -> str:
        counts = self.as_dict()
        return (
            f"<RecallStats turns={counts['turns']} open={counts['gate']['open']} closed={counts['gate']['closed']} "
            f"decider_errors={counts['decider_errors']} retrieval_errors={counts['retrieval_errors']}>"
        )

    def line(self) -> str:
        """Return the counters as one line of key=value pairs."""
        pairs: list[tuple[str, Any]] = []
        for name, value in self.as_dict().items():
            pairs += [(f"{name}.{key}", n) for key, n in value.items()] if isinstance(value, dict) else [(name, value)]
        return " ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in pairs)

    def _error_rate(self) -> float | None:
        return sum(self._recent) / len(self._recent) if self._recent else None

    def _alarming_rate(self, failed: bool) -> float | None:
        """Take a turn into the error rate; return it if that is to raise the alarm."""
        self._recent.append(failed)
        rate = self._error_rate() or 0.0
        if self._alarmed:
            self._alarmed = rate >= _RECOVERED
            return None
        self._alarmed = rate > _ALARMING and len(self._recent) >= _ENOUGH
        return rate if self._alarmed else None


def _alarms(counts: dict[str, Any]) -> list[str]:
    alarms = {
        "decider_errors": "(failed open: results below reflect UNGATED behaviour)",
        "retrieval_errors": "(failed open: results below lack those records)",
        "record_filter_errors": f"{_listed(counts['record_filter_errors_by_kind'])}  "
        "(failed closed: those records were left out)",
        "turn_failures": "(failed open: those turns had no memory at all)",
    }
    return [f"!! {name.replace('_', ' ')}  {counts[name]}  {note}" for name, note in alarms.items() if counts[name]]


def _doubts(counts: dict[str, Any]) -> list[str]:
    """Say what came instead of answers, and where thresholds were not measured for the model that answered."""
    doubts = {
        "namespaces_without_records": "{0} gave no record in any of {1} lookups; if its users are not new, check "
        "its template, or the store",
        "decider_unusable": "{0}  ({1} requests)",
        "decider_untuned": "{0}  ({1} requests); set RecallPolicy thresholds of your own",
    }
    return [f"!  {text.format(*item)}" for name, text in doubts.items() for item in counts[name].items()]


def _rows(counts: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return label, number and note of each row; of what is rarely there only if it is."""
    gate = counts["gate"]
    decided = sum(gate[outcome] for outcome in ("open", "closed", "failed", *UNDECIDED))
    undecided = {name: gate[name] for name in (*UNDECIDED, "ungated", "disabled") if gate[name]}
    retrievals_saved = counts["stock_retrievals"] - counts["retrievals"] - counts["retrievals_lost"]
    lookups_saved = counts["stock_lookups"] - counts["lookups"] - counts["retrieval_skipped"]
    not_closed = [f"{name} {state}" for name, state in counts["breakers"].items() if state != "closed"]
    skipped = "(circuit breaker open; counted as errors too)"

    def row(name: str, note: str = "") -> tuple[str, int, str]:
        return name.replace("_", " "), round(counts[name]), note

    def row_by_name(name: str) -> tuple[str, int, str]:
        return name.replace("_", " "), sum(counts[name].values()), _listed(counts[name])

    always = [
        row("turns", _listed(undecided)),
        ("gate decisions", decided, f"(open {gate['open']}, closed {gate['closed']}, failed {gate['failed']})"),
        (
            "memory retrievals made",
            counts["retrievals"],
            f"(baseline would be {counts['stock_retrievals']}, saved {retrievals_saved})",
        ),
        (
            "namespace lookups made",
            counts["lookups"],
            f"(baseline would be {counts['stock_lookups']}, saved {lookups_saved})",
        ),
        row("retrieval_errors", _listed(counts["retrieval_errors_by_kind"])),
        row("retrieval_ms"),
        row("records_returned"),
        row_by_name("records_dropped"),
        row("records_injected"),
        row("context_tokens", f"({counts['context_characters']} characters)"),
        row("decider_calls", f"({counts['decider_questions']} questions)"),
        row("decider_errors", _listed(counts["decider_errors_by_kind"])),
        row("decider_abstentions"),
        row("decider_ms"),
    ]
    rare = [
        row("records_shortened", "(injected in part: the rest did not fit)"),
        row("token_counter_errors", "(estimated as characters / 4)"),
        ("recent error rate", round(100 * (counts["error_rate"] or 0)), "(% of the last turns, 100 at most)"),
        row("decider_skipped", skipped),
        row("retrieval_skipped", skipped),
        row("decider_warming", "(questions while it was being loaded: undecided)"),
        ("breakers not closed", len(not_closed), f"({', '.join(not_closed)})"),
        row("trace_errors", "(lines not written to the trace file)"),
        row_by_name("decider_answered_by"),
        row_by_name("decider_passed_over"),
        ("decider input cut", counts["decider_truncated"], "(requests that lost text to the window)"),
    ]
    return [*always, *(row for row in rare if row[1])]


def _listed(counts: dict[str, int]) -> str:
    return f"({', '.join(f'{name} {n}' for name, n in counts.items())})" if counts else ""


def _aligned(rows: list[tuple[str, int, str]]) -> list[str]:
    label = max(len(name) for name, _, _ in rows)
    number = max(len(str(value)) for _, value, _ in rows)
    return [f"{name:<{label}}  {value:>{number}}  {note}".rstrip() for name, value, note in rows]
