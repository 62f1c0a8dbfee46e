"""The drop-in for Strands' own memory path: the parent's stores, tools and extraction, and a recall that decides first.

The path of a turn, in reading order: `_begin` learns which of an invocation's messages is the user's ask (`asks.py`);
before the first model call `_recall` runs the pipeline (`recall.py`) in a worker thread, which searches the stores on
the agent's event loop (`retrieval/stores.py`), and hands its block to the injector; `_end` takes the block away once
the ask is answered.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import os
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal, TypeVar, cast, get_args

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

from .core.functions import check_function
from .core.turn import Message, find_ask, position_of, text_in
from .core.types import Recall, Turn
from .deciders.check import CheckMode, check_at_start
from .deciders.resolve import DeciderSpec, resolve_decider
from .errors import ConfigurationError, RecallFailed
from .gated_manager import Conversation, GatedManager, Recalled, checked
from .policy import RecallPolicy, estimate_tokens
from .recall import RecallPipeline
from .reporting.log import FailureLog
from .reporting.report import Report, Searched
from .reporting.reporters import Reporters, StatsReporter
from .reporting.stats import RecallStats
from .reporting.trace_file import DEFAULT_MAX_BYTES
from .retrieval.agentcore import cut_query
from .retrieval.stores import StoreSearch, ToRecord, to_record
from .runtime.search import RecordFilter
from .runtime.threads import PerAgent, WorkerPool, outcome

_T = TypeVar("_T")

ToolResults = Literal["as_is", "validated"]
"""What the `search_memory` tool returns: what the stores found, or of it what the decision model keeps."""

_RECALLS = WorkerPool("gated-memory-recall", size=64, share=64, backlog=128)
"""Runs recalls off the event loop; the loop's own executor may be full of searches that hang."""
_NOT_KEPT_S = 1e-9
"""How long what a pinned store found is used again: it was found for one query, so not at all."""
_INJECTION = ("trigger", "max_entries", "query", "format")
_STORES = "stores"
"""Stands in a trace file for the memory: stores have no id that the manager knows."""


class GatedMemoryManager(GatedManager, MemoryManager):
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
        if record_filter is not None:
            check_function(record_filter, "record_filter", "function(record)")
        stores, given = _checked_stores(stores), _checked_injection(injection)
        validated = tool_results == "validated" and search_tool_config is not False
        super().__init__(stores, False if validated else search_tool_config, add_tool_config, injection=False)
        self._set_up(
            decider=decider,
            policy=policy,
            stats=stats,
            on_recall=on_recall,
            trace_path=trace_path,
            trace_content=trace_content,
            trace_max_bytes=trace_max_bytes,
        )
        self._tool_stats = checked(tool_stats, RecallStats, "tool_stats") or RecallStats()
        self._tool_reporters = Reporters(self._tool_stats, [FailureLog(), StatsReporter(self._tool_stats, "off", 1)])
        self._store_of = {store.name: store for store in stores}
        self._injection: MemoryInjectionConfig = given or {}
        self._recalls = given is not None
        self._policy = _capped(self._policy, self._injection)
        self._policy.router.check_names(self._store_of, "is the name of no store", "they are")
        self._tag = context_tag
        self._to_record = to_record
        self._max_search_results = max_search_results
        self._turns = PerAgent(lambda _: _StoreTurn())
        found = resolve_decider(decider)

        def pipeline(always_searched: Iterable[str], write: Callable[..., str] | None = None) -> RecallPipeline:
            return _WritingPipeline(
                found,
                _with_router(self._policy, pinned=tuple(always_searched), pinned_ttl_s=_NOT_KEPT_S),
                context_tag=context_tag,
                descriptions={store.name: store.description for store in stores},
                decider_key=decider,
                record_filter=record_filter,
            ).writing_with(write)

        self._pipeline = pipeline(self._policy.router.pinned, self._injection.get("format"))
        self._tool_pipeline = pipeline(self._store_of)
        self._validated_tools = (
            _ToolSearch(stores, search_tool_config, self._search_for_tool).tools if validated else []
        )
        check_at_start(found, decider_check, decider)

    @property
    def tool_stats(self) -> RecallStats:
        """The counters of the `search_memory` tool's searches, with `tool_results="validated"`: a turn is a search."""
        return self._tool_stats

    @property
    def context_tag(self) -> str:
        """The tag of the block."""
        return self._tag

    @property
    def tools(self) -> list[AgentTool]:  # type: ignore[override]  # as the parent's is wider than the plugin's
        """The parent's tools; the search tool is the validated one where `tool_results` says so."""
        return [*self._validated_tools, *super().tools]

    async def init_agent(self, agent: Agent) -> None:
        """Set up stores and extraction as the parent does, then recall for this agent."""
        await super().init_agent(agent)
        if self._recalls:
            self._conversation_of(agent)
            agent.add_hook(self._report_missed, AfterInvocationEvent)
            # Last, so that it sees the messages as other hooks have left them.
            agent.add_hook(self._begin, BeforeInvocationEvent, order=HookOrder.SDK_LAST)
            agent.add_hook(self._recall, BeforeModelCallEvent, order=HookOrder.SDK_LAST)
            agent.add_hook(self._end, AfterInvocationEvent)

    def _searched(self) -> Searched:
        return Searched(_STORES, "", "", tuple(self._store_of))

    def _source_now(self, agent: Agent) -> _StoreSource:
        return _StoreSource(self._searched(), self._pipeline, self._turns.of(agent).search)

    def _context_tag(self) -> str:
        return self._tag

    # One turn

    def _begin(self, event: BeforeInvocationEvent) -> None:
        super()._begin(event)
        ask = find_ask(event.messages)
        turn = self._turns.of(event.agent)
        turn.is_due, turn.ask, turn.said = True, None, "" if ask is None else text_in(ask)

    async def _recall(self, event: BeforeModelCallEvent) -> None:
        """Recall for the ask before the invocation's first model call, or show what was recalled for it before."""
        agent, turn = event.agent, self._turns.of(event.agent)
        conversation = self._conversations.of(agent)
        if not turn.is_due:
            self._forget_if_redacted(agent, conversation, turn)
            return
        if event.cancel:
            return
        turn.is_due = False
        with self._counted():
            ask = turn.ask = turn.ask or self._find(agent, conversation, turn)
            turn.is_due = ask is not None and not self._is_ready(agent, conversation, turn)
            if ask is not None and not turn.is_due:
                await _in_worker(lambda: self._recall_for(agent, conversation, ask, turn.said))

    def _find(self, agent: Agent, conversation: Conversation, turn: _StoreTurn) -> Message | None:
        """Return the message that carries the ask, None if there is none."""
        asks, messages = conversation.asks, agent.messages
        if asks.resuming:
            ask, is_gone = asks.resumed(messages)
            if ask is not None:
                turn.said = text_in(ask, conversation.injector.stored.get(ask.get("tracking_id", ""), ()))
            elif is_gone and asks.enabled:
                self._fail("ask_not_found")
            return ask
        text = next((text for message in reversed(messages) if (text := asks.added(message)) is not None), None)
        if text is not None:
            conversation.recalled = None
            # A session manager may have written into the message since; a hook may have taken something out of it.
            turn.said = turn.said if turn.said in text else text
        return asks.ask

    def _is_ready(self, agent: Agent, conversation: Conversation, turn: _StoreTurn) -> bool:
        """Tell whether the application's functions let the recall be made now, and note what it searches for."""
        asks, trigger = conversation.asks, self._injection.get("trigger")
        wanted = Recalled(turn.said, None, asks.enabled)
        turn.search = self._search_for(turn.said, lambda _: self._max_search_results)
        if not asks.enabled or (conversation.recalled is not None and conversation.recalled.serves(wanted)):
            return True
        if callable(trigger) and not trigger(InjectionContext(list(agent.messages), agent.state, agent)):
            return False
        if (derive := self._injection.get("query")) is not None:
            query = derive(InjectionQueryContext(messages=list(agent.messages)))
            if not query or not query.strip():
                asks.enabled = False
            else:
                turn.search = self._search_for(query, lambda _: self._max_search_results)
        return True

    def _forget_if_redacted(self, agent: Agent, conversation: Conversation, turn: _StoreTurn) -> None:
        """Show no block for what the user's message does not say any more: a guardrail has replaced it."""
        ask = conversation.asks.ask
        place = None if ask is None else position_of(agent.messages, ask)
        if ask is not None and place is not None and turn.said not in text_in(agent.messages[place]):
            conversation.asks.redacted(ask)
            conversation.recalled = None
            conversation.injector.hide()

    def _end(self, event: AfterInvocationEvent) -> None:
        turn = self._turns.of(event.agent)
        if turn.is_due and turn.ask is not None:
            self._report_disabled(self._searched())  # no call of the turn was the one
        turn.is_due, turn.ask = False, None  # not its search: a recall that nobody waits for may still begin
        super()._end(event)

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

    async def _search_for_tool(self, query: str, options: MemorySearchOptions) -> list[MemoryEntry]:
        """Return what the stores that a tool names hold for its query, but for what the decision model drops."""
        most, names = options.get("max_search_results"), options["stores"]
        search = self._search_for(query, lambda store: most or store.max_search_results or self._max_search_results)
        turn = Turn(query)
        try:
            recall = await _in_worker(lambda: self._tool_pipeline.recall(turn, names, search))
        except RecallFailed as failed:
            if isinstance(failed.recall, Recall):
                self._tool_reporters.report(Report(failed.recall, self._searched()))
            raise
        self._tool_reporters.report(Report(recall, self._searched()))
        return [search.entry_of(record) for record in recall.records]


@dataclass
class _StoreTurn:
    """The running invocation of one agent."""

    is_due: bool = False
    """Whether its recall is still to be made."""
    ask: Message | None = None
    """The message that carries its ask, once that is found."""
    said: str = ""
    """What the ask says."""
    search: StoreSearch | None = None
    """What its recall searches with."""


@dataclass(frozen=True)
class _StoreSource:
    """What one turn searches."""

    searched: Searched
    pipeline: RecallPipeline
    search: StoreSearch | None
    configured: Hashable = None
    """Nothing changes."""

    def search_for(self, query: str) -> StoreSearch:  # noqa: ARG002 - the search was made on the loop, with its query
        """Return the turn's search."""
        assert self.search is not None
        return self.search


class _WritingPipeline(RecallPipeline):
    """A pipeline whose block may be written by a function of the application."""

    _write: Callable[..., str] | None = None

    def writing_with(self, write: Callable[..., str] | None) -> _WritingPipeline:
        """Write blocks with a function, the parent's setting `format`; None: as ever."""
        self._write = write
        return self

    def recall(self, turn: Turn, namespaces: Iterable[str], search: Any) -> Recall:
        """Recall as ever, and write the block."""
        recall = super().recall(turn, namespaces, search)
        if self._write is None or not recall.records:
            return recall
        block = self._write(InjectionFormatContext(entries=[search.entry_of(record) for record in recall.records]))
        return replace(recall, block=block, trace=replace(recall.trace, block_tokens=estimate_tokens(block)))


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
        came_of_it = outcome(work)
        with contextlib.suppress(RuntimeError):  # the loop has ended: nobody waits
            loop.call_soon_threadsafe(settle, *came_of_it)

    _RECALLS.submit(run)
    return await done


def _checked_stores(stores: Any) -> list[MemoryStore]:
    """Return the stores as a list; the parent checks what they are.

    Raises:
        ConfigurationError: They cannot be listed, or one has no name that a decision or a tool could say.
    """
    if isinstance(stores, str) or not isinstance(stores, Iterable):
        raise ConfigurationError(f"stores must be a list of memory stores, got {type(stores).__name__}")
    listed = list(stores)
    for store in listed:
        name = getattr(store, "name", None)
        if not isinstance(name, str) or not name.strip():
            raise ConfigurationError(
                f"a store of type {type(store).__name__} needs a name that is a text, got {name!r}"
            )
    return listed


def _checked_injection(injection: Any) -> MemoryInjectionConfig | None:
    """Return the parent's setting as a mapping, None for no recall.

    Raises:
        ConfigurationError: It is neither a truth value nor a mapping, has an unknown key or trigger, or a function in
            it cannot be called as the parent calls it.
    """
    if isinstance(injection, bool):
        return MemoryInjectionConfig() if injection else None
    if not isinstance(injection, dict):
        raise ConfigurationError(f"injection must be True, False or a mapping, got {injection!r}")
    for name, value in injection.items():
        if name not in _INJECTION:
            near = difflib.get_close_matches(str(name), _INJECTION, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(_INJECTION)}"
            raise ConfigurationError(f"injection has no setting {name!r}; {hint}")
        if name == "trigger" and value in (None, "userTurn", "everyTurn"):
            continue
        if name == "trigger" and isinstance(value, str):
            raise ConfigurationError(f'injection trigger must be "userTurn", "everyTurn" or a function, got {value!r}')
        if name != "max_entries" and value is not None:
            check_function(value, f"injection {name}", "function(context)")
    return cast("MemoryInjectionConfig", injection)


def _capped(policy: RecallPolicy, injection: MemoryInjectionConfig) -> RecallPolicy:
    """Return the policy with no more records than the parent's setting allows."""
    most = injection.get("max_entries")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        raise ConfigurationError(f"injection max_entries must be a whole number from 0 up, got {most!r}")
    if most is None or (policy.select.max_records is not None and policy.select.max_records <= most):
        return policy
    return policy.model_copy(update={"select": policy.select.model_copy(update={"max_records": most})})


def _with_router(policy: RecallPolicy, **settings: Any) -> RecallPolicy:
    return policy.model_copy(update={"router": policy.router.model_copy(update=settings)})
