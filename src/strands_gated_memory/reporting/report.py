"""What every reporter is told of one turn."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from ..core.types import Lookup, Recall, Turn
from .empty_namespaces import without_ids


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
    def lookups(self) -> list[Lookup]:
        """The lookups, with placeholders instead of ids in their namespaces."""
        ids = {self.searched.actor_id: "{actorId}", self.searched.session_id: "{sessionId}"}
        return without_ids(self.recall.trace.lookups, ids)


class Reporter(Protocol):
    """Who is told of each turn."""

    name: str
    """Names it in counters and logs."""

    def report(self, report: Report) -> None:
        """Take note of one turn."""
        ...
