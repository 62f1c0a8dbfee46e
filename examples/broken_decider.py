"""What a broken decision model looks like: the answers stay right, and the counters shout.

    python examples/broken_decider.py
"""

import logging

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.reporting.log import log_failures

NAMESPACE = "/facts/{actorId}/"


def broken(state: object, questions: object) -> dict[str, object]:
    """Fail as a call to an endpoint that does not exist does."""
    raise RuntimeError("Could not find endpoint strands-decider-prod")


def main() -> None:
    """Recall for eight turns; every decision fails, so everything is searched and kept."""
    logging.basicConfig(format="%(levelname)s %(message)s")
    stats = RecallStats()
    pipeline = RecallPipeline(resolve_decider(broken), RecallPolicy())
    for turn in range(8):
        recall = pipeline.recall(
            Turn(f"Question {turn}?"), [NAMESPACE], lambda namespace: [Record("The user likes tea.", namespace)]
        )
        stats.add(recall)
        log_failures(recall)
    print(stats)


if __name__ == "__main__":
    main()
