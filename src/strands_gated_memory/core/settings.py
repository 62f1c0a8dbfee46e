"""Building blocks for the settings of every stage: frozen, closed to unknown names, checked once."""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationInfo, model_validator

MOST_SECONDS = 3600.0
"""The longest deadline or timeout; a longer one is a slip of the unit."""
LONG_WAIT_S = 60.0
"""What nobody who waits for an answer waits for: from here on a deadline is likely meant in milliseconds."""

_Settings = TypeVar("_Settings", bound="Settings")


class Settings(BaseModel):
    """Base of the settings: frozen, and a misspelt name is an error that says the right one."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _name_the_nearest(cls, values: Any) -> Any:
        if isinstance(values, dict):
            for name in values:
                if name not in cls.model_fields:
                    near = difflib.get_close_matches(str(name), cls.model_fields, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(cls.model_fields)}"
                    raise ValueError(f"{cls.__name__} has no setting {name!r}; {hint}")
        return values

    def model_copy(self: _Settings, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> _Settings:
        """Return a copy, as pydantic does; what is updated is checked as if it had been given at the start.

        Raises:
            pydantic.ValidationError: (a ValueError) naming the setting, its value and what it may be.
        """
        copied = super().model_copy(deep=deep)
        if not update:
            return copied
        checked = type(self)(**update)
        return super(Settings, copied).model_copy(update={name: getattr(checked, name) for name in update})

    def changed(self) -> dict[str, Any]:
        """Return the settings that differ from the defaults."""
        default = type(self)()
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in values.items() if value != getattr(default, name)}


def warn_caller(message: str) -> None:
    """Warn, at the line outside this package, pydantic and the SDKs that led here."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_inside(str(frame.f_globals.get("__name__", ""))):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level + 1)


def _is_inside(module: str) -> bool:
    return module.partition(".")[0] in (__name__.partition(".")[0], "pydantic", "strands", "bedrock_agentcore")


def _probability(value: Any) -> float:
    number = _number(value, "a probability in 0..1")
    if not 0.0 <= number <= 1.0:
        hint = f"; did you mean {number / 100:g}?" if 1.0 < number <= 100.0 else ""  # noqa: PLR2004
        raise ValueError(f"must be a probability in 0..1, got {value!r}{hint}")
    return number


def _seconds(value: Any) -> float:
    number = _number(value, "a number of seconds above 0")
    if not 0.0 < number <= MOST_SECONDS:
        hint = f"; did you mean {number / 1000:g}?" if number > MOST_SECONDS else ""
        raise ValueError(f"must be a number of seconds above 0, at most {MOST_SECONDS:g}, got {value!r}{hint}")
    return number


def wait(value: Any, name: str) -> float:
    """Return how long a turn may wait, in seconds; a time that is likely in milliseconds draws a warning.

    Raises:
        ValueError: It is no number of seconds above 0, at most `MOST_SECONDS`.
    """
    number = _seconds(value)
    if number > LONG_WAIT_S:
        warn_caller(
            f"{name}={value!r} lets a turn wait for up to {number / 60:.3g} minutes, as it is in seconds; "
            f"if you meant milliseconds, write {name}={number / 1000:g}"
        )
    return number


def _wait(value: Any, info: ValidationInfo) -> float:
    return wait(value, str(info.field_name))


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"must be a whole number, got {value!r}")
    return value


def _number(value: Any, wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be {wanted}, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"must be {wanted}, got {number}")
    return number


Probability = Annotated[float, BeforeValidator(_probability)]
"""A probability, 0..1, finite."""

Seconds = Annotated[float, BeforeValidator(_seconds)]
"""A duration in seconds, above 0, at most `MOST_SECONDS`."""

Wait = Annotated[float, BeforeValidator(_wait)]
"""How long a turn may wait, in seconds, as `Seconds`; over `LONG_WAIT_S` draws a warning."""

Count = Annotated[int, BeforeValidator(_count)]
"""A whole number; neither a text nor a truth value is one."""
