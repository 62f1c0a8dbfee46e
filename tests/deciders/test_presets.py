"""Which threshold an answer is held to, and when a user is told that it may not suit."""

import pytest

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn
from strands_gated_memory.core.questions import Noul, Question, Reply
from strands_gated_memory.core.wordings import GATE_CRITERIA, GATE_PLAIN, Wording
from strands_gated_memory.deciders.presets import tuning_for
from strands_gated_memory.reporting.log import log_failures

CRITERIA = [("gate", "gate/criteria/1"), ("record", "record/criteria/1")]
TURN = Turn("What should I drink?")

KNOWN = {
    "strands-decider-2B-qwen3.5-v1-2610": (0.19, 0.36),
    "strands-decider-2B-hobson-v19": (0.19, 0.36),
    "jev-1.13.0": (0.43, 0.50),
    "typesafe/jev-1.13": (0.43, 0.50),
}


def tuning(model, asked):
    """Of questions about something, in a wording."""
    return tuning_for(model, None, [Question("noul", "?", about=about, wording=wording) for about, wording in asked])


@pytest.mark.parametrize("model", KNOWN)
def test_a_tuned_model_has_its_thresholds(model):
    found = tuning(model, CRITERIA)

    assert (found.thresholds["gate"], found.thresholds["validator"]) == KNOWN[model]
    assert found.untuned == {}


DOUBTFUL = {
    "another release": ("jev-1.14.0", CRITERIA, 0.43, "measured on jev-1.13"),
    "another size": ("strands-decider-E2B-gemma4-v2-2611", CRITERIA, 0.19, "not on strands-decider-E2B"),
    "a family without numbers": ("gpt-6-luna", CRITERIA, None, "no gate threshold is known for gpt-6-luna"),
    "an unknown model": ("mystery-7", CRITERIA, None, "no gate threshold is known for mystery-7"),
    "another wording": ("jev-1.13.0", [("gate", "gate/plain/1")], None, "another wording"),
    "a later version": ("jev-1.13.0", [("gate", "gate/criteria/2")], None, "another wording"),
    "no wording": ("jev-1.13.0", [("gate", None)], None, "another wording"),
}


@pytest.mark.parametrize(("model", "asked", "threshold", "words"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_doubtful_threshold_is_pointed_out(model, asked, threshold, words):
    found = tuning(model, asked)

    assert found.thresholds.get("gate") == threshold
    assert words in found.untuned["gate"]


class Answers:
    """Answers everything alike, as a model of this id."""

    def __init__(self, model, probability=0.3):
        self.model, self.probability = model, probability

    def decide(self, state, questions):
        known = tuning_for(self.model, None, questions.values())
        return Reply(
            {name: Noul(self.probability) for name in questions},
            model=self.model, thresholds=known.thresholds, untuned=known.untuned,
        )  # fmt: skip


def recall(decider, **policy):
    return RecallPipeline(decider, RecallPolicy(**policy)).recall(
        TURN, ["/facts/"], lambda name: [Record("Tea.", name)]
    )


def test_the_same_probability_means_different_things():
    """0.3 opens the gate of strands-decider (0.19) and not of Jev (0.43)."""
    assert recall(Answers("strands-decider-2B-qwen3.5-v1-2610")).trace.gate.outcome == "open"
    assert recall(Answers("jev-1.13.0")).trace.gate.outcome == "closed"


def test_the_policys_threshold_wins_and_silences_the_doubt():
    found = recall(Answers("mystery-7"), gate={"threshold": 0.5}, validator={"threshold": 0.5})

    assert found.trace.gate.outcome == "closed"
    assert found.trace.decider_calls[0].untuned == ()


def test_an_untuned_model_is_warned_about_once_and_shown(caplog):
    stats = RecallStats()
    for _ in range(5):
        found = recall(Answers("jev-1.14.0", 0.9))
        stats.add(found)
        log_failures(found)

    assert caplog.text.count("the gate threshold was measured on jev-1.13") == 1
    assert "strands-gated-memory ask" in caplog.text
    assert str(stats).count("!  the gate threshold was measured on jev-1.13") == 1
    assert "!  the validator threshold" in str(stats)
    assert not str(stats).startswith("!!")
    assert stats.as_dict()["decider_models"] == {"jev-1.14.0": 10}


def test_a_tuned_model_draws_no_warning(caplog):
    log_failures(recall(Answers("jev-1.13.0", 0.9)))

    assert caplog.text == ""


def test_another_wording_of_the_policys_is_asked_and_has_no_preset():
    found = recall(Answers("jev-1.13.0"), gate={"question": GATE_PLAIN})

    assert "another wording than gate/plain/1" in found.trace.decider_calls[0].untuned[0]
    assert found.trace.gate.outcome == "open"  # the policy's default of 0.2


def test_a_changed_default_wording_would_need_a_new_preset():
    """The presets name the version that is asked by default."""
    assert GATE_CRITERIA.key == "gate/criteria/1"
    assert Wording("gate/criteria", "Else.", version=2, about="gate").key == "gate/criteria/2"
