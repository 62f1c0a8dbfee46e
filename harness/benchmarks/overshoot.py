"""How far does each fault push a recall over its deadline? `python -m harness.benchmarks.overshoot [--turns N]`.

Real agents, sockets and servers, as in tests/faults; the deadline is 0.3 s, the goal 100 ms beyond it. Exits
non-zero when a turn is over the goal, or did not meet its fault. A busy machine shows here, so run it alone.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "faults"))

GOAL_MS = 100.0


def main() -> int:
    """Print the milliseconds of a recall, per fault and stage, and how far the slowest is over the deadline."""
    from fault_cases import CASES
    from fault_world import DEADLINE_S, STAGES, World, serving_agentcore

    from strands_gated_memory.runtime.guard import reset_breakers

    parser = argparse.ArgumentParser(description="How far each fault pushes a recall over its deadline.")
    parser.add_argument("--turns", type=int, default=5, help="turns per fault and stage")
    turns = parser.parse_args().turns
    logging.disable(logging.WARNING)
    longest, missed = 0.0, 0
    print(f"milliseconds in the recall hook, p50 / max of {turns} turns; the deadline is {1000 * DEADLINE_S:.0f} ms")
    print(f"{'fault':<24}" + "".join(f"{stage:>18}" for stage in (*STAGES, "all three")))
    with serving_agentcore() as memory:
        for name, case in CASES.items():
            cells = []
            for stages in (*((stage,) for stage in STAGES), STAGES if case.play else ()):
                took = []
                for _ in range(turns if stages else 0):
                    reset_breakers()  # or what failed before would not be asked
                    with World(memory) as world:
                        if stages == STAGES:
                            world.decider.inject(case.play)
                            world.searches.inject(case.play)
                        else:
                            world.spoil(case, stages[0])
                        manager = world.manager()
                        took.append(1000 * _own_seconds(manager, world.agent))
                    missed += not _met(manager.last_recall.trace, stages)
                longest = max(longest, *took, 0.0)
                cells.append(f"{statistics.median(took):.0f} / {max(took):.0f}" if took else "")
            print(f"{name:<24}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    over = max(0.0, longest - 1000 * DEADLINE_S)
    print(f"the slowest recall took {longest:.0f} ms: {over:.0f} ms over the deadline, goal {GOAL_MS:.0f} ms")
    print(f"turns that did not meet their fault: {missed}")
    return int(over > GOAL_MS or missed > 0)


def _met(trace: Any, stages: Sequence[str]) -> bool:
    """Tell whether a stage that was to fail was asked and failed."""
    failed = {one.stage for one in trace.decider_calls if one.failures and not one.skipped}
    failed |= {"retrieve" for one in trace.lookups if one.failures and not one.skipped}
    return any({"judge": "validator"}.get(stage, stage) in failed for stage in stages)


def _own_seconds(manager: Any, agent_of: Callable[[Any], Any]) -> float:
    """Return the seconds that one turn spends in the recall hook."""
    agent = agent_of(manager)
    recall = manager.retrieve_customer_context
    spent = []

    def timed(event: Any) -> None:
        started = time.perf_counter()
        recall(event)
        spent.append(time.perf_counter() - started)

    manager.retrieve_customer_context = timed
    agent("What do I drink on the way?")
    return sum(spent)


if __name__ == "__main__":
    sys.exit(main())
