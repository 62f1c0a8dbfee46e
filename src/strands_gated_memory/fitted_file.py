"""Reading the file that `python -m harness fit` writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pydantic import ValidationError

from .core.fitted import Fitted
from .errors import ConfigurationError

_MOST_BYTES = 16_000_000


def read_fitted(path: str | os.PathLike[str]) -> Fitted:
    """Read a file that `python -m harness fit` wrote.

    Raises:
        ConfigurationError: It cannot be read, is not JSON, or a field of it is wrong; names file and field.
    """
    source = os.fspath(path)
    try:
        if os.path.getsize(source) > _MOST_BYTES:
            raise ConfigurationError(f"fitted file {source}: over {_MOST_BYTES:,} bytes; `fit` writes none so large")
        document = json.loads(Path(source).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"fitted file {source}: cannot be read: {error}; make one with `python -m harness fit`"
        ) from error
    except json.JSONDecodeError as error:
        raise ConfigurationError(
            f"fitted file {source}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"fitted file {source}: not JSON that can be read: {error}") from error
    try:
        return Fitted.model_validate(document)
    except ValidationError as error:
        shown = [
            f"{'.'.join(map(str, problem['loc'])) or 'the whole'}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()[:5]
        ]
        raise ConfigurationError(f"fitted file {source}: {'; '.join(shown)}") from error
