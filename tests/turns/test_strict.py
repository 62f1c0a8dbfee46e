"""`on_failure="raise"`: what would fail open ends the turn, counted. And the alarm when most turns failed open."""

import asyncio
import logging
import pickle

import pytest
from strands.hooks import BeforeInvocationEvent
from strands.hooks.registry import HookOrder
from turn_builders import FACTS, PREFERENCES, Hanging, blocks_per_call, broken, last_block, no, yes

from strands_gated_memory import (
    DeciderCall,
    GateDecision,
    GatedMemoryError,
    NoAnswer,
    Recall,
    RecallFailed,
    RecallPipeline,
    RecallPolicy,
    RecallStats,
    Turn,
    TurnTrace,
)
from strands_gated_memory import resolve_decider as resolve

SEARCH = "RetrieveMemoryRecords"


def strict(bench, decider=yes, **settings):
    patient = {"deadline_s": 60.0, "retrieve": {"timeout_s": 30.0}}  # whatever else the machine does
    policy = {"on_failure": "raise", **patient, **settings.pop("policy", {})}
    return bench.manager(decider=decider, policy=policy, **settings)


def validator_breaks(state, questions):
    return yes(state, questions) if "gate" in questions else broken(state, questions)


@pytest.mark.parametrize(
    ("decider", "stage", "kind"),
    [
        pytest.param(broken, "gate", "RuntimeError", id="gate raises"),
        pytest.param(validator_breaks, "validator", "RuntimeError", id="validator raises"),
        pytest.param(lambda s, q: {}, "gate", "missing", id="no answer"),
        pytest.param(lambda s, q: {name: {"noul": 2} for name in q}, "gate", "invalid", id="no probability"),
        pytest.param(lambda s, q: {name: {"type": "refusal"} for name in q}, "gate", "refused", id="refused"),
        pytest.param(lambda s, q: [], "gate", "bad_answer", id="no mapping"),
    ],
)
def test_a_decider_that_fails_ends_the_turn_and_says_where(bench, decider, stage, kind):
    """The exception comes out of `agent(...)`, after the failure has been counted."""
    bench.remember("Likes tea")
    manager = strict(bench, decider)
    agent = bench.agent(manager)

    with pytest.raises(RecallFailed, match=f"stage '{stage}': {kind}") as failed:
        agent("What do I drink?")

    assert (failed.value.stage, failed.value.kind) == (stage, kind)
    assert failed.value.cause
    assert isinstance(failed.value, GatedMemoryError)
    assert kind in manager.stats.as_dict()["decider_errors_by_kind"]
    assert manager.stats.turns == 1
    assert agent.model.calls == []
    assert manager.last_recall is failed.value.recall


def test_a_decider_that_is_late_ends_the_turn(bench):
    bench.remember("Likes tea")
    with Hanging() as hanging:
        manager = strict(bench, lambda state, questions: hanging(), policy={"deadline_s": 0.6})
        agent = bench.agent(manager)

        with pytest.raises(RecallFailed, match="stage 'gate': timeout"):
            agent("What do I drink?")

        assert not hanging.ended.is_set()
    assert agent.model.calls == []


def test_a_search_that_fails_ends_the_turn(bench):
    bench.core.fail(SEARCH, "AccessDeniedException", namespace=f"/facts/{bench.actor}/")
    manager = strict(bench, namespaces=(FACTS, PREFERENCES))

    with pytest.raises(RecallFailed, match=r"retrieve.*access_denied.*/facts/"):
        bench.agent(manager)("What do I drink?")

    assert manager.stats.as_dict()["retrieval_errors_by_kind"] == {"access_denied": 1}


def test_an_unexpected_failure_ends_the_turn_with_its_cause(bench, monkeypatch):
    bench.remember("Likes tea")

    def fail(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(RecallPipeline, "recall", fail)
    manager = strict(bench)

    with pytest.raises(RecallFailed, match=r"turn.*ZeroDivisionError") as failed:
        bench.agent(manager)("What do I drink?")

    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    assert manager.stats.as_dict()["turn_failures"] == 1


@pytest.mark.parametrize("async_mode", [False, True])
def test_it_comes_out_of_every_way_of_invoking(bench, async_mode):
    manager = strict(bench, broken, async_mode=async_mode)

    with pytest.raises(RecallFailed):
        asyncio.run(bench.agent(manager).invoke_async("What do I drink?"))


def test_what_works_raises_nothing(bench):
    """Open, closed, abstained, switched off, empty: none is a failure."""

    def abstains(state, questions):
        return {name: NoAnswer("abstained") for name in questions}

    bench.remember("Likes tea")
    for number, decider in enumerate((yes, no, abstains, None)):
        agent = bench.agent(strict(bench, decider, session_id=f"s{number}"))
        agent("What do I drink?")
        agent("And now?", invocation_state={"recall": False})


def test_the_turn_after_a_failure_works(bench):
    """Strands keeps the message that was added; the next turn recalls."""
    bench.remember("Likes tea")
    bench.core.fail(SEARCH, "ServiceException", times=1)
    agent = bench.agent(strict(bench))
    with pytest.raises(RecallFailed):
        agent("What do I drink?")

    agent("And now?")

    assert last_block(agent) == ["Likes tea"]
    assert blocks_per_call(agent) == [1]


def test_an_ask_that_was_replaced_ends_the_turn_after_it_was_stored(bench):
    """The one failure found out at the end: the parent has written the messages by then."""

    def swap(event):
        event.messages = [{"role": "user", "content": [{"text": "Something else?"}]}]

    manager = strict(bench)
    agent = bench.agent(manager)
    agent.hooks.add_callback(BeforeInvocationEvent, swap, order=HookOrder.SDK_LAST)

    with pytest.raises(RecallFailed, match="ask_not_found"):
        agent("What do I drink?")

    assert "Something else?" in bench.stored()
    assert "Fine." in bench.stored()


def test_the_pipeline_alone_raises_too():
    pipeline = RecallPipeline(resolve(broken), RecallPolicy(on_failure="raise"))
    with pytest.raises(RecallFailed, match="gate"):
        pipeline.gate(Turn("Drink?"), [FACTS])
    with pytest.raises(RecallFailed, match="gate") as failed:
        pipeline.recall(Turn("Drink?"), [FACTS], lambda namespace: [])

    again = pickle.loads(pickle.dumps(failed.value))
    assert (again.stage, again.kind, str(again)) == ("gate", "RuntimeError", str(failed.value))


def test_only_the_two_words_are_accepted():
    with pytest.raises(ValueError, match="on_failure"):
        RecallPolicy(on_failure="ignore")


# The alarm


def test_most_recent_turns_failing_open_is_said_once_at_error(bench, caplog):
    """Over half of at least 20: one ERROR."""
    manager = bench.manager(decider=broken, namespaces=(FACTS,), policy={"stats_log": "off"})
    assert manager.stats.error_rate is None
    agent = bench.agent(manager)

    def errors():
        return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]

    for _ in range(19):
        agent("What do I drink?")
    assert errors() == []
    for _ in range(3):
        agent("What do I drink?")

    assert len(errors()) == 1
    assert "error_rate=<1.00>" in errors()[0]
    assert manager.stats.error_rate == manager.stats.as_dict()["error_rate"] == 1.0
    assert "recent error rate" in str(manager.stats)


def test_the_alarm_comes_again_only_after_recovery():
    """Once over half, then silence until under a quarter of the last 100."""
    stats = RecallStats()
    gate = GateDecision(True, 0.9, {}, ())
    good = Recall((), None, (), TurnTrace(gate, started=0.0))
    bad = Recall(
        (), None, (), TurnTrace(gate, decider_calls=(DeciderCall("gate", 1, 0.1, error="timeout"),), started=0.0)
    )

    def alarms(recall, times):
        return sum(stats.add(recall).alarming_rate is not None for _ in range(times))

    assert alarms(bad, 19) == 0
    assert alarms(bad, 1) == 1
    assert alarms(bad, 30) == 0
    assert alarms(good, 50) == 0
    assert stats.error_rate == 0.5
    assert alarms(bad, 30) == 0
    assert alarms(good, 80) == 0
    assert stats.error_rate < 0.25
    assert alarms(bad, 60) == 1


def test_switched_off_turns_are_no_decisions(bench):
    manager = bench.manager(decider=broken)
    agent = bench.agent(manager)
    agent("What do I drink?", invocation_state={"recall": False})

    assert manager.stats.error_rate is None
