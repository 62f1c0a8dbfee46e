"""Labelled personas as rows of numbers: the features of each gate, namespace and record question."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from strands_gated_memory.embedded.encoder import Encoder
from strands_gated_memory.embedded.features import TEXTS, Blocks, Texts

from .personas import Ask, Persona


@dataclass(frozen=True)
class Rows:
    """The rows of one question kind, turn by turn.

    Attributes:
        blocks: The features, one `Blocks` per turn.
        targets: Per row, how much the answer is yes: 0, 0.5 (grade 1) or 1.
        grades: Per row, 0, 1 or 2; for the gate and namespaces 0 or 2.
        turn: Per row, the index of its turn.
        needed: Per row, whether its turn needs memory.
        paired: Per row, whether another turn has the same words, with another history and another label.
    """

    blocks: tuple[Blocks, ...]
    targets: NDArray[np.float64]
    grades: NDArray[np.int64]
    turn: NDArray[np.int64]
    needed: NDArray[np.bool_]
    paired: NDArray[np.bool_]

    def join(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Return the named blocks of all rows, side by side."""
        return np.concatenate([block.join(names) for block in self.blocks])

    def width(self, name: str) -> int:
        """Return a block's columns."""
        return int(self.blocks[0].get(name).shape[1])


def gate_rows(personas: Sequence[Persona], encoder: Encoder) -> Rows:
    """Return one row per turn."""
    turns = [turn for persona in personas for turn in persona.turns]
    paired = {id(persona.turns[at]) for persona in personas for pair in persona.pairs() for at in pair}
    return _rows([(Blocks(*_turn(turn, encoder)), [2 * turn.needed], turn) for turn in turns], paired)


def namespace_rows(personas: Sequence[Persona], encoder: Encoder) -> Rows:
    """Return one row per description, for turns that need memory: the router is read when the gate is open.

    A namespace with two descriptions, the author's and the default, gives two rows.
    """
    found = []
    for persona in personas:
        pairs = [(name, text) for name, texts in persona.descriptions.items() for text in texts]
        for turn in (turn for turn in persona.turns if turn.needed):
            grades = [2 * (name in turn.namespaces) for name, _ in pairs]
            found.append((_pairs(turn, [text for _, text in pairs], encoder), grades, turn))
    return _rows(found)


def record_rows(personas: Sequence[Persona], encoder: Encoder) -> Rows:
    """Return one row per turn and record of its persona."""
    found = []
    for persona in personas:
        for turn in persona.turns:
            grades = [turn.grades.get(record, 0) for record in persona.records]
            found.append((_pairs(turn, list(persona.records.values()), encoder), grades, turn))
    return _rows(found)


def _pairs(turn: Ask, subjects: list[str], encoder: Encoder) -> Blocks:
    return Blocks(*_turn(turn, encoder), subjects, encoder.encode(subjects))


def _turn(turn: Ask, encoder: Encoder) -> tuple[Texts, dict[str, NDArray[np.float32]]]:
    texts = Texts.of(turn.text, turn.previous)
    return texts, dict(zip(TEXTS, encoder.encode(texts.get(TEXTS)), strict=True))


def _rows(found: list[tuple[Blocks, list[int], Ask]], paired: Set[int] = frozenset()) -> Rows:
    grades = np.array([grade for _, row, _ in found for grade in row], np.int64)
    return Rows(
        blocks=tuple(block for block, _, _ in found),
        targets=grades / 2,
        grades=grades,
        turn=np.array([at for at, (_, row, _) in enumerate(found) for _ in row], np.int64),
        needed=np.array([turn.needed for _, row, turn in found for _ in row], np.bool_),
        paired=np.array([id(turn) in paired for _, row, turn in found for _ in row], np.bool_),
    )
