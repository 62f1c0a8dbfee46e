"""The validator: does this record belong in the prompt? Every wording of every record in one request per query.

Two things are measured, because a wording may do one and not the other: *separation*, whether one cut on the
pooled judgements splits relevant from irrelevant, and *ranking*, whether within a query the relevant come first.

    python -m harness validator --decider sparrow --wordings my_wordings.json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_curve

from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.wordings import (
    RECORD_COUNTERFACTUAL,
    RECORD_CRITERIA,
    RECORD_PLAIN,
    RECORD_TOPICAL,
    RECORD_WORDINGS,
)

from ..data.datasets import Dataset
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .drift import drift_table
from .measurement import Measurement
from .options import Settings
from .requests import ask_all, read_wordings, same_answers, unread_notes, unread_rows
from .tables import (
    NOTHING,
    Finding,
    Result,
    Table,
    number,
    share,
    share_with_interval,
    signed,
    with_interval,
)

RANKS_WELL = 0.9
"""Mean AUC within a query, from which on a wording is said to rank well."""
RANKS_BADLY = 0.75
SEPARATES_WELL = 0.8
"""How much of the errors of "nothing is relevant" the best cut removes, from which on it is said to separate well."""
SEPARATES_BADLY = 0.5


@dataclass(frozen=True)
class Judged:
    """One wording's answers on one data set, unanswered ones left out."""

    scores: m.Array
    grades: NDArray[np.int64]
    query: NDArray[np.int64]
    """Position of the query, per record."""
    records: int
    """Answered or not."""


@dataclass(frozen=True)
class ValidatorFigures:
    """One wording's figures, a record being relevant from one grade on."""

    answered: int
    relevant: int
    constant: bool
    margin: float | None
    best: m.Cut | None
    base: float
    """Accuracy of "nothing is relevant"."""
    held_out_accuracy: float | None
    held_out_accuracy_interval: m.Interval
    held_out_recall: float | None
    held_out_recall_interval: m.Interval
    wrongly_kept: float | None
    """Records kept per query that needs nothing, held out; None without such a query."""
    ranked_queries: int
    """Queries with both relevant and irrelevant records."""
    mean_auc: float | None
    mean_auc_interval: m.Interval
    mean_precision: float | None
    mean_precision_interval: m.Interval
    calibration_error: float | None

    @property
    def separation(self) -> float | None:
        """How much of the errors of "nothing is relevant" the best cut removes, 0..1, in sample."""
        return None if not self.best or self.base >= 1.0 else (self.best.accuracy - self.base) / (1.0 - self.base)


def figures_of(judged: Judged, grade: int, settings: Settings) -> ValidatorFigures | None:
    """Return the figures of one wording with records relevant from `grade` on; None without answers."""
    s, q = judged.scores, judged.query
    if not s.size:
        return None
    y = judged.grades >= grade
    draw: dict[str, Any] = {"seed": settings.seed, "resamples": settings.resamples}
    queries = np.unique(q)
    each = [(s[q == one], y[q == one]) for one in queries]
    areas = [area for pair in each if (area := m.auc(*pair)) is not None]
    precisions = [p for a, b in each if b.any() and not b.all() and (p := m.precision_at_relevant(a, b)) is not None]
    held = m.held_out(s, y, lambda a, b: cut.at if (cut := m.best_cut(a, b)) else None, groups=q)
    accuracy, recall = m.NO_INTERVAL, m.NO_INTERVAL
    if held:
        right = np.array([float((held.kept[q == one] == y[q == one]).sum()) for one in queries])
        found = np.array([float(held.kept[(q == one) & y].sum()) for one in queries])
        accuracy = m.interval(m.ratio_rows, right, [float((q == one).sum()) for one in queries], **draw)
        recall = m.interval(m.ratio_rows, found, [float(y[q == one].sum()) for one in queries], **draw)
    idle = [one for one in queries if not judged.grades[q == one].any()]
    return ValidatorFigures(
        answered=s.size,
        relevant=int(y.sum()),
        constant=bool(np.ptp(s) == 0.0),
        margin=m.margin(s, y),
        best=m.best_cut(s, y),
        base=float((~y).mean()),
        held_out_accuracy=held.accuracy(y) if held else None,
        held_out_accuracy_interval=accuracy,
        held_out_recall=held.recall(y) if held else None,
        held_out_recall_interval=recall,
        wrongly_kept=float(np.mean([held.kept[q == one].sum() for one in idle])) if held and idle else None,
        ranked_queries=len(areas),
        mean_auc=float(np.mean(areas)) if areas else None,
        mean_auc_interval=m.interval(m.mean_rows, areas, **draw) if areas else m.NO_INTERVAL,
        mean_precision=float(np.mean(precisions)) if precisions else None,
        mean_precision_interval=m.interval(m.mean_rows, precisions, **draw) if precisions else m.NO_INTERVAL,
        calibration_error=m.calibration_error(s, y),
    )


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without queries."""
    if not data.queries:
        return None
    wordings = (*RECORD_WORDINGS, *read_wordings(settings.wordings, "record"))
    places = [(at, record) for at, query in enumerate(data.queries) for record in query.records]
    requests = [
        (
            query.state,
            {
                f"{wording.key} {record.id}": wording.question(render_record(record.text))
                for wording in wordings
                for record in query.records
            },
        )
        for query in data.queries
    ]
    replies = ask_all(decider, requests, settings, f"validator, {decider.name}")
    columns = [
        {w.key: [replies.scores(run, at, w, f"{w.key} {record.id}") for at, record in places] for w in wordings}
        for run in range(settings.runs)
    ]
    same = same_answers(columns[0])
    judged = {key: _judged(scores, places) for key, scores in columns[0].items()}
    grades = _grades(data)
    found = {
        (key, grade): one
        for key, answers in judged.items()
        if key not in same
        for grade in grades
        if (one := figures_of(answers, grade, settings)) is not None
    }
    has_answers = {key: bool(one.scores.size) for key, one in judged.items()}
    tables = _tables(data, decider, found=found, has_answers=has_answers, same=same, settings=settings)
    if settings.runs > 1:
        labels = [record.grade >= grades[0] for _, record in places]
        tables.append(drift_table("validator", data.name, decider.name, runs=columns, labels=labels))
    first = {key: one for (key, grade), one in found.items() if grade == grades[0]}
    return replies.result(
        "validator",
        data,
        tables=tuple(tables),
        sentences=sentences(decider.name, data.name, first),
        findings={
            "criteria_beats_plain_validator": _criteria_finding(first),
            "topical_ranks_but_separates_badly": _topical_finding(first, decider.name),
            "counterfactual_at_chance": _counterfactual_finding(first),
        },
        figures={f"{key} from grade {grade}": asdict(one) for (key, grade), one in found.items()},
        plots=_plots(judged, first, decider),
    )


def _judged(scores: Sequence[float | None], places: Sequence[tuple[int, Any]]) -> Judged:
    known = [(score, record.grade, at) for score, (at, record) in zip(scores, places, strict=True) if score is not None]
    return Judged(
        np.array([one[0] for one in known], np.float64),
        np.array([one[1] for one in known], np.int64),
        np.array([one[2] for one in known], np.int64),
        len(scores),
    )


def _grades(data: Dataset) -> tuple[int, ...]:
    """Return from which grades on a record counts as relevant: 2 alone where no record has grade 1."""
    graded = {record.grade for query in data.queries for record in query.records}
    return (2, 1) if 1 in graded else (2,)


def _tables(
    data: Dataset,
    decider: RecordingDecider,
    *,
    found: Mapping[tuple[str, int], ValidatorFigures],
    has_answers: Mapping[str, bool],
    same: Mapping[str, str],
    settings: Settings,
) -> list[Table]:
    total = sum(len(query.records) for query in data.queries)
    idle = sum(query.needs_nothing for query in data.queries)
    partly = {one.answered for one in found.values() if one.answered < total}
    notes = [
        f"{data.name}: {len(data.queries)} queries ({idle} need nothing), {total} judgements. Brackets: bootstrap 95 % "
        f"intervals over queries ({settings.resamples:,} resamples). In sample: cut chosen and judged on the same "
        "records. Held out: each query judged by the cut chosen on the other queries. P@k: k = number of relevant "
        "records, ties broken against us. Queries whose records are all alike in relevance are in no ranking figure.",
        *unread_notes(decider.name, "validator", has_answers, same),
    ]
    if partly:
        notes.append(
            f"{decider.name} answered {'/'.join(map(str, sorted(partly)))} of {total} judgements; the others are kept, "
            "as in production, and are in no figure."
        )
    separation = Table(
        key=f"validator-separation-{data.name}",
        title=f"validator, {data.name}: separation, all judgements pooled",
        columns=(
            "decider",
            "wording",
            "relevant from grade",
            "pooled margin",
            "best accuracy, in sample",
            "cut",
            "accuracy of keeping nothing",
            "accuracy, held out",
            "recall of relevant, held out",
            "wrongly kept per query that needs nothing, held out",
            "ECE",
        ),
        rows=(
            *(_separation_row(decider.name, key, grade, one) for (key, grade), one in found.items()),
            *unread_rows(decider.name, has_answers, same, 8),
        ),
        notes=tuple(notes),
    )
    ranking = Table(
        key=f"validator-ranking-{data.name}",
        title=f"validator, {data.name}: ranking, within each query",
        columns=("decider", "wording", "relevant from grade", "queries", "mean AUC", "mean P@k"),
        rows=tuple(
            (
                decider.name,
                key,
                str(grade),
                str(one.ranked_queries),
                with_interval(number(one.mean_auc), one.mean_auc_interval),
                share_with_interval(one.mean_precision, one.mean_precision_interval),
            )
            for (key, grade), one in found.items()
        ),
    )
    return [separation, ranking]


def _separation_row(name: str, key: str, grade: int, one: ValidatorFigures) -> tuple[str, ...]:
    if one.constant:
        return (
            name,
            key,
            str(grade),
            signed(one.margin),
            *[NOTHING] * 2,
            share(one.base),
            *[NOTHING] * 3,
            number(one.calibration_error),
        )
    accuracy, recall = one.held_out_accuracy_interval, one.held_out_recall_interval
    return (
        name,
        key,
        str(grade),
        signed(one.margin),
        share(one.best.accuracy if one.best else None),
        number(one.best.at if one.best else None),
        share(one.base),
        share_with_interval(one.held_out_accuracy, accuracy),
        share_with_interval(one.held_out_recall, recall),
        number(one.wrongly_kept, 1),
        number(one.calibration_error),
    )


def sentences(name: str, data: str, found: Mapping[str, ValidatorFigures]) -> tuple[str, ...]:
    """Say for which wordings ranking is good and separation is not, or the reverse."""
    told = []
    for key, one in found.items():
        if one.mean_auc is None or one.separation is None or one.best is None or one.constant:
            continue
        facts = (
            f"mean AUC within a query {one.mean_auc:.2f}; best accuracy at one cut {share(one.best.accuracy)} where "
            f"keeping nothing has {share(one.base)}, margin {signed(one.margin)}"
        )
        if one.mean_auc >= RANKS_WELL and one.separation < SEPARATES_BADLY:
            told.append(
                f"{name}, {data}, {key}: ranks well and separates badly ({facts}). "
                'Use it with select.mode="ranking"; no fixed threshold will do.'
            )
        elif one.mean_auc < RANKS_BADLY and one.separation >= SEPARATES_WELL:
            told.append(
                f"{name}, {data}, {key}: separates well and ranks badly ({facts}). "
                'Use it with select.mode="threshold"; do not cut relative to the best.'
            )
    return tuple(told)


_UNREAD = Finding(verdict="cannot be told", text="reads no wording")
_CHANCE = Finding(verdict="cannot be told", text="reads the wordings, but is not told from chance in any")


def _told(found: Mapping[str, ValidatorFigures], *keys: str) -> list[tuple[ValidatorFigures, m.Cut, float]] | Finding:
    """Return the figures of these wordings with best cut and mean AUC, or why nothing can be told from them.

    A decider that is at chance whatever it is asked says nothing about wordings.
    """
    told = []
    for key in keys:
        one = found.get(key)
        if one is None or one.constant or one.best is None or one.mean_auc is None:
            return _UNREAD
        told.append((one, one.best, one.mean_auc))
    if not any((one.mean_auc_interval.low or 0.0) > 0.5 for one in found.values()):
        return _CHANCE
    return told


def _criteria_finding(found: Mapping[str, ValidatorFigures]) -> Finding:
    told = _told(found, RECORD_CRITERIA.key, RECORD_PLAIN.key)
    if isinstance(told, Finding):
        return told
    (_, cut, area), (_, plain_cut, plain_area) = told
    return Finding(
        verdict="reproduced" if area > plain_area and cut.accuracy > plain_cut.accuracy else "not reproduced",
        text=f"criteria: best accuracy {share(cut.accuracy)}, mean AUC {number(area)}; "
        f"plain: {share(plain_cut.accuracy)}, {number(plain_area)}",
    )


def _topical_finding(found: Mapping[str, ValidatorFigures], name: str) -> Finding:
    # The cosine reads no wording, but what it measures is topical overlap.
    told = _told(found, RECORD_CRITERIA.key if name == "cosine" else RECORD_TOPICAL.key)
    if isinstance(told, Finding):
        return told
    one, cut, area = told[0]
    shows = area >= RANKS_WELL and (one.separation or 0.0) < SEPARATES_BADLY
    return Finding(
        verdict="reproduced" if shows else "not reproduced",
        text=("no wording, nearness itself: " if name == "cosine" else "")
        + f"mean AUC {number(area)}, mean P@k {share(one.mean_precision)}; best accuracy "
        f"{share(cut.accuracy)} (keeping nothing: {share(one.base)}), margin {signed(one.margin)}",
    )


def _counterfactual_finding(found: Mapping[str, ValidatorFigures]) -> Finding:
    told = _told(found, RECORD_COUNTERFACTUAL.key)
    if isinstance(told, Finding):
        return told
    one, _, area = told[0]
    return Finding(
        verdict="reproduced" if one.mean_auc_interval.holds(0.5) else "not reproduced",
        text=f"mean AUC {with_interval(number(area), one.mean_auc_interval)}, mean P@k {share(one.mean_precision)}",
    )


def _plots(
    judged: Mapping[str, Judged], found: Mapping[str, ValidatorFigures], decider: RecordingDecider
) -> dict[str, Any]:
    strips, roc, bins = {}, {}, {}
    for key, one in found.items():
        if one.constant:
            continue
        answers = judged[key]
        s, y = answers.scores, answers.grades == 2
        strips[key] = {
            "groups": {
                name: s[answers.grades == grade].tolist()
                for grade, name in ((2, "must have"), (1, "useful"), (0, "no bearing"))
                if (answers.grades == grade).any()
            },
            "cut": one.best.at if one.best else None,
            "shipped": decider.thresholds.validator if decider.thresholds and key == RECORD_CRITERIA.key else None,
        }
        if y.any() and not y.all():
            no, yes, _ = roc_curve(y, s)
            roc[key] = {"no": no.tolist(), "yes": yes.tolist(), "auc": m.auc(s, y)}
        bins[key] = [asdict(each) for each in m.reliability(s, y)]
    return {"strips": strips, "roc": roc, "reliability": bins}


MEASUREMENT = Measurement(
    "validator",
    "Validator: does this record belong in the prompt?",
    ("persona", "relevance_dev"),
    "queries with graded records (validator, or personas)",
    evaluate,
    wordings=True,
)
