"""Which parts of a turn and of a record the encoder reads, each as one text: shared by training and run time.

A text of the encoder is a point among all texts, so one sentence that matters is lost among ten that do not. A long
text is therefore read in parts as well, and its best part counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .language import readable

HISTORY_CHARACTERS = 160
"""How much of each earlier text is read. More would outweigh a short message: "Noted." would read like more of it."""
_HISTORY_END = 60
"""How many of these are the text's last: a long reply often ends with what the next message answers."""
EXCHANGES = 3
"""How many exchanges before the message are read, the last ones."""
WHOLE_CHARACTERS = 800
"""How much of a long message or record is read as one text: half of it the beginning, half the end."""
LONG_CHARACTERS = 240
"""A message or record up to here is read as one text alone."""
PART_CHARACTERS = 100
"""Size of a part of a longer one, about a sentence. The parts of a very long record are larger."""
RECORD_PARTS = 96
"""Most parts of a record."""
MOST_READ_OF_ONE = 16_000
"""Characters that are read of a record; of a longer one, the beginning and the end."""
MOST_QUESTIONS = 3
"""Sentences of a long message that are also read alone."""

_SEPARATOR = " [SEP] "
_SPECIAL = re.compile(r"\[(?:SEP|CLS|PAD|MASK|UNK)\]")
_QUESTION = re.compile(r"\?\W*$")
_SENTENCES = re.compile(r"(?<=[.!?…;])\s+|\s*\n\s*")


def excerpt(text: str) -> str:
    """Return an earlier text, or the beginning and the end of a long one."""
    return _ends(text, HISTORY_CHARACTERS, _HISTORY_END)


def turn_text(message: str, previous: Sequence[str]) -> str:
    """Return a turn as one text: the message, then the exchanges before it, the last one first.

    The parts are joined by the tokenizer's separator; a separator within a part is taken out.

    Args:
        message: The user's message.
        previous: Texts before it, oldest first, user and assistant alternating, ending with the assistant's.
    """
    exchanges = [previous[max(0, end - 2) : end] for end in range(len(previous), 0, -2)][:EXCHANGES]
    earlier = [excerpt(text) for exchange in exchanges for text in exchange]
    parts = [_whole(message), *earlier]
    return _SEPARATOR.join(_SPECIAL.sub(" ", part) for part in parts)


def turns_of(message: str, previous: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """Return what stands for a turn: all of it, then each sentence in which a long message asks something.

    Args:
        message: The user's message.
        previous: Texts before it, oldest first.

    Returns:
        Messages with the texts before them; the sentences stand alone. At most four.
    """
    return [(message, previous), *((sentence, ()) for sentence in _asking(message))]


def mostly_unread(message: str) -> bool:
    """Tell whether more of a message is left out of `turns_of` than is in it."""
    return len(message) > 2 * (WHOLE_CHARACTERS + sum(map(len, _asking(message))))


def _asking(message: str) -> list[str]:
    """Return the first question of a long message and its last ones; its last sentence if it has no question."""
    if len(message) <= LONG_CHARACTERS:
        return []
    sentences = _pieces(message.strip(), LONG_CHARACTERS)
    questions = [sentence for sentence in sentences if _QUESTION.search(sentence)]
    return [*questions[:1], *questions[1:][1 - MOST_QUESTIONS :]] or sentences[-1:]


def history(previous: Sequence[str]) -> list[str]:
    """Return the last exchanges before a message, oldest first, as far back as they are English."""
    exchanges = 0
    while exchanges < EXCHANGES and previous[: len(previous) - 2 * exchanges]:
        if not all(map(readable, previous[: len(previous) - 2 * exchanges][-2:])):
            break
        exchanges += 1
    return list(previous[-2 * exchanges :]) if exchanges else []


def record_parts(text: str) -> list[str]:
    """Return what stands for a record: all of it, then the parts of a long one.

    The parts are runs of sentences, each beginning with the last sentence of the one before where both fit. There are
    at most `RECORD_PARTS`; they grow with the record, of which the first and last `MOST_READ_OF_ONE` / 2 characters
    are read.
    """
    text = _SPECIAL.sub(" ", text).strip()
    if len(text) <= LONG_CHARACTERS:
        return [text]
    read = _ends(text, MOST_READ_OF_ONE, MOST_READ_OF_ONE // 2)
    size = max(PART_CHARACTERS, -(-len(read) // RECORD_PARTS))
    while len(parts := _runs(_pieces(read, max(size, LONG_CHARACTERS)), size)) > RECORD_PARTS:
        size += size // 4
    return [_whole(text), *parts]


def _pieces(text: str, size: int) -> list[str]:
    """Return the sentences; one that is longer than a part is broken at spaces, or anywhere if it has none."""
    pieces = []
    for sentence in _SENTENCES.split(text):
        rest = sentence
        while len(rest) > size:
            space = rest.rfind(" ", size // 2, size)
            pieces.append(rest[: space if space > 0 else size])
            rest = rest[len(pieces[-1]) :].lstrip()
        if rest:
            pieces.append(rest)
    return pieces


def _runs(pieces: list[str], size: int) -> list[str]:
    runs: list[list[str]] = []
    for piece in pieces:
        run = runs[-1] if runs else []
        if run and sum(map(len, run)) + len(run) + len(piece) <= size:
            run.append(piece)
        else:
            fits = bool(run) and len(run[-1]) + 1 + len(piece) <= size
            runs.append([run[-1], piece] if fits else [piece])
    return [" ".join(run) for run in runs]


def _whole(text: str) -> str:
    return _ends(text, WHOLE_CHARACTERS, WHOLE_CHARACTERS // 2)


def _ends(text: str, most: int, end: int) -> str:
    """Return a text, or the beginning and the last `end` characters of one longer than `most`."""
    return text if len(text) <= most else f"{text[: most - end]} … {text[-end:]}"
