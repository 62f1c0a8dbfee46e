"""The values of one turn, in the order in which they flow from the user's message to the injected block.

All are frozen. Nothing here decides. Their `repr` holds no text of users, as it ends up in logs and tracebacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from ..errors import DeciderSkipped

SKIPPED = DeciderSkipped.kind
"""The kind of failure of a call that was not made."""

Stage = Literal["gate", "retrieve", "validator", "select", "turn"]
"""Where something was decided or failed.

- `"gate"`: the request that holds the gate's and the router's questions.
- `"retrieve"`: one namespace's search.
- `"validator"`: the request that holds one question per record.
- `"select"`: the policy's own counter of tokens.
- `"turn"`: anything outside these, caught by the last safety net.
"""


class Failure(NamedTuple):
    """Something that failed open."""

    stage: Stage
    kind: str
    """The word that the counters use."""
    cause: str | None
    """What failed, in words."""


BreakerState = Literal["closed", "open", "half_open"]
"""What a breaker does: let every call pass; none; one, to find out."""

UNDECIDED = ("abstained", "warming")
"""Reasons for no answer that are no failures."""

GateOutcome = Literal["open", "closed", "failed", "abstained", "warming", "ungated", "disabled"]
"""What became of the gate on one turn.

- `"open"`, `"closed"`: it decided.
- `"failed"`: the decider raised, was late, or gave no valid answer; memory was searched.
- `"abstained"`: the decider said that it cannot read this turn; memory was searched.
- `"warming"`: the decider was still being loaded, longer than this turn could wait; memory was searched.
- `"ungated"`: there is no decider; memory was searched.
- `"disabled"`: the caller switched recall off for this call; nothing was searched.
"""


@dataclass(frozen=True, repr=False)
class Turn:
    """What the user asks, and what was said just before."""

    text: str
    """The user's message."""
    previous: tuple[str, ...] = ()
    """Texts before the message, oldest first, user and assistant alternating, ending with the assistant's."""

    def __repr__(self) -> str:
        return f"<Turn of {len(self.text)} characters, {len(self.previous)} texts before it>"


@dataclass(frozen=True)
class Record:
    """One long-term memory record as retrieved."""

    text: str = field(repr=False)
    """The text as stored: prose, JSON, XML-like topics, anything."""
    namespace: str
    """The namespace key under which it was searched, `{actorId}` and all."""
    score: float | None = None
    """The search score, higher is nearer; uncalibrated. None when the service gave none."""
    record_id: str | None = None
    """The service's id."""
    created_at: datetime | None = None
    """When the record was written."""
    metadata: Mapping[str, Any] | None = field(default=None, repr=False)
    """The record's metadata as the service returned it."""


class Row(NamedTuple):
    """A record on its way into the prompt: each stage takes rows and returns rows, those that are left out too."""

    record: Record
    text: str = ""
    """The record as one line of prose, before escaping."""
    probability: float | None = None
    """P(it belongs in the prompt), 0..1; None without a decision."""
    reason: str | None = None
    """Why it is left out, see `DropReason`; None while it is not."""
    line: str = ""
    """What it adds to the block: escaped, dated, and cut where only its beginning fits."""
    shortened: bool = False
    """Whether only its beginning fits."""

    def __repr__(self) -> str:
        return f"<Row of {len(self.text)} characters, probability={self.probability}, reason={self.reason}>"


@dataclass(frozen=True)
class GateDecision:
    """Whether this turn looks anything up, and where."""

    open: bool
    """False: nothing is searched, pinned namespaces apart."""
    probability: float | None
    """P(a lookup is worth making), 0..1; None without a decision."""
    namespaces: Mapping[str, float | None]
    """P(the namespace is needed) per namespace, keyed as given; None where there was no decision."""
    selected: tuple[str, ...]
    """The namespaces to search, in the order given; empty when closed."""
    outcome: GateOutcome = "open"
    """How it came about."""


@dataclass(frozen=True)
class Judgement:
    """Whether one record belongs in the prompt, now."""

    record: Record
    """The record as given."""
    probability: float | None
    """P(it belongs), 0..1; None without a decision."""
    keep: bool
    """Whether `recall` would inject it, duplicates apart."""
    reason: str
    """Why it is kept or dropped: see `DropReason` and `KeepReason`."""
    rendered: str = field(default="", repr=False)
    """The record as one line of prose, before escaping."""
    shortened: bool = False
    """Whether only its beginning is injected: it is the best of those that do not fit whole."""


DropReason = Literal[
    "empty", "duplicate", "instructions", "below_threshold", "below_best", "max_records", "max_context_tokens"
]
"""Why the pipeline left a record out.

- `"empty"`: nothing is left of it once rendered.
- `"duplicate"`: the same id in its namespace, or the same text but for case, space and punctuation, is kept already.
- `"instructions"`: it tries to instruct the assistant (`validator.drop_instructions`).
- `"below_threshold"`: its probability is under `validator.threshold`.
- `"below_best"`: its probability is too far under the best of this turn (`select.relative`).
- `"max_records"`, `"max_context_tokens"`: the limits of `select`. Of the best record that does not fit whole the
  beginning is kept, see `Judgement.shortened`.
"""

KeepReason = Literal["relevant", "not_judged", "ungated"]
"""Why the pipeline kept a record: judged relevant; kept because no valid answer came; no decider."""


@dataclass(frozen=True)
class Dropped:
    """A record that was retrieved and left out."""

    record: Record
    reason: str
    """See `DropReason`; retrieval adds its own: filtered, filter_failed, out_of_scope,
    below_relevance_score, own_summary, malformed."""


@dataclass(frozen=True)
class SearchResult:
    """What one namespace's search found; iterating it yields the records.

    A search function may return any iterable of records. This one also says what the search itself
    left out, so that it is counted.
    """

    records: tuple[Record, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    ranked: bool = False
    """Whether the records come best first; else they are put in the order of their scores."""

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)


@dataclass(frozen=True)
class DeciderCall:
    """One request to the decision model."""

    stage: Stage
    questions: int
    """How many questions it held."""
    seconds: float
    """Wall clock until the answer, the failure or the deadline."""
    error: str | None = None
    """The kind of failure of the request as a whole; None when answers came."""
    no_answers: Mapping[str, int] = field(default_factory=dict)
    """How many questions got no usable answer, by `NoAnswer.reason`."""
    cause: str | None = None
    """What failed, for the log; may quote the decider's own message, so it is cut there."""
    model: str | None = None
    """The id of the model that answered, as it reports it; None when it does not."""
    answered_by: str | None = None
    """Which decider of a list answered; None outside a list."""
    passed_over: tuple[str, ...] = ()
    """Deciders of a list that gave no answer before, as "name: kind of failure"."""
    truncated: int = 0
    """How many requests lost text to the model's window."""
    untuned: tuple[str, ...] = ()
    """Why thresholds in use may not suit the model that answered; empty when they do, or the policy set them."""
    started_s: float = 0.0
    """When it began, in seconds since the recall began."""
    explanations: Mapping[str, str] = field(default_factory=dict)
    """What came instead of answers and what to write, quoting nothing: per kind of `error`, reason of `no_answers` or
    entry of `passed_over`, where that is known."""

    @property
    def skipped(self) -> bool:
        """Whether nobody was asked, because the decider had failed repeatedly just before."""
        return self.error == SKIPPED

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What failed: the request, or questions by reason, but for those of `UNDECIDED`."""
        if self.error is not None:
            return (Failure(self.stage, self.error, self.cause),)
        return tuple(
            Failure(
                self.stage,
                reason,
                f"{count} of {self.questions} questions got no usable answer"
                + (f": {self.explanations[reason]}" if reason in self.explanations else ""),
            )
            for reason, count in self.no_answers.items()
            if reason not in UNDECIDED
        )


@dataclass(frozen=True)
class Lookup:
    """One namespace's search."""

    namespace: str
    seconds: float
    """Wall clock until the records, the failure or the deadline; 0 when served from the pinned cache."""
    records: int = 0
    """How many records came back."""
    error: str | None = None
    """The kind of failure; None when the search succeeded, with or without records."""
    cause: str | None = None
    """What failed, for the log."""
    pinned: bool = False
    """Whether the namespace is pinned: fetched whatever the gate says."""
    cached: bool = False
    """Whether a pinned namespace was served without a request."""
    started_s: float = 0.0
    """When it began, in seconds since the recall began."""
    filter_errors: Mapping[str, int] = field(default_factory=dict)
    """How many records the record filter failed on, by kind; they were left out."""

    @property
    def skipped(self) -> bool:
        """Whether nothing was searched, because the namespace had failed repeatedly just before."""
        return self.error == SKIPPED

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What failed, if anything did."""
        if self.error is None:
            return ()
        return (Failure("retrieve", self.error, f"namespace {self.namespace}: {self.cause}"),)


@dataclass(frozen=True, repr=False)
class TurnTrace:
    """Everything that was decided on one turn."""

    gate: GateDecision | None
    """None when the turn ended before the gate."""
    judgements: tuple[Judgement, ...] = ()
    """One per record that reached the validator. Holds records: never log it above DEBUG."""
    decider_calls: tuple[DeciderCall, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    namespaces: int = 0
    """How many namespaces were configured: what an ungated manager would have searched."""
    returned: int = 0
    """How many records the searches returned, before anything was dropped."""
    seconds: float = 0.0
    """Wall clock of the whole recall."""
    block_tokens: int = 0
    """Tokens of the injected block, by the policy's counter."""
    failure: str | None = None
    """The kind of an unexpected failure of the turn as a whole."""
    started: float = field(kw_only=True)
    """When the recall began, in seconds since 1970-01-01 UTC."""
    thresholds: Mapping[str, float | None] = field(default_factory=dict)
    """The cuts in force, 0..1: "gate", "router", "validator", "relative"."""
    questions: Mapping[str, str] = field(default_factory=dict)
    """Id and version of the wording in force, for "gate", "router", "validator"."""
    breakers: Mapping[str, BreakerState] = field(default_factory=dict)
    """State after the turn of each circuit breaker that it met, by name."""
    select_failures: tuple[Failure, ...] = ()
    """What failed while the block was filled: the policy's token counter. Tokens are then estimated."""

    def __repr__(self) -> str:
        outcome = self.failure or (None if self.gate is None else self.gate.outcome)
        return f"<TurnTrace gate={outcome} judged={len(self.judgements)} failures={len(self.failures)}>"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What failed open, in the order of the stages; the turn as a whole apart."""
        steps: tuple[DeciderCall | Lookup, ...] = (
            *(call for call in self.decider_calls if call.stage == "gate"),
            *self.lookups,
            *(call for call in self.decider_calls if call.stage != "gate"),
        )
        return (*(failure for step in steps for failure in step.failures), *self.select_failures)


@dataclass(frozen=True, repr=False)
class Recall:
    """The result of one turn's recall.

    `print` shows the gate, the namespaces and each record, with its text: for a terminal, never for a log.
    """

    records: tuple[Record, ...]
    """What is injected, in injection order."""
    block: str | None
    """The text to inject; None when there is nothing to inject."""
    dropped: tuple[Dropped, ...]
    """What was retrieved and left out, each with its reason."""
    trace: TurnTrace

    def __repr__(self) -> str:
        gate = None if self.trace.gate is None else self.trace.gate.outcome
        return (
            f"<Recall gate={gate} records={len(self.records)} dropped={len(self.dropped)} "
            f"block_tokens={self.trace.block_tokens} failures={len(self.trace.failures)}>"
        )

    def __str__(self) -> str:
        from .printed import printed

        return printed(self)
