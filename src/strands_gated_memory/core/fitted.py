"""The file of what was fitted on a user's own labels: thresholds, and calibrators or heads where asked for.

`python -m harness fit` writes it; `RecallPolicy.from_file` and the decider `"fitted:<path>"` read it. It says
what it holds for: the model, the questions word for word, the data, the goal, and how well it did.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from .questions import About
from .settings import Probability
from .specs import specs_in, why_unknown
from .wordings import Wording, as_wording

Stage = Literal["gate", "router", "validator"]
"""What a threshold is of: `RecallPolicy`'s stages that decide."""

STAGES: tuple[Stage, ...] = ("gate", "router", "validator")

_CLIPPED = 1e-7
_MOST_LOGIT = 30.0


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FittedQuestion(_Part):
    """A wording, word for word: a threshold holds for no other."""

    id: str = Field(min_length=1)
    version: int = 1
    instructions: str = Field(min_length=1)
    criteria: dict[str, str | None] | tuple[str, ...] | None = None
    type: Literal["noul", "choice", "score"] = "noul"
    about: About = "custom"
    inverted: bool = False
    yes: tuple[str, ...] = ()

    @classmethod
    def of(cls, wording: Wording) -> FittedQuestion:
        """Return a wording as the file holds it."""
        criteria = wording.criteria
        return cls(
            id=wording.id,
            version=wording.version,
            instructions=wording.instructions,
            criteria=dict(criteria) if isinstance(criteria, Mapping) else None if criteria is None else tuple(criteria),
            type=wording.type,
            about=wording.about,
            inverted=wording.inverted,
            yes=wording.yes,
        )

    def wording(self) -> Wording:
        """Return the wording.

        Raises:
            ValueError: Its fields do not fit each other.
        """
        return Wording(
            self.id,
            self.instructions,
            self.criteria,
            self.type,
            version=self.version,
            about=self.about,
            inverted=self.inverted,
            yes=self.yes,
        )

    @model_validator(mode="after")
    def _is_a_wording(self) -> FittedQuestion:
        self.wording()
        return self


class Platt(_Part):
    """P' = sigmoid(slope * logit(P) + intercept)."""

    kind: Literal["platt"] = "platt"
    slope: float = Field(gt=0)
    intercept: float

    def __call__(self, probability: float) -> float:
        """Return the calibrated probability, 0..1."""
        return _sigmoid(self.slope * logit(probability) + self.intercept)


class Isotonic(_Part):
    """Straight lines between points that never fall; level beyond the outermost."""

    kind: Literal["isotonic"] = "isotonic"
    x: tuple[Probability, ...] = Field(min_length=1)
    """Probabilities as the model gives them, rising."""
    y: tuple[Probability, ...] = Field(min_length=1)
    """Calibrated probabilities, one for each, never falling."""

    @model_validator(mode="after")
    def _rises(self) -> Isotonic:
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} points and y has {len(self.y)}")
        if any(b <= a for a, b in zip(self.x, self.x[1:], strict=False)):
            raise ValueError("x must rise from point to point")
        if any(b < a for a, b in zip(self.y, self.y[1:], strict=False)):
            raise ValueError("y must not fall from point to point")
        return self

    def __call__(self, probability: float) -> float:
        """Return the calibrated probability, 0..1."""
        at = bisect_right(self.x, probability)
        if at == 0:
            return self.y[0]
        if at == len(self.x):
            return self.y[-1]
        left, right = self.x[at - 1], self.x[at]
        part = (probability - left) / (right - left)
        return self.y[at - 1] + part * (self.y[at] - self.y[at - 1])


Calibration = Annotated[Platt | Isotonic, Field(discriminator="kind")]


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

    question: FittedQuestion
    threshold: Probability | None = None
    """P(yes) from which on it is a yes; of the calibrated probability, or the head's, where there is one."""
    calibration: Calibration | None = None
    head: LogisticHead | None = None
    items: int = Field(default=0, ge=0)
    """How many labels it was fitted on."""
    groups: int = Field(default=0, ge=0)
    """Of how many queries (validator), turns (gate and router)."""
    figures: StageFigures | None = None

    @model_validator(mode="after")
    def _has_one_of_both(self) -> FittedStage:
        if self.calibration is not None and self.head is not None:
            raise ValueError("calibration and head: a head is calibrated by itself; keep one of them")
        return self


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
            as_wording(stage.question.wording(), f"stages.{name}.question", subject=name != "gate")
        return self

    @model_validator(mode="after")
    def _has_heads_for_the_embedded_model(self) -> Fitted:
        if self.decider != "embedded" and any(stage.head for stage in self.stages.values()):
            raise ValueError(f"decider is {self.decider!r}: heads are for 'embedded' alone")
        return self

    @property
    def changes_probabilities(self) -> bool:
        """Whether it has a calibrator or a head: its thresholds are then no thresholds of the bare decider's."""
        return any(stage.calibration or stage.head for stage in self.stages.values())

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the policy's settings that it holds, by stage.

        The thresholds are left out where it `changes_probabilities`: the decider `"fitted:<path>"` brings them,
        and for any other decider they would be wrong.
        """
        found: dict[str, dict[str, Any]] = {"select": {"mode": self.select.mode}}
        for name, stage in self.stages.items():
            found[name] = {"question": stage.question.wording()}
            if stage.threshold is not None and not self.changes_probabilities:
                found[name]["threshold"] = stage.threshold
        if self.select.relative is not None and not self.changes_probabilities:
            found["select"]["relative"] = self.select.relative
        return found


def logit(probability: float) -> float:
    """Return log(P / (1 - P)), P clipped to 1e-7 from either end."""
    clipped = min(max(probability, _CLIPPED), 1.0 - _CLIPPED)
    return math.log(clipped / (1.0 - clipped))


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(value, -_MOST_LOGIT), _MOST_LOGIT)))
