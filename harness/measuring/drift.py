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
        measured = []
        for run in runs:
            s, y = m.answered(run[key], labels)
            if (best := m.best_cut(s, y)) is not None:
                measured.append((m.margin(s, y), best.at, m.auc(s, y)))
        if measured:
            margins, cuts, areas = ([value or 0.0 for value in column] for column in zip(*measured, strict=True))
            answers = (
                [score for score in scores if score is not None]
                for scores in zip(*(run[key] for run in runs), strict=True)
            )
            rows.append(
                (
                    name,
                    key,
                    f"{signed(min(margins))} to {signed(max(margins))}",
                    f"{number(min(cuts))} to {number(max(cuts))}",
                    f"{number(min(areas))} to {number(max(areas))}",
                    number(max(max(scores) - min(scores) for scores in answers if scores)),
                )
            )
    return Table(
        key=f"{command}-drift-{data}",
        title=f"{command}, {data}: {len(runs)} runs",
        columns=("decider", "wording", "margin", "best cut", "AUC", "largest change of one answer"),
        rows=tuple(rows) or ((name, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),),
    )
