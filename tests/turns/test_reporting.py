"""What people and machines are told: counters, log lines, callbacks; never the memory itself."""

import dataclasses
import json
import logging

import pytest
from strands.types.exceptions import SessionException
from turn_builders import FACTS, PREFERENCES, blocks_per_call, broken, judging, last_block, no, yes

from strands_gated_memory import RecallPipeline, RecallStats

MARKER = "xyzzymarker"
LOGGER = "strands_gated_memory"


def stats_logged(caplog):
    return [record for record in caplog.records if record.levelno == logging.INFO and record.name == LOGGER]


def warned(caplog):
    return [record for record in caplog.records if record.levelno == logging.WARNING and record.name == LOGGER]


def test_the_counters_of_a_turn(bench):
    """Every figure of an open and a closed turn, by hand."""
    bench.remember("Likes tea", "Has a cat").remember("Window seat", namespace=PREFERENCES)

    def decide(state, questions):
        return (no if state["message"] == "Thanks!" else judging(tea=0.9, cat=0.01, Window=0.8))(state, questions)

    manager = bench.manager(decider=decide, namespaces=(FACTS, PREFERENCES))
    agent = bench.agent(manager)
    agent("What do I drink?")
    agent("Thanks!")

    block = "<user_context>\nLikes tea\nWindow seat\n</user_context>"
    counts = manager.stats.as_dict()
    assert counts["turns"] == 2
    assert {outcome: count for outcome, count in counts["gate"].items() if count} == {"open": 1, "closed": 1}
    assert (counts["retrievals"], counts["stock_retrievals"]) == (1, 2)
    assert (counts["lookups"], counts["stock_lookups"]) == (2, 4)
    assert (counts["records_returned"], counts["records_injected"]) == (3, 2)
    assert counts["records_dropped"] == {"below_threshold": 1}
    assert (counts["context_characters"], counts["context_tokens"]) == (len(block), -(-len(block) // 4))
    assert (counts["decider_calls"], counts["decider_questions"]) == (3, 9)
    assert counts["decider_errors"] == counts["retrieval_errors"] == counts["turn_failures"] == 0
    assert counts["decider_ms"] > 0
    assert counts["retrieval_ms"] > 0
    json.dumps(counts)


def test_the_counters_as_text_are_aligned(bench):
    """A block of rows whose numbers stand under each other, and one line of key=value pairs."""
    manager = bench.manager(decider=no)
    bench.agent(manager)("Thanks!")

    rows = str(manager.stats).splitlines()
    assert rows[0].split() == ["turns", "1"]
    assert "gate decisions" in rows[1]
    assert "(open 0, closed 1, failed 0)" in rows[1]
    assert "(baseline would be 1, saved 1)" in rows[2]
    width = rows[0].index("1")
    assert all(row[width].isdigit() and row[width - 1] == " " for row in rows[:2])
    assert "turns=1" in manager.stats.line()
    assert "\n" not in manager.stats.line()


def test_managers_may_share_their_counters(bench):
    """A server that builds a manager per request counts all of them in one place."""
    stats = RecallStats()
    for number in range(3):
        bench.agent(bench.manager(decider=no, stats=stats, session_id=f"s{number}"))("Thanks!")

    assert stats.turns == 3
    assert stats.as_dict()["gate"]["closed"] == 3


def test_a_recall_is_handed_to_on_recall(bench):
    """After it was counted, once per turn, the same value as `last_recall`."""
    bench.remember("Likes tea")
    seen = []
    manager = bench.manager(decider=yes, on_recall=lambda recall: seen.append((recall, manager.stats.turns)))
    bench.agent(manager)("What do I drink?")

    assert seen == [(manager.last_recall, 1)]
    assert [record.text for record in seen[0][0].records] == ["Likes tea"]


@pytest.mark.parametrize(
    "error", [KeyError(MARKER), OSError(MARKER), OSError(5, MARKER), OSError("at", MARKER), OSError(10**40, MARKER)]
)
def test_what_on_recall_raises_is_logged_not_raised(bench, caplog, error):
    """The turn goes on with its block, and the failure is no failure of the recall."""
    bench.remember("Likes tea")

    def fail(recall):
        raise error

    manager = bench.manager(decider=yes, on_recall=fail)
    agent = bench.agent(manager)
    agent("What do I drink?")

    assert blocks_per_call(agent) == [1]
    assert "reporter=<on_recall>" in caplog.text
    assert type(error).__name__ in caplog.text
    assert MARKER not in caplog.text
    assert manager.stats.as_dict()["turn_failures"] == 0


@pytest.mark.parametrize("where", ["handler", "filter"])
@pytest.mark.parametrize("on_failure", ["open", "raise"])
def test_a_log_handler_that_raises_costs_nothing(bench, tmp_path, where, on_failure):
    """Whatever is said on the way: failures, the alarm, counters, a callback, a trace file, an unexpected failure."""
    bench.remember("Likes tea")

    def fail(*arguments):
        raise RuntimeError("no log here")

    handler = logging.Handler()
    handler.emit = fail if where == "handler" else lambda record: None
    handler.filter = fail if where == "filter" else lambda record: True
    log = logging.getLogger("strands_gated_memory")
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        manager = bench.manager(
            decider=broken if on_failure == "open" else yes,
            policy={"stats_every": 1, "on_failure": on_failure},
            on_recall=fail,
            tracing={"trace_path": tmp_path / "traces.jsonl"},
        )
        (tmp_path / "traces.jsonl").mkdir()
        agent = bench.agent(manager)
        for _ in range(21):
            agent("What do I drink?")
        manager._source = dataclasses.replace(manager._source, retriever=None)
        if on_failure == "open":
            agent("What do I drink?")
        manager.close()
    finally:
        log.removeHandler(handler)
        log.setLevel(level)

    assert blocks_per_call(agent) == [1] * 21 + [0] * (on_failure == "open")
    assert manager.stats.as_dict()["trace_errors"] == manager.stats.turns == len(agent.model.calls)


def test_an_unexpected_failure_costs_the_turn_its_memory_only(bench, caplog, monkeypatch):
    """Whatever raises: no block, counted, shouted, and the agent answers."""
    caplog.set_level(logging.DEBUG, "strands_gated_memory")
    bench.remember("Likes tea")

    def fail(*arguments):
        raise ZeroDivisionError(MARKER)

    monkeypatch.setattr(RecallPipeline, "recall", fail)
    manager = bench.manager(decider=yes)
    agent = bench.agent(manager)

    assert str(agent("What do I drink?")).strip() == "Fine."

    assert blocks_per_call(agent) == [0]
    assert manager.stats.as_dict()["turn_failures"] == 1
    assert str(manager.stats).startswith("!! turn failures  1")
    assert "stage=<turn>, reason=<ZeroDivisionError>, count=<1>, cause=<ZeroDivisionError, " in caplog.text
    assert "at DEBUG of strands_gated_memory>" in caplog.text
    assert MARKER not in "".join(one.getMessage() for one in caplog.records if one.levelno > logging.DEBUG)
    traceback = [one for one in caplog.records if one.levelno == logging.DEBUG and one.exc_info]
    assert [(one.name, one.exc_info[0]) for one in traceback] == [("strands_gated_memory", ZeroDivisionError)]


def test_failures_are_logged_at_the_1st_10th_and_100th(bench, caplog):
    """Per stage and kind, in the whole process, whoever the manager."""
    bench.core.fail("RetrieveMemoryRecords", "ThrottledException")
    managers = [bench.manager(session_id=f"s{number}", policy={"breaker": None}) for number in range(2)]
    agents = [bench.agent(manager) for manager in managers]
    for number in range(12):
        agents[number % 2]("What do I drink?")

    counts = [record.getMessage().split("count=<")[1].split(">")[0] for record in warned(caplog)]
    assert counts == ["1", "10"]
    assert "Throttled" in warned(caplog)[0].getMessage()


@pytest.mark.parametrize("way", ["close", "with", "both"])
def test_closing_logs_the_counters_once(bench, caplog, way):
    """close() and the end of a with-block, which does not call it, each log; the second of both has nothing new."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    manager = bench.manager(decider=no)
    bench.agent(manager)("Thanks!")
    if way in ("with", "both"):
        with manager:
            pass
    if way in ("close", "both"):
        manager.close()

    (record,) = stats_logged(caplog)
    assert "gate decisions" in record.getMessage()


def test_a_manager_without_a_turn_logs_nothing_of_shared_counters(bench, caplog):
    """A server that makes a manager for each request would log the block for each, whoever asked."""
    stats = RecallStats()
    busy = bench.manager(decider=no, stats=stats)
    bench.agent(busy)("Thanks!")
    caplog.set_level(logging.INFO, logger=LOGGER)

    bench.manager(decider=no, stats=stats, session_id="session-2").close()
    assert stats_logged(caplog) == []
    busy.close()
    assert len(stats_logged(caplog)) == 1


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "all at once"])
@pytest.mark.parametrize("decider", [no, yes, broken], ids=["closed", "open", "failing"])
def test_a_server_logs_shared_counters_once_per_period_not_once_per_manager(bench, caplog, decider, together):
    """Ten managers, one request each; and ten more after the period of 15 turns has begun anew."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    stats = RecallStats()

    def serve(count):
        managers = []
        for number in range(count):
            manager = bench.manager(
                decider=decider, stats=stats, session_id=f"s{stats.turns}-{number}", policy={"stats_every": 15}
            )
            bench.agent(manager)("Thanks!")
            managers.append(manager)
            if not together:
                managers.pop().close()
        for manager in managers:
            manager.close()

    serve(10)
    assert len(stats_logged(caplog)) == 1
    serve(10)
    assert len(stats_logged(caplog)) == 2
    assert stats.turns == 20


def test_counters_given_to_one_manager_alone_are_logged_when_it_closes(bench, caplog):
    """Given by name or not: after the block of the first failure too."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    manager = bench.manager(decider=broken, stats=RecallStats())
    agent = bench.agent(manager)
    for _ in range(3):
        agent("Thanks!")
    manager.close()

    assert [message.getMessage().count("turns") > 0 for message in stats_logged(caplog)] == [True, True]


@pytest.mark.parametrize("way", ["close", "with"])
def test_a_flush_that_fails_raises_as_the_parents_does_and_the_counters_are_logged(bench, caplog, way):
    """Losing messages is the parent's to report; what is known of the recalls is not lost with them."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    manager = bench.manager(decider=no, batch_size=50)
    agent = bench.agent(manager)
    bench.core.fail("CreateEvent", "AccessDeniedException")
    with pytest.raises(SessionException, match="Failed to flush"):
        agent("Thanks!")

    def end():
        if way == "close":
            return manager.close()
        with manager:
            return None

    with pytest.raises(SessionException, match="Failed to flush"):
        end()

    assert len(stats_logged(caplog)) == 1


@pytest.mark.parametrize(
    ("style", "starts"), [("block", "recall counters\n"), ("line", "turns=1 "), ("json", '{"turns": 1'), ("off", None)]
)
def test_the_counters_are_logged_in_the_chosen_style(bench, caplog, style, starts):
    """`stats_log` is block, line, json or off."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    with bench.manager(decider=no, policy={"stats_log": style}) as manager:
        bench.agent(manager)("Thanks!")

    logged = [record.getMessage() for record in stats_logged(caplog)]
    assert len(logged) == (0 if starts is None else 1)
    assert all(message.startswith(starts) for message in logged)


def test_the_counters_are_logged_every_so_many_turns_and_at_the_first_failure(bench, caplog):
    """`stats_every` turns, and once when the first failure comes."""
    caplog.set_level(logging.INFO, logger=LOGGER)
    manager = bench.manager(decider=broken, policy={"stats_every": 3})
    agent = bench.agent(manager)
    lengths = []
    for _ in range(6):
        agent("What do I drink?")
        lengths.append(len(stats_logged(caplog)))

    assert lengths == [1, 1, 2, 2, 2, 3]
    assert "!! decider errors" in stats_logged(caplog)[0].getMessage()


def test_neither_memory_nor_messages_are_logged_above_debug(bench, caplog):
    """Open, closed, failing, malformed, closing: the marker words are in no record of any logger of ours."""
    caplog.set_level(logging.DEBUG)
    bench.remember(f"Likes {MARKER} tea", "{}").plant(text=f"Bobby {MARKER}", namespaces=["/facts/bobby/"])
    bench.plant(content={"text": 5}, memoryRecordId=MARKER)
    said = f"What do I drink, {MARKER}?"
    for number, decider in enumerate((yes, no, broken, None, lambda state, questions: {"gate": state})):
        with bench.manager(decider=decider, session_id=f"s{number}") as manager:
            agent = bench.agent(manager)
            agent(said)
            bench.core.fail("RetrieveMemoryRecords", "ServiceException", times=1)
            agent(said)
            bench.core.clear_faults()
    assert MARKER in str(agent.model.calls)

    loud = [r for r in caplog.records if r.levelno > logging.DEBUG and r.name.startswith(LOGGER)]
    assert loud != []
    assert all(MARKER not in record.getMessage() for record in loud)
    assert all(MARKER not in str(record.exc_info) for record in loud)
    assert MARKER not in str(manager.stats)
    assert MARKER not in repr(manager.stats)


def test_an_empty_retrieval_config_is_said(bench, caplog):
    """A configuration that can never recall warns at construction, whether it is empty or None."""
    bench.manager(namespaces={})
    assert "retrieval_config is empty" in caplog.text
    caplog.clear()

    manager = bench.manager(namespaces=(), retrieval_config=None)
    agent = bench.agent(manager)
    agent("What do I drink?")

    assert ["retrieval_config is None" in one.getMessage() for one in warned(caplog)] == [True]
    assert last_block(agent) == []
    assert manager.stats.turns == 0


def test_an_error_that_quotes_the_turn_is_logged_without_its_message(bench, caplog):
    """A decision model's error message may hold what it was asked; the log gets its class alone."""

    def quoting(state, questions):
        raise ValueError(f"cannot judge {state['message']!r} with {next(iter(questions.values()))}")

    bench.remember(f"The user's {MARKER} is green.")
    bench.agent(bench.manager(decider=quoting))(f"Tell me about the {MARKER}, please")

    assert len(warned(caplog)) == 2
    assert "ValueError" in caplog.text
    assert MARKER not in "".join(record.getMessage() for record in warned(caplog))


@pytest.mark.parametrize(
    "message",
    [
        "pin 4321",
        "is it me",
        "密码 四三",
        "我把钥匙放在花盆下面了" * 60,
        "my code\nis abc",
        "x" * 500,
    ],
    ids=["a number", "short words", "two characters", "cut in the middle", "two lines", "one long word"],
)
def test_an_error_that_quotes_a_short_or_a_long_message_is_logged_without_it(bench, caplog, message):
    """By a decider, and by what searches."""

    def decide(state, questions):
        raise ValueError(f"cannot read {state['message']!r}" if "4" in message else state["message"])

    manager = bench.manager(decider=decide)
    bench.core.fail("RetrieveMemoryRecords", "ValidationException", message=f"bad query: {message}")
    bench.agent(manager)(message)

    warnings = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len([one for one in warnings if "is withheld" in one]) == 2
    assert not any(message[:6] in one for one in warnings)
