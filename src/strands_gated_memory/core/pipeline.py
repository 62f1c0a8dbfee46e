"""One turn's recall, from the ask to the block: the only module that knows the order of the stages.

    gate and router (one request) -> search -> render -> drop duplicates -> validate (one request)
    -> select -> block

Every stage is a pure function elsewhere; this module asks, waits, and fails open. Nothing here raises
into a turn unless the policy's `on_failure` says so, and every failure is written into the trace.
"""

from __future__ import annotations

import dataclasses
import math
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..errors import (
    ConfigurationError,
    DeciderOverloaded,
    DeciderSkipped,
    DeciderTimeout,
    RecallFailed,
    RetrievalOverloaded,
    RetrievalSkipped,
    RetrievalTimeout,
    StageError,
    error_kind,
)
from . import block as block_stage
from . import breaker as breakers
from . import budget, forks, same_facts
from . import gate as gate_stage
from . import questions as q
from . import router as router_stage
from . import select as select_stage
from .instructions import instructs
from .policy import RecallPolicy
from .render import render_record
from .render.characters import inert
from .settings import MOST_SECONDS
from .types import DeciderCall, Dropped, GateDecision, Judgement, Lookup, Recall, Record, Stage, Turn, TurnTrace
from .wordings import RECORD_INSTRUCTIONS
from .workers import DECISIONS, SEARCHES, PoolFull, WorkerPool

Search = Callable[[str], Iterable[Record]]
"""Searches one namespace for one turn: namespace key -> records, a `SearchResult` if it drops any itself."""

_VALIDATOR_RESERVE = 0.1
"""Share of the deadline that a search may not use, so that the validator still gets its turn."""

_CAUSE_CHARACTERS = 300
_MOST_COMPARED = 10_000
_NAME_CHARACTERS = 80
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
    started_at: float = field(default_factory=time.time)

    def spent(self) -> float:
        return time.monotonic() - self.started

    def left(self) -> float:
        return max(0.0, self.deadline_s - self.spent())


@dataclass(frozen=True)
class _Decided:
    """A gate decision, the request that gave it, and the cuts in force."""

    decision: GateDecision
    call: DeciderCall | None
    thresholds: q.Thresholds


@dataclass(frozen=True)
class _Judged:
    """Judgements, the request that gave them, and the cuts in force."""

    judgements: list[Judgement]
    call: DeciderCall | None
    thresholds: q.Thresholds


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
        decider_key: Who the decider is for its circuit breaker and its share of the threads, which all pipelines
            of the process with the same key have in common: a string, or any object; default the decider itself.
        target: What the searches search, such as a memory's id, for theirs; default this pipeline alone.

    Raises:
        ConfigurationError: `decider` has no `decide`, pass it through `resolve_decider` first; or
            `context_tag` is no plain XML name.
    """

    def __init__(
        self,
        decider: q.Decider | None,
        policy: RecallPolicy | None = None,
        *,
        context_tag: str = "user_context",
        strategies: Mapping[str, str] | None = None,
        decider_key: object = None,
        target: str | None = None,
    ) -> None:
        block_stage.check_tag(context_tag)
        if decider is not None and not isinstance(decider, q.Decider):
            raise ConfigurationError(
                f"RecallPipeline needs an object with decide(state, questions), or None, got {type(decider).__name__}; "
                "write RecallPipeline(resolve_decider(...), policy)"
            )
        self.decider = decider
        self.policy = policy or RecallPolicy()
        self._context_tag = context_tag
        self._strategies = dict(strategies or {})
        self._pinned = _PinnedCache(self.policy.router.pinned_ttl_s)
        key, name = decider if decider_key is None else decider_key, f"decider:{_short_name(decider, decider_key)}"
        self._breaker = breakers.breaker_of(("decider", key), name)
        # Requests of the validator are larger: they may all fail while the gate's succeed.
        self._validator_breaker = breakers.breaker_of(("decider", key, "validator"), f"{name}:validator")
        self._search_breakers: dict[str, breakers.CircuitBreaker] = {}
        self._target = target

    def gate(self, turn: Turn, namespaces: Iterable[str]) -> GateDecision:
        """Decide whether this turn looks anything up, and in which namespaces.

        Args:
            turn: What the user asks.
            namespaces: Every configured namespace, `{actorId}` allowed.

        Returns:
            A decision that holds every namespace given. Without an answer the gate opens and everything is
            searched.

        Raises:
            RecallFailed: There is no answer, and the policy's `on_failure` is "raise".
        """
        decided = self._gate(turn, tuple(namespaces), _Clock(_deadline(self.decider, self.policy)))
        self._raise_if_asked((decided.call,))
        return decided.decision

    def judge(self, turn: Turn, records: Sequence[Record]) -> list[Judgement]:
        """Decide, for each record, whether it belongs in the prompt.

        Args:
            turn: What the user asks.
            records: What was found.

        Returns:
            One judgement per record, in the order given. A record without a valid answer is kept.

        Raises:
            RecallFailed: A record has no valid answer, and the policy's `on_failure` is "raise".
        """
        clock = _Clock(_deadline(self.decider, self.policy))
        judged = self._judge(turn, records, [self._render(record, clock) for record in records], clock)
        self._raise_if_asked((judged.call,))
        return judged.judgements

    def recall(self, turn: Turn, namespaces: Iterable[str], search: Search) -> Recall:
        """Recall for one turn.

        Args:
            turn: What the user asks.
            namespaces: Every configured namespace, in the order in which ungated records are injected.
            search: Searches one namespace; called in worker threads, one call per namespace.

        Returns:
            What to inject, what was left out and why, and the trace, whatever the decider or the search does.

        Raises:
            RecallFailed: The decider or a search failed, and the policy's `on_failure` is "raise".
        """
        clock = _Clock(_deadline(self.decider, self.policy))
        namespaces = tuple(namespaces)
        decided = self._gate(turn, namespaces, clock)
        gate = decided.decision
        pinned = tuple(name for name in namespaces if name in self.policy.router.pinned)
        found = self._search(turn, namespaces, (*pinned, *gate.selected), search, clock)
        rendered = [self._render(record, clock) for record in found.records]
        repeated = same_facts.duplicates(found.records, rendered) if self.policy.select.dedupe else set()
        unique = [at for at in range(len(rendered)) if at not in repeated]
        duplicates = [Dropped(found.records[at], "duplicate") for at in sorted(repeated)]
        judged = self._judge(turn, [found.records[at] for at in unique], [rendered[at] for at in unique], clock)
        records, block = self._inject(judged.judgements)
        left_out = tuple(Dropped(j.record, j.reason) for j in judged.judgements if not j.keep)
        trace = TurnTrace(
            gate=gate,
            judgements=tuple(judged.judgements),
            decider_calls=tuple(call for call in (decided.call, judged.call) if call),
            lookups=found.lookups,
            namespaces=len(namespaces),
            returned=len(found.records) + len(found.dropped),
            seconds=clock.spent(),
            block_tokens=self.policy.select.token_counter(block) if block else 0,
            started=clock.started_at,
            thresholds={
                "gate": decided.thresholds.gate,
                "router": decided.thresholds.router,
                "validator": judged.thresholds.validator,
                "relative": judged.thresholds.relative,
            },
            questions=self._questions,
            breakers=self._breaker_states(namespaces),
        )
        recall = Recall(records, block, (*found.dropped, *duplicates, *left_out), trace)
        self._raise_if_asked((decided.call, *found.lookups, judged.call), recall)
        return recall

    def moved_to(self, target: str | None) -> None:
        """Search for another user, session or memory: forget the pinned namespaces' records of the one before."""
        self._pinned.clear()
        self._target = target
        self._search_breakers = {}

    # Failures

    def _raise_if_asked(self, steps: Iterable[DeciderCall | Lookup | None], recall: Recall | None = None) -> None:
        if self.policy.on_failure != "raise":
            return
        for step in steps:
            if step is not None and (failure := failure_of(step)) is not None:
                raise RecallFailed(*failure, recall)

    def _breaker_states(self, namespaces: Iterable[str]) -> dict[str, breakers.BreakerState]:
        if self.policy.breaker.failures is None:
            return {}
        met = [self._search_breakers[name] for name in namespaces if name in self._search_breakers]
        if self.decider is not None:
            members = getattr(self.decider, "breakers", ())
            members = members if isinstance(members, tuple) else ()
            if self._validator_breaker.has_opened:
                met.insert(0, self._validator_breaker)
            met[:0] = [self._breaker, *(one for one in members if isinstance(one, breakers.CircuitBreaker))]
        return {one.name: one.state for one in met}

    def _search_breaker(self, namespace: str) -> breakers.CircuitBreaker:
        found = self._search_breakers.get(namespace)
        if found is None:
            whose = self if self._target is None else self._target
            found = breakers.breaker_of(
                ("retrieval", whose, namespace),
                ":".join(part for part in ("retrieval", self._target, namespace) if part is not None),
            )
            self._search_breakers[namespace] = found
        return found

    # Gate and router

    def _gate(self, turn: Turn, namespaces: tuple[str, ...], clock: _Clock) -> _Decided:
        pinned = self.policy.router.pinned
        gated = tuple(name for name in namespaces if name not in pinned)
        probabilities: dict[str, float | None] = dict.fromkeys(namespaces)
        if self.decider is None or not gated:
            decision = GateDecision(True, None, probabilities, gated, "ungated")
            return _Decided(decision, None, self._thresholds({}))
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
        answers, call, thresholds = self._ask("gate", turn, questions, budget_s, clock)
        outcome, probability = gate_stage.read_gate(gate.read(answers[q.GATE_ID]), thresholds.gate)
        probabilities.update({name: q.probability_of(router.read(answers[key])) for name, key in asked.items()})
        if outcome == "closed":
            return _Decided(GateDecision(False, probability, probabilities, (), outcome), call, thresholds)
        selected = router_stage.choose(gated, probabilities, thresholds.router)
        return _Decided(GateDecision(True, probability, probabilities, selected, outcome), call, thresholds)

    def _describe(self, namespace: str) -> str | None:
        given = self.policy.router.descriptions.get(namespace)
        return given or router_stage.describe(namespace, self._strategies.get(namespace))

    # Search

    def _search(
        self, turn: Turn, namespaces: tuple[str, ...], wanted: tuple[str, ...], search: Search, clock: _Clock
    ) -> _Found:
        reserve = _VALIDATOR_RESERVE * clock.deadline_s if self.decider is not None else 0.0
        limit = min(self.policy.retrieve.timeout_s, max(0.0, clock.left() - reserve))
        running = [
            self._start_search(name, search, limit, clock)
            for name in sorted(dict.fromkeys(wanted), key=namespaces.index)
        ]
        until = time.monotonic() + limit
        records: list[Record] = []
        dropped: list[Dropped] = []
        lookups: list[Lookup] = []
        for one in running:
            error = one.error
            if one.future is not None:
                error = _wait_for(one.future, max(0.0, until - time.monotonic()), RetrievalTimeout)
            if one.ticket is not None:
                self._search_breaker(one.namespace).report(one.ticket, error is None, self.policy.breaker)
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
                    cause=_cause(error, (turn.text, *turn.previous)),
                    pinned=one.pinned,
                    cached=one.future is None and error is None,
                    started_s=one.started_s,
                )
            )
        return _Found(tuple(records), tuple(dropped), tuple(lookups))

    def _start_search(self, namespace: str, search: Search, limit: float, clock: _Clock) -> _Running:
        one = _Running(namespace, _Collector(), namespace in self.policy.router.pinned, clock.spent())
        if one.pinned and (cached := self._pinned.get(namespace)) is not None:
            one.collector.add(cached)
        elif limit <= 0.0:
            one.error = RetrievalTimeout("no time was left to search")
        elif (ticket := self._search_breaker(namespace).admit(self.policy.breaker)) is None:
            one.error = RetrievalSkipped(f"not searched: its circuit breaker is open ({_again(self.policy)})")
        else:
            one.ticket = ticket
            lane = self if self._target is None else self._target
            work = _collecting(search, namespace, one.collector)
            one.future = _submit(SEARCHES, work, lane, RetrievalOverloaded)
            return one
        one.collector.ended()
        return one

    # Validate and select

    def _judge(self, turn: Turn, records: Sequence[Record], rendered: Sequence[str], clock: _Clock) -> _Judged:
        present = [at for at, text in enumerate(rendered) if text]
        probabilities: dict[int, float | None] = dict.fromkeys(present)
        call: DeciderCall | None = None
        thresholds = self._thresholds({})
        answers: Mapping[str, q.Answer] = {}
        if self.decider is not None and present:
            ids = {at: f"record_{at}" for at in present}
            wording = self.policy.validator.question
            questions = {ids[at]: wording.question(rendered[at]) for at in present}
            if self.policy.validator.drop_instructions and getattr(self.decider, "answers_custom", True):
                questions.update({_asks_instructs(at): RECORD_INSTRUCTIONS.question(rendered[at]) for at in present})
            answers, call, thresholds = self._ask("validator", turn, questions, clock.left(), clock)
            probabilities = {at: q.probability_of(wording.read(answers[ids[at]])) for at in present}
        reasons: dict[int, str | None] = {
            at: "instructions"
            for at in present
            if self._instructs(records[at], rendered[at], answers.get(_asks_instructs(at)))
        }
        present = [at for at in present if at not in reasons]
        candidates = [
            select_stage.Candidate(
                records[at],
                block_stage.line_of(rendered[at], records[at], self.policy.inject.show_dates),
                probabilities[at],
            )
            for at in present
        ]
        reasons.update(
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
        judgements = [
            self._judgement(record, rendered[at], probabilities.get(at), reasons.get(at, "empty"))
            for at, record in enumerate(records)
        ]
        return _Judged(judgements, call, thresholds)

    def _instructs(self, record: Record, rendered: str, answer: q.Answer | None) -> bool:
        """Tell whether a record is to be dropped because it tries to instruct the assistant."""
        if not self.policy.validator.drop_instructions:
            return False
        if answer is None or (isinstance(answer, q.NoAnswer) and answer.reason == "abstained"):
            text = record.text[:_LONGEST_TEXT]
            return instructs(rendered) or (text != rendered and instructs(text))
        probability = q.probability_of(answer)
        return probability is not None and probability >= self.policy.validator.instructions_threshold

    def _judgement(self, record: Record, rendered: str, probability: float | None, drop: str | None) -> Judgement:
        if drop is not None:
            return Judgement(record, probability, False, drop, rendered)
        kept = "ungated" if self.decider is None else "not_judged" if probability is None else "relevant"
        return Judgement(record, probability, True, kept, rendered)

    def _render(self, record: Record, clock: _Clock) -> str:
        if not isinstance(record.text, str):
            return ""
        text = record.text[:_LONGEST_TEXT]
        if self.policy.render.mode == "prose" and clock.left() <= 0.0:
            return inert(text)  # the shape of a record is not worth being late for
        # A record stays one line, or it could add lines that look like other records.
        return render_record(text) if self.policy.render.mode == "prose" else _one_line(text)

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
        self, stage: Stage, turn: Turn, questions: Mapping[str, q.Question], budget_s: float, clock: _Clock
    ) -> tuple[dict[str, q.Answer], DeciderCall, q.Thresholds]:
        """Ask within a budget; every question gets an answer, which may be `NoAnswer`."""
        started_s = clock.spent()
        reply, error = self._reply(stage, turn, questions, budget_s)
        if error is None:
            answers = {name: reply[name] for name in questions}
        else:
            reason: q.NoAnswerReason = "timeout" if error_kind(error) == "timeout" else "missing"
            answers = {name: q.NoAnswer(reason) for name in questions}
        call = DeciderCall(
            stage=stage,
            questions=len(questions),
            seconds=clock.spent() - started_s,
            started_s=started_s,
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

    def _reply(
        self, stage: Stage, turn: Turn, questions: Mapping[str, q.Question], budget_s: float
    ) -> tuple[q.Reply, BaseException | None]:
        """Ask within a budget and through the circuit breaker; the reply counts if there is no error."""
        decider, settings, nothing = self.decider, self.policy.breaker, q.Reply({})
        assert decider is not None
        if budget_s <= 0.0:
            return nothing, DeciderTimeout("no time was left to ask")
        watching = [self._validator_breaker] if stage == "validator" else []
        tickets = [(one, one.admit(settings)) for one in (*watching, self._breaker)]
        if any(ticket is None for _, ticket in tickets):
            return nothing, DeciderSkipped(f"not asked: its circuit breaker is open ({_again(self.policy)})")
        with budget.limited_to(budget_s), breakers.governed_by(settings):
            # The reply is read over there: it may be as slow or as hostile as the call.
            future = _submit(
                DECISIONS, lambda: q.asked(decider, q.state_of(turn), questions), self._breaker, DeciderOverloaded
            )
        error = _wait_for(future, budget_s, DeciderTimeout)
        reply = future.result() if error is None else nothing
        for one, ticket in tickets:
            if ticket is not None:
                one.report(ticket, error is None and q.is_usable(reply), settings)
        return reply, error

    @property
    def _questions(self) -> dict[str, str]:
        gate, router, validator = self.policy.gate, self.policy.router, self.policy.validator
        return {"gate": gate.question.key, "router": router.question.key, "validator": validator.question.key}

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


@dataclass
class _Running:
    """One namespace's search under way; without a future it is over: cached, or with an error."""

    namespace: str
    collector: _Collector
    pinned: bool
    started_s: float
    future: Future[None] | None = None
    ticket: int | None = None
    error: BaseException | None = None


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
        self._lock = forks.Lock()
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


def _submit(pool: WorkerPool, call: Callable[[], _T], lane: Hashable, overloaded: type[StageError]) -> Future[_T]:
    """Run a call in the pool; a pool that cannot take it gives a future that has failed already."""
    try:
        return pool.submit(call, lane)
    except (PoolFull, RuntimeError) as error:  # RuntimeError: no thread can be started
        failed: Future[_T] = Future()
        failed.set_exception(overloaded(str(error)))
        return failed


def failure_of(step: DeciderCall | Lookup) -> tuple[str, str, str | None] | None:
    """Return stage, kind and cause of what failed in a request or a search, None when nothing did."""
    if isinstance(step, Lookup):
        return None if step.error is None else ("retrieve", step.error, f"namespace {step.namespace}: {step.cause}")
    if step.error is not None:
        return step.stage, step.error, step.cause
    for reason, count in step.no_answers.items():
        if reason != "abstained":
            return step.stage, reason, f"{count} of {step.questions} questions got no usable answer"
    return None


def _short_name(decider: q.Decider | None, key: object) -> str:
    if isinstance(key, str):
        return key
    return q.name_of(decider)[:_NAME_CHARACTERS]


def _again(policy: RecallPolicy) -> str:
    return f"tried again after {policy.breaker.cooldown_s:g} s"


def _asks_instructs(at: int) -> str:
    return f"instructions_{at}"


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
        text, said = repr(error), str(error)
    except Exception:
        return name
    words = _words(f"{text[:_MOST_COMPARED]} {said[:_MOST_COMPARED]}".replace(name, " "))
    whole, marks = f" {' '.join(words)} ", _marks(words)
    for text_of_turn in private:
        secret = _words(text_of_turn)
        if marks & _marks(secret) or (secret and f" {' '.join(secret)} " in whole):
            return f"{name} (its message shares words with the turn and is withheld)"
    return text[:_CAUSE_CHARACTERS]


def _one_line(text: str) -> str:
    """Return a raw text on one line, without lone surrogates, which no model provider can be sent."""
    return " ".join(text.splitlines()).strip().encode("utf-8", "replace").decode()


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


_MARK = re.compile(r"\w{5}|(?=\d|[^\W\d]+\d)\w{3,}|(?=\w*[^\x00-\x7f])\w{2,}")


def _marks(words: Iterable[str]) -> set[str]:
    """Return what tells a text apart.

    That is how its longer words begin, as they may be cut; numbers; short words in scripts of which a sentence
    may be one word.
    """
    return {found[0] for word in words if (found := _MARK.match(word))}


def _deadline(decider: q.Decider | None, policy: RecallPolicy) -> float:
    own = getattr(decider, "deadline_s", None)
    if "deadline_s" in policy.model_fields_set or not isinstance(own, int | float) or not 0 < own <= MOST_SECONDS:
        return policy.deadline_s
    return float(own)
