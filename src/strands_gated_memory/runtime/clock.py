"""A context variable with another value inside a `with` block."""

from __future__ import annotations

import time
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Assigned(Generic[_T]):
    """Gives a context variable a value for the length of a `with` block; used once."""

    def __init__(self, variable: ContextVar[_T], value: _T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        self._token: Token[_T] = self._variable.set(self._value)

    def __exit__(self, *_: object) -> None:
        self._variable.reset(self._token)


_UNTIL: ContextVar[float | None] = ContextVar("strands_gated_memory_until", default=None)


@dataclass(frozen=True)
class Clock:
    """What is left of one recall's deadline."""

    deadline_s: float
    """Seconds that the whole recall may take."""
    started: float = field(default_factory=time.monotonic)
    started_at: float = field(default_factory=time.time)
    """When it began, in seconds since 1970-01-01 UTC."""

    def spent(self) -> float:
        """Return the seconds since the recall began."""
        return time.monotonic() - self.started

    def left(self) -> float:
        """Return the seconds until the deadline, 0 when it has passed."""
        return max(0.0, self.deadline_s - self.spent())

    def is_over(self) -> bool:
        """Tell whether the deadline has passed."""
        return self.left() <= 0.0


def limited_to(seconds: float) -> Assigned[float | None]:
    """Let every decision made inside a `with` end within so many seconds, or sooner if a limit holds already."""
    return Assigned(_UNTIL, until(seconds))


def until(seconds: float) -> float:
    """Return the moment, on the monotonic clock, by which a decision begun now must end.

    Args:
        seconds: The decider's own limit; a shorter one set by whoever waits wins.
    """
    own = time.monotonic() + seconds
    outer = _UNTIL.get()
    return own if outer is None else min(own, outer)


def is_late() -> bool:
    """Tell whether the limit of whoever waits has passed; nobody waits: it has not."""
    outer = _UNTIL.get()
    return outer is not None and time.monotonic() >= outer


def left(moment: float) -> float:
    """Return the seconds until a moment on the monotonic clock, 0 when it has passed."""
    return max(0.0, moment - time.monotonic())
