"""Markdown tables as lines: "column: cell, column: cell" for each row."""

from __future__ import annotations

import re

from .phrasing import labelled

_BAR = re.compile(r"(?<!\\)\|")
_MOST_GROWTH = 3


def is_separator(line: str) -> bool:
    """Tell whether a line is the rule under a table's head, such as `|---|:--:|`."""
    return "|" in line and "--" in line and set(line) <= set("|-: ")


def rows(head: str, body: list[str]) -> list[str]:
    """Return one line per row, each cell under its column's name.

    Args:
        head: The line above the separator.
        body: The lines below it.

    Returns:
        Rows without names when repeating them would make the table several times longer; the head alone
        when there are no rows.
    """
    columns = _cells(head)
    if not body:
        return [", ".join(filter(None, columns))]
    size = len(head) + sum(map(len, body))
    named = len(head) * len(body) <= _MOST_GROWTH * size
    lines = [] if named else [", ".join(filter(None, columns))]
    for line in body:
        cells = _cells(line)
        names = (columns if named else []) + [""] * len(cells)
        lines.append(", ".join(labelled(name, cell) for name, cell in zip(names, cells, strict=False) if cell))
    return lines


def _cells(line: str) -> list[str]:
    cells = _BAR.split(line.strip().removeprefix("|").removesuffix("|"))
    return [cell.strip().replace("\\|", "|") for cell in cells]
