"""One dependency, guarded: its circuit breakers, its share of the threads, and a deadline around each call.

Whoever calls a decision model or a memory does it through a `Guard`: admitting, starting, waiting, saying what
failed and reporting that to the circuit breakers happens here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Generic, NamedTuple, Protocol, TypeVar

from ..errors import StageError
from ..policy import BreakerSettings
from .breaker import CircuitBreaker
from .workers import PoolFull, WorkerPool

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
