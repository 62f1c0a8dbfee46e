"""The file of what was fitted on a user's own labels: thresholds, and heads where asked for.

`python -m harness fit` writes it; `RecallPolicy.from_file` and the decider `"fitted:<path>"` read it. It says
what it holds for: the model, the questions word for word, the data, the goal, and how well it did.
"""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ..policy import Probability
from .specs import specs_in, why_unknown
from .wordings import Wording, as_wording

Stage = Literal["gate", "router", "validator"]
"""What a threshold is of: `RecallPolicy`'s stages that decide."""

STAGES: tuple[Stage, ...] = ("gate", "router", "validator")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class LogisticHead(_Part):
    """A logistic regression on features of the embedded model, its own logit among them.

    P' = sigmoid(sum of weight * (feature - mean) / scale + intercept), the features being the blocks named by
    `inputs` (`embedded.heads.join`) side by side, after the shipped head's logit.
    """

    inputs: tuple[str, ...]
    encoder_width: int = Field(ge=1, le=100_000)
    """Length of the encoder's vectors when it was fitted."""
    mean: tuple[float, ...] = Field(min_length=1)
    scale: tuple[Annotated[float, Field(gt=0)], ...]
    weight: tuple[float, ...]
    intercept: float

    @model_validator(mode="after")
    def _is_of_one_width(self) -> LogisticHead:
        widths = {"mean": len(self.mean), "scale": len(self.scale), "weight": len(self.weight)}
        if len(set(widths.values())) != 1:
            raise ValueError(f"mean, scale and weight must be of one length, got {widths}")
        return self


class StageFigures(_Part):
    """How well a stage did. Rates lie in 0..1; None where there was nothing to measure."""

    in_sample: dict[str, float | None]
    """On the labels that it was fitted on: too good."""
    cross_validated: dict[str, float | None] = Field(default_factory=dict)
    """On each fold by what was fitted on the others; empty when there are too few groups."""
    folds: int = Field(default=0, ge=0)
    """How many; no group is in two of them."""
    held_out: dict[str, float | None] = Field(default_factory=dict)
    """On a file of labels that had no part in the fit; empty when none was given."""


class FittedStage(_Part):
    """What was fitted for one stage."""

    question: Wording
    """Word for word: a threshold holds for no other."""
    threshold: Probability | None = None
    """P(yes) from which on it is a yes; of the head's probability where there is one."""
    head: LogisticHead | None = None
    items: int = Field(default=0, ge=0)
    """How many labels it was fitted on."""
    groups: int = Field(default=0, ge=0)
    """Of how many queries (validator), turns (gate and router)."""
    figures: StageFigures | None = None


class FittedSelect(_Part):
    """How the validator's probabilities become a choice; see `SelectSettings`."""

    mode: Literal["threshold", "ranking", "hybrid"] = "hybrid"
    relative: Probability | None = None


class Fitted(_Part):
    """The file."""

    format: Literal[1] = 1
    decider: str = Field(min_length=1)
    """The specification of the decider that was asked, as `resolve_decider` takes it."""
    model: str | None = None
    """The id of the model that answered, as it reports it."""
    date: date
    data: dict[str, str] = Field(default_factory=dict)
    """SHA-256 of each file of labels, by its name."""
    goal: dict[str, float | str | None] = Field(default_factory=dict)
    """What the thresholds were chosen for."""
    stages: dict[Stage, FittedStage] = Field(min_length=1)
    select: FittedSelect = Field(default_factory=FittedSelect)

    @field_validator("decider")
    @classmethod
    def _is_a_decider(cls, decider: str) -> str:
        for spec in specs_in(decider):
            if spec.partition(":")[0].strip().lower() == "fitted":
                raise ValueError(f"{spec!r}: a fitted decider cannot ask another fitted one")
            if why := why_unknown(spec):
                raise ValueError(f"decider {spec.partition(':')[0][:40]!r} {why}")
        return decider

    @model_validator(mode="after")
    def _asks_about_the_text(self) -> Fitted:
        for name, stage in self.stages.items():
            as_wording(stage.question, f"stages.{name}.question", subject=name != "gate")
        return self

    @model_validator(mode="after")
    def _has_heads_for_the_embedded_model(self) -> Fitted:
        if self.decider != "embedded" and any(stage.head for stage in self.stages.values()):
            raise ValueError(f"decider is {self.decider!r}: heads are for 'embedded' alone")
        return self

    @property
    def has_heads(self) -> bool:
        """Whether a stage has a head: the thresholds are then no thresholds of the bare decider's."""
        return any(stage.head for stage in self.stages.values())

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the policy's settings that it holds, by stage.

        The thresholds are left out where it `has_heads`: the decider `"fitted:<path>"` brings them,
        and for any other decider they would be wrong.
        """
        found: dict[str, dict[str, Any]] = {"select": {"mode": self.select.mode}}
        for name, stage in self.stages.items():
            found[name] = {"question": stage.question}
            if stage.threshold is not None and not self.has_heads:
                found[name]["threshold"] = stage.threshold
        if self.select.relative is not None and not self.has_heads:
            found["select"]["relative"] = self.select.relative
        return found
