"""Labelled data: schema, loader, and errors that name file, item and field.

A data file is JSON of one of three forms, told apart by its shape; docs/harness.md says how to write each.

- a list of utterances: gate and router (`GateItem`), such as data/gate_dev.json;
- {"personas": [{"records": …, "queries": …}]}: graded relevance, such as data/relevance_dev.json;
- {"records": …, "conversation": …, "gate20": …, "validator": …, "shape_probe": …}: one person, such as
  data/persona.json.

`load` turns each into one `Dataset`, whose parts are empty where the file has nothing to say.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    ValidationError,
    model_validator,
)

from strands_gated_memory.core.gate import describe
from strands_gated_memory.core.questions import State

from ..errors import HarnessError

DATA = Path(__file__).parent


def _not_bool(value: Any) -> Any:
    """Refuse what Python takes for 0 and 1."""
    if isinstance(value, bool):
        raise ValueError(f"must be 0, 1 or 2, got {value}")
    return value


Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=False, max_length=64_000)]
Grade = Annotated[Literal[0, 1, 2], BeforeValidator(_not_bool)]
"""2: must be in the prompt; 1: a good reply could use it; 0: no bearing."""


class Item(BaseModel):
    """Base of what is read from files: frozen; fields that are not known here are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class JudgedRecord(Item):
    """A record and how much it bears on one query."""

    id: str
    text: Text
    """As stored."""
    grade: Grade


class GateItem(Item):
    """An utterance and whether a lookup is worth making."""

    id: str = ""
    utterance: Text
    previous: tuple[str, ...] = ()
    """Texts before it, oldest first, user and assistant alternating."""
    needs_memory: StrictBool
    namespaces: tuple[str, ...] = ()
    """Those that must be searched; empty when none, or when nobody labelled them."""
    namespaces_optional: tuple[str, ...] = ()
    """Those that may be searched or not."""
    lang: str = "en"
    category: str = ""
    records: tuple[JudgedRecord, ...] = ()
    """Records that were found for it, graded; such as `label` writes."""

    @property
    def state(self) -> State:
        """What a decider is asked about."""
        return {"message": self.utterance, "previous": list(self.previous)}


class RouterItem(Item):
    """An utterance that needs memory, and which of the namespaces it needs."""

    id: str
    utterance: Text
    previous: tuple[str, ...] = ()
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    candidates: Mapping[str, str]
    """Description per namespace: what the router is asked about."""
    lang: str = "en"

    @property
    def state(self) -> State:
        """What a decider is asked about."""
        return {"message": self.utterance, "previous": list(self.previous)}


class StoredRecord(Item):
    """A record of a person's memory."""

    id: str = Field(min_length=1)
    namespace: str = ""
    strategy: str = ""
    text: Text


class ValidatorQuery(Item):
    """A query and graded records."""

    id: str
    query: Text
    previous: tuple[str, ...] = ()
    lang: str = "en"
    records: tuple[JudgedRecord, ...] = Field(min_length=1)

    @property
    def state(self) -> State:
        """What a decider is asked about."""
        return {"message": self.query, "previous": list(self.previous)}

    @property
    def needs_nothing(self) -> bool:
        """Whether no record has any bearing."""
        return all(record.grade == 0 for record in self.records)


class ShapePair(Item):
    """The same fact as prose and as the JSON that a strategy writes."""

    prose: Text
    json_text: Text = Field(alias="json")
    relevant_to: tuple[int, ...] = ()
    """Positions of the queries that it bears on."""


class ShapeProbe(Item):
    """Facts in two shapes, each asked about for each query."""

    queries: tuple[Text, ...] = Field(min_length=1)
    pairs: tuple[ShapePair, ...] = Field(min_length=1)


class ConversationTurn(Item):
    """One message of a conversation and what it needs."""

    turn: int = Field(ge=1)
    user: Text
    needs_memory: StrictBool
    relevant: Mapping[str, Grade] = Field(default_factory=dict)
    """Grade per record id; 0 may be left out."""


class Conversation(Item):
    """A person's memory and one conversation over it."""

    name: str
    actor_id: str
    namespaces: Mapping[str, str]
    """Path template per key."""
    records: tuple[StoredRecord, ...]
    same_fact_pairs: tuple[tuple[str, str], ...] = ()
    """Records that state the same fact."""
    turns: tuple[ConversationTurn, ...]


class SeedConversation(Item):
    """Messages from which a store is built."""

    session_id: str
    messages: tuple[tuple[Literal["USER", "ASSISTANT"], Text], ...]


class Dataset(Item):
    """What one file holds."""

    name: str
    """The file's name without its ending."""
    sha256: str
    """Of the file's bytes."""
    path: Path
    gate: tuple[GateItem, ...] = ()
    router: tuple[RouterItem, ...] = ()
    queries: tuple[ValidatorQuery, ...] = ()
    shape: ShapeProbe | None = None
    conversation: Conversation | None = None
    seed_conversations: tuple[SeedConversation, ...] = ()


# The three forms as they are in files


class _FileQuery(Item):
    id: str
    query: Text
    previous: tuple[str, ...] = ()
    lang: str = "en"
    labels: Mapping[str, Grade]


class _FilePersona(Item):
    id: str
    records: tuple[StoredRecord, ...]
    queries: tuple[_FileQuery, ...]

    @model_validator(mode="after")
    def _labels_name_records(self) -> _FilePersona:
        _check_unique("record", (record.id for record in self.records))
        _check_unique("query", (query.id for query in self.queries))
        known = {record.id for record in self.records}
        for query in self.queries:
            for name in query.labels:
                if name not in known:
                    raise ValueError(f"query {query.id!r}: labels names the record {name!r}, which does not exist")
        if self.queries and not self.records:
            raise ValueError("records: there are none to ask the queries about")
        return self


class _RelevanceFile(Item):
    personas: tuple[_FilePersona, ...] = Field(min_length=1)


class _FileMark(Item):
    id: str
    relevant: StrictBool


class _FileValidator(Item):
    id: str
    query: Text
    previous: tuple[str, ...] = ()
    records: tuple[_FileMark, ...] = Field(min_length=1)


class _FileShape(Item):
    pairs: tuple[ShapePair, ...] = Field(min_length=1)
    queries: tuple[Text, ...] = Field(min_length=1)
    relevant_pairs_per_query: Mapping[str, tuple[int, ...]] = Field(default_factory=dict)
    """Positions of pairs; one entry per query, in the order of the queries."""

    @model_validator(mode="after")
    def _positions_exist(self) -> _FileShape:
        per_query = self.relevant_pairs_per_query
        if per_query and len(per_query) != len(self.queries):
            raise ValueError(
                f"relevant_pairs_per_query has {len(per_query)} entries for {len(self.queries)} queries; "
                "it needs one per query, in their order"
            )
        for name, positions in per_query.items():
            for at in positions:
                if not 0 <= at < len(self.pairs):
                    raise ValueError(
                        f"relevant_pairs_per_query {name!r} names the pair {at}; there are {len(self.pairs)}, from 0 on"
                    )
        return self


class _PersonFile(Item):
    name: str = ""
    actor_id: str = "user"
    namespaces: Mapping[str, str] = Field(default_factory=dict)
    seed_conversations: tuple[SeedConversation, ...] = ()
    records: tuple[StoredRecord, ...] = ()
    same_fact_pairs: tuple[tuple[str, str], ...] = ()
    conversation: tuple[ConversationTurn, ...] = ()
    gate20: tuple[GateItem, ...] = ()
    validator: tuple[_FileValidator, ...] = ()
    shape_probe: _FileShape | None = None

    @model_validator(mode="after")
    def _names_exist(self) -> _PersonFile:
        _check_unique("record", (record.id for record in self.records))
        _check_unique("validator query", (query.id for query in self.validator))
        _check_unique("gate20 item", (item.id for item in self.gate20))
        known = {record.id for record in self.records}
        named = [(f"validator query {q.id!r}", mark.id) for q in self.validator for mark in q.records]
        named += [(f"conversation turn {turn.turn}", name) for turn in self.conversation for name in turn.relevant]
        for place, name in named:
            if name not in known:
                raise ValueError(f"{place} names the record {name!r}, which does not exist")
        for record in self.records:
            if self.namespaces and record.namespace not in self.namespaces:
                raise ValueError(f"record {record.id!r} has the namespace {record.namespace!r}, which does not exist")
        return self


class _GateFile(Item):
    items: tuple[GateItem, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> _GateFile:
        _check_unique("item", (item.id for item in self.items))
        return self


def _check_unique(kind: str, names: Iterable[str]) -> None:
    """Refuse an id that two items have; an empty one is none."""
    twice = [name for name, count in Counter(names).items() if name and count > 1]
    if twice:
        raise ValueError(f"{kind} {twice[0]!r}: more than one has this id")


def shipped(name: str) -> Dataset:
    """Return one of the data sets in harness/data, such as "persona"."""
    return load(DATA / f"{name}.json")


def load(path: Path) -> Dataset:
    """Read a data file.

    Raises:
        HarnessError: It cannot be read, is not JSON, or a field is wrong; names file, item and field.
    """
    try:
        raw = path.read_bytes()
        value = json.loads(raw)
    except (OSError, UnicodeDecodeError) as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    except json.JSONDecodeError as error:
        raise HarnessError(f"{path}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise HarnessError(f"{path}: not JSON that can be read: {error}") from error
    about = {"name": path.stem, "sha256": hashlib.sha256(raw).hexdigest(), "path": path}
    try:
        if isinstance(value, list):
            return Dataset(**about, **_from_gate(_GateFile.model_validate({"items": value}).items))
        if isinstance(value, dict) and "personas" in value:
            return Dataset(**about, queries=_from_relevance(_RelevanceFile.model_validate(value)))
        if isinstance(value, dict) and {"records", "gate20", "validator", "shape_probe", "conversation"} & set(value):
            return Dataset(**about, **_from_person(_PersonFile.model_validate(value)))
    except ValidationError as error:
        raise HarnessError(f"{path}: {_problems(error, value)}") from error
    raise HarnessError(
        f"{path}: not a form that is known; it should be a list of utterances, an object with personas, "
        "or an object with records, gate20, validator, shape_probe or conversation (docs/harness.md)"
    )


def _from_gate(items: Sequence[GateItem]) -> dict[str, Any]:
    numbered = tuple(item if item.id else item.model_copy(update={"id": str(at)}) for at, item in enumerate(items, 1))
    names = sorted({name for item in numbered for name in (*item.namespaces, *item.namespaces_optional)})
    candidates = {name: describe(f"/{name}/") or f"the user's {name}" for name in names}
    router = tuple(
        RouterItem(
            id=item.id,
            utterance=item.utterance,
            previous=item.previous,
            needed=item.namespaces,
            optional=item.namespaces_optional,
            candidates=candidates,
            lang=item.lang,
        )
        for item in numbered
        if item.needs_memory and item.namespaces
    )
    queries = tuple(
        ValidatorQuery(id=item.id, query=item.utterance, previous=item.previous, lang=item.lang, records=item.records)
        for item in numbered
        if item.records
    )
    return {"gate": numbered, "router": router, "queries": queries}


def _from_relevance(file: _RelevanceFile) -> tuple[ValidatorQuery, ...]:
    return tuple(
        ValidatorQuery(
            id=query.id,
            query=query.query,
            previous=query.previous,
            lang=query.lang,
            records=tuple(
                JudgedRecord(id=record.id, text=record.text, grade=query.labels.get(record.id, 0))
                for record in person.records
            ),
        )
        for person in file.personas
        for query in person.queries
    )


def _from_person(file: _PersonFile) -> dict[str, Any]:
    texts = {record.id: record.text for record in file.records}
    shape = None
    if file.shape_probe is not None:
        per_query = list(file.shape_probe.relevant_pairs_per_query.values())
        shape = ShapeProbe(
            queries=file.shape_probe.queries,
            pairs=tuple(
                pair.model_copy(update={"relevant_to": tuple(q for q, mine in enumerate(per_query) if at in mine)})
                for at, pair in enumerate(file.shape_probe.pairs)
            ),
        )
    conversation = None
    if file.conversation:
        conversation = Conversation(
            name=file.name,
            actor_id=file.actor_id,
            namespaces=file.namespaces,
            records=file.records,
            same_fact_pairs=file.same_fact_pairs,
            turns=file.conversation,
        )
    return {
        "gate": _from_gate(file.gate20)["gate"] if file.gate20 else (),
        "queries": tuple(
            ValidatorQuery(
                id=query.id,
                query=query.query,
                previous=query.previous,
                records=tuple(
                    JudgedRecord(id=mark.id, text=texts[mark.id], grade=2 if mark.relevant else 0)
                    for mark in query.records
                ),
            )
            for query in file.validator
        ),
        "shape": shape,
        "conversation": conversation,
        "seed_conversations": file.seed_conversations,
    }


def _problems(error: ValidationError, value: Any) -> str:
    shown = [
        f"{_place(problem['loc'], value)}: {problem['msg'].removeprefix('Value error, ')}{_got(problem)}"
        for problem in error.errors()[:5]
    ]
    more = error.error_count() - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more > 0 else "")


def _got(problem: Mapping[str, Any]) -> str:
    """Return the value, where it is one of a few and no text of a user's."""
    return f", got {str(problem['input'])[:40]}" if problem["type"] == "literal_error" else ""


def _place(location: Sequence[int | str], value: Any) -> str:
    """Return a field's place, with an item's own id where it has one: `personas[0] (id 'a').queries[2].labels`."""
    place, here = "", {"items": value} if isinstance(value, list) else value
    for step in location:
        place += f"[{step}]" if isinstance(step, int) else f"{'.' if place else ''}{step}"
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            here = None
        if isinstance(step, int) and isinstance(here, dict) and here.get("id"):
            place += f" (id {str(here['id'])[:40]!r})"
    return place or "the whole"
