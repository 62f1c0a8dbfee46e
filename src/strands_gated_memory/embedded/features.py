"""What the heads see of a turn and of a subject: one pure function, shared by training and run time.

Texts and their vectors come in; named blocks of numbers go out, one row per example. A head names the
blocks it reads, so new blocks can be added without touching heads that exist.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .language_words import PLEASANTRIES
from .reading import excerpt, turn_text

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Texts:
    """The texts of a turn, each of which can have a vector.

    Attributes:
        message: The user's message.
        user: The user's text before it; "" without history.
        assistant: The assistant's reply to that; "" without history.
        context: The user's text before it and the message; the message alone without history.
        whole: The message, the user's text before it and the reply, as `turn_text` joins them.
    """

    message: str
    user: str
    assistant: str
    context: str
    whole: str

    @classmethod
    def of(cls, message: str, previous: Sequence[str]) -> Texts:
        """Read a turn: the last exchange before the message counts.

        Args:
            message: The user's message.
            previous: Texts before it, oldest first, ending with the assistant's.
        """
        user, assistant = (excerpt(text) for text in ("", "", *previous)[-2:])
        context = f"{user}\n{message}" if user else message
        return cls(message, user, assistant, context, turn_text(message, previous))

    def get(self, names: Sequence[str]) -> list[str]:
        """Return the texts of these names."""
        return [str(getattr(self, name)) for name in names]


TEXTS = ("message", "user", "assistant", "context", "whole")
"""The names of a turn's texts, and of the blocks that hold their vectors."""


def texts_used(names: Iterable[str]) -> list[str]:
    """Return which of a turn's texts these blocks need a vector of, in the order of `TEXTS`."""
    parts = {part for name in names for part in re.split(r"[*.~]", name)}
    return [name for name in TEXTS if name in parts]


class Blocks:
    """The blocks of one turn, by name, computed when asked for.

    Args:
        texts: The turn.
        vectors: Vector per name of a text; those that are asked for must be there.
        subjects: Records or descriptions; none for the gate.
        subject_vectors: (len(subjects), width): their vectors; None for the gate.
    """

    def __init__(
        self,
        texts: Texts,
        vectors: Mapping[str, Array],
        subjects: Sequence[str] = (),
        subject_vectors: Array | None = None,
    ) -> None:
        self._texts = texts
        self._subjects = subjects
        self._rows = 1 if subject_vectors is None else len(subjects)
        self._found: dict[str, Array] = {}  # the networks of a head read the same blocks
        self._vectors = {
            name: np.broadcast_to(vector if getattr(texts, name) else 0 * vector, (self._rows, vector.size))
            for name, vector in vectors.items()
        }
        if subject_vectors is not None:
            self._vectors["subject"] = subject_vectors

    def get(self, name: str) -> Array:
        """Return a block, one row per subject, or one row for the gate.

        Args:
            name: A vector (one of `TEXTS`, or "subject"; an empty text's is zero); two vectors' products
                "a*b" or distances "a~b", element by element, or their dot product "a.b"; or one of the
                functions below, "turn", "overlap" or "subject_form".

        Raises:
            KeyError: There is no such block, or no such vector was given.
        """
        found = self._found.get(name)
        if found is None:
            found = self._found[name] = self._compute(name)
        return found

    def _compute(self, name: str) -> Array:
        if name in _COUNTED:
            return _COUNTED[name](self._texts, self._subjects, self._rows)
        left, sign, right = re.fullmatch(r"(\w+)(?:([*.~])(\w+))?", name).groups()  # type: ignore[union-attr]
        if not sign:
            return self._vectors[left]
        a, b = self._vectors[left], self._vectors[right]
        if sign == "~":
            distance: Array = np.abs(a - b)
            return distance
        product: Array = a * b
        return product if sign == "*" else product.sum(axis=1, keepdims=True)

    def join(self, names: Sequence[str]) -> Array:
        """Return several blocks side by side, float32."""
        return np.concatenate([self.get(name) for name in names], axis=1).astype(np.float32)


_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_I = re.IGNORECASE
_PATTERNS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, flags)
    for pattern, flags in (
        (r"\?", 0),
        (r"\?\s*$", 0),
        (r"!", 0),
        (r"\n", 0),
        (r"[\"“”:`{}<>=]", 0),
        (r"\d", 0),
        (r"\b(i|i'm|i've|i'd|i'll|im|ive|me|myself)\b", _I),
        (r"\b(my|mine|our|ours|we|us|we're|we've)\b", _I),
        (r"\b(you|your|you're|u)\b", _I),
        (r"\b(he|she|him|her|his|hers|they|them|their)\b", _I),
        (r"\b(it|its|that|this|these|those|there|one|ones)\b", _I),
        (r"\b(usual|usually|again|last time|before|always|still|as ever|same|back|next|left off|rem(ember|ind))\b", _I),
        (r"\b(should|can|could|may|would|ok for|safe|allowed|worth)\b", _I),
        (r"^\W*(what|which|who|where|when|why|how|whose|is|are|does|do|did|has|have|was|were|any)\b", _I),
        (r"^\W*(what's|what (is|are)|how (do|does)|why (do|does|is)|explain|define|who was|when did)\b", _I),
        (r"^\W*(write|draft|book|pick|plan|suggest|recommend|make|give|find|order|set|add|help|send|choose|put)\b", _I),
        (r"^\W*(rewrite|translate|fix|summari[sz]e|shorten|correct|convert|proofread|turn|rephrase)\b", _I),
        (r"\b(thanks?|cheers|ta|thx|ok|okay|great|perfect|lovely|nice|got it|cool|brilliant|noted|sorted)\b", _I),
        (r"^\W*(hi|hello|hey|hiya|morning|good (morning|evening|afternoon)|evening|yo)\b", _I),
        (r"^\W*(and|but|so|or|what about|how about|ok|then|also)\b", _I),
        (r"\b(today|tonight|tomorrow|now|this (week|weekend|morning|evening)|monday|friday|saturday|sunday)\b", _I),
        (r"\b(someone|somebody|people|person|a (man|woman|person|child)|anyone|everyone|generally)\b", _I),
        (r"(?<!^)(?<![.!?]\s)\b[A-Z][a-z]+", 0),
        (r"\d\s*[-+*/x×÷^%]\s*\d|\d+\s*%|\d+\s*\^", 0),
        (
            r"\d.*\b(plus|minus|times|divided|multiplied|per ?cent|squared|cubed|square root|subtract|take|away|"
            r"half of|a (third|quarter|fifth) of|double|left over|what's left|split|add)\b.*\d|"
            r"\b(miles|km|kilomet(re|er)s|pounds|kilos?|kg|celsius|fahrenheit|ounces|oz|grams|lit(re|er)s|cups|"
            r"inches|feet|cm|acres|hectares|gallons|pints|ml)\b.*\b(in|to|into|as|make)\b",
            _I,
        ),
    )
)


def turn(texts: Texts, _: Sequence[str], rows: int) -> Array:
    """Return what a person sees at a glance: length, question, pronouns, requests, thanks, history; 0..2 each."""
    message = texts.message[:4000]
    words = len(_WORD.findall(message))
    values = [float(bool(pattern.search(message))) for pattern in _PATTERNS]
    values += [
        math.log1p(words) / 3,
        *(float(words <= few) for few in (3, 6)),
        _pleasantry(message),
        math.log1p(len(message)) / 6,
        float(bool(texts.assistant)),
        math.log1p(len(texts.assistant)) / 6,
        float("?" in texts.assistant),
        float(bool(re.search(r"\b(your|you're|you)\b", texts.assistant, _I))),
        _share(message, texts.assistant),
        _share(message, texts.user),
    ]
    return np.broadcast_to(np.array(values, np.float32), (rows, len(values)))


def _pleasantry(message: str) -> float:
    """Return the share of a short message's words that greetings, thanks and acknowledgements are made of, 0..1."""
    words = [word.lower().replace("’", "'") for word in _WORD.findall(message.replace("’", "'"))]
    if not words or len(words) > 10:  # noqa: PLR2004 - a longer message says something besides
        return 0.0
    return sum(word in PLEASANTRIES for word in words) / len(words)


def overlap(texts: Texts, subjects: Sequence[str], _: int) -> Array:
    """Return which share of the message's and the context's longer words a subject holds, and of its names; 0..1."""
    wanted = [_stems(text) for text in (texts.message, texts.context, texts.assistant)]
    names = [_names(text) for text in (texts.message, texts.context)]
    rows = []
    for subject in subjects:
        held = _stems(subject)
        shares = (len(stems & held) / len(stems) if stems else 0.0 for stems in wanted)
        rows.append((*shares, *(float(any(name in subject for name in some)) for some in names)))
    return np.array(rows, np.float32).reshape(len(subjects), 5)


_FORMS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern, _I)
    for pattern in (
        r"prefer|taste|habit|style|like",
        r"fact|profile|about the user",
        r"summar|conversation|session",
        r"episode|tried|lesson|experience|reflection",
        r"allerg|intoleran|medic|condition|diet|cannot|never|does not|avoid",
    )
)


def subject_form(_: Texts, subjects: Sequence[str], __: int) -> Array:
    """Return a subject's kind and length, as far as its words tell; 0..2 each."""
    return np.array(
        [
            (*(float(bool(form.search(text))) for form in _FORMS), math.log1p(len(text)) / 6)
            for text in (subject[:2000] for subject in subjects)
        ],
        np.float32,
    ).reshape(len(subjects), len(_FORMS) + 1)


_COUNTED: Mapping[str, Callable[[Texts, Sequence[str], int], Array]] = {
    "turn": turn,
    "overlap": overlap,
    "subject_form": subject_form,
}


def _stems(text: str) -> set[str]:
    return {
        word[:5] for word in map(str.lower, _WORD.findall(text[:4000])) if len(word) >= _LONG and word not in _COMMON
    }


def _share(of: str, within: str) -> float:
    wanted = _stems(of)
    return len(wanted & _stems(within)) / len(wanted) if wanted else 0.0


def _names(text: str) -> set[str]:
    return {name for name in re.findall(r"\b[A-Z][a-z]{2,}", text[:4000]) if name.lower() not in _COMMON}


_LONG = 4
"""Letters from which on a word may bear on a subject."""
_COMMON = frozenset(
    """
    about after again also another anything because been before being best book both could does doing down each even
    every find from give going good have help here into just know like list long look make many maybe more most much
    need next only other over please prefers really right same should some something still such sure take tell than
    that their them then there these they thing things this those time today tonight told user user's very want week
    well were what what's when where which while will with without work would write year your
    """.split()
)
