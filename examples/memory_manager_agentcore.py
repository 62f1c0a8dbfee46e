"""AgentCore Memory by the native path, offline: its session manager keeps the session, its memory stores are recalled.

pip install 'strands-gated-memory[demo]', or from a clone: pip install '.[demo]'
python examples/memory_manager_agentcore.py

On a real account leave `local_agentcore` out, and name your memory, actor and namespaces. docs/memory-manager.md says
when to take this path, and when `GatedMemorySessionManager` alone.
"""

import boto3
from bedrock_agentcore.memory.client import MemoryClient
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig
from bedrock_agentcore.memory.integrations.strands.memorystore import create_agentcore_memory_stores
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from strands import Agent

from strands_gated_memory import GatedMemoryManager
from strands_gated_memory.testing import ScriptedModel, blocks_shown, local_agentcore, seed_records

RECORDS = [
    {"namespace": "/facts/{actorId}/", "text": "The user is allergic to peanuts."},
    {"namespace": "/preferences/{actorId}/", "text": '{"context": "Eating out", "preference": "Vegetarian food"}'},
]
NAMESPACES = [
    {"namespace": "/facts/{actorId}/", "description": "facts about the user: their health, home and work"},
    {"namespace": "/preferences/{actorId}/", "description": "what the user likes, and how they want things done"},
]


def main() -> None:
    """Ask two things: one needs memory, one does not."""
    with local_agentcore(region_name="us-east-1") as memory:
        session = boto3.Session(region_name="us-east-1")
        seed_records(session.client("bedrock-agentcore"), memory.memory_id, RECORDS, actor_id="noor")
        stores = create_agentcore_memory_stores(
            memory_id=memory.memory_id,
            actor_id="noor",
            session_id="example",
            namespaces=NAMESPACES,
            client=MemoryClient(region_name="us-east-1", boto3_session=session),
        )
        memory_manager = GatedMemoryManager(stores=stores)
        memory_manager.warm()  # so that the first turn does not wait for the model
        # Without `retrieval_config` it searches nothing: it stores the session, from which AgentCore extracts records.
        session_manager = AgentCoreMemorySessionManager(
            AgentCoreMemoryConfig(memory_id=memory.memory_id, session_id="example", actor_id="noor"),
            boto_session=session,
        )
        model = ScriptedModel(lambda messages: "Noted.")
        agent = Agent(
            model=model, session_manager=session_manager, memory_manager=memory_manager, callback_handler=None
        )
        for prompt in ("Hello!", "Where could we have dinner on Friday?"):
            agent(prompt)
            print(f"> {prompt}\n{chr(10).join(blocks_shown(model.calls[-1])) or '(no memory was needed)'}\n")
        print(memory_manager.stats)


if __name__ == "__main__":
    main()
