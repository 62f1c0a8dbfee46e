"""A decider with calibrators or heads of the user's own on top: `"fitted:<path>"`.

What was fitted holds for one model and one wording. With another of either, thresholds and calibrators are
still used, which beats none, and `Reply.untuned` says so; a head is not, as the features that it reads mean
something else in another model: the model's own answers and thresholds are then used.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..core.fitted import STAGES, Fitted, FittedStage, LogisticHead, Stage
from ..core.questions import (
    Answer,
    Choice,
    Decider,
    Noul,
    Question,
    Reply,
    Score,
    State,
    Thresholds,
    asked,
    name_of,
    thresholds_of,
)
from ..core.wordings import Wording
from ..errors import ConfigurationError
from ..fitted_file import read_fitted
from ..runtime.breaker import CircuitBreaker
from .shown import quoted

_ABOUT: dict[str, Stage] = {"gate": "gate", "namespace": "router", "record": "validator"}


class FittedDecider:
    """Asks the decider that the file names, and corrects its answers.

    Args:
        path: A file that `python -m harness fit` wrote.
        decider: Asked instead of the file's own; for tests, and for recordings.

    Attributes:
        model_id: The model that the file was fitted for, None if it reported none.
        thresholds: The file's; where it has none, the decider's own, else None.

    Raises:
        ConfigurationError: The file is wrong (file and field are named), or its decider cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str], decider: Decider | None = None) -> None:
        self.path = os.fspath(path)
        if "://" in self.path:
            raise ConfigurationError(f"decider {quoted('fitted:' + self.path)} needs a file, not a URL")
        self.fitted = read_fitted(path)
        self._decider = decider or _made(self.fitted, self.path)
        self._wordings = {name: stage.question.wording() for name, stage in self.fitted.stages.items()}
        own = getattr(self._decider, "model_id", None)
        self._other = own if self.fitted.model is not None and own not in (None, self.fitted.model) else None
        self._heads = {name: stage.head for name, stage in self.fitted.stages.items() if stage.head is not None}
        if self._heads and self._other is None:
            for name, head in self._heads.items():
                _check_width(self.path, name, head)
        self.model_id = self.fitted.model
        self.remote = bool(getattr(self._decider, "remote", False))
        self.name = f"fitted:{self.path}"
        self.thresholds = self._thresholds()

    def __repr__(self) -> str:
        return f"FittedDecider({self.path!r}, {name_of(self._decider)})"

    @property
    def deadline_s(self) -> float | None:
        """How long a recall may take with the decider that is asked, None if it does not say."""
        own = getattr(self._decider, "deadline_s", None)
        return float(own) if isinstance(own, int | float) else None

    @property
    def breakers(self) -> tuple[CircuitBreaker, ...]:
        """The circuit breakers of the members, if the model is a list."""
        own = getattr(self._decider, "breakers", ())
        return own if isinstance(own, tuple) else ()

    @property
    def list_members(self) -> tuple[tuple[str, Decider], ...]:
        """Name and decider of each member, if the model is a list; see `FallbackDecider.list_members`."""
        own = getattr(self._decider, "list_members", ())
        return own if isinstance(own, tuple) else ()

    @property
    def answers_custom(self) -> bool:
        """Whether the decider that is asked answers questions of a caller's own."""
        return bool(getattr(self._decider, "answers_custom", True))

    @property
    def is_loaded(self) -> bool | None:
        """Whether the decider that is asked is loaded; None if it does not say."""
        own = getattr(self._decider, "is_loaded", None)
        return own if isinstance(own, bool) else None

    def warm(self) -> None:
        """Load the decider that is asked.

        Raises:
            Exception: It cannot be loaded.
        """
        warm = getattr(self._decider, "warm", None)
        if callable(warm):
            warm()

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask, then correct; see `Decider.decide`."""
        inner = asked(self._decider, state, questions)
        answers = dict(inner)
        stages = {name: self._stage_of(question) for name, question in questions.items()}
        corrected = dict(answers)
        for stage in {stage for stage in stages.values() if stage is not None}:
            names = [name for name in questions if stages[name] == stage]
            corrected |= self._corrected(stage, state, {name: questions[name] for name in names}, answers)
        by_stage = {stage: questions[name] for name, stage in stages.items() if stage}
        return Reply(
            corrected,
            model=inner.model,
            answered_by=inner.answered_by,
            passed_over=inner.passed_over,
            thresholds={**inner.thresholds, **self._measured()},
            untuned=self._untuned(inner, by_stage),
            truncated=inner.truncated,
        )

    def _corrected(
        self, stage: Stage, state: State, questions: Mapping[str, Question], answers: Mapping[str, Answer]
    ) -> dict[str, Answer]:
        fitted, wording = self.fitted.stages[stage], self._wordings[stage]
        if fitted.head is not None and self._other is None:
            return self._by_head(fitted.head, state, questions, answers)
        if fitted.calibration is None:
            return {}
        corrected: dict[str, Answer] = {}
        for name in questions:
            read = wording.read(answers[name])
            if isinstance(read, Noul):
                corrected[name] = with_yes(answers[name], wording, fitted.calibration(read.noul))
        return corrected

    def _by_head(
        self,
        head: LogisticHead,
        state: State,
        questions: Mapping[str, Question],
        answers: Mapping[str, Answer],
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
        for name, wording in self._wordings.items():
            if question.wording == wording.key:
                return name
        stage = _ABOUT.get(question.about)
        return stage if stage in self.fitted.stages else None

    def _untuned(self, inner: Reply, asked: Mapping[Stage, Question]) -> dict[str, str]:
        untuned = {name: why for name, why in inner.untuned.items() if name not in self._measured()}
        for stage, question in asked.items():
            fitted, wording = self.fitted.stages[stage], self._wordings[stage]
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

    def _thresholds(self) -> Thresholds:
        return Thresholds(**(dict.fromkeys(STAGES) | thresholds_of(self._decider) | self._measured()))


def with_yes(answer: Answer, wording: Wording, probability: float) -> Answer:
    """Return an answer whose P(yes), as the wording reads it, is the one given.

    The options that count as yes keep their shares of each other, and so do the rest.
    """
    if isinstance(answer, Noul):
        return Noul(1.0 - probability if wording.inverted else probability)
    if not isinstance(answer, Choice | Score):
        return answer
    yes = {option: p for option, p in answer.probabilities.items() if option in wording.yes}
    no = {option: p for option, p in answer.probabilities.items() if option not in wording.yes}
    scaled = _scaled(yes, probability) | _scaled(no, 1.0 - probability)
    if isinstance(answer, Choice):
        return Choice(max(scaled, key=lambda option: scaled[option]), scaled)
    return Score(sum(int(level) * p for level, p in scaled.items()), scaled)


def _scaled(options: Mapping[str, float], total: float) -> dict[str, float]:
    now = sum(options.values())
    return {option: p * total / now if now > 0 else total / len(options) for option, p in options.items()}


def _made(fitted: Fitted, path: str) -> Decider:
    from .resolve import resolve_text

    try:
        return resolve_text(fitted.decider)
    except ConfigurationError as error:
        raise ConfigurationError(f"fitted file {path}: decider: {error}") from error


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
