"""Pinned namespaces: fetched once per session whatever the gate says, validated each turn."""

import json
import threading
import time

from bedrock_agentcore.memory.integrations.strands.config import RetrievalConfig
from turn_builders import FACTS, PREFERENCES, blocks_per_call, judging, last_block, no, probabilities

from strands_gated_memory import RecallPolicy

ALLERGIES = "/allergies/{actorId}/"
NAMESPACES = (ALLERGIES, FACTS)

gate_closed = probabilities(0.9, gate=0.01)


def pinned(**settings):
    return RecallPolicy(router={"pinned": (ALLERGIES,), **settings.pop("router", {})}, **settings)


def lists(bench):
    made = bench.core.calls.of("ListMemoryRecords")
    return [call for call in made if bench.actor in (call.namespace_path or "")]


def test_pinned_records_are_injected_though_the_gate_is_closed(bench):
    """One list request for the whole session, no search, and the records on every turn."""
    bench.remember("Allergic to nuts", namespace=ALLERGIES).remember("Likes tea")
    manager = bench.manager(decider=gate_closed, namespaces=NAMESPACES, policy=pinned())
    agent = bench.agent(manager)

    for prompt in ("Hello!", "Thanks!", "Bye!"):
        agent(prompt)
        assert last_block(agent) == ["Allergic to nuts"]

    assert len(lists(bench)) == 1
    assert bench.searches() == []
    assert manager.stats.as_dict()["gate"]["closed"] == 3
    assert manager.stats.as_dict()["lookups"] == 1
    assert [lookup.cached for lookup in manager.last_recall.trace.lookups] == [True]


def test_pinned_records_are_validated_each_turn(bench):
    """A pinned record that does not bear on the turn is not shown."""
    bench.remember("Allergic to nuts", "Allergic to pollen", namespace=ALLERGIES)
    decider = judging(nuts=0.9, pollen=0.01)
    agent = bench.agent(bench.manager(decider=decider, namespaces=NAMESPACES, policy=pinned()))

    agent("A cake, please.")
    agent("Another one.")

    assert last_block(agent) == ["Allergic to nuts"]
    assert len(lists(bench)) == 1


def test_pinned_namespaces_are_not_asked_about(bench):
    """The gate's request holds no question for them, and no relevance limit applies: a list has no scores."""
    bench.remember("Allergic to nuts", namespace=ALLERGIES)
    asked = []

    def decide(state, questions):
        asked.append(set(questions))
        return gate_closed(state, questions)

    namespaces = (ALLERGIES, FACTS, PREFERENCES)
    agent = bench.agent(bench.manager(decider=decide, namespaces=namespaces, policy=pinned()))
    agent("Hello!")

    assert asked[0] == {"gate", "namespace_0", "namespace_1"}
    assert last_block(agent) == ["Allergic to nuts"]


def test_pinned_records_are_fetched_again_after_their_time(bench):
    """`router.pinned_ttl_s` bounds how old they are."""
    bench.remember("Allergic to nuts", namespace=ALLERGIES)
    policy = pinned(router={"pinned_ttl_s": 0.05})
    agent = bench.agent(bench.manager(decider=gate_closed, namespaces=NAMESPACES, policy=policy))
    agent("Hello!")
    bench.remember("Allergic to milk", namespace=ALLERGIES)
    time.sleep(0.06)
    agent("And now?")

    assert sorted(last_block(agent)) == ["Allergic to milk", "Allergic to nuts"]
    assert len(lists(bench)) == 2


def test_a_failed_fetch_is_tried_again(bench):
    """A throttled first turn is counted, and the second one has the records."""
    bench.remember("Allergic to nuts", namespace=ALLERGIES)
    bench.core.fail("ListMemoryRecords", "ThrottledException", times=1)
    manager = bench.manager(decider=gate_closed, namespaces=NAMESPACES, policy=pinned())
    agent = bench.agent(manager)

    agent("Hello!")
    agent("Hello again!")

    assert blocks_per_call(agent) == [0, 1]
    assert manager.stats.as_dict()["retrieval_errors_by_kind"] == {"throttled": 1}


def test_a_pinned_namespace_alone_asks_no_gate(bench):
    """There is nothing to gate; the records are validated and shown."""
    bench.remember("Allergic to nuts", namespace=ALLERGIES)
    manager = bench.manager(decider=judging(nuts=0.9), namespaces=(ALLERGIES,), policy=pinned())
    agent = bench.agent(manager)

    agent("Hello!")

    assert last_block(agent) == ["Allergic to nuts"]
    assert [call.stage for call in manager.last_recall.trace.decider_calls] == ["validator"]


def test_recall_switched_off_leaves_pinned_records_out_too(bench):
    """Off is off."""
    bench.remember("Allergic to nuts", namespace=ALLERGIES)
    agent = bench.agent(bench.manager(decider=no, namespaces=NAMESPACES, policy=pinned()))

    agent("Hello!", invocation_state={"recall": False})

    assert blocks_per_call(agent) == [0]
    assert lists(bench) == []


def test_without_a_decider_pinned_namespaces_keep_their_place(bench):
    """Configuration order rules, and each namespace is read once."""
    bench.remember("Likes tea").remember("Allergic to nuts", namespace=ALLERGIES)
    agent = bench.agent(bench.manager(namespaces=(FACTS, ALLERGIES), policy=pinned()))

    agent("A cake, please.")

    assert last_block(agent) == ["Likes tea", "Allergic to nuts"]
    assert (len(lists(bench)), len(bench.searches())) == (1, 1)


def test_a_configuration_pointed_at_another_user_never_shows_the_first_ones_pinned_records(bench):
    """Even when the change leaves a policy that no longer fits, nobody sees another user's memory."""
    bench.remember("Mine alone.")
    manager = bench.manager(decider=gate_closed, policy={"router": {"pinned": (FACTS,)}})
    agent = bench.agent(manager)
    agent("First")
    manager.config.actor_id = f"{bench.actor}-other"
    manager.config.retrieval_config = {PREFERENCES: RetrievalConfig(top_k=10)}
    agent("Second")
    agent("Third")

    assert "Mine alone." in str(agent.model.calls[0])
    assert not any("Mine alone." in str(call) for call in agent.model.calls[1:])


def test_a_search_that_ends_after_the_configuration_moved_on_shows_nothing_to_the_next_user(bench, tmp_path):
    """One user's turn still waits for its records when the manager is pointed at another: each keeps its own."""
    bench.remember("Mine alone.")
    traces = tmp_path / "traces.jsonl"
    manager = bench.manager(
        decider=None, policy={"router": {"pinned": (FACTS,)}}, tracing={"trace_path": traces}, session_id="session-1"
    )
    client = manager._source.retriever._client
    list_records, begun, go_on = client.list_memory_records, threading.Event(), threading.Event()

    def slow(**request):
        found = list_records(**request)
        if not begun.is_set():
            begun.set()
            go_on.wait(60)
        return found

    client.list_memory_records = slow
    first, second = bench.agent(manager, agent_id="one"), bench.agent(manager, agent_id="two")
    turn = threading.Thread(target=first, args=("First",))
    turn.start()
    assert begun.wait(60)
    manager.config.actor_id = other = f"{bench.actor}-other"
    second("Second")
    go_on.set()
    turn.join(60)
    second("Third")

    assert "Mine alone." in str(first.model.calls[0])
    assert not any("Mine alone." in str(call) for call in second.model.calls)
    lines = [json.loads(line) for line in traces.read_text().splitlines()]
    assert sorted((line["actor_id"], len(line["records"])) for line in lines) == [
        (bench.actor, 1),
        (other, 0),
        (other, 0),
    ]
