"""Log lines about recalls: the first failure of a kind is loud, the next ones sparse, all are counted.

Memory text and messages of users never appear here above DEBUG. Nothing here raises: a turn must not end
because a handler or a filter of the application does.
"""

from __future__ import annotations

import functools
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import ParamSpec

from ..core.types import SKIPPED, Lookup, Recall
from ..runtime import forks
from .empty_namespaces import ENOUGH, EmptyNamespaces
from .stats import RecallStats, StatsLog

_P = ParamSpec("_P")

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
_CAUSE_CHARACTERS = 300
_MOST_KINDS = 1000
"""Kinds of failure that are counted apart: class names and names of models come from outside."""

_lock = forks.Lock()
_failures: Counter[tuple[str, str]] = Counter()
_said: set[str] = set()
_EMPTY = EmptyNamespaces()


def reset_failure_log() -> None:
    """Forget which failures this process has logged; for tests."""
    with _lock:
        _failures.clear()
        _said.clear()
    _EMPTY.clear()


def _quietly(log: Callable[_P, None]) -> Callable[_P, None]:
    """Let a function raise nothing."""

    @functools.wraps(log)
    def quiet(*args: _P.args, **kwargs: _P.kwargs) -> None:
        try:
            log(*args, **kwargs)
        except Exception:  # where could it be said?
            return

    return quiet


@_quietly
def log_mishap(message: str, *args: object) -> None:
    """Warn about something beside the recall that failed."""
    logger.warning(message, *args)


@_quietly
def log_reporter_failure(name: str, error: Exception) -> None:
    """Warn about a reporter that could not be told of a turn; only an operating system's own words are quoted."""
    reason = error if isinstance(error, OSError) else type(error).__name__
    logger.warning("reporter=<%s>, reason=<%s> | a turn was not told to it | the turn goes on", name, reason)


@_quietly
def log_debug(message: str) -> None:
    """Say at DEBUG, with its traceback, what is being handled."""
    logger.debug(message, exc_info=True)


@_quietly
def log_failures(recall: Recall) -> None:
    """Warn about a turn's failures: the 1st, 10th, 100th … of each stage and kind in this process."""
    trace = recall.trace
    for failure in trace.failures:
        _log(*failure)
    for call in trace.decider_calls:
        for who in call.passed_over:
            _log("fallback", who, call.explanations.get(who, "the next decider of the list was asked"))
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
        for failure in lookup.failures:
            _log(*failure)
        for kind, count in lookup.filter_errors.items():
            _log("filter", kind, f"record_filter failed on {count} records")


@_quietly
def log_empty_namespaces(memory_id: str, lookups: Iterable[Lookup]) -> None:
    """Warn, once in this process, about each namespace whose first lookups all found nothing.

    Args:
        memory_id: The memory that was searched.
        lookups: Those of a turn, with namespaces that hold no ids of users.
    """
    for namespace in _EMPTY.add(memory_id, lookups):
        logger.warning(
            "namespace=<%s>, memory=<%s>, lookups=<%d> | no lookup of this namespace has found a record yet | that is "
            "normal while its users are new; else check the template (a typo, a missing part) against the namespaces "
            "of the memory's strategies, that a strategy writes there, and the IAM conditions on namespacePath",
            namespace,
            memory_id,
            ENOUGH,
        )


@_quietly
def log_turn_failure(kind: str, error: Exception | None) -> None:
    """Warn about a turn that had no memory at all: as `log_failures`, without the exception's message.

    Args:
        kind: As counted.
        error: What was raised; its traceback is logged by `log_debug`. None when nothing was.
    """
    if error is None:
        _log("turn", kind, "no exception was raised")
    else:
        _log("turn", kind, f"{type(error).__name__}, its traceback is at DEBUG of {logger.name}")


@_quietly
def warn_once(message: str, *args: object) -> None:
    """Warn, once in this process, about what does not change from turn to turn."""
    said = message % args if args else message
    with _lock:
        if said in _said or len(_said) >= _MOST_KINDS:
            return
        _said.add(said)
    logger.warning(message, *args)


def _log(stage: str, kind: str, cause: str | None) -> None:
    with _lock:
        known = (stage, kind) in _failures or len(_failures) < _MOST_KINDS
        key = (stage, kind if known else "other")
        _failures[key] += 1
        count = _failures[key]
    if str(count).rstrip("0") == "1":
        # The failures that opened a circuit breaker have been warned about: its first skip is no news.
        logger.log(
            logging.DEBUG if kind == SKIPPED and count == 1 else logging.WARNING,
            "stage=<%s>, reason=<%s>, count=<%d>, cause=<%s> | %s",
            stage,
            kind,
            count,
            (cause or "")[:_CAUSE_CHARACTERS],
            _CONSEQUENCE.get(stage, "recall failed open | going on"),
        )


@_quietly
def log_error_rate(rate: float) -> None:
    """Say at ERROR that most of the recent turns failed open.

    Args:
        rate: The share that did, 0..1.
    """
    logger.error(
        "error_rate=<%.2f> | most recent recalls failed open | memory is not gated, or not there: see the counters",
        rate,
    )


@_quietly
def log_stats(stats: RecallStats, style: StatsLog) -> None:
    """Log the counters at INFO in the given style."""
    if style == "off" or not logger.isEnabledFor(logging.INFO):
        return
    if style == "json":
        logger.info("%s", json.dumps(stats.as_dict()))
    elif style == "line":
        logger.info("%s", stats.line())
    else:
        logger.info("recall counters\n%s", stats)
