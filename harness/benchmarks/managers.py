"""What does a manager cost, with a boto3.Session of its own and with a shared one?

    python -m harness.benchmarks.managers [--managers N]

The memory is emulated in this process, and no model is loaded. Prints the
milliseconds of one manager, the median of N, and their ratio. A busy machine shows here, so run it alone.
"""

from __future__ import annotations

import argparse
import statistics
import time

import boto3
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig

from strands_gated_memory import GatedMemorySessionManager
from strands_gated_memory.testing import local_agentcore


def main() -> int:
    """Measure both in turns, so that a busy moment meets both."""
    parser = argparse.ArgumentParser(description="What a manager costs, by whether its boto3.Session is shared.")
    parser.add_argument("--managers", type=int, default=10, help="managers of each kind")
    count = parser.parse_args().managers
    own_ms, shared_ms = [], []
    with local_agentcore(region_name="us-east-1") as memory:
        shared = boto3.Session(region_name="us-east-1")
        for session, took_ms in [(None, []), (shared, []), *[(None, own_ms), (shared, shared_ms)] * count]:
            started = time.perf_counter()
            _manager(memory.memory_id, session)
            took_ms.append(1000 * (time.perf_counter() - started))
    own, together = statistics.median(own_ms), statistics.median(shared_ms)
    print(f"own session {own:.0f} ms, shared session {together:.0f} ms a manager: {together / own:.2f} of it")
    return 0


def _manager(memory_id: str, session: boto3.Session | None) -> GatedMemorySessionManager:
    config = AgentCoreMemoryConfig(
        memory_id=memory_id,
        actor_id="user",
        session_id="session",
        retrieval_config={"/facts/{actorId}/": RetrievalConfig()},
    )
    return GatedMemorySessionManager(config, region_name="us-east-1", boto_session=session, decider=None)


if __name__ == "__main__":
    raise SystemExit(main())
