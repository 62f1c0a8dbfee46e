"""One turn's recall, from the ask to the block: the only module that knows the order of the stages.

    gate and router (one request) -> search -> render -> drop duplicates -> validate (one request)
    -> select -> block

Every stage is a pure function in `core`; this module asks, waits, and fails open. Nothing here raises
into a turn unless the policy's `on_failure` says so, and every failure is written into the trace.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence

from .core import block, gate, validator
from .core.gate import describe
from .core.questions import Decider, attribute_of
from .core.render import rows_of
from .core.select import Selection, TokenCounter, select, without_duplicates
from .core.types import Dropped, Failure, GateDecision, Judgement, Recall, Record, Row, Turn, TurnTrace
from .errors import RecallFailed
from .policy import CutsInForce, InForce, RecallPolicy
from .runtime.clock import Clock
from .runtime.decide import Asked, Asker
from .runtime.search import Found, RecordFilter, Search, Searcher

_VALIDATOR_RESERVE = 0.1
"""Share of the deadline that a search may not use, so that the validator still gets its turn."""


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
        decider: Decider | None,
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

    @property
    def decider(self) -> Decider | None:
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
        decision, asked = self._decide(turn, tuple(namespaces), Clock(self._asker.deadline_s))
        self._raise_if_asked(asked.call.failures if asked.call else ())
        return decision

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
        selection, asked, failures = self._validate(turn, self._render(records, clock), clock)
        self._raise_if_asked((*(asked.call.failures if asked.call else ()), *failures))
        return [self._judgement(row) for row in selection.rows]

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
        clock, namespaces = Clock(self._asker.deadline_s), tuple(namespaces)
        decision, gated = self._decide(turn, namespaces, clock)
        found = self._search(turn, namespaces, decision, search, clock)
        rows = self._render(found.records, clock)
        if self.policy.select.dedupe:
            rows = without_duplicates(rows)
        duplicates = [Dropped(row.record, row.reason) for row in rows if row.reason == "duplicate"]
        unique = [row for row in rows if row.reason != "duplicate"] if duplicates else rows
        selection, validated, failures = self._validate(turn, unique, clock)
        left_out = [Dropped(row.record, row.reason) for row in selection.rows if row.reason is not None]
        trace = TurnTrace(
            gate=decision,
            judgements=tuple([self._judgement(row) for row in selection.rows]),
            decider_calls=tuple(asked.call for asked in (gated, validated) if asked.call),
            lookups=found.lookups,
            namespaces=len(namespaces),
            returned=len(found.records) + len(found.dropped),
            seconds=clock.spent(),
            block_tokens=selection.tokens,
            started=clock.started_at,
            thresholds={
                "gate": gated.cuts.gate.value,
                "router": gated.cuts.router.value,
                "validator": validated.cuts.validator.value,
                "relative": validated.cuts.relative.value,
            },
            questions={name: getattr(self.policy, name).question.key for name in ("gate", "router", "validator")},
            breakers={one.name: one.state for one in (*self._asker.breakers(), *self._searcher.breakers(namespaces))},
            select_failures=failures,
        )
        dropped = (*found.dropped, *duplicates, *left_out)
        recall = Recall(tuple([row.record for row in selection.kept]), selection.block, dropped, trace)
        self._raise_if_asked(trace.failures, recall)
        return recall

    # The stages

    def _decide(self, turn: Turn, namespaces: tuple[str, ...], clock: Clock) -> tuple[GateDecision, Asked]:
        policy = self.policy
        gated = [name for name in namespaces if name not in policy.router.pinned]
        if self.decider is None or not gated:
            return gate.ungated(namespaces, gated), Asked({}, None, self._asker.cuts())
        questions = gate.questions_about(gated, policy.gate, policy.router, self._describe)
        # Half of the deadline at most goes to searching, so a decider that hangs does not cost the memory.
        budget_s = clock.deadline_s - min(policy.retrieve.timeout_s, clock.deadline_s / 2)
        asked = self._asker.ask("gate", turn, questions, budget_s, clock)
        decision = gate.decide(
            asked.answers, namespaces, gated, gate=policy.gate, router=policy.router, cuts=asked.cuts
        )
        return decision, asked

    def _describe(self, namespace: str) -> str | None:
        if self._descriptions is not None:
            return self._descriptions.get(namespace)
        return describe(namespace, self._strategies.get(namespace))

    def _search(
        self, turn: Turn, namespaces: tuple[str, ...], decision: GateDecision, search: Search, clock: Clock
    ) -> Found:
        wanted = {*decision.selected, *self.policy.router.pinned}
        reserve_s = _VALIDATOR_RESERVE * clock.deadline_s if self.decider is not None else 0.0
        limit_s = min(self.policy.retrieve.timeout_s, max(0.0, clock.left() - reserve_s))
        in_order = [name for name in dict.fromkeys(namespaces) if name in wanted]
        return self._searcher.search(turn, in_order, search, limit_s, clock)

    def _render(self, records: Sequence[Record], clock: Clock) -> list[Row]:
        return rows_of(records, self.policy.render.mode, clock.is_over)

    def _validate(self, turn: Turn, rows: Sequence[Row], clock: Clock) -> tuple[Selection, Asked, tuple[Failure, ...]]:
        """Return what goes into the block, what was asked for it, and what failed while the block was filled."""
        policy, questions = self.policy, {}
        if self.decider is not None:
            answers_custom = attribute_of(self.decider, "answers_custom", True)
            questions = validator.questions_about(rows, policy.validator, answers_custom)
        if questions:
            asked = self._asker.ask("validator", turn, questions, clock.left(), clock)
        else:
            asked = Asked({}, None, self._asker.cuts())
        judged = validator.judged(rows, asked.answers, policy.validator, clock.is_over)
        counter = TokenCounter(policy.select.token_counter, clock.is_over)
        lines = block.with_lines(judged, policy.inject.show_dates)
        selection = select(lines, policy.select, asked.cuts.thresholds(), self._context_tag, counter)
        return selection, asked, counter.failures

    def _judgement(self, row: Row) -> Judgement:
        kept = "ungated" if self.decider is None else "not_judged" if row.probability is None else "relevant"
        return Judgement(row.record, row.probability, row.reason is None, row.reason or kept, row.text, row.shortened)

    def _raise_if_asked(self, failures: Iterable[Failure], recall: Recall | None = None) -> None:
        if self.policy.on_failure == "raise":
            for failure in failures:
                raise RecallFailed(*failure, recall)

    # Another user, session or memory

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
        block.check_tag(context_tag)
        router = self.policy.router
        self._searcher = Searcher(
            self.policy.breaker,
            router.pinned,
            router.pinned_ttl_s,
            target,
            usual_s=self.policy.retrieve.timeout_s,
            record_filter=self._record_filter,
        )
        self._context_tag = context_tag
        self._strategies = dict(strategies or {})
