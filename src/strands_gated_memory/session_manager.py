"""The drop-in session manager: the stock manager's write path, and a recall that decides before it searches.

The path of a turn, in reading order: `initialize` attaches an injector to the agent;
`_note_ask` learns which of an invocation's messages is the user's ask; Strands adds that message, the
parent stores it, and `retrieve_customer_context` runs the pipeline and hands its block to the injector;
`_end_turn` takes the block away once the ask is answered. An invocation without a text of the user goes on with the
last ask that has no answer: `_resume` keeps its block, or recalls for it before the first model call.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import inspect
import logging
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import bedrock_agentcore.memory.client
import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from botocore.config import Config as BotocoreConfig
from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent, MessageAddedEvent
from strands.hooks.registry import HookOrder, HookRegistry

from .core.beginning import Beginning
from .core.cuts import CutsInForce
from .core.functions import check_function
from .core.messages import Message, has_tool_result, is_same, position_of
from .core.questions import Decider
from .core.settings import warn_caller
from .core.turn import find_ask, find_unanswered, is_answer, text_in, turn_of, without_recorded_calls
from .core.types import GateDecision, Recall, Turn, TurnTrace
from .deciders.check import CheckMode, check_at_start
from .deciders.resolve import DeciderSpec, resolve_decider
from .deciders.warming import load_now
from .errors import ConfigurationError, RecallFailed, error_kind
from .injection.block_injector import BlockInjector
from .policy import RecallPolicy
from .recall import RecallPipeline
from .reporting import telemetry
from .reporting.empty_namespaces import without_ids
from .reporting.log import (
    log_debug,
    log_empty_namespaces,
    log_error_rate,
    log_failures,
    log_mishap,
    log_stats,
    log_turn_failure,
    warn_once,
)
from .reporting.stats import RecallStats
from .reporting.trace_file import DEFAULT_MAX_BYTES, TraceFile, trace_line
from .retrieval.agentcore import AgentCoreRetriever, NamespaceSearch
from .retrieval.namespaces import check_template, fill
from .runtime import forks
from .runtime.searching import RecordFilter

logger = logging.getLogger(__name__)

RECALL_SWITCH = "recall"
"""`agent(prompt, invocation_state={"recall": False})` switches recall off for one call."""

_CONNECT_TIMEOUT_S = 1.0
_NEVER_REMOVES = NullConversationManager
"""The conversation manager that is known to keep everything; one of an application's may do anything."""


@dataclasses.dataclass
class _AgentState:
    """What this manager keeps for one agent."""

    injector: BlockInjector
    beginning: Beginning | None = None
    """The beginning of the session; None for an agent that the session manager has not initialised."""
    awaited: Message | None = None
    """The ask among the invocation's input until it has been added to the conversation."""
    ask: Message | None = None
    """The message of the conversation that carries the ask of the running turn, or of the last one."""
    resuming: bool = False
    """Whether the invocation came without a text of the user, and its first model call is still to come."""
    recalled: _Recalled | None = None
    """What has been recalled for the ask."""
    running: object = None
    """Stands for the running invocation, compared by identity."""
    enabled: bool = True
    """Whether the running invocation may recall."""
    missed: bool = False
    """Whether the invocation ended without a message that carries the ask, though one with a user's text came."""
    other_text: bool = False
    """Whether a user's text that is not the ask has been added while the ask was awaited."""
    last: Message | None = None
    """The conversation's last message when the last invocation ended."""
    answered: bool = True
    """Whether that invocation has answered the ask."""


class _Configured(NamedTuple):
    """What of the parent's configuration a recall depends on."""

    memory_id: str
    actor_id: str
    session_id: str
    context_tag: str
    searched: tuple[tuple[Any, ...], ...]


@dataclasses.dataclass(frozen=True, repr=False)
class _Recalled:
    """A recall that is over, and what it was for: it is kept while the ask, and what is searched, stay the same."""

    text: str
    configured: _Configured
    block: str | None
    enabled: bool
    """Whether recall was switched on."""


@dataclasses.dataclass(frozen=True)
class _Source:
    """What is searched, and for whom. Made anew when the configuration changes: a recall under way keeps its own."""

    configured: _Configured
    namespaces: tuple[str, ...]
    pipeline: RecallPipeline
    retriever: AgentCoreRetriever


class GatedMemorySessionManager(AgentCoreMemorySessionManager):
    """AgentCore Memory session manager that asks a decision model whether to recall, where, and what.

    A drop-in for `AgentCoreMemorySessionManager`: sessions, messages and agent state are stored by the
    parent, unchanged. Nothing of a recall raises into the agent's turn, unless the policy says
    `on_failure="raise"`: what fails is counted in `stats` and memory is recalled as if there were no decision
    model.

    Args:
        agentcore_memory_config: The parent's configuration; `retrieval_config` names the namespaces.
        region_name: AWS region.
        boto_session: Session for every client; default a new one.
        boto_client_config: Configuration for every client. Searches use it too, with one attempt and
            `policy.retrieve.timeout_s` as read timeout.
        decider: "embedded" (default), None for no decisions, or anything else that `resolve_decider` takes: a
            name such as "jev", the URL of a server, a function, a list to fall back along.
        policy: Thresholds, limits, deadlines, injection; default `RecallPolicy()`.
        converter: The parent's message converter.
        stats: Counters to add to; default new ones. One object may serve many managers, which then log it once
            every `policy.stats_every` turns, not each of them when it closes.
        decider_check: "warn" (default) asks a decider that talks to something one probe question, in a thread of
            its own and once in a process, and logs a failure; "raise" asks at construction and raises; "off" does
            not ask. Of a list each member is asked for itself.
        record_filter: Called with every `Record` that is retrieved, pinned ones included, on every turn, in worker
            threads and within `policy.retrieve.timeout_s`; False leaves the record out. What it raises leaves it
            out too, as the filter may guard access, and is counted by kind. Searches do not go through
            `memory_client`, so a filter there sees nothing.
        on_recall: Called with every `Recall`, after it has been counted; what it raises is logged.
        trace_path: A file to append one JSON line per turn to: decisions, probabilities, record ids, reasons and
            latencies, see `reporting.trace_file`. Several processes may share it.
        trace_content: Whether that file and this package's OpenTelemetry spans also hold text: the message and
            what was said before, records, the block. Strands' own spans hold the prompt whatever is set here.
        trace_max_bytes: The file is rotated before it grows beyond so many bytes; five old ones are kept.
        **kwargs: Forwarded to the parent, which ignores names it does not know; those draw a warning here.

    Raises:
        ConfigurationError: (a ValueError) a namespace template that cannot be filled, a pinned or described
            namespace that is not configured, an unknown decider, a policy or stats of the wrong type, a context
            tag that is no XML name, a trace path that cannot be a file.
    """

    def __init__(
        self,
        agentcore_memory_config: AgentCoreMemoryConfig,
        region_name: str | None = None,
        boto_session: boto3.Session | None = None,
        boto_client_config: BotocoreConfig | None = None,
        *,
        decider: DeciderSpec = "embedded",
        policy: RecallPolicy | None = None,
        converter: type[Any] | None = None,
        stats: RecallStats | None = None,
        on_recall: Callable[[Recall], None] | None = None,
        record_filter: RecordFilter | None = None,
        decider_check: CheckMode = "warn",
        trace_path: str | os.PathLike[str] | None = None,
        trace_content: bool = False,
        trace_max_bytes: int = DEFAULT_MAX_BYTES,
        **kwargs: Any,
    ) -> None:
        _warn_about_unknown(kwargs)
        self._policy = _checked(policy, RecallPolicy, "policy") or RecallPolicy()
        self._stats = _checked(stats, RecallStats, "stats") or RecallStats()
        self._stats.count_manager()
        if on_recall is not None:
            check_function(on_recall, "on_recall", "function(recall)")
        self._on_recall = on_recall
        if record_filter is not None:
            check_function(record_filter, "record_filter", "function(record)")
        self._decider_spec = decider
        self._trace_content = bool(_checked(trace_content, bool, "trace_content"))
        self._trace_file = None if trace_path is None else TraceFile(trace_path, max_bytes=trace_max_bytes)
        searches = _searches(agentcore_memory_config, self._policy)
        pipeline = RecallPipeline(
            resolve_decider(decider),
            self._policy,
            context_tag=agentcore_memory_config.context_tag,
            strategies=_strategies(agentcore_memory_config),
            decider_key=decider,
            target=agentcore_memory_config.memory_id,
            record_filter=record_filter,
        )
        self._agents: dict[int, tuple[weakref.ref[Any], _AgentState]] = {}
        self._agents_lock = forks.Lock()
        self._last_recall: Recall | None = None
        self._unlogged = False
        boto_session = boto_session or boto3.Session(region_name=region_name)
        super().__init__(
            agentcore_memory_config,
            region_name,
            boto_session,
            boto_client_config,
            converter=converter,
            **kwargs,
        )
        retriever = AgentCoreRetriever(
            _search_client(boto_session, region_name, boto_client_config, self._policy, len(searches)),
            agentcore_memory_config.memory_id,
            agentcore_memory_config.session_id,
            searches,
            skip_own_summary=self._policy.retrieve.skip_own_summary,
        )
        self._source = _Source(_configured(agentcore_memory_config), tuple(searches), pipeline, retriever)
        self._warn_if_wrapped()
        check_at_start(pipeline.decider, decider_check, decider)

    @property
    def stats(self) -> RecallStats:
        """The counters; `print(manager.stats)`."""
        return self._stats

    @property
    def last_recall(self) -> Recall | None:
        """The latest turn's recall, None before the first."""
        return self._last_recall

    @property
    def policy(self) -> RecallPolicy:
        """The policy in force; printed, it shows what is used where it sets none."""
        pipeline = self._source.pipeline
        return self._policy.with_in_force(pipeline.cuts_in_force(), pipeline.deadline_in_force())

    def cuts_in_force(self) -> CutsInForce:
        """Return the cuts in force and who set each; see `RecallPipeline.cuts_in_force`."""
        return self._source.pipeline.cuts_in_force()

    @property
    def decider(self) -> Decider | None:
        """The decision model in use, None if there is none."""
        return self._source.pipeline.decider

    def warm(self) -> None:
        """Load the decision model now, or wait for the thread that does, so that the first turn does not wait for it.

        Raises:
            DeciderUnavailable: (a GatedMemoryError) it cannot be loaded, or no member of a list can.
        """
        if self.decider is not None:
            load_now(self.decider, self._decider_spec)

    # Strands' hooks, in the order in which a turn meets them

    def initialize(self, agent: Any, **kwargs: Any) -> None:
        """Restore the session as the parent does, then attach the injector to the agent, once."""
        # Private to Strands; without it every session counts as an old one, of which the summary is recalled.
        is_new, before = getattr(self, "_is_new_session", False), getattr(agent, "messages", None)
        super().initialize(agent, **kwargs)
        self._warn_if_wrapped()
        state = self._state_of(agent)
        if state is None:
            return
        # The parent sets another list when it restores; it cannot tell a failure to from an empty session.
        restored = agent.messages is not before and bool(agent.messages)
        whole = is_new or (restored and not self.config.filter_restored_tool_context)
        state.beginning = Beginning(whole, agent.messages)
        if whole and self._policy.retrieve.skip_own_summary and type(agent.conversation_manager) is _NEVER_REMOVES:
            self._warn_about_own_summaries()

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Register the parent's hooks and those that bound a turn."""
        # Callbacks of this event run last first: whatever this one raises, the parent has stored the turn.
        registry.add_callback(AfterInvocationEvent, self._report_missed)
        super().register_hooks(registry, **kwargs)
        # Last, so that it sees the messages as other hooks have left them.
        registry.add_callback(BeforeInvocationEvent, self._note_ask, order=HookOrder.SDK_LAST)
        resume = self._resume_in_thread if self.config.async_mode else self._resume
        registry.add_callback(BeforeModelCallEvent, resume, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterInvocationEvent, self._end_turn)

    def retrieve_customer_context(self, event: MessageAddedEvent) -> None:
        """Recall for the message just added, if it is the user's ask of the running invocation.

        Tool results, structured-output prompts and recorded direct tool calls are not.

        Args:
            event: Strands' event; its message is not changed.

        Raises:
            RecallFailed: Anything failed, and the policy's `on_failure` is "raise"; it has been counted.
        """
        with self._counted():
            self._recall_for_added(event)

    def redact_latest_message(self, redact_message: Any, agent: Any, **kwargs: Any) -> None:
        """Redact the message as the parent does; a block that was recalled for what it said is not shown again."""
        state = self._state_of(agent)
        if state is not None and state.ask is not None and is_same(state.ask, redact_message):
            state.ask = state.recalled = None
            state.injector.hide()
        super().redact_latest_message(redact_message, agent, **kwargs)

    def close(self) -> None:
        """Flush what the parent holds, and log the counters; those shared with other managers now and then only."""
        try:
            super().close()
        finally:
            self._log_stats()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        try:
            super().__exit__(exc_type, exc_val, exc_tb)
        finally:
            self._log_stats()

    def _warn_if_wrapped(self) -> None:
        """Tell whoever filters or counts in the parent's search that ours passes it by."""
        own = getattr(self.memory_client, "retrieve_memories", None)
        function = getattr(own, "__func__", own)
        if getattr(function, "__globals__", None) is not vars(bedrock_agentcore.memory.client):
            warn_once(
                "memory_client.retrieve_memories is wrapped or overridden | searches of this manager do not go through "
                "it | filter with GatedMemorySessionManager(record_filter=...), or watch with on_recall="
            )

    # One turn

    def _note_ask(self, event: BeforeInvocationEvent) -> None:
        state = self._state_of(event.agent)
        if state is None:
            return
        state.running = object()
        state.awaited = find_ask(event.messages)
        state.enabled = not _switched_off(event.invocation_state)
        state.other_text = False
        state.resuming = state.awaited is None
        state.ask = _unanswered(state, event.agent.messages) if state.resuming else None
        state.injector.hide()

    def _recall_for_added(self, event: MessageAddedEvent) -> None:
        state = self._state_of(event.agent)
        if state is None or state.awaited is None:
            return
        if not _carries(event.message, state.awaited):
            state.other_text = state.other_text or find_ask([event.message]) is not None
            return
        text = text_in(state.awaited)
        state.awaited, state.ask, state.recalled = None, event.message, None
        self._recall_for(event.agent, state, event.message, text)

    def _resume(self, event: BeforeModelCallEvent) -> None:
        """Show what was recalled for the ask of an invocation without a text of the user, or recall for it now."""
        state = self._state_of(event.agent)
        if state is None or not state.resuming or event.cancel:
            return
        state.resuming = False
        with self._counted():
            messages = event.agent.messages
            place = None if state.ask is None else position_of(messages, state.ask)
            if place is not None:
                ask = messages[place]
                text = text_in(ask, state.injector.stored.get(ask.get("tracking_id", ""), ()))
                self._recall_for(event.agent, state, ask, text)
            elif messages and has_tool_result(messages[-1]) and self._recalls(state):
                self._fail("ask_not_found")  # the tool was called for an ask that is no longer in the conversation

    async def _resume_in_thread(self, event: BeforeModelCallEvent) -> None:
        state = self._state_of(event.agent)
        if state is not None and state.resuming:
            await asyncio.to_thread(self._resume, event)

    def _recall_for(self, agent: Agent, state: _AgentState, ask: Message, text: str) -> None:
        """Recall for an ask and show the block, or show the block that was recalled for it before."""
        source = self._source_now()
        if not source.namespaces:
            return
        running, recalled = state.running, state.recalled
        if recalled is not None and _is_for(recalled, text, source.configured, state.enabled):
            if state.enabled:
                state.injector.show(recalled.block, ask)
            return
        recalled = _Recalled(text, source.configured, None, state.enabled)
        if not state.enabled:
            state.recalled = recalled
            self._report(
                Recall((), None, (), TurnTrace(_DISABLED, namespaces=len(source.namespaces), started=time.time())),
                source,
            )
            return
        place = position_of(agent.messages, ask)
        history = agent.messages[: -1 if place is None else place]
        turn = turn_of(text, history, self._policy.turn, state.injector.stored)
        try:
            recall = source.pipeline.recall(
                turn,
                source.namespaces,
                source.retriever.search_for(text, holds_beginning=self._holds_beginning(agent, state)),
            )
        except RecallFailed as failed:
            if isinstance(failed.recall, Recall):
                self._report(failed.recall, source, turn)
            raise
        if state.running is not running:
            # Cancelled meanwhile, in async mode: another turn may be running, and its recall be the latest.
            self._count(recall, source, turn)
            return
        if self._policy.inject.mode == "turn":
            state.recalled = dataclasses.replace(recalled, block=recall.block)
            state.injector.show(recall.block, ask)
        else:
            state.recalled = recalled
            if recall.block is not None:
                state.injector.store(agent, ask, recall.block)
        self._report(recall, source, turn)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count what fails unexpectedly; nothing of it raises, unless the policy says so."""
        try:
            yield
        except RecallFailed:
            raise
        except Exception as error:
            log_debug("unexpected failure of a recall")
            self._fail(error_kind(error), error)

    def _holds_beginning(self, agent: Agent, state: _AgentState) -> bool:
        """Tell whether the conversation says what the session's summary does: no other agent has spoken in it."""
        if state.beginning is None or len(self._agents) > 1:
            return False
        removed = getattr(agent.conversation_manager, "removed_message_count", None)
        return state.beginning.is_held(agent.messages, removed)

    def _warn_about_own_summaries(self) -> None:
        for name, search in _searches(self.config, self._policy).items():
            if search.finds_own_summaries_alone:
                warn_caller(
                    f"namespace {name!r} will find nothing: it holds summaries of the running session alone, which are "
                    f"left out while the conversation holds what they sum up, and a {_NEVER_REMOVES.__name__} never "
                    "removes any of it; take the namespace out of retrieval_config, or write "
                    f"{name.partition('{sessionId}')[0]!r} for those of every session, or set "
                    "RecallPolicy(retrieve={'skip_own_summary': False})"
                )

    def _source_now(self) -> _Source:
        """Return what the configuration names now: the parent reads it on every turn, and so must this."""
        config, source = self.config, self._source
        configured = _configured(config)
        if configured != source.configured:
            searches = _searches(config, self._policy)
            pipeline = source.pipeline.moved_to(
                config.memory_id, context_tag=config.context_tag, strategies=_strategies(config)
            )
            retriever = source.retriever.moved_to(config.memory_id, config.session_id, searches)
            source = self._source = _Source(configured, tuple(searches), pipeline, retriever)
        return source

    def _end_turn(self, event: AfterInvocationEvent) -> None:
        state = self._state_of(event.agent)
        if state is None:
            return
        messages, result = event.agent.messages, event.result
        # An error, a cancellation, or a human who is asked, leaves the ask without an answer whatever the
        # conversation ends with.
        broken_off = result is None or result.stop_reason in ("interrupt", "cancelled")
        made = getattr(result, "structured_output", None) is not None
        state.last = messages[-1] if messages else None
        state.answered = not broken_off and (made or state.last is None or is_answer(state.last))
        state.missed = (
            state.awaited is not None and state.other_text and state.enabled and bool(self._source.namespaces)
        )
        state.awaited = state.running = None
        state.resuming = False
        state.injector.hide()
        if state.answered:
            state.ask = state.recalled = None

    def _recalls(self, state: _AgentState) -> bool:
        return state.enabled and bool(self._source.namespaces)

    def _report_missed(self, event: AfterInvocationEvent) -> None:
        state = self._state_of(event.agent)
        if state is not None and state.missed:
            # Something replaced the ask's message between the start of the invocation and the conversation.
            state.missed = False
            self._fail("ask_not_found")

    def _state_of(self, agent: Any) -> _AgentState | None:
        """Return what is kept for an agent, attaching the injector at first sight; None for a BidiAgent."""
        if not isinstance(agent, Agent):
            return None
        key = id(agent)  # not the agent itself: a subclass with __eq__ cannot be hashed
        with self._agents_lock:
            known = self._agents.get(key)
            if known is not None and known[0]() is agent:
                return known[1]
            injector = BlockInjector(self._policy.inject.position, lambda: self.config.context_tag, _log_unshown)
            state = _AgentState(injector)
            self._agents[key] = (weakref.ref(agent), state)
            weakref.finalize(agent, self._agents.pop, key, None)
            state.injector.attach(agent)
        return state

    # Reporting

    def _fail(self, kind: str, error: Exception | None = None) -> None:
        """Report a turn that had no memory at all, and raise if the policy says so."""
        log_turn_failure(kind, error)
        source = self._source
        with contextlib.suppress(Exception):  # the configuration may be what failed
            source = dataclasses.replace(source, configured=_configured(self.config))
        self._report(Recall((), None, (), TurnTrace(None, failure=kind, started=time.time())), source)
        if self._policy.on_failure == "raise":
            raise RecallFailed("turn", kind, None if error is None else type(error).__name__) from error

    def _report(self, recall: Recall, source: _Source, turn: Turn | None = None) -> None:
        self._last_recall = recall
        self._count(recall, source, turn)

    def _count(self, recall: Recall, source: _Source, turn: Turn | None) -> None:
        self._unlogged = True
        counted = self._stats.add(recall)
        log_failures(recall)
        self._count_lookups(recall, source.configured)
        if counted.alarm and counted.error_rate is not None:
            log_error_rate(counted.error_rate)
        telemetry.record(recall, turn if self._trace_content else None)
        self._write_trace(recall, source, turn)
        if counted.first_degradation or counted.turns % self._policy.stats_every == 0:
            self._stats.note_logged()
            log_stats(self._stats, self._policy.stats_log)
        if self._on_recall is not None:
            try:
                self._on_recall(recall)
            except Exception as error:
                log_mishap("reason=<%s> | on_recall raised | the turn goes on", type(error).__name__)

    def _count_lookups(self, recall: Recall, configured: _Configured) -> None:
        ids = {configured.actor_id: "{actorId}", configured.session_id: "{sessionId}"}
        lookups = without_ids(recall.trace.lookups, ids)
        self._stats.add_lookups(configured.memory_id, lookups)
        log_empty_namespaces(configured.memory_id, lookups)

    def _write_trace(self, recall: Recall, source: _Source, turn: Turn | None) -> None:
        if self._trace_file is None:
            return
        try:
            self._trace_file.write(
                trace_line(
                    recall,
                    memory_id=source.configured.memory_id,
                    actor_id=source.configured.actor_id,
                    session_id=source.configured.session_id,
                    namespaces=source.namespaces,
                    turn=turn if self._trace_content else None,
                )
            )
        except Exception as error:
            if self._stats.count_trace_error():
                log_mishap(
                    "path=<%s>, reason=<%s> | a line of the trace file was not written | the turn goes on",
                    self._trace_file.path,
                    error if isinstance(error, OSError) else type(error).__name__,
                )

    def _log_stats(self) -> None:
        if self._unlogged:
            self._unlogged = False
            if self._stats.is_worth_logging(self._policy.stats_every):
                log_stats(self._stats, self._policy.stats_log)


def _configured(config: AgentCoreMemoryConfig) -> _Configured:
    searched = tuple(
        (name, retrieval.top_k, retrieval.relevance_score, retrieval.strategy_id)
        for name, retrieval in (config.retrieval_config or {}).items()
    )
    return _Configured(config.memory_id, config.actor_id, config.session_id, config.context_tag, searched)


def _strategies(config: AgentCoreMemoryConfig) -> dict[str, str]:
    return {name: one.strategy_id for name, one in (config.retrieval_config or {}).items() if one.strategy_id}


def _switched_off(invocation_state: Any) -> bool:
    """Tell whether a caller has switched recall off: by any false value but None, so 0 counts too."""
    try:
        value = invocation_state.get(RECALL_SWITCH) if invocation_state else None
        return value is not None and not value
    except Exception:  # an object that is neither true nor false, such as an array
        return False


_DISABLED = GateDecision(False, None, {}, (), "disabled")


def _carries(message: Mapping[str, Any], ask: Mapping[str, Any]) -> bool:
    """Tell whether a message is the ask, or holds its blocks because Strands merged it into another one."""
    if message is ask:
        return True
    blocks = {id(block) for block in message.get("content") or ()}
    return any(id(block) in blocks for block in ask.get("content") or ())


def _log_unshown(error: Exception) -> None:
    log_mishap("reason=<%s> | the recall block cannot be shown | the model is called without", type(error).__name__)


def _unanswered(state: _AgentState, messages: Sequence[Message]) -> Message | None:
    """Return the message with the ask that an invocation without a text of the user goes on with, None without one."""
    said = without_recorded_calls(messages)
    if state.last is not None and said and is_same(said[-1], state.last):
        # Nothing came since: what Strands and its plugins said in that invocation, as users, is no ask.
        return None if state.answered or state.ask is None else state.ask
    return find_unanswered(messages)


def _is_for(recalled: _Recalled, text: str, configured: _Configured, enabled: bool) -> bool:
    """Tell whether a recall serves an ask: one that was switched off serves no call with recall switched on.

    A recall lives no longer than its ask is without an answer, so the same text is the same ask, though the
    application may have rebuilt the conversation meanwhile.
    """
    return recalled.text == text and recalled.configured == configured and (recalled.enabled or not enabled)


def _searches(config: AgentCoreMemoryConfig, policy: RecallPolicy) -> dict[str, NamespaceSearch]:
    configured = config.retrieval_config or {}
    if not configured:
        warn_once(
            f"retrieval_config is {'None' if config.retrieval_config is None else 'empty'} | no namespace to search | "
            "nothing will ever be recalled; write AgentCoreMemoryConfig(retrieval_config="
            '{"/facts/{actorId}/": RetrievalConfig()}) with the namespaces of your strategies'
        )
    for setting in ("pinned", "descriptions"):
        for name in getattr(policy.router, setting):
            if name not in configured:
                near = difflib.get_close_matches(name, configured, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, configured)) or 'none'}"
                raise ConfigurationError(
                    f"RecallPolicy.router.{setting} names {name!r}, which is not in retrieval_config; {hint}"
                )
    searches = {}
    for name, retrieval in configured.items():
        check_template(name)
        if "{memoryStrategyId}" in name and not retrieval.strategy_id:
            warn_once(
                "namespace=<%s> | its RetrievalConfig has no strategy_id to fill the path with | it will find nothing",
                name,
            )
        searches[name] = NamespaceSearch(
            key=name,
            path=fill(
                name,
                actor_id=config.actor_id,
                session_id=config.session_id,
                strategy_id=retrieval.strategy_id,
            ),
            top_k=retrieval.top_k,
            relevance_score=retrieval.relevance_score,
            strategy_id=retrieval.strategy_id if policy.retrieve.send_strategy_id else None,
            whole=name in policy.router.pinned,
        )
    return searches


def _search_client(
    session: boto3.Session,
    region_name: str | None,
    config: BotocoreConfig | None,
    policy: RecallPolicy,
    namespaces: int,
) -> Any:
    """Return a data-plane client like the parent's, but with one short attempt: a turn waits for it."""
    base = config or BotocoreConfig()
    agents = [getattr(base, "user_agent_extra", None), "strands-agents", "strands-gated-memory"]
    timeout_s = policy.retrieve.timeout_s
    return session.client(
        "bedrock-agentcore",
        region_name=region_name or session.region_name,
        config=base.merge(
            BotocoreConfig(
                user_agent_extra=" ".join(agent for agent in agents if agent),
                connect_timeout=min(_CONNECT_TIMEOUT_S, timeout_s),
                read_timeout=timeout_s,
                retries={"total_max_attempts": 1},
                max_pool_connections=max(10, namespaces),
            )
        ),
    )


def _checked(value: Any, kind: type[Any], name: str) -> Any:
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be a {kind.__name__}, got {value!r}")
    return value


def _warn_about_unknown(kwargs: Mapping[str, Any]) -> None:
    # Read off the parent, so that an argument of a later release of it draws no warning.
    accepted = (AgentCoreMemorySessionManager, GatedMemorySessionManager)
    names = [name for cls in accepted for name in inspect.signature(cls).parameters if name != "kwargs"]
    known = tuple(dict.fromkeys(names))
    for name in kwargs:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        warnings.warn(
            f"GatedMemorySessionManager has no argument {name!r} and ignores it; {hint}", UserWarning, stacklevel=3
        )
