"""Circuit breakers: the state machine, who shares one, and how a pipeline uses it."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import pytest

from strands_gated_memory import NoAnswer, RecallPipeline, RecallPolicy, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.errors import AccessDenied
from strands_gated_memory.policy import BreakerSettings
from strands_gated_memory.runtime.guard import CircuitBreaker, breaker_of, reset_breakers

SETTINGS = BreakerSettings(failures=3, cooldown_s=10)
FACTS, TASTES = "/facts/{actorId}/", "/tastes/{actorId}/"
TURN = Turn("What should I drink?")


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return CircuitBreaker("b", clock)


def call(breaker, ok):
    """Make a call if it is admitted; return whether it was."""
    ticket = breaker.admit(SETTINGS)
    if ticket is not None:
        breaker.report(ticket, ok, SETTINGS)
    return ticket is not None


def test_it_opens_after_so_many_failures_in_a_row(breaker):
    for ok in (False, False, True, False, False):
        assert call(breaker, ok)
    assert breaker.state == "closed"

    assert call(breaker, False)

    assert breaker.state == "open"
    assert not call(breaker, True)


def test_after_the_cooldown_one_call_probes_and_a_success_closes(breaker, clock):
    for _ in range(3):
        call(breaker, False)
    clock.now += 9.9
    assert breaker.admit(SETTINGS) is None
    clock.now += 0.1

    probe = breaker.admit(SETTINGS)

    assert probe is not None
    assert breaker.state == "half_open"
    assert breaker.admit(SETTINGS) is None
    breaker.report(probe, True, SETTINGS)
    assert breaker.state == "closed"
    assert call(breaker, True)


def test_a_failed_probe_opens_for_another_cooldown(breaker, clock):
    for _ in range(3):
        call(breaker, False)
    clock.now += 10
    call(breaker, False)

    assert breaker.state == "open"
    clock.now += 9.9
    assert not call(breaker, True)
    clock.now += 0.1
    assert call(breaker, True)
    assert breaker.state == "closed"


def test_a_probe_that_nobody_reports_is_followed_by_another(breaker, clock):
    for _ in range(3):
        call(breaker, False)
    clock.now += 10
    assert breaker.admit(SETTINGS) is not None
    clock.now += 10

    assert call(breaker, True)
    assert breaker.state == "closed"


@pytest.mark.parametrize("ok", [True, False])
def test_a_call_from_before_tells_nothing_of_now(breaker, clock, ok):
    """A slow call that began while the breaker was closed neither closes it nor spoils the probe."""
    early = breaker.admit(SETTINGS)
    for _ in range(3):
        call(breaker, False)
    breaker.report(early, ok, SETTINGS)
    assert breaker.state == "open"
    clock.now += 10
    probe = breaker.admit(SETTINGS)
    breaker.report(early, ok, SETTINGS)
    assert breaker.state == "half_open"
    breaker.report(probe, True, SETTINGS)
    assert breaker.state == "closed"


def test_a_probe_that_is_withdrawn_costs_no_cooldown(breaker, clock):
    """Another breaker refused the same call, or it had no time: the next call is the probe."""
    for _ in range(3):
        call(breaker, ok=False)
    clock.now += 10
    ticket = breaker.admit(SETTINGS)
    breaker.withdraw(ticket)
    assert breaker.state == "open"

    assert call(breaker, ok=True)
    assert breaker.state == "closed"
    breaker.withdraw(ticket)
    assert breaker.state == "closed"


@pytest.mark.parametrize("setting", [None, {"failures": None}])
def test_it_can_be_switched_off(breaker, setting):
    settings = RecallPolicy(breaker=setting).breaker
    for _ in range(50):
        breaker.report(breaker.admit(settings), False, settings)

    assert breaker.state == "closed"
    assert breaker.admit(settings) is not None


@pytest.mark.parametrize("setting", [{"failures": 0}, {"failures": True}, {"cooldown_s": 0}, {"cooldown": 3}, 5])
def test_settings_that_mean_nothing_are_refused(setting):
    with pytest.raises(ValueError, match="validation error"):
        RecallPolicy(breaker=setting)


def test_many_threads_get_one_probe(breaker, clock):
    for _ in range(3):
        call(breaker, False)
    clock.now += 10
    admitted, start = [], threading.Barrier(16)

    def ask():
        start.wait()
        admitted.append(breaker.admit(SETTINGS))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len([ticket for ticket in admitted if ticket is not None]) == 1


# Who shares one


class Model:
    def decide(self, state, questions):
        return {}

    def answer(self, state, questions):
        return {}


def test_a_name_is_one_for_the_process_and_an_object_as_long_as_it_lives():
    one, other = Model(), Model()

    assert breaker_of("jev", "jev") is breaker_of("jev", "jev")
    assert breaker_of(one, "Model") is breaker_of(one, "Model")
    assert breaker_of(one, "Model") is not breaker_of(other, "Model")
    assert breaker_of(one.answer, "f") is breaker_of(one.answer, "f")
    assert breaker_of(one.answer, "f") is not breaker_of(one.decide, "g")
    assert breaker_of(["jev", one], "list") is breaker_of(["jev", one], "list")
    assert {breaker_of(one, "Model").name, breaker_of(other, "Model").name} == {"Model", "Model (2)"}


def test_an_object_that_is_gone_leaves_no_breaker_to_its_successor():
    from strands_gated_memory.runtime import guard as module

    before = len(module._breakers)
    for _ in range(100):
        call(breaker_of(Model(), "Model"), False)
    gc.collect()

    assert len(module._breakers) == before


def test_namespaces_written_out_for_each_user_do_not_fill_the_registry():
    """Servers that write "/facts/user-17/" make new names for ever; a breaker with nothing to remember goes."""
    from strands_gated_memory.runtime import guard as module

    before = len(module._breakers)
    for number in range(3000):
        call(breaker_of(("retrieval", "m", f"/facts/user-{number}/"), f"retrieval:m:/facts/user-{number}/"), True)
        call(breaker_of(("retrieval", "m", f"/tasks/user-{number}/"), f"retrieval:m:/tasks/user-{number}/"), False)

    assert len(module._breakers) - before <= 1000
    for _ in range(4):  # a manager per request, each dropped: what is counted for the name stays
        call(breaker_of(("retrieval", "m", "/tasks/user-2999/"), "retrieval:m:/tasks/user-2999/"), False)
    assert breaker_of(("retrieval", "m", "/tasks/user-2999/"), "").state == "open"


def test_a_long_lived_object_is_watched_once():
    """A manager per request, one decision function."""
    one = Model()
    before = len(weakref.finalize._registry)
    for _ in range(100):
        call(breaker_of(one, "Model"), True)

    assert len(weakref.finalize._registry) - before <= 1


def test_an_object_that_cannot_be_watched_has_one_of_its_own():
    class Slotted:
        __slots__ = ()

        def decide(self, state, questions):
            return {}

    one = Slotted()

    assert breaker_of(one, "s") is not breaker_of(one, "s")


# In a pipeline


def fails(state, questions):
    raise ConnectionError("nobody there")


def says(probability):
    return lambda state, questions: {name: {"noul": probability} for name in questions}


def found(namespace):
    return [Record("Likes tea.", namespace)]


def decider_breakers(stats):
    return [state for name, state in stats.as_dict()["breakers"].items() if name.startswith("decider:")]


def recalled(stats, pipeline, search=found, namespaces=(FACTS,)):
    recall = pipeline.recall(TURN, namespaces, search)
    stats.add(recall)
    return recall


def test_a_failing_decider_is_no_longer_asked_and_memory_is_recalled_all_the_same():
    asked, stats = [], RecallStats()

    def decide(state, questions):
        asked.append(1)
        raise ConnectionError

    pipeline = RecallPipeline(resolve_decider(decide), RecallPolicy(breaker={"failures": 4}))
    recalls = [recalled(stats, pipeline) for _ in range(5)]

    assert len(asked) == 4
    assert all([record.text for record in one.records] == ["Likes tea."] for one in recalls)
    counts = stats.as_dict()
    assert counts["decider_skipped"] == 6
    assert counts["decider_errors_by_kind"] == {"ConnectionError": 4, "circuit_open": 6}
    assert (counts["decider_calls"], counts["gate"]["failed"]) == (4, 5)
    assert decider_breakers(stats) == ["open"]
    assert "decider skipped" in str(stats)
    assert "breakers not closed" in str(stats)


def test_it_recovers_by_itself():
    broken, stats = [True], RecallStats()

    def decide(state, questions):
        return fails(state, questions) if broken else says(0.9)(state, questions)

    pipeline = RecallPipeline(resolve_decider(decide), RecallPolicy(breaker={"failures": 2, "cooldown_s": 0.1}))
    recalled(stats, pipeline)
    assert decider_breakers(stats) == ["open"]
    broken.clear()
    time.sleep(0.12)

    recall = recalled(stats, pipeline)

    assert recall.trace.gate.outcome == "open"
    assert decider_breakers(stats) == ["closed"]
    assert "breakers" not in str(stats)


@pytest.mark.parametrize(
    ("decide", "opens"),
    [
        (lambda state, questions: dict.fromkeys(questions), True),
        (lambda state, questions: {name: {"noul": 7} for name in questions}, True),
        (lambda state, questions: None, True),
        (lambda state, questions: {name: NoAnswer("abstained") for name in questions}, False),
        (lambda state, questions: {"gate": {"noul": 0.9}, "record_0": {"noul": 0.9}}, False),
    ],
    ids=["missing", "invalid", "no mapping", "abstained", "partly"],
)
def test_no_usable_answer_at_all_is_a_failure_and_an_abstention_is_none(decide, opens):
    stats, pipeline = RecallStats(), RecallPipeline(resolve_decider(decide), RecallPolicy(breaker={"failures": 3}))
    for _ in range(3):
        recalled(stats, pipeline, namespaces=(FACTS, TASTES))

    assert (stats.as_dict()["decider_skipped"] > 0) == opens


def test_pipelines_of_one_decider_share_its_breaker():
    """As in a server that makes an agent per request."""
    stats = RecallStats()
    for _ in range(6):
        recalled(stats, RecallPipeline(resolve_decider(fails), RecallPolicy(), decider_key=fails))

    assert stats.as_dict()["decider_errors_by_kind"] == {"ConnectionError": 5, "circuit_open": 7}


def test_a_namespace_that_keeps_failing_is_left_alone_and_the_others_are_not():
    asked, stats = [], RecallStats()

    def search(namespace):
        asked.append(namespace)
        if namespace == FACTS:
            raise AccessDenied("403")
        return found(namespace)

    for _ in range(8):
        pipeline = RecallPipeline(None, RecallPolicy(), target="memory-1")
        recall = recalled(stats, pipeline, search, (FACTS, TASTES))

    assert (asked.count(FACTS), asked.count(TASTES)) == (5, 8)
    assert [record.namespace for record in recall.records] == [TASTES]
    counts = stats.as_dict()
    assert counts["retrieval_skipped"] == 3
    assert counts["retrieval_errors_by_kind"] == {"access_denied": 5, "circuit_open": 3}
    assert (counts["lookups"], counts["stock_lookups"]) == (13, 16)
    assert "saved 0" in str(stats).split("namespace lookups made")[1].splitlines()[0]
    assert counts["breakers"] == {
        f"retrieval:memory-1:{FACTS}": "open",
        f"retrieval:memory-1:{TASTES}": "closed",
    }


def test_a_validator_that_keeps_failing_is_left_alone_and_the_gate_is_not():
    """Its requests are larger: a model may answer every gate in time and no validator's, for the whole deadline."""
    broken, stats = [True], RecallStats()

    def decide(state, questions):
        if "gate" not in questions and broken:
            raise TimeoutError
        return says(0.9)(state, questions)

    def recall_with(cooldown_s):
        policy = RecallPolicy(breaker={"failures": 3, "cooldown_s": cooldown_s})
        recalled(stats, RecallPipeline(resolve_decider(decide), policy, decider_key="a model"))

    for _ in range(5):
        recall_with(cooldown_s=600)

    counts = stats.as_dict()
    assert counts["gate"]["open"] == 5
    assert counts["decider_errors_by_kind"] == {"timeout": 3, "circuit_open": 2}
    assert counts["decider_skipped"] == 2
    deciders = {name: state for name, state in counts["breakers"].items() if name.startswith("decider")}
    assert deciders == {"decider:a model": "closed", "decider:a model:validator": "open"}

    broken.clear()
    recall_with(cooldown_s=0.001)
    assert set(stats.as_dict()["breakers"].values()) == {"closed"}
    assert stats.as_dict()["decider_skipped"] == 2


def test_a_refused_request_burns_no_probe_of_the_other_breaker(clock):
    """The validator's breaker would probe while the decider's own is open: both probe when both may."""
    failing = {"validator"}

    def decide(state, questions):
        if ("gate" if "gate" in questions else "validator") in failing:
            raise OSError("down")
        return {name: {"noul": 0.9} for name in questions}

    policy = RecallPolicy(breaker={"failures": 2, "cooldown_s": 10})
    pipeline = RecallPipeline(resolve_decider(decide), policy)
    for one in pipeline._asker._validator.breakers:
        one._clock = clock

    def errors():
        trace = pipeline.recall(TURN, [FACTS], lambda name: [Record("Likes tea.", name)]).trace
        return [one.error for one in trace.decider_calls]

    assert [errors(), errors()] == [[None, "OSError"]] * 2  # the validator's opens
    clock.now += 6
    failing.add("gate")
    assert errors() == ["OSError", "circuit_open"]  # the decider's own opens: the validator's last failure counts too
    clock.now += 6  # the validator's may probe, the decider's own may not
    assert errors() == ["circuit_open", "circuit_open"]
    failing.clear()
    clock.now += 5

    assert errors() == [None, None]


def test_a_decider_that_is_late_for_what_a_slow_memory_left_is_not_blamed():
    """A namespace hangs and eats the deadline: the validator has no time, turn after turn, and is healthy."""
    over = threading.Event()

    def decide(state, questions):
        if "gate" not in questions:
            over.wait()
        return {name: {"noul": 0.9} for name in questions}

    def search(name):
        if name == TASTES:
            over.wait()
        return [Record("Likes tea.", name)]

    policy = RecallPolicy(deadline_s=2, breaker={"failures": 2, "cooldown_s": 600})
    pipeline = RecallPipeline(resolve_decider(decide), policy)
    for _ in range(2):
        trace = pipeline.recall(TURN, [FACTS, TASTES], search).trace
        assert trace.lookups[1].error == "timeout"
        assert trace.decider_calls[1].error == "timeout"
    over.set()
    trace = pipeline.recall(TURN, [FACTS, TASTES], search).trace

    assert trace.lookups[1].error == "circuit_open"
    assert trace.decider_calls[1].error is None


def test_another_memory_has_breakers_of_its_own():
    def search(namespace):
        raise AccessDenied("403")

    stats = RecallStats()
    for _ in range(5):
        recalled(stats, RecallPipeline(None, RecallPolicy(), target="memory-1"), search)
    recall = recalled(stats, RecallPipeline(None, RecallPolicy(), target="memory-2"))

    assert recall.records
    assert stats.as_dict()["retrieval_skipped"] == 0


def test_a_member_of_a_list_that_keeps_failing_is_passed_over_at_once():
    asked = []

    def first(state, questions):
        asked.append(1)
        raise ConnectionError

    stats = RecallStats()
    pipeline = RecallPipeline(resolve_decider([first, says(0.9)]), RecallPolicy(breaker={"failures": 2}))
    for _ in range(3):
        recalled(stats, pipeline)

    assert len(asked) == 2
    assert stats.as_dict()["decider_passed_over"] == {"first: ConnectionError": 2, "first: circuit_open": 4}
    assert stats.decider_errors == 0
    states = stats.as_dict()["breakers"]
    of_deciders = {name: state for name, state in states.items() if name.startswith("decider:")}
    assert len(of_deciders) == 3  # the list and its members
    assert [name for name, state in of_deciders.items() if state == "open"] == ["decider:first"]
    assert "breakers not closed" in str(stats)


def test_resetting_forgets_every_breaker():
    stats, pipeline = RecallStats(), RecallPipeline(resolve_decider(fails), RecallPolicy())
    for _ in range(4):
        recalled(stats, pipeline)
    reset_breakers()
    recalled(stats, pipeline)

    assert stats.as_dict()["decider_errors_by_kind"]["ConnectionError"] == 7
