"""A decision model that fails costs nothing but the decision: memory is recalled, and the failure is told."""

import logging
import math

import numpy
import pytest
from turn_builders import (
    AS_SHIPPED,
    FACTS,
    PREFERENCES,
    Asked,
    Hanging,
    blocks_per_call,
    broken,
    judging,
    last_block,
    no,
    probabilities,
    yes,
)

from strands_gated_memory import ConfigurationError, NoAnswer, Thresholds
from strands_gated_memory.core.questions import Reply

NAMESPACES = (FACTS, PREFERENCES)


def noul(value):
    return {"type": "noul", "noul": value}


def answering(value):
    """Return a decision function whose every answer is `value`."""
    return lambda state, questions: dict.fromkeys(questions, value)


def remember_some(bench):
    bench.remember("Likes tea", "Has a cat called Mokka", "Works at night")
    return bench.remember('{"preference": "Window seat", "context": "Travel"}', "likes TEA.", namespace=PREFERENCES)


def warnings_in(caplog):
    return [r for r in caplog.records if r.levelno >= logging.WARNING and r.name.startswith("strands_gated_memory")]


def test_a_decider_that_always_fails_changes_nothing_but_the_counters(bench, caplog):
    """Eight turns: the records of `decider=None`, no open or closed gate, a shouting first line, two WARNINGs."""
    remember_some(bench)
    managers = {
        name: bench.manager(decider=decider, namespaces=NAMESPACES, session_id=name)
        for name, decider in (("broken", broken), ("none", None))
    }
    injected = {}
    for name, manager in managers.items():
        agent = bench.agent(manager)
        injected[name] = []
        for number in range(8):
            agent(f"What do I drink? {number}")
            injected[name].append(manager.last_recall.records)
        assert blocks_per_call(agent) == [1] * 8

    stats = managers["broken"].stats
    assert injected["broken"] == injected["none"]
    assert len(injected["none"][0]) == 4
    assert (stats.as_dict()["gate"]["open"], stats.as_dict()["gate"]["closed"]) == (0, 0)
    assert stats.as_dict()["gate"]["failed"] == 8
    first = str(stats).splitlines()[0]
    assert first == "!! decider errors  16  (failed open: results below reflect UNGATED behaviour)"
    stages = [record.getMessage().split(",")[0] for record in warnings_in(caplog)]
    assert stages == ["stage=<gate>", "stage=<validator>"]
    assert all("no model here" in record.getMessage() for record in warnings_in(caplog))
    assert "!!" not in str(managers["none"].stats)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(None, "missing", id="none"),
        pytest.param(noul(math.nan), "invalid", id="nan"),
        pytest.param(noul(math.inf), "invalid", id="infinite"),
        pytest.param(noul(-0.1), "invalid", id="below 0"),
        pytest.param(noul(1.5), "invalid", id="above 1"),
        pytest.param(noul("0.9"), "invalid", id="text"),
        pytest.param(noul(True), "invalid", id="boolean"),
        pytest.param(noul(None), "invalid", id="null"),
        pytest.param({"type": "noul"}, "invalid", id="no value"),
        pytest.param({"type": "choice", "choice": "yes", "probabilities": {"yes": 1.0}}, "invalid", id="wrong type"),
        pytest.param({}, "invalid", id="empty"),
        pytest.param(0.9, "invalid", id="bare number"),
        pytest.param("yes", "invalid", id="word"),
        pytest.param([0.9], "invalid", id="list"),
        pytest.param({"type": "refusal", "reason": "no"}, "refused", id="refused"),
    ],
)
def test_an_unusable_answer_keeps_its_record_and_is_counted(bench, answer, kind):
    """Gate, namespaces and records: everything is searched and kept, each answer counted by its kind."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=answering(answer), namespaces=NAMESPACES)
    agent = bench.agent(manager)

    agent("What do I drink?")

    assert last_block(agent) == ["Likes tea"]
    assert len(bench.searches()) == 2
    assert manager.stats.as_dict()["decider_errors_by_kind"] == {kind: 4}
    assert manager.stats.as_dict()["gate"]["failed"] == 1
    assert str(manager.stats).startswith("!! decider errors  4")


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        pytest.param(None, "bad_answer", id="none"),
        pytest.param([noul(0.0)], "bad_answer", id="list"),
        pytest.param("no", "bad_answer", id="text"),
        pytest.param(0.0, "bad_answer", id="number"),
    ],
)
def test_a_reply_that_is_no_mapping_fails_the_request(bench, reply, kind):
    """Gate and validator both fail open, one error each."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=lambda state, questions: reply)
    agent = bench.agent(manager)

    agent("What do I drink?")

    assert last_block(agent) == ["Likes tea"]
    assert manager.stats.as_dict()["decider_errors_by_kind"] == {kind: 2}


@pytest.mark.parametrize(
    "fields",
    [
        {"thresholds": {"gate": 5}},
        {"thresholds": {"gate": "0.5"}},
        {"thresholds": {"nope": 0.1}},
        {"model": ["m"]},
        {"answered_by": {}},
        {"passed_over": 3},
        {"truncated": "2"},
    ],
    ids=str,
)
def test_a_reply_with_fields_of_another_type_fails_the_request(bench, fields):
    """It costs a decision, and not the memory: a cut of 5 would close the gate for ever."""
    bench.remember("Likes tea")

    class Odd:
        def decide(self, state, questions):
            return Reply(yes(state, questions), **fields)

    manager = bench.manager(decider=Odd())
    agent = bench.agent(manager)

    agent("What do I drink?")

    assert last_block(agent) == ["Likes tea"]
    assert manager.stats.as_dict()["decider_errors_by_kind"] == {"bad_answer": 2}
    assert manager.stats.as_dict()["turn_failures"] == 0


@pytest.mark.parametrize("value", [20, -0.1, "0.2", True, float("nan")])
def test_a_deciders_threshold_must_be_a_probability(value):
    with pytest.raises(ConfigurationError, match=r"Thresholds\.gate must be a number from 0 to 1"):
        Thresholds(gate=value, router=0.2, validator=0.2)


def test_one_missing_answer_costs_only_its_own_record(bench):
    """A reply that lacks one record's id keeps that record and follows the other answers."""
    bench.remember("Likes tea", "Has a cat", "Works at night")

    def decide(state, questions):
        if "gate" in questions:
            return yes(state, questions)
        return {
            name: noul(0.9 if "tea" in question["instructions"] else 0.01)
            for name, question in questions.items()
            if "cat" not in question["instructions"]
        }

    manager = bench.manager(decider=decide)
    agent = bench.agent(manager)
    agent("What do I drink?")

    assert last_block(agent) == ["Likes tea", "Has a cat"]
    assert manager.stats.as_dict()["records_dropped"] == {"below_threshold": 1}
    assert manager.stats.as_dict()["decider_errors_by_kind"] == {"missing": 1}


def test_answers_that_nobody_asked_for_are_ignored(bench):
    """Extra ids change nothing and are no error."""
    bench.remember("Likes tea")

    def decide(state, questions):
        return {**yes(state, questions), "extra": noul(0.0), "record_99": noul(math.nan), 7: None}

    manager = bench.manager(decider=decide)
    agent = bench.agent(manager)
    agent("What do I drink?")

    assert last_block(agent) == ["Likes tea"]
    assert manager.stats.decider_errors == 0


@pytest.mark.parametrize("slow", ["gate", "validator", "both"])
def test_a_slow_decider_costs_its_share_of_the_deadline(bench, slow):
    """The turn goes on while the decider still hangs, with the memory, and the timeout is counted."""
    bench.remember("Likes tea")

    with Hanging() as hanging:

        def decide(state, questions):
            stage = "gate" if "gate" in questions else "validator"
            if slow in (stage, "both"):
                hanging()
            return yes(state, questions)

        manager = bench.manager(decider=decide, policy={"deadline_s": 3.0})
        agent = bench.agent(manager)
        agent("What do I drink?")
        assert not hanging.ended.is_set()

    assert hanging.begun.is_set()
    assert last_block(agent) == ["Likes tea"]
    assert manager.stats.as_dict()["decider_errors_by_kind"] == {"timeout": 2 if slow == "both" else 1}


def test_a_late_answer_never_touches_a_later_turn(bench):
    """What a slow first request answers, after its time, is not the second turn's decision."""
    bench.remember("Likes tea")

    with Hanging() as hanging:

        def decide(state, questions):
            if state["message"] == "slow" and "gate" in questions:
                hanging()
                return no(state, questions)
            return yes(state, questions)

        manager = bench.manager(decider=decide, policy={"deadline_s": 3.0})
        agent = bench.agent(manager)
        agent("slow")
        agent("What do I drink?")
        hanging.release()
        assert hanging.ended.wait(30)
        agent("And now?")

    assert blocks_per_call(agent) == [1, 1, 1]
    gate = manager.stats.as_dict()["gate"]
    assert (gate["open"], gate["closed"], gate["failed"]) == (2, 0, 1)


def test_a_working_decider_gates_routes_and_validates(bench):
    """The other side of failing open: a closed gate searches nothing, a namespace or record below is left out."""
    remember_some(bench)
    closed = bench.manager(decider=no, namespaces=NAMESPACES, session_id="closed")
    bench.agent(closed)("Thanks!")
    assert bench.searches() == []
    assert closed.stats.as_dict()["gate"]["closed"] == 1

    routed = bench.manager(decider=probabilities(0.9, namespace_0=0.01), namespaces=NAMESPACES, session_id="routed")
    bench.agent(routed)("Where do I sit?")
    assert [call.namespace_path for call in bench.searches()] == [f"/preferences/{bench.actor}/"]

    judged = bench.manager(decider=judging(Mokka=0.95, tea=0.6, night=0.01), session_id="judged")
    agent = bench.agent(judged)
    agent("Who is at home?")
    assert last_block(agent) == ["Has a cat called Mokka", "Likes tea"]


def test_a_decider_is_asked_twice_a_turn_at_most(bench):
    """Gate and router share a request, and so do all records."""
    remember_some(bench)
    asked = Asked()

    bench.agent(bench.manager(decider=asked, namespaces=NAMESPACES))("What do I drink?")

    assert [sorted(questions) for questions in asked.questions] == [
        ["gate", "namespace_0", "namespace_1"],
        ["record_0", "record_1", "record_2", "record_3"],
    ]


def test_an_abstention_opens_the_gate_and_is_no_failure(bench, caplog):
    """A model that says it cannot read the turn: everything is recalled, counted apart, and nothing shouts."""

    class Abstaining:
        def decide(self, state, questions):
            return dict.fromkeys(questions, NoAnswer("abstained"))

    bench.remember("Likes tea")
    manager = bench.manager(decider=Abstaining())
    agent = bench.agent(manager)
    agent("Quid bibo?")

    counts = manager.stats.as_dict()
    assert last_block(agent) == ["Likes tea"]
    assert (counts["gate"]["abstained"], counts["decider_abstentions"], counts["decider_errors"]) == (1, 2, 0)
    assert "!!" not in str(manager.stats)
    assert warnings_in(caplog) == []


def test_a_decider_brings_its_deadline_its_thresholds_and_a_warm_up_that_may_fail(bench):
    """All three are used where the policy sets none; a warm-up that raises is found out at the first decision."""
    hanging = Hanging(at_most_s=60)  # far over the decider's own deadline

    class Own:
        deadline_s = 0.4
        thresholds = Thresholds(gate=0.95, router=0.95, validator=0.95)

        def warm(self):
            raise OSError("no weights")

        def decide(self, state, questions):
            if "hang" in state["message"]:
                hanging()
            return yes(state, questions)

    bench.remember("Likes tea")
    manager = bench.manager(waits=AS_SHIPPED, decider=Own())
    bench.agent(manager)("What do I drink?")
    assert manager.stats.as_dict()["gate"]["closed"] == 1

    manager = bench.manager(
        waits=AS_SHIPPED, decider=Own(), policy={"gate": {"threshold": 0.5}}, session_id="session-2"
    )
    with hanging:
        bench.agent(manager)("hang")
        assert not hanging.ended.is_set()
    assert manager.stats.as_dict()["gate"]["failed"] == 1


@pytest.mark.parametrize(
    "name", ["thresholds", "deadline_s", "model_id", "breakers", "answers_custom", "warm", "remote"]
)
def test_an_attribute_that_raises_when_read_is_as_good_as_none(bench, name):
    """A decider's property that breaks costs neither the memory nor the decision."""

    def broken(self):
        raise RuntimeError("not configured")

    decider = type("Odd", (), {name: property(broken), "decide": lambda self, state, questions: yes(state, questions)})
    bench.remember("Likes tea")
    manager = bench.manager(decider=decider(), policy={"validator": {"drop_instructions": True}})
    bench.agent(manager)("What do I drink?")

    counts = manager.stats.as_dict()
    assert (counts["turn_failures"], counts["gate"]["open"], counts["records_returned"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("model", "shown"), [("acme/judge-2", {"acme/judge-2": 1}), ("What do I drink?", {}), ("x" * 200, {}), ("", {})]
)
def test_what_is_no_model_id_is_not_taken_for_one(bench, model, shown):
    """A server that echoes the message would put it into counters, spans and traces."""
    manager = bench.manager(decider=type("Named", (), {"decide": lambda self, s, q: Reply(no(s, q), model=model)})())
    bench.agent(manager)("What do I drink?")

    assert manager.stats.as_dict()["decider_models"] == shown


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (0.9, "float alone"),
        (1, "int alone"),
        (True, "bool alone"),
        ("xyzzymarker", "str alone"),
        (None, "nothing, or None,"),
        ([0.9], "list alone"),
        (numpy.float32(0.9), "float32 alone"),
        (numpy.bool_(True), "bool"),
        ({"probability": 0.9}, "a dict without 'noul'"),
        ({"xyzzymarker": 0.9}, "a dict without 'noul'"),
        ({"type": "noul", "noul": "xyzzymarker"}, "'noul' with str"),
        ({"noul": 90}, "'noul' with a number outside 0 to 1"),
        ({"type": "score", "probabilities": {"0": 1.0}}, "a dict of another type"),
    ],
    ids=str,
)
def test_what_is_no_answer_is_told_once_by_its_type_and_with_what_to_write(bench, caplog, answer, came):
    """In the usual log and in the text of the counters; what came itself, which may quote the user, is in neither."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=lambda state, questions: dict.fromkeys(questions, answer))
    agent = bench.agent(manager)
    for _ in range(3):
        agent("What is the answer to a question that a function returned?")

    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    assert len([one for one in warnings if "stage=<gate>" in one]) == 1
    for text in (warnings[0], str(manager.stats)):
        assert came in text
        assert 'write {"type": "noul", "noul": P(yes) from 0 to 1}' in text
    assert "xyzzymarker" not in caplog.text + str(manager.stats)


@pytest.mark.parametrize("returned", [0.9, None, ["gate"], "yes", True], ids=str)
def test_a_function_that_returns_no_mapping_is_told_what_to_write(bench, caplog, returned):
    """Even if the user's words are those of the message."""
    manager = bench.manager(decider=lambda state, questions: returned)
    bench.agent(manager)("Which decider returned a mapping of questions to answers? Write it!")

    for text in (caplog.text, str(manager.stats)):
        assert f"the decider returned {type(returned).__name__}, not a mapping" in text
        assert '"noul": P(yes) from 0 to 1' in text


def test_a_member_of_a_list_that_returns_no_answers_is_told_what_to_write(bench, caplog):
    """By its name, though the next one answered."""

    def numbers(state, questions):
        return dict.fromkeys(questions, 0.9)

    def nothing(state, questions):
        return None

    manager = bench.manager(decider=[numbers, nothing, yes])
    bench.agent(manager)("What do I drink?")

    assert "reason=<numbers: no usable answer>, count=<1>, cause=<float alone came" in caplog.text
    assert "reason=<nothing: bad_answer>, count=<1>, cause=<the decider returned NoneType" in caplog.text
    assert "float alone came" in str(manager.stats)
    assert manager.last_recall.trace.gate.outcome == "open"
