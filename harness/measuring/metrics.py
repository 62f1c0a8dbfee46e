"""Every figure, each a pure function of scores and labels; None where there is nothing to measure.

From scikit-learn: AUC, ROC points, recall, the reliability curve. From scipy: the bootstrap. By hand, because no
library has them with these ties: the margin, and precision at the number of relevant records with ties broken
against us (trec_eval and its relatives break them by document id).

Scores are probabilities, 0..1, higher for "yes"; labels are true for "yes".
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import DegenerateDataWarning, bootstrap, rankdata
from sklearn import config_context
from sklearn.calibration import calibration_curve
from sklearn.metrics import recall_score, roc_auc_score, roc_curve
from sklearn.model_selection import LeaveOneGroupOut, StratifiedKFold

Array: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class Cut:
    """A threshold: at or above it is "yes"."""

    at: float
    accuracy: float
    """Share of items on their right side of it, 0..1."""


@dataclass(frozen=True)
class Interval:
    """A bootstrap interval of a figure."""

    low: float | None
    high: float | None
    usable: int = 0
    """In how many resamples the figure could be had."""

    def holds(self, value: float) -> bool:
        """Tell whether a value lies between the bounds."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high


NO_INTERVAL = Interval(None, None)
"""Of a figure that cannot be had."""


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval."""

    value: float | None = None
    interval: Interval = NO_INTERVAL


def answered(scores: Sequence[float | None], labels: Sequence[bool]) -> tuple[Array, Flags]:
    """Return the scores that there are, with their labels."""
    pairs = [(score, label) for score, label in zip(scores, labels, strict=True) if score is not None]
    return np.array([score for score, _ in pairs], np.float64), np.array([label for _, label in pairs], np.bool_)


def arrays(scores: ArrayLike, labels: ArrayLike) -> tuple[Array, Flags]:
    """Return scores and labels as arrays.

    Raises:
        ValueError: They differ in length, or a score is not finite.
    """
    s, y = np.asarray(scores, dtype=np.float64).reshape(-1), np.asarray(labels, dtype=np.bool_).reshape(-1)
    if s.shape != y.shape:
        raise ValueError(f"{s.size} scores and {y.size} labels")
    if not np.isfinite(s).all():
        raise ValueError("a score is not finite")
    return s, y


def auc(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return P(a "yes" scores above a "no"), ties a half; None unless both occur."""
    s, y = arrays(scores, labels)
    if not y.any() or y.all():
        return None
    with config_context(assume_finite=True, skip_parameter_validation=True):
        return float(roc_auc_score(y, s))


def precision_at_relevant(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return which share of the k best is "yes", k being the number of "yes"; among equals "no" comes first."""
    s, y = arrays(scores, labels)
    k = int(y.sum())
    if not k:
        return None
    order = np.lexsort((y, -s))
    return float(y[order[:k]].mean())


def margin(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return the lowest "yes" minus the highest "no": above 0, one cut splits them without an error."""
    s, y = arrays(scores, labels)
    return float(s[y].min() - s[~y].max()) if y.any() and not y.all() else None


def best_threshold(scores: ArrayLike, labels: ArrayLike) -> float | None:
    """Return where `best_cut` lies."""
    cut = best_cut(scores, labels)
    return cut.at if cut else None


def best_cut(scores: ArrayLike, labels: ArrayLike) -> Cut | None:
    """Return the cut with the most items on their right side, the lowest such, midway between two scores.

    Chosen and judged on the same items: the accuracy is in sample. With items of one kind only, there is nothing
    to choose: None.
    """
    s, y = arrays(scores, labels)
    if not y.any() or y.all():
        return None
    no_rate, yes_rate, thresholds = roc_curve(y, s, drop_intermediate=False)
    yes, no = int(y.sum()), int((~y).sum())
    accuracy = (yes_rate * yes + (1.0 - no_rate) * no) / (yes + no)
    best = int(np.flatnonzero(accuracy >= accuracy.max() - 1e-12)[-1])  # thresholds fall, so the last is the lowest
    return Cut(_midway(s, float(thresholds[best])), float(accuracy[best]))


def cut_for_recall(scores: ArrayLike, labels: ArrayLike, recall: float) -> float | None:
    """Return the highest cut that keeps at least this share of the "yes", midway below the last one kept."""
    s, y = arrays(scores, labels)
    if not y.any():
        return None
    kept = np.sort(s[y])[::-1]
    needed = max(1, int(np.ceil(recall * kept.size - 1e-9)))
    return _midway(s, float(kept[needed - 1]))


def _midway(scores: Array, lowest_yes: float) -> float:
    """Return a cut that has the scores from `lowest_yes` on above it: halfway to the next lower score."""
    if not np.isfinite(lowest_yes):  # above every score
        return float(np.nextafter(scores.max(), np.inf))
    below = scores[scores < lowest_yes]
    return float((lowest_yes + below.max()) / 2) if below.size else lowest_yes


def recall_at(scores: ArrayLike, labels: ArrayLike, cut: float) -> float | None:
    """Return the share of "yes" at or above a cut."""
    s, y = arrays(scores, labels)
    return float(recall_score(y, s >= cut)) if y.any() else None


def skip_at(scores: ArrayLike, labels: ArrayLike, cut: float) -> float | None:
    """Return the share of "no" below a cut."""
    s, y = arrays(scores, labels)
    return float(recall_score(~y, s < cut)) if not y.all() else None


def skip_rate(scores: ArrayLike, labels: ArrayLike, recall: float) -> float | None:
    """Return the largest share of "no" below a cut that keeps this share of the "yes"; in sample."""
    s, y = arrays(scores, labels)
    if not y.any() or y.all():
        return None
    no_rate, yes_rate, _ = roc_curve(y, s, drop_intermediate=False)
    return float(1.0 - no_rate[yes_rate >= recall - 1e-9].min())


@dataclass(frozen=True)
class Bin:
    """One bin of a reliability curve."""

    predicted: float
    observed: float
    count: int


def reliability(scores: ArrayLike, labels: ArrayLike, bins: int = 10) -> list[Bin]:
    """Return the bins that hold anything: mean probability, share of "yes", how many. Scores in 0..1."""
    s, y = arrays(scores, labels)
    if not s.size:
        return []
    observed, predicted = calibration_curve(y, s, n_bins=bins, strategy="uniform", pos_label=True)
    edges = np.linspace(0.0, 1.0, bins + 1)
    counts = np.bincount(np.searchsorted(edges[1:-1], s), minlength=bins)
    filled = counts[counts > 0]
    return [Bin(float(p), float(o), int(n)) for p, o, n in zip(predicted, observed, filled, strict=True)]


def calibration_error(scores: ArrayLike, labels: ArrayLike, bins: int = 10) -> float | None:
    """Return the expected calibration error: mean |probability - share of "yes"| over equal-width bins, by size."""
    found = reliability(scores, labels, bins)
    total = sum(one.count for one in found)
    return sum(one.count * abs(one.predicted - one.observed) for one in found) / total if total else None


def interval(figure: Callable[..., Array], *columns: ArrayLike, seed: int = 0, resamples: int = 1000) -> Interval:
    """Return the percentile bootstrap's 95 % interval of a figure.

    Args:
        figure: Takes the columns as arrays (resamples, units), resampled together, and returns an array
            (resamples,), not a number where it cannot be had: such resamples are left out.
        columns: One entry per resampled unit: an item, or a whole query.
        seed: Of the resampling.
        resamples: How many.

    Returns:
        The interval; without bounds below two units, or where the figure can be had in under half the resamples.
    """
    given = [np.asarray(column) for column in columns]
    size = given[0].shape[0]
    if size < 2:
        return NO_INTERVAL

    def of(index: NDArray[np.int64], axis: int) -> Array:  # noqa: ARG001 - scipy names it
        return figure(*(column[index] for column in given))

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)  # says that some resamples lack the figure
        found = bootstrap(
            (np.arange(size),),
            of,
            n_resamples=resamples,
            vectorized=True,
            method="percentile",
            rng=np.random.default_rng(seed),
        )
    values = found.bootstrap_distribution
    usable = values[np.isfinite(values)]
    if usable.size < resamples / 2:
        return Interval(None, None, int(usable.size))
    low, high = np.percentile(usable, [2.5, 97.5])
    return Interval(float(low), float(high), int(usable.size))


def auc_rows(scores: Array, labels: Flags) -> Array:
    """Return the AUC of each row, for `interval`: Mann and Whitney's, by scipy's ranks.

    Rows of one kind have none: not a number.
    """
    ranks = rankdata(scores, axis=-1)
    yes = labels.sum(axis=-1)
    no = labels.shape[-1] - yes
    with np.errstate(divide="ignore", invalid="ignore"):
        area: Array = ((ranks * labels).sum(axis=-1) - yes * (yes + 1) / 2) / (yes * no)
    return area


def mean_rows(values: NDArray[Any]) -> Array:
    """Return the mean of each row, for `interval`; values that are not a number are left out."""
    with np.errstate(invalid="ignore"):
        known = np.isfinite(values.astype(np.float64))
        total: Array = np.where(known, values, 0.0).sum(axis=-1) / known.sum(axis=-1)
    return total


def ratio_rows(parts: Array, wholes: Array) -> Array:
    """Return the sum of parts by the sum of wholes of each row, for `interval`."""
    ratio: Array = parts.sum(axis=-1) / wholes.sum(axis=-1)
    return ratio


def mean(values: ArrayLike, **draw: int) -> Estimate:
    """Return the mean of values and its interval; `draw` as `interval` has it."""
    given = np.asarray(values, dtype=np.float64)
    return Estimate(float(given.mean()), interval(mean_rows, given, **draw)) if given.size else Estimate()


def ratio(parts: ArrayLike, wholes: ArrayLike, **draw: int) -> Estimate:
    """Return the sum of parts by the sum of wholes and its interval; `draw` as `interval` has it."""
    part, whole = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    return (
        Estimate(float(part.sum() / whole.sum()), interval(ratio_rows, part, whole, **draw))
        if whole.sum()
        else Estimate()
    )


def rate_interval(good: ArrayLike, total: ArrayLike, seed: int) -> Interval:
    """Return the interval of sum(good) / sum(total), resampling groups.

    Args:
        good: How many of each group are.
        total: How many each group has, 1 or more.
        seed: Of the resampling.

    Returns:
        None of its bounds where all or none are good: a bootstrap of equal values has no width, which would look like
        certainty.
    """
    good_of, all_of = np.asarray(good, np.float64), np.asarray(total, np.float64)
    if (good_of == all_of).all() or not good_of.any():
        return NO_INTERVAL
    return interval(ratio_rows, good_of, all_of, seed=seed)


def held_out(
    scores: ArrayLike,
    labels: ArrayLike,
    choose: Callable[[Array, Flags], float | None],
    groups: ArrayLike | None = None,
    seed: int = 0,
) -> Flags | None:
    """Return, per item, whether it is kept by a cut that was chosen on other items: cross-validation.

    Args:
        scores: Probabilities.
        labels: What is right.
        choose: Returns a cut from the scores and labels of the other items; None: keep everything.
        groups: Items of the same group, such as a query's records, are left out together, one group at a time.
            None: ten stratified folds, or as many as the rarer label allows. (Leaving out single items would
            change the balance of what is left, and with it the choice, against the item left out.)
        seed: Of the folds.

    Returns:
        None with fewer than two groups, or fewer than two items of a label.
    """
    s, y = arrays(scores, labels)
    if groups is None:
        folds = min(10, int(y.sum()), int((~y).sum()))
        if folds < 2:
            return None
        splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(s, y)
    else:
        g = np.asarray(groups)
        if np.unique(g).size < 2:
            return None
        splits = LeaveOneGroupOut().split(s, y, g)
    kept = np.zeros(s.size, np.bool_)
    for train, test in splits:
        cut = choose(s[train], y[train])
        kept[test] = True if cut is None else s[test] >= cut
    return kept
