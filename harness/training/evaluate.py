"""The report on one split: what the gate, the router and the validator would do to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from strands_gated_memory.core.questions import Thresholds
from strands_gated_memory.embedded.heads import Head

from .examples import Rows
from .figures import Array, auc, calibration_error, precision_at, recall_at, share


def measure(heads: Mapping[str, Head], thresholds: Thresholds, rows: Mapping[str, Rows]) -> dict[str, Any]:
    """Return the figures of one split.

    Args:
        heads: The heads, calibrated.
        thresholds: Where each stage decides.
        rows: The split's rows for "gate", "namespace" and "record".
    """
    chances = {
        name: np.array([p for block in rows[name].blocks for p in heads[name].probabilities(block)]) for name in rows
    }
    return {
        "gate": _gate(chances["gate"], rows["gate"], thresholds.gate),
        "route": _route(chances["namespace"], rows["namespace"], thresholds.router),
        "relevance": _relevance(chances["record"], rows["record"], thresholds.validator),
    }


def _gate(p: Array, rows: Rows, threshold: float) -> dict[str, Any]:
    return {
        "turns": int(p.size),
        "accuracy_at_half": share((p >= 0.5) == rows.needed),
        "auc": auc(p, rows.needed),
        "recall": share(p[rows.needed] >= threshold),
        "skip": share(p[~rows.needed] < threshold),
        "calibration_error": calibration_error(p, rows.targets),
    }


def _route(p: Array, rows: Rows, threshold: float) -> dict[str, Any]:
    searched = p >= threshold
    for turn in np.unique(rows.turn):
        mine = rows.turn == turn
        if not searched[mine].any():
            searched[mine] = True  # as `core.router.choose` does
    wanted = rows.grades == 2
    return {
        "descriptions": int(p.size),
        "auc": auc(p, wanted),
        "recall": share(searched[wanted]),
        "avoided": share(~searched[~wanted]),
        "calibration_error": calibration_error(p, rows.targets),
    }


def _relevance(p: Array, rows: Rows, threshold: float) -> dict[str, Any]:
    needed = rows.needed
    turns = [
        (p[mine], rows.grades[mine])
        for turn in np.unique(rows.turn[needed])
        if ((mine := rows.turn == turn) & (rows.grades == 2)).any()
    ]
    grades = rows.grades[needed]
    q = p[needed]
    return {
        "pairs_of_needed_turns": int(q.size),
        "auc_grade_2": auc(q, grades == 2),
        "auc_grade_1_or_2": auc(q, grades >= 1),
        "precision_at_3": precision_at(3, turns),
        "recall_at_5": recall_at(5, turns),
        "recall_grade_2": share(q[grades == 2] >= threshold),
        "dropped_grade_0": share(q[grades == 0] < threshold),
        "calibration_error": calibration_error(q, rows.targets[needed]),
    }
