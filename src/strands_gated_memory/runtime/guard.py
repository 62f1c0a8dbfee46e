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
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from ..core.types import BreakerState
from ..errors import StageError
from ..policy import BreakerSettings
from .clock import Assigned
from .threads import Lock, PoolFull, WorkerPool


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
_lock = Lock()
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


_T = TypeVar("_T")
_Result_co = TypeVar("_Result_co", covariant=True)


FAIR = 0.4
"""Share of the usual time from which on whoever is late is to blame. The gate has half of the deadline."""


class Kinds(NamedTuple):
    """What to call the failures of a guard itself."""

    skipped: type[StageError]
    """A circuit breaker is open."""
    overloaded: type[StageError]
    """No thread can take the call."""
    timeout: type[StageError]
    """There was no result in time."""


class Waited(Protocol[_Result_co]):
    """What can be waited for: a call in a thread, or something that an event loop runs."""

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, and return what was raised, None if nothing was.

        Raises:
            TimeoutError: It is not over by then.
        """
        ...

    def result(self) -> _Result_co:
        """Return the result, once it is over."""
        ...

    def cancel(self) -> bool:
        """Say that nobody waits for it any more; return whether it was kept from running."""
        ...


class Guard:
    """Guards one dependency.

    Args:
        pool: Whose threads run the calls.
        kinds: What to call its failures.
        breakers: Its circuit breakers: a call is made if all of them admit it, and each hears of its outcome.
        lane: What the calls depend on, for the share of the threads; default the first breaker.
    """

    def __init__(
        self, pool: WorkerPool, kinds: Kinds, breakers: Sequence[CircuitBreaker] = (), lane: Hashable = None
    ) -> None:
        self._pool = pool
        self._kinds = kinds
        self.breakers = tuple(breakers)
        self._lane = breakers[0] if lane is None and breakers else lane

    def begin(
        self, work: Callable[[], _T], settings: BreakerSettings | None = None, *, in_this_thread: bool = False
    ) -> Attempt[_T]:
        """Begin a call; whatever keeps it from being made is found out at its end.

        Args:
            work: The call.
            settings: Of the circuit breakers; None: there are none.
            in_this_thread: Whether it is back in time by itself, so that it needs no thread of its own.
        """
        tickets = self._tickets(settings)
        if tickets is None:
            return self._skipped(settings)
        if in_this_thread:
            return Attempt(self._kinds, settings, tickets, _Here(work))
        return self._attempt(lambda: self._pool.submit(work, self._lane), settings, tickets)

    def begin_elsewhere(self, begin: Callable[[], Waited[_T]], settings: BreakerSettings | None = None) -> Attempt[_T]:
        """Begin a call that needs no thread, as an event loop waits for it.

        Args:
            begin: Begins the call, at once.
            settings: As for `begin`.
        """
        tickets = self._tickets(settings)
        return self._skipped(settings) if tickets is None else self._attempt(begin, settings, tickets)

    def _attempt(
        self,
        begin: Callable[[], Waited[_T]],
        settings: BreakerSettings | None,
        tickets: tuple[tuple[CircuitBreaker, int], ...],
    ) -> Attempt[_T]:
        try:
            return Attempt(self._kinds, settings, tickets, begin())
        except StageError as error:
            return Attempt(self._kinds, settings, tickets, error)
        except (PoolFull, RuntimeError) as error:  # RuntimeError: no thread can be started
            return Attempt(self._kinds, settings, tickets, self._kinds.overloaded(str(error)))

    def _skipped(self, settings: BreakerSettings | None) -> Attempt[_T]:
        again = f"tried again after {settings.cooldown_s:g} s" if settings else ""
        error = self._kinds.skipped(f"not asked: its circuit breaker is open ({again})")
        return Attempt(self._kinds, settings, (), error)

    def _tickets(self, settings: BreakerSettings | None) -> tuple[tuple[CircuitBreaker, int], ...] | None:
        """Return a ticket of every circuit breaker, None if one refuses."""
        admitted: list[tuple[CircuitBreaker, int]] = []
        for breaker in self.breakers if settings is not None else ():
            ticket = breaker.admit(settings)  # type: ignore[arg-type]
            if ticket is None:
                for before, given in admitted:
                    before.withdraw(given)
                return None
            admitted.append((breaker, ticket))
        return tuple(admitted)


class _Here(Generic[_T]):
    """A call made in the thread that asks for it."""

    def __init__(self, work: Callable[[], _T]) -> None:
        self._result: _T | None = None
        self._error: BaseException | None = None
        try:
            self._result = work()
        except (Exception, SystemExit) as error:  # a decider's: it ends the call alone
            self._error = error

    def exception(self, timeout: float | None = None) -> BaseException | None:  # noqa: ARG002 - as `Call`
        return self._error

    def result(self) -> _T:
        return self._result  # type: ignore[return-value]

    def cancel(self) -> bool:
        return False


class Attempt(Generic[_T]):
    """A call under way."""

    def __init__(
        self,
        kinds: Kinds,
        settings: BreakerSettings | None,
        tickets: tuple[tuple[CircuitBreaker, int], ...],
        call: Waited[_T] | StageError,
    ) -> None:
        self._kinds = kinds
        self._settings = settings
        self._tickets = tickets
        self._call = call

    def end(
        self,
        seconds: float,
        *,
        is_fair: bool = True,
        works: Callable[[_T], bool] = lambda _: True,
    ) -> tuple[_T | None, BaseException | None]:
        """Wait for the call, tell the circuit breakers, and return its result and what failed, one of them None.

        Args:
            seconds: How long to wait; what comes later is discarded.
            is_fair: Whether a call that is late has had enough time to be blamed for it.
            works: Whether a result shows that the dependency works.
        """
        result: _T | None = None
        error: BaseException | None
        if isinstance(self._call, StageError):
            error = self._call
        else:
            try:
                error = self._call.exception(timeout=seconds)
            except (FutureTimeout, TimeoutError):
                self._call.cancel()
                error = self._kinds.timeout(f"no answer within {seconds:.3f} s")
            if error is None:
                result = self._call.result()
        is_blamed = is_fair or not isinstance(error, self._kinds.timeout)
        for breaker, ticket in self._tickets:
            if is_blamed and self._settings is not None:
                breaker.report(ticket, error is None and works(result), self._settings)  # type: ignore[arg-type]
            else:  # it had what others had left of the time: that says nothing about it
                breaker.withdraw(ticket)
        return result, error
