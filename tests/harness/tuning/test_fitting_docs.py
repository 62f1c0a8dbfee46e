"""The commands of docs/fitting.md run as they stand on the sample that it names, which a session manager wrote."""

import importlib.util
import io
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from harness import cli
from harness.data.datasets import shipped
from harness.data.traces import read_turns
from strands_gated_memory import RecallPolicy, resolve_decider

ROOT = Path(__file__).parents[3]
SAMPLE = ROOT / "examples" / "traces.jsonl"
COMMANDS = re.findall(
    r"^python -m harness (.+?)(?:  +#.*)?$", (ROOT / "docs" / "fitting.md").read_text(encoding="utf-8"), re.M
)[:3]


def keys_for(turns):
    """What somebody types who grades as the demo's labels do."""
    person = shipped("persona").conversation
    ids = {record.text: record.id for record in person.records}
    labels = {turn.user: turn for turn in person.turns}
    for turn in turns:
        label = labels[turn.message]
        yield "y" if label.needs_memory else "n"
        for record in turn.records:
            yield str(label.relevant.get(ids[record.text], 0))


def test_the_commands_of_the_page_run_on_the_sample(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copy(SAMPLE, "traces.jsonl")
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{key}\n" for key in keys_for(read_turns([SAMPLE])))))
    said = []
    for command in COMMANDS:
        assert cli.main(shlex.split(command)) == 0
        said.append(" ".join(capsys.readouterr().out.split()))
    label, fit, replay = said

    assert "8 turns have labels in labels.json, 0 have none" in label
    assert "router: not fitted: a cut needs labels of both kinds" in fit
    assert "8 recorded turns under another policy" in replay
    fitted = resolve_decider("fitted:fitted.json")
    assert RecallPolicy.from_file("fitted.json").gate.threshold == fitted.thresholds.gate


def _record_turns(path):
    spec = importlib.util.spec_from_file_location("record_turns", ROOT / "examples" / "record_turns.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(str(path))


def test_a_recording_that_is_there_is_left_alone(tmp_path):
    """A second run would append, and every turn would be labelled twice."""
    there = tmp_path / "traces.jsonl"
    there.write_text("{}\n", encoding="utf-8")

    with pytest.raises(SystemExit, match=r"traces\.jsonl exists already"):
        _record_turns(there)

    assert there.read_text(encoding="utf-8") == "{}\n"


def test_the_sample_is_what_its_script_writes(tmp_path, capsys):
    _record_turns(tmp_path / "traces.jsonl")

    assert f"8 turns written to {tmp_path / 'traces.jsonl'}" in capsys.readouterr().out
    written, kept = (
        [_outline(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for path in (tmp_path / "traces.jsonl", SAMPLE)
    )
    assert written == kept


def _outline(line):
    """What is the same in every run: neither ids nor times nor the last digits."""
    turn = json.loads(line)
    return (turn["message"], turn["gate"]["outcome"], [record["text"] for record in turn["records"]])
