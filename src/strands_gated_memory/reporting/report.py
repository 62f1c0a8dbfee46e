"""What every reporter is told of one turn, and what it adds to the counters, so that no two reporters disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from ..core.types import UNDECIDED, DeciderCall, Lookup, Recall, Turn


@dataclass(frozen=True, repr=False)
class Searched:
    """Where a turn's memory is, and whose."""

    memory_id: str
    actor_id: str
    session_id: str
    namespaces: tuple[str, ...] = ()
    """As configured."""


@dataclass(frozen=True, repr=False)
class Report:
    """One turn, told to every reporter."""

    recall: Recall
    searched: Searched
    turn: Turn | None = None
    """What the user asked; None for a turn that failed before."""

    @cached_property
    def counts(self) -> Counts:
        """What the turn adds to the counters."""
        return counts_of(self.recall)

    @cached_property
    def lookups(self) -> list[Lookup]:
        """The lookups, with placeholders instead of ids in their namespaces: a path may be configured for one user."""
        return [replace(lookup, namespace=self._template(lookup.namespace)) for lookup in self.recall.trace.lookups]

    def _template(self, namespace: str) -> str:
        path = f"/{namespace}/"
        ids = {self.searched.actor_id: "{actorId}", self.searched.session_id: "{sessionId}"}
        for value, placeholder in ids.items():
            if value:
                path = path.replace(f"/{value}/", f"/{placeholder}/")
        return path[1:-1]


class Reporter(Protocol):
    """Who is told of each turn."""

    name: str
    """Names it in counters and logs."""

    def report(self, report: Report) -> None:
        """Take note of one turn."""
        ...


@dataclass(frozen=True)
class Counts:
    """One turn, under the names that `RecallStats.as_dict` has."""

    totals: Mapping[str, float]
    by_name: Mapping[str, Mapping[str, int]]
    """Counts by a kind, a reason or another name."""
    failed: bool
    """Whether anything failed open."""
    disabled: bool
    """Whether the caller had switched recall off."""


def was_made(step: DeciderCall | Lookup) -> bool:
    """Tell whether a request was made: not if a breaker was open, a cache served, or the model was being loaded."""
    return not step.skipped and not (step.cached if isinstance(step, Lookup) else "warming" in step.no_answers)


def errors_of(call: DeciderCall) -> dict[str, int]:
    """Return how often a request failed, by kind: as a whole, or in single answers."""
    if call.error is not None:
        return {call.error: 1}
    return {reason: count for reason, count in call.no_answers.items() if reason not in UNDECIDED}


def counts_of(recall: Recall) -> Counts:
    """Count one turn."""
    trace, calls = recall.trace, recall.trace.decider_calls
    searches = [lookup for lookup in trace.lookups if not lookup.cached]
    lookups = [lookup for lookup in searches if was_made(lookup)]
    no_answers = _sum(call.no_answers for call in calls)
    outcome = None if trace.gate is None else trace.gate.outcome
    totals = {
        "turns": 1,
        "turn_failures": int(trace.failure is not None),
        "retrievals": int(bool(lookups)),
        "stock_retrievals": int(trace.namespaces > 0),
        "lookups": len(lookups),
        "stock_lookups": trace.namespaces,
        "retrieval_skipped": len(searches) - len(lookups),
        "retrievals_lost": int(bool(searches) and not lookups),
        "records_returned": trace.returned,
        "records_injected": len(recall.records),
        "records_shortened": sum(judgement.shortened for judgement in trace.judgements),
        "token_counter_errors": len(trace.select_failures),
        "context_characters": len(recall.block or ""),
        "context_tokens": trace.block_tokens,
        "decider_calls": sum(map(was_made, calls)),
        "decider_questions": sum(call.questions for call in calls if was_made(call)),
        "decider_skipped": sum(call.skipped for call in calls),
        "decider_truncated": sum(call.truncated for call in calls),
        "decider_abstentions": no_answers["abstained"],
        "decider_warming": no_answers["warming"],
        "decider_ms": 1000 * sum(call.seconds for call in calls),
        # Namespaces are searched side by side: the turn waits for the slowest.
        "retrieval_ms": 1000 * max((lookup.seconds for lookup in lookups), default=0.0),
        "recall_ms": 1000 * trace.seconds,
    }
    by_name: dict[str, Mapping[str, int]] = {
        "gate": Counter(() if outcome is None else (outcome,)),
        "records_dropped": Counter(dropped.reason for dropped in recall.dropped),
        "record_filter_errors_by_kind": _sum(lookup.filter_errors for lookup in trace.lookups),
        "decider_errors_by_kind": _sum(map(errors_of, calls)),
        "decider_models": Counter(call.model for call in calls if call.model is not None),
        "decider_answered_by": Counter(call.answered_by for call in calls if call.answered_by is not None),
        "decider_passed_over": Counter(who for call in calls for who in call.passed_over),
        "decider_untuned": Counter(why for call in calls for why in call.untuned),
        "decider_unusable": Counter(why for call in calls for why in set(call.explanations.values())),
        "retrieval_errors_by_kind": Counter(lookup.error for lookup in searches if lookup.error is not None),
    }
    failed = trace.failure is not None or bool(trace.failures)
    return Counts(totals, by_name, failed=failed, disabled=outcome == "disabled")


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total
