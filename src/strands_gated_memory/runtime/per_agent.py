"""What is kept for each agent, as long as the agent lives."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from . import forks

_T = TypeVar("_T")


class PerAgent(Generic[_T]):
    """A value per agent, made at first sight. Thread-safe.

    Args:
        make: Returns the value for an agent.
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._lock = forks.Lock()
        self._kept: dict[int, tuple[weakref.ref[Any], _T]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, agent: Any) -> _T:
        """Return the value of an agent."""
        key = id(agent)  # not the agent itself: a subclass with __eq__ cannot be hashed
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and kept[0]() is agent:
                return kept[1]
            value = self._make(agent)
            self._kept[key] = (weakref.ref(agent), value)
            weakref.finalize(agent, self._kept.pop, key, None)
        return value
