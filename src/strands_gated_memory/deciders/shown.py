"""Foreign text on its way to a message, a log or a terminal: short, on one line, without credentials. Pure."""

from __future__ import annotations

import re

_MOST_CHARACTERS = 200
_LONGEST_WORD = 24
"""A word longer than any name of a decider may be a key that was put in the wrong place."""
_NAME = re.compile(r"[a-z][a-z-]{0,15}(?=:)", re.IGNORECASE)


def one_line(text: str, most: int = _MOST_CHARACTERS) -> str:
    """Return at most so many characters of a text, with control characters as question marks."""
    flat = " ".join(text[: 4 * most].split())[:most]
    return "".join(character if character.isprintable() else "?" for character in flat)


def quoted(spec: str) -> str:
    """Return a specification for an error message, quoted; what may be a credential is left out."""
    if "@" in spec or "?" in spec:
        name = _NAME.match(spec)
        return repr(f"{name[0]}:***" if name else "***")
    shown = spec if len(spec) <= _MOST_CHARACTERS else spec[:_MOST_CHARACTERS] + "…"
    if len(spec) > _LONGEST_WORD and not re.search(r"[:/\s]", spec):
        shown = spec[:4] + "…"
    return repr(shown)
