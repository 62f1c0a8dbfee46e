"""The gate: is a lookup worth making? Every wording in one request per utterance.

python -m harness gate --decider embedded --decider sparrow
python -m harness gate --data my_utterances.json --wordings my_wordings.json --runs 3
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from strands_gated_memory.core.wordings import GATE_CRITERIA, GATE_PLAIN, GATE_WORDINGS

from ..data.datasets import Dataset
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .drift import drift_table
from .measurement import Measurement
from .options import Settings
from .plots import ScorePlots, add_scores, strip
from .requests import Readings, ask_all
from .tables import (
    AT_CHANCE,
    NOT_READ,
    NOTHING,
    Finding,
    Result,
    Table,
    number,
    number_of,
    share,
    share_of,
    signed,
    verdict,
)
from .wordings import read_wordings

RECALLS = (1.0, 0.98)


@dataclass(frozen=True)
class GateFigures:
    """One wording's figures; `held_out_…`: each utterance by a cut that was chosen on others."""

    answered: int
    constant: bool
    """Whether every answer is the same number."""
    auc: m.Estimate
    best: m.Cut | None
    margin: float | None
    skip: tuple[float | None, ...]
    """Share of unneeded lookups avoided, per entry of `RECALLS`, in sample."""
    calibration_error: float | None
    held_out_accuracy: m.Estimate
    held_out_recall: m.Estimate
    held_out_skip: m.Estimate
    safe_recall: m.Estimate
    """Held out, by the cut that misses nothing elsewhere."""
    safe_skip: m.Estimate


def figures_of(scores: Sequence[float | None], labels: Sequence[bool], settings: Settings) -> GateFigures:
    """Return the figures of one wording's answers, one or more; unanswered items are left out."""
    s, y = m.answered(scores, labels)
    held = m.held_out(s, y, m.best_threshold, seed=settings.seed)
    safe = m.held_out(s, y, lambda a, b: m.cut_for_recall(a, b, 1.0), seed=settings.seed)
    return GateFigures(
        answered=s.size,
        constant=bool(np.ptp(s) == 0.0),
        auc=m.Estimate(m.auc(s, y), m.interval(m.auc_rows, s, y, **settings.draw)),
        best=m.best_cut(s, y),
        margin=m.margin(s, y),
        skip=tuple(m.skip_rate(s, y, recall) for recall in RECALLS),
        calibration_error=m.calibration_error(s, y),
        held_out_accuracy=m.Estimate() if held is None else m.mean(held == y, **settings.draw),
        held_out_recall=m.Estimate() if held is None else m.mean(held[y], **settings.draw),
        held_out_skip=m.Estimate() if held is None else m.mean(~held[~y], **settings.draw),
        safe_recall=m.Estimate() if safe is None else m.mean(safe[y], **settings.draw),
        safe_skip=m.Estimate() if safe is None else m.mean(~safe[~y], **settings.draw),
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
        {w.key: [replies.probability(run, at, w, w.key) for at in range(len(labels))] for w in wordings}
        for run in range(settings.runs)
    ]
    readings = Readings.of(decider.name, columns[0])
    figures = {key: figures_of(columns[0][key], labels, settings) for key in readings.own}
    notes = [
        f"{data.name}: {len(labels)} utterances, {sum(labels)} need memory. Brackets: bootstrap 95 % intervals over "
        f"utterances ({settings.resamples:,} resamples). In sample: cut chosen and judged on the same utterances. "
        "Held out: ten stratified folds, each judged by the cut chosen on the other nine.",
        *readings.notes("gate"),
    ]
    if partly := {each.answered for each in figures.values() if each.answered < len(labels)}:
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
            rows=(
                *(
                    (
                        decider.name,
                        key,
                        f"{each.answered} of {len(labels)}",
                        number_of(each.auc),
                        share(each.best.accuracy if each.best else None),
                        number(each.best.at) if each.best and not each.constant else NOTHING,
                        signed(each.margin),
                        number(each.calibration_error),
                    )
                    for key, each in figures.items()
                ),
                *readings.rows(5),
            ),
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
            rows=tuple(_decisions(decider, key, each, columns[0][key], labels) for key, each in figures.items()),
            notes=(
                "Closed and skip: share of the utterances that need no memory for which nothing is searched. "
                "Shipped cut: the decider's own, chosen on other data.",
            ),
        ),
    ]
    if settings.runs > 1:
        tables.append(drift_table("gate", data.name, decider.name, runs=columns, labels=labels))
    chance = [
        f"{key} {each.auc.value:.2f}"
        for key, each in figures.items()
        if not each.constant and each.auc.interval.holds(0.5)
    ]
    plots: ScorePlots = {}
    for key, each in figures.items():
        if not each.constant:
            s, y = m.answered(columns[0][key], labels)
            shipped = decider.thresholds.gate if decider.thresholds and key == GATE_CRITERIA.key else None
            groups = {"needs memory": s[y].tolist(), "needs nothing": s[~y].tolist()}
            add_scores(plots, key, s, y, strip(groups, cut=each.best.at if each.best else None, shipped=shipped))
    return replies.result(
        "gate",
        data,
        tables,
        sentences=[
            f"{decider.name}, {data.name}: not told from chance (the AUC's interval includes 0.50): "
            f"{', '.join(chance)}."
        ]
        if chance
        else [],
        findings={"criteria_beats_plain_gate": _finding(figures)},
        figures={key: asdict(each) for key, each in figures.items()},
        plots=plots,
    )


def _decisions(
    decider: RecordingDecider, key: str, each: GateFigures, scores: Sequence[float | None], labels: Sequence[bool]
) -> tuple[str, ...]:
    shipped = NOTHING
    if decider.thresholds and key == GATE_CRITERIA.key:
        s, y = m.answered(scores, labels)
        cut = decider.thresholds.gate
        shipped = f"{share(m.recall_at(s, y, cut))} / {share(m.skip_at(s, y, cut))} ({cut:g})"
    if each.constant:
        return (decider.name, key, *[NOTHING] * 6, shipped)
    return (
        decider.name,
        key,
        share_of(each.held_out_accuracy),
        share_of(each.held_out_recall),
        share_of(each.held_out_skip),
        *map(share, each.skip),
        f"{share(each.safe_recall.value)} / {share(each.safe_skip.value)}",
        shipped,
    )


def _finding(figures: Mapping[str, GateFigures]) -> Finding:
    criteria, plain = figures.get(GATE_CRITERIA.key), figures.get(GATE_PLAIN.key)
    if criteria is None or plain is None or not criteria.best or not plain.best:
        return NOT_READ
    if not any((each.auc.interval.low or 0.0) > 0.5 for each in figures.values()):
        return AT_CHANCE
    return verdict(
        criteria.best.accuracy > plain.best.accuracy and (criteria.margin or 0.0) > (plain.margin or 0.0),
        f"criteria {share(criteria.best.accuracy)}, margin {signed(criteria.margin)}, AUC {number(criteria.auc.value)}"
        f"; plain {share(plain.best.accuracy)}, {signed(plain.margin)}, {number(plain.auc.value)}",
    )


MEASUREMENT = Measurement(
    "gate",
    "Gate: is a lookup worth making?",
    ("persona", "gate_dev"),
    "utterances with needs_memory (gate20, or a list of utterances)",
    evaluate,
    wordings=True,
)
