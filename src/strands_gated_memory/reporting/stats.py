"""Counters over turns: what was decided, searched, injected, and what failed.

Everything is derived from `Recall` values, so the counters cannot disagree with what was done. A
fail-open that nobody counts looks like a system that works, so failures come first in the text.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from ..core.types import UNDECIDED, DeciderCall, Lookup, Recall, TurnTrace
from ..runtime import forks
from .empty_namespaces import EmptyNamespaces

_T = TypeVar("_T")

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

_GATE_OUTCOMES = ("open", "closed", "failed", "abstained", "warming", "ungated", "disabled")


@dataclass(frozen=True)
class Counted:
    """Where one more turn left the counters."""

    turns: int
    """Turns counted so far."""
    first_degradation: bool
    """Whether this turn brought the first failure."""
    error_rate: float | None = None
    """As `RecallStats.error_rate`."""
    alarm: bool = False
    """Whether with this turn most of the recent ones have failed open: once, until it has recovered."""


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
        self._lock = forks.Lock()
        self._counts: Counter[str] = Counter()
        self._gate: Counter[str] = Counter()
        self._dropped: Counter[str] = _Named()
        self._decider_errors: Counter[str] = _Named()
        self._no_answers: Counter[str] = Counter()
        self._retrieval_errors: Counter[str] = _Named()
        self._answered_by: Counter[str] = _Named()
        self._passed_over: Counter[str] = _Named()
        self._models: Counter[str] = _Named()
        self._untuned: Counter[str] = _Named()
        self._unusable: Counter[str] = _Named()
        self._filter_errors: Counter[str] = _Named()
        self._reporter_errors: Counter[str] = _Named()
        self._decider_s = 0.0
        self._retrieval_s = 0.0
        self._recall_s = 0.0
        self._recent: deque[bool] = deque(maxlen=_RECENT)
        self._alarmed = False
        self._degraded = False
        self._managers = 0
        self._empty = EmptyNamespaces()
        self._logged_turns = 0
        self._breakers: dict[str, str] = {}

    def add(self, recall: Recall) -> Counted:
        """Count one turn, and say where that leaves the counters."""
        trace = recall.trace
        failed = trace.failure is not None or bool(trace.failures)
        with self._lock:
            first_degradation = failed and not self._degraded
            self._degraded = self._degraded or failed
            self._counts["turns"] += 1
            if trace.failure is not None:
                self._counts["turn_failures"] += 1
            if trace.gate is not None:
                self._gate[trace.gate.outcome] += 1
            self._counts["stock_retrievals"] += 1 if trace.namespaces else 0
            self._counts["stock_lookups"] += trace.namespaces
            searches = [lookup for lookup in trace.lookups if not lookup.cached]
            lookups = [lookup for lookup in searches if not lookup.skipped]
            self._counts["retrievals"] += 1 if lookups else 0
            self._counts["retrievals_lost"] += 1 if searches and not lookups else 0
            self._counts["retrieval_skipped"] += len(searches) - len(lookups)
            self._counts["lookups"] += len(lookups)
            self._counts["records_returned"] += trace.returned
            self._counts["records_injected"] += len(recall.records)
            self._counts["records_shortened"] += sum(judgement.shortened for judgement in trace.judgements)
            self._counts["token_counter_errors"] += len(trace.select_failures)
            self._counts["context_characters"] += len(recall.block or "")
            self._counts["context_tokens"] += trace.block_tokens
            for dropped in recall.dropped:
                self._dropped[dropped.reason] += 1
            for lookup in trace.lookups:
                for kind, count in lookup.filter_errors.items():
                    self._filter_errors[kind] += count
            for call in trace.decider_calls:
                self._count_call(call)
            for lookup in searches:
                if lookup.error is not None:
                    self._retrieval_errors[lookup.error] += 1
            # Namespaces are searched side by side: the turn waits for the slowest.
            self._retrieval_s += max((lookup.seconds for lookup in lookups), default=0.0)
            self._recall_s += trace.seconds
            self._note_breakers(trace.breakers)
            return Counted(
                self._counts["turns"],
                first_degradation=first_degradation,
                alarm=self._note_turn(trace, failed),
                error_rate=self._error_rate(),
            )

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
            self._logged_turns = self._counts["turns"]

    def is_worth_logging(self, every: int) -> bool:
        """Tell whether a manager that closes should log the counters, and note that it does.

        Those of one manager are, if anything is new. Those that several share are once, and then every so many
        turns: a server that makes a manager per request would log them with each request.

        Args:
            every: As `RecallPolicy.stats_every`.
        """
        with self._lock:
            turns = self._counts["turns"]
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
        return self._read(lambda: self._counts["turns"])

    @property
    def decider_errors(self) -> int:
        """Requests to the decision model that failed, and answers that were missing, refused or invalid."""
        return self._read(self._count_decider_errors)

    @property
    def retrieval_errors(self) -> int:
        """Searches of a namespace that failed."""
        return self._read(lambda: sum(self._retrieval_errors.values()))

    @property
    def degraded(self) -> bool:
        """Whether anything has failed so far; abstentions are not failures."""
        return self._read(lambda: self._degraded)

    @property
    def error_rate(self) -> float | None:
        """Share, 0..1, of the last 100 turns in which anything failed open; None before the first.

        Turns for which recall was switched off do not count.
        """
        return self._read(self._error_rate)

    def as_dict(self) -> dict[str, Any]:
        """Return every counter, for machines; times in milliseconds."""
        return self._read(self._as_dict)

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
        counts = self.as_dict()
        flat = {key: value for key, value in counts.items() if not isinstance(value, dict)}
        flat.update(
            {
                f"{key}.{name}": n
                for key, value in counts.items()
                if isinstance(value, dict)
                for name, n in value.items()
            }
        )
        return " ".join(
            f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in flat.items()
        )

    def _count_call(self, call: DeciderCall) -> None:
        if call.skipped:
            self._counts["decider_skipped"] += 1
        elif "warming" not in call.no_answers:
            self._counts["decider_calls"] += 1
            self._counts["decider_questions"] += call.questions
        self._decider_s += call.seconds
        if call.error is not None:
            self._decider_errors[call.error] += 1
        for reason, count in call.no_answers.items():
            self._no_answers[reason] += count
        self._counts["decider_truncated"] += call.truncated
        for who in call.passed_over:
            self._passed_over[who] += 1
        for why in call.untuned:
            self._untuned[why] += 1
        for why in dict.fromkeys(call.explanations.values()):
            self._unusable[why] += 1
        if call.answered_by is not None:
            self._answered_by[call.answered_by] += 1
        if call.model is not None:
            self._models[call.model] += 1

    def _note_turn(self, trace: TurnTrace, failed: bool) -> bool:
        """Take a turn into the error rate; return whether to raise the alarm."""
        if trace.gate is not None and trace.gate.outcome == "disabled":
            return False
        self._recent.append(failed)
        rate = sum(self._recent) / len(self._recent)
        if self._alarmed:
            self._alarmed = rate >= _RECOVERED
            return False
        self._alarmed = rate > _ALARMING and len(self._recent) >= _ENOUGH
        return self._alarmed

    def _note_breakers(self, states: Mapping[str, str]) -> None:
        self._breakers.update(states)
        if len(self._breakers) > _MOST_BREAKERS:
            self._breakers = {name: state for name, state in self._breakers.items() if state != "closed"}
            self._breakers = dict(list(self._breakers.items())[-_MOST_BREAKERS:])

    def _error_rate(self) -> float | None:
        return sum(self._recent) / len(self._recent) if self._recent else None

    def _count_decider_errors(self) -> int:
        silent = sum(n for reason, n in self._no_answers.items() if reason not in UNDECIDED)
        return sum(self._decider_errors.values()) + silent

    def _as_dict(self) -> dict[str, Any]:
        counts = self._counts
        errors = Counter(self._decider_errors)
        errors.update({reason: n for reason, n in self._no_answers.items() if reason not in UNDECIDED})
        return {
            "turns": counts["turns"],
            "turn_failures": counts["turn_failures"],
            "error_rate": self._error_rate(),
            "gate": {outcome: self._gate[outcome] for outcome in _GATE_OUTCOMES},
            "retrievals": counts["retrievals"],
            "stock_retrievals": counts["stock_retrievals"],
            "lookups": counts["lookups"],
            "stock_lookups": counts["stock_lookups"],
            "records_returned": counts["records_returned"],
            "records_dropped": dict(sorted(self._dropped.items())),
            "record_filter_errors": sum(self._filter_errors.values()),
            "record_filter_errors_by_kind": dict(sorted(self._filter_errors.items())),
            "records_injected": counts["records_injected"],
            "records_shortened": counts["records_shortened"],
            "token_counter_errors": counts["token_counter_errors"],
            "context_characters": counts["context_characters"],
            "context_tokens": counts["context_tokens"],
            "decider_calls": counts["decider_calls"],
            "decider_questions": counts["decider_questions"],
            "decider_abstentions": self._no_answers["abstained"],
            "decider_warming": self._no_answers["warming"],
            "decider_ms": round(1000 * self._decider_s, 3),
            "decider_errors": self._count_decider_errors(),
            "decider_errors_by_kind": dict(sorted(errors.items())),
            "decider_skipped": counts["decider_skipped"],
            "decider_truncated": counts["decider_truncated"],
            "decider_models": dict(sorted(self._models.items())),
            "decider_answered_by": dict(sorted(self._answered_by.items())),
            "decider_passed_over": dict(sorted(self._passed_over.items())),
            "decider_untuned": dict(sorted(self._untuned.items())),
            "decider_unusable": dict(sorted(self._unusable.items())),
            "retrieval_ms": round(1000 * self._retrieval_s, 3),
            "retrieval_errors": sum(self._retrieval_errors.values()),
            "retrieval_errors_by_kind": dict(sorted(self._retrieval_errors.items())),
            "namespaces_without_records": self._empty.suspect(),
            "retrieval_skipped": counts["retrieval_skipped"],
            "retrievals_lost": counts["retrievals_lost"],
            "recall_ms": round(1000 * self._recall_s, 3),
            "trace_errors": self._reporter_errors["trace file"],
            "reporter_errors": dict(sorted(self._reporter_errors.items())),
            "breakers": dict(sorted(self._breakers.items())),
        }

    def _read(self, read: Callable[[], _T]) -> _T:
        with self._lock:
            return read()


def _alarms(counts: dict[str, Any]) -> list[str]:
    lines = []
    if counts["decider_errors"]:
        lines.append(
            f"!! decider errors  {counts['decider_errors']}  (failed open: results below reflect UNGATED behaviour)"
        )
    if counts["retrieval_errors"]:
        lines.append(
            f"!! retrieval errors  {counts['retrieval_errors']}  (failed open: results below lack those records)"
        )
    if counts["record_filter_errors"]:
        lines.append(
            f"!! record filter errors  {counts['record_filter_errors']}  "
            f"{_listed(counts['record_filter_errors_by_kind'])}  (failed closed: those records were left out)"
        )
    if counts["turn_failures"]:
        lines.append(f"!! turn failures  {counts['turn_failures']}  (failed open: those turns had no memory at all)")
    return lines


def _doubts(counts: dict[str, Any]) -> list[str]:
    """Say what came instead of answers, and where thresholds were not measured for the model that answered."""
    return [
        *(
            f"!  {name} gave no record in any of {times} lookups; if its users are not new, check the template"
            for name, times in counts["namespaces_without_records"].items()
        ),
        *(f"!  {why}  ({times} requests)" for why, times in counts["decider_unusable"].items()),
        *_untuned(counts),
    ]


def _untuned(counts: dict[str, Any]) -> list[str]:
    return [
        f"!  {why}  ({times} requests); set RecallPolicy thresholds of your own"
        for why, times in counts["decider_untuned"].items()
    ]


def _rows(counts: dict[str, Any]) -> list[tuple[str, int, str]]:
    gate = counts["gate"]
    decided = sum(gate[outcome] for outcome in ("open", "closed", "failed", *UNDECIDED))
    rest = {name: gate[name] for name in (*UNDECIDED, "ungated", "disabled") if gate[name]}
    return [
        ("turns", counts["turns"], _listed(rest) if rest else ""),
        ("gate decisions", decided, f"(open {gate['open']}, closed {gate['closed']}, failed {gate['failed']})"),
        (
            "memory retrievals made",
            counts["retrievals"],
            f"(baseline would be {counts['stock_retrievals']}, "
            f"saved {counts['stock_retrievals'] - counts['retrievals'] - counts['retrievals_lost']})",
        ),
        (
            "namespace lookups made",
            counts["lookups"],
            f"(baseline would be {counts['stock_lookups']}, "
            f"saved {counts['stock_lookups'] - counts['lookups'] - counts['retrieval_skipped']})",
        ),
        ("retrieval errors", counts["retrieval_errors"], _listed(counts["retrieval_errors_by_kind"])),
        ("retrieval ms", round(counts["retrieval_ms"]), ""),
        ("records returned", counts["records_returned"], ""),
        ("records dropped", sum(counts["records_dropped"].values()), _listed(counts["records_dropped"])),
        ("records injected", counts["records_injected"], ""),
        ("context tokens", counts["context_tokens"], f"({counts['context_characters']} characters)"),
        ("decider calls", counts["decider_calls"], f"({counts['decider_questions']} questions)"),
        ("decider errors", counts["decider_errors"], _listed(counts["decider_errors_by_kind"])),
        ("decider abstentions", counts["decider_abstentions"], ""),
        ("decider ms", round(counts["decider_ms"]), ""),
        *_optional_rows(counts),
    ]


def _optional_rows(counts: dict[str, Any]) -> list[tuple[str, int, str]]:
    """Return rows of what is rarely there: what only some deciders have, and what only failures bring."""
    rows = []
    if counts["records_shortened"]:
        rows.append(("records shortened", counts["records_shortened"], "(injected in part: the rest did not fit)"))
    if counts["token_counter_errors"]:
        rows.append(("token counter errors", counts["token_counter_errors"], "(estimated as characters / 4)"))
    if counts["error_rate"]:
        rows.append(("recent error rate", round(100 * counts["error_rate"]), "(% of the last turns, 100 at most)"))
    rows += [
        (f"{name} skipped", counts[f"{name}_skipped"], "(circuit breaker open; counted as errors too)")
        for name in ("decider", "retrieval")
        if counts[f"{name}_skipped"]
    ]
    if counts["decider_warming"]:
        rows.append(("decider warming", counts["decider_warming"], "(questions while it was being loaded: undecided)"))
    not_closed = {name: state for name, state in counts["breakers"].items() if state != "closed"}
    if not_closed:
        states = ", ".join(f"{name} {state}" for name, state in not_closed.items())
        rows.append(("breakers not closed", len(not_closed), f"({states})"))
    if counts["trace_errors"]:
        rows.append(("trace errors", counts["trace_errors"], "(lines not written to the trace file)"))
    if counts["decider_answered_by"] or counts["decider_passed_over"]:
        answered, passed = counts["decider_answered_by"], counts["decider_passed_over"]
        rows.append(("decider answered by", sum(answered.values()), _listed(answered)))
        rows.append(("decider passed over", sum(passed.values()), _listed(passed)))
    if counts["decider_truncated"]:
        rows.append(("decider input cut", counts["decider_truncated"], "(requests that lost text to the window)"))
    return rows


def _listed(counts: dict[str, int]) -> str:
    return f"({', '.join(f'{name} {n}' for name, n in counts.items())})" if counts else ""


def _aligned(rows: list[tuple[str, int, str]]) -> list[str]:
    label = max(len(name) for name, _, _ in rows)
    number = max(len(str(value)) for _, value, _ in rows)
    return [f"{name:<{label}}  {value:>{number}}  {note}".rstrip() for name, value, note in rows]
