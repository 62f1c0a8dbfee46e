"""Choosing cuts, calibrators and heads from labelled probabilities, and measuring them across folds.

Everything here is a function of arrays; nobody is asked anything. Curves and regressions are scikit-learn's,
intervals scipy's.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import bootstrap
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score, roc_curve
from sklearn.model_selection import StratifiedGroupKFold

from strands_gated_memory.core.fitted import Isotonic, LogisticHead, Platt, logit
from strands_gated_memory.embedded.logistic import probabilities as head_probabilities

from .errors import HarnessError

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Correction = Platt | Isotonic | LogisticHead | None
How = Literal["none", "platt", "isotonic", "heads"]
Mode = Literal["threshold", "ranking", "hybrid"]

FOLDS = 5
_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""scikit-learn's C of a head, chosen across folds by log loss."""
_OWN_SCALE = 0.2
"""The shipped head's logit is scaled down by this, so that the penalty leaves it nearly alone."""
_GRID = 120
"""Cuts tried per dimension of a hybrid choice."""


@dataclass(frozen=True)
class Judged:
    """One stage's labels beside a model's probabilities, one entry per question."""

    p: Array
    must: Flags
    """Whether a "no" would cost something needed: the turn needs memory, the namespace is needed, the grade is 2."""
    waste: Flags
    """Whether a "yes" would be for nothing: the opposite, grade 0. A record of grade 1 is neither."""
    groups: NDArray[np.int64]
    """Which turn or query it belongs to."""
    features: Array | None = None
    """For heads: a row each."""

    def part(self, at: Any) -> Judged:
        """Return the entries at these positions."""
        features = None if self.features is None else self.features[at]
        return Judged(self.p[at], self.must[at], self.waste[at], self.groups[at], features)

    @property
    def belongs(self) -> Flags:
        """What a calibrated P is the probability of: anything but waste."""
        return ~self.waste


@dataclass(frozen=True)
class Goal:
    """What cuts are chosen for; one of the two is set."""

    min_recall: float | None = None
    """The least share of what is needed that must be kept, 0..1; then as little waste as possible."""
    cost_ratio: float | None = None
    """What missing one that is needed costs, in needless ones; the sum is made least."""


@dataclass(frozen=True)
class Cut:
    """From which P on, and from which share of the group's best; None where the mode has none."""

    threshold: float | None
    relative: float | None = None

    def keeps(self, judged: Judged) -> Flags:
        """Return which are kept."""
        kept = np.ones(len(judged.p), bool)
        if self.threshold is not None:
            kept &= judged.p >= self.threshold
        if self.relative is not None:
            kept &= judged.p >= self.relative * _best(judged)
        return kept


def choose(judged: Judged, goal: Goal, mode: Mode = "threshold") -> Cut:
    """Return the cut that meets the goal on these labels; among equals the lowest, which keeps more.

    Raises:
        HarnessError: Nothing is needed in these labels, or nothing is waste.
    """
    if not judged.must.any() or not judged.waste.any():
        raise HarnessError("a cut needs labels of both kinds: something needed, and something that is not")
    if mode == "threshold":
        return Cut(_one(judged.p, judged, goal))
    share = _shares(judged)
    if mode == "ranking":
        return Cut(None, min(1.0, _one(share, judged, goal)))
    return _both(share, judged, goal)


def _one(score: Array, judged: Judged, goal: Goal) -> float:
    counted = judged.must | judged.waste
    y = judged.must[counted]
    fpr, tpr, cuts = roc_curve(y, score[counted], drop_intermediate=False)
    if goal.min_recall is not None:
        at = int(np.argmax(tpr >= goal.min_recall - 1e-9))
    else:
        cost = (goal.cost_ratio or 0.0) * y.sum() * (1 - tpr) + (~y).sum() * fpr
        at = len(cost) - 1 - int(np.argmin(np.round(cost[::-1], 9)))
    if not np.isfinite(cuts[at]):  # keep nothing at all
        return 1.0
    # Halfway down to the next score that was seen, so that a slightly lower one of the same kind is still kept.
    below = score[score < cuts[at]]
    low = float(below.max()) if below.size else 0.0
    middle = (float(cuts[at]) + low) / 2
    rounded = round(middle, 4)
    return rounded if low < rounded <= cuts[at] else middle


def _both(share: Array, judged: Judged, goal: Goal) -> Cut:
    """Try a grid of both cuts."""
    tried = [_levels(judged.p[judged.must], judged.p), _levels(share[judged.must], share)]
    by_p = judged.p[:, None] >= tried[0][None, :]
    by_share = share[:, None] >= tried[1][None, :]
    kept_must = _counted(judged.must, by_p, by_share)
    kept_waste = _counted(judged.waste, by_p, by_share)
    must = int(judged.must.sum())
    if goal.min_recall is not None:
        cost = np.where(kept_must >= goal.min_recall * must - 1e-9, kept_waste, np.inf)
    else:
        cost = (goal.cost_ratio or 0.0) * (must - kept_must) + kept_waste
    least = np.argwhere(cost <= cost.min() + 1e-9)
    # Among equals the pair with the most room: the lowest absolute cut, then the lowest relative one.
    at = min(least.tolist(), key=lambda one: (one[0], one[1]))
    return Cut(float(tried[0][at[0]]), float(tried[1][at[1]]))


def _counted(which: Flags, by_p: Flags, by_share: Flags) -> Array:
    counted: Array = by_p[which].astype(float).T @ by_share[which].astype(float)
    return counted


def _levels(wanted: Array, seen: Array) -> Array:
    """Return cuts to try, rising: none, and just under values of what must be kept."""
    values = np.unique(wanted)
    if len(values) > _GRID:
        values = np.unique(np.quantile(values, np.linspace(0, 1, _GRID), method="lower"))
    below = np.array([seen[seen < value].max(initial=0.0) for value in values])
    middle = (values + below) / 2
    rounded = np.round(middle, 4)
    cuts = np.where((rounded > below) & (rounded <= values), rounded, middle)
    return np.unique(np.concatenate([[0.0], np.clip(cuts, 0.0, 1.0)]))


def _best(judged: Judged) -> Array:
    """Return the best P of each entry's group."""
    _, group = np.unique(judged.groups, return_inverse=True)
    best = np.zeros(group.max(initial=-1) + 1)
    np.maximum.at(best, group, judged.p)
    return best[group]


def _shares(judged: Judged) -> Array:
    best = _best(judged)
    return np.divide(judged.p, best, out=np.ones_like(best), where=best > 0)


def correct(
    judged: Judged, how: How, *, inputs: tuple[str, ...] = (), width: int = 0, seed: int = 0
) -> tuple[Correction, Judged]:
    """Return what makes the probabilities better ones, and the labels with probabilities to choose a cut by.

    The latter are each fold's by what was fitted on the others: on its own labels a head is too sure of itself, and
    a cut chosen there would be too high for anything new. With too few groups for folds they are in sample.

    Args:
        judged: Labels; with features for heads.
        how: "platt" (two numbers, for few labels), "isotonic" (any rising shape; from some hundred labels on),
            "heads" (a logistic regression on features of the embedded model).
        inputs: The blocks that the features are made of, for heads.
        width: The encoder's, for heads.
        seed: Of the folds.

    Raises:
        HarnessError: The labels are all of one kind; or the probabilities fall where the labels rise, so no calibrator
            can help.
    """
    if how == "none":
        return None, judged
    if judged.belongs.all() or not judged.belongs.any():
        raise HarnessError("a cut needs labels of both kinds: something needed, and something that is not")
    splits = list(folds(judged, seed))
    if how == "heads":
        return _head(judged, inputs, width, splits)
    correction = _calibrator(judged, how)
    if not splits:
        return correction, corrected(judged, correction)
    p = np.zeros(len(judged.p))
    for train, test in splits:
        p[test] = corrected(judged.part(test), _calibrator(judged.part(train), how)).p
    return correction, replace(judged, p=p)


def corrected(judged: Judged, correction: Correction) -> Judged:
    """Return the labels with corrected probabilities."""
    if correction is None:
        return judged
    if isinstance(correction, LogisticHead):
        assert judged.features is not None
        return replace(judged, p=np.array(head_probabilities(correction, judged.features)))
    return replace(judged, p=np.array([correction(float(p)) for p in judged.p]))


def _calibrator(judged: Judged, how: How) -> Platt | Isotonic:
    y = judged.belongs.astype(int)
    if how == "isotonic":
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(judged.p, y)
        return Isotonic(
            x=tuple(map(float, fitted.X_thresholds_)),
            y=tuple(float(min(1.0, max(0.0, one))) for one in fitted.y_thresholds_),
        )
    slope, intercept = _platt(np.array([logit(p) for p in judged.p]), y)
    if slope <= 0:
        raise HarnessError(
            "these probabilities fall where the labels rise, so no calibrator can help; try another wording"
        )
    return Platt(slope=slope, intercept=intercept)


def _platt(x: Array, y: NDArray[np.int64]) -> tuple[float, float]:
    """Fit with Platt's softened targets, so that labels without an overlap do not give an endless slope."""
    high, low = (y.sum() + 1) / (y.sum() + 2), 1 / ((1 - y).sum() + 2)
    target = np.where(y == 1, high, low)
    rows, labels = np.concatenate([x, x])[:, None], np.repeat([1, 0], len(x))
    model = LogisticRegression(C=1e6, max_iter=1000).fit(rows, labels, np.concatenate([target, 1 - target]))
    return float(model.coef_[0, 0]), float(model.intercept_[0])


def _head(
    judged: Judged, inputs: tuple[str, ...], width: int, splits: list[tuple[Any, Any]]
) -> tuple[LogisticHead, Judged]:
    assert judged.features is not None
    mean, scale = judged.features.mean(axis=0), judged.features.std(axis=0)
    scale[scale < 1e-6] = 1.0
    scale[0] *= _OWN_SCALE
    x, y = (judged.features - mean) / scale, judged.belongs.astype(int)
    usable = splits if all(len(np.unique(y[train])) == 2 for train, _ in splits) else []
    by_penalty = {c: _across(x, y, usable, c) for c in _PENALTIES} if usable else {_PENALTIES[2]: None}
    penalty = min(by_penalty, key=lambda c: _loss(y, by_penalty[c]))
    model = LogisticRegression(C=penalty, max_iter=2000).fit(x, y)
    head = LogisticHead(
        inputs=inputs,
        encoder_width=width,
        mean=tuple(round(float(one), 7) for one in mean),
        scale=tuple(round(float(one), 7) for one in scale),
        weight=tuple(round(float(one), 7) for one in model.coef_[0]),
        intercept=round(float(model.intercept_[0]), 7),
    )
    fair = by_penalty[penalty]
    return head, corrected(judged, head) if fair is None else replace(judged, p=fair)


def _across(x: Array, y: NDArray[np.int64], splits: list[tuple[Any, Any]], c: float) -> Array:
    p = np.zeros(len(y))
    for train, test in splits:
        model = LogisticRegression(C=c, max_iter=2000).fit(x[train], y[train])
        p[test] = model.predict_proba(x[test])[:, 1]
    return p


def _loss(y: NDArray[np.int64], p: Array | None) -> float:
    return 0.0 if p is None else float(log_loss(y, p))


def folds(judged: Judged, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield positions to fit on and to measure on; no group is in both. None when there are too few groups."""
    few = min(len(np.unique(judged.groups[which])) for which in (judged.must, judged.waste))
    if few < 2:
        return
    splitter = StratifiedGroupKFold(n_splits=min(FOLDS, few), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer members than folds
        yield from splitter.split(np.zeros((len(judged.p), 1)), judged.must.astype(int), judged.groups)


def figures(judged: Judged, kept: Flags) -> dict[str, float | None]:
    """Return how good the probabilities and a choice are.

    Returns:
        `recall`: share of what is needed that is kept; `avoided`: share of the waste that is not; `auc` of what is
        needed against the waste; `brier`: mean squared error of P. None where there is nothing to measure.
    """
    counted = judged.must | judged.waste
    both = judged.must.any() and judged.waste.any()
    return {
        "recall": _rate(kept[judged.must]),
        "avoided": _rate(~kept[judged.waste]),
        "auc": float(roc_auc_score(judged.must[counted], judged.p[counted])) if both else None,
        "brier": float(brier_score_loss(judged.belongs.astype(int), judged.p)) if len(judged.p) else None,
    }


def interval(judged: Judged, kept: Flags, *, seed: int) -> dict[str, tuple[float, float] | None]:
    """Return 95 % bootstrap intervals of recall and avoided, resampling whole groups."""
    found: dict[str, tuple[float, float] | None] = {}
    for name, which, good in (("recall", judged.must, kept), ("avoided", judged.waste, ~kept)):
        _, at = np.unique(judged.groups[which], return_inverse=True)
        found[name] = rate_interval(np.bincount(at, good[which].astype(float)), np.bincount(at), seed)
    return found


def rate_interval(good: ArrayLike, total: ArrayLike, seed: int, resamples: int = 1000) -> tuple[float, float] | None:
    """Return the 95 % percentile bootstrap interval of sum(good) / sum(total), resampling groups.

    Args:
        good: How many of each group are.
        total: How many each group has, 1 or more.
        seed: Of the resampling.
        resamples: How many.

    Returns:
        None for fewer than two groups, and where all or none are good: a bootstrap of equal values has no width,
        which would look like certainty.
    """
    good_of, all_of = np.asarray(good, float), np.asarray(total, float)
    if len(good_of) < 2 or (good_of == all_of).all() or not good_of.any():
        return None
    result = bootstrap(
        (good_of, all_of),
        _ratio,
        paired=True,
        vectorized=True,
        n_resamples=resamples,
        method="percentile",
        random_state=np.random.default_rng(seed),
    )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _ratio(good: Array, total: Array, axis: int = -1) -> Array:
    ratio: Array = good.sum(axis=axis) / total.sum(axis=axis)
    return ratio


def _rate(flags: Flags) -> float | None:
    return float(flags.mean()) if flags.size else None
