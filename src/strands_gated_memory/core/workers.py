"""Threads for calls that may hang: bounded in number, shared by the process, never waited for at exit.

`concurrent.futures.ThreadPoolExecutor` joins its threads when the interpreter ends, so that one hung
search would keep the process alive. These are daemons.
"""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

_T = TypeVar("_T")


class PoolFull(Exception):
    """Every worker is busy and the queue is full: something that the workers wait for hangs."""


class WorkerPool:
    """A pool of daemon threads, started on demand.

    Args:
        name: Prefix of the threads' names.
        size: At most so many threads.
        backlog: At most so many calls that wait for a thread.
    """

    def __init__(self, name: str, size: int, backlog: int) -> None:
        self._name = name
        self._size = size
        self._backlog = backlog
        self._reset()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset)  # a fork has none of its parent's threads

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._calls: queue.Queue[tuple[Future[Any], Callable[[], Any]]] = queue.Queue(self._backlog)
        self._threads = 0
        self._idle = 0

    def submit(self, call: Callable[[], _T]) -> Future[_T]:
        """Run a call in a thread, with a copy of the caller's context variables.

        Raises:
            PoolFull: At once, when no thread is free and the backlog is full.
        """
        future: Future[_T] = Future()
        context = contextvars.copy_context()
        with self._lock:
            try:
                self._calls.put_nowait((future, lambda: context.run(call)))
            except queue.Full:
                raise PoolFull(f"all {self._size} {self._name} workers are busy") from None
            if self._idle < self._calls.qsize() and self._threads < self._size:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        return future

    def _work(self) -> None:
        calls = self._calls
        while True:
            with self._lock:
                self._idle += 1
            future, call = calls.get()
            with self._lock:
                self._idle -= 1
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)
            del future, call


DECISIONS = WorkerPool("gated-memory-decide", size=16, backlog=64)
"""Runs requests to decision models."""
SEARCHES = WorkerPool("gated-memory-search", size=32, backlog=128)
"""Runs searches of namespaces."""
