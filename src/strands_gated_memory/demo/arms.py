"""One conversation through three session managers, measured at the model and at the memory service.

Every figure of an arm is read off what the model was shown and what the service was asked, the same way
for all three, so that no arm reports on itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from strands import Agent

from ..core.block import escape
from ..core.questions import Decider
from ..core.render import render_record
from ..core.tokens import estimate_tokens
from ..core.types import Recall
from ..policy import RecallPolicy
from ..reporting.stats import RecallStats
from ..session_manager import GatedMemorySessionManager
from ..testing.agentcore import local_agentcore, seed_records
from ..testing.model import ScriptedModel, blocks_shown
from .persona import MUST_HAVE, Persona, PersonaTurn

LOOKUP_MS = 529
"""Modelled time of one turn's memory lookup: 4,230 ms over 8 lookups, as the original post measured it."""
TOP_K = 10
USED_RECORDS = 2
"""How many records the offline model's answer mentions."""
REGION = "us-east-1"
ARMS = ("stock", "ungated", "gated")


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


def run_arms(persona: Persona, decider: Decider, encoder: Any = None) -> dict[str, ArmResult]:
    """Run the conversation through every arm on an emulated AgentCore Memory.

    Args:
        persona: Records and conversation.
        decider: The gated arm's decision model.
        encoder: Ranks records for a query in the emulation; default the embedded encoder.
    """
    with local_agentcore(region_name=REGION, encoder=encoder) as memory:
        session = boto3.Session(region_name=REGION)  # one for all: each would load the service models anew
        seed_records(
            session.client("bedrock-agentcore"),
            memory.memory_id,
            [{"text": record.text, "namespace": persona.template(record.namespace)} for record in persona.records],
            actor_id=persona.actor_id,
        )
        return {name: _run_arm(name, persona, memory, decider, session) for name in ARMS}


def _run_arm(name: str, persona: Persona, memory: Any, decider: Decider, session: boto3.Session) -> ArmResult:
    config = arm_config(name, persona, memory)
    if name == "stock":
        return run_conversation(name, persona, memory, AgentCoreMemorySessionManager(config, boto_session=session))
    manager = GatedMemorySessionManager(
        config,
        boto_session=session,
        decider=decider if name == "gated" else None,
        policy=RecallPolicy(stats_log="off"),
    )
    return run_conversation(name, persona, memory, manager)


def arm_config(name: str, persona: Persona, memory: Any) -> AgentCoreMemoryConfig:
    """Return a session of an arm's own over all of the persona's namespaces."""
    return AgentCoreMemoryConfig(
        memory_id=memory.memory_id,
        session_id=f"demo-{name}-{uuid.uuid4().hex[:8]}",
        actor_id=persona.actor_id,
        retrieval_config={persona.template(key): RetrievalConfig(top_k=TOP_K) for key in persona.namespaces},
    )


def run_conversation(name: str, persona: Persona, memory: Any, manager: Any) -> ArmResult:
    """Have a real agent go through the conversation with one session manager, and close that.

    Args:
        name: The arm's.
        persona: The conversation.
        memory: The `LocalAgentCore` that the manager's clients talk to.
        manager: A session manager of Strands.
    """
    arm = ArmResult(name, stats=getattr(manager, "stats", None))
    tag = manager.config.context_tag
    model = ScriptedModel(answer_from_memory)
    agent = Agent(model=model, session_manager=manager, callback_handler=None)
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
    manager.close()
    return arm


def answer_from_memory(messages: list[Any]) -> str:
    """Answer as a model would that uses the recall block of the newest message: with the first of it, if any."""
    blocks = blocks_shown(messages[-1:])
    if not blocks:
        return "Happy to help with that."
    used = _inner(blocks[-1]).splitlines()[:USED_RECORDS]
    return "Going by what you have told me before: " + " ".join(line.rstrip(".") + "." for line in used)


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
    return block.partition(">")[2].rpartition("</")[0].strip()


def _forms(text: str) -> set[str]:
    return {text.strip(), escape(text.strip()), escape(render_record(text))} - {""}


def _is_in(form: str, lines: set[str], inner: str) -> bool:
    return form in lines or ("\n" in form and form in inner)


def is_stated(name: str, present: set[str], persona: Persona) -> bool:
    """Tell whether a record, or one that states the same fact, is among those present."""
    partners = {partner for pair in persona.same_fact_pairs if name in pair for partner in pair}
    return bool(({name} | partners) & present)
