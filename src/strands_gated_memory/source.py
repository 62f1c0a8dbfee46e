"""What an AgentCore configuration names: the memory, whose it is, and how each of its namespaces is searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig
from botocore.config import Config as BotocoreConfig

from .policy import RecallPolicy, warn_caller
from .recall import RecallPipeline
from .reporting.log import warn_once
from .reporting.report import Searched
from .retrieval.agentcore import AgentCoreRetriever, NamespaceSearch, check_template, fill
from .runtime.search import Search

_CONNECT_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class Source:
    """What is searched, and for whom. Made anew when the configuration changes: a recall under way keeps its own.

    Attributes:
        configured: What of the configuration it depends on; equal where nothing has changed.
        searched: What reports say of it.
        pipeline: Decides and searches.
        retriever: Searches one namespace.
        holds_beginning: Whether the running conversation still holds the beginning of the session.
    """

    configured: tuple[Any, ...]
    searched: Searched
    pipeline: RecallPipeline
    retriever: AgentCoreRetriever
    holds_beginning: bool = True

    def search_for(self, query: str) -> Search:
        """Return the search of one turn: a function from namespace to records."""
        return self.retriever.search_for(query, holds_beginning=self.holds_beginning)

    def of_now(self, config: AgentCoreMemoryConfig, policy: RecallPolicy) -> Source:
        """Return the source that the configuration names now: the parent reads it on every turn, and so must this."""
        configured = _configured(config)
        if configured == self.configured:
            return self
        searches = searches_of(config, policy)
        return replace(
            self,
            configured=configured,
            searched=searched_of(config),
            pipeline=self.pipeline.moved_to(
                config.memory_id, context_tag=config.context_tag, strategies=strategies_of(config)
            ),
            retriever=self.retriever.moved_to(config.memory_id, config.session_id, searches),
        )


def source_of(
    config: AgentCoreMemoryConfig,
    policy: RecallPolicy,
    pipeline: RecallPipeline,
    searches: dict[str, NamespaceSearch],
    client: Any,
) -> Source:
    """Return the source of a configuration.

    Args:
        config: The parent's configuration.
        policy: The policy.
        pipeline: Made for the same configuration.
        searches: As `searches_of` returns them.
        client: A `bedrock-agentcore` client.
    """
    skip = policy.retrieve.skip_own_summary
    retriever = AgentCoreRetriever(client, config.memory_id, config.session_id, searches, skip_own_summary=skip)
    return Source(_configured(config), searched_of(config), pipeline, retriever)


def searched_of(config: AgentCoreMemoryConfig) -> Searched:
    """Return what reports say of a configuration."""
    return Searched(config.memory_id, config.actor_id, config.session_id, tuple(config.retrieval_config or ()))


def strategies_of(config: AgentCoreMemoryConfig) -> dict[str, str]:
    """Return the strategy of each namespace that has one."""
    return {name: one.strategy_id for name, one in (config.retrieval_config or {}).items() if one.strategy_id}


def _configured(config: AgentCoreMemoryConfig) -> tuple[Any, ...]:
    searched = tuple(
        (name, retrieval.top_k, retrieval.relevance_score, retrieval.strategy_id)
        for name, retrieval in (config.retrieval_config or {}).items()
    )
    return config.memory_id, config.actor_id, config.session_id, config.context_tag, searched


def searches_of(config: AgentCoreMemoryConfig, policy: RecallPolicy) -> dict[str, NamespaceSearch]:
    """Return how each configured namespace is searched.

    Raises:
        ConfigurationError: A template cannot be filled, or the policy names a namespace that is not configured.
    """
    configured = config.retrieval_config or {}
    if not configured:
        warn_once(
            f"retrieval_config is {'None' if config.retrieval_config is None else 'empty'} | no namespace to search | "
            "nothing will ever be recalled; write AgentCoreMemoryConfig(retrieval_config="
            '{"/facts/{actorId}/": RetrievalConfig()}) with the namespaces of your strategies'
        )
    policy.router.check_names(configured, "is not in retrieval_config", "it has")
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


def warn_about_own_summaries(config: AgentCoreMemoryConfig, policy: RecallPolicy, keeps_all: str) -> None:
    """Warn about namespaces that hold nothing but summaries of what the conversation holds anyway.

    Args:
        config: The parent's configuration.
        policy: The policy.
        keeps_all: The name of the conversation manager, which never removes anything.
    """
    for name, search in searches_of(config, policy).items():
        if search.finds_own_summaries_alone:
            warn_caller(
                f"namespace {name!r} will find nothing: it holds summaries of the running session alone, which are "
                f"left out while the conversation holds what they sum up, and a {keeps_all} never removes any of it; "
                f"take the namespace out of retrieval_config, or write {name.partition('{sessionId}')[0]!r} for those "
                "of every session, or set RecallPolicy(retrieve={'skip_own_summary': False})"
            )


def search_client(
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
