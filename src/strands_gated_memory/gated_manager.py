"""What a manager has around its recalls: the decision model and policy, what is told of each turn, the last net."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import inspect
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent

from .asks import Asks
from .core.beginning import Beginning
from .core.functions import check_function
from .core.questions import Decider
from .core.turn import Message, position_of, text_in, turn_of
from .core.types import GateDecision, Recall, Turn, TurnTrace
from .deciders.resolve import DeciderSpec
from .deciders.warming import load_now
from .errors import ConfigurationError, RecallFailed, error_kind
from .injection.block_injector import BlockInjector
from .policy import CutsInForce, RecallPolicy
from .recall import RecallPipeline
from .reporting.log import FailureLog, log_debug, log_mishap, log_turn_failure
from .reporting.report import Report, Reporter, Searched
from .reporting.reporters import Callback, Reporters, StatsReporter
from .reporting.stats import RecallStats
from .reporting.telemetry import Metrics, Spans
from .reporting.trace_file import TraceFile, TraceReporter
from .runtime.search import Search
from .runtime.threads import PerAgent

_T = TypeVar("_T")

_DISABLED = GateDecision(False, None, {}, (), "disabled")


class Source(Protocol):
    """What is searched for one turn, and for whom."""

    @property
    def configured(self) -> Hashable:
        """What it depends on; equal where nothing has changed."""
        ...

    @property
    def searched(self) -> Searched:
        """What reports say of it."""
        ...

    @property
    def pipeline(self) -> RecallPipeline:
        """What decides and searches."""
        ...

    def search_for(self, query: str) -> Search:
        """Return the search of one turn: a function from namespace to records."""
        ...


@dataclass
class Conversation:
    """One agent's conversation."""

    injector: BlockInjector
    asks: Asks = field(default_factory=Asks)
    beginning: Beginning | None = None
    """The beginning of its session, where that is known."""
    recalled: Recalled | None = None
    """What has been recalled for the ask."""


@dataclass(frozen=True, repr=False)
class Recalled:
    """A recall that is over, and what it was for: it is kept while the ask, and what is searched, stay the same."""

    text: str
    configured: Hashable
    enabled: bool
    """Whether recall was switched on."""
    block: str | None = None

    def serves(self, other: Recalled) -> bool:
        """Tell whether it is what would be recalled now; one that was switched off serves no call with recall on.

        It lives no longer than its ask is without an answer, so the same text is the same ask, though the
        application may have rebuilt the conversation meanwhile.
        """
        return (self.text, self.configured) == (other.text, other.configured) and self.enabled >= other.enabled


class GatedManager(ABC):
    """The part that `GatedMemorySessionManager` and `GatedMemoryManager` have in common."""

    _policy: RecallPolicy
    _pipeline: RecallPipeline
    """The pipeline in use."""

    def _set_up(
        self,
        *,
        decider: DeciderSpec,
        policy: RecallPolicy | None,
        stats: RecallStats | None,
        on_recall: Callable[[Recall], None] | None,
        trace_path: str | os.PathLike[str] | None,
        trace_content: bool,
        trace_max_bytes: int,
    ) -> None:
        """Check and keep the settings, and make the list of reporters; see the managers' arguments."""
        self._decider_spec = decider
        self._policy = checked(policy, RecallPolicy, "policy") or RecallPolicy()
        self._stats = checked(stats, RecallStats, "stats") or RecallStats()
        self._stats.count_manager()
        content = bool(checked(trace_content, bool, "trace_content"))
        self._stats_reporter = StatsReporter(self._stats, self._policy.stats_log, self._policy.stats_every)
        reporters: list[Reporter] = [FailureLog(), Metrics(), Spans(content)]
        if trace_path is not None:
            reporters.append(TraceReporter(TraceFile(trace_path, max_bytes=trace_max_bytes), content))
        reporters.append(self._stats_reporter)
        if on_recall is not None:
            check_function(on_recall, "on_recall", "function(recall)")
            reporters.append(Callback(on_recall))
        self._reporters = Reporters(self._stats, reporters)
        self._last_recall: Recall | None = None
        self._conversations = PerAgent(self._new_conversation)

    @abstractmethod
    def _searched(self) -> Searched:
        """Return where this manager searches now, for reports."""

    @abstractmethod
    def _source_now(self, agent: Agent) -> Source:
        """Return what a turn of an agent that begins now searches."""

    @abstractmethod
    def _context_tag(self) -> str:
        """Return the tag of the block now."""

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
        return self._policy.with_in_force(self._pipeline.cuts_in_force(), self._pipeline.deadline_in_force())

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

    # One turn, in the order in which an agent meets it

    def _begin(self, event: BeforeInvocationEvent) -> None:
        conversation = self._conversation_of(event.agent)
        if conversation is not None:
            conversation.asks.begin(event.messages, event.agent.messages, event.invocation_state)
            conversation.injector.hide()

    def _resume(self, event: BeforeModelCallEvent) -> None:
        """Show what was recalled for the ask of an invocation without a text of the user, or recall for it now."""
        conversation = self._conversation_of(event.agent)
        if conversation is None or not conversation.asks.resuming or event.cancel:
            return
        with self._counted():
            ask, is_gone = conversation.asks.resumed(event.agent.messages)
            if ask is not None:
                text = text_in(ask, conversation.injector.stored.get(ask.get("tracking_id", ""), ()))
                self._recall_for(event.agent, conversation, ask, text)
            elif is_gone and conversation.asks.enabled and self._source_now(event.agent).searched.namespaces:
                self._fail("ask_not_found")

    async def _resume_in_thread(self, event: BeforeModelCallEvent) -> None:
        conversation = self._conversation_of(event.agent)
        if conversation is not None and conversation.asks.resuming:
            await asyncio.to_thread(self._resume, event)

    def _recall_for(self, agent: Agent, conversation: Conversation, ask: Message, text: str) -> None:
        """Recall for an ask and show the block, or show the block that was recalled for it before."""
        source = self._source_now(agent)
        asks, injector = conversation.asks, conversation.injector
        if not source.searched.namespaces:
            return
        invocation, wanted = asks.invocation, Recalled(text, source.configured, asks.enabled)
        if conversation.recalled is not None and conversation.recalled.serves(wanted):
            if asks.enabled:
                injector.show(conversation.recalled.block, ask)
            return
        if not asks.enabled:
            conversation.recalled = wanted
            self._report_disabled(source.searched)
            return
        place = position_of(agent.messages, ask)
        history = agent.messages[: -1 if place is None else place]
        turn = turn_of(text, history, self._policy.turn, injector.stored)
        try:
            recall = source.pipeline.recall(turn, source.searched.namespaces, source.search_for(text))
        except RecallFailed as failed:
            if isinstance(failed.recall, Recall):
                self._report(failed.recall, source.searched, turn)
            raise
        # Cancelled meanwhile, in async mode, another turn may be running, and its recall be the latest.
        latest = asks.invocation is invocation
        if latest:
            conversation.recalled = wanted
            if self._policy.inject.mode == "turn":
                conversation.recalled = replace(wanted, block=recall.block)
                injector.show(recall.block, ask)
            elif recall.block is not None:
                injector.store(agent, ask, recall.block)
        self._report(recall, source.searched, turn, latest=latest)

    def _end(self, event: AfterInvocationEvent) -> None:
        conversation = self._conversation_of(event.agent)
        if conversation is not None:
            conversation.injector.hide()
            if conversation.asks.end(event.agent.messages, event.result):
                conversation.recalled = None

    def _report_missed(self, event: AfterInvocationEvent) -> None:
        conversation = self._conversation_of(event.agent)
        if conversation is not None and conversation.asks.missed and self._searched().namespaces:
            # Something replaced the ask's message between the start of the invocation and the conversation.
            conversation.asks.missed = False
            self._fail("ask_not_found")

    # Agents
    def _conversation_of(self, agent: Any) -> Conversation | None:
        """Return what is kept for an agent, attaching the injector at first sight; None for a BidiAgent."""
        return self._conversations.of(agent) if isinstance(agent, Agent) else None

    def _new_conversation(self, agent: Agent) -> Conversation:
        injector = BlockInjector(self._policy.inject.position, self._context_tag, _log_unshown)
        injector.attach(agent)
        return Conversation(injector)

    # What is told of it

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """Count what fails unexpectedly; nothing of it raises, unless the policy says so."""
        try:
            yield
        except RecallFailed:
            raise
        except Exception as error:  # the last net: a recall never breaks a turn
            log_debug("unexpected failure of a recall")
            self._fail(error_kind(error), error)

    def _fail(self, kind: str, error: Exception | None = None) -> None:
        """Report a turn that had no memory at all, and raise if the policy says so."""
        log_turn_failure(kind, error)
        self._report(Recall((), None, (), TurnTrace(None, failure=kind, started=time.time())), self._searched())
        if self._policy.on_failure == "raise":
            raise RecallFailed("turn", kind, None if error is None else type(error).__name__) from error

    def _report_disabled(self, searched: Searched) -> None:
        """Report a turn for which the caller has switched recall off."""
        trace = TurnTrace(_DISABLED, namespaces=len(searched.namespaces), started=time.time())
        self._report(Recall((), None, (), trace), searched)

    def _report(self, recall: Recall, searched: Searched, turn: Turn | None = None, *, latest: bool = True) -> None:
        """Tell every reporter of a turn.

        Args:
            recall: What came of it.
            searched: Where.
            turn: What was asked.
            latest: Whether it is the latest turn; not, when it was cancelled and another one is running.
        """
        if latest:
            self._last_recall = recall
        self._reporters.report(Report(recall, searched, turn))


def _log_unshown(error: Exception) -> None:
    log_mishap("reason=<%s> | the recall block cannot be shown | the model is called without", type(error).__name__)


def checked(value: Any, kind: type[_T], name: str) -> _T | None:
    """Return an argument that must be of a class, or None.

    Raises:
        ConfigurationError: It is neither.
    """
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be a {kind.__name__}, got {value!r}")
    return value


def warn_about_unknown(arguments: Mapping[str, Any], *accepting: type[Any]) -> None:
    """Warn about keyword arguments that none of the classes takes, as these are now."""
    names = [name for cls in accepting for name in inspect.signature(cls).parameters if name != "kwargs"]
    known = tuple(dict.fromkeys(names))
    for name in arguments:
        if name in known:
            continue
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        warnings.warn(
            f"{accepting[-1].__name__} has no argument {name!r} and ignores it; {hint}", UserWarning, stacklevel=3
        )
