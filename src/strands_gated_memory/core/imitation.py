"""A user's text that imitates the recall block, made harmless: the tag in it becomes visible text.

Only the tag of the block is changed, in any spelling that a reader takes for it: capitals, blanks, attributes,
characters without width, full-width and other compatibility forms. Letters of other scripts that look alike are not
searched for.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_OPENING = "<\u2039\u2329\u276e\u27e8\u3008\ufe64\uff1c"
_CLOSING = ">\u203a\u232a\u276f\u27e9\u3009\ufe65\uff1e"
_UNSEEN = r"\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff"  # noqa: E501
"""White space, control characters, and what is drawn with no width."""
_SLASH = r"/\\\u2044\u2215\uff0f\uff3c"
_COMPATIBLE = (
    (0x00AA, 0x00BB), (0x017F, 0x0180), (0x02B0, 0x0300), (0x1D2C, 0x1DC0), (0x2024, 0x2025), (0x2070, 0x20A0),
    (0x2100, 0x2190), (0x2460, 0x2500), (0x2C7C, 0x2C7E), (0xA69C, 0xA69E), (0xFE30, 0xFF5F), (0x1D400, 0x1D800),
    (0x1F100, 0x1F170),
)  # fmt: skip
"""Where Unicode keeps other forms of letters, digits and punctuation of ASCII."""


def harmless(text: str, context_tag: str) -> str:
    """Return a text in which nothing opens or closes the tag: the angle brackets around it become entities.

    Args:
        text: What a user wrote.
        context_tag: The tag of the recall block.
    """
    return _tag_in(context_tag).sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    return f"&lt;{match['name']}{match['rest']}{'&gt;' if match['end'] else ''}"


@cache
def _tag_in(context_tag: str) -> re.Pattern[str]:
    name = f"[{_UNSEEN}]*".join(f"[{re.escape(_forms()[letter.lower()])}]" for letter in context_tag)
    return re.compile(
        rf"[{_OPENING}](?P<name>[{_UNSEEN}{_SLASH}]*{name})(?![\w.-])"
        rf"(?P<rest>[^{_OPENING}{_CLOSING}]*)(?P<end>[{_CLOSING}]?)",
        re.IGNORECASE,
    )


@cache
def _forms() -> dict[str, str]:
    """Return every form of each character that a tag may hold, itself included."""
    forms = {chr(code): chr(code) for code in range(0x21, 0x7F)}
    for first, limit in _COMPATIBLE:
        for code in range(first, limit):
            plain = unicodedata.normalize("NFKC", chr(code)).lower()
            if plain in forms:
                forms[plain] += chr(code)
    return forms
