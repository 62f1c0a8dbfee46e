"""Selection: threshold against ranking against hybrid, on probabilities that have drifted since the cuts were chosen.

A hosted model's level moves between releases and runs while its order stays. So each policy's cuts are chosen on
probabilities as answered (each query by the other queries), then applied to the same probabilities with their log
odds shifted, or squeezed around their mean. What the package's own `select` keeps is judged.

    python -m harness selection --decider embedded --decider cosine
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from strands_gated_memory.core.questions import Thresholds
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.select import select
from strands_gated_memory.core.types import Record, Row
from strands_gated_memory.core.wordings import RECORD_CRITERIA
from strands_gated_memory.policy import SelectMode, SelectSettings

from ..data.datasets import Dataset
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .measurement import Measurement
from .options import Settings
from .requests import ask_all
from .tables import NOT_ANSWERED, NOTHING, Result, Table, number, share, with_interval

MODES: tuple[SelectMode, ...] = ("threshold", "ranking", "hybrid")
RECALL = 0.95
"""Share of must-haves that chosen cuts have to keep on the queries they are chosen on."""
SHIFTS = (-1.0, -0.5, 0.5, 1.0)
SQUEEZES = (0.75, 0.5)
FINE_SHIFTS = tuple(float(d) for d in np.linspace(-2, 2, 17))
FINE_SQUEEZES = tuple(float(d) for d in np.linspace(0.2, 1.4, 13))
RELATIVES = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
TITLES = {"f1": "F1 of the records kept", "recall": "share of must-haves kept", "kept": "records kept per query"}
Drift = Callable[[m.Array], m.Array]
_EDGE = 1e-6
"""Probabilities nearer to 0 or 1 than this are taken to be this near: their log odds have to be finite."""
_UNLIMITED: dict[str, Any] = {"dedupe": False, "max_records": None, "max_context_tokens": None}


@dataclass(frozen=True)
class Scored:
    """One query's records."""

    probabilities: m.Array
    grades: NDArray[np.int64]


@dataclass(frozen=True)
class Kept:
    """What a policy keeps, per query."""

    hits: m.Array
    """Relevant records kept."""
    kept: m.Array
    relevant: m.Array
    must_haves_kept: m.Array
    must_haves: m.Array

    @property
    def f1(self) -> float:
        """F1 over all records."""
        return float(_f1_rows(self.hits, self.kept, self.relevant))

    @property
    def recall(self) -> float | None:
        """Share of must-haves kept."""
        total = self.must_haves.sum()
        return float(self.must_haves_kept.sum() / total) if total else None

    @property
    def mean(self) -> float:
        """Records kept per query."""
        return float(self.kept.mean())

    def cells(self, settings: Settings | None) -> dict[str, str]:
        """Return F1, recall and mean as text; with settings, each with its interval."""
        texts = {"f1": number(self.f1), "recall": number(self.recall), "kept": number(self.mean, 1)}
        if settings is None:
            return texts
        f1 = m.interval(_f1_rows, self.hits, self.kept, self.relevant, **settings.draw)
        recall = m.interval(m.ratio_rows, self.must_haves_kept, self.must_haves, **settings.draw)
        kept = m.interval(m.mean_rows, self.kept, **settings.draw)
        return {
            "f1": with_interval(texts["f1"], f1),
            "recall": with_interval(texts["recall"], recall),
            "kept": with_interval(texts["kept"], kept, 1),
        }


def _f1_rows(hits: m.Array, kept: m.Array, relevant: m.Array) -> m.Array:
    f1: m.Array = 2 * hits.sum(axis=-1) / np.maximum(1, kept.sum(axis=-1) + relevant.sum(axis=-1))
    return f1


def kept_by(queries: Sequence[Scored], mode: SelectMode, cuts: Sequence[Thresholds], grade: int) -> Kept:
    """Return what the package's selection keeps.

    Args:
        queries: Probabilities and grades.
        mode: The policy.
        cuts: Per query.
        grade: From which on a record is relevant.
    """
    settings = SelectSettings(mode=mode, **_UNLIMITED)
    rows = []
    for query, cut in zip(queries, cuts, strict=True):
        judged = [Row(Record("", ""), probability=float(p)) for p in query.probabilities]
        selected = select(judged, settings, cut, "user_context").rows
        keep = np.array([row.reason is None for row in selected], np.bool_)
        relevant, must = query.grades >= grade, query.grades == 2
        rows.append([flags.sum() for flags in (keep & relevant, keep, relevant, keep & must, must)])
    return Kept(*np.array(rows, np.float64).T)


def choose_cuts(queries: Sequence[Scored], mode: SelectMode, grade: int) -> Thresholds:
    """Return the cuts with the best F1 among those that keep `RECALL` of the must-haves, else with the best recall."""
    p = np.concatenate([query.probabilities for query in queries])
    y = np.concatenate([query.grades >= grade for query in queries])
    must = np.concatenate([query.grades == 2 for query in queries])
    best = np.concatenate([np.full(q.probabilities.size, q.probabilities.max()) for q in queries])
    levels = np.unique(np.quantile(p, np.linspace(0, 1, 41), method="lower")) if mode != "ranking" else np.zeros(1)
    relatives = np.array(RELATIVES if mode != "threshold" else (0.0,))
    pairs = np.array(list(itertools.product(levels, relatives)))
    keep = (p >= pairs[:, :1]) & (p >= pairs[:, 1:] * best)
    f1 = 2 * (keep & y).sum(1) / np.maximum(1, keep.sum(1) + y.sum())
    recall = (keep & must).sum(1) / max(1, must.sum())
    # F1 decides among cuts that keep enough; else recall does. Ties: the lower cuts.
    order = np.lexsort((-pairs[:, 1], -pairs[:, 0], f1, np.minimum(recall, RECALL)))
    level, relative = pairs[order[-1]]
    return Thresholds(gate=0.0, router=0.0, validator=float(level), relative=float(relative))


def shifted(p: m.Array, by: float) -> m.Array:
    """Return probabilities with their log odds shifted."""
    moved: m.Array = expit(logit(np.clip(p, _EDGE, 1 - _EDGE)) + by)
    return moved


def squeezed(p: m.Array, factor: float, centre: float) -> m.Array:
    """Return probabilities with their log odds squeezed around a centre, in log odds; a factor above 1 spreads."""
    moved: m.Array = expit(centre + factor * (logit(np.clip(p, _EDGE, 1 - _EDGE)) - centre))
    return moved


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without queries."""
    if not data.queries:
        return None
    requests = [
        (query.state, {record.id: RECORD_CRITERIA.question(render_record(record.text)) for record in query.records})
        for query in data.queries
    ]
    replies = ask_all(decider, requests, settings, f"selection, {decider.name}")
    queries: list[Scored] = []
    for at, query in enumerate(data.queries):
        pairs = [(replies.probability(0, at, RECORD_CRITERIA, record.id), record.grade) for record in query.records]
        known = [(p, grade) for p, grade in pairs if p is not None]
        if known:
            queries.append(Scored(np.array([p for p, _ in known]), np.array([grade for _, grade in known], np.int64)))
    grade = 1 if any((query.grades == 1).any() for query in queries) else 2
    notes = [
        f"{data.name}: {len(data.queries)} queries. A record is relevant from grade {grade} on; must-have is grade 2. "
        "Each query's cuts are chosen on the other queries as answered (best F1 that keeps "
        f"{share(RECALL)} of the must-haves), then applied to drifted probabilities: log odds shifted by that much, or "
        "squeezed around their mean by that factor. Limits are off. Brackets: bootstrap 95 % intervals over queries "
        f"({settings.resamples:,} resamples)."
    ]
    if 0 < len(queries) < len(data.queries):
        notes.append(f"{decider.name} answered {len(queries)} of {len(data.queries)} queries; the others are left out.")
    every = np.concatenate([query.probabilities for query in queries]) if queries else np.zeros(0)
    centre = float(logit(np.clip(every, _EDGE, 1 - _EDGE)).mean()) if every.size else 0.0
    drifts: dict[str, Drift] = {
        "as answered": lambda p: p,
        **{f"shift {by:+g}": partial(shifted, by=by) for by in SHIFTS},
        **{f"squeeze {factor:g}": partial(squeezed, factor=factor, centre=centre) for factor in SQUEEZES},
    }
    rows: dict[str, list[tuple[str, ...]]] = {which: [] for which in TITLES}
    curves: dict[str, Any] = {}
    figures: dict[str, Any] = {}
    if len(queries) > 1 and len(np.unique(every)) > 1:
        for name, mode, cuts in _policies(queries, decider, grade):

            def kept(drift: Drift, mode: SelectMode = mode, cuts: Sequence[Thresholds] = cuts) -> Kept:
                return kept_by([Scored(drift(q.probabilities), q.grades) for q in queries], mode, cuts, grade)

            outcomes = {drift_name: kept(drift) for drift_name, drift in drifts.items()}
            figures[name] = {
                drift_name: {"f1": outcome.f1, "recall": outcome.recall, "kept": outcome.mean}
                for drift_name, outcome in outcomes.items()
            }
            cells = [outcome.cells(settings if at == 0 else None) for at, outcome in enumerate(outcomes.values())]
            for which, group in rows.items():
                group.append((decider.name, name, *(cell[which] for cell in cells)))
            curves[name] = {
                "shift": [(by, kept(partial(shifted, by=by)).f1) for by in FINE_SHIFTS],
                "squeeze": [(f, kept(partial(squeezed, factor=f, centre=centre)).f1) for f in FINE_SQUEEZES],
            }
    else:
        said = NOT_ANSWERED if not queries else "keeps everything"
        for group in rows.values():
            group.append((decider.name, said, *[NOTHING] * len(drifts)))
    return replies.result(
        "selection",
        data,
        tables=tuple(
            Table(
                key=f"selection-{which}-{data.name}",
                title=f"selection, {data.name}: {TITLES[which]}, held out",
                columns=("decider", "policy", *drifts),
                rows=tuple(group),
                notes=tuple(notes) if which == "f1" else (),
            )
            for which, group in rows.items()
        ),
        sentences=_sentences(decider.name, data.name, figures),
        figures=figures,
        plots={"drift": curves} if curves else {},
    )


def _policies(
    queries: Sequence[Scored], decider: RecordingDecider, grade: int
) -> list[tuple[str, SelectMode, list[Thresholds]]]:
    found: list[tuple[str, SelectMode, list[Thresholds]]] = []
    for mode in MODES:
        cuts = [
            choose_cuts([one for at, one in enumerate(queries) if at != left_out], mode, grade)
            for left_out in range(len(queries))
        ]
        found.append((mode, mode, cuts))
    if decider.thresholds and decider.thresholds.relative is not None:
        own = decider.thresholds
        name = f"shipped hybrid ({own.validator:g}, {own.relative:g})"
        found.append((name, "hybrid", [own] * len(queries)))
    return found


def _sentences(name: str, data: str, figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> tuple[str, ...]:
    chosen = {mode: figures[mode] for mode in MODES if mode in figures}
    if not chosen:
        return ()
    span = {mode: [one["f1"] for one in drifts.values()] for mode, drifts in chosen.items()}
    told = ", ".join(f"{mode} {min(values):.2f} to {max(values):.2f}" for mode, values in span.items())
    steadiest = min(span, key=lambda mode: max(span[mode]) - min(span[mode]))
    highest = max(span, key=lambda mode: min(span[mode]))
    return (f"{name}, {data}: F1 over all drifts: {told}. Steadiest: {steadiest}; highest at its worst: {highest}.",)


MEASUREMENT = Measurement(
    "selection",
    "Selection: threshold, ranking or hybrid, when probabilities drift",
    ("persona", "relevance_dev"),
    "queries with graded records (validator, or personas)",
    evaluate,
)
