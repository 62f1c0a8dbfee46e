"""Guards: which thread a decider is called in, and whom a late call is blamed on."""

from __future__ import annotations

import threading

import pytest

from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn, resolve_decider
from strands_gated_memory.policy import BreakerSettings
from strands_gated_memory.runtime.decide import KINDS
from strands_gated_memory.runtime.guard import CircuitBreaker, Guard
from strands_gated_memory.runtime.threads import WorkerPool

FACTS = "/facts/{actorId}/"
ONCE = BreakerSettings(failures=1, cooldown_s=60)


def recalled_by(decider):
    pipeline = RecallPipeline(resolve_decider(decider), RecallPolicy(deadline_s=30))
    return pipeline.recall(Turn("Which tea shall I buy?"), [FACTS], lambda name: [Record("Likes green tea.", name)])


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("listed", [True, False])
def test_only_a_decider_that_says_it_is_bounded_is_called_in_the_turns_own_thread(bounded, listed):
    """One that may hang gets a thread, whether it stands alone or in a list."""
    threads = set()

    def decide(_state, questions):
        threads.add(threading.current_thread())
        return {name: {"type": "noul", "noul": 0.9} for name in questions}

    if bounded:
        decide.bounded = True

    assert recalled_by([decide] if listed else decide).block
    assert (threads == {threading.current_thread()}) is bounded
    assert (threading.current_thread() in threads) is bounded


def test_what_a_bounded_decider_raises_costs_its_answer_alone():
    """SystemExit from a library below ends no turn."""

    def decide(_state, _questions):
        raise SystemExit(1)

    decide.bounded = True

    recall = recalled_by(decide)

    assert recall.block
    assert recall.trace.decider_calls[0].error == "SystemExit"


@pytest.mark.parametrize(("is_fair", "state"), [(False, "closed"), (True, "open")])
def test_a_late_call_is_blamed_only_if_it_had_a_fair_time(is_fair, state):
    """What others left too little time says nothing about the dependency."""
    release, breaker = threading.Event(), CircuitBreaker("late")
    guard = Guard(WorkerPool("late", size=2, share=2, backlog=2), KINDS, [breaker])

    result, error = guard.begin(release.wait, ONCE).end(0.02, is_fair=is_fair)
    release.set()

    assert (result, type(error)) == (None, KINDS.timeout)
    assert breaker.state == state
