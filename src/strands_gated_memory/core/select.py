"""Which of the judged records go into the prompt, in which order, within the limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer

from .block import block_of
from .functions import check_function
from .questions import Thresholds
from .same_facts import epoch
from .settings import Count, Probability, Settings
from .shorten import shortened
from .tokens import TokenCounter, estimate_tokens
from .types import Record

SelectMode = Literal["threshold", "ranking", "hybrid"]
"""How probabilities become a choice.

- `"threshold"`: at or above `validator.threshold`.
- `"ranking"`: at or above `select.relative` times the best of this turn; something is always kept.
- `"hybrid"`: both. The order of a model's answers is steadier than their level (seen for two models
  over repeated runs), and the floor keeps a turn that needs nothing from getting its least bad record.
"""


UndecidedOrder = Literal["score", "configuration"]
"""Which records without a decision the limits let in first; those that are in stand in configuration order.

- `"score"`: the best of each namespace, then by search score, which the service gives on one scale for all of a
  memory's namespaces; those without a score in turns by namespace.
- `"configuration"`: namespace by namespace, as configured, as the stock manager does.
"""


def _named(counter: Callable[[str], int]) -> str:
    if counter is not estimate_tokens:
        raise ValueError(
            "select.token_counter is a function of yours, which JSON cannot hold; leave it out: "
            'model_dump(mode="json", exclude={"select": {"token_counter"}})'
        )
    return estimate_tokens.__name__


def _as_counter(value: object) -> object:
    if value == estimate_tokens.__name__:  # as JSON brings it
        return estimate_tokens
    check_function(value, "select.token_counter", "function(text)")
    return value


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
    shorten: bool = True
    """Whether the best record that does not fit whole is cut to what is left, at the end of a sentence where it can be,
    if that is worth it (`core.shorten.LEAST_COLUMNS`). One without a decision gets what the others leave."""
    undecided_order: UndecidedOrder = "score"
    """See `UndecidedOrder`."""
    token_counter: Annotated[
        Callable[[str], int],
        BeforeValidator(_as_counter),
        PlainSerializer(_named, when_used="json"),
    ] = estimate_tokens
    """Counts the tokens of a text; default: characters / 4, rounded up."""


class Candidate(NamedTuple):
    """A record that may be injected."""

    record: Record
    line: str
    """What it would add to the block, escaped."""
    probability: float | None
    """P(it belongs), 0..1; None without a decision."""


@dataclass(frozen=True)
class Selection:
    """What of the candidates goes into the block; by position."""

    reasons: Sequence[str | None]
    """Why each is left out; None for those that go in."""
    kept: Sequence[int]
    """Those that go in, in injection order."""
    shortened: frozenset[int]
    """Those of which only the beginning goes in."""
    block: str | None
    """The block, None when nothing goes in."""
    tokens: int
    """The block's tokens, rounded up."""


def search_score(record: Record) -> float | None:
    """Return a record's search score, None if it has none that can be compared."""
    try:
        score = math.nan if record.score is None else float(record.score)
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(score) else score


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


def _by_score(records: dict[int, Record]) -> list[int]:
    """Return positions: the best of each namespace, then by score and, without one, in turns by namespace."""
    scores = {at: search_score(record) for at, record in records.items()}
    ranks: dict[int, int] = {}
    found: dict[str, int] = {}
    best_first = sorted(records, key=lambda at: (-math.inf if (score := scores[at]) is None else -score, at))
    for at in best_first:
        ranks[at] = found[records[at].namespace] = found.get(records[at].namespace, -1) + 1
    scored = [at for at in best_first if scores[at] is not None]
    in_turns = sorted((at for at in records if scores[at] is None), key=lambda at: (ranks[at], at))
    # Records without a score are those of pinned namespaces, which must not be missed: theirs come first.
    firsts = [at for at in (*in_turns, *scored) if ranks[at] == 0]
    others = [[at for at in part if ranks[at] > 0] for part in (scored, in_turns)]
    return firsts + [at for pair in zip_longest(*others) for at in pair if at is not None]


def select(
    candidates: Sequence[Candidate],
    settings: SelectSettings,
    thresholds: Thresholds,
    context_tag: str,
    counter: TokenCounter | None = None,
) -> Selection:
    """Return what goes into the block.

    Args:
        candidates: In the order in which they were found.
        settings: Mode and limits.
        thresholds: Those in force; of them `validator` and `relative` count.
        context_tag: The tag of the block.
        counter: Counts tokens; default `settings.token_counter`.
    """
    best = max((c.probability for c in candidates if c.probability is not None), default=0.0)
    reasons = [_misses(c.probability, settings.mode, thresholds, best) for c in candidates]
    order = [at for at in injection_order(candidates) if reasons[at] is None]
    counter = counter or TokenCounter(settings.token_counter)
    filling = _Filling(candidates, settings, context_tag, counter, reasons, order)
    if settings.undecided_order == "score":
        decided = [at for at in order if candidates[at].probability is not None]
        undecided = {at: candidates[at].record for at in order[len(decided) :]}
        filling.best_first = decided + _by_score(undecided)
        filling.reserved = len({record.namespace for record in undecided.values()})
    return filling.fill()


@dataclass
class _Filling:
    """One block while it is being filled."""

    candidates: Sequence[Candidate]
    settings: SelectSettings
    tag: str
    count: TokenCounter
    reasons: list[str | None]
    order: Sequence[int]
    """Those that may go in, in injection order."""
    best_first: Sequence[int] = ()
    """The same in the order in which the limits let them in; empty: in injection order."""
    reserved: int = 0
    """How many namespaces hold one without a decision."""
    lines: dict[int, str] = field(default_factory=dict)
    """What goes in."""
    costs: dict[int, float] = field(default_factory=dict)

    def fill(self) -> Selection:
        self.best_first = self.best_first or self.order
        limit = self.settings.max_context_tokens
        for at in self.best_first:
            if self._has_place(at):
                self.lines[at] = self.candidates[at].line
        tokens = self._tokens()
        if limit is not None and tokens > limit:
            self.lines.clear()
            self._fill_within(limit)
            tokens = self._fit(limit)
        kept = [at for at in self.order if at in self.lines]
        for at in self.order:
            if at not in self.lines:
                self.reasons[at] = self.reasons[at] or "max_records"
        cut = frozenset(at for at in kept if self.lines[at] != self.candidates[at].line)
        return Selection(self.reasons, kept, cut, self._block(), math.ceil(tokens))

    def _has_place(self, at: int) -> bool:
        """Tell whether the limit of records lets one more in: decided ones leave a place for each namespace's best."""
        most = self.settings.max_records
        if most is None:
            return True
        if self.candidates[at].probability is not None:
            most -= min(self.reserved, most // 2)
        return len(self.lines) < most

    def _fill_within(self, limit: int) -> None:
        """Take what fits, best first, and of the best that does not fit its beginning."""
        left = limit - self.count(block_of([""], self.tag) or "")
        kept_free = self._cost_of_undecided_bests(left / 2)
        may_shorten = self.settings.shorten
        too_long: int | None = None
        for at in self.best_first:
            if not self._has_place(at):
                continue
            line, cost = self.candidates[at].line, self._cost(self.candidates[at].line)
            is_decided = self.candidates[at].probability is not None
            room = left - kept_free if is_decided else left
            if cost <= room:
                left -= self._take(at, line, cost)
                continue
            self.reasons[at] = "max_context_tokens"
            if not is_decided:
                too_long = at if too_long is None else too_long
            elif may_shorten:
                left -= self._take(at, *self._beginning(line, cost, room))
                may_shorten = False
        # Nothing says that one without a decision is better than those that fit whole: it gets what they leave.
        if too_long is not None and may_shorten and self._has_place(too_long):
            line = self.candidates[too_long].line
            self._take(too_long, *self._beginning(line, self._cost(line), left))

    def _cost_of_undecided_bests(self, most: float) -> float:
        """Return what decided ones leave for each namespace's best undecided one: what the best of these cost."""
        undecided = [at for at in self.best_first if self.candidates[at].probability is None]
        if len(undecided) == len(self.best_first):
            return 0.0  # nobody has to leave anything
        total = 0.0
        for at in undecided[: self.reserved]:
            cost = self._cost(self.candidates[at].line)
            total += cost if total + cost <= most else 0.0
        return total

    def _cost(self, line: str) -> float:
        return self.count.roughly(line + "\n")

    def _take(self, at: int, line: str | None, cost: float) -> float:
        if line is None:
            return 0.0
        self.reasons[at] = None
        self.lines[at], self.costs[at] = line, cost
        return cost

    def _beginning(self, line: str, cost: float, left: float) -> tuple[str | None, float]:
        """Return the beginning of a line that costs no more than is left, and what it costs; None if there is none."""
        room = int(len(line) * left / cost) if cost > 0 else 0
        for _ in range(_TRIES):
            piece = shortened(line, room)
            if piece is None:
                break
            tokens = self._cost(piece)
            if tokens <= left:
                return piece, tokens
            room = min(int(len(piece) * left / tokens), int(0.9 * len(piece)))
        return None, 0.0

    def _fit(self, limit: int) -> float:
        """Leave out the last ones until the whole block is within the limit: a counter's parts need not add up."""
        hurry = 1.0
        while (tokens := self._tokens()) > limit and self.lines:
            excess = hurry * (tokens - limit)
            for at in [at for at in reversed(self.best_first) if at in self.lines]:
                self.reasons[at] = "max_context_tokens"
                del self.lines[at]
                excess -= self.costs[at]
                if excess <= 0.0:
                    break
            hurry *= 2.0
        return tokens

    def _tokens(self) -> float:
        block = self._block()
        return self.count(block) if block else 0.0

    def _block(self) -> str | None:
        return block_of([self.lines[at] for at in self.order if at in self.lines], self.tag)


_TRIES = 8
"""How often a beginning is counted, at most."""


def _misses(probability: float | None, mode: SelectMode, thresholds: Thresholds, best: float) -> str | None:
    if probability is None:
        return None
    if mode != "ranking" and probability < (thresholds.validator or 0.0):
        return "below_threshold"
    if mode != "threshold" and probability < (thresholds.relative or 0.0) * best:
        return "below_best"
    return None
