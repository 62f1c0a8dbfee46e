"""What one emulated memory holds: events by session, and long-term records."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .errors import mismatched_token


@dataclass(frozen=True)
class StoredEvent:
    """One event of a session."""

    event_id: str
    """`<16 digits, milliseconds of the event's timestamp>#<8 hex digits, the order of writing>`."""
    timestamp: float
    """Seconds since 1970, as the writer gave it."""
    sequence: int
    """The order of writing, over the whole memory."""
    payload: list[Any]
    metadata: dict[str, Any]
    branch: dict[str, Any] | None
    """None on the main branch."""

    @property
    def newest_first(self) -> tuple[float, int]:
        """Ascending order of this is newest first; the later written first among equal timestamps."""
        return (-self.timestamp, -self.sequence)


@dataclass
class StoredSession:
    """One session of an actor. Stays when its events are deleted."""

    created_at: float
    sequence: int
    events: dict[str, StoredEvent] = field(default_factory=dict)


@dataclass(frozen=True)
class StoredRecord:
    """One long-term record."""

    record_id: str
    text: str
    namespaces: tuple[str, ...]
    """At most one."""
    strategy_id: str
    created_at: float
    """When it was written, by the emulation's clock."""
    timestamp: float
    """The source's time, as the writer gave it."""
    metadata: dict[str, Any] | None = None
    expires_at: float | None = None
    """Reported, never acted on."""


@dataclass(frozen=True)
class PlantedSummary:
    """A summary that responses repeat as it is."""

    namespace: str
    summary: Any


class MemoryState:
    """Everything that one memory id holds. Callers hold the world's lock."""

    def __init__(self) -> None:
        self.sessions: dict[tuple[str, str], StoredSession] = {}
        """By actor id and session id."""
        self.records: dict[str, StoredRecord] = {}
        """By record id, in the order of writing."""
        self._sequence = itertools.count(1)
        self._answered: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}

    def next_sequence(self) -> int:
        """Return the next number of this memory, from 1."""
        return next(self._sequence)

    def once(
        self, operation: str, parameters: dict[str, Any], answer: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return `answer(parameters)`, or what it returned for the same `clientToken` before.

        Raises:
            ServiceError: ValidationException, reason IdempotentParameterMismatchException, when the token came
                before with other parameters. A memory store sends an event again with the time of sending, so an
                event's time is none of them.
        """
        token = parameters.get("clientToken")
        if not token:
            return answer(parameters)
        asked = json.dumps({**parameters, "eventTimestamp": None}, sort_keys=True)
        if (operation, token) in self._answered:
            asked_before, answered = self._answered[operation, token]
            if asked_before != asked:
                raise mismatched_token()
            return answered
        answered = answer(parameters)
        self._answered[operation, token] = (asked, answered)
        return answered
