"""Can the English-only model read this text? A count of very frequent words, no model.

A record is readable unless it is clearly another language's: names, dishes, code and numbers are, and foreign text
quoted within English. A message has to be English for sure, as closing the gate on what was not understood loses
what was asked for: without a sure English word nothing is decided.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ..core.remembered import remembering_short

WORDS = Path(__file__).parents[1] / "data" / "frequent_words.txt"
"""Function words, then words that short requests are made of; lower case, apostrophes split off ("l'eau" is "l eau").

A word may stand in several sections. "weak" are words that names and dishes carry into English ("tacos al pastor"),
"pleasantries" those of greetings and thanks: a message of nothing else seldom asks for anything.
"""

LATIN_SHARE = 0.8
"""Least share of Latin letters among a readable text's letters, 0..1."""
_READ_CHARACTERS = 4000
"""What is looked at of a long text; the encoder reads about a quarter of it."""
_ENOUGH = 1.5
"""Least foreign evidence, in words: a lone "merci" is no reason to doubt."""
_A_SENTENCE = 3
"""Words from which on English without one of its frequent words is rare: any foreign evidence then decides."""
_ACCENTED = 0.5
"""What a lower-case word with an accent or a foreign letter counts, in words; a name (capitalised) counts nothing."""

_A_MESSAGE = 5
"""Words from which on a share of them must be English; of a shorter message, one."""
_ENGLISH_SHARE = 0.2
"""Least share of sure English words in a message, 0..1; most English has more than twice that."""
_FOREIGN_SHARE = 0.15
"""Share of another language's words, 0..1, from which on a message is mixed."""

_URLS = re.compile(r"https?://\S+|\S+@\S+|`[^`]*`")
_QUOTED = re.compile(
    r"(?<!\w)(?:'[^'\n]{2,}'|\"[^\"\n]{2,}\"|“[^”\n]{2,}”|‘[^’\n]{2,}’|«[^»\n]{2,}»|„[^“”\n]{2,}[“”])(?!\w)"
)
_ELISIONS = re.compile(
    r"(?<!\w)(?!c'mon|d'(?:you|ya)\b|s'pose)(?:[cdjlmnst]|qu|dell|dall|nell|all|sull|un|dov)'(?=[^\W\d_]{2})",
    re.IGNORECASE,
)
_WORDS = re.compile(r"[^\W\d_]+")


@remembering_short
def readable(text: str) -> bool:
    """Tell whether the text is English, or too little to say that it is not.

    Args:
        text: A message, a record or a description; any length, empty included.

    Returns:
        False when under 80 % of its letters are Latin, or its frequent words are another language's.
    """
    text = text[:_READ_CHARACTERS]
    if not text.isascii():
        letters = [character for character in text if character.isalpha()]
        if sum(map(_is_latin, letters)) < LATIN_SHARE * len(letters):
            return False
    text = _URLS.sub(" ", text)
    unquoted = _QUOTED.sub(" ", text)
    words = _words(unquoted)
    english = _english(words)
    if english >= 1:
        text = unquoted
    else:
        words = _words(text)
        english = _english(words)
    marks = text.count("¿") + text.count("¡") + 0.5 * len(_ELISIONS.findall(text.replace("’", "'")))
    foreign = _foreign(words) + marks
    if english == 0 and len(words) >= _A_SENTENCE and foreign > 0:
        return False
    return foreign < _ENOUGH or foreign <= english


@remembering_short
def surely_english(text: str) -> bool:
    """Tell whether a message is English, or holds no word of any language.

    Args:
        text: A message; any length, empty included.

    Returns:
        False when it is not `readable`, has no sure English word, too few of them, or many of another language.
    """
    if not readable(text):
        return False
    words = _words(_QUOTED.sub(" ", _URLS.sub(" ", text[:_READ_CHARACTERS])))
    if not words:
        return True
    tables = _tables()
    foreign = _most_of_a_language(word for word in words if word not in tables.ours)
    if foreign >= _FOREIGN_SHARE * len(words):
        return False
    return sum(word in tables.sure for word in words) >= (1 if len(words) < _A_MESSAGE else _ENGLISH_SHARE * len(words))


def _is_latin(letter: str) -> bool:
    code = ord(letter)
    return code < 0x250 or 0x1E00 <= code < 0x1F00 or 0xFB00 <= code < 0xFB07 or 0xFF21 <= code < 0xFF5B  # noqa: PLR2004


def _words(text: str) -> list[str]:
    """Return the words that count: not names, which are capitalised within a text that is not all capitals."""
    words = _WORDS.findall(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    if text.isupper():
        return [word.lower() for word in words]
    return [word.lower() for place, word in enumerate(words) if place == 0 or not word[0].isupper() or word == "I"]


def _english(words: Iterable[str]) -> float:
    tables = _tables()
    return sum(0.5 if word in tables.shared else 1.0 for word in words if word in tables.english)


def _foreign(words: list[str]) -> float:
    """Return the evidence for the foreign language that explains most of the words."""
    accented = sum(not word.isascii() for word in words)
    return _ACCENTED * accented + _most_of_a_language(words)


def _most_of_a_language(words: Iterable[str]) -> float:
    """Return how many of the words a foreign language has; those that are English too, or weak, count half."""
    tables = _tables()
    evidence: Counter[str] = Counter()
    for word in words:
        for language in tables.languages.get(word, ()):
            evidence[language] += 1 if word in tables.half else 2
    return max(evidence.values(), default=0) / 2


class _Tables(NamedTuple):
    languages: Mapping[str, Sequence[str]]
    """The foreign languages of a word."""
    english: frozenset[str]
    shared: frozenset[str]
    """English words that another language has too."""
    sure: frozenset[str]
    half: frozenset[str]
    """Words that are weak evidence for any other language."""
    ours: frozenset[str]
    """Words that are no evidence for any."""


@cache
def _tables() -> _Tables:
    sections = (section.partition("]") for section in WORDS.read_text(encoding="utf-8").split("[")[1:])
    words = {name: frozenset(listed.split()) for name, _, listed in sections}
    english, weak, pleasantries = words.pop("English"), words.pop("weak"), words.pop("pleasantries")
    languages: dict[str, list[str]] = {}
    for language, listed in words.items():
        for word in listed:
            languages.setdefault(word, []).append(language)
    return _Tables(
        languages,
        english,
        shared=english & languages.keys(),
        sure=english - languages.keys() | pleasantries,
        half=english | weak,
        ours=english | weak | pleasantries,
    )
