"""Record text to one line of prose, whatever shape the record was stored in.

Memory strategies write prose, JSON, tags or markdown, and a decision model judges them fairly only in one style.
This file picks the shape, in a fixed order; each handler beside it knows one. Pure and total: any string gives a
string, and a rendered line renders to itself. Nothing is escaped here; `core/block.py` does that.
"""

from __future__ import annotations

from ..remembered import remembering_short
from . import episodes, facts, json_text, markdown, preference, topics, unknown_json
from .characters import cleaned, inert, one_line
from .fields import by_spelling
from .json_text import Json
from .meaning import says_nothing
from .phrasing import joined

__all__ = ["render_record"]

_DEPTH = 8
"""How many levels of nesting, encoded JSON included, keep their shape; what lies deeper is listed."""
_ROUNDS = 8
"""How often a rendering may itself be of some shape. Ordinary records need one round."""


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
        return unknown_json.scalar(text)
    text = cleaned(text)
    value = json_text.load(text)
    if not isinstance(value, json_text.NotJson):
        return _value(value, depth - 1)

    def child(inner: Json) -> str:
        return _value(inner, depth - 1)

    if topics.is_topics(text):
        return topics.render(text, child)
    line = markdown.render(text, child)
    # What held nothing but marks, such as the language of an empty fence, keeps its letters.
    return unknown_json.scalar(line) or unknown_json.scalar(inert(text))


def _value(value: Json, depth: int) -> str:
    """Render a JSON value, or a text inside another one."""
    if isinstance(value, str):
        return _text(value, depth)
    if value is None or isinstance(value, bool):
        return unknown_json.scalar(value)
    if depth <= 0:
        return unknown_json.leaves(value)
    if isinstance(value, list):
        return joined(_value(item, depth - 1) for item in value)
    return _object(value, depth)


def _object(record: dict[str, Json], depth: int) -> str:
    """Render an object by the first shape whose fields it has."""

    def child(inner: Json) -> str:
        return _value(inner, depth - 1)

    fields = by_spelling(record)
    if episodes.is_reflection(fields):
        return episodes.render_reflection(record, child)
    if episodes.is_episode(fields):
        return episodes.render(record, child)
    if preference.is_preference(fields):
        return preference.render(record, child)
    if facts.is_fact(fields):
        return facts.render(record, child)
    return unknown_json.render(record, child)
