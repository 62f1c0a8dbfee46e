"""Log lines about recalls: the first failure of a kind is loud, the next ones sparse, all are counted.

Memory text and messages of users never appear here above DEBUG. Nothing here raises: a turn must not end
because a handler or a filter of the application does.
"""

from __future__ import annotations

import json
import logging
from collections import Counter

from ..core.types import SKIPPED, Recall
from ..errors import CAUSE_CHARACTERS
from ..runtime import threads
from .empty_namespaces import ENOUGH, EmptyNamespaces
from .report import Report
from .stats import RecallStats, StatsLog

logger = logging.getLogger("strands_gated_memory")

_CONSEQUENCE = {
    "gate": "recall failed open | searching memory without the gate",
    "validator": "recall failed open | keeping the records without judging them",
    "retrieve": "recall failed open | going on without that namespace's records",
    "filter": "recall failed closed | leaving those records out",
    "select": "recall failed open | estimating tokens as characters / 4",
    "turn": "recall failed open | going on without any memory",
    "fallback": "a decider of a list was passed over | deciding with another model",
}
_MOST_KINDS = 1000
"""Kinds of failure that are counted apart: class names and names of models come from outside."""

_lock = threads.Lock()
_failures: Counter[tuple[str, str]] = Counter()
_said: set[str] = set()
_EMPTY = EmptyNamespaces()


class FailureLog:
    """Warns about failures, and about namespaces that never hold anything."""

    name = "log"

    def report(self, report: Report) -> None:
        """Log one turn's failures; of a namespace whose first lookups all found nothing, once in this process."""
        log_failures(report.recall)
        for namespace in _EMPTY.add(report.searched.memory_id, report.lookups):
            log_mishap(
                "namespace=<%s>, memory=<%s>, lookups=<%d> | no lookup of this namespace has found a record yet | that "
                "is normal while its users are new; else check, for AgentCore, the template (a typo, a missing part) "
                "against the namespaces of the memory's strategies, that a strategy writes there, and the IAM "
                "conditions on namespacePath; for a store, its query, its filters and what it holds",
                namespace,
                report.searched.memory_id,
                ENOUGH,
            )


def reset_failure_log() -> None:
    """Forget which failures this process has logged; for tests."""
    with _lock:
        _failures.clear()
        _said.clear()
    _EMPTY.clear()


def log_mishap(message: str, *args: object) -> None:
    """Warn about something beside the recall that failed."""
    _log(logging.WARNING, message, *args)


def log_debug(message: str) -> None:
    """Say at DEBUG, with its traceback, what is being handled."""
    _log(logging.DEBUG, message, with_traceback=True)


def warn_once(message: str, *args: object) -> None:
    """Warn, once in this process, about what does not change from turn to turn."""
    said = message % args if args else message
    with _lock:
        if said in _said or len(_said) >= _MOST_KINDS:
            return
        _said.add(said)
    log_mishap(message, *args)


def log_failures(recall: Recall) -> None:
    """Warn about a turn's failures: the 1st, 10th, 100th … of each stage and kind in this process."""
    trace = recall.trace
    for failure in trace.failures:
        _log_failure(*failure)
    for call in trace.decider_calls:
        for who in call.passed_over:
            _log_failure("fallback", who, call.explanations.get(who, "the next decider of the list was asked"))
        for why in call.untuned:
            warn_once(
                "cause=<%s> | decisions may be too strict or too loose | look at a few with "
                "`strands-gated-memory ask`, then set RecallPolicy(gate={'threshold': …}, validator={'threshold': …})",
                why,
            )
        if "warming" in call.no_answers:
            warn_once(
                "stage=<%s> | the decision model is still being loaded | the turn goes on without a decision; call "
                "strands_gated_memory.warm(decider) before the first turn",
                call.stage,
            )
    for lookup in trace.lookups:
        for kind, count in lookup.filter_errors.items():
            _log_failure("filter", kind, f"record_filter failed on {count} records")


def log_turn_failure(kind: str, error: Exception | None) -> None:
    """Warn about a turn that had no memory at all: as `log_failures`, without the exception's message.

    Args:
        kind: As counted.
        error: What was raised; its traceback is logged by `log_debug`. None when nothing was.
    """
    if error is None:
        _log_failure("turn", kind, "no exception was raised")
    else:
        _log_failure("turn", kind, f"{type(error).__name__}, its traceback is at DEBUG of {logger.name}")


def log_error_rate(rate: float) -> None:
    """Say at ERROR that most of the recent turns failed open.

    Args:
        rate: The share that did, 0..1.
    """
    _log(
        logging.ERROR,
        "error_rate=<%.2f> | most recent recalls failed open | memory is not gated, or not there: see the counters",
        rate,
    )


def log_stats(stats: RecallStats, style: StatsLog) -> None:
    """Log the counters at INFO in the given style."""
    if style == "off" or not logger.isEnabledFor(logging.INFO):
        return
    if style == "json":
        text = json.dumps(stats.as_dict())
    else:
        text = stats.line() if style == "line" else f"recall counters\n{stats}"
    _log(logging.INFO, "%s", text)


def _log_failure(stage: str, kind: str, cause: str | None) -> None:
    with _lock:
        known = (stage, kind) in _failures or len(_failures) < _MOST_KINDS
        key = (stage, kind if known else "other")
        _failures[key] += 1
        count = _failures[key]
    if str(count).rstrip("0") == "1":
        _log(
            # The failures that opened a circuit breaker have been warned about: its first skip is no news.
            logging.DEBUG if kind == SKIPPED and count == 1 else logging.WARNING,
            "stage=<%s>, reason=<%s>, count=<%d>, cause=<%s> | %s",
            stage,
            kind,
            count,
            (cause or "")[:CAUSE_CHARACTERS],
            _CONSEQUENCE.get(stage, "recall failed open | going on"),
        )


def _log(level: int, message: str, *args: object, with_traceback: bool = False) -> None:
    try:
        logger.log(level, message, *args, exc_info=with_traceback)
    except Exception:  # a handler's, or a filter's: where could it be said?
        return
