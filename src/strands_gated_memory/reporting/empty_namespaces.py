"""Namespaces whose searches have found nothing at all so far: a template with a typo is no error to the service."""

from __future__ import annotations

from collections.abc import Iterable

from ..core.types import Lookup
from ..runtime import threads

ENOUGH = 20
"""Lookups without any record from which on a namespace is worth a look."""
_MOST_NAMESPACES = 2000
_HAS_RECORDS = -1


class EmptyNamespaces:
    """Lookups per memory and namespace as configured, until one has found a record. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threads.Lock()
        self._lookups: dict[str, int] = {}

    def add(self, memory_id: str, lookups: Iterable[Lookup]) -> list[str]:
        """Count the lookups that succeeded.

        Returns:
            The namespaces that have just become worth a look, as configured.
        """
        suspect: list[str] = []
        with self._lock:
            for lookup in lookups:
                name = f"{memory_id}:{lookup.namespace}"
                count = self._lookups.get(name, 0)
                full = len(self._lookups) >= _MOST_NAMESPACES and name not in self._lookups
                if lookup.error is not None or lookup.cached or count == _HAS_RECORDS or full:
                    continue
                self._lookups[name] = _HAS_RECORDS if lookup.records else count + 1
                if self._lookups[name] == ENOUGH:
                    suspect.append(lookup.namespace)
        return suspect

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._lookups.clear()

    def suspect(self) -> dict[str, int]:
        """Return the lookups of each namespace that is worth a look, by "<memory id>:<namespace>"."""
        with self._lock:
            return {name: count for name, count in sorted(self._lookups.items()) if count >= ENOUGH}
