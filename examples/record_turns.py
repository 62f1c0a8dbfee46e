"""Turns to try docs/fitting.md on: an invented person's conversation, recorded by a real session manager, offline.

pip install 'strands-gated-memory[demo]', or from a clone: pip install '.[demo]'
python examples/record_turns.py traces.jsonl

It never adds to a file that is there. examples/traces.jsonl was written by it.
"""

import sys
from pathlib import Path

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from strands import Agent

from strands_gated_memory import GatedMemorySessionManager, RecallPolicy
from strands_gated_memory.demo.persona import load_persona
from strands_gated_memory.testing import ScriptedModel, local_agentcore, seed_records


def main(path: str) -> None:
    """Record the demo's conversation, eight turns, with cuts that let everything through that is searched for."""
    if Path(path).exists():
        sys.exit(f"{path} exists already, and trace files are appended to; remove it, or name another file")
    person = load_persona(None)
    records = [{"text": one.text, "namespace": person.template(one.namespace)} for one in person.records]
    with local_agentcore(region_name="us-east-1") as memory:
        seed_records(
            boto3.client("bedrock-agentcore", "us-east-1"), memory.memory_id, records, actor_id=person.actor_id
        )
        manager = GatedMemorySessionManager(
            AgentCoreMemoryConfig(
                memory_id=memory.memory_id,
                session_id="sample",
                actor_id=person.actor_id,
                retrieval_config={person.template(key): RetrievalConfig(top_k=4) for key in person.namespaces},
            ),
            region_name="us-east-1",
            policy=RecallPolicy(validator={"threshold": 0.0}, select={"relative": 0.0, "max_records": None}),
            trace_path=path,
            trace_content=True,
        )
        agent = Agent(model=ScriptedModel(lambda messages: "Noted."), session_manager=manager, callback_handler=None)
        for turn in person.conversation:
            agent(turn.user)
        manager.close()
    print(f"{len(person.conversation)} turns written to {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "traces.jsonl")
