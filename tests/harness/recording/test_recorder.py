"""Answers are recorded, and replayed to the digit without asking anybody."""

from __future__ import annotations

import json
import threading

import pytest
from scripted import Broken, Scripted, recorded

from harness.errors import HarnessError, RunFailed
from harness.recording.recorder import RecordingDecider
from strands_gated_memory.core.questions import NoAnswer, Noul, Question, Thresholds
from strands_gated_memory.core.wordings import GATE_GRADED, GATE_PLAIN

SECRET = "my sister Aoife"
STATE = {"message": f"Call {SECRET}", "previous": ["Hi", "Hello"]}
QUESTIONS = {"a": GATE_PLAIN.question(), "b": GATE_GRADED.question()}


def replayed(path, name=None):
    return RecordingDecider(None, path, True, name=name)


def test_a_replay_gives_the_same_answers_and_latencies_without_the_decider(tmp_path):
    scripted = Scripted(lambda message, question: 1 / 3)
    with recorded(scripted, tmp_path) as live:
        first = live.decide(STATE, QUESTIONS)
    again = replayed(tmp_path / "scripted.jsonl")

    assert dict(again.decide(STATE, QUESTIONS)) == dict(first)
    assert again.calls == live.calls
    assert again.total_ms == live.total_ms
    assert (again.name, again.model_id) == ("scripted", "scripted-1")
    assert len(scripted.requests) == 1


def test_the_file_holds_no_text(tmp_path):
    with recorded(Scripted(lambda message, question: 0.5), tmp_path) as live:
        live.decide(STATE, QUESTIONS)

    assert SECRET not in (tmp_path / "scripted.jsonl").read_text()


def test_an_answer_that_was_never_recorded_is_an_error_that_says_what_to_do(tmp_path):
    with recorded(Scripted(lambda message, question: 0.5), tmp_path) as live:
        live.decide(STATE, QUESTIONS)
    again = replayed(tmp_path / "scripted.jsonl")

    with pytest.raises(RunFailed, match=r"no answer to 1 of 3 .* record again"):
        again.decide(STATE, {**QUESTIONS, "c": Question("noul", "Another?")})
    with pytest.raises(RunFailed, match="2 of 2"):
        again.decide({**STATE, "previous": []}, QUESTIONS)
    again.run = 1
    with pytest.raises(RunFailed, match="run 1"):
        again.decide(STATE, QUESTIONS)


def test_every_run_keeps_its_own_answer(tmp_path):
    level = iter([0.25, 0.75])
    with recorded(Scripted(lambda message, question: next(level)), tmp_path) as live:
        for run in (0, 1):
            live.run = run
            live.decide(STATE, {"a": QUESTIONS["a"]})
    again = replayed(tmp_path / "scripted.jsonl")
    found = []
    for run in (0, 1):
        again.run = run
        found.append(again.decide(STATE, {"a": QUESTIONS["a"]})["a"])

    assert found == [Noul(0.25), Noul(0.75)]


def test_failures_are_counted_recorded_and_replayed(tmp_path):
    with recorded(Broken(), tmp_path, "broken") as live, pytest.raises(RuntimeError, match="does not exist"):
        live.decide(STATE, QUESTIONS)
    again = replayed(tmp_path / "broken.jsonl")
    with pytest.raises(Exception, match="RuntimeError"):
        again.decide(STATE, QUESTIONS)

    assert live.errors == again.errors == {"RuntimeError": 2}
    assert again.error_text() == "2 (RuntimeError 2) of 2 questions"


def test_unusable_answers_are_errors_and_abstentions_are_not(tmp_path):
    class Odd:
        model_id = "odd"

        def decide(self, state, questions):
            return {"a": Noul(7.0), "b": NoAnswer("abstained")}

    with recorded(Odd(), tmp_path) as live:
        live.decide(STATE, {**QUESTIONS, "c": Question("noul", "Missing?")})
    again = replayed(tmp_path / "scripted.jsonl")
    again.decide(STATE, {**QUESTIONS, "c": Question("noul", "Missing?")})

    assert live.errors == again.errors == {"invalid": 1, "missing": 1}
    assert live.abstained == again.abstained == 1


def test_shipped_thresholds_are_replayed(tmp_path):
    scripted = Scripted(lambda message, question: 0.5)
    scripted.thresholds = Thresholds(0.1, 0.2, 0.3, 0.4)
    recorded(scripted, tmp_path).close()

    assert replayed(tmp_path / "scripted.jsonl").thresholds == Thresholds(0.1, 0.2, 0.3, 0.4)


def test_two_recordings_of_the_same_answers_differ_in_latency_alone(tmp_path):
    files = []
    for order in ([0, 1, 2], [2, 0, 1]):
        folder = tmp_path / str(order[0])
        with recorded(Scripted(lambda message, question: len(message) / 100), folder) as live:
            for at in order:
                live.decide({"message": "x" * (at + 1), "previous": []}, QUESTIONS)
        lines = [json.loads(line) for line in (folder / "scripted.jsonl").read_text().splitlines()]
        files.append([{k: v for k, v in line.items() if k != "ms"} for line in lines])

    assert files[0] == files[1]


def test_answers_are_kept_over_sessions_unless_a_fresh_start_is_asked_for(tmp_path):
    path = tmp_path / "scripted.jsonl"
    for message in ("one", "two"):
        with recorded(Scripted(lambda message, question: 0.5), tmp_path) as live:
            live.decide({"message": message, "previous": []}, QUESTIONS)
    assert len(path.read_text().splitlines()) == 3
    RecordingDecider(Scripted(lambda message, question: 0.5), path, False, name="scripted", fresh=True).close()
    assert len(path.read_text().splitlines()) == 1


def test_a_missing_or_damaged_recording_is_named(tmp_path):
    with pytest.raises(HarnessError, match=r"no recording .*absent\.jsonl"):
        replayed(tmp_path / "absent.jsonl")
    path = tmp_path / "bad.jsonl"
    path.write_text('{"decider": "x", "model": "y"}\n{"model": 1\n')
    with pytest.raises(HarnessError, match=r"bad\.jsonl, line 2"):
        replayed(path)
    path.write_text("")
    with pytest.raises(HarnessError, match="is empty"):
        replayed(path)


def test_threads_may_share_it(tmp_path):
    with recorded(Scripted(lambda message, question: len(message) / 100), tmp_path) as live:
        threads = [
            threading.Thread(target=live.decide, args=({"message": "x" * (at + 1), "previous": []}, QUESTIONS))
            for at in range(24)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    again = replayed(tmp_path / "scripted.jsonl")

    for at in range(24):
        assert again.decide({"message": "x" * (at + 1), "previous": []}, QUESTIONS)["a"] == Noul((at + 1) / 100)


@pytest.mark.parametrize(
    ("at", "change"),
    [
        pytest.param(0, {"model": None}, id="model"),
        pytest.param(0, {"thresholds": {"x": 1}}, id="another threshold"),
        pytest.param(0, {"thresholds": {"gate": 7, "router": 0.1, "validator": 0.1}}, id="threshold of 7"),
        pytest.param(0, {"deadline_s": "x"}, id="deadline"),
        pytest.param(1, {"ms": None}, id="no latency"),
        pytest.param(1, {"ms": -5}, id="latency below 0"),
        pytest.param(1, {"run": "0"}, id="run"),
        pytest.param(1, {"error": 3}, id="error"),
        pytest.param(1, {"answers": {"a": 2.0}}, id="probability of 2"),
        pytest.param(1, {"answers": {"a": float("nan")}}, id="NaN"),
        pytest.param(1, {"answers": {"a": None}}, id="no answer and no error"),
        pytest.param(1, {"answers": {"a": {"choice": "x"}}}, id="choice without probabilities"),
        pytest.param(1, {"answers": {"a": True}}, id="true for a probability"),
        pytest.param(1, {"answers": {"a": "0.5"}}, id="text for a probability"),
        pytest.param(1, {"answers": {"a": {"choice": "x", "p": {"x": 1.5}}}}, id="option of 1.5"),
        pytest.param(1, {"answers": {"a": {"choice": "x", "p": {"y": 0.5}}}}, id="choice that is no option"),
        pytest.param(1, {"answers": {"a": {"none": "bored"}}}, id="unknown reason"),
        pytest.param(1, {"thresholds": {"gate": 1.5}}, id="threshold of an answer"),
        pytest.param(1, {"reported": 3}, id="reported model"),
    ],
)
def test_a_recording_with_a_wrong_field_is_refused_by_file_and_line(tmp_path, at, change):
    with recorded(Scripted(lambda message, question: 0.5), tmp_path) as live:
        live.decide(STATE, QUESTIONS)
    path = tmp_path / "scripted.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[at] |= change
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    with pytest.raises(HarnessError, match=rf"scripted\.jsonl, line {at + 1}: not a line of a recording"):
        replayed(path)


def test_a_recording_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "scripted.jsonl"
    path.write_bytes(b"\xff\xfe")

    with pytest.raises(HarnessError, match=r"scripted\.jsonl, line 1"):
        replayed(path)
