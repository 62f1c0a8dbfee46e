"""How long the decision under way may take: set by whoever waits for it, read by whoever makes it.

`Decider.decide` takes no deadline, so that a plain function can be one. The pipeline, which waits only
so long, leaves its limit in a context variable; deciders that talk to a network end their call by then.
"""

from __future__ import annotations

import time
from contextvars import ContextVar

from .assigned import Assigned

_UNTIL: ContextVar[float | None] = ContextVar("strands_gated_memory_until", default=None)


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


def left(moment: float) -> float:
    """Return the seconds until a moment on the monotonic clock, 0 when it has passed."""
    return max(0.0, moment - time.monotonic())
