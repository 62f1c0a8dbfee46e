"""`fit`: labels to one file of thresholds, and heads where asked for.

The file is read by `RecallPolicy.from_file(path)` and by the decider `"fitted:<path>"`. Figures in it and in the
tables are in sample (too good) and cross-validated: each fold, whole turns and queries, measured by what was fitted
on the others. Nothing is called held out but a file given as `--held-out`.
"""

from __future__ import annotations

import argparse
import datetime
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from strands_gated_memory.core.fitted import (
    STAGES,
    Fitted,
    FittedSelect,
    FittedStage,
    LogisticHead,
    Stage,
    StageFigures,
)
from strands_gated_memory.core.questions import Noul, Question, Reply, State
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.specs import NAMES, specs_in
from strands_gated_memory.core.wordings import GATE_CRITERIA, RECORD_CRITERIA, ROUTE_CRITERIA, WORDINGS, Wording
from strands_gated_memory.embedded.logistic import INPUTS, features_of
from strands_gated_memory.fitted_file import read_fitted

from ..data.datasets import Dataset, load
from ..errors import HarnessError
from ..measuring.metrics import NO_INTERVAL, Interval
from ..measuring.options import add_common, datasets_of, deciders_of, refuse_errors
from ..measuring.tables import Result, Table, number, save, share, show, with_interval
from ..recording.deciders import BASELINES
from ..recording.recorder import RecordingDecider
from .cuts import Cut, Goal, Labelled, Mode, choose, figures, folds, intervals, judged_by, with_head

DEFAULT_DATA = ("gate_dev", "relevance_dev")
MIN_RECALL = 0.98
_DEFAULTS: Mapping[Stage, Wording] = {"gate": GATE_CRITERIA, "router": ROUTE_CRITERIA, "validator": RECORD_CRITERIA}


@dataclass(frozen=True)
class _Asked:
    """One question and its label."""

    state: State
    question: Question
    must: bool
    waste: bool


@dataclass
class _Stage:
    """What was asked for one stage, in groups of one request each."""

    wording: Wording
    requests: list[list[_Asked]]
    left_out: int = 0
    """Questions without an answer: the model cannot read them."""


@dataclass(frozen=True)
class _Fit:
    """What came out for one stage."""

    labelled: Labelled
    cut: Cut
    head: LogisticHead | None
    figures: StageFigures
    intervals: Mapping[str, Interval]
    """Of the cross-validated figures."""


@dataclass(frozen=True)
class _Plan:
    """How to fit."""

    goal: Goal
    heads: bool
    select: Mode
    seed: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_common(parser)
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument(
        "--min-recall",
        type=_share,
        metavar="R",
        help=f"least share of what is needed that each stage keeps, 0..1 (default: {MIN_RECALL})",
    )
    goal.add_argument(
        "--cost-ratio", type=_positive, metavar="C", help="what one that is missed costs, in needless ones, such as 20"
    )
    parser.add_argument(
        "--heads", action="store_true", help="also fit logistic heads on the embedded model's features (embedded only)"
    )
    parser.add_argument("--select", choices=("threshold", "ranking", "hybrid"), default="hybrid", help="of the records")
    parser.add_argument(
        "--wording",
        action="append",
        default=[],
        metavar="ID",
        help="a published wording in place of the default one, such as record/topical; repeatable",
    )
    parser.add_argument("--stage", action="append", choices=STAGES, help="fit this stage alone; repeatable")
    parser.add_argument("--held-out", type=Path, action="append", metavar="FILE", help="labels to measure on alone")
    parser.add_argument(
        "--to", type=Path, metavar="FILE", default=Path("fitted.json"), help="the file to write (default: %(default)s)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Fit, print the figures and write the file."""
    if len(arguments.decider or []) > 1 or arguments.runs > 1:
        raise HarnessError("fit takes one --decider and one run")
    spec = (arguments.decider or ["embedded"])[0]
    if any(one.partition(":")[0] in (*BASELINES, "fitted") for one in specs_in(spec, (*BASELINES, *NAMES))):
        raise HarnessError(f"fit cannot write a file for {spec!r}: it must name a decider that an agent can use")
    if arguments.heads and spec != "embedded":
        raise HarnessError(f"--heads are fitted on the embedded model's features; leave the option out for {spec!r}")
    goal = Goal(cost_ratio=arguments.cost_ratio) if arguments.cost_ratio else Goal(arguments.min_recall or MIN_RECALL)
    plan = _Plan(goal, arguments.heads, arguments.select, arguments.seed)
    wordings = _wordings(arguments.wording)
    data = datasets_of(arguments, DEFAULT_DATA)
    held_out = [load(path) for path in arguments.held_out or ()]
    _refuse_shared(data, held_out)
    console = Console()
    console.width = max(console.width, 118)  # narrower, the figures would be cut
    with deciders_of(arguments)[0] as decider:
        decider.warm()
        models: set[str] = set()
        fits: dict[Stage, _Fit] = {}
        stages: dict[Stage, FittedStage] = {}
        notes: list[str] = []
        for name in arguments.stage or STAGES:
            asked = _stage(name, wordings[name], data)
            if not asked.requests:
                notes.append(f"{name}: the data has no labels for it, so nothing was fitted")
                continue
            labelled = _labelled(name, asked, decider, models, with_features=arguments.heads)
            apart = _stage(name, wordings[name], held_out)
            other = _labelled(name, apart, decider, models, with_features=arguments.heads) if apart.requests else None
            try:
                fits[name] = _fit(name, labelled, plan, other)
            except HarnessError as error:
                notes.append(f"{name}: not fitted: {error}")
                continue
            if asked.left_out:
                notes.append(f"{name}: {asked.left_out} labels are left out, as {spec} abstains from them")
            stages[name] = _written(wordings[name], fits[name])
    refuse_errors([decider], allow=arguments.allow_errors)
    if not stages:
        raise HarnessError("; ".join(notes) or "there is nothing to fit")
    path: Path = arguments.to
    fitted = Fitted(
        decider=spec,
        model=_model(spec, models),
        date=datetime.datetime.now(datetime.timezone.utc).date(),
        data={one.path.name: one.sha256 for one in data},
        goal={
            "min_recall": goal.min_recall,
            "cost_ratio": goal.cost_ratio,
            "correction": "heads" if arguments.heads else "none",
        },
        stages=stages,
        select=FittedSelect(
            mode=arguments.select, relative=fits["validator"].cut.relative if "validator" in fits else None
        ),
    )
    write(fitted, path)
    tables, sentences = _told(fits, plan, bool(held_out)), [*notes, *_advice(fits, plan, path)]
    if decider.errors:
        tables = [table.model_copy(update={"stamp": f"decider errors: {decider.error_text()}"}) for table in tables]
    show(console, tables, sentences)
    result = Result(
        command="fit",
        data="+".join(one.name for one in data),
        data_sha256="+".join(one.sha256[:12] for one in data),
        decider=spec,
        model=decider.model_id,
        tables=tuple(tables),
        sentences=tuple(sentences),
        figures={name: fit.figures.model_dump() for name, fit in fits.items()},
        timing={"decider_ms": decider.total_ms},
        errors=sum(decider.errors.values()),
    )
    save([result], arguments.out)
    return 0


def write(fitted: Fitted, path: Path) -> None:
    """Write the file in one step, and read it back."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(fitted.model_dump_json(indent=1, exclude_none=True) + "\n", encoding="utf-8")
    read_fitted(partial)
    os.replace(partial, path)


# Questions


def _stage(name: Stage, wording: Wording, data: Sequence[Dataset]) -> _Stage:
    requests: list[list[_Asked]] = []
    for one in data:
        if name == "gate":
            requests += [
                [_Asked(item.state, wording.question(), item.needs_memory, not item.needs_memory)] for item in one.gate
            ]
        elif name == "router":
            for route in one.router:
                requests.append(
                    [
                        _Asked(route.state, wording.question(about), space in route.needed, space not in route.needed)
                        for space, about in route.candidates.items()
                        if space not in route.optional
                    ]
                )
        else:
            for query in one.queries:
                rendered = [(render_record(record.text), record.grade) for record in query.records]
                requests.append(
                    [
                        _Asked(query.state, wording.question(text), grade == 2, grade == 0)
                        for text, grade in rendered
                        if text
                    ]
                )
    return _Stage(wording, [request for request in requests if request])


def _labelled(
    name: Stage, stage: _Stage, decider: RecordingDecider, models: set[str], *, with_features: bool
) -> Labelled:
    """Ask everything, one request a group; questions without an answer are left out and counted."""
    rows: list[tuple[float, bool, bool, int]] = []
    features: list[Any] = []
    for group, request in enumerate(stage.requests):
        questions = {f"{name}_{at}": one.question for at, one in enumerate(request)}
        try:
            reply = decider.decide(request[0].state, questions)
        except Exception:  # counted by the recording, which fails the run unless errors are allowed
            stage.left_out += len(request)
            continue
        if isinstance(reply, Reply) and reply.model:
            models.add(reply.model)
        answered: list[tuple[_Asked, float]] = []
        for one, answer in zip(request, (reply[key] for key in questions), strict=True):
            read = stage.wording.read(answer)
            if isinstance(read, Noul):
                answered.append((one, read.noul))
            else:
                stage.left_out += 1
        rows += [(p, one.must, one.waste, group) for one, p in answered]
        if with_features and answered:
            subjects = [one.question.subject for one, _ in answered]
            features.append(features_of(_encoder(), request[0].state, subjects, [p for _, p in answered], INPUTS[name]))
    p, must, waste, groups = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Labelled(
        np.array(p, float),
        np.array(must, bool),
        np.array(waste, bool),
        np.array(groups, np.int64),
        np.concatenate(features) if features else None,
    )


def _encoder() -> Any:
    from strands_gated_memory.embedded.encoder import default_encoder

    return default_encoder()


# Fitting


def _fit(name: Stage, labelled: Labelled, plan: _Plan, other: Labelled | None) -> _Fit:
    seed = plan.seed
    mode: Mode = plan.select if name == "validator" else "threshold"
    inputs, width = (INPUTS[name], _encoder().width) if plan.heads else ((), 0)

    def fitted(labels: Labelled) -> tuple[LogisticHead | None, Cut]:
        head, fair = with_head(labels, inputs=inputs, width=width, seed=seed) if plan.heads else (None, labels)
        return head, choose(fair, plan.goal, mode)

    head, cut = fitted(labelled)
    now = judged_by(labelled, head)
    splits = list(folds(labelled, seed))
    crossed: dict[str, float | None] = {}
    spread: Mapping[str, Interval] = {}
    if splits:
        p, kept = np.zeros(len(labelled.p)), np.zeros(len(labelled.p), bool)
        measured: list[Any] = []
        for train, test in splits:
            part, at = fitted(labelled.part(train))
            held = judged_by(labelled.part(test), part)
            p[test], kept[test] = held.p, at.keeps(held)
            measured.append(test)
        at_all = np.concatenate(measured)
        pooled = Labelled(p[at_all], labelled.must[at_all], labelled.waste[at_all], labelled.groups[at_all])
        crossed = figures(pooled, kept[at_all])
        spread = intervals(pooled, kept[at_all], seed=seed)
    apart: dict[str, float | None] = {}
    if other is not None and len(other.p):
        there = judged_by(other, head)
        apart = figures(there, cut.keeps(there))
    return _Fit(
        labelled,
        cut,
        head,
        StageFigures(
            in_sample=_rounded(figures(now, cut.keeps(now))),
            cross_validated=_rounded(crossed),
            folds=len(splits),
            held_out=_rounded(apart),
        ),
        spread,
    )


def _written(wording: Wording, fit: _Fit) -> FittedStage:
    return FittedStage(
        question=wording,
        threshold=fit.cut.threshold,
        head=fit.head,
        items=len(fit.labelled.p),
        groups=len(np.unique(fit.labelled.groups)),
        figures=fit.figures,
    )


# Telling


def _told(fits: Mapping[Stage, _Fit], plan: _Plan, held_out: bool) -> list[Table]:
    columns = (
        "stage", "figures", "labels", "needed", "cut", "relative", "needed kept", "needless avoided", "AUC", "Brier",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for name, fit in fits.items():
        rows.append(
            (
                name,
                "in sample",
                str(len(fit.labelled.p)),
                str(int(fit.labelled.must.sum())),
                number(fit.cut.threshold, 4),
                number(fit.cut.relative, 4),
                *_rates(fit.figures.in_sample, {}),
            )
        )
        crossed = fit.figures.cross_validated
        said = "cross-validated" if crossed else "cross-validated: too few labels"
        rows.append(("", said, "", "", "", "", *_rates(crossed, fit.intervals)))
        if held_out:
            said = "held out" if fit.figures.held_out else "held out: no labels"
            rows.append(("", said, "", "", "", "", *_rates(fit.figures.held_out, {})))
    note = (
        "In sample: measured on the labels that all was fitted on, so too good. Cross-validated: each fold by what "
        "was fitted on the others, whole turns and queries apart; 95 % bootstrap intervals over these, none where "
        "all agree."
    )
    what = "heads and thresholds" if plan.heads else "thresholds"
    return [Table(key=f"fit-{'heads' if plan.heads else 'none'}", title=f"Fitted {what}", columns=columns,
                  rows=tuple(rows), notes=(note,))]  # fmt: skip


def _rates(found: Mapping[str, float | None], spread: Mapping[str, Interval]) -> tuple[str, str, str, str]:
    kept, avoided = (
        with_interval(share(found.get(name)), spread.get(name, NO_INTERVAL)) for name in ("recall", "avoided")
    )
    return kept, avoided, number(found.get("auc")), number(found.get("brier"))


def _advice(fits: Mapping[Stage, _Fit], plan: _Plan, path: Path) -> list[str]:
    said: list[str] = []
    for name, fit in fits.items():
        before = figures(fit.labelled, np.ones(len(fit.labelled.p), bool))
        after = fit.figures.cross_validated
        if plan.heads and after and (after["brier"] or 0.0) > (before["brier"] or 0.0):
            said.append(
                f"{name}: across folds the probabilities got worse (Brier {number(before['brier'])} before, "
                f"{number(after['brier'])} after): too few labels for --heads"
            )
    said.append(f'wrote {path}; use it as decider="fitted:{path}"')
    if not plan.heads:
        said[-1] += f', or with the same decider as policy=RecallPolicy.from_file("{path}")'
    return said


# Odds and ends


def _wordings(ids: Sequence[str]) -> dict[Stage, Wording]:
    known = {wording.id: wording for wording in WORDINGS}
    of_stage: dict[str, Stage] = {"gate": "gate", "record": "validator", "route": "router"}
    found = dict(_DEFAULTS)
    for one in ids:
        if one not in known:
            raise HarnessError(f"--wording {one!r} is not published; choose one of {', '.join(known)}")
        found[of_stage[one.partition("/")[0]]] = known[one]
    return found


def _refuse_shared(data: Sequence[Dataset], held_out: Sequence[Dataset]) -> None:
    seen = {text for one in data for text in _messages(one)}
    for one in held_out:
        shared = sum(text in seen for text in _messages(one))
        if shared:
            raise HarnessError(
                f"--held-out {one.path}: {shared} of its messages are in the data too, so it would not be held out"
            )


def _messages(data: Dataset) -> list[str]:
    return [item.utterance for item in data.gate] + [query.query for query in data.queries]


def _model(spec: str, models: set[str]) -> str | None:
    if len(models) > 1:
        raise HarnessError(f"{spec} answered as several models ({', '.join(sorted(models))}); name one of them")
    name = next(iter(models), None)
    # A recording keeps the embedded model's answers under its id and its files' hash.
    return name.partition("+")[0] if name and spec == "embedded" else name


def _rounded(found: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if value is None else round(value, 6) for name, value in found.items()}


def _share(text: str) -> float:
    value = _positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"must lie in 0..1, got {text!r}; did you mean {value / 100:g}?")
    return value


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, got {text!r}")
    return value
