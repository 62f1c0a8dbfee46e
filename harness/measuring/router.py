"""The router: which namespaces are worth searching, once memory is needed?

python -m harness route --data my_utterances.json
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from strands_gated_memory.core.router import choose
from strands_gated_memory.core.wordings import ROUTE_CRITERIA

from ..data.datasets import Dataset, RouteItem
from ..recording.recorder import RecordingDecider
from . import metrics as m
from .measurement import Measurement
from .options import Settings
from .requests import ask_all
from .tables import NOT_ANSWERED, NOTHING, Result, Table, number, share, share_with_interval, with_interval

RECALL = 0.95
"""Share of needed namespaces that a cut chosen here has to keep."""


@dataclass(frozen=True)
class RouteFigures:
    """What searching by one rule does."""

    needed: int
    needed_searched: int
    exact: tuple[bool, ...]
    """Per utterance, whether exactly the needed namespaces are searched, optional ones aside."""
    avoidable: int
    """Searches of namespaces that are neither needed nor optional."""
    avoided: int
    per_namespace: Mapping[str, tuple[int, int, int, int]]
    """Needed, of these searched, avoidable, of these avoided."""


def figures_of(items: Sequence[RouteItem], searched: Sequence[Sequence[str]]) -> RouteFigures:
    """Return the figures of what was searched for each item."""
    names = list(items[0].candidates)
    counts = {name: [0, 0, 0, 0] for name in names}
    exact = []
    for item, chosen in zip(items, searched, strict=True):
        for name in names:
            count = counts[name]
            if name in item.needed:
                count[0] += 1
                count[1] += name in chosen
            elif name not in item.optional:
                count[2] += 1
                count[3] += name not in chosen
        exact.append(set(chosen) - set(item.optional) == set(item.needed) - set(item.optional))
    needed, found, avoidable, avoided = (sum(count[at] for count in counts.values()) for at in range(4))
    return RouteFigures(
        needed,
        found,
        tuple(exact),
        avoidable,
        avoided,
        {name: (count[0], count[1], count[2], count[3]) for name, count in counts.items()},
    )


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings) -> Result | None:
    """Measure one data set with one decider; None without routed utterances."""
    if not data.route:
        return None
    items = data.route
    requests = [
        (item.state, {name: ROUTE_CRITERIA.question(text) for name, text in item.candidates.items()}) for item in items
    ]
    replies = ask_all(decider, requests, settings, f"route, {decider.name}")
    scores: list[dict[str, float | None]] = [
        {name: replies.scores(0, at, ROUTE_CRITERIA, name) for name in item.candidates} for at, item in enumerate(items)
    ]
    flat = [
        (score, name in item.needed, at)
        for at, (item, mine) in enumerate(zip(items, scores, strict=True))
        for name, score in mine.items()
        if score is not None and name not in item.optional
    ]
    answered = len({at for _, _, at in flat})
    notes = [
        f"{data.name}: {len(items)} utterances that need memory, {len(items[0].candidates)} namespaces each "
        f"({', '.join(items[0].candidates)}). Brackets: bootstrap 95 % intervals over utterances "
        f"({settings.resamples:,} resamples). When no namespace reaches the cut, all are searched, as in production. "
        f"Held-out cut: keeps {share(RECALL)} of the needed namespaces of all other utterances."
    ]
    if 0 < answered < len(items):
        notes.append(
            f"{decider.name} answered {answered} of {len(items)} utterances; all namespaces are searched for the "
            "others, and they are in the figures so."
        )
    rows: list[tuple[str, ...]] = []
    spread: list[tuple[str, ...]] = []
    figures: dict[str, Any] = {}
    if not flat:
        rows.append((decider.name, NOT_ANSWERED, *[NOTHING] * 5))
    else:
        for rule, searched in _rules(items, scores, flat, decider).items():
            one = figures_of(items, searched)
            rows.append(_row(decider.name, rule, one, flat, settings))
            spread += _spread(decider.name, rule, one)
            figures[rule] = {"needed": one.needed, "searched": one.needed_searched, "avoidable": one.avoidable,
                             "avoided": one.avoided, "exact": sum(one.exact)}  # fmt: skip
    return replies.result(
        "route",
        data,
        tables=(
            Table(
                key=f"route-{data.name}",
                title=f"route, {data.name}: needed namespaces searched, other searches avoided",
                columns=("decider", "cut", "AUC", "answered", "needed searched", "exact set", "searches avoided"),
                rows=tuple(rows),
                notes=tuple(notes),
            ),
            Table(
                key=f"route-namespaces-{data.name}",
                title=f"route, {data.name}: by namespace",
                columns=("decider", "cut", "namespace", "needed searched", "searches avoided"),
                rows=tuple(spread),
            ),
        ),
        figures=figures,
        plots={
            "strips": {
                ROUTE_CRITERIA.key: {
                    "groups": {
                        "needed": [score for score, wanted, _ in flat if wanted],
                        "not needed": [score for score, wanted, _ in flat if not wanted],
                    },
                    "cut": None,
                    "shipped": decider.thresholds.router if decider.thresholds else None,
                }
            }
            if flat
            else {}
        },
    )


def _rules(
    items: Sequence[RouteItem],
    scores: Sequence[Mapping[str, float | None]],
    flat: Sequence[tuple[float, bool, int]],
    decider: RecordingDecider,
) -> dict[str, list[tuple[str, ...]]]:
    """Return what each rule searches, per item."""
    rules: dict[str, list[tuple[str, ...]]] = {}
    if decider.thresholds:
        cut = decider.thresholds.router
        rules[f"shipped, {cut:g}"] = [
            choose(list(item.candidates), mine, cut) for item, mine in zip(items, scores, strict=True)
        ]
    if len({score for score, _, _ in flat}) > 1:
        chosen = []
        for at, (item, mine) in enumerate(zip(items, scores, strict=True)):
            others = [(score, wanted) for score, wanted, place in flat if place != at]
            own = m.cut_for_recall([s for s, _ in others], [y for _, y in others], RECALL) if others else None
            chosen.append(choose(list(item.candidates), mine, own if own is not None else 0.0))
        rules["held out"] = chosen
    return rules


def _row(
    name: str, rule: str, one: RouteFigures, flat: Sequence[tuple[float, bool, int]], settings: Settings
) -> tuple[str, ...]:
    s, y = [score for score, _, _ in flat], [wanted for _, wanted, _ in flat]
    draw: dict[str, Any] = {"seed": settings.seed, "resamples": settings.resamples}
    area = m.interval(m.auc_rows, np.array(s), np.array(y), **draw)
    exact = m.interval(m.mean_rows, np.array(one.exact), **draw)
    return (
        name,
        rule,
        with_interval(number(m.auc(s, y)), area),
        f"{len({at for _, _, at in flat})} of {len(one.exact)}",
        f"{share(one.needed_searched / one.needed)} ({one.needed_searched} of {one.needed})",
        share_with_interval(sum(one.exact) / len(one.exact), exact),
        f"{share(one.avoided / one.avoidable)} ({one.avoided} of {one.avoidable})" if one.avoidable else NOTHING,
    )


def _spread(name: str, rule: str, one: RouteFigures) -> list[tuple[str, ...]]:
    return [
        (name, rule, namespace, f"{found} of {needed}", f"{avoided} of {avoidable}")
        for namespace, (needed, found, avoidable, avoided) in one.per_namespace.items()
    ]


MEASUREMENT = Measurement(
    "route",
    "Router: which namespaces?",
    ("gate_dev",),
    "utterances with needs_memory and namespaces",
    evaluate,
)
