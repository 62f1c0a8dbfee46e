"""The public API as a user types it. Never run: `mypy --strict` checks it.

A line with `# type: ignore[code]` is a mistake that the types must catch: mypy warns when it does not.
"""

from __future__ import annotations

from collections.abc import Mapping

from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig
from strands.memory import MemoryEntry, MemoryStore, SearchOptions

from strands_gated_memory import (
    Answer,
    Decider,
    Dropped,
    GateDecision,
    GatedMemoryManager,
    GatedMemorySessionManager,
    Judgement,
    NoAnswer,
    Noul,
    Question,
    Recall,
    RecallPipeline,
    RecallPolicy,
    RecallStats,
    Record,
    SearchResult,
    State,
    Thresholds,
    Turn,
    render_record,
    resolve_decider,
)


class OwnDecider:
    """A decision model of a user's own, with thresholds that were measured for it."""

    thresholds = Thresholds(gate=0.3, router=0.3, validator=0.4, relative=0.2)

    def decide(self, state: State, questions: Mapping[str, Question]) -> Mapping[str, Answer]:
        """Answer yes to whatever names the message."""
        return {
            name: Noul(1.0) if state["message"] in (question.subject or "") else NoAnswer("abstained")
            for name, question in questions.items()
        }


def function(state: State, questions: Mapping[str, Question]) -> Mapping[str, object]:
    """Answer in wire shape."""
    return {name: {"type": "noul", "noul": 0.9} for name in questions}


def report(recall: Recall) -> None:
    """Take a recall apart."""
    gate: GateDecision | None = recall.trace.gate
    judgements: tuple[Judgement, ...] = recall.trace.judgements
    dropped: tuple[Dropped, ...] = recall.dropped
    block: str | None = recall.block
    probabilities: list[float | None] = [judgement.probability for judgement in judgements]
    print(gate, dropped, block, probabilities)


def manager(config: AgentCoreMemoryConfig) -> None:
    """Make session managers in the ways that the README shows."""
    stats = RecallStats()
    policy = RecallPolicy()
    decider: Decider = OwnDecider()
    GatedMemorySessionManager(config, "us-east-1", decider=decider, policy=policy, stats=stats, on_recall=report)
    GatedMemorySessionManager(config, decider=function, decider_check="off")
    GatedMemorySessionManager(config, decider=["jev", "embedded"], trace_path="turns.jsonl", trace_content=False)
    made = GatedMemorySessionManager(config, decider=None)
    last: Recall | None = made.last_recall
    used: Decider | None = made.decider
    print(last, used, made.stats.turns, made.policy.deadline_s)
    GatedMemorySessionManager(config, policy="stock")  # type: ignore[arg-type]
    GatedMemorySessionManager(config, decider_check="maybe")  # type: ignore[arg-type]
    GatedMemorySessionManager(config, stats={})  # type: ignore[arg-type]
    GatedMemorySessionManager(config, on_recall=lambda: None)  # type: ignore[misc, arg-type]
    made.stats = stats  # type: ignore[misc]


class OwnStore(MemoryStore):
    """A memory store of a user's own."""

    name = "facts"
    description = "facts about the user"
    max_search_results = None
    writable = False
    extraction = None

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """Find nothing."""
        return []


def memory_manager() -> None:
    """Make memory managers in the ways that docs/memory-manager.md shows."""
    stats = RecallStats()

    def read(entry: MemoryEntry) -> Record:
        return Record(entry.content, entry.store_name or "")

    GatedMemoryManager([OwnStore()], True, False, {"max_entries": 3}, decider=function, stats=stats)
    GatedMemoryManager([OwnStore()], injection=False, to_record=read, tool_results="validated", tool_stats=stats)
    made = GatedMemoryManager(stores=[OwnStore()], policy=RecallPolicy(router={"pinned": ("facts",)}))
    last: Recall | None = made.last_recall
    print(last, made.stats.turns, made.tool_stats.turns, made.policy, made.decider, made.context_tag)
    made.warm()
    GatedMemoryManager("facts")  # type: ignore[arg-type]
    GatedMemoryManager([OwnStore()], tool_results="checked")  # type: ignore[arg-type]
    GatedMemoryManager([OwnStore()], to_record=report)  # type: ignore[arg-type]
    made.stats = stats  # type: ignore[misc]


def pipeline() -> None:
    """Recall without AgentCore."""

    def search(namespace: str) -> SearchResult:
        return SearchResult((Record("The user likes tea.", namespace, score=0.4),))

    pipe = RecallPipeline(resolve_decider("embedded"), RecallPolicy.stock())
    turn = Turn("What should I drink?", ("Hi", "Hello."))
    recall: Recall = pipe.recall(turn, ["/facts/{actorId}/"], search)
    judged: list[Judgement] = pipe.judge(turn, recall.records)
    decision: GateDecision = pipe.gate(turn, ["/facts/{actorId}/"])
    line: str = render_record(recall.records[0].text)
    print(judged, decision.selected, line)
    RecallPipeline(function)  # type: ignore[arg-type]
    pipe.recall("What should I drink?", ["/facts/"], search)  # type: ignore[arg-type]
    turn.text = "changed"  # type: ignore[misc]
    recall.records[0].text = "changed"  # type: ignore[misc]
    Turn("What should I drink?", ["Hi", "Hello."])  # type: ignore[arg-type]
