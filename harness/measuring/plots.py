"""What the page draws of one wording's scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sklearn.metrics import roc_curve

from . import metrics as m

ScorePlots = dict[str, dict[str, Any]]


def strip(groups: Mapping[str, list[float]], *, cut: float | None, shipped: float | None) -> dict[str, Any]:
    """Return scores by label, with the best cut and the decider's own."""
    return {"groups": dict(groups), "cut": cut, "shipped": shipped}


def add_scores(plots: ScorePlots, key: str, scores: m.Array, labels: m.Flags, scores_strip: dict[str, Any]) -> None:
    """Add a wording's strip, ROC curve and reliability curve."""
    plots.setdefault("strips", {})[key] = scores_strip
    if labels.any() and not labels.all():
        no, yes, _ = roc_curve(labels, scores)
        plots.setdefault("roc", {})[key] = {"no": no.tolist(), "yes": yes.tolist(), "auc": m.auc(scores, labels)}
    plots.setdefault("reliability", {})[key] = [asdict(one) for one in m.reliability(scores, labels)]
