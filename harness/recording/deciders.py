"""Who can be asked: every specification of the package, and three baselines of the harness.

- `"cosine"`: no question is read; the score of a record or namespace is the cosine of its text and the message,
  by the embedded model's own sentence encoder, moved to 0..1. It abstains from the gate: there is nothing to compare.
- `"sparrow"`, `"sparrow:<model>"`: sparrow-decider from PyPI, in process; it reads any wording.
- `"stock"`: yes to everything, which is what the stock manager does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from strands_gated_memory.core.questions import (
    Answer,
    Choice,
    Decider,
    NoAnswer,
    Noul,
    Question,
    Score,
    State,
    Thresholds,
)
from strands_gated_memory.core.specs import NAMES, specs_in, why_unknown
from strands_gated_memory.deciders.fallback import FallbackDecider
from strands_gated_memory.deciders.resolve import resolve_text
from strands_gated_memory.deciders.shown import quoted
from strands_gated_memory.embedded.decider import EmbeddedDecider
from strands_gated_memory.embedded.encoder import DATA, Encoder

from ..errors import HarnessError


class CosineDecider:
    """The plain embedding threshold: how near is the text to the message, whatever is asked about it?

    Args:
        encoder: Default a new one of the embedded model.
    """

    def __init__(self, encoder: Encoder | None = None) -> None:
        self._encoder = encoder or Encoder()
        self.model_id = f"cosine+{_digest('encoder.onnx', 'tokenizer.json')}"

    def decide(self, state: State, questions: Mapping[str, Question]) -> dict[str, Answer]:
        """Answer with (1 + cosine) / 2; abstain from questions without a subject or of another type than noul."""
        asked = {key: q.subject for key, q in questions.items() if q.subject is not None and q.type == "noul"}
        vectors = self._encoder.encode([state["message"], *map(str, asked.values())])
        scores = (1.0 + vectors[1:] @ vectors[0]) / 2.0
        answers: dict[str, Answer] = dict.fromkeys(questions, NoAnswer("abstained"))
        answers.update({key: Noul(min(1.0, max(0.0, float(p)))) for key, p in zip(asked, scores, strict=True)})
        return answers


class SparrowDecider:
    """sparrow-decider in this process.

    Args:
        model: A model of the package or a file; None for its default.

    Raises:
        HarnessError: The package or the model is missing.
    """

    def __init__(self, model: str | None = None) -> None:
        try:
            import sparrow_decider
        except ModuleNotFoundError as error:
            raise HarnessError(
                'decider "sparrow" needs sparrow-decider; run: pip install "sparrow-decider==0.2.0"'
            ) from error
        try:
            self._engine: Any = sparrow_decider.Decider.load(model)
        except Exception as error:  # whatever its loader makes of a file that is none of its models
            raise HarnessError(f'decider "sparrow:{model}": {error}') from error
        self.model_id = f"{self._engine.name} (sparrow-decider {sparrow_decider.__version__})"

    def decide(self, state: State, questions: Mapping[str, Question]) -> dict[str, Answer]:
        """Answer in one call of the engine; see `Decider.decide`."""
        raw = self._engine.ask(dict(state), {key: question.wire() for key, question in questions.items()})
        return {key: _from_wire(raw[key]) for key in questions}


class StockDecider:
    """Yes to everything: every turn is looked up, every record is kept."""

    model_id = "stock"
    thresholds = Thresholds(gate=0.5, router=0.5, validator=0.5)

    def decide(self, state: State, questions: Mapping[str, Question]) -> dict[str, Answer]:  # noqa: ARG002
        """Answer 1.0 to the package's own questions; abstain from the rest."""
        return {key: NoAnswer("abstained") if q.about == "custom" else Noul(1.0) for key, q in questions.items()}


def _plain(name: str, make: Callable[[], Decider]) -> Callable[[str | None], Decider]:
    def made(variant: str | None) -> Decider:
        if variant:
            raise HarnessError(f'decider {f"{name}:{variant}"!r}: {name} has no variants; write "{name}"')
        return make()

    return made


BASELINES: Mapping[str, Callable[[str | None], Decider]] = {
    "cosine": _plain("cosine", CosineDecider),
    "sparrow": SparrowDecider,
    "stock": _plain("stock", StockDecider),
}
"""The harness's own, by name."""
_NAMES = (*BASELINES, *NAMES)


def open_decider(spec: str) -> Decider:
    """Return the decider that a specification names.

    Args:
        spec: "cosine", "sparrow", "sparrow:<model>", "stock", or whatever `resolve_decider` takes as a text; several
            with commas, as `specs_in` has it, make a list of which the first that answers decides.

    Raises:
        HarnessError: A baseline's package or model is missing, or it has no variants.
        ConfigurationError: The specification is unknown or incomplete.
    """
    specs = specs_in(spec, _NAMES)
    if len(specs) == 1:
        return _opened(spec.strip())
    return FallbackDecider([(one, _opened(one)) for one in specs], keys=specs)


def _opened(spec: str) -> Decider:
    name, _, model = spec.partition(":")
    if name in BASELINES:
        return BASELINES[name](model.strip() or None)
    if why := why_unknown(spec, _NAMES):
        raise HarnessError(f"decider {quoted(spec)} {why}")
    return resolve_text(spec)


def model_key(decider: Decider, name: str) -> str:
    """Return what a recording keeps answers under: the model's id, for the embedded model with its files' hash."""
    if isinstance(decider, EmbeddedDecider):
        return f"{decider.model_id}+{_digest('encoder.onnx', 'heads.npz', 'tokenizer.json')}"
    return str(getattr(decider, "model_id", None) or getattr(decider, "model", None) or name)


def _digest(*names: str) -> str:
    total = hashlib.sha256()
    for name in names:
        total.update((DATA / name).read_bytes())
    return total.hexdigest()[:12]


def _from_wire(answer: Mapping[str, Any]) -> Answer:
    if answer["type"] == "noul":
        return Noul(float(answer["noul"]))
    if answer["type"] == "choice":
        return Choice(str(answer["choice"]), dict(answer["probabilities"]))
    return Score(float(answer["score"]), dict(answer["probabilities"]))
