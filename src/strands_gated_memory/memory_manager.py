"""The drop-in for Strands' own memory path: the parent's stores, tools and extraction, and a recall that decides first.

The path of a turn: `_AgentTurns.begin` learns which of an invocation's messages is the user's ask; before the first
model call `_AgentTurns.recall` runs the pipeline in a worker thread, which searches the stores on the agent's event
loop, and hands its block to the injector; `_AgentTurns.end` takes the block away once the ask is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import difflib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, get_args

from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent
from strands.hooks.registry import HookOrder
from strands.injection import InjectionContext
from strands.memory import (
    InjectionFormatContext,
    InjectionQueryContext,
    MemoryAddToolConfig,
    MemoryEntry,
    MemoryInjectionConfig,
    MemoryManager,
    MemorySearchOptions,
    MemoryStore,
    MemoryToolConfig,
)
from strands.types.tools import AgentTool

from .core.cuts import CutsInForce
from .core.functions import check_function
from .core.messages import Message, has_tool_result, position_of
from .core.questions import Decider
from .core.tokens import estimate_tokens
from .core.turn import find_ask, is_answer, text_in, turn_of
from .core.types import Recall, Turn, TurnTrace
from .deciders.check import CheckMode, check_at_start
from .deciders.resolve import DeciderSpec, resolve_decider
from .deciders.warming import load_now
from .errors import ConfigurationError, RecallFailed, StageError, error_kind
from .injection.block_injector import BlockInjector
from .policy import RecallPolicy
from .recall import RecallPipeline
from .reporting import telemetry
from .reporting.log import log_debug, log_error_rate, log_failures, log_mishap, log_stats, log_turn_failure
from .reporting.stats import RecallStats
from .reporting.trace_file import DEFAULT_MAX_BYTES, TraceFile, trace_line
from .retrieval.agentcore import cut_query
from .retrieval.stores import StoreSearch, ToRecord, to_record
from .runtime.searching import RecordFilter
from .runtime.workers import WorkerPool, start
from .session_manager import _DISABLED, _carries, _checked, _log_unshown, _switched_off, _unanswered

_T = TypeVar("_T")

ToolResults = Literal["as_is", "validated"]
"""What the `search_memory` tool returns: what the stores found, or of it what the decision model keeps."""

_RECALLS = WorkerPool("gated-memory-recall", size=64, share=64, backlog=128)
"""Runs recalls off the event loop; the loop's own executor may be full of searches that hang."""
_NOT_KEPT_S = 1e-9
"""How long what a pinned store found is used again: it was found for one query, so not at all."""
_STORES = "stores"
"""Stands in a trace file for the memory: stores have no id that the manager knows."""


class GatedMemoryManager(MemoryManager):
    """Memory manager of Strands that asks a decision model whether to recall, from which stores, and what.

    A drop-in for `strands.memory.MemoryManager`, for stores of every kind: tools, extraction, `add`, `search` and
    `flush` are the parent's, unchanged. Instead of searching every store before every model call, it recalls once per
    turn and shows the block on every model call of it. Nothing of a recall raises into the agent's turn, unless the
    policy says `on_failure="raise"`: what fails is counted in `stats`.

    Args:
        stores: The parent's. A store's `description` is what the decision model chooses it by; one without is searched
            whenever anything is.
        search_tool_config: The parent's.
        add_tool_config: The parent's.
        injection: The parent's. False: no recall. Of a mapping, `trigger` as a function is asked before each model call
            until it says yes, and may keep a turn from being recalled; `query` gives the text to search for, None for
            no recall; `max_entries` caps `policy.select.max_records`; `format` writes the block from the entries that
            were kept. A name as `trigger` changes nothing: a recall is made once per ask, and shown on every call.
        decider: As for `GatedMemorySessionManager`.
        policy: Thresholds, limits, deadlines, injection; default `RecallPolicy()`. Its namespaces are names of stores;
            `router.pinned` ones are searched on every turn.
        stats: Counters to add to; default new ones. One object may serve many managers.
        tool_stats: Counters of searches of the `search_memory` tool with `tool_results="validated"`; default new ones.
        on_recall: Called with every `Recall` of a turn, after it has been counted; what it raises is logged.
        record_filter: Called with every `Record` that is found; False, or an exception, leaves it out.
        decider_check: As for `GatedMemorySessionManager`.
        trace_path: A file to append one JSON line per turn to, see `reporting.trace_file`.
        trace_content: Whether that file and this package's OpenTelemetry spans also hold text.
        trace_max_bytes: The file is rotated before it grows beyond so many bytes.
        context_tag: The tag of the block.
        to_record: Reads an entry of a store as a `Record`; default `retrieval.stores.to_record`. An entry that it
            raises on is left out and counted as malformed.
        max_search_results: How many entries a recall asks of each store, 1 or more; the store's own limit and the
            parent's are for the tool.
        tool_results: "as_is" (default): the `search_memory` tool is the parent's. "validated": what it finds is
            validated for its query as a recall's is, without gate and router, and counted in `tool_stats`.

    Raises:
        ConfigurationError: (a ValueError) a policy that names a store that is not there, an unknown decider, an
            argument of the wrong type, a context tag that is no XML name.
        ValueError: What the parent raises.
    """

    def __init__(
        self,
        stores: list[MemoryStore],
        search_tool_config: MemoryToolConfig | bool = True,
        add_tool_config: MemoryAddToolConfig | bool = False,
        injection: MemoryInjectionConfig | bool = True,
        *,
        decider: DeciderSpec = "embedded",
        policy: RecallPolicy | None = None,
        stats: RecallStats | None = None,
        tool_stats: RecallStats | None = None,
        on_recall: Callable[[Recall], None] | None = None,
        record_filter: RecordFilter | None = None,
        decider_check: CheckMode = "warn",
        trace_path: str | os.PathLike[str] | None = None,
        trace_content: bool = False,
        trace_max_bytes: int = DEFAULT_MAX_BYTES,
        context_tag: str = "user_context",
        to_record: ToRecord = to_record,
        max_search_results: int = 20,
        tool_results: ToolResults = "as_is",
    ) -> None:
        if tool_results not in get_args(ToolResults):
            raise ConfigurationError(f'tool_results must be "as_is" or "validated", got {tool_results!r}')
        if isinstance(max_search_results, bool) or not isinstance(max_search_results, int) or max_search_results < 1:
            raise ConfigurationError(f"max_search_results must be a whole number above 0, got {max_search_results!r}")
        check_function(to_record, "to_record", "function(entry)")
        if on_recall is not None:
            check_function(on_recall, "on_recall", "function(recall)")
        if record_filter is not None:
            check_function(record_filter, "record_filter", "function(record)")
        validated = tool_results == "validated" and search_tool_config is not False
        super().__init__(stores, False if validated else search_tool_config, add_tool_config, injection=False)
        self._store_of = {store.name: store for store in stores}
        self._injection: MemoryInjectionConfig = injection if isinstance(injection, dict) else {}
        self._recalls = bool(injection) or isinstance(injection, dict)
        self._policy = _capped(_checked(policy, RecallPolicy, "policy") or RecallPolicy(), self._injection)
        _check_names(self._policy, self._store_of)
        self._stats = _checked(stats, RecallStats, "stats") or RecallStats()
        self._stats.count_manager()
        self._tool_stats = _checked(tool_stats, RecallStats, "tool_stats") or RecallStats()
        self._on_recall = on_recall
        self._decider_spec = decider
        self._context_tag = context_tag
        self._to_record = to_record
        self._max_search_results = max_search_results
        self._trace_content = bool(_checked(trace_content, bool, "trace_content"))
        self._trace_file = None if trace_path is None else TraceFile(trace_path, max_bytes=trace_max_bytes)
        self._last_recall: Recall | None = None
        found = resolve_decider(decider)

        def pipeline(always_searched: Iterable[str]) -> RecallPipeline:
            return RecallPipeline(
                found,
                _with_router(self._policy, pinned=tuple(always_searched), pinned_ttl_s=_NOT_KEPT_S),
                context_tag=context_tag,
                descriptions={store.name: store.description for store in stores},
                decider_key=decider,
                record_filter=record_filter,
            )

        self._pipeline = pipeline(self._policy.router.pinned)
        self._tool_pipeline = pipeline(self._store_of)
        self._validated_tools = (
            _ToolSearch(stores, search_tool_config, self._search_for_tool).tools if validated else []
        )
        check_at_start(found, decider_check, decider)

    @property
    def stats(self) -> RecallStats:
        """The counters; `print(manager.stats)`. A namespace in them is a store."""
        return self._stats

    @property
    def tool_stats(self) -> RecallStats:
        """The counters of the `search_memory` tool's searches, with `tool_results="validated"`: a turn is a search."""
        return self._tool_stats

    @property
    def last_recall(self) -> Recall | None:
        """The latest turn's recall, None before the first."""
        return self._last_recall

    @property
    def policy(self) -> RecallPolicy:
        """The policy in force; printed, it shows what is used where it sets none."""
        return self._policy.with_in_force(self._pipeline.cuts_in_force(), self._pipeline.deadline_in_force())

    @property
    def context_tag(self) -> str:
        """The tag of the block."""
        return self._context_tag

    def cuts_in_force(self) -> CutsInForce:
        """Return the cuts in force and who set each; see `RecallPipeline.cuts_in_force`."""
        return self._pipeline.cuts_in_force()

    @property
    def decider(self) -> Decider | None:
        """The decision model in use, None if there is none."""
        return self._pipeline.decider

    def warm(self) -> None:
        """Load the decision model now, or wait for the thread that does, so that the first turn does not wait for it.

        Raises:
            DeciderUnavailable: (a GatedMemoryError) it cannot be loaded, or no member of a list can.
        """
        if self.decider is not None:
            load_now(self.decider, self._decider_spec)

    @property
    def tools(self) -> list[AgentTool]:  # type: ignore[override]  # as the parent's is wider than the plugin's
        """The parent's tools; the search tool is the validated one where `tool_results` says so."""
        return [*self._validated_tools, *super().tools]

    async def init_agent(self, agent: Agent) -> None:
        """Set up stores and extraction as the parent does, then recall for this agent."""
        await super().init_agent(agent)
        if self._recalls:
            _AgentTurns(self, agent)

    # One recall

    def _search_for(self, query: str, max_results: Callable[[MemoryStore], int]) -> StoreSearch:
        """Return the searches of one recall, on the running loop."""
        return StoreSearch(
            self._store_of,
            cut_query(query),
            max_results=max_results,
            to_record=self._to_record,
            loop=asyncio.get_running_loop(),
            timeout_s=self._policy.retrieve.timeout_s,
        )

    def _search_for_turn(self, query: str) -> StoreSearch:
        return self._search_for(query, lambda _: self._max_search_results)

    async def _search_for_tool(self, query: str, options: MemorySearchOptions) -> list[MemoryEntry]:
        """Return what the stores that a tool names hold for its query, but for what the decision model drops."""
        most = options.get("max_search_results")
        search = self._search_for(query, lambda store: most or store.max_search_results or self._max_search_results)
        turn, names = Turn(query), options["stores"]
        recall = await _in_worker(lambda: self._recall_of(self._tool_pipeline, turn, names, search, self._count_tool))
        self._count_tool(recall)
        return [search.entry_of(record) for record in recall.records]

    def _recall_of(
        self,
        pipeline: RecallPipeline,
        turn: Turn,
        names: Iterable[str],
        search: StoreSearch,
        count: Callable[[Recall], None],
    ) -> Recall:
        try:
            return pipeline.recall(turn, names, search)
        except RecallFailed as failed:
            if isinstance(failed.recall, Recall):
                count(failed.recall)
            raise

    def _recall_for_turn(self, turn: Turn, search: StoreSearch) -> Recall:
        recall = self._recall_of(
            self._pipeline, turn, self._store_of, search, lambda failed: self._report(failed, turn)
        )
        if (write := self._injection.get("format")) is None or not recall.records:
            return recall
        try:
            block = write(InjectionFormatContext(entries=[search.entry_of(record) for record in recall.records]))
        except Exception as error:  # a function of the application's; as in the parent the turn has no memory then
            log_turn_failure(error_kind(error), error)
            return dataclasses.replace(
                recall, records=(), block=None, trace=dataclasses.replace(recall.trace, failure=error_kind(error))
            )
        trace = dataclasses.replace(recall.trace, block_tokens=estimate_tokens(block))
        return dataclasses.replace(recall, block=block, trace=trace)

    def _switched_off(self) -> Recall:
        return Recall((), None, (), TurnTrace(_DISABLED, namespaces=len(self._store_of), started=time.time()))

    # Reporting

    def _fail(self, kind: str, error: Exception | None = None) -> None:
        """Report a turn that had no memory at all, and raise if the policy says so."""
        log_turn_failure(kind, error)
        self._report(Recall((), None, (), TurnTrace(None, failure=kind, started=time.time())))
        if self._policy.on_failure == "raise":
            raise RecallFailed("turn", kind, None if error is None else type(error).__name__) from error

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

    def _report(self, recall: Recall, turn: Turn | None = None) -> None:
        self._last_recall = recall
        self._count(recall, turn)

    def _count(self, recall: Recall, turn: Turn | None = None) -> None:
        counted = self._stats.add(recall)
        log_failures(recall)
        if counted.alarm and counted.error_rate is not None:
            log_error_rate(counted.error_rate)
        telemetry.record(recall, turn if self._trace_content else None)
        self._write_trace(recall, turn)
        if counted.first_degradation or counted.turns % self._policy.stats_every == 0:
            log_stats(self._stats, self._policy.stats_log)
        if self._on_recall is not None:
            try:
                self._on_recall(recall)
            except Exception as error:
                log_mishap("reason=<%s> | on_recall raised | the turn goes on", type(error).__name__)

    def _count_tool(self, recall: Recall) -> None:
        self._tool_stats.add(recall)
        log_failures(recall)

    def _write_trace(self, recall: Recall, turn: Turn | None) -> None:
        if self._trace_file is None:
            return
        try:
            self._trace_file.write(
                trace_line(
                    recall,
                    memory_id=_STORES,
                    actor_id="",
                    session_id="",
                    namespaces=tuple(self._store_of),
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


class _AgentTurns:
    """One agent's turns: what is asked, what was recalled for it, and where the block is shown.

    Args:
        manager: Who recalls.
        agent: Gets the hooks; they live as long as it does.
    """

    def __init__(self, manager: GatedMemoryManager, agent: Agent) -> None:
        self._manager = manager
        self._injector = BlockInjector(manager._policy.inject.position, lambda: manager.context_tag, _log_unshown)
        self.ask: Message | None = None
        """The message of the conversation that carries the ask of the running turn, or of the last one."""
        self.last: Message | None = None
        """The conversation's last message when the last invocation ended."""
        self.answered = True
        """Whether that invocation has answered the ask."""
        self._awaited: Message | None = None
        """The ask among the invocation's input."""
        self._text = ""
        """What it says: a session manager may add to its message."""
        self._due = False
        """Whether the invocation's recall is still to be made."""
        self._running: object = None
        """Stands for the running invocation, compared by identity."""
        self._enabled = True
        """Whether the running invocation may recall."""
        self._recalled: tuple[str, str | None, bool] | None = None
        """What has been recalled for the ask: its text, the block, and whether recall was switched on."""
        self._injector.attach(agent)
        # Last, so that it sees the messages as other hooks have left them.
        agent.add_hook(self.begin, BeforeInvocationEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self.recall, BeforeModelCallEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self.end, AfterInvocationEvent)

    def begin(self, event: BeforeInvocationEvent) -> None:
        """Note what is asked."""
        self._running, self._due = object(), True
        self._enabled = not _switched_off(event.invocation_state)
        self._awaited = find_ask(event.messages)
        if self._awaited is None:
            self.ask = _unanswered(self, event.agent.messages)  # type: ignore[arg-type]
        else:
            self._text = text_in(self._awaited)
            self.ask = self._recalled = None
        self._injector.hide()

    async def recall(self, event: BeforeModelCallEvent) -> None:
        """Recall for the ask before the invocation's first model call, or show what was recalled for it before."""
        manager, agent = self._manager, event.agent
        if not self._due:
            self._forget_if_redacted(agent.messages)
        if not self._due or event.cancel:
            return
        with manager._counted():
            ask = self._find(agent.messages)
            if ask is None:
                self._due = False
                return
            if self._recalled is not None and self._recalled[0] == self._text and self._recalled[2] >= self._enabled:
                self._due = False
                self._injector.show(self._recalled[1] if self._enabled else None, ask)
                return
            messages = list(agent.messages)
            trigger = manager._injection.get("trigger")
            if self._enabled and callable(trigger) and not trigger(InjectionContext(messages, agent.state, agent)):
                return  # another call of the turn may be the one
            self._due = False
            query: str | None = self._text
            if self._enabled and (derive := manager._injection.get("query")) is not None:
                query = derive(InjectionQueryContext(messages=messages))
            if not self._enabled or not query or not query.strip():
                self._recalled = self._text, None, False
                manager._report(manager._switched_off())
                return
            place = position_of(messages, ask)
            history = messages[: -1 if place is None else place]
            turn = turn_of(self._text, history, manager._policy.turn, self._injector.stored)
            search, running = manager._search_for_turn(query), self._running
            await _in_worker(lambda: self._recall(agent, ask, turn, search, running))

    def _recall(self, agent: Agent, ask: Message, turn: Turn, search: StoreSearch, running: object) -> None:
        manager = self._manager
        recall = manager._recall_for_turn(turn, search)
        if self._running is not running:
            manager._count(recall, turn)  # cancelled meanwhile: another turn may be running
            return
        if manager._policy.inject.mode == "turn":
            self._recalled = turn.text, recall.block, True
            self._injector.show(recall.block, ask)
        else:
            self._recalled = turn.text, None, True
            if recall.block is not None:
                self._injector.store(agent, ask, recall.block)
        manager._report(recall, turn)

    def _forget_if_redacted(self, messages: Sequence[Message]) -> None:
        """Show no block for what the user's message does not say any more: a guardrail has replaced it."""
        place = None if self.ask is None else position_of(messages, self.ask)
        if place is not None and self._text not in text_in(messages[place]):
            self.ask = self._recalled = None
            self._injector.hide()

    def _find(self, messages: Sequence[Message]) -> Message | None:
        """Return the message that carries the ask, None if there is none to recall for."""
        if self._awaited is not None:
            awaited = self._awaited
            self.ask = next((message for message in reversed(messages) if _carries(message, awaited)), None)
            if self.ask is None and self._enabled:
                self._manager._fail("ask_not_found")  # a hook has replaced it
            return self.ask
        place = None if self.ask is None else position_of(messages, self.ask)
        if place is not None:
            ask = messages[place]
            self._text = text_in(ask, self._injector.stored.get(ask.get("tracking_id", ""), ()))
            return ask
        if messages and has_tool_result(messages[-1]) and self._enabled:
            self._manager._fail("ask_not_found")  # the tool was called for an ask that is no longer there
        return None

    def end(self, event: AfterInvocationEvent) -> None:
        """Take the block away, and forget the ask once it is answered."""
        messages, result = event.agent.messages, event.result
        if self._due and self.ask is not None and callable(self._manager._injection.get("trigger")):
            self._manager._report(self._manager._switched_off())
        # An error, a cancellation, or a human who is asked, leaves the ask without an answer whatever the
        # conversation ends with.
        broken_off = result is None or result.stop_reason in ("interrupt", "cancelled")
        made = getattr(result, "structured_output", None) is not None
        self.last = messages[-1] if messages else None
        self.answered = not broken_off and (made or self.last is None or is_answer(self.last))
        self._awaited = self._running = None
        self._due = False
        self._injector.hide()
        if self.answered:
            self.ask = self._recalled = None


class _ToolSearch(MemoryManager):
    """The parent's search tool over a search of ours: it knows the stores by name and description alone."""

    def __init__(
        self,
        stores: Iterable[MemoryStore],
        tool_config: MemoryToolConfig | bool,
        search: Callable[[str, MemorySearchOptions], Any],
    ) -> None:
        named: list[Any] = [
            SimpleNamespace(name=store.name, description=store.description, writable=False, extraction=None)
            for store in stores
        ]
        super().__init__(named, search_tool_config=tool_config, injection=False)
        self._search = search

    async def search(self, query: str, options: MemorySearchOptions | None = None) -> list[MemoryEntry]:
        """Return what our search finds."""
        found: list[MemoryEntry] = await self._search(query, options or MemorySearchOptions())
        return found


async def _in_worker(work: Callable[[], _T]) -> _T:
    """Run something in a worker thread, which goes on if whoever waits is cancelled."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_T] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(settle, result, error)

    call = start(_RECALLS, run, None, StageError)
    if isinstance(call, StageError):
        raise call
    return await done


def _capped(policy: RecallPolicy, injection: MemoryInjectionConfig) -> RecallPolicy:
    """Return the policy with no more records than the parent's setting allows."""
    most = injection.get("max_entries")
    if most is None or (policy.select.max_records is not None and policy.select.max_records <= most):
        return policy
    return policy.model_copy(update={"select": policy.select.model_copy(update={"max_records": most})})


def _with_router(policy: RecallPolicy, **settings: Any) -> RecallPolicy:
    return policy.model_copy(update={"router": policy.router.model_copy(update=settings)})


def _check_names(policy: RecallPolicy, stores: Mapping[str, MemoryStore]) -> None:
    for setting in ("pinned", "descriptions"):
        for name in getattr(policy.router, setting):
            if name not in stores:
                near = difflib.get_close_matches(name, stores, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"they are {', '.join(map(repr, stores))}"
                raise ConfigurationError(
                    f"RecallPolicy.router.{setting} names {name!r}, which is the name of no store; {hint}"
                )
