"""Choosing cuts and heads from labelled probabilities, and measuring them across folds.

Everything here is a function of arrays; nobody is asked anything. Curves and regressions are scikit-learn's,
intervals scipy's.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_curve
from sklearn.model_selection import StratifiedGroupKFold

from strands_gated_memory.core.fitted import LogisticHead
from strands_gated_memory.embedded.logistic import probabilities as head_probabilities

from ..errors import HarnessError
from ..measuring.metrics import Array, Flags, Interval, auc, rate_interval

Mode = Literal["threshold", "ranking", "hybrid"]

FOLDS = 5
_PENALTIES = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
"""scikit-learn's C of a head, chosen across folds by log loss."""
_OWN_SCALE = 0.2
"""The shipped head's logit is scaled down by this, so that the penalty leaves it nearly alone."""
_GRID = 120
"""Cuts tried per dimension of a hybrid choice."""


@dataclass(frozen=True)
class Labelled:
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

    def part(self, at: Any) -> Labelled:
        """Return the entries at these positions."""
        features = None if self.features is None else self.features[at]
        return Labelled(self.p[at], self.must[at], self.waste[at], self.groups[at], features)

    @property
    def belongs(self) -> Flags:
        """What P is the probability of: anything but waste."""
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

    def keeps(self, labelled: Labelled) -> Flags:
        """Return which are kept."""
        kept = np.ones(len(labelled.p), bool)
        if self.threshold is not None:
            kept &= labelled.p >= self.threshold
        if self.relative is not None:
            kept &= labelled.p >= self.relative * _best(labelled)
        return kept


def choose(labelled: Labelled, goal: Goal, mode: Mode = "threshold") -> Cut:
    """Return the cut that meets the goal on these labels; among equals the lowest, which keeps more.

    Raises:
        HarnessError: Nothing is needed in these labels, or nothing is waste.
    """
    if not labelled.must.any() or not labelled.waste.any():
        raise HarnessError("a cut needs labels of both kinds: something needed, and something that is not")
    if mode == "threshold":
        return Cut(_one(labelled.p, labelled, goal))
    share = _shares(labelled)
    if mode == "ranking":
        return Cut(None, min(1.0, _one(share, labelled, goal)))
    return _both(share, labelled, goal)


def _one(score: Array, labelled: Labelled, goal: Goal) -> float:
    counted = labelled.must | labelled.waste
    y = labelled.must[counted]
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


def _both(share: Array, labelled: Labelled, goal: Goal) -> Cut:
    """Try a grid of both cuts."""
    tried = [_levels(labelled.p[labelled.must], labelled.p), _levels(share[labelled.must], share)]
    by_p = labelled.p[:, None] >= tried[0][None, :]
    by_share = share[:, None] >= tried[1][None, :]
    kept_must = _counted(labelled.must, by_p, by_share)
    kept_waste = _counted(labelled.waste, by_p, by_share)
    must = int(labelled.must.sum())
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


def _best(labelled: Labelled) -> Array:
    """Return the best P of each entry's group."""
    _, group = np.unique(labelled.groups, return_inverse=True)
    best = np.zeros(group.max(initial=-1) + 1)
    np.maximum.at(best, group, labelled.p)
    return best[group]


def _shares(labelled: Labelled) -> Array:
    best = _best(labelled)
    return np.divide(labelled.p, best, out=np.ones_like(best), where=best > 0)


def with_head(
    labelled: Labelled, *, inputs: tuple[str, ...], width: int, seed: int = 0
) -> tuple[LogisticHead, Labelled]:
    """Return a logistic regression on features of the embedded model, and the labels to choose a cut by.

    The probabilities of the latter are each fold's by what was fitted on the others: on its own labels a head is too
    sure of itself, and a cut chosen there would be too high for anything new. With too few groups for folds they are
    in sample.

    Args:
        labelled: Labels with features.
        inputs: The blocks that the features are made of.
        width: The encoder's.
        seed: Of the folds.

    Raises:
        HarnessError: The labels are all of one kind.
    """
    if labelled.belongs.all() or not labelled.belongs.any():
        raise HarnessError("a cut needs labels of both kinds: something needed, and something that is not")
    return _head(labelled, inputs, width, list(folds(labelled, seed)))


def judged_by(labelled: Labelled, head: LogisticHead | None) -> Labelled:
    """Return the labels with a head's probabilities, as they are without one."""
    if head is None:
        return labelled
    assert labelled.features is not None
    return replace(labelled, p=np.array(head_probabilities(head, labelled.features)))


def _head(
    labelled: Labelled, inputs: tuple[str, ...], width: int, splits: list[tuple[Any, Any]]
) -> tuple[LogisticHead, Labelled]:
    assert labelled.features is not None
    mean, scale = labelled.features.mean(axis=0), labelled.features.std(axis=0)
    scale[scale < 1e-6] = 1.0
    scale[0] *= _OWN_SCALE
    x, y = (labelled.features - mean) / scale, labelled.belongs.astype(int)
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
    return head, judged_by(labelled, head) if fair is None else replace(labelled, p=fair)


def _across(x: Array, y: NDArray[np.int64], splits: list[tuple[Any, Any]], c: float) -> Array:
    p = np.zeros(len(y))
    for train, test in splits:
        model = LogisticRegression(C=c, max_iter=2000).fit(x[train], y[train])
        p[test] = model.predict_proba(x[test])[:, 1]
    return p


def _loss(y: NDArray[np.int64], p: Array | None) -> float:
    return 0.0 if p is None else float(log_loss(y, p))


def folds(labelled: Labelled, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield positions to fit on and to measure on; no group is in both. None when there are too few groups."""
    few = min(len(np.unique(labelled.groups[which])) for which in (labelled.must, labelled.waste))
    if few < 2:
        return
    splitter = StratifiedGroupKFold(n_splits=min(FOLDS, few), shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class with fewer members than folds
        yield from splitter.split(np.zeros((len(labelled.p), 1)), labelled.must.astype(int), labelled.groups)


def figures(labelled: Labelled, kept: Flags) -> dict[str, float | None]:
    """Return how good the probabilities and a choice are.

    Returns:
        `recall`: share of what is needed that is kept; `avoided`: share of the waste that is not; `auc` of what is
        needed against the waste; `brier`: mean squared error of P. None where there is nothing to measure.
    """
    counted = labelled.must | labelled.waste
    return {
        "recall": _rate(kept[labelled.must]),
        "avoided": _rate(~kept[labelled.waste]),
        "auc": auc(labelled.p[counted], labelled.must[counted]),
        "brier": float(brier_score_loss(labelled.belongs.astype(int), labelled.p)) if len(labelled.p) else None,
    }


def intervals(labelled: Labelled, kept: Flags, *, seed: int) -> dict[str, Interval]:
    """Return 95 % bootstrap intervals of recall and avoided, resampling whole groups."""
    found: dict[str, Interval] = {}
    for name, which, good in (("recall", labelled.must, kept), ("avoided", labelled.waste, ~kept)):
        _, at = np.unique(labelled.groups[which], return_inverse=True)
        found[name] = rate_interval(np.bincount(at, good[which].astype(float)), np.bincount(at), seed)
    return found


def _rate(flags: Flags) -> float | None:
    return float(flags.mean()) if flags.size else None
