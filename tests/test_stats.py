"""The counters and their text."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.core.questions import NoAnswer
from strands_gated_memory.core.types import DeciderCall, Lookup, Recall, TurnTrace
from strands_gated_memory.reporting import log
from strands_gated_memory.reporting.log import log_failures, log_stats, reset_failure_log

NAMESPACES = ("/preferences/{actorId}/", "/facts/{actorId}/")
MARKER = "xylophone"


def recall(decide, search=None, records=2):
    found = search or (
        lambda namespace: [Record(f"{MARKER} {n}", namespace, record_id=f"r{n}") for n in range(records)]
    )
    return RecallPipeline(resolve_decider(decide), RecallPolicy()).recall(Turn(MARKER), NAMESPACES, found)


def says(probability):
    return lambda state, questions: {name: {"noul": probability} for name in questions}


def fails(state, questions):
    raise RuntimeError(f"endpoint does not exist, {state['message'] and 'sorry'}")


def counted(*recalls):
    stats = RecallStats()
    for one in recalls:
        stats.add(one)
    return stats


def test_counters_say_what_was_done_and_what_stock_would_have_done():
    counts = counted(recall(says(0.9)), recall(says(0.01))).as_dict()

    assert counts["turns"] == 2
    assert {outcome: count for outcome, count in counts["gate"].items() if count} == {"open": 1, "closed": 1}
    assert (counts["retrievals"], counts["stock_retrievals"]) == (1, 2)
    assert (counts["lookups"], counts["stock_lookups"]) == (2, 4)
    assert (counts["records_returned"], counts["records_injected"]) == (4, 2)
    assert counts["records_dropped"] == {"duplicate": 2}
    assert (counts["decider_calls"], counts["decider_questions"]) == (3, 8)
    assert counts["context_tokens"] == -(-counts["context_characters"] // 4)


def test_the_first_line_shouts_when_the_decider_failed():
    stats = counted(*[recall(fails) for _ in range(8)])

    assert str(stats).splitlines()[0] == (
        "!! decider errors  16  (failed open: results below reflect UNGATED behaviour)"
    )
    assert stats.as_dict()["gate"]["open"] == stats.as_dict()["gate"]["closed"] == 0
    assert stats.degraded


def test_a_healthy_block_is_aligned_and_does_not_shout():
    lines = str(counted(recall(says(0.9)))).splitlines()

    assert not lines[0].startswith("!!")
    assert len({len(line.split("  ")[0]) >= 0 and line.index(line.split()[-1]) >= 0 for line in lines}) == 1
    ends = {len(line.rstrip().split("(")[0].rstrip()) for line in lines}
    assert len(ends) == 1


def test_abstentions_are_no_errors():
    stats = counted(recall(lambda state, questions: {name: NoAnswer("abstained") for name in questions}))

    assert not stats.degraded
    assert stats.as_dict()["decider_abstentions"] == 5
    assert stats.as_dict()["gate"]["abstained"] == 1


def test_retrieval_errors_shout_too_and_are_told_apart():
    def search(namespace):
        raise TimeoutError("slow")

    stats = counted(recall(says(0.9), search))

    assert str(stats).splitlines()[0].startswith("!! retrieval errors  2  (failed open")
    assert stats.as_dict()["retrieval_errors_by_kind"] == {"timeout": 2}


def test_one_object_counts_for_many_threads():
    stats, one = RecallStats(), recall(says(0.9))
    threads = [threading.Thread(target=lambda: [stats.add(one) for _ in range(500)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert stats.turns == 4000
    assert stats.as_dict()["records_injected"] == 8000


def test_warnings_come_at_the_first_tenth_and_hundredth_failure(caplog):
    reset_failure_log()
    one = recall(fails)
    for _ in range(100):
        log_failures(one)

    counts = [record.args[2] for record in caplog.records if record.levelno == logging.WARNING]

    assert sorted(counts) == [1, 1, 10, 10, 100, 100]


def test_no_text_of_a_turn_is_logged(caplog):
    reset_failure_log()
    caplog.set_level(logging.INFO)
    one = recall(fails)

    log_failures(one)
    log_stats(counted(one), "block")

    assert caplog.records
    assert MARKER not in caplog.text


@pytest.mark.parametrize(("style", "holds"), [("block", "turns"), ("line", "gate.open=1"), ("json", '"turns": 1')])
def test_counters_are_logged_in_the_style_asked_for(style, holds, caplog):
    caplog.set_level(logging.INFO)

    log_stats(counted(recall(says(0.9))), style)

    assert holds in caplog.text


def test_counters_are_valid_json():
    stats = counted(recall(says(0.9)), Recall((), None, (), TurnTrace(None, failure="ValueError", started=0.0)))

    assert json.loads(json.dumps(stats.as_dict()))["turn_failures"] == 1


def test_names_from_outside_do_not_fill_the_memory():
    """A server that reports a new model id each time, an error whose class is new each time."""
    stats = RecallStats()
    for number in range(1000):
        calls = (
            DeciderCall("gate", 1, 0.1, model=f"model-{number}", untuned=(f"why {number}",)),
            DeciderCall("validator", 1, 0.1, error=f"Error{number}", passed_over=(f"one: Error{number}",)),
        )
        lookups = (Lookup("/facts/", 0.1, error=f"Error{number}"),)
        states = {f"retrieval:m:/facts/{number}/": "open"}
        one = Recall((), None, (), TurnTrace(None, decider_calls=calls, lookups=lookups, breakers=states, started=0.0))
        stats.add(one)
        log_failures(one)
    counts = stats.as_dict()

    named = ("decider_models", "decider_untuned", "decider_passed_over", "decider_errors_by_kind")
    for name in (*named, "retrieval_errors_by_kind"):
        assert sum(counts[name].values()) == 1000
        assert counts[name]["other"] == 1000 - (len(counts[name]) - 1)
        assert len(counts[name]) < 300
    assert len(counts["breakers"]) <= 64
    assert counts["breakers"]["retrieval:m:/facts/999/"] == "open"
    assert len(log._failures) + len(log._said) < 3000
