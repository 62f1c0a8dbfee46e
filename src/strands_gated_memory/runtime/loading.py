"""Decision models that must be loaded into this process first: who loads them, and how long a turn waits for that.

A model that is being loaded is not failing. So a turn waits for it before it asks, in its own thread and for a
part of its deadline, and goes on without a decision when that is over; no circuit breaker hears of it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Hashable

from ..core.questions import Decider, attribute_of
from . import forks
from .breaker import identity_of

LONGEST_S = 600.0
"""A model that takes longer than this is asked all the same: what hangs for ever must be counted as a failure."""
_MOST_AT_ONCE = 4
"""How many models turns may begin to load at a time; a model beyond them is loaded by its first request."""


class _Load:
    """One model's load, under way or over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.started = time.monotonic()
        self.succeeded = False

    def run(self, decider: Decider) -> None:
        try:
            decider.warm()  # type: ignore[attr-defined]
            self.succeeded = True
        finally:
            self.over.set()


class _Loads:
    """The loads of this process, by decider."""

    def __init__(self) -> None:
        self.after_fork()
        forks.notice(self)

    def after_fork(self) -> None:
        """Forget them: what the parent loads or has loaded may not be here."""
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._known: dict[Hashable, _Load] = {}

    def enter(self, key: object) -> tuple[_Load, bool]:
        """Return a decider's load, and whether it is new and the caller's to run.

        Raises:
            TypeError: The end of the decider cannot be noticed, so nothing can be kept about it.
        """
        identity, anchors = identity_of(key)
        with self._lock:
            known = self._known.get(identity)
            if known is not None:
                return known, False
            load = self._known[identity] = _Load()
        for anchor in anchors:
            weakref.finalize(anchor, self._known.pop, identity, None).atexit = False
        return load, True

    def start(self, load: _Load, decider: Decider) -> None:
        """Run a new load in a thread; without room for it, leave it to the first request."""
        room = self._room

        def run() -> None:
            try:
                load.run(decider)
            except BaseException:  # the first request fails the same way, and is counted
                return
            finally:
                room.release()

        if not room.acquire(blocking=False):
            load.over.set()
            return
        try:
            threading.Thread(target=run, name="gated-memory-load", daemon=True).start()
        except RuntimeError:  # the process may start no more
            room.release()
            load.over.set()


_loads = _Loads()


def load(decider: Decider, key: object = None) -> None:
    """Load a decider in this thread, if it has anything to load.

    While another thread loads it, this one waits: there may be no room for a second copy. What that thread could not
    load is tried again here.

    Args:
        decider: What to load.
        key: Who it is, see `breaker_of`; default the decider itself.

    Raises:
        Exception: Whatever its `warm` raises.
    """
    if not callable(attribute_of(decider, "warm")):
        return
    try:
        running, is_new = _loads.enter(decider if key is None else key)
    except TypeError:
        running, is_new = _Load(), True
    if not is_new:
        running.over.wait()
        if running.succeeded and _stays_loaded(decider):
            return
    (running if is_new else _Load()).run(decider)


def is_ready(decider: Decider, key: object, seconds: float) -> bool:
    """Wait until a decider is loaded; one that nobody loads yet is, in a thread of its own.

    Args:
        decider: The decider. One that only talks to something has nothing to load.
        key: As for `load`.
        seconds: How long to wait.

    Returns:
        Whether it can be asked now: it is loaded, or its load has failed, so that asking shows why.
    """
    if not _must_be_loaded(decider):
        return True
    try:
        running, is_new = _loads.enter(decider if key is None else key)
    except TypeError:
        return True
    if is_new:
        _loads.start(running, decider)
    if running.over.is_set() or time.monotonic() - running.started > LONGEST_S:
        return True
    return running.over.wait(max(0.0, seconds))


def _must_be_loaded(decider: Decider) -> bool:
    if not callable(attribute_of(decider, "warm")):
        return False
    is_loaded = attribute_of(decider, "is_loaded")
    if isinstance(is_loaded, bool):
        return not is_loaded
    return not attribute_of(decider, "remote", False)


def _stays_loaded(decider: Decider) -> bool:
    """Tell whether there is nothing to look up again, as there is of a server, and nothing was given up meanwhile."""
    return not attribute_of(decider, "remote", False) and attribute_of(decider, "is_loaded") is not False
