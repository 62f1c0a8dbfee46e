"""Objects that hold a lock or a connection, and what they do in a process that has just been forked."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Generic, Literal, Protocol, TypeVar


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


_T = TypeVar("_T")


class PoolFull(Exception):
    """No call can be taken: too many wait already, or every thread of the lane hangs."""


class _Lane:
    """The calls to one dependency; forgotten when there are none."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.running = 0
        """Calls handed to the threads, one that waits for a free thread included."""
        self.abandoned = 0
        """Of these, the calls that nobody waits for any more."""
        self.waiting: deque[Call[Any]] = deque()


class Call(Generic[_T]):
    """A call under way, for whoever waits for it.

    Not `concurrent.futures.Future`: that cannot tell that nobody waits any more for a call that runs already, and
    its condition variable costs as much as waking the thread.
    """

    def __init__(self, pool: WorkerPool, lane: _Lane, work: Callable[[], _T]) -> None:
        self._pool = pool
        self._lane = lane
        self._work = work
        self._state: Literal["waiting", "cancelled", "running", "over"] = "waiting"
        self._abandoned = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._over = threading.Lock()  # held until it is over
        self._over.acquire()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end, and return what the call raised, None when it returned.

        Args:
            timeout: Seconds to wait at most; None: for ever.

        Raises:
            concurrent.futures.TimeoutError: It is not over by then. Cancel it if nobody will wait again.
            concurrent.futures.CancelledError: It was cancelled before it began.
        """
        if not self._over.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            raise FutureTimeout
        self._over.release()
        if self._state == "cancelled":
            raise CancelledError
        return self._error

    def result(self, timeout: float | None = None) -> _T:
        """Wait for the end, and return what the call returned.

        Args:
            timeout: As for `exception`.

        Raises:
            BaseException: What the call raised, or what `exception` raises.
        """
        if (error := self.exception(timeout)) is not None:
            raise error
        result: _T = self._result
        return result

    def cancel(self) -> bool:
        """Say that nobody waits for it any more; return whether it was kept from running."""
        return self._pool.abandon(self)

    def cancelled(self) -> bool:
        """Tell whether it was kept from running."""
        return self._state == "cancelled"

    def running(self) -> bool:
        """Tell whether a thread runs it."""
        return self._state == "running"

    def done(self) -> bool:
        """Tell whether it is over, or cancelled."""
        return self._state in ("over", "cancelled")

    def run(self) -> None:
        """Run it, in the thread that is to run it; what it raises is kept for whoever waits."""
        self._result, self._error = outcome(self._work)

    def end(self) -> None:
        """Let whoever waits go on."""
        self._over.release()


def outcome(work: Callable[[], _T]) -> tuple[_T | None, BaseException | None]:
    """Return what a call returned, and what it raised, one of them None."""
    # Caught here: the frames that the error keeps alive hold no call, which would keep the error alive.
    try:
        return work(), None
    except BaseException as error:
        return None, error


class WorkerPool:
    """A pool of daemon threads, started on demand.

    Args:
        name: Prefix of the threads' names.
        size: At most so many threads.
        share: At most so many of them for one lane.
        backlog: At most so many calls of one lane that wait for its threads.
    """

    def __init__(self, name: str, size: int, share: int, backlog: int) -> None:
        self._name = name
        self._size = size
        self._share = share
        self._backlog = backlog
        self.after_fork()
        notice(self)

    def after_fork(self) -> None:
        """Begin without threads: a forked process has none of its parent's."""
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[Call[Any]] = queue.SimpleQueue()
        self._lanes: dict[Hashable, _Lane] = {}
        self._threads = 0
        self._idle = 0
        self._queued = 0
        self._abandoned = 0

    def submit(self, call: Callable[[], _T], lane: Hashable = None) -> Call[_T]:
        """Run a call in a thread, with a copy of the caller's context variables.

        Args:
            call: What to run. Cancel it when nobody waits for it any more.
            lane: What the call depends on, such as a server.

        Raises:
            PoolFull: At once, when the lane's backlog is full or each of its threads, or of all threads, runs a
                call that nobody waits for any more.
            RuntimeError: No thread can be started.
        """
        context = contextvars.copy_context()
        with self._lock:
            of = self._lanes.get(lane) or _Lane(lane)
            if of.abandoned >= self._share:
                raise PoolFull(f"{of.abandoned} calls hang in the {self._name} workers")
            if self._abandoned >= self._size:
                raise PoolFull(f"every one of the {self._size} {self._name} workers hangs")
            if len(of.waiting) >= self._backlog:
                of.waiting = deque(waiting for waiting in of.waiting if not waiting.cancelled())
                if len(of.waiting) >= self._backlog:
                    raise PoolFull(f"{len(of.waiting)} calls wait for the {self._name} workers")
            handed: Call[_T] = Call(self, of, lambda: context.run(call))
            if of.running >= self._share:
                of.waiting.append(handed)
            else:
                of.running += 1
                try:
                    self._hand_over(handed)
                except RuntimeError:
                    of.running -= 1
                    raise
            self._lanes[lane] = of
        return handed

    def abandon(self, call: Call[Any]) -> bool:
        """Note that nobody waits for a call; see `Call.cancel`."""
        with self._lock:
            if call._state == "waiting":
                call._state = "cancelled"
                call.end()
            elif call._state == "running" and not call._abandoned:
                call._abandoned = True
                call._lane.abandoned += 1
                self._abandoned += 1
            return call._state == "cancelled"

    def _hand_over(self, call: Call[Any], about_to_idle: int = 0) -> None:
        if self._idle + about_to_idle <= self._queued and self._threads < self._size:
            try:
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads + 1}", daemon=True).start()
                self._threads += 1
            except RuntimeError:  # the process may start no more: the threads that there are take the call
                if not self._threads:
                    raise
        self._queued += 1
        self._calls.put(call)

    def _work(self) -> None:
        calls = self._calls
        while True:
            with self._lock:
                self._idle += 1
            call = calls.get()
            with self._lock:
                self._idle -= 1
                self._queued -= 1
                if begins := call._state == "waiting":
                    call._state = "running"
            if begins:
                call.run()
            self._leave(call)
            if begins:
                call.end()
            del call

    def _leave(self, call: Call[Any]) -> None:
        """Let the next call of the lane run."""
        lane = call._lane
        with self._lock:
            if call._state == "running":
                call._state = "over"
            lane.abandoned -= call._abandoned
            self._abandoned -= call._abandoned
            while lane.waiting:
                following = lane.waiting.popleft()
                if not following.cancelled():
                    self._hand_over(following, about_to_idle=1)
                    return
            lane.running -= 1
            if not lane.running:
                self._lanes.pop(lane.key, None)


DECISIONS = WorkerPool("gated-memory-decide", size=32, share=8, backlog=64)
"""Runs requests to decision models."""
SEARCHES = WorkerPool("gated-memory-search", size=64, share=16, backlog=128)
"""Runs searches of namespaces."""


class PerAgent(Generic[_T]):
    """A value per agent, made at first sight. Thread-safe.

    Args:
        make: Returns the value for an agent.
    """

    def __init__(self, make: Callable[[Any], _T]) -> None:
        self._make = make
        self._lock = Lock()
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
