"""Check the labelled personas, stores and messages: structure, balance, repeated phrasing, and leaks between splits.

    python -m harness.training.check_corpus [--corpus FOLDER]

Prints one table and every problem; ends with 1 if there is any.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

LEAST_RECORDS, LEAST_TURNS = 25, 30
LEAST_STORE_RECORDS, LEAST_STORE_QUERIES = 15, 8
LEAST_WITH_PREVIOUS = 0.25
"""Share of a persona's turns that have earlier turns."""
NEEDED = (0.4, 0.6)
"""Share of a persona's turns that need memory, from and to."""
MOST_REPEATED = 0.02
"""Share of all turns that may have a six-word run in common with a turn of another persona."""
NEAR_DUPLICATE = 0.9
"""Cosine of character 3- to 5-grams (TF-IDF) from which on two texts count as the same."""
SHORTEST_COMPARED = 5
"""Words; shorter texts ("Thanks a lot.") repeat in any corpus."""
LEAST_OF_KIND = {"SEMANTIC": 8, "USER_PREFERENCE": 6}
LEAST_OTHER_KINDS = 4

Needed = Literal[
    "plain_needed",
    "no_shared_words",
    "reference",
    "safety",
    "scheduling",
    "style_invoked",
    "updated_fact",
    "follow_up_needed",
    "several_namespaces",
    "not_in_store",
    "like_last_time",
    "summary_lookup",
    "other_needed",
]
NotNeeded = Literal[
    "greeting",
    "acknowledgement",
    "arithmetic",
    "general_knowledge",
    "technical_general",
    "first_person_self_contained",
    "sounds_personal_is_general",
    "new_information",
    "live_data",
    "already_in_context",
    "follow_up_general",
    "pasted_text",
    "about_the_assistant",
    "style_not_invoked",
    "other_not_needed",
]
OTHERS = {"other_needed", "other_not_needed"}
"""Categories that a split may lack."""
Strategy = Literal["SEMANTIC", "USER_PREFERENCE", "SUMMARIZATION", "EPISODIC", "REFLECTION", "SELF_MANAGED"]
UsualNamespace = Literal["preferences", "facts", "summaries", "episodes"]
Text = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Namespace(_Strict):
    """Where records of one kind are kept."""

    path: str = Field(pattern=r"^/.*/$")
    description: Text


class StoredRecord(_Strict):
    """A record as AgentCore would return it."""

    id: Text
    namespace: Text
    strategy: Strategy
    text: Text

    @model_validator(mode="after")
    def _shape(self) -> StoredRecord:
        if self.strategy in ("USER_PREFERENCE", "EPISODIC", "REFLECTION"):
            try:
                json.loads(self.text)
            except ValueError as error:
                raise ValueError(f"record {self.id}: a {self.strategy} text is a JSON string: {error}") from error
        if self.strategy == "SUMMARIZATION" and "<topic" not in self.text:
            raise ValueError(f"record {self.id}: a summary has <topic name=…>")
        return self


class LabelledTurn(_Strict):
    """A message, what was said before, and what it needs."""

    id: Text
    text: Text
    previous: list[Text]
    needs_memory: bool
    namespaces: list[str]
    category: Needed | NotNeeded
    labels: dict[str, Literal[1, 2]]
    why: dict[str, Text]
    pair: str | None = None

    @model_validator(mode="after")
    def _agree(self) -> LabelledTurn:
        where = f"turn {self.id}"
        if len(self.previous) % 2:
            raise ValueError(f"{where}: previous is pairs of user and assistant, ending with the assistant")
        if self.needs_memory != (self.category in Needed.__args__):  # type: ignore[attr-defined]
            raise ValueError(f"{where}: category {self.category} with needs_memory {self.needs_memory}")
        must = 2 in self.labels.values()
        if must and not self.needs_memory:
            raise ValueError(f"{where}: a record has grade 2, so memory is needed")
        if self.needs_memory and not must and self.category != "not_in_store":
            raise ValueError(f"{where}: memory is needed but no record has grade 2; use not_in_store")
        if self.needs_memory != bool(self.namespaces):
            raise ValueError(f"{where}: namespaces are given exactly when memory is needed")
        if missing := sorted(set(self.labels) - set(self.why)):
            raise ValueError(f"{where}: no reason for {', '.join(missing)}")
        return self


class CorpusPersona(_Strict):
    """One invented person, as stored in the corpus."""

    id: Text
    author: Text
    name: Text
    about: Text
    domain: Text
    namespaces: dict[str, Namespace] = Field(min_length=1)
    records: list[StoredRecord] = Field(min_length=LEAST_RECORDS)
    turns: list[LabelledTurn] = Field(min_length=LEAST_TURNS)

    @model_validator(mode="after")
    def _refer_to_what_exists(self) -> CorpusPersona:
        homes = {record.id: record.namespace for record in self.records}
        for kind, ids in (("record", [r.id for r in self.records]), ("turn", [t.id for t in self.turns])):
            if twice := sorted(name for name, times in Counter(ids).items() if times > 1):
                raise ValueError(f"{kind} ids used twice: {', '.join(twice)}")
        if unknown := sorted(set(homes.values()) - set(self.namespaces)):
            raise ValueError(f"records name unknown namespaces: {', '.join(unknown)}")
        for turn in self.turns:
            if unknown := sorted(set(turn.namespaces) - set(self.namespaces)):
                raise ValueError(f"turn {turn.id} names unknown namespaces: {', '.join(unknown)}")
            for name, grade in turn.labels.items():
                if name not in homes:
                    raise ValueError(f"turn {turn.id} grades the unknown record {name}")
                if grade == 2 and homes[name] not in turn.namespaces:
                    raise ValueError(f"turn {turn.id}: {name} has grade 2, so {homes[name]} belongs to its namespaces")
        return self


class StoreRecord(_Strict):
    """A record of a store; `lim` is 1 where it states a limit."""

    id: Text
    ns: UsualNamespace
    strategy: Strategy
    text: Text
    lim: Literal[1] | None = None


class StoreQuery(_Strict):
    """A message to a store, with a grade per record that bears on it."""

    q: Text
    p: list[Text]
    l: Text  # noqa: E741 - as written
    g: dict[str, Literal[1, 2]]


class CorpusStore(_Strict):
    """A store of records and messages to it, a line of `stores/*/*.jsonl`."""

    id: Text
    style: Text
    records: list[StoreRecord] = Field(min_length=LEAST_STORE_RECORDS)
    queries: list[StoreQuery] = Field(min_length=LEAST_STORE_QUERIES)

    @model_validator(mode="after")
    def _refer_to_what_exists(self) -> CorpusStore:
        ids = Counter(record.id for record in self.records)
        if twice := sorted(name for name, times in ids.items() if times > 1):
            raise ValueError(f"record ids used twice: {', '.join(twice)}")
        for query in self.queries:
            if unknown := sorted(set(query.g) - set(ids)):
                raise ValueError(f"query {query.q!r} grades the unknown records {', '.join(unknown)}")
            if len(query.p) % 2:
                raise ValueError(f"query {query.q!r}: p is pairs of user and assistant, ending with the assistant")
        return self


class CorpusMessage(_Strict):
    """A message to some assistant, a line of `messages/*/*.jsonl`."""

    u: Text
    p: list[Text]
    m: Literal[0, 1]
    ns: list[UsualNamespace]
    k: Text
    l: Text  # noqa: E741 - as written
    a: Text | None = None
    pair: Text | None = None

    @model_validator(mode="after")
    def _agree(self) -> CorpusMessage:
        if bool(self.ns) != bool(self.m):
            raise ValueError(f"message {self.u!r}: namespaces are given exactly when memory is needed")
        if len(self.p) % 2:
            raise ValueError(f"message {self.u!r}: p is pairs of user and assistant, ending with the assistant")
        return self


def balance(persona: CorpusPersona) -> list[str]:
    """Return what a persona has too little or too much of."""
    problems = []
    kinds = Counter(record.strategy for record in persona.records)
    for kind, least in LEAST_OF_KIND.items():
        if kinds[kind] < least:  # type: ignore[index]  # the keys are strategies
            problems.append(f"{kinds[kind]} {kind} records; at least {least}")  # type: ignore[index]
    others = sum(n for kind, n in kinds.items() if kind not in LEAST_OF_KIND)
    if others < LEAST_OTHER_KINDS:
        problems.append(f"{others} records of other kinds; at least {LEAST_OTHER_KINDS}")
    total = len(persona.turns)
    needed = sum(turn.needs_memory for turn in persona.turns) / total
    if not NEEDED[0] <= needed <= NEEDED[1]:
        problems.append(f"{needed:.0%} of the turns need memory; {NEEDED[0]:.0%} to {NEEDED[1]:.0%}")
    before = sum(bool(turn.previous) for turn in persona.turns) / total
    if before < LEAST_WITH_PREVIOUS:
        problems.append(f"{before:.0%} of the turns have earlier turns; at least {LEAST_WITH_PREVIOUS:.0%}")
    return problems


def repeated(texts: Mapping[tuple[str, str], str]) -> set[tuple[str, str]]:
    """Return the keys (persona, turn) whose text shares a run of six words with another persona's."""
    runs: dict[tuple[str, ...], set[tuple[str, str]]] = defaultdict(set)
    for key, text in texts.items():
        words = re.findall(r"\w+", text.lower())
        for at in range(len(words) - 5):
            runs[tuple(words[at : at + 6])].add(key)
    return {key for keys in runs.values() if len({persona for persona, _ in keys}) > 1 for key in keys}


def leaks(texts: Sequence[tuple[str, str, str]]) -> list[str]:
    """Return near-duplicates across splits.

    Args:
        texts: (split, where, text) each.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    compared = [row for row in texts if len(row[2].split()) >= SHORTEST_COMPARED]
    by_split = {split: [row for row in compared if row[0] == split] for split in ("train", "dev", "test")}
    if sum(map(bool, by_split.values())) < 2:
        return []
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True).fit(
        [t for _, _, t in compared]
    )
    found = []
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        if not by_split[one] or not by_split[other]:
            continue
        left, right = (vectors.transform([text for _, _, text in by_split[split]]) for split in (one, other))
        likeness = (left @ right.T).tocoo()
        for row, column, value in zip(likeness.row, likeness.col, likeness.data, strict=True):
            if value >= NEAR_DUPLICATE:
                a, b = by_split[one][row], by_split[other][column]
                found.append(f"{a[1]} ({one}) and {b[1]} ({other}) are near-duplicates: {value:.2f}")
    return found


_Line = TypeVar("_Line", CorpusStore, CorpusMessage)


def _lines(folder: Path, shape: type[_Line], problems: list[str]) -> dict[str, list[tuple[str, _Line]]]:
    """Return the lines of each split with where they stand, and add what is wrong with the others to the problems."""
    found: dict[str, list[tuple[str, _Line]]] = defaultdict(list)
    for path in sorted(folder.glob("*/*.jsonl")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{folder.name}/{path.parent.name}/{path.name}:{number}"
            try:
                found[path.parent.name].append((where, shape.model_validate_json(line)))
            except ValidationError as error:
                problems += [f"{where}: {'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:3]]
    return found


def check_lines(corpus: Path) -> tuple[list[list[str]], list[str]]:
    """Check the stores and messages.

    Returns:
        Rows (kind, split, how many, records, queries, share that needs memory), and all problems.
    """
    problems: list[str] = []
    stores = _lines(corpus / "stores", CorpusStore, problems)
    messages = _lines(corpus / "messages", CorpusMessage, problems)
    rows = []
    for split, found in stores.items():
        queries = [query for _, store in found for query in store.queries]
        needed = sum(2 in query.g.values() for query in queries) / max(1, len(queries))
        records = sum(len(store.records) for _, store in found)
        rows.append(["stores", split, str(len(found)), str(records), str(len(queries)), f"{needed:.0%}"])
    for split, lines in messages.items():
        needed = sum(message.m for _, message in lines) / max(1, len(lines))
        rows.append(["messages", split, str(len(lines)), "", "", f"{needed:.0%}"])
        pairs: dict[str, list[int]] = defaultdict(list)
        for where, message in lines:
            if message.pair:
                pairs[f"{where.rpartition(':')[0]} {message.pair}"].append(message.m)
        problems += [f"{pair}: a pair is one 0 and one 1" for pair, labels in pairs.items() if sorted(labels) != [0, 1]]
    texts = [
        (split, where, query.q) for split, found in stores.items() for where, store in found for query in store.queries
    ]
    texts += [(split, where, message.u) for split, lines in messages.items() for where, message in lines]
    records = [
        (split, where, record.text)
        for split, found in stores.items()
        for where, store in found
        for record in store.records
    ]
    return rows, [*problems, *leaks(texts), *leaks(records)]


def check(corpus: Path) -> tuple[list[list[str]], list[str]]:
    """Return the table's rows (split, personas, records, turns, needed, with history, categories), and all problems."""
    problems: list[str] = []
    splits: dict[str, list[CorpusPersona]] = defaultdict(list)
    for path in sorted(corpus.glob("*/*.json")):
        where = f"{path.parent.name}/{path.name}"
        try:
            persona = CorpusPersona.model_validate_json(path.read_text(encoding="utf-8"))
        except ValidationError as error:
            problems += [
                f"{where}: {'.'.join(map(str, e['loc'])) or 'the whole'}: {e['msg']}" for e in error.errors()[:5]
            ]
            continue
        splits[path.parent.name].append(persona)
        problems += [f"{where}: {problem}" for problem in balance(persona)]
    turns = [(split, p.id, t) for split, personas in splits.items() for p in personas for t in p.turns]
    again = repeated({(persona, turn.id): turn.text for _, persona, turn in turns})
    if turns and len(again) > MOST_REPEATED * len(turns):
        problems.append(f"{len(again)} of {len(turns)} turns share a six-word run across personas: at most 2 %")
    problems += leaks([(split, f"{persona} {turn.id}", turn.text) for split, persona, turn in turns])
    problems += leaks(
        [(split, f"{p.id} {r.id}", r.text) for split, personas in splits.items() for p in personas for r in p.records]
    )
    every = (set(Needed.__args__) | set(NotNeeded.__args__)) - OTHERS  # type: ignore[attr-defined]
    for split, personas in splits.items():
        if absent := every - {turn.category for persona in personas for turn in persona.turns}:
            problems.append(f"{split}: no turn of {', '.join(sorted(absent))}")
    return [_row(split, splits[split]) for split in ("train", "dev", "test") if split in splits], problems


def _row(split: str, personas: Iterable[CorpusPersona]) -> list[str]:
    personas = list(personas)
    turns = [turn for persona in personas for turn in persona.turns]
    return [
        split,
        str(len(personas)),
        str(sum(len(persona.records) for persona in personas)),
        str(len(turns)),
        f"{sum(turn.needs_memory for turn in turns) / len(turns):.0%}",
        f"{sum(bool(turn.previous) for turn in turns) / len(turns):.0%}",
    ]


def main() -> None:
    """Check, print, and end with 1 on any problem."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parent / "corpus")
    options = parser.parse_args()
    rows, problems = check(options.corpus)
    for row in [["split", "personas", "records", "turns", "need memory", "with earlier turns"], *rows]:
        print("  ".join(f"{cell:>11}" for cell in row))
    others, wrong = check_lines(options.corpus)
    for row in [["", "split", "lines", "records", "queries", "need memory"], *others]:
        print("  ".join(f"{cell:>11}" for cell in row))
    problems += wrong
    print("\n".join(problems) if problems else "no problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
