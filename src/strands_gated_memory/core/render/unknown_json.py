"""JSON that no handler knows: "key: value; key: value", in the order in which it was written.

Takes parsed values; inner ones come rendered from `child`. Nulls vanish, and a key without a value says nothing.
"""

from __future__ import annotations

import re

from .characters import one_line
from .json_text import Child, Json
from .meaning import is_null
from .phrasing import ends_sentence, joined

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def render(record: dict[str, Json], child: Child) -> str:
    """Return an object as a line.

    Args:
        record: Any object.
        child: Renders one value. Inner objects with several pairs are put in brackets, so they stay together.
    """
    return joined(_pair(key, _value(value, child)) for key, value in record.items())


def leaves(value: Json) -> str:
    """Return all that is in a value too deep to render by shape: its texts, with their nearest keys, in order."""
    found: list[str] = []
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        key, current = waiting.pop()
        if isinstance(current, dict):
            waiting.extend(reversed(list(current.items())))
        elif isinstance(current, list):
            waiting.extend((key, item) for item in reversed(current))
        else:
            found.append(_pair(key, scalar(current)))
    return joined(found)


def scalar(value: str | bool | None) -> str:
    """Return one plain value on one line, or "" when it stands for no value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    line = one_line(value or "")
    return "" if is_null(line) else line


def humanised(key: str) -> str:
    """Return a key as words: "renewalDate" and "renewal_date" become "renewal date"; "userID" keeps its ID."""
    first, *rest = _CAMEL.sub(" ", one_line(key.replace("_", " "))).split() or [""]
    return " ".join([first, *(word if word.isupper() else word.lower() for word in rest)])


def _pair(key: str, value: str) -> str:
    name = humanised(key).rstrip(" :")
    return f"{name}: {value}" if name and value else value


def _value(value: Json, child: Child) -> str:
    if isinstance(value, list):
        return _listed([_grouped(item, child(item)) for item in value])
    return _grouped(value, child(value))


def _grouped(value: Json, rendered: str) -> str:
    return f"({rendered})" if isinstance(value, dict) and "; " in rendered else rendered


def _listed(items: list[str]) -> str:
    filled = [item for item in items if item]
    plain = all("," not in item and not ends_sentence(item) for item in filled)
    return ", ".join(filled) if plain or all(item.startswith("(") for item in filled) else joined(filled)
