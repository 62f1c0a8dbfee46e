"""Searching the memory stores of Strands, on the event loop that they live on: an entry of any store as a record."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError
from strands.memory import MemoryEntry, MemoryStore, SearchOptions

from ..core.types import Dropped, Record, SearchResult
from ..errors import RetrievalTimeout, RetrievalUnavailable
from .agentcore import translated

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
    metadata = entry.metadata or {}
    if not isinstance(entry.content, str) or not isinstance(metadata, Mapping):
        raise TypeError("an entry needs a text as content, and a mapping as metadata")
    record_id = _first(metadata, _IDS, (str, int))
    return Record(
        entry.content,
        entry.store_name or "",
        _score(metadata),
        None if record_id is None else str(record_id),
        _time(metadata),
        metadata,
    )


def _first(metadata: Mapping[str, Any], names: Iterable[str], kinds: tuple[type, ...]) -> Any:
    for name in names:
        value = metadata.get(name)
        if isinstance(value, kinds) and not isinstance(value, bool):
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
        self._entries: dict[int, tuple[Record, MemoryEntry]] = {}

    def __call__(self, name: str) -> SearchResult:
        """Search one store.

        Raises:
            RetrievalTimeout: There was no answer in time.
            RetrievalUnavailable: The loop has ended.
            Exception: What the store raised; of boto3's errors the `RetrievalError` that they mean.
        """
        read = [self._read(found, name) for found in self._found(self._stores[name])]
        entries = [entry for _, entry in read if entry is not None]
        records = _nearest_highest([record for record, entry in read if entry is not None])
        dropped = [Dropped(record, "malformed") for record, entry in read if entry is None]
        self._entries.update((id(record), (record, entry)) for record, entry in zip(records, entries, strict=True))
        return SearchResult(tuple(records), tuple(dropped), ranked=True)

    def entry_of(self, record: Record) -> MemoryEntry:
        """Return the entry that a record was read from."""
        return self._entries[id(record)][1]

    def _read(self, found: MemoryEntry, name: str) -> tuple[Record, MemoryEntry | None]:
        """Return what a store found as a record and an entry of our own; without an entry it cannot be read."""
        try:
            entry = MemoryEntry(found.content, name, found.metadata)
            return self._to_record(entry), entry
        except Exception:  # a function of the application's, or no entry at all: it costs itself
            return Record("", name), None

    def _found(self, store: MemoryStore) -> list[MemoryEntry]:
        options = SearchOptions(max_search_results=self._max_results(store))
        search = _awaiting(store, self._query, options)
        try:
            task = asyncio.run_coroutine_threadsafe(search, self._loop)
        except RuntimeError as error:
            search.close()
            raise RetrievalUnavailable(f"the event loop of the agent has ended ({error})") from error
        try:
            return task.result(self._timeout_s)
        except concurrent.futures.TimeoutError as error:
            if task.done():  # the store's own
                raise
            task.cancel()
            raise RetrievalTimeout(f"no answer within {self._timeout_s:g} s") from error
        except (ClientError, BotoCoreError) as error:
            raise translated(error) from error


def _nearest_highest(records: list[Record]) -> list[Record]:
    """Return records whose scores are higher for nearer ones.

    A store gives the nearest first, so scores that rise are distances, as of some stores over pgvector.
    """
    scores = [record.score for record in records if isinstance(record, Record) and record.score is not None]
    if len(scores) < len(records) or scores != sorted(scores) or scores[:1] == scores[-1:]:
        return records
    return [replace(record, score=-score) for record, score in zip(records, scores, strict=True)]


async def _awaiting(store: MemoryStore, query: str, options: SearchOptions) -> list[MemoryEntry]:
    return await store.search(query, options)
