"""Results kept for short texts: the same records come back turn after turn."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

SHORT = 1000
"""Characters of a text up to which its result is kept: a few megabytes at most for each function."""


def remembering_short(work: Callable[[str], _T]) -> Callable[[str], _T]:
    """Let a pure function of a text keep its results for the latest few thousand short texts."""
    kept = functools.lru_cache(maxsize=4096)(work)

    @functools.wraps(work)
    def remembering(text: str) -> _T:
        return kept(text) if len(text) <= SHORT else work(text)

    return remembering
