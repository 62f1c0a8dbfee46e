"""Decisions by TypeSafe's hosted Jev. Messages and records travel to TypeSafe.

    export TYPESAFE_API_KEY=...
    strands-gated-memory check jev
    python examples/decider_jev.py

The model is pinned, because a threshold is for one model: "jev" means jev-1.13.0, "jev:jev-latest" the
alias. In an agent: `GatedMemorySessionManager(config, decider="jev", decider_check="raise")`.
"""

import sys

from strands_gated_memory import ConfigurationError, RecallPipeline, RecallPolicy, Turn, resolve_decider


def main() -> None:
    """Decide whether three messages need memory."""
    try:
        decider = resolve_decider("jev")
    except ConfigurationError as error:
        sys.exit(str(error))
    # Half a second for a lookup is usual; the rest of the deadline is for two requests.
    pipeline = RecallPipeline(decider, RecallPolicy(deadline_s=3.0))
    for prompt in ("Hello!", "What is the capital of France?", "Book me a table for tonight."):
        gate = pipeline.gate(Turn(prompt), ["/preferences/{actorId}/", "/facts/{actorId}/"])
        print(f"{gate.outcome:<9} {gate.probability}  {prompt}")


if __name__ == "__main__":
    main()
