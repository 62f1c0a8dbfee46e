"""A server builds one agent per request: share the counters, let the decision model be shared by itself.

    python examples/server.py

Forty requests of ten users in two threads, on an emulated memory. The embedded model is loaded once per
process, whatever the number of managers. Two objects are handed around: `RecallStats`, and a `boto3.Session`, which
costs most of what a manager costs (`python -m harness.benchmarks.managers` measures it).
"""

from concurrent.futures import ThreadPoolExecutor

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from strands import Agent

from strands_gated_memory import GatedMemorySessionManager, RecallStats, warm
from strands_gated_memory.testing import ScriptedModel, local_agentcore, seed_records

STATS = RecallStats()
PROMPTS = ("Hello!", "What should I cook tonight?", "Thanks!", "How does a heat pump work?")


def handle(session: boto3.Session, memory_id: str, user: str, prompt: str) -> str:
    """Serve one request: everything but the counters and the session is made anew."""
    session_manager = GatedMemorySessionManager(
        AgentCoreMemoryConfig(
            memory_id=memory_id,
            session_id=f"session-{user}",
            actor_id=user,
            retrieval_config={"/facts/{actorId}/": RetrievalConfig(top_k=10)},
        ),
        boto_session=session,
        stats=STATS,
    )
    agent = Agent(model=ScriptedModel(lambda _: "Done."), session_manager=session_manager, callback_handler=None)
    return str(agent(prompt))


def main() -> None:
    """Serve the requests and print the shared counters."""
    warm()  # so that the first requests do not wait for the model
    with local_agentcore(region_name="us-east-1") as memory:
        session = boto3.Session(region_name="us-east-1")
        client = session.client("bedrock-agentcore")
        users = [f"user{n}" for n in range(10)]
        for user in users:
            record = {"namespace": "/facts/{actorId}/", "text": f"{user} does not eat meat."}
            seed_records(client, memory.memory_id, [record], actor_id=user)
        requests = [(memory.memory_id, user, prompt) for user in users for prompt in PROMPTS]
        with ThreadPoolExecutor(2) as pool:  # as many as cores: more only wait for each other
            list(pool.map(lambda request: handle(session, *request), requests))  # list: a failed request shows
        print(STATS)


if __name__ == "__main__":
    main()
