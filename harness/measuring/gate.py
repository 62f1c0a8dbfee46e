"""The gate: is a lookup worth making? Every wording in one request per utterance.

python -m harness gate --decider embedded --decider sparrow
python -m harness gate --data my_utterances.json --wordings my_wordings.json --runs 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.metrics import roc_curve

from strands_gated_memory.core.wordings import GATE_CRITERIA, GATE_PLAIN, GATE_WORDINGS

from ..data.datasets import Dataset
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .drift import drift_table
from .measurement import Measurement
from .options import Settings
from .requests import ask_all, read_wordings, same_answers, unread_notes, unread_rows
from .tables import NOTHING, Finding, Result, Table, number, share, share_with_interval, signed, with_interval

RECALLS = (1.0, 0.98)


@dataclass(frozen=True)
class GateFigures:
    """One wording's figures."""

    items: int
    answered: int
    constant: bool = False
    """Whether every answer is the same number."""
    auc: float | None = None
    auc_interval: m.Interval = m.NO_INTERVAL
    best: m.Cut | None = None
    margin: float | None = None
    recall_at_best: float | None = None
    skip: Mapping[str, float | None] | None = None
    """Share of unneeded lookups avoided, per recall, in sample."""
    calibration_error: float | None = None
    held_out_accuracy: float | None = None
    held_out_accuracy_interval: m.Interval = m.NO_INTERVAL
    held_out_recall: float | None = None
    held_out_recall_interval: m.Interval = m.NO_INTERVAL
    held_out_skip: float | None = None
    held_out_skip_interval: m.Interval = m.NO_INTERVAL
    safe_recall: float | None = None
    """Held out, by the cut that misses nothing elsewhere."""
    safe_skip: float | None = None


def figures_of(scores: Sequence[float | None], labels: Sequence[bool], settings: Settings) -> GateFigures:
    """Return the figures of one wording's answers; unanswered items are left out."""
    answered = [at for at, score in enumerate(scores) if score is not None]
    s = np.array([scores[at] for at in answered], np.float64)
    y = np.array([labels[at] for at in answered], np.bool_)
    if not answered:
        return GateFigures(len(scores), 0)
    best = m.best_cut(s, y)
    held = m.held_out(s, y, lambda a, b: cut.at if (cut := m.best_cut(a, b)) else None, seed=settings.seed)
    safe = m.held_out(s, y, lambda a, b: m.cut_for_recall(a, b, 1.0), seed=settings.seed)
    draw: dict[str, Any] = {"seed": settings.seed, "resamples": settings.resamples}
    return GateFigures(
        items=len(scores),
        answered=s.size,
        constant=bool(np.ptp(s) == 0.0),
        auc=m.auc(s, y),
        auc_interval=m.interval(m.auc_rows, s, y, **draw),
        best=best,
        margin=m.margin(s, y),
        recall_at_best=m.recall_at(s, y, best.at) if best else None,
        skip={f"{recall:g}": m.skip_rate(s, y, recall) for recall in RECALLS},
        calibration_error=m.calibration_error(s, y),
        held_out_accuracy=held.accuracy(y) if held else None,
        held_out_accuracy_interval=m.interval(m.mean_rows, held.kept == y, **draw) if held else m.NO_INTERVAL,
        held_out_recall=held.recall(y) if held else None,
        held_out_recall_interval=m.interval(m.mean_rows, held.kept[y], **draw) if held else m.NO_INTERVAL,
        held_out_skip=held.skipped(y) if held else None,
        held_out_skip_interval=m.interval(m.mean_rows, ~held.kept[~y], **draw) if held else m.NO_INTERVAL,
        safe_recall=safe.recall(y) if safe else None,
        safe_skip=safe.skipped(y) if safe else None,
    )


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without utterances."""
    if not data.gate:
        return None
    wordings = (*GATE_WORDINGS, *read_wordings(settings.wordings, "gate"))
    questions = {wording.key: wording.question() for wording in wordings}
    replies = ask_all(decider, [(item.state, questions) for item in data.gate], settings, f"gate, {decider.name}")
    labels = [item.needs_memory for item in data.gate]
    columns = [
        {w.key: [replies.scores(run, at, w, w.key) for at in range(len(data.gate))] for w in wordings}
        for run in range(settings.runs)
    ]
    same = same_answers(columns[0])
    found: dict[str, GateFigures] = {}
    for key, scores in columns[0].items():
        found[key] = found[same[key]] if key in same else figures_of(scores, labels, settings)
    needed = sum(labels)
    notes = [
        f"{data.name}: {len(labels)} utterances, {needed} need memory. Brackets: bootstrap 95 % intervals over "
        f"utterances ({settings.resamples:,} resamples). In sample: cut chosen and judged on the same utterances. "
        "Held out: ten stratified folds, each judged by the cut chosen on the other nine."
    ]
    notes += unread_notes(decider.name, "gate", {key: bool(one.answered) for key, one in found.items()}, same)
    partly = {one.answered for one in found.values() if 0 < one.answered < one.items}
    if partly:
        languages = sorted({item.lang for item in data.gate})
        notes.append(
            f"{decider.name} answered {'/'.join(map(str, sorted(partly)))} of {len(labels)} utterances "
            f"(languages: {', '.join(languages)}); the others are looked up, as in production, and are in no figure."
        )
    tables = [
        Table(
            key=f"gate-separation-{data.name}",
            title=f"gate, {data.name}: does one cut split the utterances? (in sample)",
            columns=("decider", "wording", "answered", "AUC", "best accuracy", "cut", "margin", "ECE"),
            rows=_separation_rows(decider.name, found, same),
            notes=tuple(notes),
        ),
        Table(
            key=f"gate-decisions-{data.name}",
            title=f"gate, {data.name}: lookups saved and memories missed",
            columns=(
                "decider",
                "wording",
                "accuracy, held out",
                "recall of needed, held out",
                "closed, held out",
                "skip at recall 1.0, in sample",
                "skip at recall 0.98, in sample",
                "recall / closed by the cut that misses nothing elsewhere, held out",
                "recall / closed at the shipped cut",
            ),
            rows=tuple(
                _decision_row(decider, key, one, columns[0][key], labels)
                for key, one in found.items()
                if one.answered and key not in same
            ),
            notes=(
                "Closed and skip: share of the utterances that need no memory for which nothing is searched. "
                "Shipped cut: the decider's own, chosen on other data.",
            ),
        ),
    ]
    if settings.runs > 1:
        tables.append(drift_table("gate", data.name, decider.name, runs=columns, labels=labels))
    shipped = decider.thresholds.gate if decider.thresholds else None
    return replies.result(
        "gate",
        data,
        tables=tuple(tables),
        sentences=_sentences(decider.name, data.name, found, same),
        findings={"criteria_beats_plain_gate": _finding(found, same)},
        figures={key: asdict(one) for key, one in found.items()},
        plots=_plots(columns[0], labels, found, same, shipped),
    )


def _separation_rows(
    name: str, found: Mapping[str, GateFigures], same: Mapping[str, str]
) -> tuple[tuple[str, ...], ...]:
    rows = []
    for key, one in found.items():
        if not one.answered or key in same:
            continue
        rows.append(
            (
                name,
                key,
                f"{one.answered} of {one.items}",
                with_interval(number(one.auc), one.auc_interval),
                share(one.best.accuracy if one.best else None),
                number(one.best.at) if one.best and not one.constant else NOTHING,
                signed(one.margin),
                number(one.calibration_error),
            )
        )
    return (*rows, *unread_rows(name, {key: bool(one.answered) for key, one in found.items()}, same, 5))


def _decision_row(
    decider: RecordingDecider, key: str, one: GateFigures, scores: Sequence[float | None], labels: Sequence[bool]
) -> tuple[str, ...]:
    shipped = NOTHING
    if decider.thresholds and key == GATE_CRITERIA.key:
        pairs = [(s, y) for s, y in zip(scores, labels, strict=True) if s is not None]
        s, y = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
        cut = decider.thresholds.gate
        shipped = f"{share(m.recall_at(s, y, cut))} / {share(m.skip_at(s, y, cut))} ({cut:g})"
    if one.constant:
        return (decider.name, key, *[NOTHING] * 6, shipped)
    accuracy, recall, closed = one.held_out_accuracy_interval, one.held_out_recall_interval, one.held_out_skip_interval
    skip = one.skip or {}
    return (
        decider.name,
        key,
        share_with_interval(one.held_out_accuracy, accuracy),
        share_with_interval(one.held_out_recall, recall),
        share_with_interval(one.held_out_skip, closed),
        *(share(skip.get(f"{recall:g}")) for recall in RECALLS),
        f"{share(one.safe_recall)} / {share(one.safe_skip)}",
        shipped,
    )


def _finding(found: Mapping[str, GateFigures], same: Mapping[str, str]) -> Finding:
    criteria, plain = found[GATE_CRITERIA.key], found[GATE_PLAIN.key]
    if GATE_PLAIN.key in same or not criteria.answered or not plain.answered or not criteria.best or not plain.best:
        return Finding(verdict="cannot be told", text="reads no wording")
    if not any((one.auc_interval.low or 0.0) > 0.5 for one in found.values()):
        return Finding(verdict="cannot be told", text="reads the wordings, but is not told from chance in any")
    told = (
        f"criteria {share(criteria.best.accuracy)}, margin {signed(criteria.margin)}, AUC {number(criteria.auc)}; "
        f"plain {share(plain.best.accuracy)}, {signed(plain.margin)}, {number(plain.auc)}"
    )
    better = criteria.best.accuracy > plain.best.accuracy and (criteria.margin or 0.0) > (plain.margin or 0.0)
    return Finding(verdict="reproduced" if better else "not reproduced", text=told)


def _sentences(name: str, data: str, found: Mapping[str, GateFigures], same: Mapping[str, str]) -> tuple[str, ...]:
    chance = [
        f"{key} {one.auc:.2f}"
        for key, one in found.items()
        if key not in same and not one.constant and one.auc is not None and one.auc_interval.holds(0.5)
    ]
    if not chance:
        return ()
    return (f"{name}, {data}: not told from chance (the AUC's interval includes 0.50): {', '.join(chance)}.",)


def _plots(
    columns: Mapping[str, Sequence[float | None]],
    labels: Sequence[bool],
    found: Mapping[str, GateFigures],
    same: Mapping[str, str],
    shipped: float | None,
) -> dict[str, Any]:
    strips, roc, bins = {}, {}, {}
    for key, scores in columns.items():
        if not found[key].answered or found[key].constant or key in same:
            continue
        pairs = [(s, y) for s, y in zip(scores, labels, strict=True) if s is not None]
        best = found[key].best
        strips[key] = {
            "groups": {
                "needs memory": [s for s, y in pairs if y],
                "needs nothing": [s for s, y in pairs if not y],
            },
            "cut": best.at if best else None,
            "shipped": shipped if key == GATE_CRITERIA.key else None,
        }
        if best:
            no, yes, _ = roc_curve([y for _, y in pairs], [s for s, _ in pairs])
            roc[key] = {"no": no.tolist(), "yes": yes.tolist(), "auc": found[key].auc}
        bins[key] = [asdict(one) for one in m.reliability([s for s, _ in pairs], [y for _, y in pairs])]
    return {"strips": strips, "roc": roc, "reliability": bins}


MEASUREMENT = Measurement(
    "gate",
    "Gate: is a lookup worth making?",
    ("persona", "gate_dev"),
    "utterances with needs_memory (gate20, or a list of utterances)",
    evaluate,
    wordings=True,
)
