"""Counting tokens with a function of the user's, which may raise, answer nonsense, or take its time."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..errors import error_kind
from .functions import outcome_of
from .types import Failure


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text: characters / 4, rounded up."""
    return math.ceil(len(text) / 4)


class TokenCounter:
    """A counter for one recall. After its first failure everything is estimated: two units would not add up.

    Args:
        count: The policy's `select.token_counter`.
        is_late: Whether the recall's deadline has passed.

    Attributes:
        failures: What failed: nothing, or the counter.
    """

    def __init__(self, count: Callable[[str], int], is_late: Callable[[], bool] = lambda: False) -> None:
        self.failures: tuple[Failure, ...] = ()
        self._count = count
        self._is_late = is_late
        self._per_estimated = 1.0

    def __call__(self, text: str) -> float:
        """Return the tokens of a text, 0 or more."""
        estimated = estimate_tokens(text)
        if self.failures or self._count is estimate_tokens:
            return estimated
        tokens = outcome_of(lambda: float(self._count(text)))
        if not isinstance(tokens, Exception) and not 0.0 <= tokens < math.inf:
            tokens = ValueError("no number of tokens")
        if isinstance(tokens, Exception):
            # Not its message: a counter may quote the text.
            self.failures = (Failure("select", error_kind(tokens), "select.token_counter failed"),)
            return estimated
        self._per_estimated = tokens / max(1, estimated)
        return tokens

    def roughly(self, text: str) -> float:
        """Return the tokens of a text; when it is late, from its length and the last count."""
        if self._is_late() and not self.failures:
            return self._per_estimated * estimate_tokens(text)
        return self(text)
