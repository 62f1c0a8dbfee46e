"""One turn's recall, from the ask to the block: the only module that knows the order of the stages.

    gate and router (one request) -> search -> render -> drop duplicates -> validate (one request)
    -> select -> block

Every stage is a pure function elsewhere; this module asks, waits, and fails open. Nothing here raises
into a turn unless the policy's `on_failure` says so, and every failure is written into the trace.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .core import block as block_stage
from .core import gate as gate_stage
from .core import questions as q
from .core import router as router_stage
from .core import same_facts
from .core import select as select_stage
from .core.cuts import CutsInForce, InForce
from .core.instructions import instructs
from .core.remembered import SHORT
from .core.render import render_record
from .core.render.characters import inert
from .core.tokens import TokenCounter
from .core.types import (
    UNDECIDED,
    BreakerState,
    DeciderCall,
    Dropped,
    Failure,
    GateDecision,
    Judgement,
    Recall,
    Record,
    Turn,
    TurnTrace,
)
from .core.wordings import RECORD_INSTRUCTIONS
from .errors import RecallFailed
from .policy import RecallPolicy
from .runtime.asking import Asked, Asker
from .runtime.budget import Clock
from .runtime.searching import Found, RecordFilter, Search, Searcher

_VALIDATOR_RESERVE = 0.1
"""Share of the deadline that a search may not use, so that the validator still gets its turn."""

_LONGEST_TEXT = 64_000
"""Characters of a record that are read, four times what the service stores."""


@dataclass(frozen=True)
class _Decided:
    """A gate decision, the request that gave it, and the cuts in force."""

    decision: GateDecision
    call: DeciderCall | None
    cuts: CutsInForce


@dataclass(frozen=True)
class _Judged:
    """Judgements, the request that gave them, and the cuts in force."""

    judgements: list[Judgement]
    records: tuple[Record, ...]
    """Those to inject, in order."""
    selection: select_stage.Selection
    failures: tuple[Failure, ...]
    """Of the policy's token counter."""
    call: DeciderCall | None
    cuts: CutsInForce


class RecallPipeline:
    """Decides, for one turn, whether to recall, where, and what.

    Args:
        decider: The decision model; None takes no decisions: everything found is kept.
        policy: Thresholds, limits and deadlines; default `RecallPolicy()`.
        context_tag: The tag of the injected block.
        strategies: Strategy id or type per namespace, used to describe namespaces whose path says nothing.
        descriptions: What each namespace holds, None for one that is always searched; default: what path and strategy
            say. The policy's descriptions win.
        decider_key: Who the decider is for its circuit breaker and its share of the threads, which all pipelines
            of the process with the same key have in common: a string, or any object; default the decider itself.
        target: What the searches search, such as a memory's id, for theirs; default this pipeline alone.
        record_filter: Tells of each record whether it may be used; one that it raises on is left out.

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
        descriptions: Mapping[str, str | None] | None = None,
        decider_key: object = None,
        target: str | None = None,
        record_filter: RecordFilter | None = None,
    ) -> None:
        self.policy = policy or RecallPolicy()
        self._record_filter = record_filter
        self._descriptions = descriptions
        self._aim(target, context_tag, strategies)
        self._asker = Asker(decider, self.policy, decider_key)
        self._wordings = {
            "gate": self.policy.gate.question.key,
            "router": self.policy.router.question.key,
            "validator": self.policy.validator.question.key,
        }

    @property
    def decider(self) -> q.Decider | None:
        """The decision model, None if there is none."""
        return self._asker.decider

    def cuts_in_force(self) -> CutsInForce:
        """Return the cuts in force and who set each.

        A model whose replies bring cuts measured for it, as hosted ones do, counts from its first reply on.
        """
        return self._asker.cuts()

    def deadline_in_force(self) -> InForce:
        """Return how long a whole recall may take, in seconds, and who set it."""
        return self._asker.deadline()

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
        decided = self._gate(turn, tuple(namespaces), Clock(self._asker.deadline_s))
        self._raise_if_asked(decided.call.failures if decided.call else ())
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
        clock = Clock(self._asker.deadline_s)
        judged = self._judge(turn, records, self._render(records, clock), clock)
        self._raise_if_asked((*(judged.call.failures if judged.call else ()), *judged.failures))
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
        clock = Clock(self._asker.deadline_s)
        namespaces = tuple(namespaces)
        decided = self._gate(turn, namespaces, clock)
        gate = decided.decision
        pinned = tuple(name for name in namespaces if name in self.policy.router.pinned)
        found = self._search(turn, namespaces, (*pinned, *gate.selected), search, clock)
        rendered = self._render(found.records, clock)
        repeated = same_facts.duplicates(found.records, rendered) if self.policy.select.dedupe else set()
        unique = [at for at in range(len(rendered)) if at not in repeated]
        duplicates = [Dropped(found.records[at], "duplicate") for at in sorted(repeated)]
        judged = self._judge(turn, [found.records[at] for at in unique], [rendered[at] for at in unique], clock)
        left_out = tuple(Dropped(j.record, j.reason) for j in judged.judgements if not j.keep)
        trace = TurnTrace(
            gate=gate,
            judgements=tuple(judged.judgements),
            decider_calls=tuple(call for call in (decided.call, judged.call) if call),
            lookups=found.lookups,
            namespaces=len(namespaces),
            returned=len(found.records) + len(found.dropped),
            seconds=clock.spent(),
            block_tokens=judged.selection.tokens,
            started=clock.started_at,
            thresholds={
                "gate": decided.cuts.gate.value,
                "router": decided.cuts.router.value,
                "validator": judged.cuts.validator.value,
                "relative": judged.cuts.relative.value,
            },
            questions=self._wordings,
            breakers=self._breaker_states(namespaces),
            select_failures=judged.failures,
        )
        dropped = (*found.dropped, *duplicates, *left_out)
        recall = Recall(judged.records, judged.selection.block, dropped, trace)
        self._raise_if_asked(trace.failures, recall)
        return recall

    def moved_to(
        self, target: str | None, *, context_tag: str = "user_context", strategies: Mapping[str, str] | None = None
    ) -> RecallPipeline:
        """Return a pipeline for another user, session or memory, with the same decider and policy.

        It shares no pinned records with this one, which recalls under way keep.

        Args:
            target: As when made.
            context_tag: As when made.
            strategies: As when made.
        """
        moved = copy.copy(self)
        moved._aim(target, context_tag, strategies)
        return moved

    def _aim(self, target: str | None, context_tag: str, strategies: Mapping[str, str] | None) -> None:
        block_stage.check_tag(context_tag)
        router = self.policy.router
        self._searcher = Searcher(self.policy.breaker, router.pinned, router.pinned_ttl_s, target, self._record_filter)
        self._context_tag = context_tag
        self._strategies = dict(strategies or {})

    # Failures

    def _raise_if_asked(self, failures: Iterable[Failure], recall: Recall | None = None) -> None:
        if self.policy.on_failure == "raise":
            for failure in failures:
                raise RecallFailed(*failure, recall)

    def _breaker_states(self, namespaces: Iterable[str]) -> dict[str, BreakerState]:
        if self.policy.breaker.failures is None:
            return {}
        return {one.name: one.state for one in (*self._asker.breakers(), *self._searcher.breakers(namespaces))}

    # Gate and router

    def _gate(self, turn: Turn, namespaces: tuple[str, ...], clock: Clock) -> _Decided:
        pinned = self.policy.router.pinned
        gated = tuple(name for name in namespaces if name not in pinned)
        probabilities: dict[str, float | None] = dict.fromkeys(namespaces)
        if self.decider is None or not gated:
            decision = GateDecision(True, None, probabilities, gated, "ungated")
            return _Decided(decision, None, self._asker.cuts())
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
        answers, call, cuts = self._asker.ask("gate", turn, questions, budget_s, clock)
        outcome, probability = gate_stage.read_gate(gate.read(answers[q.GATE_ID]), cuts.gate.value)
        probabilities.update({name: q.probability_of(router.read(answers[key])) for name, key in asked.items()})
        if outcome == "closed":
            return _Decided(GateDecision(False, probability, probabilities, (), outcome), call, cuts)
        selected = router_stage.choose(gated, probabilities, cuts.router.value)
        return _Decided(GateDecision(True, probability, probabilities, selected, outcome), call, cuts)

    def _describe(self, namespace: str) -> str | None:
        given = self.policy.router.descriptions.get(namespace)
        if given or self._descriptions is not None:
            return given or (self._descriptions or {}).get(namespace)
        return router_stage.describe(namespace, self._strategies.get(namespace))

    # Search

    def _search(
        self, turn: Turn, namespaces: tuple[str, ...], wanted: tuple[str, ...], search: Search, clock: Clock
    ) -> Found:
        reserve_s = _VALIDATOR_RESERVE * clock.deadline_s if self.decider is not None else 0.0
        limit_s = min(self.policy.retrieve.timeout_s, max(0.0, clock.left() - reserve_s))
        in_order = sorted(dict.fromkeys(wanted), key=namespaces.index)
        return self._searcher.search(turn, in_order, search, limit_s, clock)

    # Validate and select

    def _judge(self, turn: Turn, records: Sequence[Record], rendered: Sequence[str], clock: Clock) -> _Judged:
        present = [at for at, text in enumerate(rendered) if text]
        validator = self.policy.validator
        if self.decider is None or not present:
            asked = Asked({}, None, self._asker.cuts())
        else:
            questions = {_asks_about(at): validator.question.question(rendered[at]) for at in present}
            if validator.drop_instructions and q.attribute_of(self.decider, "answers_custom", True):
                questions.update({_asks_instructs(at): RECORD_INSTRUCTIONS.question(rendered[at]) for at in present})
            asked = self._asker.ask("validator", turn, questions, clock.left(), clock)
        read = validator.question.read
        probabilities: dict[int, float | None] = {
            at: q.probability_of(read(answer)) if (answer := asked.answers.get(_asks_about(at))) else None
            for at in present
        }
        reasons: dict[int, str | None] = dict.fromkeys(range(len(records)), "empty")
        if validator.drop_instructions:
            hostile = {
                at
                for at in present
                if self._instructs(records[at], rendered[at], asked.answers.get(_asks_instructs(at)), clock)
            }
            reasons.update(dict.fromkeys(hostile, "instructions"))
            present = [at for at in present if at not in hostile]
        dated = self.policy.inject.show_dates
        candidates = [
            select_stage.Candidate(
                records[at], block_stage.line_of(rendered[at], records[at], dated), probabilities[at]
            )
            for at in present
        ]
        counter = TokenCounter(self.policy.select.token_counter, lambda: clock.left() <= 0.0)
        selection = select_stage.select(
            candidates, self.policy.select, asked.cuts.thresholds(), self._context_tag, counter
        )
        reasons.update(zip(present, selection.reasons, strict=True))
        shortened = {present[at] for at in selection.shortened}
        judgements = [
            self._judgement(record, rendered[at], probabilities.get(at), reasons[at], at in shortened)
            for at, record in enumerate(records)
        ]
        kept = tuple(candidates[at].record for at in selection.kept)
        return _Judged(judgements, kept, selection, counter.failures, asked.call, asked.cuts)

    def _instructs(self, record: Record, rendered: str, answer: q.Answer | None, clock: Clock) -> bool:
        """Tell whether a record is to be dropped because it tries to instruct the assistant."""
        if len(record.text) > SHORT and clock.left() <= 0.0:
            return False  # without an answer in time a record is kept
        if answer is None or (isinstance(answer, q.NoAnswer) and answer.reason in UNDECIDED):
            text = record.text[:_LONGEST_TEXT]
            return instructs(rendered) or (text != rendered and instructs(text))
        probability = q.probability_of(answer)
        return probability is not None and probability >= self.policy.validator.instructions_threshold

    def _judgement(
        self, record: Record, rendered: str, probability: float | None, drop: str | None, shortened: bool
    ) -> Judgement:
        if drop is not None:
            return Judgement(record, probability, False, drop, rendered)
        kept = "ungated" if self.decider is None else "not_judged" if probability is None else "relevant"
        return Judgement(record, probability, True, kept, rendered, shortened)

    def _render(self, records: Sequence[Record], clock: Clock) -> list[str]:
        texts = [record.text[:_LONGEST_TEXT] if isinstance(record.text, str) else "" for record in records]
        if self.policy.render.mode == "raw":
            # A record stays one line, or it could add lines that look like other records.
            return [_one_line(text) for text in texts]
        # The shape of a record is not worth being late for; a short one takes no time.
        late = clock.left() <= 0.0
        return [
            render_record(text) if not late and (len(text) < SHORT or clock.left() > 0.0) else inert(text)
            for text in texts
        ]


def _one_line(text: str) -> str:
    """Return a raw text on one line, without lone surrogates, which no model provider can be sent."""
    return " ".join(text.splitlines()).strip().encode("utf-8", "replace").decode()


def _asks_about(at: int) -> str:
    return f"record_{at}"


def _asks_instructs(at: int) -> str:
    return f"instructions_{at}"
