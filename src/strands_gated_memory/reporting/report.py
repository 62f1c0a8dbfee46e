"""What every reporter is told of one turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from ..core.types import Lookup, Recall, Turn
from .counts import Counts, counts_of


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
    def counts(self) -> Counts:
        """What the turn adds to the counters."""
        return counts_of(self.recall)

    @cached_property
    def lookups(self) -> list[Lookup]:
        """The lookups, with placeholders instead of ids in their namespaces: a path may be configured for one user."""
        return [replace(lookup, namespace=self._template(lookup.namespace)) for lookup in self.recall.trace.lookups]

    def _template(self, namespace: str) -> str:
        path = f"/{namespace}/"
        ids = {self.searched.actor_id: "{actorId}", self.searched.session_id: "{sessionId}"}
        for value, placeholder in ids.items():
            if value:
                path = path.replace(f"/{value}/", f"/{placeholder}/")
        return path[1:-1]


class Reporter(Protocol):
    """Who is told of each turn."""

    name: str
    """Names it in counters and logs."""

    def report(self, report: Report) -> None:
        """Take note of one turn."""
        ...
