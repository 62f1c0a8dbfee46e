"""Objects that hold a lock or a connection, and what they do in a process that has just been forked."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Protocol


class Forked(Protocol):
    """What is told of a fork."""

    def after_fork(self) -> None:
        """Let go, in the child, of what belongs to the parent."""
        ...


_noticed: weakref.WeakSet[Forked] = weakref.WeakSet()


def notice(one: Forked) -> None:
    """Call an object's `after_fork` in every process forked from this one, as long as the object lives."""
    _noticed.add(one)


class Lock:
    """A lock that is free in a forked process, whichever thread of its parent held it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        notice(self)

    def after_fork(self) -> None:
        """Take a new lock: the thread that held the old one is not here to let go."""
        self._lock = threading.Lock()

    def acquire(self, blocking: bool = True) -> bool:
        """Take the lock; return whether that worked."""
        return self._lock.acquire(blocking)

    def release(self) -> None:
        """Let go."""
        self._lock.release()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _after_fork() -> None:
    for one in list(_noticed):
        one.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
