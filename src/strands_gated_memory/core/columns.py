"""How wide a text is on a terminal, and where it may be cut. Takes any string."""

from __future__ import annotations

import re
import unicodedata

_JOINED = re.compile("[\u200d\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
"""Belongs to the character before it: joiners, selectors, skin tones, tags of flags."""


def columns(text: str) -> int:
    """Return how many columns of a terminal a text without control characters takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def within(text: str, most: int) -> str:
    """Return a text of at most so many columns, cut with an ellipsis if it is longer."""
    if columns(text) <= most:
        return text
    taken = width = 0
    for character in text:
        width += _width(character)
        if width > most - 1:
            break
        taken += 1
    return text[: whole_characters(text, taken)].rstrip() + "…" if most > 0 else ""


def whole_characters(text: str, end: int) -> int:
    """Return the last place up to `end` where no accent, emoji or Indic syllable is cut in two."""
    start = max(0, end - 32)  # nothing that is meant as one character is longer
    at = end
    while start < at < len(text) and (_is_joined(text[at]) or text[at - 1] == "\u200d"):
        at -= 1
    return at if at > start else end


def _is_joined(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me") or _JOINED.match(character) is not None


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
