"""One JSON line per turn in a file: what was decided, on which records, how long it took.

Ids, probabilities and reasons; text only on request. Each line is appended with one write, so that threads and
processes share a file on POSIX systems. A full file is renamed to `.1`, the one before to `.2`, and so on.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
import uuid
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, TextIO

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..core.types import Judgement
from ..errors import ConfigurationError, TraceFileError
from ..policy import Probability
from .report import Report

try:
    import fcntl
except ImportError:  # Windows: an open file cannot be renamed there, so none is rotated
    fcntl = None  # type: ignore[assignment]

VERSION = 1
"""Version of the schema."""
DEFAULT_MAX_BYTES = 64 * 1024 * 1024
KEEP = 5
"""Rotated files that are kept."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)


class TraceGate(_Line):
    """The gate's decision; see `GateDecision`."""

    outcome: str
    probability: Probability | None
    namespaces: dict[str, Probability | None]
    selected: list[str]


class TraceThresholds(_Line):
    """The cuts in force, 0..1; None where a turn ended before they were known."""

    gate: Probability | None = None
    router: Probability | None = None
    validator: Probability | None = None
    relative: Probability | None = None


class TraceQuestions(_Line):
    """Id and version of the wordings in force; None where a turn ended before they were known."""

    gate: str | None = None
    router: str | None = None
    validator: str | None = None


class TraceRecord(_Line):
    """A record that was judged, in the order in which it was; see `Judgement`."""

    id: str | None
    namespace: str
    score: float | None
    probability: Probability | None
    keep: bool
    reason: str
    shortened: bool = False
    text: str | None = None
    rendered: str | None = None


class TraceDropped(_Line):
    """A record that was left out before judging."""

    id: str | None
    namespace: str
    reason: str


class TraceLookup(_Line):
    """One namespace's search; see `Lookup`."""

    namespace: str
    ms: float
    records: int
    error: str | None
    pinned: bool
    cached: bool


class TraceCall(_Line):
    """One request to the decision model; see `DeciderCall`."""

    stage: str
    questions: int
    ms: float
    error: str | None
    no_answers: dict[str, int]
    model: str | None


class TraceLine(_Line):
    """One turn. Text (`message`, `previous`, `block`, of records `text` and `rendered`) only with content."""

    version: Literal[1]
    time: datetime
    """When the recall began, UTC."""
    turn: str
    """A random id."""
    memory_id: str
    actor_id: str
    session_id: str
    gate: TraceGate | None
    """None: the turn failed as a whole."""
    thresholds: TraceThresholds
    questions: TraceQuestions
    records: list[TraceRecord]
    dropped: list[TraceDropped]
    lookups: list[TraceLookup]
    decider_calls: list[TraceCall]
    namespaces: list[str]
    """Every configured namespace."""
    block_tokens: int
    ms: float
    """Milliseconds of the whole recall."""
    failure: str | None
    """The kind of an unexpected failure of the turn as a whole."""
    message: str | None = None
    previous: list[str] = Field(default_factory=list)
    block: str | None = None


class TraceReporter:
    """A line per turn in a file.

    Args:
        file: The file.
        content: Whether the lines hold text.
    """

    name = "trace file"

    def __init__(self, file: TraceFile, content: bool) -> None:
        self._file, self._content = file, content

    def report(self, report: Report) -> None:
        """Write one turn's line."""
        self._file.write(_line_of(report, self._content))


class TraceFile:
    """A file of lines that several threads and processes append to.

    Nothing is kept open, so that rotation by another process is followed and a fork is harmless.

    Args:
        path: The file; its folder must exist. `~` is the home folder. It is made readable by its owner alone.
        max_bytes: A line that would make it larger goes into a new file.
        keep: So many full files are kept.

    Raises:
        ConfigurationError: The folder does not exist, the path is a folder or none at all, or a size is no positive
            number.
    """

    def __init__(self, path: str | os.PathLike[str], *, max_bytes: int = DEFAULT_MAX_BYTES, keep: int = KEEP) -> None:
        try:
            self.path = Path(path).expanduser()
            with contextlib.suppress(FileNotFoundError):
                os.stat(self.path)
        except (TypeError, RuntimeError) as error:
            raise ConfigurationError(f"trace_path must be the path of a file, got {path!r}") from error
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigurationError(f"trace_path {str(path)[:80]!r} cannot be used: {why}") from error
        if not self.path.parent.is_dir():
            raise ConfigurationError(f"trace_path {str(path)!r}: there is no folder {str(self.path.parent)!r}")
        if self.path.is_dir():
            raise ConfigurationError(f"trace_path {str(path)!r} is a folder; name a file in it")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ConfigurationError(f"trace_max_bytes must be a number of bytes above 0, got {max_bytes!r}")
        self._max_bytes = max_bytes
        self._keep = keep

    def write(self, line: str) -> None:
        """Append a line.

        Raises:
            OSError: It could not be written, or not whole.
        """
        data = line.encode("utf-8", "replace")  # a lone surrogate has no UTF-8
        with self._opened() as descriptor:
            if not (self._is_full(descriptor, len(data)) and self._rotate(descriptor)):
                return _append(descriptor, data)
        with self._opened() as descriptor:
            return _append(descriptor, data)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        # Without O_NONBLOCK a named pipe that nobody reads would hold up the turn.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _is_full(self, descriptor: int, more: int) -> bool:
        status = os.fstat(descriptor)
        return stat.S_ISREG(status.st_mode) and status.st_size > 0 and status.st_size + more > self._max_bytes

    def _rotate(self, descriptor: int) -> bool:
        """Rename the full file; return False where it cannot be, or another thread or process is at it."""
        if fcntl is None:
            return False
        try:
            # Of the file itself: who has opened the next one locks another. It ends with the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):  # else it has been renamed meanwhile
                for number in range(self._keep - 1, 0, -1):
                    with contextlib.suppress(FileNotFoundError):
                        os.replace(_numbered(self.path, number), _numbered(self.path, number + 1))
                os.replace(self.path, _numbered(self.path, 1))
        return True


def _append(descriptor: int, data: bytes) -> None:
    written = os.write(descriptor, data)
    if written != len(data):
        raise OSError(errno.ENOSPC, f"wrote {written} of {len(data)} bytes; is the disk full?")


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _line_of(report: Report, content: bool) -> str:
    """Return one turn as a line of JSON, newline included."""
    recall, seen, searched = report.recall, report.recall.trace, report.searched
    turn = report.turn if content else None
    before_judging = len(recall.dropped) - sum(not judgement.keep for judgement in seen.judgements)
    began = datetime.fromtimestamp(seen.started, timezone.utc)
    line: dict[str, Any] = {
        "version": VERSION,
        "time": began.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "turn": uuid.uuid4().hex,
        "memory_id": searched.memory_id,
        "actor_id": searched.actor_id,
        "session_id": searched.session_id,
        "gate": seen.gate and _fields(TraceGate, seen.gate, namespaces=dict(seen.gate.namespaces)),
        "thresholds": {name: seen.thresholds.get(name) for name in TraceThresholds.model_fields},
        "questions": {name: seen.questions.get(name) for name in TraceQuestions.model_fields},
        "lookups": [_fields(TraceLookup, lookup, ms=_ms(lookup.seconds)) for lookup in seen.lookups],
        "decider_calls": [
            _fields(TraceCall, call, ms=_ms(call.seconds), no_answers=dict(call.no_answers))
            for call in seen.decider_calls
        ],
        "namespaces": searched.namespaces,
        "block_tokens": seen.block_tokens,
        "ms": _ms(seen.seconds),
        "failure": seen.failure,
    }
    if turn is not None:
        line |= {"message": turn.text, "previous": turn.previous, "block": recall.block}
    # Last: readers such as CloudWatch Logs Insights find so many fields of a line, and no more.
    line["records"] = [_record(judgement, with_text=turn is not None) for judgement in seen.judgements]
    line["dropped"] = [
        _fields(TraceDropped, dropped, id=_id(dropped.record.record_id), namespace=dropped.record.namespace)
        for dropped in recall.dropped[: max(0, before_judging)]
    ]
    return json.dumps(line, allow_nan=False, ensure_ascii=False, separators=(",", ":")) + "\n"


def _fields(model: type[_Line], source: object, **values: object) -> dict[str, Any]:
    """Return the fields of a part of a line: the values given, the rest as the source names them."""
    return {name: values[name] if name in values else getattr(source, name) for name in model.model_fields}


def _record(judgement: Judgement, *, with_text: bool) -> dict[str, Any]:
    record = judgement.record
    line: dict[str, Any] = {
        "id": _id(record.record_id),
        "namespace": record.namespace,
        "score": _number(record.score),
        "probability": judgement.probability,
        "keep": judgement.keep,
        "reason": judgement.reason,
    }
    line |= {"shortened": True} if judgement.shortened else {}
    return line | ({"text": record.text, "rendered": judgement.rendered} if with_text else {})


def _id(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


_BEGINNING = re.compile(r'(?=\{"version":\d+,"time":")')
"""Where a line begins; text has its quotes escaped, so no text looks like it."""


def read_traces(path: str | os.PathLike[str], *, broken: Literal["raise", "skip"] = "raise") -> Iterator[TraceLine]:
    """Read a trace file, and before it the ones that were rotated out of it: oldest turn first.

    It may be written and rotated meanwhile. A last line that is not whole, because it is being written or the disk
    was full, is left out.

    Args:
        path: As given to `trace_path`.
        broken: What to do about any other line that is none of this schema, such as one that a full disk cut.

    Raises:
        FileNotFoundError: There is no such file, nor one that was rotated out of it.
        TraceFileError: A line is no line of this schema; the message names file and line.
    """
    with contextlib.ExitStack() as opened:
        for file, lines in _files(Path(path).expanduser(), opened):
            for number, line in enumerate(lines, start=1):
                # A line whose writer was stopped has no end, and the next one follows it.
                for part in filter(str.strip, _BEGINNING.split(line)):
                    try:
                        parsed = _parsed(part, file, number)
                    except TraceFileError:
                        if broken == "skip" or not line.endswith("\n"):
                            continue
                        raise
                    yield parsed


def _files(current: Path, opened: contextlib.ExitStack) -> list[tuple[Path, TextIO]]:
    """Open a trace file and its rotated ones; return them, oldest first."""
    files: list[tuple[Path, TextIO]] = []
    # The newest first, so that a rotation meanwhile shows one twice and never hides one.
    for file in (current, *(_numbered(current, number) for number in range(1, KEEP + 1))):
        try:
            lines = opened.enter_context(file.open(encoding="utf-8", errors="replace"))
        except FileNotFoundError:
            continue
        if not any(os.path.sameopenfile(lines.fileno(), other.fileno()) for _, other in files):
            files.insert(0, (file, lines))
    if not files:
        raise FileNotFoundError(errno.ENOENT, "there is no such trace file", str(current))
    return files


def _parsed(line: str, file: Path, number: int) -> TraceLine:
    try:
        return TraceLine.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the line"
        raise TraceFileError(
            f"{file}, line {number}: {where}: {first['msg']}; expected one turn as JSON, version {VERSION}"
        ) from None
