"""The decision model of this package as a `Decider`: in process, on CPU, without a request.

It answers the package's own questions (gate, namespace, record) and abstains from the rest: another
wording, another type, a text that is not English. It never guesses outside what its heads were fitted on.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.questions import Answer, NoAnswer, Noul, Question, State, Thresholds
from .encoder import DATA, Encoder, default_encoder
from .heads import Head, read_about, read_heads
from .language import readable

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
    """

    model_id: str
    thresholds: Thresholds
    answers_custom = False

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
            state: The message and the texts before it; of these the last exchange counts.
            questions: Question per id.

        Returns:
            An answer per id: P(yes), or `NoAnswer("abstained")` for a custom question, a type other than
            noul, a message or a subject that is not English.

        Raises:
            Exception: The model could not be loaded or run.
        """
        answers: dict[str, Answer] = dict.fromkeys(questions, _ABSTAINED)
        if not readable(state["message"]):
            return answers
        previous = state["previous"] if all(readable(text) for text in state["previous"][-2:]) else []
        groups: dict[str, list[str]] = {}
        for key, question in questions.items():
            if _mine(question):
                groups.setdefault(question.about, []).append(key)
        for about, keys in groups.items():
            subjects = [] if about == "gate" else [questions[key].subject or "" for key in keys]
            probabilities = self._ask(about, state["message"], previous, subjects)
            # Every gate question of a request is the same question, so its one row answers all of them.
            rows = probabilities * len(keys) if about == "gate" else probabilities
            answers.update({key: Noul(p) for key, p in zip(keys, rows, strict=True)})
        return answers

    def _ask(self, about: str, message: str, previous: Sequence[str], subjects: Sequence[str]) -> list[float]:
        from .features import Blocks, Texts, texts_used

        head = self._loaded()[about]
        texts = Texts.of(message, previous)
        names = texts_used(head.blocks())
        vectors = self._encoding().encode([*texts.get(names), *subjects])
        turn = dict(zip(names, vectors, strict=False))
        return head.probabilities(Blocks(texts, turn, subjects, vectors[len(names) :] if subjects else None))

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
