"""docs/results.md comes from the recordings alone: the same twice, other when an answer is other."""

from __future__ import annotations

import json
import re
import shutil
from datetime import datetime, timezone

import pytest
from scripted import Broken, Scripted

from harness import cli
from harness.data.datasets import shipped
from harness.errors import HarnessError
from harness.measuring import renderer
from harness.measuring.options import Settings
from harness.recording import recorder
from harness.recording.recorder import state_hash
from harness.reporting import recordings, results


@pytest.fixture
def small(monkeypatch):
    """Only the quickest measurement."""
    monkeypatch.setattr(recordings, "MEASUREMENTS", (renderer.MEASUREMENT,))


def written(recordings):
    return results.document(results.replayed(recordings, Settings()), recordings)


def copied(folder, *names):
    folder.mkdir()
    for name in names:
        shutil.copy(recordings.RECORDINGS / f"{name}.jsonl", folder)
    return folder


def test_a_second_run_writes_the_same_document(small, tmp_path):
    recordings = copied(tmp_path / "recordings", "sparrow", "cosine")

    assert written(recordings) == written(recordings)


def test_another_answer_makes_another_document(small, tmp_path):
    recordings = copied(tmp_path / "recordings", "sparrow")
    before = written(recordings)
    path = recordings / "sparrow.jsonl"
    lines = path.read_text().splitlines()
    query = shipped("persona").shape.queries[0]
    key = state_hash({"message": query, "previous": []})
    at = max((n for n, line in enumerate(lines) if key in line), key=lambda n: len(lines[n]))
    line = json.loads(lines[at])
    name = next(name for name, value in line["answers"].items() if isinstance(value, float))
    line["answers"][name] = 1.0 - line["answers"][name]
    lines[at] = json.dumps(line)
    path.write_text("\n".join(lines) + "\n")

    assert written(recordings) != before


def test_the_document_names_no_date_commit_host_or_path():
    text = results.DOCUMENT.read_text(encoding="utf-8")

    assert not re.search(r"\b20\d\d-\d\d-\d\d\b|\b[0-9a-f]{40}\b|/root|/home|/tmp|localhost", text)
    assert str(datetime.now(timezone.utc).year) not in text


def test_deciders_that_were_not_run_say_so_with_the_command(small, tmp_path):
    text = written(copied(tmp_path / "recordings", "stock"))

    for spec in recordings.ELSEWHERE:
        assert f"| {spec} | not run here |" in text
        assert f"python -m harness record --decider {spec}" in text


def test_the_committed_document_is_what_the_recordings_say(capsys):
    assert cli.main(["results", "--check"]) == 0, "docs/results.md is stale; run python -m harness results"


def test_the_recordings_are_of_the_model_that_ships():
    from harness.recording.deciders import model_key
    from strands_gated_memory.embedded.decider import EmbeddedDecider

    recorded = json.loads((recordings.RECORDINGS / "embedded.jsonl").read_text().partition("\n")[0])["model"]

    assert recorded == model_key(EmbeddedDecider(), "embedded"), "run python -m harness record, then results"


def test_recording_writes_a_file_per_decider_and_keeps_the_old_one_when_it_fails(small, tmp_path, monkeypatch):
    folder = tmp_path / "recordings"
    scripted = Scripted(lambda message, question: len(message) / 100)
    monkeypatch.setattr(recorder, "open_decider", lambda spec: scripted)
    assert cli.main(["record", "--decider", "mine", "--recordings", str(folder)]) == 0
    before = (folder / "mine.jsonl").read_bytes()
    monkeypatch.setattr(recorder, "open_decider", lambda spec: Broken())
    assert cli.main(["record", "--decider", "mine", "--recordings", str(folder)]) == 1

    assert (folder / "mine.jsonl").read_bytes() == before
    assert len(scripted.requests) == 4


def test_without_recordings_the_error_says_what_to_run(tmp_path):
    with pytest.raises(HarnessError, match="run python -m harness record"):
        results.replayed(tmp_path, Settings())


def test_the_results_folder_says_when_and_with_what_it_was_made(small, tmp_path):
    recordings = copied(tmp_path / "recordings", "stock")
    out = tmp_path / "out"
    document = tmp_path / "results.md"
    arguments = ["--recordings", str(recordings), "--document", str(document), "--out", str(out)]
    assert cli.main(["results", *arguments]) == 0
    made = json.loads((out / "results.json").read_text())

    assert {"date", "commit", "python", "packages", "timing", "results"} <= set(made)
    assert made["results"] == ["renderer-persona-stock.json"]
    assert document.exists()
