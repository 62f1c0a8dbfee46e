"""Functions that an application or a library brings: what could never be called is said at once; calling them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeVar

from ..errors import ConfigurationError

_T = TypeVar("_T")


def check_function(function: object, who: str, form: str, arguments: int = 1) -> None:
    """Check that a function can be called as it will be.

    Args:
        function: What was passed.
        who: Which argument or setting it is, for the message.
        form: How it is called, such as "function(record)".
        arguments: How many it is called with.

    Raises:
        ConfigurationError: (a ValueError) it is no function, it is async, or it takes other arguments.
    """
    if not callable(function):
        raise ConfigurationError(f"{who} cannot be called as {form}: it is of type {type(function).__name__}")
    if _is_async(function) or _is_async(type(function).__call__):
        raise ConfigurationError(f"{who} is async, and nobody awaits {form}; make it plain")
    try:
        inspect.signature(function).bind(*[{}] * arguments)
    except TypeError as error:
        raise ConfigurationError(f"{who} cannot be called as {form}: {error}") from error
    except ValueError:
        return  # a builtin without a signature: found out at the first call


def _is_async(function: object) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def outcome_of(call: Callable[[], _T]) -> _T | Exception:
    """Return what foreign code returns, or what it raises.

    For code that nobody here wrote and that may raise anything: a property of the user's, a mapping that is no answer,
    a provider's client, a model's library.
    """
    try:
        return call()
    except Exception as error:  # nobody knows what else it may be
        return error
