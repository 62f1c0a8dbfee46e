"""The figures that are no means, each a pure function; None where there is nothing to measure."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]


def calibration_error(probabilities: Array, targets: Array, bins: int = 10) -> float | None:
    """Return the expected calibration error: mean |P - share of positives| over equal-width bins, by size.

    Args:
        probabilities: 0..1.
        targets: 0, 1, or between for a half-relevant record.
        bins: How many.
    """
    if not probabilities.size:
        return None
    bin_of = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = [
        float((bin_of == b).mean()) * abs(float(probabilities[bin_of == b].mean() - targets[bin_of == b].mean()))
        for b in range(bins)
        if (bin_of == b).any()
    ]
    return round(sum(gaps), 4)


def cut_for(scores: Array, recall: float) -> float:
    """Return the highest cut, floored to four decimals, that keeps this share of the positives' scores.

    Args:
        scores: The positives' probabilities; equal to the cut is kept.
        recall: The share to keep at least, 0..1.
    """
    if not scores.size:
        return 0.0
    may_miss = int(np.floor(scores.size * (1 - recall) + 1e-9))
    return float(np.floor(np.sort(scores)[may_miss] * 10_000) / 10_000)
