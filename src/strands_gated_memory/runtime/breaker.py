"""Circuit breakers: after repeated failures stop asking for a while, then probe, then recover.

Our own, because pybreaker (1.4.1) holds its lock during the call, so that concurrent turns would
queue behind one that hangs, and because here whoever waits reports the outcome, not whoever was called.

    closed --`failures` in a row--> open --`cooldown_s` later--> half_open (one probe) --success--> closed
                                      ^-----------------failure----------------'
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any

from ..core.types import BreakerState
from ..policy import BreakerSettings
from . import forks
from .assigned import Assigned


class CircuitBreaker:
    """The state of one dependency. Thread-safe; no lock is held while a call is under way.

    Args:
        name: Names it in counters.
        clock: Seconds that only grow; for tests.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._clock = clock
        self._state: BreakerState = "closed"
        self._failures = 0
        self._since = 0.0
        self._round = 0

    @property
    def state(self) -> BreakerState:
        """The state now."""
        return self._state

    @property
    def has_opened(self) -> bool:
        """Whether it has ever opened."""
        return self._round > 0

    def admit(self, settings: BreakerSettings) -> int | None:
        """Ask whether a call may be made.

        Returns:
            A ticket for `report`, or None when the call must be skipped.
        """
        if settings.failures is None:
            return _UNWATCHED
        with _lock:
            if self._state != "closed":
                # A probe that is never reported must not keep the breaker open for ever.
                if self._clock() - self._since < settings.cooldown_s:
                    return None
                self._enter("half_open")
            return self._round

    def withdraw(self, ticket: int) -> None:
        """Say that an admitted call was not made, or tells nothing: a probe may be made again at once."""
        with _lock:
            if ticket == self._round and self._state == "half_open":
                self._enter("open")
                self._since = -math.inf

    def report(self, ticket: int, ok: bool, settings: BreakerSettings) -> None:
        """Say how an admitted call ended. A call that began before the last change of state tells nothing."""
        if ticket == _UNWATCHED or settings.failures is None:
            return
        with _lock:
            if ticket != self._round:
                return
            self._failures = 0 if ok else self._failures + 1
            if ok and self._state != "closed":
                self._enter("closed")
            elif not ok and (self._state == "half_open" or self._failures >= settings.failures):
                self._enter("open")
            _remember(self, self._failures > 0 or self._state != "closed")

    def _enter(self, state: BreakerState) -> None:
        self._state = state
        self._since = self._clock()
        self._failures = 0
        self._round += 1


_SETTINGS: ContextVar[BreakerSettings | None] = ContextVar("strands_gated_memory_breaker", default=None)


def governed_by(settings: BreakerSettings) -> Assigned[BreakerSettings | None]:
    """Let deciders that ask others, inside a `with`, use these settings for them."""
    return Assigned(_SETTINGS, settings)


def settings_in_force() -> BreakerSettings:
    """Return the settings of whoever waits, else the defaults."""
    return _SETTINGS.get() or BreakerSettings()


_UNWATCHED = -1
_MOST_TROUBLED = 1000
_lock = forks.Lock()
_breakers: weakref.WeakValueDictionary[Hashable, CircuitBreaker] = weakref.WeakValueDictionary()
"""Every breaker. One by name lives as long as somebody uses it or it is troubled: else it is like a new one."""
_anchored: dict[Hashable, CircuitBreaker] = {}
"""Those of objects, kept as long as these live."""
_troubled: dict[CircuitBreaker, None] = {}
"""Those that have failed since they last succeeded, latest failure last."""


def _remember(breaker: CircuitBreaker, troubled: bool) -> None:
    _troubled.pop(breaker, None)
    if troubled:
        _troubled[breaker] = None
        for oldest in list(_troubled)[: max(0, len(_troubled) - _MOST_TROUBLED)]:
            _troubled.pop(oldest, None)


def breaker_of(subject: object, name: str) -> CircuitBreaker:
    """Return the process's breaker of a dependency.

    Args:
        subject: Who it is: a string or number, one for the process; a function or object, one as long as it
            lives; or a tuple or list of these.
        name: Names a new breaker in counters; a number is added when another one has the name.
    """
    try:
        key, anchors = identity_of(subject)
    except TypeError:  # it cannot be watched: a breaker of the caller's own
        return CircuitBreaker(name)
    with _lock:
        known = _breakers.get(key)
        if known is not None:
            return known
        names = {one.name for ref in _breakers.valuerefs() if (one := ref()) is not None}
        number = 1
        while (numbered := name if number == 1 else f"{name} ({number})") in names:
            number += 1
        breaker = _breakers[key] = CircuitBreaker(numbered)
        if anchors:
            _anchored[key] = breaker
    for anchor in anchors:
        # Not under the lock: a collection may run anywhere, in a thread that holds it.
        weakref.finalize(anchor, _forget, key).atexit = False
    return breaker


def reset_breakers() -> None:
    """Forget every breaker; for tests. Pipelines made before keep theirs."""
    with _lock:
        for breaker in list(_breakers.values()):
            breaker._enter("closed")
        _breakers.clear()
        _anchored.clear()
        _troubled.clear()


def _forget(key: Hashable) -> None:
    _breakers.pop(key, None)
    if (breaker := _anchored.pop(key, None)) is not None:
        _troubled.pop(breaker, None)


def identity_of(subject: object) -> tuple[Hashable, list[Any]]:
    """Return a key, and the objects that must live for it to mean anything.

    Raises:
        TypeError: An object whose end cannot be noticed.
    """
    if subject is None or isinstance(subject, str | int):
        return subject, []
    if isinstance(subject, tuple | list):
        parts = [identity_of(one) for one in subject]
        return tuple(key for key, _ in parts), [anchor for _, anchors in parts for anchor in anchors]
    owner = getattr(subject, "__self__", None)
    if callable(subject) and owner is not None and hasattr(subject, "__name__"):
        # A bound method is a new object each time it is read.
        key, anchors = identity_of(owner)
        return (key, str(subject.__name__)), anchors
    weakref.ref(subject)
    return ("object", id(subject)), [subject]
