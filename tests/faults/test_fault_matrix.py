"""Every fault x every stage: no turn waits for what hangs, all show what fail-open says, counters name the fault.

The summary at the end prints the matrix.
"""

import pytest
from fault_cases import CASES
from fault_world import ASK, CUTS, HEALTHY, HURRIED, MATRIX, STAGES, expected, failures, shown, stage_of

from strands_gated_memory import RecallPolicy


def test_nothing_fails(world):
    """The healthy turn, against which the others are seen: two of three namespaces, the bike judged out."""
    manager = world.manager()
    agent = world.agent(manager)

    agent(ASK)

    assert shown(agent) == HEALTHY
    assert "!!" not in str(manager.stats)
    assert len(world.searches.requests) == 2
    assert [stage for request in world.decider.requests if (stage := stage_of(request))] == ["gate", "judge"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", CASES)
def test_fault(world, fault, stage):
    """The turn is back while what hangs still does, with the records of fail-open alone, and the fault is named."""
    case = CASES[fault]
    manager = world.manager(policy=RecallPolicy(**CUTS, **HURRIED)) if case.slow else world.manager()
    agent = world.agent(manager)
    world.spoil(case, stage)

    result = agent(ASK)

    counted = manager.stats.as_dict()
    kinds = counted["retrieval_errors_by_kind" if stage == "retrieve" else "decider_errors_by_kind"]
    recall = manager.last_recall
    MATRIX[fault, stage] = f"{', '.join(kinds)}: {len(recall.records)} records, {1000 * recall.trace.seconds:.0f} ms"
    assert result.stop_reason == "end_turn"
    assert shown(agent) == expected(case, stage)
    assert kinds == {(case.search if stage == "retrieve" else case.decider): failures(case, stage)}
    assert counted["decider_errors"] + counted["retrieval_errors"] == failures(case, stage)
    assert counted["turn_failures"] == 0
    assert counted["gate"] == dict.fromkeys(counted["gate"], 0) | {"failed" if stage == "gate" else "open": 1}
    assert f"!! {'retrieval' if stage == 'retrieve' else 'decider'} errors" in str(manager.stats)


@pytest.mark.parametrize("stage", STAGES)
def test_the_turn_after_a_fault_is_healthy(world, stage):
    """Nothing of a late answer, a broken connection or a failed stage is left in the next turn."""
    manager = world.manager(policy=RecallPolicy(**CUTS, **HURRIED))
    agent = world.agent(manager)
    world.spoil(CASES["delay"], stage)
    agent(ASK)
    world.heal()

    agent(ASK)

    assert shown(agent) == HEALTHY
    assert manager.last_recall.trace.gate.outcome == "open"
