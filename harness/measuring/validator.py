"""The validator: does this record belong in the prompt? Every wording of every record in one request per query.

Two things are measured, because a wording may do one and not the other: *separation*, whether one cut on the
pooled answers splits relevant from irrelevant, and *ranking*, whether within a query the relevant come first.

    python -m harness validator --decider sparrow --wordings my_wordings.json
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

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

RANKS_WELL = 0.9
"""Mean AUC within a query, from which on a wording is said to rank well."""
RANKS_BADLY = 0.75
SEPARATES_WELL = 0.8
"""How much of the errors of "nothing is relevant" the best cut removes, from which on it is said to separate well."""
SEPARATES_BADLY = 0.5
GRADES = {2: "must have", 1: "useful", 0: "no bearing"}


@dataclass(frozen=True)
class Answers:
    """One wording's answers on one data set, unanswered ones left out."""

    scores: m.Array
    grades: NDArray[np.int64]
    query: NDArray[np.int64]
    """Position of the query, per record."""


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
    held_out_accuracy: m.Estimate
    held_out_recall: m.Estimate
    wrongly_kept: float | None
    """Records kept per query that needs nothing, held out; None without such a query."""
    ranked_queries: int
    """Queries with both relevant and irrelevant records."""
    mean_auc: m.Estimate
    mean_precision: m.Estimate
    calibration_error: float | None

    @property
    def separation(self) -> float | None:
        """How much of the errors of "nothing is relevant" the best cut removes, 0..1, in sample."""
        return None if not self.best or self.base >= 1.0 else (self.best.accuracy - self.base) / (1.0 - self.base)


def figures_of(answers: Answers, grade: int, settings: Settings) -> ValidatorFigures:
    """Return the figures of one wording's answers, one or more, with records relevant from `grade` on."""
    s, y, draw = answers.scores, answers.grades >= grade, settings.draw
    queries = [answers.query == at for at in np.unique(answers.query)]
    areas = [area for query in queries if (area := m.auc(s[query], y[query])) is not None]
    mixed = [query for query in queries if y[query].any() and not y[query].all()]
    held = m.held_out(s, y, m.best_threshold, groups=answers.query)
    accuracy = recall = m.Estimate()
    wrongly_kept = None
    if held is not None:
        accuracy = m.ratio([(held == y)[query].sum() for query in queries], [query.sum() for query in queries], **draw)
        recall = m.ratio([held[query & y].sum() for query in queries], [y[query].sum() for query in queries], **draw)
        idle = [held[query].sum() for query in queries if not answers.grades[query].any()]
        wrongly_kept = float(np.mean(idle)) if idle else None
    return ValidatorFigures(
        answered=s.size,
        relevant=int(y.sum()),
        constant=bool(np.ptp(s) == 0.0),
        margin=m.margin(s, y),
        best=m.best_cut(s, y),
        base=float((~y).mean()),
        held_out_accuracy=accuracy,
        held_out_recall=recall,
        wrongly_kept=wrongly_kept,
        ranked_queries=len(areas),
        mean_auc=m.mean(areas, **draw),
        mean_precision=m.mean([m.precision_at_relevant(s[query], y[query]) or 0.0 for query in mixed], **draw),
        calibration_error=m.calibration_error(s, y),
    )


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without queries."""
    if not data.queries:
        return None
    wordings = (*RECORD_WORDINGS, *read_wordings(settings.wordings, "validator"))
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
        {w.key: [replies.probability(run, at, w, f"{w.key} {record.id}") for at, record in places] for w in wordings}
        for run in range(settings.runs)
    ]
    readings = Readings.of(decider.name, columns[0])
    answers: dict[str, Answers] = {}
    for key in readings.own:
        given = np.array([score is not None for score in columns[0][key]])
        scores = [score for score in columns[0][key] if score is not None]
        grades, query = np.array([record.grade for _, record in places]), np.array([at for at, _ in places])
        answers[key] = Answers(np.array(scores), grades[given], query[given])
    # Where no record has grade 1, grade 2 alone is relevant.
    relevant_from = (2, 1) if any(record.grade == 1 for _, record in places) else (2,)
    figures = {
        (key, grade): figures_of(answers[key], grade, settings) for key in readings.own for grade in relevant_from
    }
    first = {key: each for (key, grade), each in figures.items() if grade == relevant_from[0]}
    tables = _tables(data, figures, readings, settings)
    if settings.runs > 1:
        labels = [record.grade >= relevant_from[0] for _, record in places]
        tables.append(drift_table("validator", data.name, decider.name, runs=columns, labels=labels))
    plots: ScorePlots = {}
    for key, each in first.items():
        if not each.constant:
            s, grades = answers[key].scores, answers[key].grades
            groups = {name: s[grades == grade].tolist() for grade, name in GRADES.items() if (grades == grade).any()}
            shipped = decider.thresholds.validator if decider.thresholds and key == RECORD_CRITERIA.key else None
            cut = each.best.at if each.best else None
            add_scores(plots, key, s, grades == 2, strip(groups, cut=cut, shipped=shipped))
    return replies.result(
        "validator",
        data,
        tables,
        sentences=sentences(decider.name, data.name, first),
        findings={
            "criteria_beats_plain_validator": _criteria_finding(first),
            "topical_ranks_but_separates_badly": _topical_finding(first, decider.name),
            "counterfactual_at_chance": _counterfactual_finding(first),
        },
        figures={f"{key} from grade {grade}": asdict(each) for (key, grade), each in figures.items()},
        plots=plots,
    )


def _tables(
    data: Dataset, figures: Mapping[tuple[str, int], ValidatorFigures], readings: Readings, settings: Settings
) -> list[Table]:
    total = sum(len(query.records) for query in data.queries)
    idle = sum(query.needs_nothing for query in data.queries)
    notes = [
        f"{data.name}: {len(data.queries)} queries ({idle} need nothing), {total} judgements. Brackets: bootstrap 95 % "
        f"intervals over queries ({settings.resamples:,} resamples). In sample: cut chosen and judged on the same "
        "records. Held out: each query judged by the cut chosen on the other queries. P@k: k = number of relevant "
        "records, ties broken against us. Queries whose records are all alike in relevance are in no ranking figure.",
        *readings.notes("validator"),
    ]
    if partly := {each.answered for each in figures.values() if each.answered < total}:
        notes.append(
            f"{readings.decider} answered {'/'.join(map(str, sorted(partly)))} of {total} judgements; the others are "
            "kept, as in production, and are in no figure."
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
            *((readings.decider, key, str(grade), *_separation(each)) for (key, grade), each in figures.items()),
            *readings.rows(8),
        ),
        notes=tuple(notes),
    )
    ranking = Table(
        key=f"validator-ranking-{data.name}",
        title=f"validator, {data.name}: ranking, within each query",
        columns=("decider", "wording", "relevant from grade", "queries", "mean AUC", "mean P@k"),
        rows=tuple(
            (
                readings.decider,
                key,
                str(grade),
                str(each.ranked_queries),
                number_of(each.mean_auc),
                share_of(each.mean_precision),
            )
            for (key, grade), each in figures.items()
        ),
    )
    return [separation, ranking]


def _separation(each: ValidatorFigures) -> tuple[str, ...]:
    """Return the cells after wording and grade; of answers that are all alike nothing can be cut."""
    cut = [share(each.best.accuracy), number(each.best.at)] if each.best else [NOTHING] * 2
    held = [share_of(each.held_out_accuracy), share_of(each.held_out_recall), number(each.wrongly_kept, 1)]
    if each.constant:
        cut, held = [NOTHING] * 2, [NOTHING] * 3
    return (signed(each.margin), *cut, share(each.base), *held, number(each.calibration_error))


def sentences(name: str, data: str, figures: Mapping[str, ValidatorFigures]) -> tuple[str, ...]:
    """Say for which wordings ranking is good and separation is not, or the reverse."""
    told = []
    for key, each in figures.items():
        if each.mean_auc.value is None or each.separation is None or each.best is None or each.constant:
            continue
        facts = (
            f"mean AUC within a query {each.mean_auc.value:.2f}; best accuracy at one cut {share(each.best.accuracy)} "
            f"where keeping nothing has {share(each.base)}, margin {signed(each.margin)}"
        )
        if each.mean_auc.value >= RANKS_WELL and each.separation < SEPARATES_BADLY:
            told.append(
                f"{name}, {data}, {key}: ranks well and separates badly ({facts}). "
                'Use it with select.mode="ranking"; no fixed threshold will do.'
            )
        elif each.mean_auc.value < RANKS_BADLY and each.separation >= SEPARATES_WELL:
            told.append(
                f"{name}, {data}, {key}: separates well and ranks badly ({facts}). "
                'Use it with select.mode="threshold"; do not cut relative to the best.'
            )
    return tuple(told)


def _readable(
    figures: Mapping[str, ValidatorFigures], *keys: str
) -> list[tuple[ValidatorFigures, m.Cut, float]] | Finding:
    """Return the figures of these wordings with best cut and mean AUC, or why nothing can be told from them.

    A decider that is at chance whatever it is asked says nothing about wordings.
    """
    readable = []
    for key in keys:
        each = figures.get(key)
        if each is None or each.constant or each.best is None or each.mean_auc.value is None:
            return NOT_READ
        readable.append((each, each.best, each.mean_auc.value))
    return readable if any((each.mean_auc.interval.low or 0.0) > 0.5 for each in figures.values()) else AT_CHANCE


def _criteria_finding(figures: Mapping[str, ValidatorFigures]) -> Finding:
    readable = _readable(figures, RECORD_CRITERIA.key, RECORD_PLAIN.key)
    if isinstance(readable, Finding):
        return readable
    (_, cut, area), (_, plain_cut, plain_area) = readable
    return verdict(
        area > plain_area and cut.accuracy > plain_cut.accuracy,
        f"criteria: best accuracy {share(cut.accuracy)}, mean AUC {number(area)}; "
        f"plain: {share(plain_cut.accuracy)}, {number(plain_area)}",
    )


def _topical_finding(figures: Mapping[str, ValidatorFigures], name: str) -> Finding:
    # The cosine reads no wording, but what it measures is topical overlap.
    readable = _readable(figures, RECORD_CRITERIA.key if name == "cosine" else RECORD_TOPICAL.key)
    if isinstance(readable, Finding):
        return readable
    each, cut, area = readable[0]
    return verdict(
        area >= RANKS_WELL and (each.separation or 0.0) < SEPARATES_BADLY,
        ("no wording, nearness itself: " if name == "cosine" else "")
        + f"mean AUC {number(area)}, mean P@k {share(each.mean_precision.value)}; best accuracy "
        f"{share(cut.accuracy)} (keeping nothing: {share(each.base)}), margin {signed(each.margin)}",
    )


def _counterfactual_finding(figures: Mapping[str, ValidatorFigures]) -> Finding:
    readable = _readable(figures, RECORD_COUNTERFACTUAL.key)
    if isinstance(readable, Finding):
        return readable
    each = readable[0][0]
    return verdict(
        each.mean_auc.interval.holds(0.5),
        f"mean AUC {number_of(each.mean_auc)}, mean P@k {share(each.mean_precision.value)}",
    )


MEASUREMENT = Measurement(
    "validator",
    "Validator: does this record belong in the prompt?",
    ("persona", "relevance_dev"),
    "queries with graded records (validator, or personas)",
    evaluate,
    wordings=True,
)
