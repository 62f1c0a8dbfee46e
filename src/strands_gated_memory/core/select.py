"""Are two records the same fact? Only when ids or texts are equal; similarity is no evidence.

"The user is allergic to nuts" and "The user is not allergic to nuts" have a cosine of 0.92, and true
duplicates often 0.6 to 0.8 (measured with all-MiniLM-L6-v2), so nothing here compares meanings.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import zip_longest

from ..errors import error_kind
from ..policy import SelectMode, SelectSettings, estimate_tokens
from .block import block_of
from .functions import outcome_of
from .questions import Thresholds
from .remembered import remembering_short
from .shorten import shortened
from .types import Failure, Record, Row

_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "‐": "-", "‑": "-", "‒": "-", "–": "-", "—": "-"})
_MEANINGFUL = frozenset("#%&@*/\\")  # C and C#, 5 and 5 %, a path: the sign tells them apart


@remembering_short
def fold(rendered: str) -> str:
    """Return a text's key for exact comparison: NFKC, case, space and punctuation folded, digits kept.

    Punctuation inside a number ("3.5", "-5") and signs that change the meaning ("C#", "100%") stay.
    """
    text = unicodedata.normalize("NFKC", rendered).translate(_QUOTES).casefold()
    text = re.sub(r"(?<=[^\W\d_])-(?=[^\W\d_])", " ", text)
    return " ".join(word for word in map(_bare, text.split()) if word)


_LONG = 4000
"""Characters of a text from which on it is compared as it is."""


def _bare(word: str) -> str:
    if word.isalnum():
        return word
    start, end = 0, len(word)
    while start < end and _is_punctuation(word[start]) and not _is_sign(word, start):
        start += 1
    while end > start and _is_punctuation(word[end - 1]):
        end -= 1
    return word[start:end]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P") and character not in _MEANINGFUL


def _is_sign(word: str, at: int) -> bool:
    return word[at] in "-." and at + 1 < len(word) and word[at + 1].isdigit()


def epoch(created_at: object) -> float:
    """Return a record's time as seconds since 1970, minus infinity when unknown; naive times are UTC."""
    if not isinstance(created_at, datetime):
        return float("-inf")
    aware = created_at if created_at.tzinfo else created_at.replace(tzinfo=timezone.utc)
    return (aware - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds()


def without_duplicates(rows: Sequence[Row]) -> list[Row]:
    """Return the rows; those that repeat another one are left out as "duplicate".

    Of rows with the same record id in one namespace, or the same folded text, the newest stays, the first of equally
    new ones; two stores may both have a record 1. An empty text equals nothing, and one of over 4,000 characters
    itself alone: folding it would take its time.
    """
    ids = [(row.record.namespace, str(row.record.record_id)) if row.record.record_id else None for row in rows]
    texts = [(fold(row.text) if len(row.text) <= _LONG else row.text) if row.text else None for row in rows]
    if not (_any_repeat(ids) or _any_repeat(texts)):
        return list(rows)
    seen: set[Hashable] = set()
    unique = list(rows)
    newest_first = sorted(range(len(rows)), key=lambda at: -epoch(rows[at].record.created_at))
    for at in newest_first:
        keys = {(kind, key) for kind, key in (("id", ids[at]), ("text", texts[at])) if key is not None}
        if keys & seen:
            unique[at] = rows[at]._replace(reason="duplicate")
        seen |= keys
    return unique


def _any_repeat(keys: Sequence[Hashable]) -> bool:
    known = [key for key in keys if key is not None]
    return len(set(known)) < len(known)


class TokenCounter:
    """A counter for one recall. After its first failure everything is estimated: two units would not add up.

    Args:
        count: The policy's `select.token_counter`.
        is_late: Whether the recall's deadline has passed.

    Attributes:
        failures: What failed: nothing, or the counter.
    """

    def __init__(self, count: Callable[[str], int], is_late: Callable[[], bool] = lambda: False) -> None:
        self.failures: tuple[Failure, ...] = ()
        self._count = count
        self._is_late = is_late
        self._per_estimated = 1.0

    def __call__(self, text: str) -> float:
        """Return the tokens of a text, 0 or more."""
        estimated = estimate_tokens(text)
        if self.failures or self._count is estimate_tokens:
            return estimated
        tokens = outcome_of(lambda: float(self._count(text)))
        if not isinstance(tokens, Exception) and not 0.0 <= tokens < math.inf:
            tokens = ValueError("no number of tokens")
        if isinstance(tokens, Exception):
            # Not its message: a counter may quote the text.
            self.failures = (Failure("select", error_kind(tokens), "select.token_counter failed"),)
            return estimated
        self._per_estimated = tokens / max(1, estimated)
        return tokens

    def roughly(self, text: str) -> float:
        """Return the tokens of a text; when it is late, from its length and the last count."""
        if self._is_late() and not self.failures:
            return self._per_estimated * estimate_tokens(text)
        return self(text)


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
