"""What the embedded model says of labelled turns: the numbers that every figure of the model card is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from strands_gated_memory import Noul, RecallPolicy, Record, Thresholds, render_record
from strands_gated_memory.core.gate import choose
from strands_gated_memory.core.questions import State
from strands_gated_memory.core.select import select
from strands_gated_memory.core.types import Row
from strands_gated_memory.core.wordings import GATE_CRITERIA, RECORD_CRITERIA, ROUTE_CRITERIA
from strands_gated_memory.embedded.decider import EmbeddedDecider

from .personas import Message, Persona

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Routed:
    """A turn's namespaces, by one wording of their descriptions."""

    probabilities: Floats
    wanted: NDArray[np.bool_]
    searched: NDArray[np.bool_]


@dataclass(frozen=True)
class ScoredTurn:
    """One labelled turn with the model's probabilities.

    Attributes:
        group: What is resampled together: the persona, or the item of a development set.
        where: "persona turn", for people.
        text: The message.
        previous: What was said before it.
        pair: Turns of one persona with the same text share it; "" without such a partner.
        needed: The label.
        gate: P(needed), None where the model abstains.
        routed: Empty where memory is not needed or nothing is known of namespaces.
        texts: The records as the model saw them.
        grades: Per record.
        relevance: P(it belongs) per record, NaN for one that the model abstains from; None where the turn was not
            judged or the model abstains from the message.
        kept: Per record, whether the shipped policy would inject it, if the gate is open.
    """

    group: str
    where: str
    text: str
    previous: tuple[str, ...]
    pair: str
    needed: bool
    gate: float | None
    routed: tuple[Routed, ...] = ()
    texts: tuple[str, ...] = ()
    grades: Ints | None = None
    relevance: Floats | None = None
    kept: NDArray[np.bool_] | None = None

    def judged(self) -> tuple[Floats, Ints]:
        """Return probabilities and grades of the records that the model judged."""
        if self.relevance is None or self.grades is None:
            return np.zeros(0), np.zeros(0, np.int64)
        answered = ~np.isnan(self.relevance)
        return self.relevance[answered], self.grades[answered]


class Scorer:
    """Asks the embedded decider as the pipeline would."""

    def __init__(self, decider: EmbeddedDecider) -> None:
        self._decider = decider
        self.thresholds: Thresholds = decider.thresholds

    def personas(self, personas: Sequence[Persona]) -> Iterator[ScoredTurn]:
        """Score every turn of these personas, with every record of the persona as a candidate."""
        for persona in personas:
            texts = tuple(persona.records.values())
            said: dict[str, int] = {}
            for turn in persona.turns:
                said[turn.text] = said.get(turn.text, 0) + 1
            for turn in persona.turns:
                state: State = {"message": turn.text, "previous": list(turn.previous)}
                grades = np.array([turn.grades.get(record, 0) for record in persona.records])
                relevance, kept = self._records(state, texts)
                yield ScoredTurn(
                    persona.key,
                    f"{persona.key.rpartition('/')[2]} {turn.key}",
                    turn.text,
                    turn.previous,
                    f"{persona.key} {turn.text}" if said[turn.text] > 1 else "",
                    turn.needed,
                    self._gate(state),
                    tuple(self._routes(state, persona, turn.namespaces)) if turn.needed else (),
                    texts,
                    grades,
                    relevance,
                    kept,
                )

    def messages(self, messages: Sequence[Message]) -> Iterator[ScoredTurn]:
        """Score the gate on labelled messages; what was said to one assistant is resampled together."""
        for at, message in enumerate(messages):
            state: State = {"message": message.text, "previous": list(message.previous)}
            yield ScoredTurn(
                message.group,
                f"{message.group} {at}",
                message.text,
                message.previous,
                message.pair,
                message.needed,
                self._gate(state),
            )

    def gate_items(self, path: Path) -> Iterator[ScoredTurn]:
        """Score a gate development set."""
        for item in json.loads(path.read_text(encoding="utf-8")):
            state: State = {"message": item["utterance"], "previous": item["previous"]}
            yield ScoredTurn(
                item["id"],
                f"{item['id']} ({item['lang']})",
                item["utterance"],
                tuple(item["previous"]),
                "",
                item["needs_memory"],
                self._gate(state),
            )

    def relevance_items(self, path: Path) -> Iterator[ScoredTurn]:
        """Score a relevance development set."""
        data = json.loads(path.read_text(encoding="utf-8"))
        for persona in data.get("personas") or data["stores"]:
            texts = tuple(render_record(record["text"]) for record in persona["records"])
            for query in persona["queries"]:
                state: State = {"message": query["query"], "previous": query["previous"]}
                relevance, kept = self._records(state, texts)
                yield ScoredTurn(
                    query["id"],
                    f"{query['id']} ({query['lang']})",
                    query["query"],
                    tuple(query["previous"]),
                    "",
                    2 in query["labels"].values(),
                    self._gate(state),
                    (),
                    texts,
                    np.array([query["labels"][record["id"]] for record in persona["records"]]),
                    relevance,
                    kept,
                )

    def same_facts(self, path: Path) -> list[tuple[float, float]]:
        """Return P(it belongs) of facts stored as prose and as JSON, rendered, over a probe's pairs and messages."""
        probe = json.loads(path.read_text(encoding="utf-8"))["shape_probe"]
        messages = probe["queries"]
        found = []
        for message in messages:
            for pair in probe["pairs"]:
                texts = [render_record(pair[shape]) for shape in ("prose", "json")]
                relevance, _ = self._records({"message": message, "previous": []}, texts)
                if relevance is not None:
                    found.append((float(relevance[0]), float(relevance[1])))
        return found

    def _gate(self, state: State) -> float | None:
        answer = self._decider.decide(state, {"gate": GATE_CRITERIA.question()})["gate"]
        return answer.noul if isinstance(answer, Noul) else None

    def _routes(self, state: State, persona: Persona, wanted: frozenset[str]) -> Iterator[Routed]:
        names = list(persona.descriptions)
        for wording in range(max(len(texts) for texts in persona.descriptions.values())):
            questions = {
                name: ROUTE_CRITERIA.question(texts[min(wording, len(texts) - 1)])
                for name, texts in persona.descriptions.items()
            }
            answers = self._decider.decide(state, questions)
            chances = {n: a.noul if isinstance(a, Noul) else None for n, a in answers.items()}
            if any(chance is None for chance in chances.values()):
                continue
            searched = choose(tuple(names), chances, self.thresholds.router)
            yield Routed(
                np.array([chances[name] for name in names], float),
                np.array([name in wanted for name in names]),
                np.array([name in searched for name in names]),
            )

    def _records(self, state: State, texts: Sequence[str]) -> tuple[Floats | None, NDArray[np.bool_] | None]:
        answers = self._decider.decide(
            state, {str(at): RECORD_CRITERIA.question(text) for at, text in enumerate(texts)}
        )
        chances = [a.noul if isinstance(a, Noul) else None for a in answers.values()]
        if all(chance is None for chance in chances):
            return None, None
        rows = [
            Row(Record(text, "records"), text, chance, line=f"- {text}")
            for text, chance in zip(texts, chances, strict=True)
        ]
        selected = select(rows, RecallPolicy().select, self.thresholds, "user_context").rows
        return (
            np.array([np.nan if chance is None else chance for chance in chances]),
            np.array([row.reason is None for row in selected]),
        )
