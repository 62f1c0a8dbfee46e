"""A list of decision models: the first that answers within the deadline decides, and who did is counted.

    python examples/decider_fallback.py

Here the first address is closed, so the second one decides. In an agent:
`GatedMemorySessionManager(config, decider=["jev", "embedded"])`.
"""

from typing import Any

from strands_gated_memory import RecallPipeline, RecallStats, Record, Turn, resolve_decider

NAMESPACE = "/facts/{actorId}/"


def keyword(state: Any, questions: Any) -> dict[str, Any]:
    """Stand in for a model: memory matters when the user speaks of themselves."""
    personal = " my " in f" {state['message'].lower()} "
    return {name: {"type": "noul", "noul": 0.9 if personal else 0.1} for name in questions}


def main() -> RecallStats:
    """Ask twice and print the counters."""
    pipeline = RecallPipeline(resolve_decider(["http://127.0.0.1:9", keyword]))
    stats = RecallStats()
    for prompt in ("Thanks!", "What goes well with my allergy?"):
        recall = pipeline.recall(Turn(prompt), [NAMESPACE], lambda name: [Record("Allergic to peanuts.", name)])
        stats.add(recall)
        print(f"> {prompt}\n{recall.block or '(nothing recalled)'}")
    print(stats)
    return stats


if __name__ == "__main__":
    main()
