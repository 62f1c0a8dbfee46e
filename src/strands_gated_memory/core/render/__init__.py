"""Record text to one line of prose, whatever shape the record was stored in.

Memory strategies write prose, JSON, tags or markdown, and a decision model judges them fairly only in one style.
This file picks the shape, in a fixed order; a module beside it knows each. Pure and total: any string gives a
string, and a rendered line renders to itself. Nothing is escaped here; `core/block.py` does that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from ..remembered import SHORT, remembering_short
from ..types import Record, Row
from . import json_text, markdown, objects, topics
from .characters import cleaned, inert, one_line, says_nothing, scalar
from .json_text import Json
from .phrasing import joined

__all__ = ["LONGEST_TEXT", "render_record", "rows_of"]

_DEPTH = 8
"""How many levels of nesting, encoded JSON included, keep their shape; what lies deeper is listed."""
_ROUNDS = 8
"""How often a rendering may itself be of some shape. Ordinary records need one round."""
_SENTENCE = re.compile(r"[A-Za-z][!-)+-;=-~]*(?: [!-)+-;=-~]+)*")
"""One line that begins with a letter and holds no sign of a shape (`<`, `*`): most records. It is rendered already."""


def render_record(text: str) -> str:
    """Return a memory record's text as one line of prose.

    Args:
        text: The record's text as stored; any length, any characters.

    Returns:
        One line without control characters, or "" for a record that says nothing: blank, "[]", "null", "N/A",
        `{"preference": ""}`. Anything that is no string gives "". Never raises, and rendering the
        result again returns it unchanged.
    """
    if not isinstance(text, str):
        return ""
    return _rendered(text)


@remembering_short
def _rendered(text: str) -> str:
    if _SENTENCE.fullmatch(text):
        return _or_nothing(text)
    for _ in range(_ROUNDS):
        rendered = _rendered_once(text)
        if rendered == text:
            return rendered
        text = rendered
    return _or_nothing(inert(text))


def _rendered_once(text: str) -> str:
    return _or_nothing(one_line(_text(text, _DEPTH)))


def _or_nothing(line: str) -> str:
    return "" if says_nothing(line) else line


def _text(text: str, depth: int) -> str:
    """Render a text by its shape: JSON, tags, or lines."""
    if depth <= 0:
        return scalar(text)
    text = cleaned(text)
    value = json_text.load(text)
    if value is not None:
        return _value(value, depth - 1)

    def child(inner: Json) -> str:
        return _value(inner, depth - 1)

    if topics.is_topics(text):
        return topics.render(text, child)
    # What held nothing but marks, such as the language of an empty fence, keeps its letters.
    return scalar(markdown.render(text, child)) or scalar(inert(text))


def _value(value: Json, depth: int) -> str:
    """Render a JSON value, or a text inside another one."""
    if isinstance(value, str):
        return _text(value, depth)
    if value is None or isinstance(value, bool):
        return scalar(value)
    if depth <= 0:
        return objects.leaves(value)

    def child(inner: Json) -> str:
        return _value(inner, depth - 1)

    return joined(map(child, value)) if isinstance(value, list) else objects.render(value, child)


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
