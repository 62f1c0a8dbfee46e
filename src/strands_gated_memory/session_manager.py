"""The drop-in session manager: the stock manager's write path, and a recall that decides before it searches.

The path of a turn, in reading order: `initialize` attaches an injector to the agent; `_begin` learns which of an
invocation's messages is the user's ask (`asks.py`); Strands adds that message, the parent stores it, and
`retrieve_customer_context` runs the pipeline (`recall.py`) and hands its block to the injector; `_end` takes the block
away once the ask is answered. An invocation without a text of the user goes on with the last ask that has no answer:
`_resume` keeps its block, or recalls for it before the first model call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

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
from .core.functions import check_function
from .core.types import Recall
from .deciders.check import CheckMode, check_at_start
from .deciders.resolve import DeciderSpec, resolve_decider
from .gated_manager import GatedManager, warn_about_unknown
from .policy import RecallPolicy
from .recall import RecallPipeline
from .reporting.log import warn_once
from .reporting.report import Searched
from .reporting.stats import RecallStats
from .reporting.trace_file import DEFAULT_MAX_BYTES
from .runtime.search import RecordFilter
from .source import (
    Source,
    search_client,
    searched_of,
    searches_of,
    source_of,
    strategies_of,
    warn_about_own_summaries,
)

_NEVER_REMOVES = NullConversationManager
"""The conversation manager that is known to keep everything; one of an application's may do anything."""


class GatedMemorySessionManager(GatedManager, AgentCoreMemorySessionManager):
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
        config = agentcore_memory_config
        warn_about_unknown(kwargs, AgentCoreMemorySessionManager, GatedMemorySessionManager)
        self._set_up(
            decider=decider,
            policy=policy,
            stats=stats,
            on_recall=on_recall,
            trace_path=trace_path,
            trace_content=trace_content,
            trace_max_bytes=trace_max_bytes,
        )
        if record_filter is not None:
            check_function(record_filter, "record_filter", "function(record)")
        searches = searches_of(config, self._policy)
        pipeline = RecallPipeline(
            resolve_decider(decider),
            self._policy,
            context_tag=config.context_tag,
            strategies=strategies_of(config),
            decider_key=decider,
            target=config.memory_id,
            record_filter=record_filter,
        )
        boto_session = boto_session or boto3.Session(region_name=region_name)
        super().__init__(config, region_name, boto_session, boto_client_config, converter=converter, **kwargs)
        client = search_client(boto_session, region_name, boto_client_config, self._policy, len(searches))
        self._source = source_of(config, self._policy, pipeline, searches, client)
        self._warn_if_wrapped()
        check_at_start(pipeline.decider, decider_check, decider)

    @property
    def _pipeline(self) -> RecallPipeline:  # type: ignore[override]
        return self._source.pipeline

    def _searched(self) -> Searched:
        try:
            return searched_of(self.config)
        except (AttributeError, TypeError, ValueError):  # the configuration may be what failed
            return self._source.searched

    def _source_now(self, agent: Agent) -> Source:
        self._source = self._source.of_now(self.config, self._policy)
        return replace(self._source, holds_beginning=self._holds_beginning(agent))

    def _context_tag(self) -> str:
        return self.config.context_tag

    # Strands' hooks, in the order in which a turn meets them

    def initialize(self, agent: Any, **kwargs: Any) -> None:
        """Restore the session as the parent does, then attach the injector to the agent, once."""
        # Private to Strands; without it every session counts as an old one, of which the summary is recalled.
        is_new, before = getattr(self, "_is_new_session", False), getattr(agent, "messages", None)
        super().initialize(agent, **kwargs)
        self._warn_if_wrapped()
        conversation = self._conversation_of(agent)
        if conversation is None:
            return
        # The parent sets another list when it restores; it cannot tell a failure to from an empty session.
        restored = agent.messages is not before and bool(agent.messages)
        whole = is_new or (restored and not self.config.filter_restored_tool_context)
        conversation.beginning = Beginning(whole, agent.messages)
        if whole and self._policy.retrieve.skip_own_summary and type(agent.conversation_manager) is _NEVER_REMOVES:
            warn_about_own_summaries(self.config, self._policy, _NEVER_REMOVES.__name__)

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        """Register the parent's hooks and those that bound a turn."""
        # Callbacks of this event run last first: whatever this one raises, the parent has stored the turn.
        registry.add_callback(AfterInvocationEvent, self._report_missed)
        super().register_hooks(registry, **kwargs)
        # Last, so that it sees the messages as other hooks have left them.
        registry.add_callback(BeforeInvocationEvent, self._begin, order=HookOrder.SDK_LAST)
        resume = self._resume_in_thread if self.config.async_mode else self._resume
        registry.add_callback(BeforeModelCallEvent, resume, order=HookOrder.SDK_LAST)
        registry.add_callback(AfterInvocationEvent, self._end)

    def retrieve_customer_context(self, event: MessageAddedEvent) -> None:
        """Recall for the message just added, if it is the user's ask of the running invocation.

        Tool results, structured-output prompts and recorded direct tool calls are not.

        Args:
            event: Strands' event; its message is not changed.

        Raises:
            RecallFailed: Anything failed, and the policy's `on_failure` is "raise"; it has been counted.
        """
        with self._counted():
            conversation = self._conversation_of(event.agent)
            text = None if conversation is None else conversation.asks.added(event.message)
            if conversation is not None and text is not None:
                conversation.recalled = None
                self._recall_for(event.agent, conversation, event.message, text)

    def redact_latest_message(self, redact_message: Any, agent: Any, **kwargs: Any) -> None:
        """Redact the message as the parent does; a block that was recalled for what it said is not shown again."""
        conversation = self._conversation_of(agent)
        if conversation is not None and conversation.asks.redacted(redact_message):
            conversation.recalled = None
            conversation.injector.hide()
        super().redact_latest_message(redact_message, agent, **kwargs)

    def close(self) -> None:
        """Flush what the parent holds, and log the counters; those shared with other managers now and then only."""
        try:
            super().close()
        finally:
            self._stats_reporter.close()

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        try:
            super().__exit__(exc_type, exc_val, exc_tb)
        finally:
            self._stats_reporter.close()

    def _holds_beginning(self, agent: Agent) -> bool:
        """Tell whether the conversation says what the session's summary does: no other agent has spoken in it."""
        conversation = self._conversations.of(agent)
        if conversation.beginning is None or len(self._conversations) > 1:
            return False
        removed = getattr(agent.conversation_manager, "removed_message_count", None)
        return conversation.beginning.is_held(agent.messages, removed)

    def _warn_if_wrapped(self) -> None:
        """Tell whoever filters or counts in the parent's search that ours passes it by."""
        own = getattr(self.memory_client, "retrieve_memories", None)
        function = getattr(own, "__func__", own)
        if getattr(function, "__globals__", None) is not vars(bedrock_agentcore.memory.client):
            warn_once(
                "memory_client.retrieve_memories is wrapped or overridden | searches of this manager do not go through "
                "it | filter with GatedMemorySessionManager(record_filter=...), or watch with on_recall="
            )
