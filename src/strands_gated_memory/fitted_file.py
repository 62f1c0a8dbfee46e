"""Reading the file that `python -m harness fit` writes."""

from __future__ import annotations

import os
from typing import TypeAlias

from pydantic import ValidationError

from .core.fitted import Fitted
from .errors import ConfigurationError

_MOST_BYTES = 16_000_000


PathName: TypeAlias = str | os.PathLike[str]


def read_fitted(path: PathName) -> Fitted:
    """Read a file that `python -m harness fit` wrote.

    Raises:
        ConfigurationError: It cannot be read, is not JSON, or a field of it is wrong; names file and field.
    """
    source = os.fspath(path)
    try:
        with open(source, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        raise ConfigurationError(
            f"fitted file {source!r}: cannot be read: {error}; make one with `python -m harness fit`"
        ) from error
    if len(data) > _MOST_BYTES:
        raise ConfigurationError(f"fitted file {source}: over {_MOST_BYTES:,} bytes; `fit` writes none so large")
    try:
        return Fitted.model_validate_json(data)
    except ValidationError as error:
        shown = [
            f"{'.'.join(map(str, problem['loc'])) or 'the whole'}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()[:5]
        ]
        raise ConfigurationError(f"fitted file {source}: {'; '.join(shown)}") from error
