"""What is in force where a policy leaves a setting to the decision model: each value, and who set it.

The policy's wins, then what the reply says of the model that answered, then the decider's own, then the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from .questions import Thresholds

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
