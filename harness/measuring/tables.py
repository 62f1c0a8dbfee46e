"""What a measurement hands on: tables, sentences and the data of plots, all JSON; printed with rich or as Markdown.

A cell is a string that is already formatted, so that the terminal, docs/results.md and the page show the same digits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.table import Table as RichTable

from ..errors import HarnessError
from .metrics import Estimate, Interval

NOTHING = "–"
"""A figure that cannot be had."""
NOT_ANSWERED = "not answered"
"""A question that the decider abstains from."""


class Table(BaseModel):
    """A table."""

    model_config = ConfigDict(frozen=True)

    key: str
    """Names the kind of table: those of several deciders with the same key are shown as one."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    stamp: str | None = None
    """Shown above the table, loudly: how many decider errors are in it."""


class Finding(BaseModel):
    """Whether one of the post's findings shows here."""

    model_config = ConfigDict(frozen=True)

    verdict: Literal["reproduced", "not reproduced", "cannot be told"]
    text: str
    """The figures that say so."""


NOT_READ = Finding(verdict="cannot be told", text="reads no wording")
AT_CHANCE = Finding(verdict="cannot be told", text="reads the wordings, but is not told from chance in any")


def verdict(shown: bool, text: str) -> Finding:
    """Return what the figures say."""
    return Finding(verdict="reproduced" if shown else "not reproduced", text=text)


class Result(BaseModel):
    """One measurement: a command on a data set with a decider."""

    model_config = ConfigDict(frozen=True)

    command: str
    data: str
    """The data set's name."""
    data_sha256: str
    decider: str
    model: str
    tables: tuple[Table, ...] = ()
    sentences: tuple[str, ...] = ()
    """What the figures say, plainly."""
    findings: dict[str, Finding] = Field(default_factory=dict)
    """Which of the post's findings this reproduces, by the key that `findings.POST` explains."""
    figures: dict[str, Any] = Field(default_factory=dict)
    """The figures as numbers, unrounded."""
    plots: dict[str, Any] = Field(default_factory=dict)
    """What the page draws."""
    timing: dict[str, float] = Field(default_factory=dict)
    """Milliseconds, as measured or replayed; shown in the page and results.json, never in docs/results.md."""
    errors: int = 0

    @property
    def file_name(self) -> str:
        """Where it is kept in a results folder."""
        safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in self.decider)
        return f"{self.command}-{self.data}-{safe}.json"


def save(results: Iterable[Result], folder: Path) -> None:
    """Write results into a folder, one file each."""
    folder.mkdir(parents=True, exist_ok=True)
    for result in results:
        (folder / result.file_name).write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read(folder: Path) -> list[Result]:
    """Read the results of a folder, in the order of their file names; other JSON files are passed over.

    Raises:
        HarnessError: A file is not JSON, or a result with a wrong field; names file and field.
    """
    found = []
    for path in sorted(folder.glob("*.json")):
        value = read_json(path)
        if isinstance(value, dict) and {"command", "decider", "tables"} <= set(value):
            try:
                found.append(Result.model_validate(value))
            except ValidationError as error:
                problem = error.errors()[0]
                place = ".".join(map(str, problem["loc"]))
                raise HarnessError(f"{path}: {place}: {problem['msg']}; measure again") from error
    return found


def read_json(path: Path) -> Any:
    """Read a file of a results folder.

    Raises:
        HarnessError: It cannot be read, or is not JSON.
    """
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise HarnessError(f"{path}: not JSON that can be read: {error}; delete it, or measure again") from error


def merged(results: Sequence[Result]) -> list[Table]:
    """Return the tables of several results, those with the same key and columns as one; stamps and notes are kept."""
    found: dict[tuple[str, tuple[str, ...]], Table] = {}
    for result in results:
        for table in result.tables:
            before = found.get((table.key, table.columns))
            if before is None:
                found[(table.key, table.columns)] = table
                continue
            stamps = list(dict.fromkeys(filter(None, (before.stamp, table.stamp))))
            found[(table.key, table.columns)] = before.model_copy(
                update={
                    "rows": before.rows + tuple(row for row in table.rows if row not in before.rows),
                    "notes": tuple(dict.fromkeys((*before.notes, *table.notes))),
                    "stamp": "; ".join(stamps) or None,
                }
            )
    return list(found.values())


def show(console: Console, tables: Iterable[Table], sentences: Iterable[str] = ()) -> None:
    """Print tables and sentences."""
    for table in tables:
        if table.stamp:
            console.print(table.stamp, style="bold red")
        shown = RichTable(title=table.title, title_justify="left")
        for at, column in enumerate(table.columns):
            shown.add_column(column, justify="left" if at < 2 else "right", overflow="fold")  # never a cut figure
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
        for note in table.notes:
            console.print(note, style="dim")
    for sentence in sentences:
        console.print(f"• {sentence}")


def markdown(table: Table) -> str:
    """Return a table as Markdown, its stamp above and its notes below."""

    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    rule = "|" + "|".join("---" if at < 2 else "---:" for at in range(len(table.columns))) + "|"
    lines = [f"**{table.title}**", "", line(table.columns), rule, *map(line, table.rows)]
    if table.stamp:
        lines[:0] = [f"> **{table.stamp}**", ""]
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines)


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure, or a dash when there is none."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def signed(value: float | None, digits: int = 3) -> str:
    """Return a figure with its sign."""
    return NOTHING if value is None else f"{value:+.{digits}f}"


def share(value: float | None) -> str:
    """Return a share as a percentage without decimals."""
    return NOTHING if value is None else f"{100 * value:.0f} %"


def with_interval(text: str, around: Interval, digits: int = 2) -> str:
    """Return a figure with its interval, such as "0.97 [0.91, 1.00]"."""
    low, high = around.low, around.high
    return text if low is None or high is None else f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def number_of(estimate: Estimate) -> str:
    """Return an estimate, such as "0.970 [0.91, 1.00]"."""
    return with_interval(number(estimate.value), estimate.interval)


def share_of(estimate: Estimate) -> str:
    """Return a share and its interval as percentages, such as "95 % [90, 100]"."""
    text, low, high = share(estimate.value), estimate.interval.low, estimate.interval.high
    return text if low is None or high is None else f"{text} [{100 * low:.0f}, {100 * high:.0f}]"
