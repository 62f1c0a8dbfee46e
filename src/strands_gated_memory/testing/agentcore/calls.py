"""A thread-safe list of the requests that reached the emulation."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

from .service_model import wire_name


@dataclass(frozen=True)
class Call:
    """One request as it arrived, retries of boto3 included, before any limit or fault was applied."""

    operation: str
    """Wire name, such as `"RetrieveMemoryRecords"`."""
    parameters: Mapping[str, Any]
    """Every member of the request, from path, query and body, by its wire name."""

    @property
    def memory_id(self) -> str | None:
        """The memory, as given: an id or an ARN."""
        return self.parameters.get("memoryId")

    @property
    def namespace(self) -> str | None:
        """The exact namespace that was asked for; None when it was a path, or neither."""
        return self.parameters.get("namespace")

    @property
    def namespace_path(self) -> str | None:
        """The namespace path that was asked for; None when it was an exact namespace, or neither."""
        return self.parameters.get("namespacePath")

    @property
    def query(self) -> str | None:
        """The search query; None unless the operation is RetrieveMemoryRecords."""
        return self._criteria.get("searchQuery")

    @property
    def top_k(self) -> int | None:
        """The number of records asked for; None when left to the service."""
        return self._criteria.get("topK")

    @property
    def _criteria(self) -> Mapping[str, Any]:
        criteria = self.parameters.get("searchCriteria")
        return criteria if isinstance(criteria, Mapping) else {}


class CallLog(Sequence[Call]):
    """The calls so far, oldest first. Every method may be used while requests are running."""

    def __init__(self) -> None:
        self._calls: list[Call] = []
        self._lock = threading.Lock()

    def add(self, call: Call) -> None:
        """Append a call."""
        with self._lock:
            self._calls.append(call)

    def clear(self) -> None:
        """Forget every call."""
        with self._lock:
            self._calls.clear()

    def of(self, operation: str) -> tuple[Call, ...]:
        """Return the calls of one operation, oldest first.

        Args:
            operation: `"RetrieveMemoryRecords"` or `"retrieve_memory_records"`.

        Raises:
            ValueError: The operation is not emulated.
        """
        wanted = wire_name(operation)
        return tuple(call for call in self._snapshot() if call.operation == wanted)

    def counts(self) -> dict[str, int]:
        """Return how many calls there were, by wire name of the operation."""
        return dict(Counter(call.operation for call in self._snapshot()))

    def _snapshot(self) -> list[Call]:
        with self._lock:
            return list(self._calls)

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        return self._snapshot()[index]

    def __iter__(self) -> Iterator[Call]:
        return iter(self._snapshot())

    def __len__(self) -> int:
        return len(self._snapshot())

    def __repr__(self) -> str:
        return f"CallLog({self.counts()})"
