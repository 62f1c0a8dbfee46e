"""Another policy over recorded turns: by hand, and against what an agent's own pipeline does."""

import json
import math

import pytest
from trace_lines import record, turn, write

from harness import cli
from harness.tuning.replay import figures, replay, rows
from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn
from strands_gated_memory.core.questions import Noul
from strands_gated_memory.reporting.trace_file import TraceLine

FACTS, PREFERENCES = "/facts/{actorId}/", "/preferences/{actorId}/"
OPEN = turn(
    "t1",
    0.6,
    [
        record("a", 0.9, True, PREFERENCES, text="The user drinks tea."),
        record("b", 0.3, True, text="The user has a cat."),
        record("c", 0.1, False, text="The user has a car.", reason="below_threshold"),
        record("d", None, True, text="The user has a house.", reason="not_judged"),
    ],
    namespaces={FACTS: 0.5, PREFERENCES: 0.9},
    message="What should I drink?",
)
CLOSED = turn("t2", 0.1, message="Hello!")


def again(line, **settings):
    return replay(TraceLine.model_validate_json(json.dumps(line)), RecallPolicy(**settings))


def injected(replayed):
    return [replayed.turn.records[at].id for at in replayed.kept]


def test_a_policy_that_sets_nothing_gives_what_was():
    assert injected(again(OPEN)) == ["a", "b", "d"]
    assert again(OPEN).kept == again(OPEN).before


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"validator": {"threshold": 0.05}, "select": {"relative": 0.0}}, ["a", "b", "c", "d"]),
        ({"validator": {"threshold": 0.5}}, ["a", "d"]),
        ({"select": {"relative": 0.5}}, ["a", "d"]),
        ({"select": {"mode": "ranking", "relative": 0.1}}, ["a", "b", "c", "d"]),
        ({"select": {"mode": "threshold"}}, ["a", "b", "d"]),
        ({"select": {"max_records": 1}}, ["a"]),
        ({"gate": {"threshold": 0.7}}, []),
        ({"router": {"threshold": 0.6}}, ["a"]),
        ({"select": {"max_context_tokens": 18}}, ["a"]),
    ],
)
def test_cuts_by_hand(settings, expected):
    assert injected(again(OPEN, **settings)) == expected


def test_what_no_cut_has_dropped_stays_dropped():
    line = OPEN | {"records": [record("x", 0.9, False, text="Obey.", reason="instructions"), *OPEN["records"]]}

    assert injected(again(line, validator={"threshold": 0.0}, select={"relative": 0.0})) == ["a", "b", "c", "d"]


def test_what_was_never_searched_is_not_guessed():
    opened = again(CLOSED, gate={"threshold": 0.05})

    assert (opened.opens, injected(opened)) == (True, [])
    assert set(opened.unknown) == {FACTS, PREFERENCES}
    assert again(CLOSED).unknown == ()


def test_a_failed_search_is_unknown():
    failed = [
        {"namespace": FACTS, "ms": 5.0, "records": 0, "error": "throttled", "pinned": False, "cached": False},
        {"namespace": PREFERENCES, "ms": 5.0, "records": 1, "error": None, "pinned": False, "cached": False},
    ]

    assert again(OPEN | {"lookups": failed}).unknown == (FACTS,)


def test_pinned_namespaces_are_kept_when_the_gate_closes():
    line = OPEN | {
        "lookups": [
            {"namespace": FACTS, "ms": 0.0, "records": 3, "error": None, "pinned": True, "cached": True},
            {"namespace": PREFERENCES, "ms": 5.0, "records": 1, "error": None, "pinned": False, "cached": False},
        ]
    }

    assert injected(again(line, gate={"threshold": 0.7})) == ["b", "d"]


def test_a_gate_without_an_answer_stays_open_and_a_failed_turn_stays_empty():
    assert again(turn("t", None), gate={"threshold": 0.9}).opens
    assert not again(turn("t", 0.9) | {"gate": None, "failure": "KeyError"}).opens


@pytest.mark.parametrize("mode", ["threshold", "ranking", "hybrid"])
@pytest.mark.parametrize(("gate", "validator", "relative"), [(0.5, 0.35, 0.3), (0.7, 0.1, 0.9), (0.1, 0.0, 0.0)])
def test_it_is_what_the_pipeline_itself_does(mode, gate, validator, relative):
    """The same probabilities, given to the pipeline by a decider, lead to the same records."""
    settings = {
        "gate": {"threshold": gate},
        "router": {"threshold": 0.6},
        "validator": {"threshold": validator},
        "select": {"mode": mode, "relative": relative},
    }
    p = {f"The user note {at}.": at / 10 for at in range(1, 10)}

    class Says:
        def decide(self, state, questions):
            def one(question):
                if question.about == "record":
                    return p[question.subject]
                return 0.6 if question.about == "gate" else 0.9 if "taste" in question.subject else 0.5

            return {name: Noul(one(question)) for name, question in questions.items()}

    def search(namespace):
        mine = [text for at, text in enumerate(p) if (at % 2 == 0) == (namespace == FACTS)]
        return [Record(text, namespace, record_id=text) for text in mine]

    loose = {"gate": {"threshold": 0.0}, "router": {"threshold": 0.0}, "validator": {"threshold": 0.0}}
    recorded = RecallPipeline(Says(), RecallPolicy(**loose, select={"relative": 0.0})).recall(
        Turn("What should I drink?"), [FACTS, PREFERENCES], search
    )
    line = turn(
        "t",
        recorded.trace.gate.probability,
        [
            record(j.record.record_id, j.probability, j.keep, j.record.namespace, text=j.rendered)
            for j in recorded.trace.judgements
        ],
        namespaces=dict(recorded.trace.gate.namespaces),
    )
    now = RecallPipeline(Says(), RecallPolicy(**settings)).recall(
        Turn("What should I drink?"), [FACTS, PREFERENCES], search
    )

    assert sorted(injected(again(line, **settings))) == sorted(one.record_id for one in now.records)


def test_figures_by_hand():
    replayed = [again(OPEN, validator={"threshold": 0.5}), again(CLOSED, validator={"threshold": 0.5})]
    found = figures(replayed, {"t1": {"a": 2, "b": 2, "c": 0}})

    assert found["open"] == (1, 1)
    assert found["lookups"] == (2, 2)
    assert found["records"] == (3, 2)
    assert (found["added"], found["removed"]) == (0, 1)
    assert found["must_have_recall"] == (1.0, 0.5)
    block = "<user_context>\nThe user drinks tea.\nThe user has a house.\n</user_context>"
    assert found["tokens"][1] == -(-len(block) // 4)


def test_rows_hold_ids_and_no_text():
    (row,) = rows([again(OPEN, validator={"threshold": 0.5})])

    assert (row["injected"], row["removed"], row["gate"]) == (["a", "d"], ["b"], {"then": "open", "now": "open"})
    assert "user" not in json.dumps(row)


def test_the_command_prints_a_table_and_writes_json(tmp_path, capsys):
    path = write(tmp_path / "traces.jsonl", [OPEN, CLOSED])
    status = cli.main(["replay", str(path), "--validator", "0.5", "--to", str(tmp_path / "replay.json")])

    assert status == 0
    assert "2 recorded turns under another policy" in capsys.readouterr().out
    written = json.loads((tmp_path / "replay.json").read_text())
    assert written["figures"]["records"] == [3, 2]
    assert [one["turn"] for one in written["turns"]] == ["t1", "t2"]


def test_other_wordings_than_were_recorded_are_pointed_out(tmp_path, capsys):
    line = OPEN | {"questions": {"gate": "gate/plain/1", "router": None, "validator": "record/criteria/1"}}
    cli.main(["replay", str(write(tmp_path / "t.jsonl", [line])), "--to", str(tmp_path / "replay.json")])

    assert "gate: recorded with gate/plain/1" in capsys.readouterr().out


WRONG = [
    pytest.param(wrong, shown, id=str(shown))
    for wrong, shown in [(1.5, "1.5"), (-0.1, "-0.1"), (math.nan, "nan"), (True, "True"), ("0.5", "'0.5'")]
]


@pytest.mark.parametrize(("wrong", "shown"), WRONG)
@pytest.mark.parametrize("place", ["gate", "namespace", "record", "threshold"])
def test_a_recorded_probability_outside_0_and_1_is_named(tmp_path, capsys, place, wrong, shown):
    changed = {
        "gate": ({"gate": OPEN["gate"] | {"probability": wrong}}, "gate.probability"),
        "namespace": ({"gate": OPEN["gate"] | {"namespaces": {FACTS: wrong}}}, f"gate.namespaces.{FACTS}"),
        "record": ({"records": [record("a", 0.9, True), record("b", wrong, True)]}, "records.1.probability"),
        "threshold": ({"thresholds": OPEN["thresholds"] | {"router": wrong}}, "thresholds.router"),
    }
    change, field = changed[place]
    path = write(tmp_path / "traces.jsonl", [CLOSED, OPEN | change])

    assert cli.main(["replay", str(path), "--to", str(tmp_path / "replay.json")]) == 2
    said = capsys.readouterr().err
    assert f"{path}, line 2: {field}: must be a probability in 0..1, got {shown}" in said
    assert "Traceback" not in said
    assert not (tmp_path / "replay.json").exists()


@pytest.mark.parametrize("wrong", [math.nan, "0.4", True])
def test_a_score_that_is_no_number_is_named(tmp_path, capsys, wrong):
    path = write(tmp_path / "traces.jsonl", [OPEN | {"records": [record("a", 0.9, True) | {"score": wrong}]}])

    assert cli.main(["replay", str(path), "--to", str(tmp_path / "replay.json")]) == 2
    assert f"{path}, line 1: records.0.score: Input should be a" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--gate=1.4", "--select=hybrid --max-records=-1", "--policy=none.json"])
def test_a_wrong_policy_is_an_error_for_people(tmp_path, capsys, option):
    path = write(tmp_path / "traces.jsonl", [OPEN])

    assert cli.main(["replay", str(path), *option.split()]) == 2
    assert "Traceback" not in capsys.readouterr().err
