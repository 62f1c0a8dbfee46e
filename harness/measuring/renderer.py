"""The renderer: does the same fact get another P as JSON than as prose, raw and once rendered?

python -m harness renderer --decider sparrow
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from strands_gated_memory.core.questions import Question
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.wordings import RECORD_CRITERIA, RECORD_WORDINGS, Wording

from ..data.datasets import Dataset
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .measurement import Measurement
from .options import Settings
from .requests import Readings, ask_all
from .tables import Finding, Result, Table, signed, verdict, with_interval
from .wordings import read_wordings

FORMS = ("raw", "rendered")
CASES = tuple((form, relevant) for form in FORMS for relevant in (True, False))
Differences = dict[str, dict[tuple[str, bool], list[list[float]]]]
"""Per wording: per form and relevance, JSON minus prose, a list per pair."""


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without a shape probe."""
    if data.shape is None:
        return None
    wordings = (*RECORD_WORDINGS, *read_wordings(settings.wordings, "validator"))
    probe = data.shape
    questions: dict[str, Question] = {}
    for wording in wordings:
        for at, pair in enumerate(probe.pairs):
            questions[f"{wording.key} {at} raw prose"] = wording.question(pair.prose)
            questions[f"{wording.key} {at} raw json"] = wording.question(pair.json_text)
            questions[f"{wording.key} {at} rendered prose"] = wording.question(render_record(pair.prose))
            questions[f"{wording.key} {at} rendered json"] = wording.question(render_record(pair.json_text))
    replies = ask_all(
        decider,
        [({"message": query, "previous": []}, questions) for query in probe.queries],
        settings,
        f"renderer, {decider.name}",
    )

    def probability(wording: Wording, query: int, name: str) -> float | None:
        return replies.probability(0, query, wording, f"{wording.key} {name}")

    names = [f"{at} {form} {kind}" for at in range(len(probe.pairs)) for form in FORMS for kind in ("prose", "json")]
    positions = range(len(probe.queries))
    readings = Readings.of(
        decider.name, {w.key: [probability(w, query, name) for query in positions for name in names] for w in wordings}
    )
    differences: Differences = {}
    for wording in wordings:
        if wording.key not in readings.own:
            continue
        mine: dict[tuple[str, bool], list[list[float]]] = {which: [[] for _ in probe.pairs] for which in CASES}
        for at, pair in enumerate(probe.pairs):
            for query in positions:
                for form in FORMS:
                    prose, json_score = (
                        probability(wording, query, f"{at} {form} {kind}") for kind in ("prose", "json")
                    )
                    if prose is not None and json_score is not None:
                        mine[(form, query in pair.relevant_to)][at].append(json_score - prose)
        differences[wording.key] = mine
    means = {key: {_name(*which): _mean(each[which]).value for which in each} for key, each in differences.items()}
    return replies.result(
        "renderer",
        data,
        [
            Table(
                key=f"renderer-{data.name}",
                title=f"renderer, {data.name}: mean of P(JSON) minus P(prose) for the same fact",
                columns=("decider", "wording", *(_name(*which) for which in CASES)),
                rows=(
                    *(
                        (decider.name, key, *(_signed_of(_mean(each[which], settings)) for which in CASES))
                        for key, each in differences.items()
                    ),
                    *readings.rows(3),
                ),
                notes=(
                    f"{data.name}: {len(probe.pairs)} facts in both shapes, {len(probe.queries)} queries. 0: no "
                    f"bias. Brackets: bootstrap 95 % intervals over facts ({settings.resamples:,} resamples).",
                    *readings.notes("renderer"),
                ),
            ),
        ],
        findings={"json_above_prose_until_rendered": _finding(differences.get(RECORD_CRITERIA.key), settings)},
        figures=means,
        plots={"renderer": means},
    )


def _name(form: str, relevant: bool) -> str:
    return f"{form}, {'relevant' if relevant else 'irrelevant'}"


def _mean(pairs: list[list[float]], settings: Settings | None = None) -> m.Estimate:
    """Return the mean over all differences; with settings, its interval over facts."""
    every = [difference for pair in pairs for difference in pair]
    mean = float(np.mean(every)) if every else None
    given = [pair for pair in pairs if pair]
    if settings is None or len(given) < 2:
        return m.Estimate(mean)
    around = m.interval(
        m.ratio_rows, [sum(pair) for pair in given], [float(len(pair)) for pair in given], **settings.draw
    )
    return m.Estimate(mean, around)


def _signed_of(estimate: m.Estimate) -> str:
    return with_interval(signed(estimate.value), estimate.interval)


def _finding(each: Mapping[tuple[str, bool], list[list[float]]] | None, settings: Settings) -> Finding:
    if each is None:
        return Finding(verdict="cannot be told", text="it does not answer")
    both = {form: [a + b for a, b in zip(each[(form, True)], each[(form, False)], strict=True)] for form in FORMS}
    raw, rendered = (_mean(both[form], settings) for form in FORMS)
    if (
        raw.value is None
        or rendered.value is None
        or not any(difference for pair in both["raw"] for difference in pair)
    ):
        return Finding(verdict="cannot be told", text="it does not answer both shapes, or answers all alike")
    return verdict(
        (raw.interval.low or 0.0) > 0.0 and abs(rendered.value) < raw.value / 2,
        f"criteria: raw {_signed_of(raw)}, rendered {_signed_of(rendered)}",
    )


MEASUREMENT = Measurement(
    "renderer",
    "Renderer: the same fact as prose and as JSON",
    ("persona",),
    "shape_probe",
    evaluate,
    wordings=True,
)
