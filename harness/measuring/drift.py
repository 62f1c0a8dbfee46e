"""What changes when the same questions are asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import metrics as m
from .tables import NOTHING, Table, number, signed


def drift_table(
    command: str,
    data: str,
    name: str,
    *,
    runs: Sequence[Mapping[str, Sequence[float | None]]],
    labels: Sequence[bool],
) -> Table:
    """Return the span of margin, best cut and AUC over the runs, and the largest change of one answer.

    Args:
        command: Whose answers these are.
        data: The data set's name.
        name: The decider's.
        runs: Per run, the scores of each wording.
        labels: What is right, in the order of the scores.
    """
    rows = []
    for key in runs[0]:
        margins, cuts, areas = [], [], []
        for run in runs:
            pairs = [(s, y) for s, y in zip(run[key], labels, strict=True) if s is not None]
            s, y = [a for a, _ in pairs], [b for _, b in pairs]
            if (best := m.best_cut(s, y)) is None:
                continue
            margins.append(m.margin(s, y) or 0.0)
            cuts.append(best.at)
            areas.append(m.auc(s, y) or 0.0)
        if not cuts:
            continue
        answers = list(zip(*(run[key] for run in runs), strict=True))
        moved = max((max(a) - min(a) for a in (list(filter(_is_number, each)) for each in answers) if a), default=0.0)
        rows.append(
            (
                name,
                key,
                f"{signed(min(margins))} to {signed(max(margins))}",
                f"{number(min(cuts))} to {number(max(cuts))}",
                f"{number(min(areas))} to {number(max(areas))}",
                number(moved),
            )
        )
    return Table(
        key=f"{command}-drift-{data}",
        title=f"{command}, {data}: {len(runs)} runs",
        columns=("decider", "wording", "margin", "best cut", "AUC", "largest change of one answer"),
        rows=tuple(rows) or ((name, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),),
    )


def _is_number(value: float | None) -> bool:
    return value is not None
