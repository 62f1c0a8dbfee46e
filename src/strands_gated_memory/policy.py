"""Every setting of a recall, grouped by stage, checked once when it is made."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr

from .core.block import InjectSettings
from .core.cuts import DEFAULT_CUTS, DEFAULT_DEADLINE_S, CutName, CutsInForce, InForce
from .core.gate import GateSettings
from .core.router import RouterSettings
from .core.select import SelectSettings
from .core.settings import Count, Seconds, Settings, Wait
from .core.turn import TurnSettings
from .core.validator import ValidatorSettings
from .core.wordings import Wording
from .fitted_file import read_fitted


class BreakerSettings(Settings):
    """When a dependency that keeps failing is no longer asked."""

    failures: Count | None = Field(default=5, ge=1)
    """After how many failures in a row it is left alone; None: never."""
    cooldown_s: Seconds = 30.0
    """For how long, in seconds; then one call probes it."""


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
    def from_file(cls, path: str | os.PathLike[str], **settings: Any) -> RecallPolicy:
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
