"""Recorded turns: the JSONL that a session manager writes to its `trace_path`, as `TraceLine` describes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from strands_gated_memory.reporting.trace_file import VERSION, TraceLine

from .errors import HarnessError

WITHOUT_TEXT = (
    "record turns with text to label them: GatedMemorySessionManager(..., trace_path=..., trace_content=True); "
    "the file then holds what users said, so treat it as that"
)


class TracedTurn(TraceLine):
    """One turn."""

    @property
    def has_text(self) -> bool:
        """Whether the message and every judged record are there in words."""
        return bool(self.message) and all(record.text is not None for record in self.records)

    @property
    def pinned(self) -> set[str]:
        """The namespaces that were fetched whatever the gate said."""
        return {lookup.namespace for lookup in self.lookups if lookup.pinned}


def read_turns(paths: Iterable[Path]) -> Iterator[TracedTurn]:
    """Read trace files, in the order given; rotated ones only when they are given too.

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
    try:
        return TracedTurn.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        if last and problem["type"] == "json_invalid":
            return None
        place = ".".join(map(str, problem["loc"])) or "the line"
        raise HarnessError(
            f"{path}, line {number}: {place}: {problem['msg'].removeprefix('Value error, ')}; "
            f"expected one turn as JSON, version {VERSION}"
        ) from error
