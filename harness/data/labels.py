"""`label`: recorded turns to a label file, one keypress at a time.

The label file is a list of utterances with graded records, which `gate`, `route`, `validator` and `fit` read. It is
written whole after every turn, so labelling can be stopped and taken up again; a turn with a label is passed over.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.panel import Panel
from rich.prompt import Prompt

from strands_gated_memory.core.render import render_record
from strands_gated_memory.reporting.trace_file import TraceLine, TraceRecord

from ..errors import HarnessError
from ..files import write_text
from .datasets import GateItem, load
from .traces import WITHOUT_TEXT, has_text, read_turns

RUBRIC = (
    "2: without the record the reply would be wrong, unsafe, against a stated preference, or plainly generic. "
    "1: a good reply could use it and would stand without it. 0: no bearing; a shared word does not count."
)
Ask = Callable[[str, Sequence[str]], str]
"""(question, keys) -> the key that was chosen."""


class _Stop(Exception):
    """The user wants to stop."""


class _Skip(Exception):
    """The user passes over the turn."""


class _Back(Exception):
    """The user wants to label the turn before again."""


@dataclass(frozen=True)
class Progress:
    """How far the labelling has come."""

    labelled: int
    """Turns with a label, earlier sittings included."""
    left: int
    """Turns without one."""
    without_text: int
    """Turns that cannot be labelled."""


def label(turns: Sequence[TraceLine], path: Path, ask: Ask, console: Console) -> Progress:
    """Ask about every turn that has no label yet; each answer is saved at once.

    Args:
        turns: Recorded turns.
        path: The label file; made when it does not exist.
        ask: Gets a key.
        console: Shows what is asked about.

    Raises:
        HarnessError: No turn has text, or the file is not a label file.
    """
    readable = [turn for turn in turns if has_text(turn)]
    without_text = len(turns) - len(readable)
    if turns and not readable:
        raise HarnessError(f"none of the {len(turns)} turns has text; {WITHOUT_TEXT}")
    if without_text:
        console.print(f"{without_text} of {len(turns)} turns have no text and are left out: {WITHOUT_TEXT}")
    done = _read(path)
    unlabelled = [turn for turn in readable if turn.turn not in done]
    passed_over = 0
    at = 0
    while at < len(unlabelled):
        turn = unlabelled[at]
        try:
            item = _asked(turn, ask, console, f"turn {at + 1} of {len(unlabelled)}")
        except _Stop:
            break
        except _Skip:
            passed_over += 1
        except _Back:
            at = max(0, at - 1)
            done.pop(unlabelled[at].turn, None)
            _write(path, done)
            continue
        else:
            done[turn.turn] = item
            _write(path, done)
        at += 1
    left = sum(turn.turn not in done for turn in readable)
    return Progress(len(done), left, without_text)


def _asked(turn: TraceLine, ask: Ask, console: Console, title: str) -> dict[str, Any]:
    said = [f"[dim]{escape(text)}[/dim]" for text in turn.previous]
    console.print(Panel("\n".join([*said, f"[bold]{escape(turn.message or '')}[/bold]"]), title=title))
    needs = _key("Does a good answer need something stored about this user?", ("y", "n"), ask) == "y"
    # Every judged record is asked about, also where nothing is needed: a validator must know what to drop.
    records = []
    for place, record in enumerate(turn.records, 1):
        shown = record.rendered or render_record(record.text or "")
        console.print(
            f"[cyan]{place}/{len(turn.records)}[/cyan] {escape(shown)}  [dim]{escape(record.namespace)}[/dim]"
        )
        grade = int(_key("Grade", ("0", "1", "2"), ask))
        records.append({"id": record.id or f"r{place}", "text": record.text, "grade": grade})
    return _item(turn, needs=needs, records=records)


def _key(question: str, keys: tuple[str, ...], ask: Ask) -> str:
    key = ask(question, (*keys, "s", "b", "q"))
    if key == "q":
        raise _Stop
    if key == "s":
        raise _Skip
    if key == "b":
        raise _Back
    return key


def _item(turn: TraceLine, *, needs: bool, records: list[dict[str, Any]]) -> dict[str, Any]:
    graded = list(zip(turn.records, (record["grade"] for record in records), strict=True))
    needed = _spaces(graded, 2)
    return {
        "id": turn.turn,
        "utterance": turn.message,
        "previous": list(turn.previous),
        "needs_memory": needs,
        "namespaces": needed if needs else [],
        "namespaces_optional": [name for name in _spaces(graded, 1) if name not in needed],
        "records": records,
    }


def _spaces(graded: Sequence[tuple[TraceRecord, int]], grade: int) -> list[str]:
    return list(dict.fromkeys(record.namespace for record, given in graded if given == grade))


def _read(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the labels so far by turn, as they are in the file."""
    if not path.exists():
        return {}
    load(path)  # names what is wrong with the file
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.get("id") for row in rows):
        raise HarnessError(f"{path}: not a label file, which is a list of utterances with ids; give another --to")
    return {str(row["id"]): row for row in rows}


def _write(path: Path, done: Mapping[str, Mapping[str, Any]]) -> None:
    for row in done.values():
        GateItem.model_validate(row)
    if done:
        write_text(path, json.dumps(list(done.values()), indent=1, ensure_ascii=False) + "\n")
    else:
        path.unlink(missing_ok=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("traces", nargs="+", type=Path, help="what a session manager wrote to its trace_path")
    parser.add_argument("--to", type=Path, default=Path("labels.json"), help="the label file (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    """Label in the terminal."""
    console = Console()
    turns = read_turns(arguments.traces)
    console.print(
        f"{RUBRIC}\nKeys: y n; 0 1 2; s skips the turn, b goes back one, q stops. Every turn is saved at once."
    )

    def ask(question: str, keys: Sequence[str]) -> str:
        try:
            return Prompt.ask(question, choices=list(keys), console=console)
        except (EOFError, KeyboardInterrupt):
            return "q"

    progress = label(turns, arguments.to, ask, console)
    console.print(
        f"{progress.labelled} turns have labels in {arguments.to}, {progress.left} have none; "
        f"next: python -m harness fit --data {arguments.to}"
    )
    return 0
