"""A policy says what it does: what it leaves to the decision model, what is in force, equality, copies, slips."""

from __future__ import annotations

import copy
import json
import pickle
import warnings

import pytest
from pydantic import ValidationError

from strands_gated_memory import ConfigurationError, RecallPipeline, RecallPolicy, Record, Turn, resolve_decider
from strands_gated_memory.core.questions import Noul, Reply, Thresholds
from strands_gated_memory.core.wordings import GATE_GRADED, RECORD_TOPICAL, Wording

NAMESPACES = ("/facts/{actorId}/",)
TURN = Turn("What should I drink?")


def half(text):
    """Count half of the characters."""
    return len(text) // 2


class Measured:
    """A decision model that ships cuts and a deadline."""

    model_id = "measured-1"
    deadline_s = 7.0

    def __init__(self, thresholds=None):
        self.thresholds = thresholds or Thresholds(0.4, 0.3, 0.05, 0.1)

    def decide(self, state, questions):
        return {name: Noul(0.25) for name in questions}


class Hosted:
    """A decision model whose replies say which cuts were measured for the model that answered."""

    def decide(self, state, questions):
        stage = "gate" if "gate" in questions else "validator"
        return Reply({name: Noul(0.9) for name in questions}, model="hosted-2", thresholds={stage: 0.6})


def in_force(decider, **policy):
    return str(RecallPipeline(decider, RecallPolicy(**policy)).cuts_in_force())


WRITTEN_OUT = [
    {"validator": {"threshold": 0.2}, "select": {"relative": 0.25}},
    {"gate": {"threshold": 0.2}},
    {"router": {"threshold": 0.2}},
    {"deadline_s": 3.0},
]


@pytest.mark.parametrize("settings", WRITTEN_OUT, ids=",".join)
def test_policies_that_behave_differently_are_not_equal(settings):
    """Writing out the package's default overrides what a decider ships, so it is another policy."""
    written, unset = RecallPolicy(**settings), RecallPolicy()

    assert written != unset
    ours, theirs = RecallPipeline(Measured(), written), RecallPipeline(Measured(), unset)
    assert (ours.cuts_in_force(), ours.deadline_in_force()) != (theirs.cuts_in_force(), theirs.deadline_in_force())


@pytest.mark.parametrize(
    "settings",
    [
        {"gate": {"threshold": None}, "deadline_s": None},
        {"select": {"mode": "hybrid", "max_records": 20}},
        {"breaker": {"failures": 5}, "validator": {}},
    ],
    ids=["unset", "select", "breaker"],
)
def test_a_default_that_is_written_out_makes_no_other_policy(settings):
    """Equal policies have the same cuts, deadline and hash, whatever was passed to make them."""
    written, unset = RecallPolicy(**settings), RecallPolicy()

    assert written == unset
    assert hash(written) == hash(unset)
    ours, theirs = RecallPipeline(Measured(), written), RecallPipeline(Measured(), unset)
    assert (ours.cuts_in_force(), ours.deadline_in_force()) == (theirs.cuts_in_force(), theirs.deadline_in_force())


def test_a_decision_follows_the_cut_that_is_said_to_be_in_force():
    """P 0.25: under the model's own cut of 0.4, over a policy's of 0.2."""
    closed, opened = RecallPipeline(Measured()), RecallPipeline(Measured(), RecallPolicy(gate={"threshold": 0.2}))

    assert (closed.cuts_in_force().gate.value, closed.gate(TURN, NAMESPACES).open) == (0.4, False)
    assert (opened.cuts_in_force().gate.value, opened.gate(TURN, NAMESPACES).open) == (0.2, True)


@pytest.mark.parametrize(
    ("decider", "policy", "said"),
    [
        (None, {}, "gate 0.2 (default), router 0.2 (default), validator 0.2 (default), relative 0.25 (default)"),
        (Measured(), {"validator": {"threshold": 0.5}},
         "gate 0.4 (measured-1), router 0.3 (measured-1), validator 0.5 (policy), relative 0.1 (measured-1)"),
        (Measured(Thresholds(0.4, None, 0.3)), {"select": {"relative": 0.0}},
         "gate 0.4 (measured-1), router 0.2 (default), validator 0.3 (measured-1), relative 0 (policy)"),
    ],
    ids=["nobody", "its own", "some of its own"],
)  # fmt: skip
def test_what_is_in_force_says_who_set_it(decider, policy, said):
    assert in_force(decider, **policy) == said


def test_cuts_of_a_hosted_model_are_in_force_once_it_has_answered():
    """Each stage's from the reply to its request; a policy's still wins."""
    pipeline = RecallPipeline(Hosted(), RecallPolicy(select={"relative": 0.5}))
    before = str(pipeline.cuts_in_force())

    trace = pipeline.recall(TURN, NAMESPACES, lambda name: [Record("Likes tea.", name)]).trace

    assert before == "gate 0.2 (default), router 0.2 (default), validator 0.2 (default), relative 0.5 (policy)"
    now = pipeline.cuts_in_force()
    assert str(now) == "gate 0.6 (hosted-2), router 0.2 (default), validator 0.6 (hosted-2), relative 0.5 (policy)"
    assert dict(trace.thresholds) == {"gate": 0.6, "router": 0.2, "validator": 0.6, "relative": 0.5}


def test_a_policy_prints_what_it_leaves_to_the_decider():
    text = str(RecallPolicy(gate={"threshold": 0.3}, select={"token_counter": half}, breaker=None))

    assert "gate        threshold=0.3, question=gate/criteria/1" in text
    assert "validator   threshold=unset (the decider's own, else 0.2)" in text
    assert "relative=unset (the decider's own, else 0.25)" in text
    assert "token_counter=half" in text
    assert "failures=None" in text
    assert "deadline_s=unset (the decider's own, else 3)" in text


POLICIES = [
    RecallPolicy(),
    RecallPolicy.stock(),
    RecallPolicy(
        gate={"question": GATE_GRADED, "threshold": 0.0}, validator={"question": RECORD_TOPICAL}, breaker=None
    ),
    RecallPolicy(
        router={"pinned": ("/a/",), "descriptions": {"/b/": "pets"}},
        validator={"question": Wording("mine", "Is {subject} it?", ["no", "yes"], "score", yes=["1"], version=3)},
        select={"max_records": None, "relative": 0.5},
        deadline_s=9,
    ),
]


@pytest.mark.parametrize("policy", POLICIES, ids=["default", "stock", "wordings", "everything"])
def test_a_dumped_policy_can_be_made_again(policy):
    """From its dump, from JSON, from a copy, from another process: equal, and in force the same."""
    again = [
        RecallPolicy(**policy.model_dump()),
        RecallPolicy(**json.loads(policy.model_dump_json())),
        RecallPolicy.model_validate_json(policy.model_dump_json()),
        copy.deepcopy(policy),
        pickle.loads(pickle.dumps(policy)),
    ]

    for one in again:
        assert one == policy
        assert in_force(Measured(), **one.model_dump()) == in_force(Measured(), **policy.model_dump())


def test_a_token_counter_of_ones_own_is_kept_in_a_dump_and_refused_by_json():
    policy = RecallPolicy(select={"token_counter": half})

    assert RecallPolicy(**policy.model_dump()) == policy
    assert policy != RecallPolicy()
    with pytest.raises(ValueError, match="a function of yours, which JSON cannot hold"):
        policy.model_dump_json()
    assert RecallPolicy(**policy.model_dump(mode="json", exclude={"select": {"token_counter"}})) == RecallPolicy()


def test_a_wording_with_a_misspelt_field_is_refused_with_the_right_ones():
    with pytest.raises(ValidationError, match=r"gate\.question: a wording has the fields .*instructions"):
        RecallPolicy(gate={"question": {"id": "mine", "instruction": "?"}})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"deadline_s": 3000}, r"deadline_s=3000 .* 50 minutes, .* write deadline_s=3$"),
        ({"deadline_s": 61.0}, r"deadline_s=61\.0 "),
        ({"retrieve": {"timeout_s": 2000}}, r"timeout_s=2000 .* write timeout_s=2$"),
    ],
    ids=["deadline", "just over a minute", "timeout"],
)
def test_a_slip_of_the_unit_draws_a_warning_at_the_callers_line(settings, said):
    with pytest.warns(UserWarning, match=said) as drawn:
        RecallPolicy(**settings)

    assert [one.filename for one in drawn] == [__file__]


def test_an_hour_is_refused_with_what_was_meant():
    with pytest.raises(ValidationError, match=r"deadline_s.*(\n.*)*did you mean 5\?"):
        RecallPolicy(deadline_s=5000)


def test_what_may_take_a_minute_draws_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RecallPolicy(
            deadline_s=60, retrieve={"timeout_s": 60}, router={"pinned_ttl_s": 900}, breaker={"cooldown_s": 90}
        )


def test_a_functions_cuts_are_the_defaults():
    """A plain function ships none."""
    decider = resolve_decider(lambda state, questions: {})

    assert {RecallPipeline(decider).cuts_in_force().gate.source} == {"default"}


class Late:
    """A decision model with a deadline of its own."""

    def __init__(self, deadline_s):
        self.deadline_s = deadline_s

    def decide(self, state, questions):
        return {name: Noul(0.9) for name in questions}


@pytest.mark.parametrize("wrong", ["7", 7000, True, float("nan"), 0, -1], ids=str)
def test_a_deciders_deadline_that_would_be_passed_over_is_refused(wrong):
    """As its thresholds: its author believes it in force."""
    with pytest.raises(ConfigurationError, match=r"Late: its deadline_s must be .*seconds.*write"):
        resolve_decider(Late(wrong))


@pytest.mark.parametrize("in_a_list", [False, True], ids=["alone", "in a list"])
def test_a_deciders_deadline_that_is_likely_in_milliseconds_draws_a_warning(in_a_list):
    with pytest.warns(UserWarning, match=r"deadline_s=3000 .* write deadline_s=3$") as told:
        resolve_decider([Late(3000), Late(3)] if in_a_list else Late(3000))
    assert [one.filename for one in told] == [__file__]


def test_of_a_list_the_first_members_cuts_are_told_until_one_has_answered():
    """They are the cuts of the first turn, if it answers."""
    first, second = Measured(), Measured(Thresholds(0.7, 0.6, 0.5, 0.4))
    pipeline = RecallPipeline(resolve_decider([[first], second]), RecallPolicy(router={"threshold": 0.35}))

    before = str(pipeline.cuts_in_force())
    gate = pipeline.gate(TURN, NAMESPACES)

    assert before.startswith("gate 0.4 (measured-1), router 0.35 (policy), validator 0.05 (measured-1), relative 0.1")
    assert not gate.open
    assert str(pipeline.cuts_in_force()).startswith("gate 0.4 (measured-1)")


def test_of_a_list_the_cuts_of_a_member_without_any_are_the_defaults():
    """Those of the first member do not count for another one's answers."""

    class Broken(Measured):
        def decide(self, state, questions):
            raise RuntimeError

    pipeline = RecallPipeline(resolve_decider([Broken(), lambda state, questions: dict.fromkeys(questions, Noul(0.3))]))

    assert "gate 0.4" in str(pipeline.cuts_in_force())
    assert pipeline.gate(TURN, NAMESPACES).open
    assert "gate 0.2 (default)" in str(pipeline.cuts_in_force())


@pytest.mark.parametrize(
    ("update", "said"),
    [
        ({"gate": {"threshold": 20}}, "did you mean 0.2"),
        ({"deadlines": 3}, "did you mean 'deadline_s'"),
        ({"deadline_s": "3"}, "must be a number of seconds"),
        ({"gate": None}, "gate"),
    ],
    ids=["value", "name", "type", "stage"],
)
def test_a_copy_is_checked_as_a_new_policy_is(update, said):
    with pytest.raises(ValidationError, match=said):
        RecallPolicy().model_copy(update=update)


def test_a_copy_takes_a_stage_as_a_mapping():
    policy = RecallPolicy(gate={"threshold": 0.3}, select={"token_counter": half})

    copied = policy.model_copy(update={"router": {"threshold": 0.4}})
    stage = policy.select.model_copy(update={"max_records": 3})

    assert copied == RecallPolicy(gate={"threshold": 0.3}, router={"threshold": 0.4}, select={"token_counter": half})
    assert (stage.max_records, stage.token_counter) == (3, half)
    with pytest.raises(ValidationError, match="max_record"):
        policy.select.model_copy(update={"max_record": 3})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, RecallPolicy.model_copy], ids=["copy", "deep", "model"])
def test_a_long_deadline_warns_where_it_is_given_and_not_in_its_copies(copied):
    with pytest.warns(UserWarning, match="deadline_s=300"):
        policy = RecallPolicy(deadline_s=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert copied(policy) == policy
