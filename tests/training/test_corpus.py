"""The corpus holds what its README says, and the checker finds what it must not hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from harness.training.agreement import SECOND, agreement, read_second
from harness.training.check_corpus import check, check_lines
from harness.training.personas import read_personas

CORPUS = Path(__file__).parents[2] / "harness" / "training" / "corpus"


@pytest.fixture(scope="module")
def shipped():
    return check(CORPUS)


def test_the_corpus_has_no_problems(shipped):
    assert shipped[1] == []


def test_the_corpus_is_as_large_as_promised(shipped):
    personas = {row[0]: int(row[1]) for row in shipped[0]}

    assert sum(personas.values()) >= 60
    assert personas["test"] >= 10


def test_the_stores_and_messages_have_no_problems():
    rows, problems = check_lines(CORPUS)

    assert problems == []
    assert {(row[0], row[1]) for row in rows} >= {("stores", "train"), ("messages", "train")}


def _message(**fields):
    return {"u": "What did we say about the roof?", "p": [], "m": 1, "ns": ["summaries"], "k": "x", "l": "en", **fields}


def _store(**fields):
    records = [{"id": f"r{n}", "ns": "facts", "strategy": "SEMANTIC", "text": f"Fact {n}."} for n in range(15)]
    queries = [{"q": f"Question {n}?", "p": [], "l": "en", "g": {"r1": 2}} for n in range(8)]
    return {"id": "s", "style": "x", "records": records, "queries": queries, **fields}


@pytest.mark.parametrize(
    ("kind", "lines", "said"),
    [
        ("messages", [_message(ns=[])], "namespaces are given exactly"),
        ("messages", [_message(p=["only the user's"])], "pairs of user and assistant"),
        ("messages", [_message(pair="x1"), _message(u="What is a roof?", m=0, ns=[])], "a pair is one 0 and one 1"),
        ("stores", [_store(queries=[{"q": "Q?", "p": [], "l": "en", "g": {"r99": 2}}] * 8)], "unknown records r99"),
        ("stores", [_store(records=_store()["records"] + _store()["records"][:1])], "used twice: r0"),
    ],
)
def test_a_damaged_line_is_named_with_its_fault(tmp_path, kind, lines, said):
    folder = tmp_path / kind / "train"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")

    problems = check_lines(tmp_path)[1]

    assert any("a.jsonl" in problem and said in problem for problem in problems), problems


@pytest.fixture
def small(tmp_path):
    """One persona in train and another in test, to be damaged."""
    paths = {}
    for split in ("train", "test"):
        source = min((CORPUS / split).glob("*.json"))
        (tmp_path / split).mkdir()
        paths[split] = Path(shutil.copy(source, tmp_path / split))
    return tmp_path, paths


def _change(path, change):
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")


def _structural(problems):
    return [problem for problem in problems if "no turn of" not in problem]


def test_an_undamaged_pair_passes(small):
    assert _structural(check(small[0])[1]) == []


def _needed_turn(data):
    return next(turn for turn in data["turns"] if 2 in turn["labels"].values())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: _needed_turn(d)["labels"].update(r99=2), "r99"),
        (
            lambda d: _needed_turn(d)["labels"].update({next(iter(_needed_turn(d)["labels"])): 3}),
            "Input should be 1 or 2",
        ),
        (lambda d: _needed_turn(d).update(needs_memory=False), "needs_memory False"),
        (lambda d: _needed_turn(d).update(namespaces=[]), "namespaces are given exactly"),
        (lambda d: _needed_turn(d).update(previous=["one text alone"]), "pairs of user and assistant"),
        (lambda d: d["records"].append(d["records"][0]), "used twice"),
        (lambda d: d["records"][0].update(namespace="nowhere"), "unknown namespaces"),
        (lambda d: d["turns"].__delitem__(slice(20, None)), "at least 30 items"),
        (lambda d: [t.update(previous=[]) for t in d["turns"]], "0% of the turns have earlier turns"),
    ],
)
def test_a_damaged_persona_is_named_with_its_fault(small, change, said):
    folder, paths = small
    _change(paths["train"], change)

    problems = check(folder)[1]

    assert any(paths["train"].name in problem and said in problem for problem in problems), problems


def test_a_text_that_leaks_into_the_held_out_split_is_found(small):
    folder, paths = small
    stolen = json.loads(paths["test"].read_text(encoding="utf-8"))
    text = max((turn["text"] for turn in stolen["turns"]), key=len)
    _change(paths["train"], lambda data: data["turns"][0].update(text=text.replace(",", "") + " please"))

    problems = check(folder)[1]

    assert any("near-duplicates" in problem for problem in problems)


def test_a_second_reader_who_agrees_fully_has_kappa_one_and_one_who_does_not_has_less():
    personas = read_personas(CORPUS, test=True)
    second = read_second(SECOND)
    asks = {persona.key.rpartition("/")[2]: {turn.key: turn for turn in persona.turns} for persona in personas}
    same = {
        key: {
            name: label.model_copy(
                update={"needs_memory": asks[key][name].needed, "labels": dict(asks[key][name].grades)}
            )
            for name, label in turns.items()
        }
        for key, turns in second.items()
    }

    full, real = agreement(personas, same), agreement(personas, second)

    assert full["needs_memory"] == full["grade"][1] == full["grade"][2] == 1.0
    assert real["turns"] >= 0.1 * 0.95 * sum(
        len(persona.turns) for persona in personas if persona.key.rpartition("/")[2] in second
    )
    assert 0.75 <= real["grade"][2] < 1.0
    assert real["needs_memory"] >= 0.75
