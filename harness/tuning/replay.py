"""`replay`: another policy over recorded turns, offline: what would have been injected?

Recorded probabilities are held against the policy's cuts by the code that an agent runs. What was never searched or
judged cannot be known: such turns are counted apart, and nothing is claimed of them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from strands_gated_memory.core import block as block_stage
from strands_gated_memory.core import gate as gate_stage
from strands_gated_memory.core import select as select_stage
from strands_gated_memory.core.types import Record, Row
from strands_gated_memory.policy import CUTS, CutsInForce, RecallPolicy, cuts_in_force, estimate_tokens
from strands_gated_memory.reporting.trace_file import TraceLine, TraceRecord

from ..data.datasets import Dataset, load
from ..data.traces import pinned, read_turns
from ..errors import HarnessError
from ..files import write_text
from ..measuring.options import OUT
from ..measuring.tables import NOTHING, Table, number, show

TAG = "user_context"
_BY_CUTS = ("below_threshold", "below_best", "max_records", "max_context_tokens")
"""Why a record was left out that another policy may let in; anything else, such as "empty", holds for any policy."""


@dataclass(frozen=True)
class Replayed:
    """One turn under the other policy.

    Attributes:
        turn: The recorded turn.
        opens: Whether the gate is open now.
        searched: The namespaces that are searched now, pinned ones included.
        kept: Positions in `turn.records` of what is injected now.
        tokens: Of what is injected now, by the policy's counter; without text it means nothing.
        unknown: Namespaces that are searched now and were not then: nobody knows what they hold.
    """

    turn: TraceLine
    opens: bool
    searched: tuple[str, ...]
    kept: tuple[int, ...]
    unknown: tuple[str, ...]
    tokens: int = 0

    @property
    def opened(self) -> bool:
        """Whether the gate was open then."""
        return self.turn.gate is not None and self.turn.gate.outcome not in ("closed", "disabled")

    @property
    def before(self) -> tuple[int, ...]:
        """Positions of what was injected then."""
        return tuple(at for at, record in enumerate(self.turn.records) if record.keep)


def replay(turn: TraceLine, policy: RecallPolicy) -> Replayed:
    """Return a recorded turn under another policy.

    Thresholds that the policy does not set are those that were in force on the turn. Probabilities that were not
    given fail open, as they did. Without text a limit of tokens cannot be applied, and is not.
    """
    cuts = _cuts(turn, policy)
    gate = turn.gate
    if gate is None or gate.outcome == "disabled":
        return Replayed(turn, False, (), (), ())
    gated = [name for name in turn.namespaces or tuple(gate.namespaces) if name not in pinned(turn)]
    opens = gate.probability is None or gate.probability >= cuts.gate.value
    selected = gate_stage.choose(gated, gate.namespaces, cuts.router.value) if opens else ()
    searched = (*sorted(pinned(turn)), *selected)
    looked_up = {lookup.namespace for lookup in turn.lookups if lookup.error is None}
    at = [
        position
        for position, record in enumerate(turn.records)
        if record.namespace in searched and (record.keep or record.reason in _BY_CUTS)
    ]
    selection = _selection([turn.records[position] for position in at], policy, cuts)
    unknown = tuple(name for name in searched if name not in looked_up)
    kept = tuple(position for position, row in zip(at, selection.rows, strict=True) if row.reason is None)
    return Replayed(turn, opens, searched, kept, unknown, selection.tokens)


def _selection(records: Sequence[TraceRecord], policy: RecallPolicy, cuts: CutsInForce) -> select_stage.Selection:
    settings = policy.select
    if any(record.rendered is None for record in records):
        settings = settings.model_copy(update={"max_context_tokens": None})
    return select_stage.select([_row(record) for record in records], settings, cuts.thresholds(), TAG)


def _row(record: TraceRecord) -> Row:
    stored = Record(record.text or "", record.namespace, record.score, record.id)
    line = block_stage.line_of(record.rendered, stored, False) if record.rendered else ""
    return Row(stored, record.rendered or "", record.probability, line=line)


def _cuts(turn: TraceLine, policy: RecallPolicy) -> CutsInForce:
    recorded = {name: value for name in CUTS if (value := getattr(turn.thresholds, name)) is not None}
    return cuts_in_force(policy.cuts(), {}, recorded, None)


# Figures


def figures(replayed: Sequence[Replayed], grades: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Return what was and what would be, over all turns.

    Args:
        replayed: The turns.
        grades: Grade per record id, by turn; empty without labels.
    """

    def recall(which: str) -> float | None:
        hits = total = 0
        for one in replayed:
            wanted = {name for name, grade in grades.get(one.turn.turn, {}).items() if grade == 2}
            ids = {one.turn.records[at].id for at in getattr(one, which)}
            hits, total = hits + len(wanted & ids), total + len(wanted)
        return hits / total if total else None

    texts = all(record.rendered is not None for one in replayed for record in one.turn.records)
    return {
        "turns": len(replayed),
        "open": (sum(one.opened for one in replayed), sum(one.opens for one in replayed)),
        "lookups": (
            sum(not lookup.cached for one in replayed for lookup in one.turn.lookups),
            sum(len(one.searched) for one in replayed),
        ),
        "records": (sum(len(one.before) for one in replayed), sum(len(one.kept) for one in replayed)),
        "added": sum(len(set(one.kept) - set(one.before)) for one in replayed),
        "removed": sum(len(set(one.before) - set(one.kept)) for one in replayed),
        "tokens": (
            sum(_tokens_before(one) for one in replayed) if texts else None,
            sum(one.tokens for one in replayed) if texts else None,
        ),
        "must_have_recall": (recall("before"), recall("kept")),
        "turns_with_unknown": sum(bool(one.unknown) for one in replayed),
    }


def _tokens_before(one: Replayed) -> int:
    if one.turn.block is not None:
        return estimate_tokens(one.turn.block)
    ordered = select_stage.injection_order([_row(one.turn.records[at]) for at in one.before])
    block = block_stage.block_of([row.line for row in ordered], TAG)
    return estimate_tokens(block) if block else 0


def rows(replayed: Sequence[Replayed]) -> list[dict[str, Any]]:
    """Return one row per turn, for JSON; ids, never text."""
    return [
        {
            "turn": one.turn.turn,
            "gate": {
                "then": one.turn.gate.outcome if one.turn.gate else None,
                "now": "open" if one.opens else "closed",
            },
            "probability": one.turn.gate.probability if one.turn.gate else None,
            "searched": list(one.searched),
            "unknown": list(one.unknown),
            "injected": [one.turn.records[at].id for at in one.kept],
            "added": [one.turn.records[at].id for at in one.kept if at not in one.before],
            "removed": [one.turn.records[at].id for at in one.before if at not in one.kept],
        }
        for one in replayed
    ]


def table(found: Mapping[str, Any]) -> Table:
    """Return the figures as a table."""

    def pair(name: str, label: str, digits: int = 0) -> tuple[str, str, str]:
        then, now = found[name]
        return label, number(then, digits), number(now, digits)

    lines = [
        pair("open", "turns with an open gate"),
        pair("lookups", "namespace lookups"),
        pair("records", "records injected"),
        pair("tokens", "context tokens"),
        pair("must_have_recall", "must-haves injected, share", 2),
        ("records added", NOTHING, str(found["added"])),
        ("records removed", NOTHING, str(found["removed"])),
        ("turns of which not all is known", NOTHING, str(found["turns_with_unknown"])),
    ]
    notes = (
        "Not all is known of a turn that would search what was not searched when it was recorded: its records count as "
        "none. Tokens need traces with text, must-haves need --labels.",
    )
    return Table(
        key="replay",
        title=f"{found['turns']} recorded turns under another policy",
        columns=("", "then", "now"),
        rows=tuple(lines),
        notes=notes,
    )


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("traces", nargs="+", type=Path, help="what a session manager wrote to its trace_path")
    parser.add_argument("--policy", type=Path, metavar="FILE", help="a file that `fit` wrote, without heads")
    for name, about in (
        ("gate", "P from which on memory is searched"),
        ("router", "P from which on a namespace is"),
        ("validator", "P from which on a record is kept"),
        ("relative", "share of the turn's best P that a record must have"),
    ):
        parser.add_argument(f"--{name}", type=float, metavar="P", help=f"{about} (default: as recorded)")
    parser.add_argument("--select", choices=("threshold", "ranking", "hybrid"), help="default: hybrid, or the file's")
    parser.add_argument("--max-records", type=int, metavar="N", help="at most so many")
    parser.add_argument("--labels", type=Path, metavar="FILE", help="what `label` wrote, to see the must-haves")
    parser.add_argument("--to", type=Path, default=OUT / "replay.json", metavar="FILE", help="default: %(default)s")


def run(arguments: argparse.Namespace) -> int:
    """Replay, print the table and write the JSON."""
    policy = _policy(arguments)
    turns = read_turns(arguments.traces)
    replayed = [replay(turn, policy) for turn in turns]
    found = figures(replayed, _grades(load(arguments.labels)) if arguments.labels else {})
    show(Console(), [table(found)], _doubts(turns, policy))
    document = {"figures": found, "turns": rows(replayed)}
    write_text(arguments.to, json.dumps(document, indent=1) + "\n")
    return 0


def _policy(arguments: argparse.Namespace) -> RecallPolicy:
    settings: dict[str, dict[str, Any]] = {}
    for stage in ("gate", "router", "validator"):
        if getattr(arguments, stage) is not None:
            settings[stage] = {"threshold": getattr(arguments, stage)}
    for name, value in (
        ("relative", arguments.relative),
        ("mode", arguments.select),
        ("max_records", arguments.max_records),
    ):
        if value is not None:
            settings.setdefault("select", {})[name] = value
    try:
        if arguments.policy is None:
            return RecallPolicy(**settings)
        return RecallPolicy.from_file(_plain(arguments.policy), **settings)
    except ValueError as error:
        raise HarnessError(f"the policy is wrong: {error}") from error


def _plain(path: Path) -> Path:
    """Refuse a file whose thresholds are not of the probabilities that were recorded."""
    from strands_gated_memory.fitted_file import read_fitted

    if read_fitted(path).has_heads:
        raise HarnessError(
            f"{path} has heads: its thresholds hold for what they make of the probabilities, and the "
            "traces hold others; fit again without --heads, or give the cuts as options"
        )
    return path


def _grades(labels: Dataset) -> dict[str, dict[str, int]]:
    return {query.id: {record.id: record.grade for record in query.records} for query in labels.queries}


def _doubts(turns: Sequence[TraceLine], policy: RecallPolicy) -> list[str]:
    asked = {"gate": policy.gate.question.key, "router": policy.router.question.key,
             "validator": policy.validator.question.key}  # fmt: skip
    said = []
    for stage, key in asked.items():
        others = sorted({then for turn in turns if (then := getattr(turn.questions, stage)) is not None} - {key})
        if others:
            said.append(f"{stage}: recorded with {', '.join(others)}, while the policy asks {key}: its cut is for that")
    return said
