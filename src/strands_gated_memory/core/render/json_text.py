"""From record text to JSON values. Numbers stay the text that they were, so no size or notation is a problem."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

Json: TypeAlias = "dict[str, Json] | list[Json] | str | bool | None"
"""A JSON value; a number is the text it was written as."""

Child: TypeAlias = Callable[[Json], str]
"""Renders a value inside another one to a line."""

_BETWEEN = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)


def load(text: str) -> dict[str, Json] | list[Json] | str | None:
    """Return the value that the whole text encodes.

    Args:
        text: Anything. Objects or lists that follow each other, as in JSON Lines, count as one list.

    Returns:
        None for prose, bare numbers and words, broken JSON, and nesting too deep to read.
    """
    text = text.strip()
    if not text.startswith(("{", "[", '"')):
        return None
    values: list[dict[str, Json] | list[Json] | str] = []
    end = 0
    try:
        while end < len(text):
            value, end = _DECODER.raw_decode(text, end)
            values.append(value)
            between = _BETWEEN.match(text, end)
            end = between.end() if between else end
    except (ValueError, RecursionError):
        return None
    if len(values) == 1:
        return values[0]
    return [*values] if all(isinstance(value, (dict, list)) for value in values) else None
