"""Seeding records through a real client."""

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from strands_gated_memory.core.types import Record
from strands_gated_memory.testing import SeedError, seed_records

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)


def get(client, core, record_id):
    return client.get_memory_record(memoryId=core.memory_id, memoryRecordId=record_id)["memoryRecord"]


def test_records_of_every_kind(core, client):
    """Record values, other objects and mappings; placeholders filled; plain metadata wrapped."""
    metadata = {"who": "bob", "rank": 2, "tags": ["a"], "seen": WHEN, "raw": {"stringValue": "x"}}
    ids = seed_records(
        client,
        core.memory_id,
        [
            Record("one", "/facts/{actorId}/", created_at=WHEN, metadata=metadata),
            SimpleNamespace(text="two", namespace="/facts/{actorId}/"),
            {"text": "three", "namespace": "/facts/ann/", "timestamp": WHEN, "memory_strategy_id": "s-1"},
        ],
        actor_id="bob",
    )
    one, two, three = (get(client, core, record_id) for record_id in ids)

    assert [row["content"]["text"] for row in (one, two, three)] == ["one", "two", "three"]
    assert [row["namespaces"] for row in (one, two, three)] == [["/facts/bob/"], ["/facts/bob/"], ["/facts/ann/"]]
    assert one["timestamp"] == three["timestamp"] == WHEN
    assert three["memoryStrategyId"] == "s-1"
    assert one["metadata"] == {
        "who": {"stringValue": "bob"},
        "rank": {"numberValue": 2.0},
        "tags": {"stringListValue": ["a"]},
        "seen": {"dateTimeValue": WHEN},
        "raw": {"stringValue": "x"},
    }


def test_many_records_go_in_batches_of_100(core, client):
    """250 records are three requests, and the ids are in order."""
    ids = seed_records(client, core.memory_id, ({"text": str(n), "namespace": "/n/"} for n in range(250)))

    assert [len(call.parameters["records"]) for call in core.calls.of("BatchCreateMemoryRecords")] == [100, 100, 50]
    assert len(set(ids)) == 250
    assert get(client, core, ids[249])["content"]["text"] == "249"


def test_no_records_are_no_request(core, client):
    """An empty seed does nothing."""
    assert seed_records(client, core.memory_id, []) == []
    assert len(core.calls) == 0


def test_refused_records_are_named(core, client):
    """The error says which failed and why, and what was stored all the same."""
    records = [{"text": "a", "namespace": "/n/"}, {"text": "b", "namespace": "/n/*/"}]

    with pytest.raises(SeedError, match=r"record 1: 400 .*wildcard") as caught:
        seed_records(client, core.memory_id, records)

    assert [row["index"] for row in caught.value.failed] == [1]
    assert len(caught.value.created) == 1


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"text": "a", "namespace": "/facts/{actorId}/"}, "still holds {actorId}"),
        ({"text": "a", "namespace": "/s/{actorId}/{sessionId}/"}, "{sessionId}"),
        ({"namespace": "/n/"}, "record 1 needs a text"),
    ],
)
def test_a_record_that_cannot_be_sent_stops_the_seed_before_it_starts(core, client, record, words):
    """Nothing is sent when one record is incomplete."""
    with pytest.raises(ValueError, match=words):
        seed_records(client, core.memory_id, [{"text": "ok", "namespace": "/n/"}, record])

    assert len(core.calls) == 0
