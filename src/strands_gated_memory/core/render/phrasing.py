"""The punctuation of the one prose style: how parts are put together.

Takes parts that are already one line each. Adds no words, so it suits every language.
"""

from __future__ import annotations

from collections.abc import Iterable

SENTENCE_ENDS = ".!?…。！？．؟।॥۔"
"""Characters that close a sentence, in the scripts that records come in."""
_CLOSERS = "\"'”’»」』)]）*"
_NEEDS_NO_SEPARATOR = SENTENCE_ENDS + ":;：；"


def ends_sentence(text: str) -> bool:
    """Tell whether the text closes with sentence punctuation, quotes and brackets after it ignored."""
    return text.rstrip(_CLOSERS).endswith(tuple(SENTENCE_ENDS))


def joined(parts: Iterable[str]) -> str:
    """Return the parts in one line: "; " between fragments, a space after a sentence; empty parts vanish."""
    pieces: list[str] = []
    for part in parts:
        if not part:
            continue
        if pieces:
            previous = pieces[-1].rstrip(_CLOSERS)
            pieces.append(" " if previous.endswith(tuple(_NEEDS_NO_SEPARATOR)) else "; ")
        pieces.append(part)
    return "".join(pieces)


def labelled(label: str, text: str) -> str:
    """Return "<label>: <text>", or the one that is not empty; a label that is a sentence gets no colon."""
    label = label.rstrip(" :：")
    if not label or not text:
        return label or text
    return f"{label} {text}" if ends_sentence(label) else f"{label}: {text}"
