"""The router: which namespaces are worth searching, once memory is needed?

python -m harness router --data my_utterances.json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strands_gated_memory.core.gate import choose
from strands_gated_memory.core.wordings import ROUTE_CRITERIA

from ..data.datasets import Dataset, RouterItem
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .measurement import Measurement
from .options import Settings
from .plots import strip
from .requests import ask_all
from .tables import NOT_ANSWERED, NOTHING, Result, Table, number_of, share, share_of

RECALL = 0.95
"""Share of needed namespaces that a cut chosen here has to keep."""


@dataclass(frozen=True)
class Searches:
    """What searching by one rule does, for one namespace or for all."""

    needed: int
    found: int
    """Of the needed ones, those that are searched."""
    avoidable: int
    """Searches that are neither needed nor optional."""
    avoided: int


def searches_of(items: Sequence[RouterItem], searched: Sequence[Sequence[str]], names: Sequence[str]) -> Searches:
    """Return the counts over these namespaces of what was searched for each item."""
    pairs = [(item, name, name in chosen) for item, chosen in zip(items, searched, strict=True) for name in names]
    needed = [hit for item, name, hit in pairs if name in item.needed]
    others = [hit for item, name, hit in pairs if name not in item.needed and name not in item.optional]
    return Searches(len(needed), sum(needed), len(others), len(others) - sum(others))


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without utterances whose namespaces are labelled."""
    if not data.router:
        return None
    items = data.router
    names = list(items[0].candidates)
    requests = [
        (item.state, {name: ROUTE_CRITERIA.question(text) for name, text in item.candidates.items()}) for item in items
    ]
    replies = ask_all(decider, requests, settings, f"router, {decider.name}")
    scores: list[dict[str, float | None]] = [
        {name: replies.probability(0, at, ROUTE_CRITERIA, name) for name in names} for at in range(len(items))
    ]
    flat = [
        (score, name in item.needed, at)
        for at, (item, mine) in enumerate(zip(items, scores, strict=True))
        for name, score in mine.items()
        if score is not None and name not in item.optional
    ]
    answered = len({at for _, _, at in flat})
    notes = [
        f"{data.name}: {len(items)} utterances that need memory, {len(names)} namespaces each "
        f"({', '.join(names)}). Brackets: bootstrap 95 % intervals over utterances "
        f"({settings.resamples:,} resamples). When no namespace reaches the cut, all are searched, as in production. "
        f"Held-out cut: keeps {share(RECALL)} of the needed namespaces of all other utterances."
    ]
    if 0 < answered < len(items):
        notes.append(
            f"{decider.name} answered {answered} of {len(items)} utterances; all namespaces are searched for the "
            "others, and they are in the figures so."
        )
    rows: list[tuple[str, ...]] = []
    by_namespace: list[tuple[str, ...]] = []
    figures: dict[str, Any] = {}
    plots: dict[str, Any] = {}
    if not flat:
        rows.append((decider.name, NOT_ANSWERED, *[NOTHING] * 5))
    else:
        s, y = np.array([score for score, _, _ in flat]), np.array([wanted for _, wanted, _ in flat])
        area = m.Estimate(m.auc(s, y), m.interval(m.auc_rows, s, y, **settings.draw))
        shipped = decider.thresholds.router if decider.thresholds else None
        groups = {"needed": s[y].tolist(), "not needed": s[~y].tolist()}
        plots["strips"] = {ROUTE_CRITERIA.key: strip(groups, cut=None, shipped=shipped)}
        for rule, cuts in _rules(flat, len(items), shipped).items():
            searched = [choose(names, mine, cut) for mine, cut in zip(scores, cuts, strict=True)]
            every = searches_of(items, searched, names)
            exact = [
                set(chosen) - set(item.optional) == set(item.needed) - set(item.optional)
                for item, chosen in zip(items, searched, strict=True)
            ]
            rows.append(
                (
                    decider.name,
                    rule,
                    number_of(area),
                    f"{answered} of {len(items)}",
                    _share_in_words(every.found, every.needed),
                    share_of(m.mean(exact, **settings.draw)),
                    _share_in_words(every.avoided, every.avoidable),
                )
            )
            for name in names:
                each = searches_of(items, searched, [name])
                counts = (f"{each.found} of {each.needed}", f"{each.avoided} of {each.avoidable}")
                by_namespace.append((decider.name, rule, name, *counts))
            figures[rule] = {**vars(every), "exact": sum(exact)}
    return replies.result(
        "router",
        data,
        [
            Table(
                key=f"router-{data.name}",
                title=f"router, {data.name}: needed namespaces searched, other searches avoided",
                columns=("decider", "cut", "AUC", "answered", "needed searched", "exact set", "searches avoided"),
                rows=tuple(rows),
                notes=tuple(notes),
            ),
            Table(
                key=f"router-namespaces-{data.name}",
                title=f"router, {data.name}: by namespace",
                columns=("decider", "cut", "namespace", "needed searched", "searches avoided"),
                rows=tuple(by_namespace),
            ),
        ],
        figures=figures,
        plots=plots,
    )


def _rules(flat: Sequence[tuple[float, bool, int]], items: int, shipped: float | None) -> Mapping[str, list[float]]:
    """Return the cut of each rule, per item."""
    rules: dict[str, list[float]] = {}
    if shipped is not None:
        rules[f"shipped, {shipped:g}"] = [shipped] * items
    if len({score for score, _, _ in flat}) > 1:
        rules["held out"] = []
        for at in range(items):
            others = [(score, wanted) for score, wanted, place in flat if place != at]
            cut = m.cut_for_recall([score for score, _ in others], [wanted for _, wanted in others], RECALL)
            rules["held out"].append(0.0 if cut is None else cut)
    return rules


def _share_in_words(part: int, whole: int) -> str:
    return f"{share(part / whole)} ({part} of {whole})" if whole else NOTHING


MEASUREMENT = Measurement(
    "router", "Router: which namespaces?", ("gate_dev",), "utterances with needs_memory and namespaces", evaluate
)
