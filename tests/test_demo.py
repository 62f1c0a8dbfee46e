"""The demo: what its command prints, for the shipped persona and for anybody's."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from strands_gated_memory.cli import main
from strands_gated_memory.demo.persona import load_persona
from strands_gated_memory.errors import ConfigurationError

KEYS = {
    "retrievals",
    "records_injected",
    "context_tokens",
    "conversation_memory_tokens",
    "decider_calls",
    "decider_ms",
    "decider_errors",
    "must_have_recall",
    "closed_turns",
}
SHIPPED = json.loads((files("strands_gated_memory") / "data" / "persona.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> dict:
    """Run the installed command once, in an empty folder; its stdout must be one JSON document."""
    command = Path(sys.executable).with_name("strands-gated-memory")
    run = subprocess.run(
        [command, "demo", "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path_factory.mktemp("anywhere"),
        env={name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
    )
    return json.loads(run.stdout)


def test_every_arm_has_every_figure(printed):
    assert set(printed["arms"]) == {"stock", "ungated", "gated"}
    assert all(set(arm) >= KEYS for arm in printed["arms"].values())
    assert len(printed["turns"]) == 8


def test_the_gate_closes_on_exactly_the_turns_that_need_nothing(printed):
    assert printed["arms"]["gated"]["closed_turns"] == SHIPPED["expected"]["gate_closed_turns"]
    assert printed["arms"]["gated"]["retrievals"] == SHIPPED["expected"]["ideal_retrievals"]


def test_no_must_have_is_missing_and_no_decision_failed(printed):
    assert printed["arms"]["gated"]["must_have_recall"] == 1.0
    assert printed["arms"]["gated"]["decider_errors"] == 0


def test_the_gated_arm_shows_a_fraction_of_what_stock_shows(printed):
    stock, gated = printed["arms"]["stock"], printed["arms"]["gated"]

    assert gated["context_tokens"] <= 0.25 * stock["context_tokens"]
    assert gated["conversation_memory_tokens"] <= 0.10 * stock["conversation_memory_tokens"]


def test_stock_is_the_parent_and_accumulates(printed):
    stock, ungated = printed["arms"]["stock"], printed["arms"]["ungated"]

    assert stock["retrievals"] == SHIPPED["expected"]["stock_retrievals"]
    assert stock["records_injected"] == SHIPPED["expected"]["stock_records_if_floor_never_bites"]
    assert stock["decider_calls"] == ungated["decider_calls"] == 0
    assert stock["conversation_memory_tokens"] == stock["context_tokens"] * 9 / 2
    assert ungated["conversation_memory_tokens"] == ungated["context_tokens"]


def test_the_report_for_people_has_the_table_the_decisions_and_the_counters(capsys):
    assert main(["demo"]) == 0

    shown = capsys.readouterr().out
    assert "must-have recall" in shown
    assert "post: stock" in shown
    assert "turn by turn" in shown
    assert "gate decisions" in shown


def test_the_memory_managers_figures_are_the_session_managers(printed, capsys):
    """But for times; and the names of stores in place of namespaces."""
    assert main(["demo", "--json", "--path", "memory-manager"]) == 0
    memory = json.loads(capsys.readouterr().out)

    for name in ("ungated", "gated"):
        ours, theirs = memory["arms"][name], printed["arms"][name]
        figures = set(theirs) - {"decider_ms"}
        assert {key: ours[key] for key in figures} == {key: theirs[key] for key in figures}
    for ours, theirs in zip(memory["turns"], printed["turns"], strict=True):
        assert [f"/{name}/{{actorId}}/" for name in ours["searched"]] == theirs["searched"]
        assert ours["probability"] == theirs["probability"]


def test_stock_memory_manager_stands_beside_it_and_loses_its_block_after_a_tool_result(capsys):
    assert main(["demo", "--json", "--path", "memory-manager"]) == 0
    arms = json.loads(capsys.readouterr().out)["arms"]

    assert {name: arm["block_after_tool_result"] for name, arm in arms.items()} == {
        "stock": False,
        "ungated": True,
        "gated": True,
    }
    assert arms["stock"]["lookups"] == SHIPPED["expected"]["stock_retrievals"] * 2
    assert arms["stock"]["records_injected"] == SHIPPED["expected"]["stock_retrievals"] * 5  # its own limit
    assert arms["stock"]["must_have_recall"] < arms["gated"]["must_have_recall"] == 1.0


def test_the_report_over_the_memory_manager_has_no_columns_of_the_post(capsys):
    assert main(["demo", "--path", "memory-manager"]) == 0

    shown = capsys.readouterr().out
    assert "block on the call after a tool result" in shown
    assert "print(memory_manager.stats)" in shown
    assert "post:" not in shown


def test_a_persona_of_ones_own_with_three_namespaces_works(tmp_path, capsys):
    persona = {
        "name": "Test",
        "actor_id": "team/test:1",
        "namespaces": {"facts": "/facts/{actorId}/", "health": "/health/{actorId}", "notes": "/notes/{actorId}/"},
        "records": [
            {"id": "a", "namespace": "health", "text": "The user is allergic to <nuts> & eggs."},
            {"id": "b", "namespace": "notes", "text": '<topic name="Bike">Two new tyres.\nOne spare.</topic>'},
            {"id": "c", "namespace": "facts", "text": "The user lives in Ghent."},
        ],
        "conversation": [{"turn": 1, "user": "What can I eat?", "needs_memory": True, "relevant": {"a": 2}}],
    }
    path = tmp_path / "persona.json"
    path.write_text(json.dumps(persona), encoding="utf-8")

    assert main(["demo", "--json", "--persona", str(path)]) == 0

    arms = json.loads(capsys.readouterr().out)["arms"]
    assert arms["stock"]["records_injected"] == arms["ungated"]["records_injected"] == 3
    assert arms["ungated"]["must_have_recall"] == 1.0


def broken(**changes):
    persona = copy.deepcopy(SHIPPED)
    for path, value in changes.items():
        target = persona
        *parents, last = path.split("__")
        for name in parents:
            target = target[int(name) if name.isdigit() else name]
        target[last] = value
    return json.dumps(persona)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("{", "Invalid JSON.*line 1", id="not JSON"),
        pytest.param("[]", "the whole", id="not an object"),
        pytest.param("[" * 100_000, "Invalid JSON: recursion limit", id="nested deeply"),
        pytest.param(broken(records=[]), "records", id="no records"),
        pytest.param(broken(records__3__namespace="dreams"), "'dreams'.*'facts', 'preferences'", id="namespace"),
        pytest.param(broken(conversation__2__relevant={"s99": 2}), "turn 3.*'s99'", id="unknown record"),
        pytest.param(broken(conversation__2__relevant={"s01": 5}), r"conversation\.2\.relevant", id="grade"),
        pytest.param(broken(conversation__0__user=""), r"conversation\.0\.user", id="empty message"),
        pytest.param(broken(records__1__id="s01"), "twice: s01", id="repeated id"),
        pytest.param(broken(actor_id=""), "actor_id", id="no actor"),
    ],
)
def test_a_bad_persona_file_is_refused_with_its_file_and_field(text, says, tmp_path, capsys):
    path = tmp_path / "mine.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ConfigurationError, match=rf"(?s)mine\.json.*({says})"):
        load_persona(path)
    assert main(["demo", "--json", "--persona", str(path)]) == 2
    assert capsys.readouterr().out == ""


def test_a_persona_file_that_is_not_there_is_one_line_on_stderr(tmp_path, capsys):
    assert main(["demo", "--persona", str(tmp_path / "none.json")]) == 2

    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("strands-gated-memory: persona file")
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize("arguments", [["demo"], ["demo", "--json"]])
def test_a_terminal_of_few_characters_is_no_failure(arguments):
    command = Path(sys.executable).with_name("strands-gated-memory")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}

    run = subprocess.run([command, *arguments], capture_output=True, text=True, check=False, env=environment)

    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr


def test_a_reader_that_has_gone_ends_the_demo_quietly():
    command = Path(sys.executable).with_name("strands-gated-memory")

    run = subprocess.run(f"{command} demo --json | true", shell=True, capture_output=True, text=True, check=True)

    assert "BrokenPipeError" not in run.stderr


def test_without_its_extra_the_demo_says_how_to_install_it_from_an_index_and_from_a_clone(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "moto", None)

    assert main(["demo"]) == 2

    said = capsys.readouterr().err
    assert "pip install 'strands-gated-memory[demo]'" in said
    assert "from a clone: pip install '.[demo]'" in said


def test_the_documented_persona_runs(tmp_path, capsys):
    """The example of docs/harness.md, to which the README sends whoever wants a persona of their own."""
    docs = (Path(__file__).parents[1] / "docs" / "harness.md").read_text(encoding="utf-8")
    own = tmp_path / "ada.json"
    own.write_text(docs.split("### One person\n")[1].split("```json\n")[1].split("```")[0], encoding="utf-8")

    assert main(["demo", "--json", "--persona", str(own)]) == 0

    assert [turn["needs_memory"] for turn in json.loads(capsys.readouterr().out)["turns"]] == [True, False]
