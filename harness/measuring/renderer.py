"""The shape: is the same fact judged otherwise as JSON than as prose, raw and once rendered?

python -m harness shape --decider sparrow
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from strands_gated_memory.core.questions import Question
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.wordings import RECORD_CRITERIA, RECORD_WORDINGS

from ..data.datasets import Dataset
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .measurement import Measurement
from .options import Settings
from .requests import ask_all, read_wordings, same_answers, unread_notes, unread_rows
from .tables import NOTHING, Finding, Result, Table, signed, with_interval

FORMS = ("raw", "rendered")
Differences = dict[str, dict[tuple[str, bool], list[list[float]]]]
"""Per wording: per form and relevance, JSON minus prose, a list per pair."""


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without a shape probe."""
    if data.shape is None:
        return None
    wordings = (*RECORD_WORDINGS, *read_wordings(settings.wordings, "record"))
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
        f"shape, {decider.name}",
    )
    flat = {
        w.key: [
            replies.scores(0, query, w, name)
            for query in range(len(probe.queries))
            for name in questions
            if name.startswith(f"{w.key} ")
        ]
        for w in wordings
    }
    same = same_answers(flat)
    found: Differences = {}
    for wording in wordings:
        mine: dict[tuple[str, bool], list[list[float]]] = {
            (form, relevant): [[] for _ in probe.pairs] for form in FORMS for relevant in (True, False)
        }
        for at, pair in enumerate(probe.pairs):
            for query in range(len(probe.queries)):
                for form in FORMS:
                    prose, json_score = (
                        replies.scores(0, query, wording, f"{wording.key} {at} {form} {kind}")
                        for kind in ("prose", "json")
                    )
                    if prose is not None and json_score is not None:
                        mine[(form, query in pair.relevant_to)][at].append(json_score - prose)
        found[wording.key] = mine
    read = {key: one for key, one in found.items() if key not in same and any(map(any, one.values()))}
    answered = {key: any(map(any, one.values())) for key, one in found.items()}
    means = {key: {_name(*which): _mean(one[which]) for which in one} for key, one in read.items()}
    return replies.result(
        "shape",
        data,
        tables=(
            Table(
                key=f"shape-{data.name}",
                title=f"shape, {data.name}: mean of P(JSON) minus P(prose) for the same fact",
                columns=(
                    "decider",
                    "wording",
                    "raw, relevant",
                    "raw, irrelevant",
                    "rendered, relevant",
                    "rendered, irrelevant",
                ),
                rows=(
                    *(
                        (
                            decider.name,
                            key,
                            *(_cell(one[(form, relevant)], settings) for form in FORMS for relevant in (True, False)),
                        )
                        for key, one in read.items()
                    ),
                    *unread_rows(decider.name, answered, same, 3),
                ),
                notes=(
                    f"{data.name}: {len(probe.pairs)} facts in both shapes, {len(probe.queries)} queries. 0: no "
                    f"bias. Brackets: bootstrap 95 % intervals over facts ({settings.resamples:,} resamples).",
                    *unread_notes(decider.name, "shape", answered, same),
                ),
            ),
        ),
        findings={"json_above_prose_until_rendered": _finding(read, settings)},
        figures=means,
        plots={"shape": means},
    )


def _name(form: str, relevant: bool) -> str:
    return f"{form}, {'relevant' if relevant else 'irrelevant'}"


def _mean(pairs: list[list[float]]) -> float | None:
    every = [value for one in pairs for value in one]
    return float(np.mean(every)) if every else None


def _interval(pairs: list[list[float]], settings: Settings) -> m.Interval:
    sums = [sum(one) for one in pairs if one]
    counts = [float(len(one)) for one in pairs if one]
    if len(sums) < 2:
        return m.NO_INTERVAL
    return m.interval(m.ratio_rows, sums, counts, seed=settings.seed, resamples=settings.resamples)


def _cell(pairs: list[list[float]], settings: Settings) -> str:
    mean = _mean(pairs)
    if mean is None:
        return NOTHING
    around = _interval(pairs, settings)
    return with_interval(signed(mean), around)


def _finding(found: Mapping[str, Mapping[tuple[str, bool], list[list[float]]]], settings: Settings) -> Finding:
    one = found.get(RECORD_CRITERIA.key)
    if one is None:
        return Finding(verdict="cannot be told", text="it does not answer")
    both: dict[str, list[list[float]]] = {
        form: [a + b for a, b in zip(one[(form, True)], one[(form, False)], strict=True)] for form in FORMS
    }
    raw, rendered = _mean(both["raw"]), _mean(both["rendered"])
    around: dict[str, Any] = {form: _interval(both[form], settings) for form in FORMS}
    if raw is None or rendered is None or not any(map(any, both["raw"])) or not np.any(np.concatenate(both["raw"])):
        return Finding(verdict="cannot be told", text="it does not answer both shapes, or answers all alike")
    above = around["raw"].low is not None and around["raw"].low > 0.0
    told = (
        f"criteria: raw {with_interval(signed(raw), around['raw'])}, "
        f"rendered {with_interval(signed(rendered), around['rendered'])}"
    )
    return Finding(verdict="reproduced" if above and abs(rendered) < raw / 2 else "not reproduced", text=told)


MEASUREMENT = Measurement(
    "shape",
    "Shape: the same fact as prose and as JSON",
    ("persona",),
    "shape_probe",
    evaluate,
    wordings=True,
)
