"""A list of deciders: the first that answers within the deadline decides, and who did is counted."""

import threading

import pytest
from loopback import STATE, nouls, serving, system_one

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.core.questions import NoAnswer, Noul, Thresholds
from strands_gated_memory.errors import ConfigurationError, DeciderError, DeciderTimeout
from strands_gated_memory.runtime import clock

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


def works(state, questions):
    return {name: {"type": "noul", "noul": 0.8} for name in questions}


def fails(state, questions):
    raise ConnectionError("gone")


def says_nothing(state, questions):
    return {}


class Abstains:
    def decide(self, state, questions):
        return dict.fromkeys(questions, NoAnswer("abstained"))


class Strict:
    thresholds = Thresholds(gate=0.9, router=0.9, validator=0.9)

    def decide(self, state, questions):
        return {name: Noul(0.8) for name in questions}


@pytest.fixture
def hangs():
    """A decision function that hangs until the end of the test."""
    over = threading.Event()

    def hangs(state, questions):
        over.wait()

    yield hangs
    over.set()


@pytest.mark.parametrize(
    "first", [fails, "hangs", says_nothing, Abstains()], ids=["fails", "hangs", "silent", "abstains"]
)
def test_the_next_one_answers(first, hangs):
    with clock.limited_to(4.0):
        reply = resolve_decider([hangs if first == "hangs" else first, works]).decide(STATE, nouls(2))

    assert reply == {"record_0": Noul(0.8), "record_1": Noul(0.8)}
    assert reply.answered_by == "works"
    assert len(reply.passed_over) == 1


def test_nobody_answers():
    with pytest.raises(DeciderError, match=r"fails: ConnectionError; says_nothing: no usable answer"):
        resolve_decider([fails, says_nothing]).decide(STATE, nouls(1))


def test_everybody_hangs_and_the_deadline_holds(hangs):
    with clock.limited_to(0.5), pytest.raises((DeciderTimeout, DeciderError)):
        resolve_decider([hangs, hangs]).decide(STATE, nouls(1))


def test_all_abstaining_is_an_abstention():
    assert resolve_decider([Abstains(), fails]).decide(STATE, nouls(1)) == {"record_0": NoAnswer("abstained")}


def test_the_answering_models_thresholds_count():
    """0.8 opens the first one's gate, not the strict one's: probabilities of two models are on two scales."""
    turn = Turn("What should I drink?")

    assert RecallPipeline(resolve_decider([works, Strict()])).gate(turn, ["/facts/"]).outcome == "open"
    assert RecallPipeline(resolve_decider([fails, Strict()])).gate(turn, ["/facts/"]).outcome == "closed"


def test_who_answered_is_counted_and_shown(caplog):
    from strands_gated_memory.reporting.log import log_failures

    pipeline = RecallPipeline(resolve_decider([fails, works]), RecallPolicy(deadline_s=60, breaker=None))
    stats = RecallStats()
    for _ in range(3):
        recall = pipeline.recall(Turn("Drink?"), ["/facts/"], lambda name: [Record("Tea.", name)])
        stats.add(recall)
        log_failures(recall)

    assert stats.as_dict()["decider_answered_by"] == {"works": 6}
    assert stats.as_dict()["decider_passed_over"] == {"fails: ConnectionError": 6}
    assert "decider answered by" in str(stats)
    assert stats.decider_errors == 0
    assert caplog.text.count("deciding with another model") == 1


def test_a_dead_server_then_a_live_one():
    with serving(system_one(0.9)) as gone:
        dead = gone.url
    with serving(system_one(0.7)) as server, clock.limited_to(30):
        reply = resolve_decider([dead, server.url]).decide(STATE, nouls(1))

    assert reply == {"record_0": Noul(0.7)}
    assert reply.answered_by == server.url


def test_two_of_the_same_are_told_apart():
    assert [name for name, _ in resolve_decider([works, works]).members] == ["works (1)", "works (2)"]


@pytest.mark.parametrize("spec", [[], [works, None], [works, "jef"]], ids=["empty", "with None", "with a typo"])
def test_a_list_that_makes_no_sense(spec):
    with pytest.raises(ConfigurationError):
        resolve_decider(spec)
