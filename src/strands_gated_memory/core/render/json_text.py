"""From record text to JSON values, or the news that it is none.

Numbers stay the text that they were, so no size or notation is a problem. Never raises, whatever the depth.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | bool | None"
"""A JSON value; a number is the text it was written as."""

Child: TypeAlias = Callable[[Json], str]
"""Renders a value inside another one to a line."""

_GAP = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)


class NotJson:
    """What `load` returns for text that is no JSON; None would mean the JSON null."""


NOT_JSON = NotJson()


def load(text: str) -> Json | NotJson:
    """Return the value that the whole text encodes.

    Args:
        text: Anything. Objects or lists that follow each other, as in JSON Lines, count as one list.

    Returns:
        The value, or `NOT_JSON` for prose, bare numbers and words, broken JSON, and nesting too deep to read.
    """
    text = text.strip()
    if not text.startswith(("{", "[", '"')):
        return NOT_JSON
    values: list[Json] = []
    at = 0
    try:
        while at < len(text):
            value, end = _DECODER.raw_decode(text, at)
            if at and not isinstance(value, (dict, list)):
                return NOT_JSON
            values.append(value)
            at = end if end == len(text) else _after_gap(text, end)
    except (ValueError, RecursionError):
        return NOT_JSON
    if len(values) > 1 and isinstance(values[0], str):
        return NOT_JSON
    return values[0] if len(values) == 1 else values


def _after_gap(text: str, at: int) -> int:
    gap = _GAP.match(text, at)
    return gap.end() if gap else at
