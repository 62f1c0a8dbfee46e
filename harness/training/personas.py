"""Reads the labelled personas and splits them; a persona is wholly in one split.

Two layouts: `corpus/{train,dev,test}/*.json`, taken as they are; or one folder per author, where a persona
goes to dev or train by a hash of its name, and the folders t1, t2, ... are the held-out test.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.router import describe

Split = Literal["train", "dev", "test"]
"""What a persona is for: fitting; calibration and thresholds; figures alone."""

DEV_SHARE = 5
"""One persona in so many is dev, in the layout by author."""


@dataclass(frozen=True)
class Ask:
    """One labelled turn.

    Attributes:
        key: Its id within the persona.
        text: The user's message.
        previous: Texts before it, oldest first.
        needed: Whether a lookup is worth making.
        namespaces: Keys of the namespaces that hold what is needed.
        category: The author's category.
        grades: 1 or 2 per record id; the others are 0.
    """

    key: str
    text: str
    previous: tuple[str, ...]
    needed: bool
    namespaces: frozenset[str]
    category: str
    grades: Mapping[str, int]


@dataclass(frozen=True)
class Persona:
    """One invented person: what is stored about them, and labelled turns.

    Attributes:
        key: "folder/id", unique.
        split: What it is for.
        descriptions: Per namespace, the author's phrase and the one `describe` makes of its path, if any.
        records: Per record id, the text as `render_record` shows it to a decision model.
        turns: The labelled turns.
    """

    key: str
    split: Split
    descriptions: Mapping[str, tuple[str, ...]]
    records: Mapping[str, str]
    turns: tuple[Ask, ...]

    def pairs(self) -> list[tuple[int, int]]:
        """Return the positions of turns with the same words of which the first needs memory and the second does not."""
        found = list(enumerate(self.turns))
        return [
            (at, other)
            for at, turn in found
            for other, partner in found
            if turn.text == partner.text and turn.needed and not partner.needed
        ]


def read_personas(corpus: Path, test: bool = False) -> list[Persona]:
    """Read every persona, sorted by key.

    Args:
        corpus: The folder that holds the folders.
        test: Whether to read the held-out ones too.
    """
    found = []
    for path in sorted(corpus.glob("*/*.json")):
        split = _split(path)
        if split != "test" or test:
            found.append(_persona(json.loads(path.read_text(encoding="utf-8")), path, split))
    return found


def _split(path: Path) -> Split:
    folder = path.parent.name
    if folder in ("train", "dev", "test"):
        return folder  # type: ignore[return-value]  # narrowed by the line above
    if re.fullmatch(r"t\d", folder):
        return "test"
    digest = hashlib.blake2b(f"{folder}/{path.stem}".encode(), digest_size=4).digest()
    return "dev" if int.from_bytes(digest, "big") % DEV_SHARE == 0 else "train"


def _persona(data: Mapping[str, Any], path: Path, split: Split) -> Persona:
    descriptions = {}
    for name, namespace in data["namespaces"].items():
        own = describe(namespace["path"])
        descriptions[name] = (namespace["description"], *((own,) if own else ()))
    return Persona(
        key=f"{path.parent.name}/{path.stem}",
        split=split,
        descriptions=descriptions,
        records={record["id"]: render_record(record["text"]) for record in data["records"]},
        turns=tuple(
            Ask(
                turn["id"],
                turn["text"],
                tuple(map(_said, turn["previous"])),
                turn["needs_memory"],
                frozenset(turn["namespaces"]),
                turn["category"],
                turn["labels"],
            )
            for turn in data["turns"]
        ),
    )


def _said(item: str | Mapping[str, str]) -> str:
    """Return an earlier text; some authors wrote {"role": .., "text": ..}."""
    return item if isinstance(item, str) else item["text"]
