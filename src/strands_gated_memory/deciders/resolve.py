"""From a short specification to a decision model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..core.functions import check_function
from ..core.questions import Decider, Thresholds, attribute_of, name_of
from ..core.specs import specs_in, why_unknown
from ..errors import ConfigurationError
from ..policy import wait
from .fallback import FallbackDecider
from .function import DecisionFunction, FunctionDecider
from .shown import quoted


class LanguageModel(Protocol):
    """What is used of a Strands `Model`."""

    def get_config(self) -> Any: ...  # noqa: D102
    def stream(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102
    def structured_output(self, *args: Any, **kwargs: Any) -> Any: ...  # noqa: D102


DeciderSpec = str | Decider | DecisionFunction | LanguageModel | Sequence[Any] | None
"""What `resolve_decider` accepts."""


def _embedded(model: str | None) -> Decider:
    if model:
        raise ConfigurationError(
            f'decider {quoted("embedded:" + model)}: the embedded model has no variants; write "embedded"'
        )
    from ..embedded.decider import EmbeddedDecider

    return EmbeddedDecider()


def _auto(model: str | None) -> Decider:
    from .auto import make

    if model:
        raise ConfigurationError(f'decider {quoted("auto:" + model)}: auto chooses by itself; write "auto"')
    return make(_named)


def _llm(model: str | None) -> Decider:
    from .llm import ModelDecider

    return ModelDecider(model_id=model)


def _fitted(path: str | None) -> Decider:
    from ..fitted_file import read_fitted
    from .fitted import FittedDecider

    if not path:
        raise ConfigurationError(
            'decider "fitted" needs a file; write "fitted:thresholds.json", made by `python -m harness fit`'
        )
    if "://" in path:
        raise ConfigurationError(f"decider {quoted('fitted:' + path)} needs a file, not a URL")
    fitted = read_fitted(path)
    try:
        decider = resolve_text(fitted.decider)
    except ConfigurationError as error:
        raise ConfigurationError(f"fitted file {path}: decider: {error}") from error
    return FittedDecider(fitted, decider, path)


def _from_catalog(name: str) -> Callable[[str | None], Decider]:
    def make(model: str | None) -> Decider:
        from . import catalog

        maker: Callable[[str | None], Decider] = getattr(catalog, name)
        return maker(model)

    return make


def _system_one(url: str | None) -> Decider:
    from .catalog import system_one

    if not url:
        raise ConfigurationError('decider "systemone" needs an address; write "systemone:http://127.0.0.1:8000"')
    return system_one(url)


_NAMED: dict[str, Callable[[str | None], Decider]] = {
    "embedded": _embedded,
    "strands-decider": _from_catalog("strands_decider"),
    "systemone": _system_one,
    "jev": _from_catalog("jev"),
    "openrouter": _from_catalog("openrouter"),
    "openai": _from_catalog("openai"),
    "liquid": _from_catalog("liquid"),
    "sagemaker": _from_catalog("sagemaker"),
    "agentcore": _from_catalog("agentcore"),
    "llm": _llm,
    "fitted": _fitted,
    "auto": _auto,
}


def resolve_decider(spec: DeciderSpec) -> Decider | None:
    """Return the decision model that a specification names.

    Args:
        spec: None (take no decisions); a name, such as "embedded", "jev" or "auto", some with a model or
            address after a colon, such as "sagemaker:my-endpoint"; the URL of a System One server; a
            function `(state, questions) -> answers` in System One wire shape; a Strands `Model`; any object
            with `decide(state, questions)`; or a list of these: the first that answers decides.

    Raises:
        ConfigurationError: The name is unknown, a key, package or address is missing or cannot be used, the
            function cannot be called so, or it is a coroutine, or an object's `thresholds` or
            `deadline_s` cannot be used.
    """
    if spec is None:
        return None
    if isinstance(spec, str):
        return _named(spec)
    if isinstance(spec, list | tuple):
        return _fallback(spec)
    if isinstance(spec, type):
        raise ConfigurationError(f"decider is the class {spec.__name__}; pass an instance, {spec.__name__}(...)")
    if isinstance(spec, Decider):
        check_function(spec.decide, f"decider {name_of(spec)}", "decide(state, questions)", 2)
        _check_thresholds(spec)
        _check_deadline(spec)
        return spec
    from .llm import ModelDecider, is_model

    if is_model(spec):
        return ModelDecider(spec)
    if callable(spec):
        name = getattr(spec, "__qualname__", type(spec).__name__)
        check_function(spec, f"decider {name}", "function(state, questions)", 2)
        return FunctionDecider(spec)
    raise ConfigurationError(
        f"decider must be None, a name ({', '.join(map(repr, _NAMED))}), a URL, a list, a Strands model, a function "
        f"(state, questions) -> answers or an object with decide(state, questions), got {type(spec).__name__}"
    )


def _named(spec: str) -> Decider:
    if spec.lower().startswith(("http://", "https://")):
        return _system_one(spec)
    if why := why_unknown(spec, _NAMED):
        raise ConfigurationError(
            f"decider {quoted(spec)} {why}; for any other model pass a function (state, questions) -> answers"
        )
    name, _, model = spec.partition(":")
    return _NAMED[name](model.strip() or None)


def resolve_text(text: str) -> Decider:
    """Return the decision model that a text names: one specification, or several with commas, as `specs_in` has it.

    Raises:
        ConfigurationError: As `resolve_decider`.
    """
    specs = specs_in(text)
    return _fallback(specs) if len(specs) > 1 else _named(text)


def _fallback(specs: Sequence[Any]) -> FallbackDecider:
    members: list[tuple[str, Decider]] = []
    for spec in specs:
        try:
            decider = resolve_decider(spec)
        except RecursionError:
            raise ConfigurationError("a list of deciders may not hold itself") from None
        if decider is None:
            raise ConfigurationError(
                "a list of deciders may not hold None: when nobody answers, all is recalled anyway"
            )
        name = spec if isinstance(spec, str) else getattr(decider, "name", None) or _name_of(decider, spec)
        members.append((str(name), decider))
    names = [name for name, _ in members]
    return FallbackDecider(
        [
            (name if names.count(name) == 1 else f"{name} ({at + 1})", decider)
            for at, (name, decider) in enumerate(members)
        ],
        keys=list(specs),
    )


def _name_of(decider: Decider, spec: Any) -> str:
    return getattr(spec, "__name__", None) or type(decider).__name__


def _check_thresholds(decider: Decider) -> None:
    """Refuse what would be passed over on every turn, while its author believes it in force."""
    own = attribute_of(decider, "thresholds")
    if own is not None and not isinstance(own, Thresholds):
        raise ConfigurationError(
            f"decider {name_of(decider)}: its thresholds must be None or a Thresholds, got {type(own).__name__}; write "
            "`from strands_gated_memory import Thresholds` and "
            "`thresholds = Thresholds(gate=0.3, router=0.3, validator=0.4)` with the values that you measured"
        )


def _check_deadline(decider: Decider) -> None:
    """As `_check_thresholds`; one that is likely in milliseconds draws a warning."""
    own = attribute_of(decider, "deadline_s")
    if own is None:
        return
    try:
        wait(own, "deadline_s")
    except ValueError as error:
        raise ConfigurationError(
            f"decider {name_of(decider)}: its deadline_s {error}; write how long a whole recall may take with it, such "
            "as `deadline_s = 5.0`, or None"
        ) from error
