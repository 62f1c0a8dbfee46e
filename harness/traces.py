"""Recorded turns: the JSONL that a session manager writes to its `trace_path`, version 1."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .errors import HarnessError

WITHOUT_TEXT = (
    "record turns with text to label them: GatedMemorySessionManager(..., trace_path=..., trace_content=True); "
    "the file then holds what users said, so treat it as that"
)


class _Row(BaseModel):
    """Base of what is read: frozen; fields of later versions are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TracedGate(_Row):
    """What the gate decided."""

    outcome: str
    probability: float | None = None
    namespaces: Mapping[str, float | None] = Field(default_factory=dict)
    """P(needed) per namespace; None where it was not decided."""
    selected: tuple[str, ...] = ()


class TracedThresholds(_Row):
    """Those in force."""

    gate: float | None = None
    router: float | None = None
    validator: float | None = None
    relative: float | None = None


class TracedRecord(_Row):
    """A record that was judged, or left out before."""

    id: str | None = None
    namespace: str = ""
    score: float | None = None
    probability: float | None = None
    keep: bool = False
    reason: str = ""
    text: str | None = None
    """As stored; with `trace_content` only."""
    rendered: str | None = None


class TracedLookup(_Row):
    """One namespace's search."""

    namespace: str
    ms: float = 0.0
    records: int = 0
    error: str | None = None
    pinned: bool = False
    cached: bool = False


class TracedCall(_Row):
    """One request to the decision model."""

    stage: str
    questions: int = 0
    ms: float = 0.0
    error: str | None = None
    model: str | None = None


class TracedTurn(_Row):
    """One turn."""

    version: Literal[1]
    turn: str
    time: str = ""
    session_id: str | None = None
    gate: TracedGate | None = None
    thresholds: TracedThresholds = Field(default_factory=TracedThresholds)
    questions: Mapping[str, str | None] = Field(default_factory=dict)
    """The wording per stage."""
    records: tuple[TracedRecord, ...] = ()
    """Those that were judged, in order."""
    dropped: tuple[TracedRecord, ...] = ()
    """Those that were left out before."""
    lookups: tuple[TracedLookup, ...] = ()
    decider_calls: tuple[TracedCall, ...] = ()
    namespaces: tuple[str, ...] = ()
    """Every configured one."""
    block_tokens: int = 0
    ms: float = 0.0
    failure: str | None = None
    message: str | None = None
    """With `trace_content` only, and so are the next two."""
    previous: tuple[str, ...] = ()
    block: str | None = None

    @property
    def has_text(self) -> bool:
        """Whether the message and every judged record are there in words."""
        return bool(self.message) and all(record.text is not None for record in self.records)

    @property
    def pinned(self) -> set[str]:
        """The namespaces that were fetched whatever the gate said."""
        return {lookup.namespace for lookup in self.lookups if lookup.pinned}


def read_turns(paths: Iterable[Path]) -> Iterator[TracedTurn]:
    """Read trace files, in the order given.

    A last line that is cut short, as of a file that is being written, is passed over.

    Raises:
        HarnessError: A file cannot be read or a line is not of a trace; names file, line and field.
    """
    for path in paths:
        try:
            lines = path.read_bytes().split(b"\n")
        except OSError as error:
            raise HarnessError(f"{path}: cannot be read: {error}") from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                turn = _turn(path, number, line, last=number == len(lines))
                if turn is not None:
                    yield turn


def _turn(path: Path, number: int, line: bytes, *, last: bool) -> TracedTurn | None:
    where = f"{path}, line {number}"
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        if last:
            return None
        raise HarnessError(f"{where}: not JSON: {error}") from error
    version = value.get("version") if isinstance(value, dict) else None
    if version != 1:
        raise HarnessError(f"{where}: a trace of version {version!r}; this harness reads version 1")
    try:
        return TracedTurn.model_validate(value)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(map(str, problem["loc"]))
        raise HarnessError(f"{where}: {place}: {problem['msg']}") from error
