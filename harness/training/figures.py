"""The figures of the report, each a pure function; None where there is nothing to measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


def share(flags: Flags) -> float | None:
    """Return which share is true, 0..1."""
    return round(float(flags.mean()), 4) if flags.size else None


def auc(scores: Array, positive: Flags) -> float | None:
    """Return P(a positive scores above a negative), ties a half (Mann-Whitney)."""
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return None
    order = np.sort(scores)
    below = np.searchsorted(order, scores, "left")
    ties = np.searchsorted(order, scores, "right") - below
    ranks = below + (ties + 1) / 2
    return round(float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m)), 4)


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


def threshold_for(scores: Array, recall: float) -> float:
    """Return the highest threshold, floored to four decimals, that keeps this share of the positives' scores.

    Args:
        scores: The positives' probabilities; equal to the threshold is kept.
        recall: The share to keep at least, 0..1.
    """
    if not scores.size:
        return 0.0
    may_miss = int(np.floor(scores.size * (1 - recall) + 1e-9))
    return float(np.floor(np.sort(scores)[may_miss] * 10_000) / 10_000)


def precision_at(k: int, turns: Iterable[tuple[Array, NDArray[np.int64]]]) -> float | None:
    """Return the mean share of useful records (grade 1 or 2) among a turn's k highest.

    Args:
        k: How many records.
        turns: Per turn with a grade-2 record: scores and grades of its records.
    """
    found = [float((grades[np.argsort(-scores, kind="stable")[:k]] >= 1).mean()) for scores, grades in turns]
    return round(float(np.mean(found)), 4) if found else None


def recall_at(k: int, turns: Iterable[tuple[Array, NDArray[np.int64]]]) -> float | None:
    """Return the mean share of a turn's grade-2 records (at most k of them) among its k highest."""
    found = [
        float((grades[np.argsort(-scores, kind="stable")[:k]] == 2).sum() / min(k, (grades == 2).sum()))
        for scores, grades in turns
    ]
    return round(float(np.mean(found)), 4) if found else None
