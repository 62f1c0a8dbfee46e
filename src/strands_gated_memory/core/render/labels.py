"""What stands around a record's text: its category as a label, and how sure its writer was.

"Coriander", filed under "dislikes", reads as something that the user likes, so a bare term gets its category as a
label. A sentence needs none.
"""

from __future__ import annotations

import re

from .context import capitalised, has_finite_verb
from .fields import CATEGORIES
from .json_text import Child, Json
from .phrasing import ends_sentence, joined, labelled

_MOST_WORDS = 4
_MOST_CHARACTERS = 48
_MOST_UNSPACED = 8
"""Characters of a term in a script that puts no spaces between words; more may be a sentence."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_SAYS_HOW = re.compile(r"\b(?:no|not|never|without|only|always|avoid\w*|kein\w*|sin|sans|senza|sem)\b", re.IGNORECASE)
_ATTITUDE = re.compile(
    r"dislik|hate|allerg|avoid|intoleran|restrict|forbid|taboo|fear|phobi|aversion|\blik|\blov|favou?rit|wish|goal"
    r"|abneig|unvertr|alerg|odi[ao]|aim(?:e|er)\b|déteste",
    re.IGNORECASE,
)
"""Categories that tell how the user stands to a thing; others tell what sort of thing it is."""


def with_category(text: str, fields: dict[str, Json], child: Child, *, labelled_already: bool = False) -> str:
    """Return a record's text, with its category as a label where the text is a bare term.

    Args:
        text: The rendered text.
        fields: The record's fields, by spelling.
        child: Renders one value.
        labelled_already: Whether an occasion stands before the text ("Food: Coriander"): then only a category
            that tells the user's attitude is added.
    """
    if not all(map(_is_bare, text.split("; "))):
        return text
    names = [name for key in CATEGORIES for name in _names(fields.get(key), child) if not _repeats(name, text)]
    if labelled_already:
        names = [name for name in names if _ATTITUDE.search(name)]
    return labelled(capitalised(", ".join(dict.fromkeys(names))), text)


def with_confidence(text: str, fields: dict[str, Json], child: Child) -> str:
    """Return a record's text with its `confidence` after it, where there is one; nothing stays nothing."""
    confidence = child(fields.get("confidence"))
    return joined([text, f"confidence: {confidence}"]) if text and confidence else text


def _names(value: Json, child: Child) -> list[str]:
    given = value if isinstance(value, list) else [value]
    values = [item.get("name") if isinstance(item, dict) else item for item in given]
    return [name for item in values if isinstance(item, str) and (name := child(item))]


def _repeats(name: str, text: str) -> bool:
    return name.casefold() in text.casefold()


def _is_bare(text: str) -> bool:
    """Tell whether a text only names something."""
    words = text.split()
    longest = _MOST_UNSPACED if _UNSPACED.search(text) else _MOST_CHARACTERS
    return (
        0 < len(words) <= _MOST_WORDS
        and len(text) <= longest
        and not ends_sentence(text)
        and not _SAYS_HOW.search(text)
        and not has_finite_verb(text)
    )
