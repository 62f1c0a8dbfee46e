"""A decider with thresholds or heads of the user's own on top: `"fitted:<path>"`.

What was fitted holds for one model and one wording. With another of either, thresholds are still used, which
beats none, and `Reply.untuned` says so; a head is not, as the features that it reads mean something else in
another model: the model's own answers and thresholds are then used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ..core.fitted import STAGES, Fitted, FittedStage, LogisticHead, Stage
from ..core.questions import Answer, Decider, Noul, Question, Reply, State, Thresholds, asked, name_of, thresholds_of
from ..core.wordings import Wording
from ..errors import ConfigurationError

_ABOUT: dict[str, Stage] = {"gate": "gate", "namespace": "router", "record": "validator"}


class FittedDecider:
    """Asks a decider, brings the thresholds of a file, and answers by its heads.

    What a decider may carry and this class does not is the decider's that is asked.

    Args:
        fitted: What `python -m harness fit` wrote.
        decider: The one that the file names; or another, for tests and recordings.
        path: The file, for messages.

    Attributes:
        model_id: The model that the file was fitted for, None if it reported none.
        thresholds: The file's; where it has none, the decider's own, else None.

    Raises:
        ConfigurationError: A head does not fit the embedded model's features (file and field are named).
    """

    def __init__(self, fitted: Fitted, decider: Decider, path: str) -> None:
        self.fitted, self.path = fitted, path
        self._decider = decider
        own = getattr(decider, "model_id", None)
        self._other = own if fitted.model is not None and own not in (None, fitted.model) else None
        for name, stage in fitted.stages.items():
            if stage.head is not None and self._other is None:
                _check_width(path, name, stage.head)
        self.model_id = fitted.model
        self.name = f"fitted:{path}"
        self.thresholds = Thresholds(**(dict.fromkeys(STAGES) | thresholds_of(decider) | self._measured()))

    def __repr__(self) -> str:
        return f"FittedDecider({self.path!r}, {name_of(self._decider)})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # nothing of a decider's; and `_decider` itself while this is being unpickled
            raise AttributeError(name)
        return getattr(self._decider, name)

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask, then correct; see `Decider.decide`."""
        reply = asked(self._decider, state, questions)
        stages = {name: self._stage_of(question) for name, question in questions.items()}
        for stage, fitted in self.fitted.stages.items():
            if fitted.head is not None and self._other is None:
                of_stage = {name: questions[name] for name in questions if stages[name] == stage}
                reply.update(self._by_head(fitted.head, state, of_stage, reply))
        by_stage = {stage: questions[name] for name, stage in stages.items() if stage}
        reply.untuned = self._untuned(reply, by_stage)
        reply.thresholds |= self._measured()
        return reply

    def _by_head(
        self, head: LogisticHead, state: State, questions: Mapping[str, Question], answers: Mapping[str, Answer]
    ) -> dict[str, Answer]:
        from ..embedded.encoder import default_encoder
        from ..embedded.logistic import features_of, probabilities

        names = [name for name in questions if isinstance(answers[name], Noul)]  # it abstains from the rest
        if not names:
            return {}
        own = [answer.noul for name in names if isinstance(answer := answers[name], Noul)]
        subjects = [questions[name].subject for name in names]
        features = features_of(default_encoder(), state, subjects, own, head.inputs)
        return {name: Noul(p) for name, p in zip(names, probabilities(head, features), strict=True)}

    def _stage_of(self, question: Question) -> Stage | None:
        """Return the stage of the file that a question belongs to, None for one that it says nothing about."""
        for name, fitted in self.fitted.stages.items():
            if question.wording == fitted.question.key:
                return name
        stage = _ABOUT.get(question.about)
        return stage if stage in self.fitted.stages else None

    def _untuned(self, inner: Reply, asked: Mapping[Stage, Question]) -> dict[str, str]:
        untuned = {name: why for name, why in inner.untuned.items() if name not in self._measured()}
        for stage, question in asked.items():
            fitted, wording = self.fitted.stages[stage], self.fitted.stages[stage].question
            model, file = self.fitted.model, os.path.basename(self.path)
            if fitted.head is not None and self._other is not None:
                untuned[stage] = f"the {stage} head of {file} is for {model} and is not used with {self._other}"
            elif model is not None and inner.model not in (None, model):
                untuned[stage] = f"the {stage} threshold of {file} was fitted on {model}, not on {inner.model}"
            elif question.wording != wording.key or not _same_text(question, wording):
                untuned[stage] = (
                    f"the {stage} threshold of {file} is for {wording.key}, not for {_named(question, wording)}"
                )
        return untuned

    def _measured(self) -> dict[str, float]:
        """Return the thresholds that the file brings, those of unused heads left out."""
        found: dict[str, float] = {}
        for name, stage in self.fitted.stages.items():
            if stage.threshold is not None and self._applies(stage):
                found[name] = stage.threshold
        validator = self.fitted.stages.get("validator")
        if self.fitted.select.relative is not None and (validator is None or self._applies(validator)):
            found["relative"] = self.fitted.select.relative
        return found

    def _applies(self, stage: FittedStage) -> bool:
        return stage.head is None or self._other is None


def _check_width(path: str, stage: Stage, head: LogisticHead) -> None:
    """Say now what would fail on every turn: a head that reads other features than there are."""
    from ..embedded.logistic import input_width

    where = f"fitted file {path}: stages.{stage}.head.inputs"
    try:
        width = input_width(head.inputs, head.encoder_width, with_subject=stage != "gate")
    except KeyError as error:
        raise ConfigurationError(f"{where}: {error.args[0]!r} is no feature of the {stage}; fit again") from error
    if width != len(head.weight):
        raise ConfigurationError(f"{where}: these are {width} features, and weight has {len(head.weight)}; fit again")


def _same_text(question: Question, wording: Wording) -> bool:
    expected = wording.question(question.subject)
    return (question.type, question.instructions) == (expected.type, expected.instructions)


def _named(question: Question, wording: Wording) -> str:
    if question.wording is None:
        return "a question of your own"
    return f"another text of {question.wording}" if question.wording == wording.key else question.wording
