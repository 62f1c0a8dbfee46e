"""A dependency that stays broken: it is left alone, costs few threads, and is found again when it is back."""

import threading

import pytest
from fault_cases import CASES
from fault_world import ASK, CUTS, EVERYTHING, HEALTHY, HURRIED, PATIENT, shown

from strands_gated_memory import RecallPolicy

pytest.importorskip("strands_gated_memory.runtime.guard")


def watched(waits=PATIENT, cooldown_s=600.0):
    """Return a policy whose circuit breakers open after three failures."""
    return RecallPolicy(**CUTS, **waits, breaker={"failures": 3, "cooldown_s": cooldown_s})


def test_a_dead_decision_model_is_asked_no_more_until_it_is_back(world):
    """After three failures turns go on without it, everything shown; one probe after a cool-down the gate is back."""
    manager = world.manager(policy=watched(HURRIED))
    agent = world.agent(manager)
    world.decider.inject(CASES["delay"].play)
    while manager.stats.as_dict()["decider_skipped"] == 0:
        agent(ASK)
        assert manager.stats.turns <= 3
    asked = len(world.decider.requests)

    agent(ASK)

    assert len(world.decider.requests) == asked
    assert shown(agent) == EVERYTHING
    assert "open" in manager.stats.as_dict()["breakers"].values()
    assert "circuit_open" in manager.stats.as_dict()["decider_errors_by_kind"]

    world.heal()
    manager = world.manager(policy=watched(cooldown_s=0.001), stats=manager.stats)
    agent = world.agent(manager)
    agent(ASK)

    assert shown(agent) == HEALTHY
    assert set(manager.stats.as_dict()["breakers"].values()) == {"closed"}


def test_one_broken_namespace_is_left_alone_and_the_others_are_searched(world):
    """Retrieval has a breaker per namespace: the preferences are shown all along."""
    manager = world.manager(policy=watched())
    agent = world.agent(manager)
    world.searches.inject(CASES["status 500"].play, lambda request: "/facts/" in str(request.document))
    for _ in range(3):
        agent(ASK)
    asked = world.searches.spoilt

    agent(ASK)

    assert asked == world.searches.spoilt == 3
    assert shown(agent) == [HEALTHY[1]]
    assert manager.stats.as_dict()["retrieval_skipped"] == 1

    world.heal()
    agent = world.agent(world.manager(policy=watched(cooldown_s=0.001)))
    agent(ASK)

    assert shown(agent) == HEALTHY


def test_hanging_calls_do_not_pile_up_threads(world):
    """Without a breaker: twelve turns at once, twice over, on a model and a memory that hang."""
    policy = RecallPolicy(**CUTS, deadline_s=0.6, breaker=None)
    manager = world.manager(policy=policy)
    world.decider.inject(CASES["delay"].play)
    world.searches.inject(CASES["delay"].play)
    turns = [world.agent(world.manager(policy=policy, stats=manager.stats)) for _ in range(12)]
    own = []

    for _ in range(2):
        talking = [threading.Thread(target=agent, args=(ASK,)) for agent in turns]
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
