"""Every fault x every stage: the turn completes in time, shows what fail-open says, and the counters name the fault.

The summary at the end prints the matrix.
"""

import pytest
from fault_cases import CASES
from fault_world import DEADLINE_S, HEALTHY, MATRIX, POLICY, STAGES, expected, failures, shown, stage_of, timed_turn

SLACK_S = 1.0


def test_nothing_fails(world):
    """The healthy turn, against which the others are seen: two of three namespaces, the bike judged out."""
    manager = world.manager()
    agent = world.agent(manager)

    timed_turn(agent)

    assert shown(agent) == HEALTHY
    assert "!!" not in str(manager.stats)
    assert len(world.searches.requests) == 2
    assert [stage for request in world.decider.requests if (stage := stage_of(request))] == ["gate", "judge"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("fault", CASES)
def test_fault(world, fault, stage):
    """The turn is back by the deadline and a second, with exactly the records of fail-open, and the fault is named."""
    case = CASES[fault]
    manager, agent, seconds, result = _spoilt_turn(world, case, stage)

    counted = manager.stats.as_dict()
    kinds = counted["retrieval_errors_by_kind" if stage == "retrieve" else "decider_errors_by_kind"]
    recall = manager.last_recall
    MATRIX[fault, stage] = f"{', '.join(kinds)}: {len(recall.records)} records, {1000 * recall.trace.seconds:.0f} ms"
    assert result.stop_reason == "end_turn"
    assert seconds < DEADLINE_S + SLACK_S
    assert shown(agent) == expected(case, stage)
    assert kinds == {(case.search if stage == "retrieve" else case.decider): failures(case, stage)}
    if case.slow and stage == "retrieve":  # what is left for the judge is little: it may be late, and keeps all then
        assert set(counted["decider_errors_by_kind"]) <= {"timeout"}
    else:
        assert counted["decider_errors"] + counted["retrieval_errors"] == failures(case, stage)
    assert counted["turn_failures"] == 0
    assert counted["gate"] == dict.fromkeys(counted["gate"], 0) | {"failed" if stage == "gate" else "open": 1}
    assert f"!! {'retrieval' if stage == 'retrieve' else 'decider'} errors" in str(manager.stats)


def _spoilt_turn(world, case, stage):
    """Play one turn; twice more at most where the deadline was met by what takes no time: that was a busy machine."""
    for _ in range(3):
        manager = world.manager()
        agent = world.agent(manager)
        world.spoil(case, stage)
        seconds, result = timed_turn(agent)
        counted = manager.stats.as_dict()
        late = {name for name in ("decider", "retrieval") if "timeout" in counted[f"{name}_errors_by_kind"]}
        if case.slow:  # its own stage is late, and after a slow search there is little time left for the judge
            late -= {"decider"} if stage != "retrieve" else {"decider", "retrieval"}
        if not late:
            break
        world.restart()
    return manager, agent, seconds, result


@pytest.mark.parametrize("stage", STAGES)
def test_the_turn_after_a_fault_is_healthy(world, stage):
    """Nothing of a late answer, a broken connection or a failed stage is left in the next turn."""
    manager = world.manager(policy=POLICY.model_copy(update={"deadline_s": 0.6}))
    agent = world.agent(manager)
    world.spoil(CASES["delay"], stage)
    timed_turn(agent)
    world.heal()

    timed_turn(agent)

    assert shown(agent) == HEALTHY
    assert manager.last_recall.trace.gate.outcome == "open"
