"""From a short specification to a decision model."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable

from ..core.questions import Decider
from ..errors import ConfigurationError
from .function import DecisionFunction, FunctionDecider

DeciderSpec = str | Decider | DecisionFunction | None
"""What `resolve_decider` accepts."""


def _embedded(model: str | None) -> Decider:
    from ..embedded.decider import EmbeddedDecider

    if model:
        raise ConfigurationError(f'decider "embedded:{model}": the embedded model has no variants; write "embedded"')
    return EmbeddedDecider()


_NAMED: dict[str, Callable[[str | None], Decider]] = {"embedded": _embedded}


def resolve_decider(spec: DeciderSpec) -> Decider | None:
    """Return the decision model that a specification names.

    Args:
        spec: None (take no decisions); "embedded"; a function `(state, questions) -> answers` in System
            One wire shape; or any object with `decide(state, questions)`.

    Raises:
        ConfigurationError: The name is unknown, the function cannot be called so, or it is a coroutine.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, type):
        raise ConfigurationError(f"decider is the class {spec.__name__}; pass an instance, {spec.__name__}(...)")
    if isinstance(spec, Decider):
        if inspect.iscoroutinefunction(spec.decide):
            raise ConfigurationError(f"decider {spec!r}: decide() is async; it is called from a thread, make it plain")
        return spec
    if callable(spec):
        _check_function(spec)
        return FunctionDecider(spec)
    raise ConfigurationError(
        f"decider must be None, a name ({', '.join(map(repr, _NAMED))}), a function (state, questions) -> answers "
        f"or an object with decide(state, questions), got {spec!r}"
    )


def _named(spec: str) -> Decider:
    name, _, model = spec.partition(":")
    if name in _NAMED:
        return _NAMED[name](model or None)
    near = difflib.get_close_matches(name, _NAMED, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ConfigurationError(
        f"decider {spec!r} is unknown{hint} Known names: {', '.join(map(repr, _NAMED))}; "
        "for any other model pass a function (state, questions) -> answers"
    )


def _check_function(function: DecisionFunction) -> None:
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(f"decider {function!r} is async; it is called from a thread, make it plain")
    try:
        inspect.signature(function).bind({}, {})
    except TypeError as error:
        raise ConfigurationError(
            f"decider {function!r} cannot be called as function(state, questions): {error}"
        ) from error
    except ValueError:
        return  # a builtin without a signature: found out at the first call
