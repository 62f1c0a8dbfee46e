"""Searching namespaces side by side, within a limit and through circuit breakers, and pinned ones from a cache."""

from __future__ import annotations

import inspect
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from ..core.select import search_score
from ..core.types import Dropped, Lookup, Record, Turn
from ..errors import RetrievalOverloaded, RetrievalSkipped, RetrievalTimeout, StageError, cause_of, error_kind
from ..policy import BreakerSettings
from .clock import Clock
from .guard import FAIR, Attempt, CircuitBreaker, Guard, Kinds, breaker_of
from .threads import SEARCHES, Lock

Search = Callable[[str], Iterable[Record]]
"""Searches one namespace for one turn: namespace key -> records, a `SearchResult` if it drops any itself.

Where its results depend on more than the namespace, an attribute `depends_on` holds it: pinned records that are kept
are used again for an equal one alone. One that needs no thread, as an event loop waits for it, has a method
`begin(namespace)` that returns what the `Guard` waits for.
"""

RecordFilter = Callable[[Record], bool]
"""Tells whether a record may be used; what it raises is a no."""

_KINDS = Kinds(RetrievalSkipped, RetrievalOverloaded, RetrievalTimeout)
_MOST_RECORDS = 1000
"""Records of one search that are read; the service returns 100 at most."""


@dataclass(frozen=True)
class Found:
    """What the searches of one turn found, namespace by namespace, each namespace's best score first."""

    records: tuple[Record, ...]
    dropped: tuple[Dropped, ...]
    lookups: tuple[Lookup, ...]


class Searcher:
    """Searches the namespaces of one target, for one user; what fails costs its own namespace.

    Whoever changes the user or the target makes another one: a search that ends late still has this one.

    Args:
        breaker: When a namespace whose searches keep failing is left alone.
        pinned: Namespaces whose records are kept once fetched.
        pinned_ttl_s: For how long, in seconds.
        target: What is searched, such as a memory's id, for breakers and threads; None: this object alone.
        usual_s: How long a search may usually take, in seconds; one that is late with much less is not to blame.
        record_filter: Called for each record of each turn, in worker threads; None: every record may be used.
    """

    def __init__(
        self,
        breaker: BreakerSettings,
        pinned: tuple[str, ...],
        pinned_ttl_s: float,
        target: str | None,
        *,
        usual_s: float = math.inf,
        record_filter: RecordFilter | None = None,
    ) -> None:
        self._filter = record_filter
        self._usual_s = usual_s
        self._settings = breaker
        self._pinned_names = pinned
        self._pinned = _PinnedCache(pinned_ttl_s)
        self._target = target
        self._guards: dict[str, Guard] = {}

    def breakers(self, namespaces: Iterable[str]) -> list[CircuitBreaker]:
        """Return the circuit breakers of those namespaces that have been searched."""
        return [self._guards[name].breakers[0] for name in namespaces if name in self._guards]

    def search(self, turn: Turn, namespaces: Iterable[str], search: Search, limit_s: float, clock: Clock) -> Found:
        """Search namespaces.

        Args:
            turn: What the user asks.
            namespaces: Which, in the order of the result.
            search: Searches one of them; called in worker threads.
            limit_s: Seconds to wait for all of them; what is not there by then is done without.
            clock: The recall's.
        """
        depends_on = getattr(search, "depends_on", None)
        running = [self._start(name, search, limit_s, clock, depends_on) for name in namespaces]
        until = time.monotonic() + limit_s
        is_fair = limit_s >= FAIR * min(self._usual_s, clock.deadline_s)
        for one in reversed(running):  # the last to begin is likely the last to end: then one wait is all
            if one.attempt is not None:
                result, one.error = one.attempt.end(max(0.0, until - time.monotonic()), is_fair=is_fair)
                if result is not None:
                    one.collector.take(result, one.namespace)
        records: list[Record] = []
        dropped: list[Dropped] = []
        lookups: list[Lookup] = []
        for one in running:
            error = one.error
            found, left_out = one.collector.close()
            if one.pinned and not one.cached and error is None:
                self._pinned.put((one.namespace, depends_on), tuple(one.collector.fetched))
            records += found if one.collector.ranked else sorted(found, key=_search_order)
            dropped += left_out
            lookups.append(
                Lookup(
                    namespace=one.namespace,
                    seconds=one.collector.seconds(),
                    records=len(found) + len(left_out),
                    error=error_kind(error) if error is not None else None,
                    cause=None if error is None else _cause(error, turn),
                    pinned=one.pinned,
                    cached=one.cached and error is None,
                    filter_errors=dict(one.collector.filter_errors),
                    started_s=one.started_s,
                )
            )
        return Found(tuple(records), tuple(dropped), tuple(lookups))

    def _start(self, namespace: str, search: Search, limit_s: float, clock: Clock, depends_on: Hashable) -> _Running:
        one = _Running(namespace, _Collector(self._filter), namespace in self._pinned_names, clock.spent())
        settings: BreakerSettings | None = self._settings
        if one.pinned and (cached := self._pinned.get((namespace, depends_on))) is not None:
            one.cached = True
            if self._filter is None:
                one.collector.add(cached)
                one.collector.ended()
                return one
            # In a thread all the same: what the filter does may take as long as a search.
            search, settings = lambda _: cached, None
        elif limit_s <= 0.0:
            one.error = RetrievalTimeout("no time was left to search")
            one.collector.ended()
            return one
        begin = getattr(search, "begin", None)
        if begin is None or self._filter is not None:  # a filter may hang: it runs where it can be left behind
            work = _collecting(search, namespace, one.collector)
            one.attempt = self._guard(namespace).begin(work, settings)
        else:
            one.attempt = self._guard(namespace).begin_elsewhere(
                lambda: begin(namespace, one.collector.ended), settings
            )
        return one

    def _guard(self, namespace: str) -> Guard:
        guard = self._guards.get(namespace)
        if guard is None:
            whose = self if self._target is None else self._target
            name = ":".join(part for part in ("retrieval", self._target, namespace) if part is not None)
            breaker = breaker_of(("retrieval", whose, namespace), name)
            guard = self._guards[namespace] = Guard(SEARCHES, _KINDS, [breaker], lane=whose)
        return guard


def _cause(error: BaseException, turn: Turn) -> str:
    """Return an error's text for the log. Of a search that is not ours the class alone: its text may quote records."""
    if isinstance(error, StageError):
        return cause_of(error, (turn.text, *turn.previous))
    return f"{type(error).__name__} (its message may quote records and is withheld)"


class _Collector:
    """What a search has found so far. Closing takes a copy, so that records that come late touch nothing."""

    def __init__(self, record_filter: RecordFilter | None) -> None:
        self.fetched: list[Record] = []
        """Every record, before the filter."""
        self.ranked = False
        self.filter_errors: Counter[str] = Counter()
        self._filter = record_filter
        self._records: list[Record] = []
        self._dropped: list[Dropped] = []
        self._closed = False
        self._started = time.monotonic()
        self._ended: float | None = None

    def add(self, items: Iterable[Any], namespace: str = "") -> None:
        for item in items:
            if self._closed or len(self.fetched) >= _MOST_RECORDS:
                return
            if isinstance(item, Record) and isinstance(item.text, str):
                self.fetched.append(item)
                reason = self._refused(item)
                if self._closed:  # while the filter thought about it
                    return
                if reason is None:
                    self._records.append(item)
                else:
                    self._dropped.append(Dropped(item, reason))
            else:
                stand_in = item if isinstance(item, Record) else Record("", namespace)
                self._dropped.append(Dropped(stand_in, "malformed"))

    def _refused(self, record: Record) -> str | None:
        if self._filter is None:
            return None
        try:
            allowed = self._filter(record)
            if inspect.isawaitable(allowed):  # true as an object, and no verdict
                if inspect.iscoroutine(allowed):
                    allowed.close()
                raise TypeError("record_filter is async")
            return None if allowed else "filtered"
        except BaseException as error:  # it may guard access: closed, not open; and it ends no thread of ours
            self.filter_errors[error_kind(error)] += 1
            return "filter_failed"

    def take(self, found: Any, namespace: str) -> None:
        """Take what a search returned: records, or a `SearchResult`."""
        self._dropped += [one for one in getattr(found, "dropped", ()) if isinstance(one, Dropped)]
        self.ranked = bool(getattr(found, "ranked", False))
        self.add(found or (), namespace)

    def ended(self) -> None:
        self._ended = time.monotonic()

    def seconds(self) -> float:
        return (self._ended or time.monotonic()) - self._started

    def close(self) -> tuple[tuple[Record, ...], tuple[Dropped, ...]]:
        self._closed = True
        return tuple(self._records), tuple(self._dropped)


@dataclass
class _Running:
    """One namespace's search under way; without an attempt it is over: cached, or with an error."""

    namespace: str
    collector: _Collector
    pinned: bool
    started_s: float
    attempt: Attempt[Any] | None = None
    cached: bool = False
    error: BaseException | None = None


def _collecting(search: Search, namespace: str, collector: _Collector) -> Callable[[], None]:
    def run() -> None:
        try:
            collector.take(search(namespace), namespace)
        finally:
            collector.ended()

    return run


class _PinnedCache:
    """The records of pinned namespaces, per pipeline, each for a time to live in seconds."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._lock = Lock()
        self._entries: dict[Hashable, tuple[float, tuple[Record, ...]]] = {}

    def get(self, key: Hashable) -> tuple[Record, ...] | None:
        with self._lock:
            entry = self._entries.get(key)
        return entry[1] if entry and time.monotonic() - entry[0] < self._ttl_s else None

    def put(self, key: Hashable, records: tuple[Record, ...]) -> None:
        with self._lock:
            self._entries[key] = (time.monotonic(), records)


def _search_order(record: Record) -> tuple[float, str, str]:
    """Best score first, records without a score last, then by id and text: the same order every time."""
    score = search_score(record)
    return (math.inf if score is None else -score, str(record.record_id or ""), record.text)
