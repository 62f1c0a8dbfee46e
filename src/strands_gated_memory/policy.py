"""Every setting of a recall, grouped by stage, each checked once; and what is in force where one is unset."""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from .core.functions import check_function
from .core.questions import Thresholds
from .core.wordings import GATE_CRITERIA, RECORD_CRITERIA, ROUTE_CRITERIA, Wording, as_wording
from .errors import ConfigurationError

if TYPE_CHECKING:
    from .fitted_file import PathName

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


class TurnSettings(Settings):
    """What of the conversation the decision model sees."""

    history_pairs: Count = Field(default=1, ge=0, le=20)
    """How many exchanges before the message it sees: last user text and final assistant text each.

    The embedded model reads three at most."""
    history_characters: Count = Field(default=400, ge=1, le=100_000)
    """Where each of those texts is cut, in characters."""


class GateSettings(Settings):
    """When memory is searched at all."""

    threshold: Probability | None = None
    """P(a lookup is worth making) from which on it is made, 0..1; None: the decider's own, else 0.2."""
    question: Annotated[Wording, BeforeValidator(lambda value: as_wording(value, "gate.question", subject=False))] = (
        GATE_CRITERIA
    )
    """What is asked: a `Wording`, or a noul `Question`. A threshold holds for one wording."""


class RouterSettings(Settings):
    """Which namespaces are searched once the gate is open."""

    threshold: Probability | None = None
    """P(the namespace is needed) from which on it is searched, 0..1; None: the decider's own, else 0.2."""
    question: Annotated[Wording, BeforeValidator(lambda value: as_wording(value, "router.question", subject=True))] = (
        ROUTE_CRITERIA
    )
    """What is asked about each namespace; `{subject}` in it becomes the description."""
    descriptions: Mapping[str, str] = Field(default_factory=dict)
    """What a namespace holds, one phrase, keyed by namespace as configured; overrides the default."""
    pinned: tuple[str, ...] = ()
    """Namespaces, as configured, that hold what must never be missed (allergies, standing style): fetched
    once per session whatever the gate says, and validated each turn."""
    pinned_ttl_s: Seconds = 900.0
    """How long fetched pinned records are reused, in seconds."""

    def check_names(self, known: Collection[str], why: str, known_are: str) -> None:
        """Check that the namespaces named here exist.

        Args:
            known: Those that there are.
            why: What is wrong with one that is not among them, such as "is not in retrieval_config".
            known_are: How to begin their list, such as "it has".

        Raises:
            ConfigurationError: One does not.
        """
        for setting in ("pinned", "descriptions"):
            for name in getattr(self, setting):
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = (
                        f"did you mean {near[0]!r}?" if near else f"{known_are} {', '.join(map(repr, known)) or 'none'}"
                    )
                    raise ConfigurationError(f"RecallPolicy.router.{setting} names {name!r}, which {why}; {hint}")


class RetrieveSettings(Settings):
    """How namespaces are searched."""

    timeout_s: Wait = 2.0
    """How long one namespace's search may take, in seconds, within `deadline_s`."""
    send_strategy_id: bool = False
    """Whether a namespace's `strategy_id` is sent as a filter; the stock manager never sends it."""
    skip_own_summary: bool = True
    """Whether the running session's own summary is left out while the conversation still holds what it sums up.
    Once the conversation manager, or the application, has removed the session's beginning, it is recalled."""


class RenderSettings(Settings):
    """What a record looks like to the decision model and in the prompt."""

    mode: Literal["prose", "raw"] = "prose"
    """"prose": every record shape as one line of prose. "raw": as stored."""


class ValidatorSettings(Settings):
    """Which records belong in the prompt."""

    threshold: Probability | None = None
    """P(the record belongs) from which on it is kept, 0..1 (`select.mode` "threshold" and "hybrid"); None: the
    decider's own, else 0.2."""
    question: Annotated[
        Wording, BeforeValidator(lambda value: as_wording(value, "validator.question", subject=True))
    ] = RECORD_CRITERIA
    """What is asked about each record; `{subject}` in it becomes the rendered record."""
    drop_instructions: bool = False
    """Whether to ask of each record, in the same request, if it tries to instruct the assistant
    (`RECORD_INSTRUCTIONS`), and to drop it if so. A decider that abstains from such a question, as the embedded
    one does, leaves it to `core.instructions.instructs`. Without a valid answer the record is kept."""
    instructions_threshold: Probability = 0.5
    """P(the record tries to instruct the assistant) from which on it is dropped, 0..1."""


SelectMode = Literal["threshold", "ranking", "hybrid"]
"""How probabilities become a choice.

- `"threshold"`: at or above `validator.threshold`.
- `"ranking"`: at or above `select.relative` times the best of this turn; something is always kept.
- `"hybrid"`: both. The order of a model's answers is steadier than their level (seen for two models
  over repeated runs), and the floor keeps a turn that needs nothing from getting its least bad record.
"""


UndecidedOrder = Literal["score", "configuration"]
"""Which records without a decision the limits let in first; those that are in stand in configuration order.

- `"score"`: the best of each namespace, then by search score, which the service gives on one scale for all of a
  memory's namespaces; those without a score in turns by namespace.
- `"configuration"`: namespace by namespace, as configured, as the stock manager does.
"""


def _named(counter: Callable[[str], int]) -> str:
    if counter is not estimate_tokens:
        raise ValueError(
            "select.token_counter is a function of yours, which JSON cannot hold; leave it out: "
            'model_dump(mode="json", exclude={"select": {"token_counter"}})'
        )
    return estimate_tokens.__name__


def _as_counter(value: object) -> object:
    if value == estimate_tokens.__name__:  # as JSON brings it
        return estimate_tokens
    check_function(value, "select.token_counter", "function(text)")
    return value


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text: characters / 4, rounded up."""
    return math.ceil(len(text) / 4)


class SelectSettings(Settings):
    """What of the relevant records fits the prompt."""

    mode: SelectMode = "hybrid"
    """See `SelectMode`."""
    relative: Probability | None = None
    """ranking and hybrid: the least share of the turn's best probability that a record must have, 0..1; None: the
    decider's own, else 0.25."""
    dedupe: bool = True
    """Whether a record with the same id, or the same text, as another one is left out."""
    max_records: Count | None = Field(default=20, ge=0)
    """At most so many records; None: no limit."""
    max_context_tokens: Count | None = Field(default=2000, ge=0)
    """At most so many tokens for the whole block, tag included; None: no limit."""
    shorten: bool = True
    """Whether the best record that does not fit whole is cut to what is left, at the end of a sentence where it can be,
    if that is worth it (`core.shorten.LEAST_COLUMNS`). One without a decision gets what the others leave."""
    undecided_order: UndecidedOrder = "score"
    """See `UndecidedOrder`."""
    token_counter: Annotated[
        Callable[[str], int],
        BeforeValidator(_as_counter),
        PlainSerializer(_named, when_used="json"),
    ] = estimate_tokens
    """Counts the tokens of a text; default: characters / 4, rounded up."""


class InjectSettings(Settings):
    """Where the block goes and how long it stays."""

    mode: Literal["turn", "history"] = "turn"
    """"turn": shown on every model call of the turn and never stored. "history": stays in the
    conversation and is sent again every turn, as the stock manager does."""
    position: Literal["after", "before"] = "after"
    """Beside the text of the message that carries the ask. "after" keeps the block out of the cached prompt
    prefix; with "before" the prefix changes every turn (`python -m harness.benchmarks.prompt_cache`)."""
    show_dates: bool = False
    """Whether a record's date of writing stands before it."""


class BreakerSettings(Settings):
    """When a dependency that keeps failing is no longer asked."""

    failures: Count | None = Field(default=5, ge=1)
    """After how many failures in a row it is left alone; None: never."""
    cooldown_s: Seconds = 30.0
    """For how long, in seconds; then one call probes it."""


CutName: TypeAlias = Literal["gate", "router", "validator", "relative"]
"""A cut: `gate.threshold`, `router.threshold`, `validator.threshold` or `select.relative`."""


CUTS: tuple[CutName, ...] = ("gate", "router", "validator", "relative")


DEFAULT_CUTS: Mapping[CutName, float] = {"gate": 0.2, "router": 0.2, "validator": 0.2, "relative": 0.25}
"""For deciders without measured ones. The gate's is low, because a missed memory costs the user more than a lookup."""


DEFAULT_DEADLINE_S = 3.0
"""Seconds that a recall may take with a decider that asks for no other time."""


Source = Literal["policy", "reply", "decider", "default"]
"""Who set a value.

- `"policy"`: the policy's author.
- `"reply"`: the latest reply, for the model that gave it.
- `"decider"`: the decider, which ships it.
- `"default"`: this package.
"""


class InForce(NamedTuple):
    """A value in force; `print` shows it as "0.209 (embedded-2)"."""

    value: float
    source: Source
    named: str | None = None
    """What the model or decider calls itself, for a reply's and a decider's."""

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.named or self.source})"


@dataclass(frozen=True)
class CutsInForce:
    """The four cuts in force, 0..1; `print` shows each with who set it."""

    gate: InForce
    router: InForce
    validator: InForce
    relative: InForce

    def __str__(self) -> str:
        return ", ".join(f"{name} {getattr(self, name)}" for name in CUTS)

    def thresholds(self) -> Thresholds:
        """Return the values alone."""
        return Thresholds(**{name: getattr(self, name).value for name in CUTS})


def cuts_in_force(
    policy: Mapping[CutName, float | None],
    reply: Mapping[str, tuple[float, str | None]],
    shipped: Mapping[str, float],
    decider: str | None,
) -> CutsInForce:
    """Return the cuts in force.

    Args:
        policy: The policy's; None where it sets none.
        reply: Those that a reply says were measured for the model that gave it, each with that model's id.
        shipped: The decider's own.
        decider: What to call the decider.
    """

    def one(name: CutName) -> InForce:
        own = policy[name]
        if own is not None:
            return InForce(own, "policy")
        if name in reply and reply[name][0] != shipped.get(name):
            value, model = reply[name]
            return InForce(value, "reply", model or decider)
        if name in shipped:
            return InForce(shipped[name], "decider", decider)
        return InForce(DEFAULT_CUTS[name], "default")

    return CutsInForce(**{name: one(name) for name in CUTS})


_SETTINGS: dict[CutName, str] = {
    "gate": "gate.threshold",
    "router": "router.threshold",
    "validator": "validator.threshold",
    "relative": "select.relative",
}
"""Where the policy sets each cut."""


_DEFAULTS = {**{setting: DEFAULT_CUTS[name] for name, setting in _SETTINGS.items()}, "deadline_s": DEFAULT_DEADLINE_S}


def _printed(value: object) -> str:
    if isinstance(value, Wording):
        return value.key
    return getattr(value, "__name__", type(value).__name__) if callable(value) else repr(value)


class RecallPolicy(Settings):
    """How a turn is recalled. Give any stage as a mapping: `RecallPolicy(gate={"threshold": 0.3})`.

    The three thresholds, `select.relative` and `deadline_s` are None by default: a decider that ships its own,
    the embedded one included, uses them, and any other one the package's defaults. `RecallPipeline.cuts_in_force()`
    tells which are used; `print(manager.policy)` shows them.

    Policies with the same settings are equal and do the same: that a default was written out makes no difference.
    `RecallPolicy(**policy.model_dump())` is an equal policy, and so is one read from `model_dump(mode="json")`, which
    holds no token counter of your own.

    Raises:
        pydantic.ValidationError: (a ValueError) naming the setting, its value and what it may be.
    """

    turn: TurnSettings = Field(default_factory=TurnSettings)
    gate: GateSettings = Field(default_factory=GateSettings)
    router: RouterSettings = Field(default_factory=RouterSettings)
    retrieve: RetrieveSettings = Field(default_factory=RetrieveSettings)
    render: RenderSettings = Field(default_factory=RenderSettings)
    validator: ValidatorSettings = Field(default_factory=ValidatorSettings)
    select: SelectSettings = Field(default_factory=SelectSettings)
    inject: InjectSettings = Field(default_factory=InjectSettings)
    deadline_s: Wait | None = None
    """How long a whole recall may take, in seconds; None: the decider's own, else 3.0. What is not there by then is
    done without."""
    breaker: Annotated[
        BreakerSettings, BeforeValidator(lambda value: {"failures": None} if value is None else value)
    ] = Field(default_factory=BreakerSettings)
    """When a decider, or a namespace's search, that keeps failing is left alone for a while; None: never."""
    on_failure: Literal["open", "raise"] = "open"
    """What the first failure of a turn does. "open": it is counted, and the turn goes on as if there were no
    decision model or no such namespace. "raise": it is counted, then `RecallFailed` ends the turn; for CI and
    evaluation, where a broken gate must not look like a working one. An abstention is no failure."""
    stats_log: Literal["block", "line", "json", "off"] = "block"
    """How the counters are logged at INFO: every `stats_every` turns, at the first failure, and on close, where
    managers that share them take turns."""
    stats_every: Count = Field(default=50, ge=1)
    """After how many turns the counters are logged."""

    _in_force: dict[str, InForce] | None = PrivateAttr(default=None)
    """For a policy that is shown as part of a manager: what is in force, by setting."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecallPolicy):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in RecallPolicy.model_fields)

    def __hash__(self) -> int:
        return hash((*self.cuts().values(), self.deadline_s))

    def __str__(self) -> str:
        """Return a line per stage; of what a decider may set, who sets it."""
        rest: list[str] = []
        lines = ["RecallPolicy"]
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, Settings):
                settings = [self._shown(f"{name}.{one}", getattr(value, one)) for one in type(value).model_fields]
                lines.append(f"  {name:<10}  {', '.join(settings)}")
            else:
                rest.append(self._shown(name, value))
        return "\n".join([*lines, f"  {'whole turn':<10}  {', '.join(rest)}"])

    def _shown(self, setting: str, value: object) -> str:
        name = setting.rpartition(".")[2]
        if self._in_force is not None and setting in self._in_force:
            return f"{name}={self._in_force[setting]}"
        if setting in _DEFAULTS and value is None:
            return f"{name}=unset (the decider's own, else {_DEFAULTS[setting]:g})"
        return f"{name}={_printed(value)}"

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> RecallPolicy:
        """Return a checked copy, see `Settings`; what is in force where this one is used is not part of it."""
        copied = super().model_copy(update=update, deep=deep)
        copied._in_force = None
        return copied

    def with_in_force(self, cuts: CutsInForce, deadline: InForce) -> RecallPolicy:
        """Return an equal policy that prints what is in force.

        Args:
            cuts: The cuts in force.
            deadline: `deadline_s` in force, in seconds.
        """
        copied = self.model_copy()
        copied._in_force = {setting: getattr(cuts, name) for name, setting in _SETTINGS.items()}
        copied._in_force["deadline_s"] = deadline
        return copied

    def cuts(self) -> dict[CutName, float | None]:
        """Return the cuts that this policy sets, None for the others."""
        return {
            "gate": self.gate.threshold,
            "router": self.router.threshold,
            "validator": self.validator.threshold,
            "relative": self.select.relative,
        }

    @classmethod
    def from_file(cls, path: PathName, **settings: Any) -> RecallPolicy:
        """Return a policy with the questions, thresholds and selection that `python -m harness fit` wrote.

        Thresholds count as set here, so no doubt about them is reported for another model; the decider
        `"fitted:<path>"` reports it. It also brings the thresholds of a file with heads: for
        any other decider these would be wrong, and this policy leaves them unset.

        Args:
            path: The file.
            **settings: Any others, as for `RecallPolicy`; a stage's settings are added to the file's and win. Those
                of a settings object win where they differ from the defaults, all of a mapping's do.

        Raises:
            ConfigurationError: (a ValueError) the file is wrong; names file and field.
            pydantic.ValidationError: (a ValueError) a setting is wrong.
        """
        values: dict[str, Any] = {}
        from .fitted_file import read_fitted

        for name, fitted in read_fitted(path).settings().items():
            given = settings.pop(name, {})
            if isinstance(given, Settings):
                given = given.changed()
            values[name] = {**fitted, **given} if isinstance(given, Mapping) else given
        return cls(**values, **settings)

    @classmethod
    def stock(cls) -> RecallPolicy:
        """Return the stock manager's behaviour: raw records, in the history, no duplicates removed, no limits.

        With `decider=None` this is the stock manager, but for escaping, for the order of records, which
        is configuration order here and order of arrival there, and for its faults.
        """
        return cls(
            render=RenderSettings(mode="raw"),
            retrieve=RetrieveSettings(skip_own_summary=False),
            select=SelectSettings(
                dedupe=False, max_records=None, max_context_tokens=None, shorten=False, undecided_order="configuration"
            ),
            inject=InjectSettings(mode="history", position="before"),
        )
