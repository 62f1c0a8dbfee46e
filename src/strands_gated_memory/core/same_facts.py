"""Are two records the same fact? Only when ids or texts are equal; similarity is no evidence.

"The user is allergic to nuts" and "The user is not allergic to nuts" have a cosine of 0.92, and true
duplicates often 0.6 to 0.8 (measured with all-MiniLM-L6-v2), so nothing here compares meanings.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Sequence
from datetime import datetime, timezone

from .remembered import remembering_short
from .types import Row

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-"})
_MEANINGFUL = frozenset("#%&@*/\\")  # C and C#, 5 and 5 %, a path: the sign tells them apart


@remembering_short
def fold(rendered: str) -> str:
    """Return a text's key for exact comparison: NFKC, case, space and punctuation folded, digits kept.

    Punctuation inside a number ("3.5", "-5") and signs that change the meaning ("C#", "100%") stay.
    """
    text = unicodedata.normalize("NFKC", rendered).translate(_QUOTES).casefold()
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", text)
    return " ".join(word for word in map(_bare, text.split()) if word)


_LONG = 4000
"""Characters of a text from which on it is compared as it is."""


def _bare(word: str) -> str:
    if word.isalnum():
        return word
    start, end = 0, len(word)
    while start < end and _is_punctuation(word[start]) and not _is_sign(word, start):
        start += 1
    while end > start and _is_punctuation(word[end - 1]):
        end -= 1
    return word[start:end]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P") and character not in _MEANINGFUL


def _is_sign(word: str, at: int) -> bool:
    return word[at] in "-." and at + 1 < len(word) and word[at + 1].isdigit()


def epoch(created_at: object) -> float:
    """Return a record's time as seconds since 1970, minus infinity when unknown; naive times are UTC."""
    if not isinstance(created_at, datetime):
        return float("-inf")
    aware = created_at if created_at.tzinfo else created_at.replace(tzinfo=timezone.utc)
    return (aware - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()


def without_duplicates(rows: Sequence[Row]) -> list[Row]:
    """Return the rows; those that repeat another one are left out as "duplicate".

    Of rows with the same record id in one namespace, or the same folded text, the newest stays, the first of equally
    new ones; two stores may both have a record 1. An empty text equals nothing, and one of over 4,000 characters
    itself alone: folding it would take its time.
    """
    ids = [(row.record.namespace, str(row.record.record_id)) if row.record.record_id else None for row in rows]
    texts = [(fold(row.text) if len(row.text) <= _LONG else row.text) if row.text else None for row in rows]
    if not (_any_repeat(ids) or _any_repeat(texts)):
        return list(rows)
    seen: set[Hashable] = set()
    unique = list(rows)
    newest_first = sorted(range(len(rows)), key=lambda at: -epoch(rows[at].record.created_at))
    for at in newest_first:
        keys = {(kind, key) for kind, key in (("id", ids[at]), ("text", texts[at])) if key is not None}
        if keys & seen:
            unique[at] = rows[at]._replace(reason="duplicate")
        seen |= keys
    return unique


def _any_repeat(keys: Sequence[Hashable]) -> bool:
    known = [key for key in keys if key is not None]
    return len(set(known)) < len(known)
