"""What a decision model is: one method, and attributes that it may carry."""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from ...errors import ConfigurationError
from ..functions import outcome_of
from .question import Answer, Question, State

_T = TypeVar("_T")

Attribute = Literal[
    "deadline_s",
    "thresholds",
    "model_id",
    "warm",
    "is_loaded",
    "answers_custom",
    "remote",
    "list_members",
    "breakers",
    "counted_part",
    "bounded",
]
"""What a decider may carry beside `decide`; read with `attribute_of`, which lets no other name pass the type checker.

- `deadline_s: float | None`: how long a whole recall may take with it, in seconds, where the policy sets nothing.
- `thresholds: Thresholds | None`: measured for it, used where the policy sets none.
- `model_id: str | None`: names the model that answers, where a `Reply` does not.
- `warm() -> None`: loads the model now, in the caller's thread; may raise anything.
- `is_loaded: bool | None`: False: turns wait for `warm()` before they ask. Without it they do so until `warm()` has
  returned once.
- `answers_custom: bool`, default True. False: it would abstain from questions about anything but the gate,
  namespaces and records, so it is not asked them.
- `remote: bool`, default False. True: it talks to something, so a probe question at start makes sense.
- `list_members: tuple[tuple[str, Decider], ...]`: of a list, name and decider of each member, in the order of
  asking, those of lists within it included.
- `breakers: tuple[CircuitBreaker, ...]`: of a list, the circuit breaker of each member.
- `bounded: bool`, default False. True: a call ends soon by itself, so it is made in the turn's own thread.
- `counted_part(state, record) -> str`: which part of a long record its probability comes from; `ask` prints it.
"""


@runtime_checkable
class Decider(Protocol):
    """A decision model: `decide`, and the optional attributes that `Attribute` lists."""

    def decide(self, state: State, questions: Mapping[str, Question]) -> Mapping[str, Answer]:
        """Answer the questions about one state.

        Args:
            state: The user's message and the texts before it.
            questions: Question per id.

        Returns:
            An answer per id. A missing id counts as `NoAnswer("missing")`.

        Raises:
            Exception: Anything; the pipeline counts it and fails open.
        """
        ...


@dataclasses.dataclass(frozen=True)
class Thresholds:
    """Probabilities (0..1) at which a decider's answers were measured to separate best.

    Attributes:
        gate: As `RecallPolicy.gate.threshold`; None: none was measured, as for the others.
        router: As `RecallPolicy.router.threshold`.
        validator: As `RecallPolicy.validator.threshold`.
        relative: As `RecallPolicy.select.relative`, a share.

    Raises:
        ConfigurationError: (a ValueError) a value is no number from 0 to 1.
    """

    gate: float | None
    router: float | None
    validator: float | None
    relative: float | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (value is None or is_share(value)):
                raise ConfigurationError(
                    f"Thresholds.{name} must be a number from 0 to 1, or None if none was measured, got {value!r}"
                )


def is_share(value: Any) -> bool:
    """Tell whether a value is a number from 0 to 1."""
    is_number = type(value) is float or (isinstance(value, numbers.Real) and not isinstance(value, bool))
    return is_number and bool(0.0 <= value <= 1.0)


def attribute_of(decider: object, name: Attribute, default: Any = None) -> Any:
    """Return one of a decider's optional attributes, the default if it has none or reading it fails."""
    return read_safely(lambda: getattr(decider, name, default), default)


def read_safely(read: Callable[[], _T], otherwise: _T) -> _T:
    """Return what reading a foreign object gives, and something else if that fails."""
    value = outcome_of(read)
    return otherwise if isinstance(value, Exception) else value


def thresholds_of(decider: object) -> dict[str, float]:
    """Return the thresholds that a decider ships, by stage."""
    own = attribute_of(decider, "thresholds")
    shipped = vars(own) if isinstance(own, Thresholds) else {}
    return {name: value for name, value in shipped.items() if value is not None}


def list_members_of(decider: object) -> tuple[tuple[str, Decider], ...]:
    """Return name and decider of each member of a list, in the order of asking; () for what is no list."""
    members = attribute_of(decider, "list_members", ())
    return members if isinstance(members, tuple) else ()


def is_ours(decider: object) -> bool:
    """Tell whether a decider is this package's own, which changes nothing and says nothing private of itself."""
    return type(decider).__module__.partition(".")[0] == __name__.partition(".")[0]


def name_of(decider: object) -> str:
    """Return what to call a decider: its repr if it is ours, its class otherwise, as a foreign repr may hold a key."""
    return repr(decider) if is_ours(decider) else type(decider).__name__


def title_of(decider: object) -> str:
    """Return what to call a decider in what is printed: its model's id, else its name, in 80 characters at most."""
    return as_model_id(attribute_of(decider, "model_id")) or name_of(decider)[:_NAME_CHARACTERS]


_MODEL_ID_CHARACTERS = 128
_NAME_CHARACTERS = 80


def as_model_id(value: object) -> str | None:
    """Return what a model calls itself, None for what is no id: a server may echo the turn, and ids are logged."""
    if not isinstance(value, str) or len(value) > _MODEL_ID_CHARACTERS or len(value.split()) != 1:
        return None
    return value
