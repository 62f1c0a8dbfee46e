"""`trace_path`: one JSON line per turn, without text unless asked for, whole whoever writes, never in a turn's way."""

import fcntl
import json
import multiprocessing
import os
import re
import threading
import time

import pytest
from bedrock_agentcore.memory.integrations.strands.config import RetrievalConfig
from turn_builders import FACTS, PREFERENCES, blocks_per_call, broken, judging, no, yes

from strands_gated_memory import ConfigurationError, RecallPipeline, RecallStats
from strands_gated_memory.errors import GatedMemoryError
from strands_gated_memory.reporting.trace_file import TraceFile, read_traces

NAMESPACES = (FACTS, PREFERENCES)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "traces.jsonl"


def traced(bench, path, content=False, **settings):
    return bench.manager(tracing={"trace_path": path, "trace_content": content}, **settings)


def files_at(path):
    return sorted(path.parent.iterdir())


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_turn_is_one_line_of_exactly_this_shape(bench, path):
    bench.remember("Likes tea", "Works at night").remember("likes TEA.", namespace=PREFERENCES)
    manager = traced(bench, path, decider=judging(tea=0.9, night=0.01), namespaces=NAMESPACES)
    bench.agent(manager)("What do I drink?")

    (line,) = lines(path)
    assert list(line) == [
        "version", "time", "turn", "memory_id", "actor_id", "session_id", "gate", "thresholds", "questions", "lookups",
        "decider_calls", "namespaces", "block_tokens", "ms", "failure", "records", "dropped",
    ]  # fmt: skip
    assert line["version"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert re.fullmatch(r"[0-9a-f]{32}", line["turn"])
    assert (line["memory_id"], line["actor_id"], line["session_id"]) == (bench.core.memory_id, bench.actor, "session-1")
    assert line["gate"] == {
        "outcome": "open",
        "probability": 0.9,
        "namespaces": {FACTS: 0.9, PREFERENCES: 0.9},
        "selected": [FACTS, PREFERENCES],
    }
    assert line["thresholds"] == {"gate": 0.2, "router": 0.2, "validator": 0.2, "relative": 0.25}
    assert line["questions"] == {
        "gate": "gate/criteria/1",
        "router": "route/criteria/1",
        "validator": "record/criteria/1",
    }
    assert {(one["keep"], one["reason"], one["probability"]) for one in line["records"]} == {
        (True, "relevant", 0.9),
        (False, "below_threshold", 0.01),
    }
    assert all(set(one) == {"id", "namespace", "score", "probability", "keep", "reason"} for one in line["records"])
    assert [(one["reason"], set(one)) for one in line["dropped"]] == [("duplicate", {"id", "namespace", "reason"})]
    assert [list(one) for one in line["lookups"]] == [["namespace", "ms", "records", "error", "pinned", "cached"]] * 2
    assert [one["stage"] for one in line["decider_calls"]] == ["gate", "validator"]
    assert list(line["decider_calls"][0]) == ["stage", "questions", "ms", "error", "no_answers", "model"]
    assert line["namespaces"] == list(NAMESPACES)
    assert line["block_tokens"] == manager.last_recall.trace.block_tokens > 0
    assert line["ms"] > 0
    assert line["failure"] is None
    known = {record.record_id for record in manager.last_recall.records}
    assert known <= {one["id"] for one in line["records"]}


def test_without_content_no_text_is_written_and_with_it_all_is(bench, path, tmp_path):
    bench.remember("Likes tea")
    whole = tmp_path / "whole.jsonl"
    bench.agent(traced(bench, path, decider=yes))("What do I drink?")
    agent = bench.agent(traced(bench, whole, content=True, decider=yes, session_id="session-2"))
    agent("What do I drink?")
    agent("And eat?")

    assert "tea" not in path.read_text()
    assert "drink" not in path.read_text()
    first, second = read_traces(whole)
    assert first.message == "What do I drink?"
    assert "Likes tea" in first.block
    assert (first.records[0].text, first.records[0].rendered) == ("Likes tea", "Likes tea")
    assert second.previous == ["What do I drink?", "Fine."]


def test_every_kind_of_turn_can_be_read_back(bench, path, monkeypatch):
    """Closed, failed, switched off, a failing search, a turn that broke."""
    bench.remember("Likes tea")
    bench.agent(traced(bench, path, decider=no))("Thanks!")
    agent = bench.agent(traced(bench, path, decider=broken, session_id="s2"))
    agent("What do I drink?")
    agent("And now?", invocation_state={"recall": False})
    bench.core.fail("RetrieveMemoryRecords", "ThrottledException", times=1)
    agent("And then?")

    def fail(*arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(RecallPipeline, "recall", fail)
    bench.agent(traced(bench, path, session_id="s3"))("And at last?")

    found = list(read_traces(path))
    assert [one.gate and one.gate.outcome for one in found] == ["closed", "failed", "disabled", "failed", None]
    assert [one.failure for one in found] == [None, None, None, None, "ZeroDivisionError"]
    assert found[1].decider_calls[0].error == "RuntimeError"
    assert found[3].lookups[0].error == "throttled"
    assert all(one.namespaces == [FACTS] for one in found)


def test_text_that_is_no_unicode_and_scores_that_are_no_numbers_are_written(bench, path):
    bench.plant(text="Likes \ud83d tée\n\u2028", score=float("nan"), memoryRecordId="mem-1")
    bench.agent(traced(bench, path, content=True, decider=yes))("Do I drink \udc00 tea?")

    (found,) = read_traces(path)
    assert found.message == "Do I drink ? tea?"
    assert found.records[0].text == "Likes ? tée\n\u2028"


def write_lines(path, who, number):
    from strands_gated_memory.reporting.trace_file import TraceFile

    file = TraceFile(path, max_bytes=40_000)
    for at in range(number):
        file.write(json.dumps({"who": who, "at": at, "filling": "x" * (100 + at)}) + "\n")


def test_several_processes_write_whole_lines_and_lose_none_while_it_rotates(path):
    """4 processes of 200 lines, about 170 KB, in files of 40 KB."""
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_lines, args=(path, who, 200)) for who in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)

    files = files_at(path)
    seen = {(one["who"], one["at"]) for file in files for one in lines(file)}
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert seen == {(who, at) for who in range(4) for at in range(200)}
    assert 3 < len(files) <= 6
    assert sum(len(lines(file)) for file in files) == 800


def test_threads_share_a_file(path):
    threads = [threading.Thread(target=write_lines, args=(path, who, 50)) for who in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(len(lines(file)) for file in files_at(path)) == 400


def test_rotation_keeps_so_many_files_and_the_newest_lines(path):
    file = TraceFile(path, max_bytes=100, keep=3)
    for number in range(40):
        file.write(json.dumps({"number": number, "filling": "x" * 30}) + "\n")

    files = [path, *(path.with_name(f"traces.jsonl.{number}") for number in range(1, 4))]
    assert files_at(path) == sorted(files)
    numbers = [one["number"] for file in reversed(files) for one in lines(file)]
    assert numbers == list(range(40 - len(numbers), 40))
    assert len(numbers) >= 4
    assert all(file.stat().st_size <= 100 for file in files)


def test_a_file_that_another_process_has_just_rotated_is_not_rotated_again(path, monkeypatch):
    """Between the look at its size and the lock: the other's file is kept, and written to."""
    file, flock = TraceFile(path, max_bytes=100), fcntl.flock
    file.write("x" * 90 + "\n")

    def after_another(descriptor, operation):
        monkeypatch.undo()
        TraceFile(path, max_bytes=100).write("y" * 50 + "\n")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", after_another)
    file.write("z" * 10 + "\n")

    assert files_at(path) == [path, path.with_name("traces.jsonl.1")]
    assert path.read_text() == "y" * 50 + "\n" + "z" * 10 + "\n"


def test_a_file_that_another_writer_is_rotating_is_written_to_and_not_waited_for(path):
    """The line goes into the full file rather than be lost."""
    TraceFile(path).write("x" * 90 + "\n")
    with path.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        TraceFile(path, max_bytes=100).write("y" * 90 + "\n")

    assert files_at(path) == [path]
    assert path.read_text().split() == ["x" * 90, "y" * 90]


def test_reading_starts_with_the_oldest_rotated_file(bench, path):
    manager = bench.manager(decider=no, tracing={"trace_path": path, "trace_max_bytes": 2000})
    agent = bench.agent(manager)
    for number in range(5):
        agent(f"Thanks {number}")

    times = [one.time for one in read_traces(path)]
    assert len(times) == 5
    assert times == sorted(times)
    assert path.with_name("traces.jsonl.1").exists()


def test_only_its_owner_can_read_it(path):
    TraceFile(path).write("{}\n")

    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_costs_the_line_and_not_the_turn(bench, tmp_path, caplog):
    """Counted each time, said once."""
    path = tmp_path / "full.jsonl"
    path.symlink_to("/dev/full")
    bench.remember("Likes tea")
    manager = traced(bench, path, decider=yes)
    agent = bench.agent(manager)
    agent("What do I drink?")
    agent("And now?")

    assert blocks_per_call(agent) == [1, 1]
    assert manager.stats.as_dict()["trace_errors"] == 2
    assert "trace errors" in str(manager.stats)
    assert not manager.stats.degraded
    assert caplog.text.count("reporter=<trace file>") == 1
    assert "No space left" in caplog.text


def test_a_folder_that_is_gone_costs_the_line_and_not_the_turn(bench, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    manager = traced(bench, folder / "traces.jsonl", decider=yes)
    folder.rmdir()
    bench.agent(manager)("What do I drink?")

    assert manager.stats.as_dict()["trace_errors"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"trace_path": "/nowhere/at/all.jsonl"}, "there is no folder '/nowhere/at'"),
        ({"trace_path": "/"}, "is a folder"),
        ({"trace_path": 300 * "x"}, "cannot be used: File name too long"),
        ({"trace_path": "\0"}, "cannot be used"),
        ({"trace_path": 5}, "must be the path of a file, got 5"),
        ({"trace_path": "t.jsonl", "trace_max_bytes": 0}, "trace_max_bytes must be"),
        ({"trace_path": "t.jsonl", "trace_content": "no"}, "trace_content must be a bool, got 'no'"),
    ],
)
def test_a_path_that_cannot_be_a_file_is_refused_at_construction(bench, arguments, message):
    with pytest.raises(ConfigurationError, match=message):
        bench.manager(tracing=arguments)


@pytest.mark.parametrize(
    ("line", "message"),
    [("not json", "line 2: the line: Invalid JSON"), ('{"version": 2}', "line 2: version")],
)
def test_a_line_that_is_none_is_named_with_file_and_line(bench, path, line, message):
    bench.agent(traced(bench, path, decider=no))("Thanks!")
    with path.open("a") as file:
        file.write(f"{line}\n")
    traces = read_traces(path)
    next(traces)

    with pytest.raises(GatedMemoryError, match=f"traces.jsonl, {message}"):
        next(traces)


@pytest.mark.parametrize("rest", ['{"version":1,"time":"2026', "x"])
def test_a_line_that_another_writer_left_unfinished_costs_no_other_line(bench, path, rest):
    """A disk that was full, a process that was killed: the next line begins anew, whoever writes it."""
    for ask in ("What do I drink?", "And now?"):
        bench.agent(traced(bench, path, decider=no, session_id=ask[:3]))(ask)
        with path.open("a") as file:
            file.write(rest)

    assert len(list(read_traces(path, broken="skip"))) == 2
    read = read_traces(path)
    next(read)
    with pytest.raises(GatedMemoryError, match="line 2: the line"):
        next(read)


def test_a_line_of_ones_own_that_was_cut_is_counted_and_costs_no_other_line(bench, path, monkeypatch):
    """At once, though the file has just been written to."""
    manager, write = traced(bench, path, decider=no), os.write
    agent = bench.agent(manager)
    agent("Thanks!")
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:50]))
    agent("Thanks again!")
    monkeypatch.undo()
    agent("And again!")

    assert manager.stats.as_dict()["trace_errors"] == 1
    assert len(list(read_traces(path, broken="skip"))) == 2


def test_a_namespace_of_any_name_and_a_text_of_any_kind_can_be_read_back(bench, path):
    """None of them looks like the beginning of another line."""
    said = 'Why does {"version":1,"time":"now"} not parse?'
    bench.agent(traced(bench, path, content=True, decider=no, namespaces=("version", "time")))(said)

    (line,) = read_traces(path)
    assert list(line.gate.namespaces) == ["version", "time"]
    assert line.message == said


def test_a_last_line_that_is_being_written_is_left_out(bench, path):
    bench.agent(traced(bench, path, decider=no))("Thanks!")
    with path.open("a") as file:
        file.write(path.read_text()[:100])

    assert len(list(read_traces(path))) == 1


def test_rotated_files_can_be_read_while_there_is_no_current_one(bench, path):
    bench.agent(traced(bench, path, decider=no))("Thanks!")
    path.rename(f"{path}.1")

    assert len(list(read_traces(path))) == 1
    with pytest.raises(FileNotFoundError):
        next(read_traces(path.with_name("other")))


def test_reading_while_it_rotates_hides_no_line(bench, path):
    """Some lines are gone because only five files are kept; between the first and the last none is."""
    bench.agent(traced(bench, path, decider=no))("Thanks!")
    line = json.loads(path.read_text())
    path.unlink()
    file, over = TraceFile(path, max_bytes=20_000), threading.Event()

    def write():
        number = 0
        while not over.is_set():
            file.write(json.dumps(line | {"turn": f"{number:06d}"}) + "\n")
            number += 1
            time.sleep(0.0005)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        time.sleep(0.3)
        for _ in range(25):
            turns = [int(one.turn) for one in read_traces(path)]
            assert turns == list(range(turns[0], turns[-1] + 1))
    finally:
        over.set()
        writer.join()


def test_the_fields_that_queries_name_come_before_the_records(bench, path):
    """CloudWatch Logs Insights finds 200 fields of a line: a turn with many records must not hide its times."""
    bench.remember(*[f"Likes the drink number {number}" for number in range(60)])
    config = {FACTS: RetrievalConfig(top_k=100)}
    bench.agent(traced(bench, path, content=True, decider=yes, namespaces=config))("What do I drink?")

    (line,) = lines(path)
    assert len(line["records"]) > 40
    assert list(line)[-2:] == ["records", "dropped"]


def test_no_path_writes_nothing(bench, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bench.agent(bench.manager(decider=yes, stats=RecallStats()))("What do I drink?")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_that_nobody_reads_holds_up_no_turn(bench, path):
    os.mkfifo(path)
    manager = traced(bench, path, decider=yes)
    turn = threading.Thread(target=bench.agent(manager), args=("What do I drink?",), daemon=True)
    turn.start()
    turn.join(10)
    held_up = turn.is_alive()
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))  # lets go of a turn that is held up

    assert not held_up
    assert manager.stats.as_dict()["trace_errors"] == 1
