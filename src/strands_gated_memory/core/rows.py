"""From the records of a turn to rows: the text of each as one line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from .remembered import SHORT
from .render import render_record
from .render.characters import inert
from .types import Record, Row

LONGEST_TEXT = 64_000
"""Characters of a record that are read, four times what the service stores."""


def rows_of(records: Sequence[Record], mode: Literal["prose", "raw"], is_late: Callable[[], bool]) -> list[Row]:
    """Return a row per record; one of which nothing is left is "empty".

    Args:
        records: The records found.
        mode: As `RenderSettings.mode`.
        is_late: Whether the recall's deadline has passed. The shape of a record is not worth being late for.
    """
    late = is_late()
    rows = []
    for record in records:
        text = record.text[:LONGEST_TEXT] if isinstance(record.text, str) else ""
        if mode == "raw":
            # A record stays one line, or it could add lines that look like other records.
            text = _one_line(text)
        elif late or (len(text) >= SHORT and is_late()):  # a short one takes no time
            text = inert(text)
        else:
            text = render_record(text)
        rows.append(Row(record, text, reason=None if text else "empty"))
    return rows


def _one_line(text: str) -> str:
    """Return a raw text on one line, without lone surrogates, which no model provider can be sent."""
    return " ".join(text.splitlines()).strip().encode("utf-8", "replace").decode()
