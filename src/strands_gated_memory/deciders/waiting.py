"""Waiting for a call in another thread, whatever it does."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

from ..errors import DeciderUnavailable
from ..runtime.workers import Call

_T = TypeVar("_T")


def result_of(call: Call[_T], seconds: float) -> _T:
    """Return a call's result.

    Raises:
        TimeoutError: There is none within so many seconds; nobody waits for it any more.
        DeciderUnavailable: It raised what is no `Exception`, such as SystemExit: that ends the call alone.
        Exception: Whatever else it raised.
    """
    try:
        error = call.exception(timeout=seconds)
    except (FutureTimeout, TimeoutError):
        call.cancel()
        raise TimeoutError(f"no answer within {seconds:.3f} s") from None
    if error is not None and not isinstance(error, Exception):
        raise DeciderUnavailable(f"it raised {type(error).__name__}") from error
    return call.result()
