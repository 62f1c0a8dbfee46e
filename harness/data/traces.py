"""Recorded turns: the JSONL that a session manager writes to its `trace_path`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from strands_gated_memory.errors import TraceFileError
from strands_gated_memory.reporting.trace_file import TraceLine, read_traces

from ..errors import HarnessError

WITHOUT_TEXT = (
    "record turns with text to label them: GatedMemorySessionManager(..., trace_path=..., trace_content=True); "
    "the file then holds what users said, so treat it as that"
)


def has_text(turn: TraceLine) -> bool:
    """Tell whether the message and every judged record are there in words."""
    return bool(turn.message) and all(record.text is not None for record in turn.records)


def pinned(turn: TraceLine) -> set[str]:
    """Return the namespaces that were fetched whatever the gate said."""
    return {lookup.namespace for lookup in turn.lookups if lookup.pinned}


def read_turns(paths: Sequence[Path]) -> list[TraceLine]:
    """Read trace files, each after the ones that were rotated out of it; a turn that is met again counts once.

    Raises:
        HarnessError: A file cannot be read or a line is not of a trace (names file, line and field), or there are no
            turns.
    """
    turns = {turn.turn: turn for path in paths for turn in _turns(path)}
    if not turns:
        raise HarnessError(f"there are no turns in {', '.join(map(str, paths))}")
    return list(turns.values())


def _turns(path: Path) -> list[TraceLine]:
    try:
        return list(read_traces(path))
    except OSError as error:
        raise HarnessError(f"{path}: cannot be read: {error}") from error
    except TraceFileError as error:
        raise HarnessError(str(error).replace("Value error, ", "")) from error
