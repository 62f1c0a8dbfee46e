"""Threads for calls that may hang: bounded in number, shared by the process, never waited for at exit.

`concurrent.futures.ThreadPoolExecutor` joins its threads when the interpreter ends, so that one hung
search would keep the process alive. These are daemons. Calls go by lanes, one per dependency, and a lane
has a share of the threads: a dependency that hangs costs its share, then its calls fail at once.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, TypeVar

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
        self.waiting: deque[_Call] = deque()


class _Call(Future[Any]):
    """A call under way. Cancelling one that runs already notes that nobody waits for it any more."""

    def __init__(self, pool: WorkerPool, lane: _Lane, work: Callable[[], Any]) -> None:
        super().__init__()
        self.lane = lane
        self.work = work
        self.left = False
        self.abandoned = False
        self._pool = pool

    def cancel(self) -> bool:
        return super().cancel() or self._pool.abandon(self)


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
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)  # a fork has none of its parent's threads

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._calls: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._lanes: dict[Hashable, _Lane] = {}
        self._threads = 0
        self._idle = 0
        self._queued = 0
        self._abandoned = 0

    def submit(self, call: Callable[[], _T], lane: Hashable = None) -> Future[_T]:
        """Run a call in a thread, with a copy of the caller's context variables.

        Args:
            call: What to run. Cancel the future when nobody waits for it any more.
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
            future = _Call(self, of, lambda: context.run(call))
            if of.running >= self._share:
                of.waiting.append(future)
            else:
                of.running += 1
                try:
                    self._hand_over(future)
                except RuntimeError:
                    of.running -= 1
                    raise
            self._lanes[lane] = of
        return future

    def abandon(self, call: _Call) -> bool:
        """Note that nobody waits for a running call; returns False, as `Future.cancel` does for one."""
        with self._lock:
            if not (call.left or call.abandoned or call.done()):
                call.abandoned = True
                call.lane.abandoned += 1
                self._abandoned += 1
        return False

    def _hand_over(self, call: _Call, about_to_idle: int = 0) -> None:
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
            if call.set_running_or_notify_cancel():
                try:
                    result, error = call.work(), None
                except BaseException as failure:
                    result, error = None, failure
                self._leave(call)
                if error is None:
                    call.set_result(result)
                else:
                    call.set_exception(error)
                del result, error
            else:
                self._leave(call)
            del call

    def _leave(self, call: _Call) -> None:
        """Let the next call of the lane run."""
        lane = call.lane
        with self._lock:
            call.left = True
            lane.abandoned -= call.abandoned
            self._abandoned -= call.abandoned
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
