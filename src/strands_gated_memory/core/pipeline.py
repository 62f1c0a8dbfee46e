"""One turn's recall, from the ask to the block: the only module that knows the order of the stages.

    gate and router (one request) -> search -> render -> drop duplicates -> validate (one request)
    -> select -> block

Every stage is a pure function elsewhere; this module asks, waits, and fails open. Nothing here raises
into a turn, and every failure is written into the trace.
"""

from __future__ import annotations

import dataclasses
import math
import re
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import (
    BadAnswer,
    ConfigurationError,
    DeciderTimeout,
    DeciderUnavailable,
    RetrievalTimeout,
    RetrievalUnavailable,
    StageError,
    error_kind,
)
from . import block as block_stage
from . import budget, same_facts
from . import gate as gate_stage
from . import questions as q
from . import router as router_stage
from . import select as select_stage
from .policy import RecallPolicy
from .render import render_record
from .settings import MOST_SECONDS
from .types import DeciderCall, Dropped, GateDecision, Judgement, Lookup, Recall, Record, Stage, Turn, TurnTrace
from .workers import DECISIONS, SEARCHES, PoolFull, WorkerPool

Search = Callable[[str], Iterable[Record]]
"""Searches one namespace for one turn: namespace key -> records, a `SearchResult` if it drops any itself."""

_VALIDATOR_RESERVE = 0.1
"""Share of the deadline that a search may not use, so that the validator still gets its turn."""

_CAUSE_CHARACTERS = 300
_MOST_RECORDS = 1000
"""Records of one search that are read; the service returns 100 at most."""
_LONGEST_TEXT = 64_000
"""Characters of a record that are read, four times what the service stores."""

_T = TypeVar("_T")


@dataclass
class _Clock:
    """What is left of one recall's deadline, in seconds."""

    deadline_s: float
    started: float = field(default_factory=time.monotonic)

    def spent(self) -> float:
        return time.monotonic() - self.started

    def left(self) -> float:
        return max(0.0, self.deadline_s - self.spent())


@dataclass(frozen=True)
class _Found:
    records: tuple[Record, ...]
    dropped: tuple[Dropped, ...]
    lookups: tuple[Lookup, ...]


class RecallPipeline:
    """Decides, for one turn, whether to recall, where, and what.

    Args:
        decider: The decision model; None takes no decisions: everything found is kept.
        policy: Thresholds, limits and deadlines; default `RecallPolicy()`.
        context_tag: The tag of the injected block.
        strategies: Strategy id or type per namespace, used to describe namespaces whose path says nothing.

    Raises:
        ConfigurationError: `decider` has no `decide`; pass it through `resolve_decider` first.
    """

    def __init__(
        self,
        decider: q.Decider | None,
        policy: RecallPolicy | None = None,
        *,
        context_tag: str = "user_context",
        strategies: Mapping[str, str] | None = None,
    ) -> None:
        if decider is not None and not isinstance(decider, q.Decider):
            raise ConfigurationError(
                f"RecallPipeline needs an object with decide(state, questions), or None, got {decider!r}; "
                "write RecallPipeline(resolve_decider(...), policy)"
            )
        self.decider = decider
        self.policy = policy or RecallPolicy()
        self._context_tag = context_tag
        self._strategies = dict(strategies or {})
        self._pinned = _PinnedCache(self.policy.router.pinned_ttl_s)

    def gate(self, turn: Turn, namespaces: Iterable[str]) -> GateDecision:
        """Decide whether this turn looks anything up, and in which namespaces.

        Args:
            turn: What the user asks.
            namespaces: Every configured namespace, `{actorId}` allowed.

        Returns:
            A decision that holds every namespace given. Never raises: without an answer the gate opens
            and everything is searched.
        """
        return self._gate(turn, tuple(namespaces), _Clock(_deadline(self.decider, self.policy)))[0]

    def judge(self, turn: Turn, records: Sequence[Record]) -> list[Judgement]:
        """Decide, for each record, whether it belongs in the prompt.

        Args:
            turn: What the user asks.
            records: What was found.

        Returns:
            One judgement per record, in the order given. Never raises: a record without a valid answer
            is kept.
        """
        return self._judge(
            turn, records, [self._render(record) for record in records], _Clock(_deadline(self.decider, self.policy))
        )[0]

    def recall(self, turn: Turn, namespaces: Iterable[str], search: Search) -> Recall:
        """Recall for one turn.

        Args:
            turn: What the user asks.
            namespaces: Every configured namespace, in the order in which ungated records are injected.
            search: Searches one namespace; called in worker threads, one call per namespace.

        Returns:
            What to inject, what was left out and why, and the trace. Never raises for anything that the
            decider or the search does.
        """
        clock = _Clock(_deadline(self.decider, self.policy))
        namespaces = tuple(namespaces)
        gate, gate_call = self._gate(turn, namespaces, clock)
        pinned = tuple(name for name in namespaces if name in self.policy.router.pinned)
        found = self._search(turn, namespaces, (*pinned, *gate.selected), search, clock)
        rendered = [self._render(record) for record in found.records]
        repeated = same_facts.duplicates(found.records, rendered) if self.policy.select.dedupe else set()
        unique = [at for at in range(len(rendered)) if at not in repeated]
        duplicates = [Dropped(found.records[at], "duplicate") for at in sorted(repeated)]
        judgements, judge_call = self._judge(
            turn, [found.records[at] for at in unique], [rendered[at] for at in unique], clock
        )
        records, block = self._inject(judgements)
        left_out = tuple(Dropped(j.record, j.reason) for j in judgements if not j.keep)
        trace = TurnTrace(
            gate=gate,
            judgements=tuple(judgements),
            decider_calls=tuple(call for call in (gate_call, judge_call) if call),
            lookups=found.lookups,
            namespaces=len(namespaces),
            returned=len(found.records) + len(found.dropped),
            seconds=clock.spent(),
            block_tokens=self.policy.select.token_counter(block) if block else 0,
        )
        return Recall(records, block, (*found.dropped, *duplicates, *left_out), trace)

    def forget_pinned(self) -> None:
        """Forget the pinned namespaces' records: they belonged to another user or session."""
        self._pinned.clear()

    # Gate and router

    def _gate(self, turn: Turn, namespaces: tuple[str, ...], clock: _Clock) -> tuple[GateDecision, DeciderCall | None]:
        pinned = self.policy.router.pinned
        gated = tuple(name for name in namespaces if name not in pinned)
        probabilities: dict[str, float | None] = dict.fromkeys(namespaces)
        if self.decider is None or not gated:
            return GateDecision(True, None, probabilities, gated, "ungated"), None
        gate, router = self.policy.gate.question, self.policy.router.question
        questions: dict[str, q.Question] = {q.GATE_ID: gate.question()}
        asked: dict[str, str] = {}
        if len(gated) > 1:
            for position, name in enumerate(gated):
                if description := self._describe(name):
                    asked[name] = f"namespace_{position}"
                    questions[asked[name]] = router.question(description)
        # Half of the deadline at most goes to searching, so a decider that hangs does not cost the memory.
        budget_s = clock.deadline_s - min(self.policy.retrieve.timeout_s, clock.deadline_s / 2)
        answers, call, thresholds = self._ask("gate", turn, questions, budget_s)
        outcome, probability = gate_stage.read_gate(gate.read(answers[q.GATE_ID]), thresholds.gate)
        probabilities.update({name: q.probability_of(router.read(answers[key])) for name, key in asked.items()})
        if outcome == "closed":
            return GateDecision(False, probability, probabilities, (), outcome), call
        selected = router_stage.choose(gated, probabilities, thresholds.router)
        return GateDecision(True, probability, probabilities, selected, outcome), call

    def _describe(self, namespace: str) -> str | None:
        given = self.policy.router.descriptions.get(namespace)
        return given or router_stage.describe(namespace, self._strategies.get(namespace))

    # Search

    def _search(
        self, turn: Turn, namespaces: tuple[str, ...], wanted: tuple[str, ...], search: Search, clock: _Clock
    ) -> _Found:
        reserve = _VALIDATOR_RESERVE * clock.deadline_s if self.decider is not None else 0.0
        limit = min(self.policy.retrieve.timeout_s, max(0.0, clock.left() - reserve))
        running = [self._start_search(name, search) for name in sorted(dict.fromkeys(wanted), key=namespaces.index)]
        until = time.monotonic() + limit
        records: list[Record] = []
        dropped: list[Dropped] = []
        lookups: list[Lookup] = []
        for one in running:
            error = _wait_for(one.future, max(0.0, until - time.monotonic()), RetrievalTimeout) if one.future else None
            found, left_out = one.collector.close()
            if one.future and one.pinned and error is None:
                self._pinned.put(one.namespace, found)
            records += sorted(found, key=_search_order)
            dropped += left_out
            lookups.append(
                Lookup(
                    namespace=one.namespace,
                    seconds=one.collector.seconds(),
                    records=len(found) + len(left_out),
                    error=error_kind(error) if error is not None else None,
                    cause=_cause(error, (turn.text,)),
                    pinned=one.pinned,
                    cached=one.future is None,
                )
            )
        return _Found(tuple(records), tuple(dropped), tuple(lookups))

    def _start_search(self, namespace: str, search: Search) -> _Running:
        pinned = namespace in self.policy.router.pinned
        collector = _Collector()
        if pinned and (cached := self._pinned.get(namespace)) is not None:
            collector.add(cached)
            collector.ended()
            return _Running(namespace, collector, None, pinned)
        future = _submit(SEARCHES, _collecting(search, namespace, collector), RetrievalUnavailable)
        return _Running(namespace, collector, future, pinned)

    # Validate and select

    def _judge(
        self, turn: Turn, records: Sequence[Record], rendered: Sequence[str], clock: _Clock
    ) -> tuple[list[Judgement], DeciderCall | None]:
        present = [at for at, text in enumerate(rendered) if text]
        probabilities: dict[int, float | None] = dict.fromkeys(present)
        call: DeciderCall | None = None
        thresholds = self._thresholds({})
        if self.decider is not None and present:
            ids = {at: f"record_{at}" for at in present}
            wording = self.policy.validator.question
            questions = {ids[at]: wording.question(rendered[at]) for at in present}
            answers, call, thresholds = self._ask("validator", turn, questions, clock.left())
            probabilities = {at: q.probability_of(wording.read(answers[ids[at]])) for at in present}
        candidates = [
            select_stage.Candidate(
                records[at],
                block_stage.line_of(rendered[at], records[at], self.policy.inject.show_dates),
                probabilities[at],
            )
            for at in present
        ]
        reasons = dict(
            zip(
                present,
                select_stage.select(
                    candidates,
                    self.policy.select,
                    thresholds,
                    block_stage.overhead(self._context_tag),
                ),
                strict=True,
            )
        )
        return [
            self._judgement(record, rendered[at], probabilities.get(at), reasons.get(at, "empty"))
            for at, record in enumerate(records)
        ], call

    def _judgement(self, record: Record, rendered: str, probability: float | None, drop: str | None) -> Judgement:
        if drop is not None:
            return Judgement(record, probability, False, drop, rendered)
        kept = "ungated" if self.decider is None else "not_judged" if probability is None else "relevant"
        return Judgement(record, probability, True, kept, rendered)

    def _render(self, record: Record) -> str:
        if not isinstance(record.text, str):
            return ""
        text = record.text[:_LONGEST_TEXT]
        return render_record(text) if self.policy.render.mode == "prose" else text.strip()

    # Inject

    def _inject(self, judgements: Sequence[Judgement]) -> tuple[tuple[Record, ...], str | None]:
        kept = [
            select_stage.Candidate(
                j.record, block_stage.line_of(j.rendered, j.record, self.policy.inject.show_dates), j.probability
            )
            for j in judgements
            if j.keep
        ]
        ordered = [kept[at] for at in select_stage.injection_order(kept)]
        block = block_stage.block_of([candidate.line for candidate in ordered], self._context_tag)
        return tuple(candidate.record for candidate in ordered), block

    # Asking

    def _ask(
        self, stage: Stage, turn: Turn, questions: Mapping[str, q.Question], budget_s: float
    ) -> tuple[dict[str, q.Answer], DeciderCall, q.Thresholds]:
        """Ask within a budget; every question gets an answer, which may be `NoAnswer`."""
        decider = self.decider
        assert decider is not None
        started = time.monotonic()
        with budget.limited_to(budget_s):
            # A copy of the questions, and the reply read over there: a reply may be as slow or as hostile as the call.
            future = _submit(DECISIONS, lambda: _decided(decider, turn, dict(questions)), DeciderUnavailable)
        error = _wait_for(future, budget_s, DeciderTimeout)
        answers: dict[str, q.Answer] = {}
        reply = q.Reply({})
        if error is None:
            reply = future.result()
            answers = {name: reply[name] for name in questions}
        if error is not None:
            reason: q.NoAnswerReason = "timeout" if error_kind(error) == "timeout" else "missing"
            answers = {name: q.NoAnswer(reason) for name in questions}
        call = DeciderCall(
            stage=stage,
            questions=len(questions),
            seconds=time.monotonic() - started,
            model=reply.model,
            answered_by=reply.answered_by,
            passed_over=reply.passed_over,
            truncated=reply.truncated,
            untuned=tuple(
                why
                for name, why in reply.untuned.items()
                if name != "router" and name not in _set_thresholds(self.policy)
            ),
            error=error_kind(error) if error is not None else None,
            no_answers={} if error is not None else q.unanswered(answers),
            cause=_cause(error, (turn.text, *turn.previous, *(one.subject or "" for one in questions.values()))),
        )
        return answers, call, self._thresholds(reply.thresholds)

    def _thresholds(self, measured: Mapping[str, float]) -> q.Thresholds:
        """Return the thresholds in force: the policy's where set, else those of the model that answered."""
        policy = self.policy
        ours = {
            "gate": policy.gate.threshold,
            "router": policy.router.threshold,
            "validator": policy.validator.threshold,
            "relative": policy.select.relative,
        }
        own = getattr(self.decider, "thresholds", None)
        shipped = dataclasses.asdict(own) if isinstance(own, q.Thresholds) else {}
        known = ours | {name: value for name, value in {**shipped, **measured}.items() if value is not None}
        return q.Thresholds(**known | {name: ours[name] for name in _set_thresholds(policy)})


class _Collector:
    """What a search has found so far; closed when its time is up, so that late records touch nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._records: list[Record] = []
        self._dropped: list[Dropped] = []
        self._closed = False
        self._started = time.monotonic()
        self._ended: float | None = None

    def add(self, items: Iterable[Any], namespace: str = "") -> None:
        for item in items:
            with self._lock:
                if self._closed or len(self._records) >= _MOST_RECORDS:
                    return
                if isinstance(item, Record) and isinstance(item.text, str):
                    self._records.append(item)
                else:
                    stand_in = item if isinstance(item, Record) else Record("", namespace)
                    self._dropped.append(Dropped(stand_in, "malformed"))

    def drop(self, dropped: Iterable[Dropped]) -> None:
        found = [one for one in dropped if isinstance(one, Dropped)]
        with self._lock:
            if not self._closed:
                self._dropped += found

    def ended(self) -> None:
        self._ended = time.monotonic()

    def seconds(self) -> float:
        return (self._ended or time.monotonic()) - self._started

    def close(self) -> tuple[tuple[Record, ...], tuple[Dropped, ...]]:
        with self._lock:
            self._closed = True
            return tuple(self._records), tuple(self._dropped)


@dataclass(frozen=True)
class _Running:
    """One namespace's search under way; without a future it was served from the pinned cache."""

    namespace: str
    collector: _Collector
    future: Future[None] | None
    pinned: bool


def _collecting(search: Search, namespace: str, collector: _Collector) -> Callable[[], None]:
    def run() -> None:
        try:
            found = search(namespace)
            collector.drop(getattr(found, "dropped", ()))
            collector.add(found or (), namespace)
        finally:
            collector.ended()

    return run


class _PinnedCache:
    """The records of pinned namespaces, per pipeline, each for a time to live in seconds."""

    def __init__(self, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._lock = threading.Lock()
        self._entries: dict[str, tuple[float, tuple[Record, ...]]] = {}

    def get(self, namespace: str) -> tuple[Record, ...] | None:
        with self._lock:
            entry = self._entries.get(namespace)
        return entry[1] if entry and time.monotonic() - entry[0] < self._ttl_s else None

    def clear(self) -> None:
        with self._lock:
            self._entries.clear()

    def put(self, namespace: str, records: tuple[Record, ...]) -> None:
        with self._lock:
            self._entries[namespace] = (time.monotonic(), records)


def _submit(pool: WorkerPool, call: Callable[[], _T], unavailable: type[StageError]) -> Future[_T]:
    """Run a call in the pool; a pool that cannot take it gives a future that has failed already."""
    try:
        return pool.submit(call)
    except (PoolFull, RuntimeError) as error:  # RuntimeError: no thread can be started
        failed: Future[_T] = Future()
        failed.set_exception(unavailable(str(error)))
        return failed


def _decided(decider: q.Decider, turn: Turn, questions: Mapping[str, q.Question]) -> q.Reply:
    """Ask, and return a reply that holds a checked answer to every question.

    Raises:
        BadAnswer: The decider returned no mapping.
    """
    raw = decider.decide(q.state_of(turn), dict(questions))
    if not isinstance(raw, Mapping):
        raise BadAnswer(f"decide() returned {type(raw).__name__}, not a mapping of id to answer")
    answers = {name: q.checked(raw.get(name), question) for name, question in questions.items()}
    if not isinstance(raw, q.Reply):
        return q.Reply(answers)
    return q.Reply(
        answers,
        model=raw.model,
        answered_by=raw.answered_by,
        passed_over=raw.passed_over,
        thresholds=raw.thresholds,
        untuned=raw.untuned,
        truncated=raw.truncated,
    )


def _wait_for(future: Future[Any], seconds: float, timeout: type[Exception]) -> BaseException | None:
    """Wait for a call and return its failure, None when it succeeded; a late result is discarded."""
    try:
        return future.exception(timeout=seconds)
    except FutureTimeout:
        future.cancel()
        return timeout(f"no answer within {seconds:.3f} s")


def _search_order(record: Record) -> tuple[float, str, str]:
    """Best score first, records without a score last, then by id and text: the same order every time."""
    try:
        score = math.nan if record.score is None else float(record.score)
    except (TypeError, ValueError, OverflowError):  # not a number that can be compared
        score = math.nan
    return (math.inf if math.isnan(score) else -score, str(record.record_id or ""), record.text)


def _set_thresholds(policy: RecallPolicy) -> set[str]:
    """Return the thresholds that the policy's author has set."""
    stages = {"gate": policy.gate, "router": policy.router, "validator": policy.validator}
    found = {name for name, stage in stages.items() if "threshold" in stage.model_fields_set}
    return found | ({"relative"} if "relative" in policy.select.model_fields_set else set())


def _cause(error: BaseException | None, private: Iterable[str]) -> str | None:
    """Return an error's text for the log; one that quotes the turn is reduced to its class."""
    if error is None:
        return None
    name = type(error).__name__
    try:
        text = repr(error)[:_CAUSE_CHARACTERS]
    except Exception:
        return name
    secret = {word for text_of_turn in private for word in _words(text_of_turn)}
    if secret & set(_words(text.replace(name, " "))):
        return f"{name} (its message shares words with the turn and is withheld)"
    return text


def _words(text: str) -> list[str]:
    return re.findall(r"\w{5,}", text.casefold())


def _deadline(decider: q.Decider | None, policy: RecallPolicy) -> float:
    own = getattr(decider, "deadline_s", None)
    if "deadline_s" in policy.model_fields_set or not isinstance(own, int | float) or not 0 < own <= MOST_SECONDS:
        return policy.deadline_s
    return float(own)
