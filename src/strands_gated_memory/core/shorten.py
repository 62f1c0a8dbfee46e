"""Cutting a line of the block to what is left of the budget, where a reader would stop. Pure."""

from __future__ import annotations

import re

from .columns import columns, whole_characters

LEAST_COLUMNS = 60
"""The least that is worth showing, in columns of a terminal, of which a Chinese character takes two: as much as a short
fact takes, such as "The user is allergic to peanuts and carries an adrenaline pen." Less is rarely one."""

_SENTENCE_END = re.compile(
    r"(?:(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bMrs)(?<!\b[^\W\d_])(?<!\b\d)\.|[!?…؟۔।॥])[\"'”’»)\]]*(?=\s)"
    r"|[。！？｡][」』”’）]*"
)
"""No abbreviation's full stop, none after a single letter ("e.g.") or digit ("2. ")."""
_CUT_ENTITY = re.compile(r"&[a-z]{0,3}$")
"""In an escaped line every ampersand begins an entity."""


def shortened(line: str, most: int) -> str | None:
    """Return the beginning of an escaped line, with an ellipsis.

    It ends with a sentence, or with a word where the last sentence would leave too little (less than half of what fits,
    or less than is worth it), or anywhere where there are no words.

    Args:
        line: The line; it is longer.
        most: Characters that fit.

    Returns:
        At most `most` characters, or None if `LEAST_COLUMNS` do not fit.
    """
    room = most - len(" …")
    if room <= 0:
        return None
    half = room // 2
    sentence = max((end.end() for end in _SENTENCE_END.finditer(line[: room + 1]) if end.end() <= room), default=0)
    if sentence >= half and columns(line[:sentence]) >= LEAST_COLUMNS:
        kept, ellipsis = line[:sentence], " …"
    else:
        word = max(line.rfind(" ", 0, room + 1), 0)
        end = word if word >= half else whole_characters(line, room)
        kept, ellipsis = _CUT_ENTITY.sub("", line[:end]).rstrip(" ,:-–—"), "…"
    return kept + ellipsis if columns(kept) >= LEAST_COLUMNS else None
