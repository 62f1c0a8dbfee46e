"""`print(manager.last_recall)` is for a person at a terminal; what ends up in logs and tracebacks holds no text."""

import logging
import re
import unicodedata

import pytest
from turn_builders import FACTS, PREFERENCES, broken, judging, no, yes

from strands_gated_memory import Dropped, GateDecision, Judgement, Question, Recall, Record, Turn, TurnTrace
from strands_gated_memory.core.columns import columns, within
from strands_gated_memory.core.wordings import RECORD_CRITERIA

SECRET = "Likes the Zanzibar tea"


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def recalled(bench, message="What do I drink?", **settings):
    manager = bench.manager(**settings)
    bench.agent(manager)(message)
    return manager.last_recall


def test_a_recall_prints_a_line_per_record_and_the_gate_with_its_namespaces(bench):
    bench.remember("Likes tea", "Owns a boat", "likes TEA!", namespace=FACTS)
    bench.remember("Prefers oat milk", namespace=PREFERENCES)
    recall = recalled(
        bench,
        namespaces=(PREFERENCES, FACTS),
        decider=judging(boat=0.004, oat=0.812, tastes=0.05),
        policy={"validator": {"threshold": 0.01}, "router": {"threshold": 0.01}},
    )

    assert str(recall).splitlines() == [
        "gate: open, P 0.900 (cut 0.2)",
        "  /preferences/{actorId}/  searched, 1 record, P 0.050 (cut 0.01)",
        "  /facts/{actorId}/  searched, 3 records, P 0.900 (cut 0.01)",
        "records: 2 injected, 2 left out (cuts: validator 0.01, relative 0.25)",
        f"  + P 0.900  relevant         {recall.records[0].text}",
        "  + P 0.812  relevant         Prefers oat milk",
        "  - P 0.004  below_threshold  Owns a boat",
        f"  -          duplicate        {recall.dropped[0].record.text}",
        f"block: {recall.trace.block_tokens} tokens",
    ]


def test_a_closed_gate_prints_its_namespaces_as_not_searched(bench):
    assert str(recalled(bench, decider=no)).splitlines() == [
        "gate: closed, P 0.010 (cut 0.2)",
        "  /facts/{actorId}/  not searched (gate closed)",
        "records: 0 injected, 0 left out (cuts: validator 0.2, relative 0.25)",
        "block: 0 tokens",
    ]


def test_failures_are_named(bench):
    bench.core.fail("RetrieveMemoryRecords", "AccessDeniedException")

    text = str(recalled(bench, decider=broken))

    assert text.startswith("gate: failed\n  /facts/{actorId}/  failed (access_denied)\n")
    assert "\n! gate: RuntimeError: RuntimeError('no model here')" in text
    assert "\n! retrieve: access_denied: namespace /facts/{actorId}/" in text


def test_a_turn_without_memory_and_one_that_is_switched_off(bench):
    assert str(Recall((), None, (), TurnTrace(None, failure="KeyError", started=0.0))).splitlines() == [
        "gate: none, the turn ended before it",
        "records: 0 injected, 0 left out",
        "block: 0 tokens",
        "! turn: KeyError: it had no memory",
    ]
    manager = bench.manager(decider=yes)
    bench.agent(manager)("What do I drink?", invocation_state={"recall": False})
    assert str(manager.last_recall).startswith("gate: disabled\n")


def test_a_shortened_record_is_said_to_be(bench):
    bench.remember("The user has been to Rome and liked it. " * 300)

    assert "  + P 0.900  relevant, shortened  The user has been to Rome" in str(recalled(bench, decider=yes))


HOSTILE = [
    "Likes \x1b[2J\x1b[31mred\x1b[0m tea",
    "Title \x1b]0;owned\x07 set",
    "C1 \x9b2J and \x90 strings",
    "over\rwritten\nsecond line\x0bthird\x85fourth\u2028fifth",
    "reversed \u202eaet\u202c and \u2066isolated\u2069",
    "lone \ud800 surrogate",
    "z" + "\u0301" * 5000,
    "用户喜欢茶" * 100,
    "👩‍👩‍👧" * 100,
    "tab\tbed\x00nul",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("width", ["100", "40", "3"])
@pytest.mark.parametrize("rendered", [True, False])
def test_a_record_cannot_command_the_terminal(text, width, rendered, monkeypatch):
    """One line each, no wider than the terminal, no controls, no reordering, and it can be encoded."""
    monkeypatch.setenv("COLUMNS", width)
    record = Record(text, text)
    judged = Judgement(record, 0.5, True, "relevant", text if rendered else "")
    dropped = (Dropped(record, "out_of_scope"),)
    trace = TurnTrace(GateDecision(True, 0.5, {text: 0.5}, (text,)), (judged,), failure=text, started=0.0)

    printed = str(Recall((record,), text, dropped, trace))

    lines = printed.split("\n")
    assert len(lines) == 7
    assert all(columns(line) <= max(40, int(width)) and len(line) <= 400 for line in lines)
    steering = {c for line in lines for c in line if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")}
    assert steering == set()
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", printed)
    printed.encode()


@pytest.mark.parametrize(
    ("text", "most", "cut"),
    [
        ("tea", 3, "tea"),
        ("green tea", 6, "green…"),
        ("茶茶茶", 5, "茶茶…"),
        ("茶茶茶", 4, "茶…"),
        ("e\u0301e\u0301e", 2, "e\u0301…"),
    ],
)
def test_a_line_is_cut_by_what_is_seen(text, most, cut):
    assert within(text, most) == cut
    assert columns(within(text, most)) <= most


def test_a_repr_is_short_and_holds_no_text(bench):
    bench.remember(SECRET)
    recall = recalled(bench, f"{SECRET}?", decider=yes)
    record = recall.records[0]
    shown = [
        recall, recall.trace, recall.trace.judgements[0], record, Turn(SECRET, (SECRET, SECRET)), recall.trace.gate,
        Dropped(record, "duplicate"), RECORD_CRITERIA.question(SECRET), (recall,), {"recall": recall},
        Record(SECRET, FACTS, metadata={"note": SECRET}), Question("noul", SECRET, {"true": SECRET}),
    ]  # fmt: skip

    for value in shown:
        assert "Zanzibar" not in repr(value)
        assert len(repr(value)) < 500
    assert repr(recall) == f"<Recall gate=open records=1 dropped=0 block_tokens={recall.trace.block_tokens} failures=0>"
    assert repr(Turn("Hello?", ("Hi",))) == "<Turn of 6 characters, 1 texts before it>"
    assert f"record_id={record.record_id!r}" in repr(record)


@pytest.mark.parametrize("decider", [yes, no, broken])
def test_no_line_of_the_log_holds_the_text(bench, caplog, decider):
    caplog.set_level(logging.INFO)
    bench.remember(SECRET)
    seen = []

    manager = bench.manager(decider=decider, on_recall=lambda recall: seen.append(recall) or 1 / 0)
    bench.agent(manager)(f"{SECRET}?")
    logging.getLogger("an application").warning("recalled %r", seen)
    manager.close()

    assert len(seen) == 1
    assert "Zanzibar" not in caplog.text
