"""A user's own wordings, which are measured beside the published ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from strands_gated_memory.core.wordings import SUBJECT, Wording

from ..errors import HarnessError


def read_wordings(path: Path | None, stage: Literal["gate", "validator"]) -> tuple[Wording, ...]:
    """Read a user's wordings: {"gate": [{"id": …, "instructions": …}, …], "validator": […]}.

    Args:
        path: The file; None: no wordings.
        stage: Whose.

    Raises:
        HarnessError: The file is wrong; names file, item and field.
    """
    if path is None:
        return ()
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(value, dict) or not set(value) <= {"gate", "validator"}:
        raise HarnessError(f'{path}: must be an object with "gate" and "validator", each a list of wordings')
    items = value.get(stage, [])
    if not isinstance(items, list):
        raise HarnessError(f"{path}: {stage} must be a list, got {type(items).__name__}")
    return tuple(_wording(item, f"{path}: {stage}[{at}]", stage) for at, item in enumerate(items))


_FIELDS = ("id", "instructions", "criteria", "type", "version", "inverted", "yes")


def _wording(item: Any, place: str, stage: str) -> Wording:
    if not isinstance(item, dict):
        raise HarnessError(f"{place}: must be an object, got {type(item).__name__}")
    for name in item:
        if name not in _FIELDS:
            raise HarnessError(f"{place}: has no field {name!r}; it has {', '.join(_FIELDS)}")
    for name in ("id", "instructions"):
        if not isinstance(item.get(name), str) or not item[name].strip():
            raise HarnessError(f"{place}.{name}: must be a text")
    if stage == "validator" and SUBJECT not in item["instructions"]:
        raise HarnessError(f"{place}.instructions: must hold {SUBJECT}, where the record is put")
    if item.get("type", "noul") not in ("noul", "choice", "score"):
        raise HarnessError(f'{place}.type: must be "noul", "choice" or "score", got {item["type"]!r}')
    try:
        return Wording(**{**item, "yes": tuple(item.get("yes", ()))})
    except (TypeError, ValueError) as error:
        raise HarnessError(f"{place}: {error}") from error
