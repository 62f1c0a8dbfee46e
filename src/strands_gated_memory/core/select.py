"""Which of the judged records go into the prompt, in which order, within the limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from .block import block_of
from .functions import check_function
from .questions import Thresholds
from .same_facts import epoch
from .settings import Count, Probability, Settings
from .shorten import shortened
from .tokens import TokenCounter, estimate_tokens
from .types import Record, Row

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


@dataclass(frozen=True)
class Selection:
    """What goes into the block."""

    rows: list[Row]
    """Every row, in the order given; those that do not go in with the reason."""
    kept: list[Row]
    """Those that go in, in injection order."""
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


def injection_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows by probability, best first; ties newest first, then in the order given.

    Rows without a decision follow in the order given.
    """
    decided = [row for row in rows if row.probability is not None]
    decided.sort(key=lambda row: (-(row.probability or 0.0), -epoch(row.record.created_at)))
    return decided + [row for row in rows if row.probability is None]


def select(
    rows: Sequence[Row],
    settings: SelectSettings,
    thresholds: Thresholds,
    context_tag: str,
    counter: TokenCounter | None = None,
) -> Selection:
    """Return what goes into the block.

    Args:
        rows: In the order in which they were found; those that are left out already stay so.
        settings: Mode and limits.
        thresholds: Those in force; of them `validator` and `relative` count.
        context_tag: The tag of the block.
        counter: Counts tokens; default `settings.token_counter`.
    """
    present = [row for row in rows if row.reason is None]
    best = max((row.probability for row in present if row.probability is not None), default=0.0)
    places = {id(row): _Place(row, _misses(row.probability, settings.mode, thresholds, best)) for row in present}
    order = [place for row in injection_order(present) if (place := places[id(row)]).reason is None]
    filling = _Filling(settings, context_tag, counter or TokenCounter(settings.token_counter), order)
    tokens = filling.fill()
    kept = [place.taken() for place in order if place.line is not None]
    ended = [places[id(row)].taken() if id(row) in places else row for row in rows]
    return Selection(ended, kept, filling.block(), math.ceil(tokens))


@dataclass(eq=False)
class _Place:
    """One row while the block is being filled."""

    row: Row
    reason: str | None
    line: str | None = None
    """What goes in, None if nothing does."""
    cost: float = 0.0

    def taken(self) -> Row:
        """Return the row as it ended up."""
        if self.line is None:
            return self.row._replace(reason=self.reason)
        shortened = self.line != self.row.line
        return self.row._replace(line=self.line, shortened=True) if shortened else self.row


def _by_score(places: Sequence[_Place]) -> list[_Place]:
    """Return places: the best of each namespace, then by score and, without one, in turns by namespace."""
    scores = {id(place): search_score(place.row.record) for place in places}
    best_first = sorted(places, key=lambda place: -math.inf if (s := scores[id(place)]) is None else -s)
    ranks: dict[int, int] = {}
    found: Counter[str] = Counter()
    for place in best_first:
        ranks[id(place)] = found[place.row.record.namespace]
        found[place.row.record.namespace] += 1
    scored = [place for place in best_first if scores[id(place)] is not None]
    in_turns = sorted((p for p in places if scores[id(p)] is None), key=lambda place: ranks[id(place)])
    # Records without a score are those of pinned namespaces, which must not be missed: theirs come first.
    firsts = [place for place in (*in_turns, *scored) if ranks[id(place)] == 0]
    others = [[place for place in part if ranks[id(place)] > 0] for part in (scored, in_turns)]
    return firsts + [place for pair in zip_longest(*others) for place in pair if place is not None]


class _Filling:
    """One block while it is being filled.

    Args:
        settings: The limits.
        tag: The block's.
        count: Counts tokens.
        order: What may go in, in injection order.
    """

    def __init__(self, settings: SelectSettings, tag: str, count: TokenCounter, order: Sequence[_Place]) -> None:
        self._settings, self._tag, self._count, self._order = settings, tag, count, order
        self._best_first = order
        """The order in which the limits let them in."""
        self._reserved = 0
        """How many namespaces hold one without a decision."""
        self._taken = 0
        if settings.undecided_order == "score":
            undecided = [place for place in order if place.row.probability is None]
            self._best_first = [*order[: len(order) - len(undecided)], *_by_score(undecided)]
            self._reserved = len({place.row.record.namespace for place in undecided})

    def fill(self) -> float:
        """Decide what goes in, and return the block's tokens."""
        limit = self._settings.max_context_tokens
        for place in self._best_first:
            if self._has_room_for(place):
                self._take(place, place.row.line, 0.0)
        tokens = self._tokens()
        if limit is not None and tokens > limit:
            for place in self._order:
                place.line = None
            self._taken = 0
            self._fill_within(limit)
            tokens = self._fit(limit)
        for place in self._order:
            if place.line is None:
                place.reason = place.reason or "max_records"
        return tokens

    def _tokens(self) -> float:
        block = self.block()
        return self._count(block) if block else 0.0

    def block(self) -> str | None:
        return block_of([place.line for place in self._order if place.line is not None], self._tag)

    def _has_room_for(self, place: _Place) -> bool:
        """Tell whether the limit of records lets one more in: decided ones leave a place for each namespace's best."""
        most = self._settings.max_records
        if most is None:
            return True
        if place.row.probability is not None:
            most -= min(self._reserved, most // 2)
        return self._taken < most

    def _take(self, place: _Place, line: str | None, cost: float) -> float:
        """Let a line in, and return what it costs; without a line nothing."""
        if line is None:
            return 0.0
        place.reason, place.line, place.cost = None, line, cost
        self._taken += 1
        return cost

    def _fill_within(self, limit: int) -> None:
        """Take what fits, best first, and of the best that does not fit its beginning."""
        left = limit - self._count(block_of([""], self._tag) or "")
        kept_free = self._cost_of_undecided_bests(left / 2)
        may_shorten = self._settings.shorten
        too_long: _Place | None = None
        for place in self._best_first:
            if not self._has_room_for(place):
                continue
            line, cost = place.row.line, self._cost(place.row.line)
            is_decided = place.row.probability is not None
            room = left - kept_free if is_decided else left
            if cost <= room:
                left -= self._take(place, line, cost)
                continue
            place.reason = "max_context_tokens"
            if not is_decided:
                too_long = too_long or place
            elif may_shorten:
                left -= self._take(place, *self._beginning(line, cost, room))
                may_shorten = False
        # Nothing says that one without a decision is better than those that fit whole: it gets what they leave.
        if too_long is not None and may_shorten and self._has_room_for(too_long):
            line = too_long.row.line
            self._take(too_long, *self._beginning(line, self._cost(line), left))

    def _cost_of_undecided_bests(self, most: float) -> float:
        """Return what decided ones leave for each namespace's best undecided one: what the best of these cost."""
        undecided = [place for place in self._best_first if place.row.probability is None]
        if len(undecided) == len(self._best_first):
            return 0.0  # nobody has to leave anything
        total = 0.0
        for place in undecided[: self._reserved]:
            cost = self._cost(place.row.line)
            total += cost if total + cost <= most else 0.0
        return total

    def _cost(self, line: str) -> float:
        return self._count.roughly(line + "\n")

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
        while (tokens := self._tokens()) > limit and any(place.line is not None for place in self._order):
            excess = hurry * (tokens - limit)
            for place in [place for place in reversed(self._best_first) if place.line is not None]:
                excess -= place.cost
                place.reason, place.line = "max_context_tokens", None
                if excess <= 0.0:
                    break
            hurry *= 2.0
        return tokens


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
