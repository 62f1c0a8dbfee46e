"""The requests that reached the emulation, and the names of its operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MEMORY_OPERATIONS = (
    "BatchCreateMemoryRecords BatchDeleteMemoryRecords BatchUpdateMemoryRecords CreateEvent DeleteEvent "
    "DeleteMemoryRecord GetEvent GetMemoryRecord ListActors ListEvents ListMemoryRecords ListSessions "
    "RetrieveMemoryRecords"
).split()
"""The operations that `local_agentcore` answers, by their wire names."""


def wire_name(operation: str) -> str:
    """Return the wire name of an operation.

    Args:
        operation: `"RetrieveMemoryRecords"` or `"retrieve_memory_records"`.

    Raises:
        ValueError: It is not one of `MEMORY_OPERATIONS`.
    """
    camel = "".join(part[:1].upper() + part[1:] for part in operation.split("_"))
    if camel not in MEMORY_OPERATIONS:
        raise ValueError(f"{operation!r} is not emulated; choose one of {', '.join(MEMORY_OPERATIONS)}")
    return camel


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


class CallLog(list[Call]):
    """The calls so far, oldest first. It grows while requests are running."""

    def of(self, operation: str) -> tuple[Call, ...]:
        """Return the calls of one operation, oldest first.

        Args:
            operation: `"RetrieveMemoryRecords"` or `"retrieve_memory_records"`.

        Raises:
            ValueError: The operation is not emulated.
        """
        wanted = wire_name(operation)
        return tuple(call for call in self if call.operation == wanted)

    def counts(self) -> dict[str, int]:
        """Return how many calls there were, by wire name of the operation."""
        return dict(Counter(call.operation for call in self))

    def __repr__(self) -> str:
        return f"CallLog({self.counts()})"
