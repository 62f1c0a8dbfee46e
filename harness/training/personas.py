"""Reads the labelled personas, stores and messages; each of them is wholly in one split.

- Personas: `corpus/{train,dev,test}/*.json`, a person's records and turns.
- Stores: `corpus/stores/{train,test}/*.jsonl`, one a line: records of a person, a team or a household, and queries.
- Messages: `corpus/messages/{train,test}/*.jsonl`, one a line: a message to some assistant, for the gate alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strands_gated_memory.core.gate import describe
from strands_gated_memory.core.render import render_record

Split = Literal["train", "dev", "test"]
"""What a persona is for: fitting; calibration and thresholds; figures alone."""

_DEFAULT_PATHS = {name: f"/{name}/{{actorId}}/" for name in ("facts", "preferences", "summaries", "episodes")}
"""The namespaces of stores and messages."""


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
        limits: Records that state a limit: health, belief, law, money, a promise; known of stores alone.
        name: What the person is called; "" where that is not known.
    """

    key: str
    split: Split
    descriptions: Mapping[str, tuple[str, ...]]
    records: Mapping[str, str]
    turns: tuple[Ask, ...]
    limits: frozenset[str] = frozenset()
    name: str = ""

    def pairs(self) -> list[tuple[int, int]]:
        """Return the positions of turns with the same words of which the first needs memory and the second does not."""
        found = list(enumerate(self.turns))
        return [
            (at, other)
            for at, turn in found
            for other, partner in found
            if turn.text == partner.text and turn.needed and not partner.needed
        ]


@dataclass(frozen=True)
class Message:
    """A labelled message to some assistant, without a store.

    Attributes:
        group: Where it was said: the assistant where that is known, else the file.
        text: The message.
        previous: Texts before it, oldest first.
        needed: Whether a lookup is worth making.
        namespaces: Keys of the namespaces that would hold what is needed.
        kind: The author's kind of message.
        language: Its code; "en" for English.
        pair: Messages that share it differ in one detail and in the label; "" without such a partner.
    """

    group: str
    text: str
    previous: tuple[str, ...]
    needed: bool
    namespaces: frozenset[str]
    kind: str
    language: str
    pair: str


def read_personas(corpus: Path, test: bool = False) -> list[Persona]:
    """Read every persona, sorted by key.

    Args:
        corpus: The folder that holds the splits.
        test: Whether to read the held-out ones too.
    """
    splits: Sequence[Split] = ("dev", "test", "train") if test else ("dev", "train")
    return [
        _persona(json.loads(path.read_text(encoding="utf-8")), path, split)
        for split in splits
        for path in sorted((corpus / split).glob("*.json"))
    ]


def read_stores(corpus: Path, split: Split) -> list[Persona]:
    """Read the stores of a split, as personas without a description of their own per namespace."""
    descriptions = _default_descriptions()
    return [
        Persona(
            key=f"{path.stem}/{store['id']}",
            split=split,
            descriptions=descriptions,
            records={record["id"]: render_record(record["text"]) for record in store["records"]},
            turns=tuple(_query(str(at), query, store["records"]) for at, query in enumerate(store["queries"])),
            limits=frozenset(record["id"] for record in store["records"] if record.get("lim")),
        )
        for path in sorted((corpus / "stores" / split).glob("*.jsonl"))
        for store in _lines(path)
    ]


def read_messages(corpus: Path, split: Split) -> list[Message]:
    """Read the messages of a split."""
    return [
        Message(
            group=item.get("a") or path.stem,
            text=item["u"],
            previous=tuple(item["p"]),
            needed=bool(item["m"]),
            namespaces=frozenset(item["ns"]),
            kind=item["k"],
            language=item["l"],
            pair=f"{path.stem} {item['pair']}" if item.get("pair") else "",
        )
        for path in sorted((corpus / "messages" / split).glob("*.jsonl"))
        for item in _lines(path)
    ]


def _lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _default_descriptions() -> dict[str, tuple[str, ...]]:
    return {name: (own,) for name, path in _DEFAULT_PATHS.items() if (own := describe(path))}


def _query(key: str, query: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> Ask:
    homes = {record["id"]: record["ns"] for record in records}
    return Ask(
        key,
        query["q"],
        tuple(query["p"]),
        needed=2 in query["g"].values(),
        namespaces=frozenset(homes[record] for record, grade in query["g"].items() if grade == 2),
        category="",
        grades=query["g"],
    )


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
        name=data["name"],
    )


def _said(item: str | Mapping[str, str]) -> str:
    """Return an earlier text; some authors wrote {"role": .., "text": ..}."""
    return item if isinstance(item, str) else item["text"]
