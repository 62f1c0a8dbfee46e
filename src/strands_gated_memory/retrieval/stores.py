"""Searching the memory stores of Strands, on the event loop that they live on: an entry of any store as a record."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from itertools import islice
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from strands.memory import MemoryEntry, MemoryStore, SearchOptions

from ..core.types import Dropped, Record, SearchResult
from ..errors import RetrievalTimeout, RetrievalUnavailable
from .agentcore import translated

_MOST_ENTRIES = 1000
"""Entries of one search that are read."""

ToRecord = Callable[[MemoryEntry], Record]
"""Reads an entry, whose `store_name` is set, as a record; what it raises leaves the entry out."""

_SCORES = ("_score", "score", "_relevanceScore", "_relevance_score", "relevance_score", "similarity")
_IDS = ("_id", "id", "uuid", "memory_id", "path")
_TIMES = ("_createdAt", "_created_at", "created_at", "createdAt", "timestamp")


def to_record(entry: MemoryEntry) -> Record:
    """Read an entry of a memory store as a record.

    Score, id and time of writing are looked for in the entry's metadata, under the names that stores use. What is not
    there, or cannot be read, is None.

    Args:
        entry: What a store returned, with `store_name` set.

    Returns:
        A record whose namespace is the store's name.

    Raises:
        TypeError: The entry has no text, or metadata that is no mapping.
    """
    return _record(entry.content, entry.metadata, entry.store_name or "")


def _record(text: Any, metadata: Any, name: str) -> Record:
    metadata = metadata or {}
    if not isinstance(text, str) or not isinstance(metadata, dict | Mapping):  # dict first: it is told sooner
        raise TypeError("an entry needs a text as content, and a mapping as metadata")
    record_id = _first(metadata, _IDS, (str, int))
    return Record(
        text, name, _score(metadata), None if record_id is None else str(record_id), _time(metadata), metadata
    )


def _first(metadata: Mapping[str, Any], names: Iterable[str], kinds: tuple[type, ...]) -> Any:
    for name in names:
        value = metadata.get(name)
        if value is not None and isinstance(value, kinds) and not isinstance(value, bool):
            return value
    return None


def _score(metadata: Mapping[str, Any]) -> float | None:
    score = _first(metadata, _SCORES, (int, float))
    try:
        return None if score is None else float(score)
    except OverflowError:
        return None


def _time(metadata: Mapping[str, Any]) -> datetime | None:
    """Return when an entry was written: a time, ISO 8601, or seconds since 1970; without a zone it is UTC."""
    value = _first(metadata, _TIMES, (datetime, str, int, float))
    if value is None:
        return None
    try:
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value, timezone.utc)
        written = datetime.fromisoformat(value.replace("Z", "+00:00")) if isinstance(value, str) else value
    except (ValueError, OverflowError, OSError):
        return None
    return written.replace(tzinfo=timezone.utc) if isinstance(written, datetime) and not written.tzinfo else written


class StoreSearch:
    """The searches of one recall: a function from a store's name to what it holds. For worker threads.

    Args:
        stores: The stores by name.
        query: What is searched for.
        max_results: Returns how many entries a store is asked for.
        to_record: Reads an entry.
        loop: The event loop that the stores are searched on: a store's client may be bound to it.
        timeout_s: How long one search may take, in seconds.
    """

    def __init__(
        self,
        stores: Mapping[str, MemoryStore],
        query: str,
        *,
        max_results: Callable[[MemoryStore], int],
        to_record: ToRecord,
        loop: asyncio.AbstractEventLoop,
        timeout_s: float,
    ) -> None:
        self._stores = stores
        self._query = query
        self._max_results = max_results
        self._to_record = to_record
        self._loop = loop
        self._timeout_s = timeout_s
        self._found: dict[int, tuple[Record, MemoryEntry]] = {}
        """By the identity of the record, which is kept here so that no other one gets it."""

    def __call__(self, name: str) -> SearchResult:
        """Search one store, and wait for it.

        Raises:
            RetrievalTimeout: There was no answer in time.
            RetrievalUnavailable: The loop has ended.
            Exception: What the store raised; of boto3's errors the `RetrievalError` that they mean.
        """
        begun = self._begin(name, lambda: None)
        try:
            error = begun.exception(self._timeout_s)
        except concurrent.futures.TimeoutError as late:
            begun.cancel()
            raise RetrievalTimeout(f"no answer within {self._timeout_s:g} s") from late
        if error is not None:
            raise error
        return begun.result()

    @property
    def begin(self) -> Callable[[str, Callable[[], None]], _Begun] | None:
        """Begins to search one store, and calls a function at the end; for the recall's own thread.

        None where a function of the application reads the entries: it may hang.
        """
        return self._begin if self._to_record is to_record else None

    def entry_of(self, record: Record) -> MemoryEntry:
        """Return the entry that a record was read from, with the store's name: the store may keep its own."""
        found = self._found[id(record)][1]
        return MemoryEntry(found.content, record.namespace, found.metadata)

    def _read(self, found: MemoryEntry, name: str) -> Record | None:
        """Return an entry as a record, None if it cannot be read."""
        try:
            if self._to_record is to_record:
                return _record(found.content, found.metadata, name)
            return self._to_record(MemoryEntry(found.content, name, found.metadata))
        except (
            BaseException
        ):  # a function of the application's, or no entry at all: it costs itself, whatever it raises
            return None

    def _begin(self, name: str, at_end: Callable[[], None]) -> _Begun:
        store = self._stores[name]
        search = _searching(store, self._query, self._max_results)
        try:
            task = asyncio.run_coroutine_threadsafe(search, self._loop)
        except RuntimeError as error:
            search.close()
            raise RetrievalUnavailable(f"the event loop of the agent has ended ({error})") from error
        task.add_done_callback(lambda _: at_end())
        return _Begun(task, lambda found: self._result(found, name))

    def _result(self, found: Sequence[MemoryEntry], name: str) -> SearchResult:
        read = [(record, entry) for entry in found if (record := self._read(entry, name)) is not None]
        records = _nearest_highest([record for record, _ in read])
        self._found.update((id(record), (record, entry)) for record, (_, entry) in zip(records, read, strict=True))
        dropped = (Dropped(Record("", name), "malformed"),) * (len(found) - len(read))
        return SearchResult(tuple(records), dropped, ranked=True)


class _Begun:
    """A search that runs on the agent's loop."""

    def __init__(
        self,
        task: concurrent.futures.Future[list[MemoryEntry]],
        read: Callable[[list[MemoryEntry]], SearchResult],
    ) -> None:
        self._task = task
        self._read = read

    def exception(self, timeout: float | None = None) -> BaseException | None:
        try:
            return self._task.exception(timeout)
        except concurrent.futures.CancelledError:
            return RetrievalUnavailable("the event loop of the agent has cancelled the search")

    def cancel(self) -> bool:
        return self._task.cancel()

    def result(self) -> SearchResult:
        return self._read(self._task.result())


def _nearest_highest(records: list[Record]) -> list[Record]:
    """Return records whose scores are higher for nearer ones.

    A store gives the nearest first, so scores that rise are distances, as of some stores over pgvector.
    """
    scores = [record.score for record in records if isinstance(record, Record) and record.score is not None]
    if len(scores) < len(records) or scores != sorted(scores) or scores[:1] == scores[-1:]:
        return records
    return [replace(record, score=-score) for record, score in zip(records, scores, strict=True)]


async def _searching(store: MemoryStore, query: str, max_results: Callable[[MemoryStore], int]) -> list[MemoryEntry]:
    try:
        found = await store.search(query, SearchOptions(max_search_results=max_results(store)))
        # Read here, as a reply that is no list is the store's failure, and what comes lazily is part of its search.
        if isinstance(found, str | Mapping):
            raise TypeError(f"a store must return entries, got a {type(found).__name__}")
        return list(islice(found, _MOST_ENTRIES))
    except (ClientError, BotoCoreError) as error:
        raise translated(error) from error
    except SystemExit as error:  # asyncio would end the application's loop with it
        raise RetrievalUnavailable("the store raised SystemExit") from error
