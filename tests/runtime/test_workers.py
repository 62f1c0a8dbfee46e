"""Worker pools: a call that hangs costs a thread of its own lane, and no other."""

from __future__ import annotations

import threading
import time
from concurrent.futures import TimeoutError as FutureTimeout

import pytest

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.runtime.threads import PoolFull, WorkerPool

FACTS = "/facts/{actorId}/"
PATIENCE_S = 60.0
"""How long anything here may take before it counts as hanging."""
PATIENT = RecallPolicy(deadline_s=PATIENCE_S, retrieve={"timeout_s": PATIENCE_S / 2})


@pytest.fixture
def release():
    """An event that hung calls wait for; set at the end."""
    event = threading.Event()
    yield event
    event.set()


def pool(name, **settings):
    return WorkerPool(name, **{"size": 6, "share": 2, "backlog": 3, **settings})


def threads_of(name):
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def give_up_on(future):
    until(future.running)
    with pytest.raises(FutureTimeout):
        future.result(timeout=0.02)
    future.cancel()


def until(condition, at_most_s=PATIENCE_S):
    give_up = time.monotonic() + at_most_s
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.005)


def test_a_hanging_lane_costs_its_share_of_threads_then_fails_at_once(release):
    workers = pool("hanging")
    for _ in range(2):
        give_up_on(workers.submit(release.wait, "slow"))

    with pytest.raises(PoolFull, match="2 calls hang"):  # and not when they come back
        workers.submit(release.wait, "slow")

    assert not release.is_set()
    assert len(threads_of("hanging")) <= 2
    assert workers.submit(lambda: "fine", "other").result(timeout=PATIENCE_S) == "fine"


def test_a_call_that_is_given_up_on_twice_counts_once(release):
    """Two who waited for it both cancel: the lane has its other thread all the same, and both when it is back."""
    workers = pool("twice")
    hanging = workers.submit(release.wait, "slow")
    give_up_on(hanging)
    hanging.cancel()

    assert workers.submit(lambda: "fine", "slow").result(timeout=PATIENCE_S) == "fine"

    release.set()
    until(hanging.done)
    both = threading.Barrier(2)
    calls = [workers.submit(lambda: both.wait(PATIENCE_S), "slow") for _ in range(2)]
    assert sorted(call.result(timeout=PATIENCE_S) for call in calls) == [0, 1]


def test_a_lane_comes_back_when_its_calls_do(release):
    workers = pool("back")
    for _ in range(2):
        give_up_on(workers.submit(release.wait, "slow"))
    release.set()

    def works():
        try:
            return workers.submit(lambda: "fine", "slow").result(timeout=PATIENCE_S) == "fine"
        except PoolFull:
            return False

    until(works)


def test_calls_that_came_back_late_hang_no_more(release):
    """Beside one that runs on: two that were given up on and returned cost the lane nothing."""
    workers = pool("late")
    workers.submit(release.wait, "slow")
    for _ in range(2):
        one = threading.Event()
        late = workers.submit(one.wait, "slow")
        give_up_on(late)
        one.set()
        until(late.done)

    assert workers.submit(lambda: "fine", "slow").result(timeout=PATIENCE_S) == "fine"


def test_a_busy_lane_queues_and_loses_nothing():
    """Busy is not hung: more calls than threads wait for their turn."""
    workers = pool("busy", backlog=50)
    running, most, lock = [0], [0], threading.Lock()

    def work(number):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.002)
        with lock:
            running[0] -= 1
        return number

    futures = [workers.submit(lambda n=n: work(n), "server") for n in range(40)]

    assert [future.result(timeout=PATIENCE_S) for future in futures] == list(range(40))
    assert most[0] <= 2


def test_a_full_backlog_refuses_and_cancelled_calls_make_room(release):
    workers = pool("full")
    running = [workers.submit(release.wait, "slow") for _ in range(2)]
    waiting = [workers.submit(release.wait, "slow") for _ in range(3)]
    with pytest.raises(PoolFull, match="3 calls wait"):
        workers.submit(release.wait, "slow")
    for future in waiting:
        assert future.cancel()

    late = workers.submit(lambda: "late", "slow")
    release.set()

    assert late.result(timeout=PATIENCE_S) == "late"
    assert all(future.result(timeout=PATIENCE_S) for future in running)


def test_many_hanging_lanes_never_exceed_the_pool(release):
    workers = pool("many")
    for lane in range(10):
        for _ in range(2):
            workers.submit(release.wait, lane)

    assert len(threads_of("many")) == 6


def test_calls_fail_at_once_when_every_thread_hangs_and_come_back_with_them(release):
    """A decision function per request whose server hangs: each has a lane of its own, and the pool is full."""
    workers = pool("full")
    for lane in range(6):
        give_up_on(workers.submit(release.wait, lane))

    with pytest.raises(PoolFull, match="every one of the 6 full workers hangs"):
        workers.submit(lambda: "fine", "other")

    assert not release.is_set()
    release.set()

    def works():
        try:
            return workers.submit(lambda: "fine", "other").result(timeout=PATIENCE_S) == "fine"
        except PoolFull:
            return False

    until(works)


def test_lanes_without_calls_are_forgotten():
    workers = pool("lanes")
    for number in range(1000):
        workers.submit(lambda: None, number).result(timeout=PATIENCE_S)

    until(lambda: not workers._lanes)


def test_an_exit_in_a_call_reaches_its_future_alone():
    workers = pool("exit")

    def leaves():
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        workers.submit(leaves, "x").result(timeout=PATIENCE_S)
    assert workers.submit(lambda: 1, "x").result(timeout=PATIENCE_S) == 1


# In a pipeline


def says(probability):
    return lambda state, questions: {name: {"noul": probability} for name in questions}


def test_a_hanging_decider_does_not_starve_another(release):
    """Many turns of one that hangs: a bounded number of threads, then "overloaded" at once; another one decides."""

    def hangs(state, questions):
        release.wait()
        return says(0.9)(state, questions)

    policy = RecallPolicy(deadline_s=0.02, breaker=None)
    stats, before = RecallStats(), len(threads_of("gated-memory-decide"))
    hanging = RecallPipeline(resolve_decider(hangs), policy)
    kinds = {}
    while kinds.get("overloaded", 0) < 30 and stats.turns < 300:  # a busy machine may not start each call in time
        stats.add(hanging.recall(Turn("Drink?"), [FACTS], lambda name: [Record("Tea.", name)]))
        kinds = stats.as_dict()["decider_errors_by_kind"]
    fine = RecallPipeline(resolve_decider(says(0.01)), PATIENT).recall(Turn("Drink?"), [FACTS], lambda name: [])

    assert set(kinds) == {"timeout", "overloaded"}
    assert len(threads_of("gated-memory-decide")) - before <= 8 + 1  # the other one needs a thread too
    assert fine.trace.gate.outcome == "closed"
    assert not release.is_set()


def test_a_hanging_memory_does_not_starve_another(release):
    def hangs(namespace):
        release.wait()
        return []

    policy = RecallPolicy(deadline_s=0.02, breaker=None)
    stats, before = RecallStats(), len(threads_of("gated-memory-search"))
    kinds = {}
    while kinds.get("overloaded", 0) < 30 and stats.turns < 300:
        hanging = RecallPipeline(None, policy, target="memory-hanging")
        stats.add(hanging.recall(Turn("Drink?"), [FACTS], hangs))
        kinds = stats.as_dict()["retrieval_errors_by_kind"]
    fine = RecallPipeline(None, PATIENT, target="memory-fine").recall(
        Turn("Drink?"), [FACTS], lambda name: [Record("Tea.", name)]
    )

    assert set(kinds) == {"timeout", "overloaded"}
    assert len(threads_of("gated-memory-search")) - before <= 16 + 1
    assert [record.text for record in fine.records] == ["Tea."]
