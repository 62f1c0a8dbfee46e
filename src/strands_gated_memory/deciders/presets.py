"""What is known about decision models: thresholds for a model and a wording, and how long they may take.

A threshold holds for one model and one wording of the question. Every number here says where it is from;
none of a hosted model was measured by this project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..core.questions import Question

Stage = str
"""A stage with a threshold: "gate", "router" or "validator"."""


@dataclass(frozen=True)
class Preset:
    """Thresholds of one model family, as published by others, who measured them on their own wordings."""

    family: str
    """The family's name, such as "jev"."""
    recognised: tuple[str, ...]
    """Patterns of model ids that belong to the family."""
    tuned: tuple[str, ...]
    """Patterns of the model ids that the thresholds were measured on."""
    thresholds: Mapping[Stage, float]
    """Probability (0..1) per stage."""
    wordings: Mapping[Stage, str]
    """The question of ours, id and version, that each threshold is used with: it asks the same in other words."""
    source: str
    """Where the numbers are from."""
    deadline_s: float | None = None
    """How long a recall may take with this model, in seconds; None: the policy's default is enough."""


_CRITERIA = {"gate": "gate/criteria/1", "router": "route/criteria/1", "validator": "record/criteria/1"}

PRESETS: tuple[Preset, ...] = (
    Preset(
        family="strands-decider",
        recognised=("strands-decider*", "*hobson*"),
        tuned=("strands-decider-2B-*", "hobson-v19"),
        # The router's was not measured by anybody: the gate's is used.
        thresholds={"gate": 0.19, "router": 0.19, "validator": 0.36},
        wordings=_CRITERIA,
        source="the post 'Should the agent even look that up?', 20 utterances and four queries; its own wording",
    ),
    Preset(
        family="jev",
        recognised=("jev-*", "typesafe/jev*", "~typesafe/jev*"),
        tuned=("jev-1.13*", "typesafe/jev-1.13*"),  # the release of the time; the post names no version
        thresholds={"gate": 0.43, "router": 0.43, "validator": 0.50},
        wordings=_CRITERIA,
        source="the post's code, second-hand; the post says that Jev's values drifted between runs",
    ),
    Preset("openai-decisions", ("gpt-*", "openai/gpt-*decisions*"), (), {}, {}, "no measurement"),
    Preset("liquid", ("d1", "d1.*", "d1-*", "liquid/*"), (), {}, {}, "no measurement"),
)
"""Known families. The strands-decider and Jev thresholds come from the post's published wordings, not from ours."""

SLOW_DEADLINE_S = 30.0
"""For the 2B model on a CPU: 3 to 9 s per request by its own documentation, two requests per turn."""
LLM_DEADLINE_S = 12.0
"""For a language model asked for structured output: one to a few seconds per request, two requests per turn."""


@dataclass(frozen=True)
class Tuning:
    """The thresholds for one answer."""

    thresholds: Mapping[Stage, float]
    """Known thresholds; a stage without one uses the policy's default."""
    untuned: Mapping[Stage, str] = field(default_factory=dict)
    """Per stage, why its threshold may not suit."""


def preset_of(model: str | None, family: str | None) -> Preset | None:
    """Return the preset of a model's family, by its id, else by the family named; None for an unknown one."""
    for preset in PRESETS:
        if model is not None and any(fnmatchcase(model, pattern) for pattern in preset.recognised):
            return preset
    return next((preset for preset in PRESETS if preset.family == family), None)


_STAGES = {"gate": "gate", "namespace": "router", "record": "validator"}


def tuning_for(model: str | None, family: str | None, questions: Iterable[Question]) -> Tuning:
    """Return the thresholds for a model's answers to these questions; custom ones have none."""
    return tuning(model, family, [(_STAGES[one.about], one.wording) for one in questions if one.about in _STAGES])


def tuning(model: str | None, family: str | None, asked: Iterable[tuple[Stage, str | None]]) -> Tuning:
    """Return the thresholds for a model's answers.

    Args:
        model: The id that the answering model reports.
        family: The family that was configured, for a model that reports none.
        asked: Stage and wording of each question of the request.
    """
    preset = preset_of(model, family)
    thresholds: dict[Stage, float] = {}
    untuned: dict[Stage, str] = {}
    name = model or family or "this model"
    for stage, wording in dict.fromkeys(asked):
        if preset is None or stage not in preset.thresholds:
            untuned[stage] = f"no {stage} threshold is known for {name}"
            continue
        if wording != preset.wordings.get(stage):
            untuned[stage] = f"the {stage} threshold of {preset.family} is for another wording than {wording}"
            continue
        thresholds[stage] = preset.thresholds[stage]
        if model is None or not any(fnmatchcase(model, pattern) for pattern in preset.tuned):
            measured = ", ".join(preset.tuned)
            untuned[stage] = f"the {stage} threshold was measured on {measured}, not on {name}"
    return Tuning(thresholds, untuned)
