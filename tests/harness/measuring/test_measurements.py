"""The measuring commands: what they ask, what they print, when they fail."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scripted import Broken, Scripted, gate_file, recorded, write

from harness import cli
from harness.data.datasets import Dataset, shipped
from harness.errors import RunFailed
from harness.measuring import gate, renderer, router, selection, tables, validator
from harness.measuring.options import Settings
from harness.recording import recorder
from strands_gated_memory.core.questions import Thresholds
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.wordings import GATE_WORDINGS, RECORD_WORDINGS

FAST = Settings(resamples=100)
NEEDED = {f"What should my usual order be, number {at}?": True for at in range(6)}
IDLE = {f"What is {at} times 7?": False for at in range(6)}


def cells(result, key, decider="scripted"):
    """Rows of the table with this key, by their second cell."""
    (table,) = [one for one in result.tables if one.key == key]
    return {row[1]: dict(zip(table.columns, row, strict=True)) for row in table.rows if row[0] == decider}


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command with a decider of the test's own in the place of every specification."""

    def call(decider, *arguments):
        monkeypatch.setattr(recorder, "open_decider", lambda spec: decider)
        return cli.main([*arguments, "--decider", "mine", "--out", str(tmp_path / "out")])

    return call


def test_all_gate_wordings_are_asked_in_one_request_per_utterance(tmp_path):
    scripted = Scripted(lambda message, question: 0.9 if "usual" in message else 0.1)
    data = gate_file(tmp_path / "mine.json", NEEDED | IDLE)
    gate.evaluate(data, recorded(scripted, tmp_path), FAST)

    assert len(scripted.requests) == 12
    assert all(set(asked) == {wording.key for wording in GATE_WORDINGS} for _, asked in scripted.requests)


def test_gate_figures_of_a_decider_that_reads_wordings(tmp_path):
    def answer(message, question):
        needed = "usual" in message
        if question.wording == "gate/criteria/1":
            return 0.7 if needed else 0.3
        if question.wording == "gate/inverted/1":
            return 0.1 if needed else 0.8
        return 0.5 + 0.001 * len(message)

    result = gate.evaluate(gate_file(tmp_path / "mine.json", NEEDED | IDLE), recorded(Scripted(answer), tmp_path), FAST)
    rows = cells(result, "gate-separation-mine")

    assert rows["gate/criteria/1"]["AUC"] == "1.000 [1.00, 1.00]"
    assert rows["gate/criteria/1"]["best accuracy"] == "100 %"
    assert rows["gate/criteria/1"]["cut"] == "0.500"
    assert rows["gate/criteria/1"]["margin"] == "+0.400"
    assert rows["gate/criteria/1"]["ECE"] == "0.300"
    assert rows["gate/inverted/1"]["margin"] == "+0.700"
    held = cells(result, "gate-decisions-mine")["gate/criteria/1"]
    assert held["accuracy, held out"] == "100 % [100, 100]"
    assert held["skip at recall 1.0, in sample"] == "100 %"


def test_a_decider_that_does_not_read_wordings_is_told_so(tmp_path):
    scripted = Scripted(lambda message, question: 0.9 if "usual" in message else 0.1)
    result = gate.evaluate(gate_file(tmp_path / "mine.json", NEEDED | IDLE), recorded(scripted, tmp_path), FAST)

    assert cells(result, "gate-separation-mine")["gate/plain/1, gate/counterfactual/1, gate/graded/1"]["answered"] == (
        "as gate/criteria/1"
    )
    assert result.findings["criteria_beats_plain_gate"].verdict == "cannot be told"


def test_the_embedded_model_does_not_answer_wordings_that_are_not_its_own(tmp_path, run, capsys):
    from harness.recording.deciders import open_decider

    gate_file(tmp_path / "mine.json", NEEDED | IDLE)
    assert run(open_decider("embedded"), "gate", "--data", str(tmp_path / "mine.json")) == 0
    shown = " ".join(capsys.readouterr().out.split())

    assert "not answered" in shown
    assert "python -m harness gate --decider strands-decider" in shown


def test_a_user_wording_is_measured_beside_the_five(tmp_path, run):
    mine = tmp_path / "wordings.json"
    mine.write_text(json.dumps({"gate": [{"id": "mine", "instructions": "Is `message` about me?"}]}))
    gate_file(tmp_path / "mine.json", NEEDED | IDLE)
    scripted = Scripted(lambda message, question: 0.5 + 0.01 * len(question.instructions) / 10 + 0.001 * len(message))
    assert run(scripted, "gate", "--data", str(tmp_path / "mine.json"), "--wordings", str(mine)) == 0

    assert all("mine/1" in asked for _, asked in scripted.requests)


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ({"id": "x"}, "instructions: must be a text"),
        ({"id": "x", "instructions": "y", "inverse": True}, "has no field 'inverse'"),
        ({"id": "x", "instructions": "y", "type": "score", "criteria": ["a", "b"]}, "`yes` must name some of"),
    ],
)
def test_a_wrong_wording_is_told_by_file_place_and_field(tmp_path, run, capsys, wording, said):
    mine = tmp_path / "wordings.json"
    mine.write_text(json.dumps({"gate": [wording]}))

    assert run(Scripted(lambda message, question: 0.5), "gate", "--wordings", str(mine)) == 2
    assert "wordings.json: gate[0]" in (told := capsys.readouterr().err)
    assert said in told


def test_a_decider_error_fails_the_run(run, capsys):
    assert run(Broken(), "gate") == 1
    assert "RuntimeError" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["gate", "validator", "router", "selection", "renderer"])
def test_allowed_errors_stamp_every_table_and_never_read_as_figures(command, run, tmp_path):
    assert run(Broken(), command, "--allow-errors") == 0
    found = tables.read(tmp_path / "out")

    assert found
    for result in found:
        assert result.errors > 0
        assert all("!! decider errors" in table.stamp for table in result.tables)
        figures = [cell for table in result.tables for row in table.rows for cell in row[2:]]
        assert not [cell for cell in figures if any(c.isdigit() for c in cell)]


def test_the_drift_of_repeated_runs_is_shown(tmp_path, run):
    gate_file(tmp_path / "mine.json", NEEDED | IDLE)
    asked = []

    def answer(message, question):
        asked.append(message)
        late = len(asked) > 12 * len(GATE_WORDINGS)
        return (0.7 if "usual" in message else 0.3) + (0.1 if late else 0.0)

    assert run(Scripted(answer), "gate", "--data", str(tmp_path / "mine.json"), "--runs", "2") == 0
    (result,) = tables.read(tmp_path / "out")
    row = cells(result, "gate-drift-mine", "mine")["gate/criteria/1"]

    assert row["best cut"] == "0.500 to 0.600"
    assert row["largest change of one answer"] == "0.100"


def test_a_replayed_command_prints_the_same_digits(tmp_path, run, capsys, monkeypatch):
    gate_file(tmp_path / "mine.json", NEEDED | IDLE)
    run(Scripted(lambda message, question: len(message) / 100), "gate", "--data", str(tmp_path / "mine.json"))
    live = capsys.readouterr().out
    assert run(Broken(), "gate", "--data", str(tmp_path / "mine.json"), "--replay") == 0

    assert capsys.readouterr().out == live


def test_a_users_wording_of_the_validator_is_asked_about_every_record(tmp_path, run, capsys):
    mine = tmp_path / "wordings.json"
    data = write(tmp_path / "mine.json", QUERIES).path
    scripted = Scripted(lambda message, question: 0.5)
    mine.write_text(json.dumps({"validator": [{"id": "mine", "instructions": "Is `message` about {subject}?"}]}))

    assert run(scripted, "validator", "--data", str(data), "--wordings", str(mine)) == 0
    asked = [question.subject for question in scripted.requests[0][1].values() if question.wording == "mine/1"]
    assert asked == [f"Fact {at} of the user." for at in range(6)]

    mine.write_text(json.dumps({"record": []}))
    assert run(scripted, "validator", "--data", str(data), "--wordings", str(mine)) == 2
    assert 'must be an object with "gate" and "validator"' in capsys.readouterr().err


QUERIES = {
    "personas": [
        {
            "id": "p",
            "records": [{"id": f"r{at}", "text": f"Fact {at} of the user."} for at in range(6)],
            "queries": [{"id": f"q{at}", "query": f"Level {at}?", "labels": {"r0": 2, "r1": 2}} for at in range(5)],
        }
    ]
}


def _ranks_only(message, question):
    """Right order within each query, at a level of the query's own."""
    level = int(message.removeprefix("Level ").removesuffix("?"))
    return 0.15 * level + (0.1 if "Fact 0" in question.subject or "Fact 1" in question.subject else 0.0)


def test_ranking_without_separation_is_said_plainly(tmp_path):
    data = write(tmp_path / "mine.json", QUERIES)
    scripted = Scripted(_ranks_only)
    result = validator.evaluate(data, recorded(scripted, tmp_path), FAST)

    assert cells(result, "validator-ranking-mine")["record/criteria/1"]["mean AUC"] == "1.000 [1.00, 1.00]"
    assert cells(result, "validator-separation-mine")["record/criteria/1"]["pooled margin"] == "-0.500"
    (told,) = [one for one in result.sentences if "record/criteria/1" in one]
    assert "ranks well and separates badly" in told
    assert 'select.mode="ranking"' in told
    assert len(scripted.requests) == 5
    assert all(len(asked) == 6 * len(RECORD_WORDINGS) for _, asked in scripted.requests)


def test_separation_without_ranking_is_said_plainly():
    # Queries with nothing but hits or misses carry the separation; the only mixed one is upside down.
    scores = np.array([0.9] * 20 + [0.1] * 20 + [0.5, 0.55])
    grades = np.array([2] * 20 + [0] * 20 + [2, 0])
    query = np.array([0] * 20 + [1] * 20 + [2, 2])
    one = validator.figures_of(validator.Answers(scores, grades, query), 2, FAST)
    (told,) = validator.sentences("d", "mine", {"w": one})

    assert "separates well and ranks badly" in told
    assert 'select.mode="threshold"' in told


def test_records_kept_for_a_query_that_needs_nothing_are_counted(tmp_path):
    value = json.loads(json.dumps(QUERIES))
    value["personas"][0]["queries"][4]["labels"] = {}
    scripted = Scripted(lambda message, question: 0.9 if "Fact 0" in question.subject else 0.1)
    result = validator.evaluate(write(tmp_path / "mine.json", value), recorded(scripted, tmp_path), FAST)
    row = cells(result, "validator-separation-mine")["record/criteria/1"]

    assert row["wrongly kept per query that needs nothing, held out"] == "1.0"


def test_records_are_rendered_before_they_are_judged(tmp_path):
    scripted = Scripted(lambda message, question: 0.5)
    validator.evaluate(shipped("persona"), recorded(scripted, tmp_path), FAST)

    assert not any("{" in question.subject for _, asked in scripted.requests for question in asked.values())


def test_the_router_counts_what_is_searched(tmp_path):
    items = [{"utterance": f"Needs facts {at}", "needs_memory": True, "namespaces": ["facts"]} for at in range(4)] + [
        {"utterance": f"Needs both {at}", "needs_memory": True, "namespaces": ["facts", "episodes"]} for at in range(4)
    ]
    scripted = Scripted(lambda message, question: 0.9 if "facts" in question.subject or "both" in message else 0.1)
    scripted.thresholds = Thresholds(0.5, 0.5, 0.5)
    result = router.evaluate(write(tmp_path / "mine.json", items), recorded(scripted, tmp_path), FAST)
    row = cells(result, "router-mine")["shipped, 0.5"]

    assert row["needed searched"] == "100 % (12 of 12)"
    assert row["exact set"] == "100 % [100, 100]"
    assert row["searches avoided"] == "100 % (4 of 4)"


def test_the_bias_of_shape_is_seen_raw_and_gone_once_rendered(tmp_path):
    def answer(message, question):
        return 0.4 if question.subject.startswith("{") else 0.3

    result = renderer.evaluate(shipped("persona"), recorded(Scripted(answer), tmp_path), FAST)
    row = cells(result, "renderer-persona")["record/criteria/1"]

    assert row["raw, relevant"] == "+0.100 [0.10, 0.10]"
    assert row["rendered, irrelevant"] == "+0.000 [0.00, 0.00]"
    assert result.findings["json_above_prose_until_rendered"].verdict == "reproduced"


def scored(*pairs):
    return selection.Scored(np.array([p for p, _ in pairs]), np.array([grade for _, grade in pairs]))


def test_selection_keeps_what_the_package_would():
    queries = [scored((0.8, 2), (0.3, 1), (0.1, 0)), scored((0.2, 2), (0.05, 0))]
    cuts = [Thresholds(0, 0, 0.25, 0.5)] * 2

    kept = {mode: selection.kept_by(queries, mode, cuts, 1) for mode in selection.MODES}
    assert kept["threshold"].kept.tolist() == [2, 0]
    assert kept["ranking"].kept.tolist() == [1, 1]
    assert kept["hybrid"].kept.tolist() == [1, 0]
    assert kept["ranking"].f1 == pytest.approx(2 * 2 / (2 + 3))
    assert kept["ranking"].recall == 1.0
    assert kept["hybrid"].recall == 0.5


def test_chosen_cuts_keep_the_must_haves_before_they_seek_precision():
    queries = [scored((0.9, 2), (0.2, 2), *[(0.5, 0)] * 9), scored((0.9, 2), (0.1, 0))]
    cut = selection.choose_cuts(queries, "threshold", 1)

    assert cut.validator <= 0.2


def test_drift_moves_log_odds():
    p = np.array([0.5, 0.2])

    assert selection.shifted(p, np.log(3)).tolist() == pytest.approx([0.75, 3 / 7])
    assert selection.shifted(p, 0.0).tolist() == pytest.approx(p.tolist())
    assert selection.squeezed(p, 0.0, 0.0).tolist() == pytest.approx([0.5, 0.5])


def test_a_ranking_outlasts_a_shift_that_breaks_a_threshold(tmp_path):
    scripted = Scripted(lambda message, question: 0.02 if "Fact 0" in question.subject or "Fact 1" in question.subject
                        else 0.005)  # fmt: skip
    result = selection.evaluate(write(tmp_path / "mine.json", QUERIES), recorded(scripted, tmp_path), FAST)
    rows = cells(result, "selection-f1-mine")

    assert float(rows["ranking"]["shift -1"]) == 1.0
    assert float(rows["threshold"]["shift -1"]) < 1.0


def test_an_unknown_command_or_option_is_told(capsys):
    assert cli.main(["gaet"]) == 2
    assert "did you mean 'gate'" in capsys.readouterr().err
    assert cli.main([]) == 2
    with pytest.raises(SystemExit):
        cli.main(["gate", "--runs", "0"])
    assert "whole number" in capsys.readouterr().err


@pytest.mark.parametrize(("earlier", "name"), [("route", "router"), ("shape", "renderer")])
def test_a_command_by_its_earlier_name_is_the_same_command(tmp_path, run, capsys, earlier, name):
    shown = []
    for command in (earlier, name):
        decider = Scripted(lambda message, question: (len(message) % 10) / 10)
        assert run(decider, command) == 0
        shown.append(capsys.readouterr().out)

    assert shown[0] == shown[1]
    assert f"{name}, " in shown[0]


def test_a_file_without_labels_for_the_command_is_told(tmp_path, run, capsys):
    gate_file(tmp_path / "mine.json", NEEDED | IDLE)

    assert run(Scripted(lambda m, q: 0.5), "renderer", "--data", str(tmp_path / "mine.json")) == 2
    assert "holds no shape_probe" in capsys.readouterr().err


def test_replaying_without_a_recording_says_what_to_run(tmp_path, capsys):
    assert cli.main(["gate", "--replay", "--out", str(tmp_path)]) == 2
    assert "without --replay first" in capsys.readouterr().err


def test_a_progress_bar_and_errors_do_not_swallow_an_interrupt(tmp_path):
    class Interrupted:
        model_id = "x"

        def decide(self, state, questions):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.evaluate(shipped("persona"), recorded(Interrupted(), tmp_path), FAST)


def test_a_missing_answer_in_a_replay_ends_the_run_even_with_errors_allowed(tmp_path):
    decider = recorded(Scripted(lambda message, question: 0.5), tmp_path)
    decider.close()
    from harness.recording.recorder import RecordingDecider

    again = RecordingDecider(None, tmp_path / "scripted.jsonl", True)
    with pytest.raises(RunFailed, match="record again"):
        gate.evaluate(shipped("persona"), again, Settings(allow_errors=True))


def test_cosine_and_stock_answer_without_reading(tmp_path):
    from harness.recording.deciders import open_decider

    data: Dataset = shipped("persona")
    cosine, stock = (recorded(open_decider(name), tmp_path, name) for name in ("cosine", "stock"))
    assert render_record(data.queries[0].records[0].text)
    assert "every wording" in cells(gate.evaluate(data, cosine, FAST), "gate-separation-persona", "cosine")
    rows = cells(gate.evaluate(data, stock, FAST), "gate-decisions-persona", "stock")
    assert rows["gate/criteria/1"]["recall / closed at the shipped cut"] == "100 % / 0 % (0.5)"


@pytest.mark.parametrize(
    "arguments",
    [("gate", "--decider", "stock", "--out"), ("fit", "--out"), ("report", "--out"), ("fit", "--to")],
    ids=" ".join,
)
def test_a_place_that_cannot_be_written_is_one_line(tmp_path, capsys, monkeypatch, arguments):
    decider = Scripted(lambda message, question: 0.9 if "usual" in message else 0.1)
    monkeypatch.setattr(recorder, "open_decider", lambda spec: decider)
    data = gate_file(tmp_path / "mine.json", NEEDED | IDLE).path
    file = tmp_path / "file"
    file.write_text("")
    place = tmp_path if arguments[-1] == "--to" else file
    out = () if "--out" in arguments else ("--out", str(tmp_path / "out"))
    more = () if arguments[0] == "report" else ("--data", str(data), *out)

    assert cli.main([*arguments, str(place), *more]) == 2
    assert capsys.readouterr().err.startswith(f"harness {arguments[0]}: ")


@pytest.mark.parametrize("seed", ["-1", "4294967296", "x"])
def test_a_seed_that_is_none_is_refused(capsys, seed):
    with pytest.raises(SystemExit) as left:
        cli.main(["gate", "--seed", seed])

    assert left.value.code == 2
    assert "argument --seed: must be a whole number" in capsys.readouterr().err
