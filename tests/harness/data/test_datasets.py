"""Data files: the shipped ones, and errors that name file, item and field."""

from __future__ import annotations

import json

import pytest

from harness.data.datasets import load, shipped
from harness.errors import HarnessError


def test_the_shipped_files_hold_what_their_authors_counted():
    persona, gate, relevance = (shipped(name) for name in ("persona", "gate_dev", "relevance_dev"))

    assert [len(persona.gate), len(persona.queries), len(persona.seed_conversations)] == [20, 4, 5]
    assert sum(item.needs_memory for item in persona.gate) == 10
    assert [len(persona.shape.pairs), len(persona.shape.queries)] == [8, 4]
    assert [len(persona.conversation.records), len(persona.conversation.turns)] == [19, 8]
    assert [len(gate.gate), len(gate.router)] == [62, 30]
    assert [len(relevance.queries), sum(len(query.records) for query in relevance.queries)] == [16, 240]
    assert [query.id for query in relevance.queries if query.needs_nothing] == ["b-q8"]


def test_shape_pairs_know_the_queries_that_they_bear_on():
    shape = shipped("persona").shape

    assert [pair.relevant_to for pair in shape.pairs] == [(0,), (0,), (1,), (1,), (2,), (2,), (3,), ()]


def test_a_record_without_a_label_has_no_bearing(tmp_path):
    persona = {
        "id": "p",
        "records": [{"id": "r1", "text": "Likes tea."}, {"id": "r2", "text": "Has a dog."}],
        "queries": [{"id": "q", "query": "A drink?", "labels": {"r1": 2}}],
    }
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"personas": [persona]}))

    assert [record.grade for record in load(path).queries[0].records] == [2, 0]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([{"id": "g1", "utterance": "Hi", "needs_memory": "no"}], r"items\[0\] \(id 'g1'\)\.needs_memory"),
        ([{"id": "g1", "needs_memory": True}], r"items\[0\] \(id 'g1'\)\.utterance: Field required"),
        ([], "at least 1 item"),
        ({"personas": [{"id": "a", "records": [], "queries": [{"id": "q", "query": "?", "labels": {"x": 2}}]}]},
         r"personas\[0\] \(id 'a'\): query 'q': labels names the record 'x'"),
        ({"personas": [{"id": "a", "records": [{"id": "r", "text": "t"}],
                        "queries": [{"id": "q", "query": "?", "labels": {"r": 3}}]}]},
         r"queries\[0\] \(id 'q'\)\.labels\.r: Input should be 0, 1 or 2, got 3"),
        ([{"id": "g", "utterance": "Hi", "needs_memory": True, "records": [{"id": "r", "text": "t", "grade": True}]}],
         r"items\[0\] \(id 'g'\)\.records\[0\] \(id 'r'\)\.grade: must be 0, 1 or 2, got True"),
        ([{"id": "g", "utterance": "Hi", "needs_memory": True, "records": [{"id": "r", "text": "t", "grade": -1}]}],
         r"grade: Input should be 0, 1 or 2, got -1"),
        ({"records": [], "validator": [{"id": "q1", "query": "?", "records": [{"id": "zz", "relevant": True}]}]},
         "validator query 'q1' names the record 'zz'"),
        ([{"id": "g", "utterance": one, "needs_memory": True} for one in ("Hi", "Ho")],
         "item 'g': more than one has this id"),
        ({"personas": [{"id": "a", "records": [{"id": "r", "text": "t"}] * 2, "queries": []}]},
         r"personas\[0\] \(id 'a'\): record 'r': more than one has this id"),
        ({"personas": [{"id": "a", "records": [], "queries": [{"id": "q", "query": "?", "labels": {}}]}]},
         r"personas\[0\] \(id 'a'\): records: there are none"),
        ({"records": [{"id": "r", "text": "t"}] * 2}, "record 'r': more than one has this id"),
        ({"validator": [{"id": "q", "query": "?", "records": []}]}, r"validator\[0\] \(id 'q'\)\.records: "),
        ({"shape_probe": {"pairs": [], "queries": ["?"]}}, r"shape_probe\.pairs: "),
        ({"shape_probe": {"pairs": [{"prose": "t", "json": "{}"}], "queries": ["?"],
                          "relevant_pairs_per_query": {"q1": [1]}}}, "'q1' names the pair 1; there are 1"),
        ({"shape_probe": {"pairs": [{"prose": "t", "json": "{}"}], "queries": ["?", "!"],
                          "relevant_pairs_per_query": {"q1": [0]}}}, "has 1 entries for 2 queries"),
        ({"something": 1}, "not a form that is known"),
        (3, "not a form that is known"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_told_by_file_item_and_field(tmp_path, value, said):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(value))

    with pytest.raises(HarnessError, match=rf"mine\.json: .*{said}"):
        load(path)


def test_a_file_that_is_missing_or_not_json_is_named(tmp_path):
    with pytest.raises(HarnessError, match=r"absent\.json: cannot be read"):
        load(tmp_path / "absent.json")
    path = tmp_path / "bad.json"
    path.write_text('[\n{"utterance": }]')
    with pytest.raises(HarnessError, match=r"bad\.json: not JSON: .* line 2, column 15"):
        load(path)
