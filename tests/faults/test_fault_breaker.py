"""A dependency that stays broken: it is left alone, costs few threads, and is found again when it is back."""

import threading
import time

import pytest
from fault_cases import CASES
from fault_world import DEADLINE_S, EVERYTHING, HEALTHY, POLICY, shown, timed_turn

pytest.importorskip("strands_gated_memory.runtime.breaker")

COOLDOWN_S = 0.4
WATCHED = POLICY.model_copy(
    update={
        "breaker": type(POLICY)(breaker={"failures": 3, "cooldown_s": COOLDOWN_S}).breaker,
        "deadline_s": 2 * DEADLINE_S,
    }
)


def test_a_dead_decision_model_is_asked_no_more_until_it_is_back(world):
    """After three failures turns go on at once, everything shown; one probe later the gate is back."""
    manager = world.manager(policy=WATCHED)
    agent = world.agent(manager)
    world.decider.inject(CASES["delay"].play)
    while manager.stats.as_dict()["decider_skipped"] == 0:
        timed_turn(agent)
        assert manager.stats.turns <= 3
    asked = len(world.decider.requests)

    timed_turn(agent)

    assert len(world.decider.requests) == asked
    assert shown(agent) == EVERYTHING
    assert manager.last_recall.trace.seconds < DEADLINE_S
    assert "open" in manager.stats.as_dict()["breakers"].values()
    assert "circuit_open" in manager.stats.as_dict()["decider_errors_by_kind"]

    world.heal()
    time.sleep(COOLDOWN_S)
    timed_turn(agent)

    assert shown(agent) == HEALTHY
    assert set(manager.stats.as_dict()["breakers"].values()) == {"closed"}


def test_one_broken_namespace_is_left_alone_and_the_others_are_searched(world):
    """Retrieval has a breaker per namespace: the preferences are shown all along."""
    manager = world.manager(policy=WATCHED)
    agent = world.agent(manager)
    world.searches.inject(CASES["status 500"].play, lambda request: "/facts/" in str(request.document))
    for _ in range(3):
        timed_turn(agent)
    asked = world.searches.spoilt

    timed_turn(agent)

    assert asked == world.searches.spoilt == 3
    assert shown(agent) == [HEALTHY[1]]
    assert manager.stats.as_dict()["retrieval_skipped"] == 1

    world.heal()
    time.sleep(COOLDOWN_S)
    timed_turn(agent)

    assert shown(agent) == HEALTHY


def test_hanging_calls_do_not_pile_up_threads(world):
    """Without a breaker: twelve turns at once, twice over, on a model that hangs."""
    manager = world.manager(policy=WATCHED.model_copy(update={"breaker": type(POLICY)(breaker=None).breaker}))
    world.decider.inject(CASES["delay"].play)
    world.searches.inject(CASES["delay"].play)
    turns = [world.agent(world.manager(policy=manager.policy, stats=manager.stats)) for _ in range(12)]
    own = []

    for _ in range(2):
        talking = [threading.Thread(target=timed_turn, args=(agent,)) for agent in turns]
        for thread in talking:
            thread.start()
        for thread in talking:
            thread.join()
        own.append(sum(thread.name.startswith("gated-memory") for thread in threading.enumerate()))

    counted = manager.stats.as_dict()
    assert counted["turns"] == 24
    assert counted["turn_failures"] == 0
    assert counted["gate"]["failed"] == 24
    assert max(own) <= 60
