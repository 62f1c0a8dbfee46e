"""Decisions by a strands-decider server, or any other System One server.

Start one, on a machine with a GPU (on a CPU the 2B model takes seconds per request):

    pip install strands-decider
    strands-decider serve StrandsAgents/strands-decider-2B-qwen3.5-v1-2610 --port 8000 --strict-window
    python examples/decider_served.py http://127.0.0.1:8000

In an agent: `GatedMemorySessionManager(config, decider="http://127.0.0.1:8000")`.
"""

import sys

from strands_gated_memory import RecallPipeline, Record, Turn, resolve_decider

NAMESPACES = ("/preferences/{actorId}/", "/facts/{actorId}/")
STORE = [
    Record("Quiet restaurants, vegetarian food.", NAMESPACES[0]),
    Record("The user is allergic to peanuts.", NAMESPACES[1]),
    Record("The user indents with four spaces.", NAMESPACES[0]),
]


def main(url: str) -> None:
    """Ask two things: one needs memory, one does not."""
    decider = resolve_decider(url)
    decider.warm()  # a strands-decider server says how long its window is
    pipeline = RecallPipeline(decider)
    for prompt in ("What is 17 times 23?", "Where could we have dinner on Friday?"):
        recall = pipeline.recall(Turn(prompt), NAMESPACES, lambda name: [one for one in STORE if one.namespace == name])
        print(f"> {prompt}\ngate: {recall.trace.gate.outcome} ({recall.trace.gate.probability})")
        for call in recall.trace.decider_calls:
            print(f"  {call.stage}: {call.questions} questions, {1000 * call.seconds:.0f} ms, model {call.model}")
        print(recall.block or "(nothing recalled)")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
