"""Whether a text says anything.

A record such as "null" or "N/A" was written by a pipeline with nothing to store. Digits, "No", "false" and
emoji say something and are kept: a wrong "nothing" loses a memory, a wrong "something" costs one line.
"""

from __future__ import annotations

import re
import unicodedata

_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_NULLS = frozenset({"null", "nan", "undefined", "n/a", "n.a"})
_NOTHING_ALONE = _NULLS | {"none", "nil"}
_EDGES = " \t\n.,;:!?'\"()[]{}<>-–—_*`"
_SEPARATOR = re.compile(r"[\s,;]+")
_LONGEST = 200
_DRAWN = range(0x2500, 0x2600)  # boxes, blocks and geometric shapes: rules and bullets, not emoji


def is_null(value: str) -> bool:
    """Tell whether a single value stands for "no value".

    "none" is a value here: `{"allergies": "none"}` says something.
    """
    return not _prints(value) or value.strip(_EDGES).casefold() in _NULLS


def says_nothing(line: str) -> bool:
    """Tell whether a whole rendered record is near-empty: no letter, digit or emoji, or only words for nothing."""
    if not _prints(line):
        return True
    if len(line) > _LONGEST:
        return False
    return all(word.strip(_EDGES).casefold() in _NOTHING_ALONE for word in _SEPARATOR.split(line) if word.strip(_EDGES))


def _prints(text: str) -> bool:
    if _LETTER_OR_DIGIT.search(text):
        return True
    return any(_is_symbol(character) for character in set(text))


def _is_symbol(character: str) -> bool:
    if ord(character) in _DRAWN or character == "\ufffd":
        return False
    return unicodedata.category(character) in {"So", "Co"}
