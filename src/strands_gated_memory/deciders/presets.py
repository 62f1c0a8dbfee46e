"""What is known about decision models, as tables: hosted ones, and thresholds for a model and a wording.

A threshold holds for one model and one wording of the question. Contracts and numbers of hosted models are
second-hand: none was measured by this project.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..core.questions import Question
from .codecs.base import Codec
from .codecs.openai_decisions import OpenAIDecisions
from .codecs.system_one import SystemOne
from .limits import Limits

Stage = str
"""A stage with a threshold: "gate", "router" or "validator"."""


@dataclass(frozen=True)
class Vendor:
    """A hosted decision model: who differs from the others by address, key and size alone."""

    name: str
    """Its name as a decider."""
    variables: str
    """What its environment variables begin with: `…_API_KEY`, and `…_BASE_URL`, which wins over `base_url`."""
    base_url: str | None
    """None: in none of the sources that we have, so it must be given."""
    path: str
    codec: Codec
    model: str | None
    """None: there is no default."""
    example: str
    """A specification that works."""
    family: str | None
    """For thresholds, where the answer names no model."""
    limits: Limits


_JEV = Limits(max_questions=100, max_state_tokens=30_000, max_request_tokens=60_000)
VENDORS = (
    # Jev is pinned: an alias moves with each release, and a threshold is for one model.
    Vendor("jev", "TYPESAFE", "https://api.typesafe.ai", "/v1/systemone", SystemOne(), "jev-1.13.0", "jev", "jev",
           _JEV),
    Vendor("openrouter", "OPENROUTER", "https://openrouter.ai/api", "/alpha/decisions", SystemOne(), None,
           "openrouter:typesafe/jev-1.13", None, _JEV),
    Vendor("liquid", "LIQUID", None, "/v1/systemone", SystemOne(), "d1.1", "liquid", "liquid",
           Limits(max_questions=100, max_request_tokens=30_000, max_state_tokens=15_000)),
    Vendor("openai", "OPENAI", "https://api.openai.com/v1", "/decisions", OpenAIDecisions(), "gpt-6-luna", "openai",
           "openai-decisions", Limits(max_questions=200, max_state_tokens=200_000)),
)  # fmt: skip
"""In the order in which "auto" looks for a key."""


@dataclass(frozen=True)
class Preset:
    """Thresholds of one model family, as published by others, who measured them on their own wordings."""

    family: str
    recognised: tuple[str, ...]
    """Patterns of model ids that belong to the family."""
    tuned: tuple[str, ...]
    """Patterns of the model ids that the thresholds were measured on."""
    thresholds: Mapping[Stage, float]
    """Probability (0..1) per stage."""


PRESETS = (
    # From the post "Should the agent even look that up?", 20 utterances and four queries. The router's was not
    # measured by anybody: the gate's is used.
    Preset(
        "strands-decider",
        recognised=("strands-decider*", "*hobson*"),
        tuned=("strands-decider-2B-*", "hobson-v19"),
        thresholds={"gate": 0.19, "router": 0.19, "validator": 0.36},
    ),
    # From the post's code, for the release of the time: the post names no version, and says that Jev's values drifted
    # between runs.
    Preset(
        "jev",
        recognised=("jev-*", "typesafe/jev*", "~typesafe/jev*"),
        tuned=("jev-1.13*", "typesafe/jev-1.13*"),
        thresholds={"gate": 0.43, "router": 0.43, "validator": 0.50},
    ),
)
_WORDINGS = {"gate": "gate/criteria/1", "router": "route/criteria/1", "validator": "record/criteria/1"}
"""The question of ours, id and version, that each threshold is used with: it asks the same in other words."""

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
        if model is not None and _matches(model, preset.recognised):
            return preset
    return next((preset for preset in PRESETS if preset.family == family), None)


_STAGES = {"gate": "gate", "namespace": "router", "record": "validator"}


def tuning_for(model: str | None, family: str | None, questions: Iterable[Question]) -> Tuning:
    """Return the thresholds for a model's answers to these questions; custom ones have none.

    Args:
        model: The id that the answering model reports.
        family: The family that was configured, for a model that reports none.
        questions: What was asked.
    """
    preset = preset_of(model, family)
    thresholds: dict[Stage, float] = {}
    untuned: dict[Stage, str] = {}
    name = model or family or "this model"
    asked = [(_STAGES[question.about], question.wording) for question in questions if question.about in _STAGES]
    for stage, wording in dict.fromkeys(asked):
        if preset is None:
            untuned[stage] = f"no {stage} threshold is known for {name}"
        elif wording != _WORDINGS[stage]:
            untuned[stage] = f"the {stage} threshold of {preset.family} is for another wording than {wording}"
        else:
            thresholds[stage] = preset.thresholds[stage]
            if model is None or not _matches(model, preset.tuned):
                untuned[stage] = f"the {stage} threshold was measured on {', '.join(preset.tuned)}, not on {name}"
    return Tuning(thresholds, untuned)


def _matches(model: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(model, pattern) for pattern in patterns)
