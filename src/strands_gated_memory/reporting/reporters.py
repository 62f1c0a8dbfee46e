"""What is told of each turn, and to whom.

To add a reporter, write a class with `report(report)` in a module of its own and put it into the list that
`gated_manager.GatedManager` makes. What it raises is counted in the stats and logged; the others and the turn go on.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence

from ..core.types import Recall
from .log import log_error_rate, log_mishap, log_stats
from .report import Report, Reporter
from .stats import RecallStats, StatsLog


class Reporters:
    """Tells every reporter of every turn, in order.

    Args:
        stats: Where the failures of reporters are counted.
        reporters: Who is told.
    """

    def __init__(self, stats: RecallStats, reporters: Sequence[Reporter]) -> None:
        self._stats = stats
        self._reporters = tuple(reporters)

    def report(self, report: Report) -> None:
        """Tell all of them; nothing of it raises."""
        for reporter in self._reporters:
            try:
                reporter.report(report)
            except Exception as error:  # noqa: PERF203 - an exporter, a disk or a user's function may raise anything
                if self._stats.count_reporter_error(reporter.name):
                    log_mishap(
                        "reporter=<%s>, reason=<%s> | a turn was not told to it | the turn goes on",
                        reporter.name,
                        _reason(error),
                    )


def _reason(error: Exception) -> str:
    """Return the operating system's words for an error, or its class: its own may hold text of users."""
    name = type(error).__name__
    if isinstance(error, OSError) and isinstance(error.errno, int) and error.errno in errno.errorcode:
        return f"{name}: {os.strerror(error.errno)}"
    return name


class StatsReporter:
    """Counts, and logs the counters.

    Args:
        stats: The counters.
        style: As `RecallPolicy.stats_log`.
        every: As `RecallPolicy.stats_every`.
    """

    name = "stats"

    def __init__(self, stats: RecallStats, style: StatsLog, every: int) -> None:
        self._stats, self._style, self._every = stats, style, every
        self._unlogged = False

    def report(self, report: Report) -> None:
        """Count one turn."""
        self._unlogged = True
        counted = self._stats.add_counts(report.counts, report.recall.trace.breakers)
        self._stats.add_lookups(report.searched.memory_id, report.lookups)
        if counted.alarming_rate is not None:
            log_error_rate(counted.alarming_rate)
        if counted.first_degradation or counted.turns % self._every == 0:
            self._stats.note_logged()
            log_stats(self._stats, self._style)

    def close(self) -> None:
        """Log the counters if anything is new; those shared with other managers now and then only."""
        if self._unlogged:
            self._unlogged = False
            if self._stats.is_worth_logging(self._every):
                log_stats(self._stats, self._style)


class Callback:
    """A function of the user's: `on_recall`.

    Args:
        function: Called with every `Recall`.
    """

    name = "on_recall"

    def __init__(self, function: Callable[[Recall], None]) -> None:
        self._function = function

    def report(self, report: Report) -> None:
        """Hand the recall over."""
        self._function(report.recall)
