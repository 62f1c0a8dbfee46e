"""Namespaces whose searches have found nothing at all so far: a template with a typo is no error to the service."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..core.types import Lookup
from ..runtime import forks

ENOUGH = 20
"""Lookups without any record from which on a namespace is worth a look."""
_MOST_NAMESPACES = 1000


class EmptyNamespaces:
    """Lookups per memory and namespace as configured, until one has found a record. Thread-safe."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._lookups: dict[tuple[str, str], int] = {}
        self._yielded: set[tuple[str, str]] = set()

    def add(self, memory_id: str, lookups: Iterable[Lookup]) -> list[str]:
        """Count the lookups that succeeded.

        Returns:
            The namespaces that have just become worth a look, as configured.
        """
        suspect: list[str] = []
        with self._lock:
            for lookup in lookups:
                name = (memory_id, lookup.namespace)
                if lookup.error is not None or lookup.cached or name in self._yielded:
                    continue
                if lookup.records:
                    self._lookups.pop(name, None)
                    if len(self._yielded) < _MOST_NAMESPACES:
                        self._yielded.add(name)
                elif name in self._lookups or len(self._lookups) < _MOST_NAMESPACES:
                    self._lookups[name] = self._lookups.get(name, 0) + 1
                    if self._lookups[name] == ENOUGH:
                        suspect.append(lookup.namespace)
        return suspect

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._lookups.clear()
            self._yielded.clear()

    def suspect(self) -> dict[str, int]:
        """Return the lookups of each namespace that is worth a look, by "<memory id>:<namespace>"."""
        with self._lock:
            return {":".join(name): count for name, count in sorted(self._lookups.items()) if count >= ENOUGH}


def without_ids(lookups: Iterable[Lookup], ids: dict[str, str]) -> list[Lookup]:
    """Return lookups whose namespaces show placeholders instead of ids: a path may be configured for one user.

    Args:
        lookups: The lookups of a turn.
        ids: Placeholder, such as "{actorId}", by id.
    """
    return [replace(lookup, namespace=_template(lookup.namespace, ids)) for lookup in lookups]


def _template(namespace: str, ids: dict[str, str]) -> str:
    path = f"/{namespace}/"
    for value, placeholder in ids.items():
        if value:
            path = path.replace(f"/{value}/", f"/{placeholder}/")
    return path[1:-1]
