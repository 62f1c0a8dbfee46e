"""Recorded turns become a label file: resumable, whole at any moment, and never without text."""

import io
import json

import pytest
from rich.console import Console
from trace_lines import record, turn, write

from harness import cli
from harness.data.datasets import load
from harness.data.labels import label
from harness.data.traces import read_turns
from harness.errors import HarnessError

TURNS = [
    turn("t1", 0.1, message="Hello!"),
    turn(
        "t2",
        0.9,
        [
            record("a", 0.8, True, "/preferences/{actorId}/", text="The user drinks tea."),
            record("b", 0.3, False, text="The user has a [cat]."),
            record("c", 0.5, True, text="The user sleeps badly after coffee."),
        ],
        message="What should I drink?",
        previous=["Hi", "Hello, how can I help?"],
    ),
    turn("t3", 0.1, message="Thanks."),
]


def keys(script):
    """Answer with these keys, one after the other; keep what was asked."""
    left = iter(script.split())

    def ask(question, choices):
        key = next(left)
        assert key in choices
        return key

    return ask


@pytest.fixture
def labelling(tmp_path):
    """Label the turns with some keys; returns the progress, the file's rows and what was shown."""

    def go(script, lines=TURNS):
        path, shown = tmp_path / "labels.json", io.StringIO()
        turns = list(read_turns([write(tmp_path / "traces.jsonl", lines)]))
        progress = label(turns, path, keys(script), Console(file=shown, width=200))
        rows = json.loads(path.read_text()) if path.exists() else []
        return progress, rows, shown.getvalue()

    return go


def test_keys_become_labels(labelling):
    progress, rows, shown = labelling("n  y 2 0 1  n")

    assert (progress.labelled, progress.left) == (3, 0)
    assert [row["needs_memory"] for row in rows] == [False, True, False]
    assert rows[1]["namespaces"] == ["/preferences/{actorId}/"]
    assert rows[1]["namespaces_optional"] == ["/facts/{actorId}/"]
    assert [(one["id"], one["grade"]) for one in rows[1]["records"]] == [("a", 2), ("b", 0), ("c", 1)]
    assert "The user has a [cat]." in shown  # a bracket is no markup


def test_the_other_commands_read_it(labelling, tmp_path):
    labelling("n  y 2 0 1  n")
    data = load(tmp_path / "labels.json")

    assert [(item.utterance, item.needs_memory) for item in data.gate] == [
        ("Hello!", False),
        ("What should I drink?", True),
        ("Thanks.", False),
    ]
    assert [(item.needed, item.optional) for item in data.router] == [
        (("/preferences/{actorId}/",), ("/facts/{actorId}/",))
    ]
    (query,) = data.queries
    assert query.state == {"message": "What should I drink?", "previous": ["Hi", "Hello, how can I help?"]}
    assert [record.grade for record in query.records] == [2, 0, 1]


def test_stopping_keeps_what_is_done_and_the_rest_is_asked_later(labelling):
    progress, rows, _ = labelling("n  y 2 q")
    assert (progress.labelled, progress.left) == (1, 2)
    assert [row["id"] for row in rows] == ["t1"]  # half a turn is none

    progress, rows, shown = labelling("y 2 0 1  n")
    assert (progress.labelled, progress.left) == (3, 0)
    assert "Hello!" not in shown.replace("Hello, how", "")


def test_going_back_asks_the_turn_before_again(labelling):
    _, rows, _ = labelling("y  b  n  y 0 0 0  n")

    assert [row["needs_memory"] for row in rows] == [False, True, False]


def test_a_skipped_turn_has_no_label(labelling):
    progress, rows, _ = labelling("n  s  n")

    assert [row["id"] for row in rows] == ["t1", "t3"]
    assert progress.left == 1


def test_the_file_is_whole_after_every_turn(labelling, tmp_path):
    seen = []
    path = tmp_path / "labels.json"
    script = iter("n y 2 0 1 n".split())

    def ask(question, choices):
        seen.append(len(json.loads(path.read_text())) if path.exists() else 0)
        return next(script)

    turns = list(read_turns([write(tmp_path / "traces.jsonl", TURNS)]))
    label(turns, path, ask, Console(file=io.StringIO()))

    assert seen == [0, 1, 1, 1, 1, 2]
    assert list(tmp_path.glob("*.partial")) == []


def test_turns_without_text_are_refused_with_what_to_do(labelling):
    with pytest.raises(HarnessError, match="trace_content=True"):
        labelling("", [turn("t1", 0.1), turn("t2", 0.9, [record("a", 0.5, True)])])


def test_some_turns_without_text_are_left_out_and_counted(labelling):
    progress, rows, shown = labelling("n", [turn("t0", 0.1), TURNS[0]])

    assert (progress.without_text, len(rows)) == (1, 1)
    assert "1 of 2 turns have no text" in shown


def test_a_file_that_holds_something_else_is_not_overwritten(labelling, tmp_path):
    (tmp_path / "labels.json").write_text('[{"utterance": "a", "needs_memory": true}]')

    with pytest.raises(HarnessError, match="not a label file"):
        labelling("n")
    assert "utterance" in (tmp_path / "labels.json").read_text()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 1: the line: Invalid JSON"),
        ('{"version": 2}', "line 1: version: Input should be 1"),
        ("[]", "line 1: the line: Input should be an object"),
        ('{"version": 1}', "line 1: time: Field required"),
        (json.dumps(turn("t", 0.5) | {"gate": {"outcome": 3}}), "line 1: gate.outcome"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, told):
    path = tmp_path / "traces.jsonl"
    path.write_text(line + "\n" + json.dumps(TURNS[0]) + "\n")

    with pytest.raises(HarnessError) as caught:
        list(read_turns([path]))
    assert f"{path}, {told}" in str(caught.value)


def test_a_last_line_that_is_being_written_is_passed_over(tmp_path):
    path = write(tmp_path / "traces.jsonl", TURNS)
    path.write_text(path.read_text() + '{"version": 1, "tu')

    assert [one.turn for one in read_turns([path])] == ["t1", "t2", "t3"]


def test_the_command_stops_at_the_end_of_its_input(tmp_path, monkeypatch, capsys):
    path = write(tmp_path / "traces.jsonl", TURNS)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))

    assert cli.main(["label", str(path), "--to", str(tmp_path / "labels.json")]) == 0
    assert "1 turns have labels" in " ".join(capsys.readouterr().out.split())
    assert cli.main(["label", str(tmp_path / "none.jsonl")]) == 2


def test_rotated_files_are_read_first_and_a_turn_counts_once(tmp_path):
    rotated = write(tmp_path / "traces.jsonl.1", TURNS[:2])
    current = write(tmp_path / "traces.jsonl", TURNS[2:])

    assert [one.turn for one in read_turns([current])] == ["t1", "t2", "t3"]
    assert [one.turn for one in read_turns([current, rotated])] == ["t1", "t2", "t3"]
