"""Which of the judged records go into the prompt, in which order, within the limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer

from .questions import Thresholds
from .same_facts import epoch
from .settings import Count, Probability, Settings
from .types import Record

SelectMode = Literal["threshold", "ranking", "hybrid"]
"""How probabilities become a choice.

- `"threshold"`: at or above `validator.threshold`.
- `"ranking"`: at or above `select.relative` times the best of this turn; something is always kept.
- `"hybrid"`: both. The order of a model's answers is steadier than their level (seen for two models
  over repeated runs), and the floor keeps a turn that needs nothing from getting its least bad record.
"""


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text: characters / 4, rounded up."""
    return math.ceil(len(text) / 4)


def _named(counter: Callable[[str], int]) -> str:
    if counter is not estimate_tokens:
        raise ValueError(
            "select.token_counter is a function of yours, which JSON cannot hold; leave it out: "
            'model_dump(mode="json", exclude={"select": {"token_counter"}})'
        )
    return estimate_tokens.__name__


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
    token_counter: Annotated[
        Callable[[str], int],
        BeforeValidator(lambda value: estimate_tokens if value == estimate_tokens.__name__ else value),
        PlainSerializer(_named, when_used="json"),
    ] = estimate_tokens
    """Counts the tokens of a text; default: characters / 4, rounded up."""


class Candidate(NamedTuple):
    """A record that may be injected."""

    record: Record
    line: str
    """What it would add to the block."""
    probability: float | None
    """P(it belongs), 0..1; None without a decision."""


def injection_order(candidates: Sequence[Candidate]) -> list[int]:
    """Return positions in injection order.

    By probability, best first; ties newest first, then in the order given. Candidates without a
    decision follow in the order given.
    """
    judged = sorted(
        (-candidate.probability, -epoch(candidate.record.created_at), at)
        for at, candidate in enumerate(candidates)
        if candidate.probability is not None
    )
    rest = [at for at, candidate in enumerate(candidates) if candidate.probability is None]
    return [at for _, _, at in judged] + rest


def select(
    candidates: Sequence[Candidate],
    settings: SelectSettings,
    thresholds: Thresholds,
    overhead: str,
    order: Sequence[int] | None = None,
) -> list[str | None]:
    """Return per candidate why it is left out, None for those to inject.

    Args:
        candidates: In the order to use where probabilities do not decide.
        settings: Mode and limits.
        thresholds: Those in force; of them `validator` and `relative` count.
        overhead: What the block holds besides its lines; its tokens count against the limit.
        order: Their `injection_order`, if the caller has it.
    """
    best = max((c.probability for c in candidates if c.probability is not None), default=0.0)
    reasons: list[str | None] = [_misses(c.probability, settings.mode, thresholds, best) for c in candidates]
    kept = 0
    tokens = settings.token_counter(overhead) if settings.max_context_tokens is not None else 0
    for at in injection_order(candidates) if order is None else order:
        if reasons[at] is not None:
            continue
        if settings.max_records is not None and kept >= settings.max_records:
            reasons[at] = "max_records"
            continue
        if settings.max_context_tokens is not None:
            cost = settings.token_counter(candidates[at].line + "\n")
            if tokens + cost > settings.max_context_tokens:
                reasons[at] = "max_context_tokens"
                continue
            tokens += cost
        kept += 1
    return reasons


def _misses(probability: float | None, mode: SelectMode, thresholds: Thresholds, best: float) -> str | None:
    if probability is None:
        return None
    if mode != "ranking" and probability < (thresholds.validator or 0.0):
        return "below_threshold"
    if mode != "threshold" and probability < (thresholds.relative or 0.0) * best:
        return "below_best"
    return None
