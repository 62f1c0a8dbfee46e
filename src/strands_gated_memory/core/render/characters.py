"""Which characters of a record survive, and whether they say anything.

Takes any string, lone surrogates included, and returns one without invisible or steering characters. Line
breaks stay, because the shapes need them; `one_line` removes those too.

A record such as "null" or "N/A" was written by a pipeline with nothing to store. Digits, "No", "false" and
emoji say something and are kept: a wrong "nothing" loses a memory, a wrong "something" costs one line.
"""

from __future__ import annotations

import re
import unicodedata

_SURROGATE = re.compile("[\ud800-\udfff]")
_TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_INVISIBLE = re.compile(
    "["
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters that are not white space
    "\u00ad\u034f\u061c\u180b-\u180f"  # soft hyphen, grapheme joiner, Arabic letter mark, Mongolian selectors
    "\u115f\u1160\u3164\uffa0"  # Hangul fillers: letters that print nothing
    "\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # zero width, direction marks, overrides and isolates
    "\ufdd0-\ufdef\ufff0-\ufffb\ufffe\uffff"  # noncharacters and interlinear marks
    "]"
)
# Tag characters print nothing and can smuggle text to a model; only the flags of parts of countries need them.
_TAGS = re.compile("(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]")
_SELECTORS = re.compile("([\ufe00-\ufe0f\U000e0100-\U000e01ef])[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
# Joiners have a meaning between letters of scripts that join (Persian, Indic) and inside emoji, nowhere else.
_JOINING = "[\u0600-\u167f\u1681-\u1fff\u2190-\u2fff\u3001-\ud7ff\uf900-\U0001ffff]"
_JOINER = re.compile(f"(?<!{_JOINING})[\u200c\u200d]|[\u200c\u200d](?!{_JOINING})")


_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_NULLS = frozenset({"null", "nan", "undefined", "n/a", "n.a"})
_NOTHING_ALONE = _NULLS | {"none", "nil"}
_EDGES = " \t\n.,;:!?'\"()[]{}<>-–—_*`"
_SEPARATOR = re.compile(r"[\s,;]+")
_LONGEST_NOTHING = 200
_DRAWN = range(0x2500, 0x2600)  # boxes, blocks and geometric shapes: rules and bullets, not emoji


def cleaned(text: str) -> str:
    """Return the text without characters that print nothing or reorder others.

    Args:
        text: Any string. Surrogates that belong together become one character, lone ones go.

    Returns:
        The text with its letters, marks, emoji and line breaks; cleaning it again changes nothing.
    """
    if text.isascii() and text.isprintable():
        return text
    if _SURROGATE.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    text = _TERMINAL_COLOUR.sub("", text)
    text = _INVISIBLE.sub("", text)
    text = _TAGS.sub(r"\1", text)
    text = _SELECTORS.sub(r"\1", text)
    return _JOINER.sub("", text)


def one_line(text: str) -> str:
    """Return cleaned text with every run of white space, line breaks included, as one space."""
    return " ".join(cleaned(text).split())


def inert(text: str) -> str:
    """Return the text without any sign that a shape is recognised by.

    The last resort for text that yields another shape each time it is rendered. Every letter and digit stays.
    """
    bare = re.sub(r"[<>{}\[\]\"*`#|~]", " ", cleaned(text))
    return one_line(re.sub(r"^[\W_]+", "", one_line(bare)))


def scalar(value: str | bool | None) -> str:
    """Return one plain value on one line, or "" when it stands for no value.

    "none" is a value here: `{"allergies": "none"}` says something.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    line = one_line(value or "")
    return line if _prints(line) and line.strip(_EDGES).casefold() not in _NULLS else ""


def says_nothing(line: str) -> bool:
    """Tell whether a whole rendered record is near-empty: no letter, digit or emoji, or only words for nothing."""
    if not _prints(line):
        return True
    if len(line) > _LONGEST_NOTHING:
        return False
    return all(word.strip(_EDGES).casefold() in _NOTHING_ALONE for word in _SEPARATOR.split(line) if word.strip(_EDGES))


def _prints(text: str) -> bool:
    return bool(_LETTER_OR_DIGIT.search(text)) or any(
        unicodedata.category(character) in {"So", "Co"} and ord(character) not in _DRAWN and character != "\ufffd"
        for character in set(text)
    )
