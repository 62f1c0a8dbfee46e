"""The same on a real account: Amazon Bedrock for the answers, AgentCore Memory for the memory.

    export MEMORY_ID=... ACTOR_ID=... AWS_REGION=us-east-1
    python examples/on_aws.py "What should I drink?"

IAM actions on the memory: bedrock-agentcore:CreateEvent, ListEvents, DeleteEvent (what the stock manager
needs), RetrieveMemoryRecords (recall), ListMemoryRecords (only for `router.pinned` namespaces); and
bedrock:InvokeModelWithResponseStream for the model. Costs what the model costs, plus $0.50 per 1,000 lookups.
"""

import os
import sys
import uuid

from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from strands import Agent

from strands_gated_memory import GatedMemorySessionManager


def main(prompt: str) -> None:
    """Ask once and print what was decided."""
    with GatedMemorySessionManager(
        AgentCoreMemoryConfig(
            memory_id=os.environ["MEMORY_ID"],
            session_id=f"example-{uuid.uuid4().hex[:8]}",
            actor_id=os.environ["ACTOR_ID"],
            retrieval_config={
                "/preferences/{actorId}/": RetrievalConfig(top_k=10),
                "/facts/{actorId}/": RetrievalConfig(top_k=10),
            },
        ),
        region_name=os.environ.get("AWS_REGION", "us-east-1"),
    ) as session_manager:
        Agent(session_manager=session_manager)(prompt)
        print()
        print(session_manager.last_recall.trace.gate if session_manager.last_recall else "no recall")
        print(session_manager.stats)


if __name__ == "__main__":
    if len(sys.argv) != 2 or "MEMORY_ID" not in os.environ or "ACTOR_ID" not in os.environ:
        sys.exit(__doc__)
    main(sys.argv[1])
