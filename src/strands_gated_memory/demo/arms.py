"""One conversation through three managers, of a session or of memory, measured at the model and at the service.

Every figure of an arm is read off what the model was shown and what the service was asked, the same way
for all three, so that no arm reports on itself.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import boto3
from bedrock_agentcore.memory.client import MemoryClient
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.memorystore import AgentCoreMemoryStore
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from strands import Agent, tool
from strands.memory import MemoryManager, MemoryStore

from ..core.block import escape
from ..core.gate import describe
from ..core.questions import Decider
from ..core.render import render_record
from ..core.types import Recall
from ..memory_manager import GatedMemoryManager
from ..policy import RecallPolicy, estimate_tokens
from ..reporting.stats import RecallStats
from ..session_manager import GatedMemorySessionManager
from ..testing.agentcore import local_agentcore, seed_records
from ..testing.model import Reply, ScriptedModel, ToolCall, blocks_shown
from .persona import MUST_HAVE, Persona, PersonaTurn

LOOKUP_MS = 529
"""Modelled time of one turn's memory lookup: 4,230 ms over 8 lookups, as the original post measured it."""
TOP_K = 10
USED_RECORDS = 2
"""How many records the offline model's answer mentions."""
REGION = "us-east-1"
ARMS = ("stock", "ungated", "gated")

Path = Literal["session-manager", "memory-manager"]
"""What recalls: `session_manager=` or `memory_manager=` of the agent."""
_STOCK_MEMORY_TAG = "memory"
"""The tag of the block of Strands' own memory manager."""


@dataclass(frozen=True)
class TurnResult:
    """What one turn looked like from outside."""

    turn: PersonaTurn
    lookups: int
    """Requests to RetrieveMemoryRecords."""
    block: str
    """The recall block in the newest message that the model was shown; "" without one."""
    memory_tokens: int
    """Tokens of all recall blocks over all model calls of the turn, old blocks included."""
    recall: Recall | None
    """The manager's own account; None for the stock manager."""


@dataclass
class ArmResult:
    """One arm's conversation."""

    name: str
    turns: list[TurnResult] = field(default_factory=list)
    stats: RecallStats | None = None
    shown_after_tool: bool | None = None
    """Whether the model call after a tool result had a recall block, on a turn of its own; None: not tried."""


def run_arms(
    persona: Persona, decider: Decider, encoder: Any = None, path: Path = "session-manager"
) -> dict[str, ArmResult]:
    """Run the conversation through every arm on an emulated AgentCore Memory.

    Args:
        persona: Records and conversation.
        decider: The gated arm's decision model.
        encoder: Ranks records for a query in the emulation; default the embedded encoder.
        path: What recalls.
    """
    with local_agentcore(region_name=REGION, encoder=encoder) as memory:
        session = boto3.Session(region_name=REGION)  # one for all: each would load the service models anew
        seed_records(
            session.client("bedrock-agentcore"),
            memory.memory_id,
            [{"text": record.text, "namespace": persona.template(record.namespace)} for record in persona.records],
            actor_id=persona.actor_id,
        )

        def manager(name: str) -> Any:
            decides = decider if name == "gated" else None
            if path == "memory-manager":
                return _memory_manager(name, persona, memory, decides, session)
            return _session_manager(name, persona, memory, decides, session)

        results = {name: run_conversation(name, persona, memory, manager(name)) for name in ARMS}
        asks = [turn.user for turn in persona.conversation if turn.needs_memory]
        if path == "memory-manager" and asks:
            for name, arm in results.items():
                arm.shown_after_tool = _is_shown_after_tool(asks[0], manager(name))
        return results


def _session_manager(
    name: str, persona: Persona, memory: Any, decider: Decider | None, session: boto3.Session
) -> AgentCoreMemorySessionManager:
    config = arm_config(name, persona, memory)
    if name == "stock":
        return AgentCoreMemorySessionManager(config, boto_session=session)
    return GatedMemorySessionManager(
        config, boto_session=session, decider=decider, policy=RecallPolicy(stats_log="off")
    )


def _memory_manager(
    name: str, persona: Persona, memory: Any, decider: Decider | None, session: boto3.Session
) -> MemoryManager:
    """Return a manager over a store per namespace, which says and finds what the session manager's namespace does."""
    client = MemoryClient(region_name=REGION, boto3_session=session)
    stores: list[MemoryStore] = [
        AgentCoreMemoryStore(
            memory_id=memory.memory_id,
            actor_id=persona.actor_id,
            session_id=f"demo-{name}",
            namespace=persona.template(key),
            name=key,
            description=describe(persona.template(key)),
            min_score=RetrievalConfig().relevance_score,
            client=client,
        )
        for key in persona.namespaces
    ]
    if name == "stock":
        return MemoryManager(stores)
    return GatedMemoryManager(stores, decider=decider, policy=RecallPolicy(stats_log="off"), max_search_results=TOP_K)


def _is_shown_after_tool(ask: str, manager: MemoryManager) -> bool:
    """Tell whether a recall block is there on the model call after a tool result."""

    @tool
    def clock() -> str:
        """Tell the time."""
        return "noon"

    model = ScriptedModel([ToolCall("clock", {}), "It is noon."])
    Agent(model=model, memory_manager=manager, tools=[clock], callback_handler=None)(ask)
    return bool(blocks_shown(model.calls[-1], _tag_of(manager)))


def _tag_of(manager: Any) -> str:
    if isinstance(manager, MemoryManager):
        return manager.context_tag if isinstance(manager, GatedMemoryManager) else _STOCK_MEMORY_TAG
    tag: str = manager.config.context_tag
    return tag


def arm_config(name: str, persona: Persona, memory: Any) -> AgentCoreMemoryConfig:
    """Return a session of an arm's own over all of the persona's namespaces."""
    return AgentCoreMemoryConfig(
        memory_id=memory.memory_id,
        session_id=f"demo-{name}-{uuid.uuid4().hex[:8]}",
        actor_id=persona.actor_id,
        retrieval_config={persona.template(key): RetrievalConfig(top_k=TOP_K) for key in persona.namespaces},
    )


def run_conversation(name: str, persona: Persona, memory: Any, manager: Any) -> ArmResult:
    """Have a real agent go through the conversation with one manager, and close a session manager.

    Args:
        name: The arm's.
        persona: The conversation.
        memory: The `LocalAgentCore` that the manager's clients talk to.
        manager: A session manager or a memory manager of Strands.
    """
    arm = ArmResult(name, stats=getattr(manager, "stats", None))
    tag = _tag_of(manager)
    model = ScriptedModel(_answering(tag))
    role = "memory_manager" if isinstance(manager, MemoryManager) else "session_manager"
    agent = Agent(model=model, callback_handler=None, **{role: manager})
    for turn in persona.conversation:
        asked, shown = len(memory.calls), len(model.calls)
        agent(turn.user)
        calls = model.calls[shown:]
        newest = blocks_shown(calls[-1][-1:], tag)
        arm.turns.append(
            TurnResult(
                turn=turn,
                lookups=sum(call.operation == "RetrieveMemoryRecords" for call in list(memory.calls)[asked:]),
                block=newest[-1] if newest else "",
                memory_tokens=sum(estimate_tokens(block) for call in calls for block in blocks_shown(call, tag)),
                recall=getattr(manager, "last_recall", None),
            )
        )
    if role == "session_manager":
        manager.close()
    return arm


def _answering(tag: str) -> Callable[[list[Any]], Reply]:
    """Return a model's answers that use the block of the newest message: the first lines of it, if there is one."""

    def answer(messages: list[Any]) -> Reply:
        blocks = blocks_shown(messages[-1:], tag)
        if not blocks:
            return "Happy to help with that."
        used = _inner(blocks[-1]).splitlines()[:USED_RECORDS]
        return "Going by what you have told me before: " + " ".join(line.rstrip(".") + "." for line in used)

    return answer


def arm_figures(arm: ArmResult, persona: Persona) -> dict[str, Any]:
    """Return one arm's figures, keyed as `demo --json` prints them."""
    present = [records_in(turn.block, persona) for turn in arm.turns]
    must_haves = [
        is_stated(name, ids, persona)
        for turn, ids in zip(arm.turns, present, strict=True)
        for name, grade in turn.turn.relevant.items()
        if grade == MUST_HAVE
    ]
    retrievals = sum(turn.lookups > 0 for turn in arm.turns)
    counts: Mapping[str, Any] = arm.stats.as_dict() if arm.stats else {}
    after_tool = {} if arm.shown_after_tool is None else {"block_after_tool_result": arm.shown_after_tool}
    return {
        "retrievals": retrievals,
        "lookups": sum(turn.lookups for turn in arm.turns),
        "records_injected": sum(map(len, present)),
        "context_tokens": sum(estimate_tokens(turn.block) for turn in arm.turns),
        "conversation_memory_tokens": sum(turn.memory_tokens for turn in arm.turns),
        "modelled_memory_service_ms": LOOKUP_MS * retrievals,
        "decider_calls": counts.get("decider_calls", 0),
        "decider_ms": counts.get("decider_ms", 0.0),
        "decider_errors": counts.get("decider_errors", 0),
        "must_have_recall": sum(must_haves) / len(must_haves) if must_haves else None,
        "closed_turns": [turn.turn.turn for turn in arm.turns if _outcome(turn) == "closed"],
        **after_tool,
    }


def turn_rows(arm: ArmResult, persona: Persona) -> list[dict[str, Any]]:
    """Return the gated arm's decisions, one row a turn, keyed as `demo --json` prints them."""
    rows = []
    for result in arm.turns:
        gate = result.recall.trace.gate if result.recall else None
        present = records_in(result.block, persona)
        rows.append(
            {
                "turn": result.turn.turn,
                "user": result.turn.user,
                "needs_memory": result.turn.needs_memory,
                "gate": _outcome(result),
                "probability": gate.probability if gate else None,
                "namespaces": dict(gate.namespaces) if gate else {},
                "searched": list(gate.selected) if gate else [],
                "records_injected": len(present),
                "context_tokens": estimate_tokens(result.block),
                "missing": sorted(
                    name
                    for name, grade in result.turn.relevant.items()
                    if grade == MUST_HAVE and not is_stated(name, present, persona)
                ),
            }
        )
    return rows


def _outcome(result: TurnResult) -> str | None:
    gate = result.recall.trace.gate if result.recall else None
    return gate.outcome if gate else None


def records_in(block: str, persona: Persona) -> set[str]:
    """Return the ids of the records whose text, as stored or rendered, is a line of a block."""
    inner = _inner(block)
    lines = {line.strip() for line in inner.splitlines()}
    return {record.id for record in persona.records if any(_is_in(form, lines, inner) for form in _forms(record.text))}


def _inner(block: str) -> str:
    """Return the records of a block, without the tags in which Strands' memory manager puts each."""
    return _ENTRY.sub("", block.partition(">")[2].rpartition("</")[0]).strip()


_ENTRY = re.compile(r"</?entry(?: source=\"[^\"]*\")?>")


def _forms(text: str) -> set[str]:
    return {text.strip(), escape(text.strip()), escape(render_record(text))} - {""}


def _is_in(form: str, lines: set[str], inner: str) -> bool:
    return form in lines or ("\n" in form and form in inner)


def is_stated(name: str, present: set[str], persona: Persona) -> bool:
    """Tell whether a record, or one that states the same fact, is among those present."""
    partners = {partner for pair in persona.same_fact_pairs if name in pair for partner in pair}
    return bool(({name} | partners) & present)
