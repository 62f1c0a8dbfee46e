"""The arms: real agents on an emulated memory, counted from outside."""

import json

import pytest
from scripted import Broken, Scripted, recorded

from harness import cli
from harness.data.datasets import load, shipped
from harness.errors import RunFailed
from harness.measuring.conversation import ARMS, MEASUREMENT, STOCK, evaluate
from harness.measuring.options import Settings
from harness.recording import recorder
from strands_gated_memory.demo.arms import LOOKUP_MS
from strands_gated_memory.testing import HashingEncoder

FAST = Settings(resamples=100)
DEFAULT = "gate + router + validator (the default)"
PERSON = {
    "name": "Test",
    "actor_id": "test",
    "namespaces": {"facts": "/facts/{actorId}", "preferences": "/preferences/{actorId}"},
    "records": [
        {"id": "tea", "namespace": "preferences", "text": "The user drinks green tea in the afternoon."},
        {"id": "nut", "namespace": "facts", "text": "The user is allergic to walnuts."},
        {"id": "cat", "namespace": "facts", "text": "The user has a cat named Mokka."},
        {"id": "car", "namespace": "facts", "text": "The user drives a grey van."},
    ],
    "conversation": [
        {"turn": 1, "user": "Good morning!", "needs_memory": False, "relevant": {}},
        {"turn": 2, "user": "What should I drink?", "needs_memory": True, "relevant": {"tea": 2}},
        {"turn": 3, "user": "What is 3 times 7?", "needs_memory": False, "relevant": {}},
        {"turn": 4, "user": "Which cake could I bake?", "needs_memory": True, "relevant": {"nut": 2}},
    ],
}
RELEVANT = {"What should I drink?": "green tea", "Which cake could I bake?": "walnuts"}


def right(message, question):
    """What a perfect model says."""
    if question.about == "gate":
        return 0.9 if message in RELEVANT else 0.1
    if question.about == "record":
        return 0.9 if RELEVANT.get(message, "nothing") in question.subject else 0.1
    return 0.9 if ("taste" in question.subject or "prefer" in question.subject) == ("drink" in message) else 0.1


@pytest.fixture
def person(tmp_path):
    path = tmp_path / "person.json"
    path.write_text(json.dumps(PERSON))
    return load(path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("conversation")
    (folder / "person.json").write_text(json.dumps(PERSON))
    with recorded(Scripted(right), folder) as decider:
        return evaluate(load(folder / "person.json"), decider, FAST, encoder=HashingEncoder())


def test_every_arm_is_in_every_table(measured):
    assert set(measured.figures) == {arm.name for arm in ARMS}
    what = next(table for table in measured.tables if table.key == "arms-person")
    assert [row[0] for row in what.rows] == [arm.name for arm in ARMS]


def test_the_stock_arms_search_every_turn_and_pile_up(measured):
    for name in (STOCK, "stock rendered"):
        f = measured.figures[name]
        assert (f["retrievals"], f["lookups"], f["decider_calls"]) == (4, 8, 0)
        assert f["records_injected"] == 16
        assert f["must_have_recall"] == 1.0
        assert f["conversation_memory_tokens"] == f["context_tokens"] * 10 / 4  # 1 + 2 + 3 + 4 blocks for 4 turns


@pytest.mark.parametrize("name", ["gate", "gate + router", DEFAULT, "oracle (the labels)"])
def test_the_gate_closes_and_nothing_piles_up(measured, name):
    f = measured.figures[name]

    assert (f["retrievals"], f["closed_turns"]) == (2, [1, 3])
    assert f["conversation_memory_tokens"] == f["context_tokens"]
    assert f["must_have_recall"] == 1.0


def test_each_arm_decides_what_it_is_named_for_and_no_more(measured):
    gate, route, full = (measured.figures[name] for name in ("gate", "gate + router", DEFAULT))

    assert (gate["lookups"], gate["decider_calls"], gate["decider_questions"]) == (4, 4, 4)
    assert gate["records_injected"] == 8
    assert (route["lookups"], route["decider_calls"], route["decider_questions"]) == (2, 4, 12)
    assert (full["lookups"], full["decider_calls"], full["records_injected"]) == (2, 6, 2)
    for mode in ("threshold", "ranking", "hybrid"):
        validated = measured.figures[f"gate + validator, {mode}"]
        assert (validated["lookups"], validated["records_injected"]) == (4, 2)


def test_the_oracle_injects_what_the_labels_say(measured):
    f = measured.figures["oracle (the labels)"]

    assert (f["records_injected"], f["bearing_share"], f["lookups"]) == (2, 1.0, 2)


def test_an_arm_that_always_fails_loses_nothing_and_does_not_look_like_success(measured):
    f = measured.figures["always error"]

    assert (f["retrievals"], f["must_have_recall"], f["closed_turns"]) == (4, 1.0, [])
    assert f["decider_errors"] > 0
    assert any("always error" in said and "no memory was lost" in said for said in measured.sentences)
    assert measured.errors == 0  # those are made on purpose


def test_the_time_is_that_of_the_lookups_and_of_the_recorded_decisions(measured):
    f = measured.figures[DEFAULT]

    assert f["modelled_memory_service_ms"] == 2 * LOOKUP_MS
    assert f["modelled_recall_ms"] == pytest.approx(2 * LOOKUP_MS + f["decider_ms"])
    assert f["break_even_ms_a_turn"] == 2 * LOOKUP_MS / 4
    assert f["break_even_ms_a_call"] == 2 * LOOKUP_MS / 6
    assert 0 < f["decider_ms"] < 10_000


def test_a_replay_asks_nobody_and_gives_the_same_result(tmp_path, person):
    with recorded(Scripted(right), tmp_path) as decider:
        before = evaluate(person, decider, FAST, encoder=HashingEncoder())
    replaying = recorder.recorded("scripted", tmp_path, replay=True)

    after = evaluate(person, replaying, FAST, encoder=HashingEncoder())

    assert after.model_dump(exclude={"timing"}) == before.model_dump(exclude={"timing"})


def test_a_recording_of_other_data_stops_the_run_instead_of_failing_open(tmp_path, person):
    with recorded(Scripted(right), tmp_path) as decider:
        decider.decide({"message": "Hello", "previous": []}, {})
    replaying = recorder.recorded("scripted", tmp_path, replay=True)

    with pytest.raises(RunFailed, match="record again without --replay"):
        evaluate(person, replaying, FAST, encoder=HashingEncoder())


def test_a_decider_that_fails_fails_the_run(tmp_path, person, monkeypatch, capsys):
    monkeypatch.setattr(recorder, "open_decider", lambda spec: Broken())
    monkeypatch.setattr("harness.measuring.conversation.Encoder", HashingEncoder)
    arguments = ["conversation", "--decider", "mine", "--data", str(person.path), "--out", str(tmp_path / "out")]

    assert cli.main(arguments) == 1
    assert "decider errors" in capsys.readouterr().err
    assert cli.main([*arguments, "--allow-errors"]) == 0
    assert "failed open" in capsys.readouterr().out  # the stamp


def test_a_data_set_without_a_conversation_has_nothing_to_measure(tmp_path):
    assert evaluate(shipped("gate_dev"), recorded(Scripted(right), tmp_path), FAST) is None


@pytest.mark.parametrize("name", MEASUREMENT.data)
def test_the_shipped_conversations_can_be_read(name):
    assert len(shipped(name).conversation.turns) == 8
