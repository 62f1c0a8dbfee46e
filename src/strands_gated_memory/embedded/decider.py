"""The decision model of this package as a `Decider`: in process, on CPU, without a request.

It answers the package's own questions (gate, namespace, record) and abstains from the rest: another
wording, another type, a text that is not English. It never guesses outside what its heads were fitted on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.questions import Answer, NoAnswer, Noul, Question, State, Thresholds
from ..runtime import clock
from .encoder import DATA, Encoder, default_encoder
from .heads import Head, read_about, read_heads
from .language import readable, surely_english
from .reading import LONG_CHARACTERS, MOST_READ_OF_ONE, history, mostly_unread, record_parts, turn_text, turns_of

MOST_READ = 64_000
"""Characters of long records that one request reads, about a second's work; what is longer is not judged."""

_AT_ONCE = 32
"""Subjects that are read before a look at the clock, about a tenth of a second's work."""

_ABSTAINED = NoAnswer("abstained")


class EmbeddedDecider:
    """Decides with the shipped sentence encoder and heads; English only.

    Making one is cheap: the model loads at the first question, or at `warm()`. Deciders share the process's
    encoder and its cache, so a turn encodes its message once for the gate and the records, and records and
    descriptions once for all turns.

    Args:
        encoder: The encoder; None for the process's shared one.
        heads: The heads' file; None for the package's own.

    Attributes:
        model_id: Names the encoder and the heads, such as "embedded-2".
        thresholds: Where its probabilities were measured to separate best, recall first.
        answers_custom: False: it abstains from questions of a caller's own.
        bounded: True: it reads as much as there is time for, in the turn's own thread.
    """

    model_id: str
    thresholds: Thresholds
    answers_custom = False
    bounded = True

    def __init__(self, encoder: Encoder | None = None, heads: str | os.PathLike[str] | None = None) -> None:
        self._path = DATA / "heads.npz" if heads is None else Path(heads)
        about = read_about(self._path)
        self.model_id = about.model_id
        self.thresholds = about.thresholds
        self._encoder = encoder
        self._heads: dict[str, Head] | None = None

    def __repr__(self) -> str:
        return f"EmbeddedDecider({self.model_id!r})"

    @property
    def is_loaded(self) -> bool:
        """Whether the encoder, which takes the time, is in memory."""
        return self._encoding().is_loaded

    def warm(self) -> None:
        """Load the model and run it once, in this thread.

        Raises:
            Exception: A data file is missing or damaged.
        """
        self._loaded()
        self._encoding().encode(["warm"])

    def decide(self, state: State, questions: Mapping[str, Question]) -> dict[str, Answer]:
        """Answer the questions about one turn.

        Args:
            state: The message and the texts before it; of these the last three exchanges count.
            questions: Question per id.

        Returns:
            An answer per id: P(yes). `NoAnswer("abstained")` for a custom question, a type other than noul, a message
            that is not surely English, a subject that is not English, and for the gate when most of a very long
            message is not read. `NoAnswer("too_long")` for long records beyond `MOST_READ` characters in all.

        Raises:
            Exception: The model could not be loaded or run.
        """
        answers: dict[str, Answer] = dict.fromkeys(questions, _ABSTAINED)
        message = state["message"]
        if not surely_english(message):
            return answers
        turns = turns_of(message, history(state["previous"]))
        groups: dict[str, list[str]] = {}
        long_read = 0
        for key, question in questions.items():
            if not _mine(question) or (question.about == "gate" and mostly_unread(message)):
                continue
            length = len(question.subject or "")
            long_read += min(length, MOST_READ_OF_ONE) if length > LONG_CHARACTERS else 0
            if length > LONG_CHARACTERS and long_read > MOST_READ:
                answers[key] = NoAnswer("too_long")
            else:
                groups.setdefault(question.about, []).append(key)
        for about, keys in groups.items():
            if about == "gate":  # every gate question of a request is the same question
                [chance] = self._by_part("gate", turns, [])
                answers.update(dict.fromkeys(keys, Noul(chance)))
                continue
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                if start and clock.is_late():  # nobody waits for the rest
                    answers.update(dict.fromkeys(keys[start:], NoAnswer("timeout")))
                    break
                parts = [record_parts(questions[key].subject or "") for key in some]
                chances = iter(self._by_part(about, turns, [part for several in parts for part in several]))
                for key, several in zip(some, parts, strict=True):
                    answers[key] = Noul(max(next(chances) for _ in several))
        return answers

    def counted_part(self, state: State, record: str) -> str:
        """Return the part of a rendered record that its P comes from: all of a short one.

        Raises:
            Exception: The model could not be loaded or run.
        """
        parts = record_parts(record)
        chances = self._by_part("record", turns_of(state["message"], history(state["previous"])), parts)
        return parts[chances.index(max(chances))]

    def _by_part(self, about: str, turns: Sequence[tuple[str, Sequence[str]]], parts: Sequence[str]) -> list[float]:
        """Return the best P over the turns, for each part of a subject; one P for the gate."""
        import numpy as np

        vectors = self._encoding().encode([*(turn_text(*turn) for turn in turns), *parts])
        said, held = vectors[: len(turns)], vectors[len(turns) :] if parts else vectors[:1]
        rows = [np.broadcast_to(turn, held.shape) for turn in said]
        chances = [self._loaded()[about].probabilities(row, held) for row in rows]
        return [max(several) for several in zip(*chances, strict=True)]

    def _encoding(self) -> Encoder:
        return self._encoder or default_encoder()

    def _loaded(self) -> dict[str, Head]:
        if self._heads is None:
            self._heads = read_heads(self._path)  # twice at worst, to the same effect
        return self._heads


def _mine(question: Question) -> bool:
    if question.type != "noul" or question.about not in ("gate", "namespace", "record"):
        return False
    return question.about == "gate" or (question.subject is not None and readable(question.subject))
