"""Writing, reading and listing long-term records over real boto3."""

from datetime import datetime, timezone

import pytest

NOW = datetime(2026, 5, 6, 7, 8, 9, tzinfo=timezone.utc)
MISSING = "mem-" + "0" * 36


def entry(number=0, text="Likes tea", namespace="/facts/bob/", **more):
    return {
        "requestIdentifier": f"r{number}",
        "namespaces": [namespace],
        "content": {"text": text},
        "timestamp": NOW,
    } | more


def create(client, core, *entries, **more):
    return client.batch_create_memory_records(memoryId=core.memory_id, records=list(entries), **more)


def create_one(client, core, **more):
    (row,) = create(client, core, entry(**more))["successfulRecords"]
    return row["memoryRecordId"]


def listed(client, core, **more):
    scope = {} if "namespace" in more else {"namespacePath": "/"}
    return client.list_memory_records(memoryId=core.memory_id, **scope, **more)


def texts(response):
    return [row["content"]["text"] for row in response["memoryRecordSummaries"]]


def get(client, core, record_id):
    return client.get_memory_record(memoryId=core.memory_id, memoryRecordId=record_id)["memoryRecord"]


def test_a_record_comes_back_as_it_was_written(core, client):
    """Text, namespace, strategy, source time and every kind of metadata survive; there is no score."""
    metadata = {
        "who": {"stringValue": "bob"},
        "tags": {"stringListValue": ["a", "b"]},
        "rank": {"numberValue": 1.5},
        "seen": {"dateTimeValue": NOW},
    }
    before = datetime.now(timezone.utc)

    record_id = create_one(client, core, text='{"fact": "é"}\n', memoryStrategyId="sem-1", metadata=metadata)
    record = get(client, core, record_id)

    assert 40 <= len(record_id) <= 50
    assert record["content"] == {"text": '{"fact": "é"}\n'}
    assert record["namespaces"] == ["/facts/bob/"]
    assert record["memoryStrategyId"] == "sem-1"
    assert record["timestamp"] == NOW
    assert record["metadata"] == metadata
    assert (record["createdAt"] - before).total_seconds() > -1
    assert "score" not in record
    assert "expiresAt" not in record


def test_a_record_without_strategy_still_reports_one(core, client):
    """memoryStrategyId is a required member of the answer."""
    assert get(client, core, create_one(client, core))["memoryStrategyId"] == "self-managed"


def test_the_records_of_a_batch_are_of_one_moment(core, client):
    """None is newer than another, so that what prefers the newer one has no reason to."""
    create(client, core, *(entry(number) for number in range(20)))

    assert len({row["createdAt"] for row in listed(client, core)["memoryRecordSummaries"]}) == 1


def test_a_client_token_stores_a_batch_once(core, client):
    """The same token answers with the same ids; with other records it is refused."""
    first = create(client, core, entry(), clientToken="t")
    again = create(client, core, entry(), clientToken="t")

    assert first["successfulRecords"] == again["successfulRecords"]
    assert len(texts(listed(client, core))) == 1
    with pytest.raises(client.exceptions.ValidationException) as caught:
        create(client, core, entry(text="other"), clientToken="t")
    assert caught.value.response["reason"] == "IdempotentParameterMismatchException"


def test_one_bad_record_fails_alone(core, client):
    """A repeated identifier and a wildcard namespace are reported per record; the others are stored."""
    answer = create(client, core, entry(0), entry(1, namespace="/facts/*/"), entry(0), entry(2))

    assert [row["requestIdentifier"] for row in answer["successfulRecords"]] == ["r0", "r2"]
    assert {row["status"] for row in answer["successfulRecords"]} == {"SUCCEEDED"}
    assert [(row["requestIdentifier"], row["status"], row["errorCode"]) for row in answer["failedRecords"]] == [
        ("r1", "FAILED", 400),
        ("r0", "FAILED", 400),
    ]


@pytest.mark.parametrize(
    ("field", "records"),
    [
        ("records", [entry(number) for number in range(101)]),
        ("records.1.member.content.text", [entry(text="x" * 16_001)]),
        ("records.1.member.namespaces", [entry(namespaces=["/a/", "/b/"])]),
        ("records.1.member.namespaces.1.member", [entry(namespace="/facts/{actorId}/")]),
        ("records.1.member.namespaces.1.member", [entry(namespace="/" * 1025)]),
        ("records.2.member.requestIdentifier", [entry(0), entry(requestIdentifier="a b")]),
        ("records.1.member.memoryStrategyId", [entry(memoryStrategyId="s" * 101)]),
        ("records.1.member.metadata", [entry(metadata={str(n): {"numberValue": 1} for n in range(21)})]),
        ("records.1.member.metadata.k.value.stringValue", [entry(metadata={"k": {"stringValue": "x" * 257}})]),
        ("records.1.member.metadata.k.value.stringListValue", [entry(metadata={"k": {"stringListValue": ["x"] * 6}})]),
        (
            "records.1.member.metadata.x-amz-agentcore-memory-createdAt",
            [entry(metadata={"x-amz-agentcore-memory-createdAt": {"numberValue": 1}})],
        ),
    ],
)
def test_create_limits(core, client, field, records):
    """Breaking a limit of the service model refuses the whole batch and names the field."""
    with pytest.raises(client.exceptions.ValidationException) as caught:
        create(client, core, *records)

    assert caught.value.response["reason"] == "FieldValidationFailed"
    assert [row["name"] for row in caught.value.response["fieldList"]] == [field]
    assert texts(listed(client, core)) == []


def test_the_limits_themselves_are_allowed(core, client):
    """100 records, and 16,000 characters."""
    answer = create(client, core, *(entry(number, text="x" * 16_000) for number in range(100)))

    assert len(answer["successfulRecords"]) == 100


def test_listing_pages(core, client):
    """20 by default; a paginator sees each record once, in the order of writing."""
    create(client, core, *(entry(number, text=str(number)) for number in range(45)))

    first = listed(client, core)
    paginator = client.get_paginator("list_memory_records")
    pages = list(paginator.paginate(memoryId=core.memory_id, namespacePath="/", PaginationConfig={"PageSize": 30}))
    assert len(first["memoryRecordSummaries"]) == 20
    assert [len(page["memoryRecordSummaries"]) for page in pages] == [30, 15]
    assert [text for page in pages for text in texts(page)] == [str(number) for number in range(45)]
    assert "score" not in first["memoryRecordSummaries"][0]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({"namespacePath": "/facts/bob/"}, ["bob", "bob deep"]),
        ({"namespacePath": "/facts/bob"}, ["bob", "bob deep"]),
        ({"namespacePath": "/facts/"}, ["bob", "bobby", "bob deep"]),
        ({"namespacePath": "/"}, ["bob", "bobby", "bob deep"]),
        ({"namespacePath": "/fac"}, []),
        ({"namespace": "/facts/bob/"}, ["bob"]),
        ({"namespace": "/facts/bob"}, []),
        ({"namespace": "/facts/"}, []),
    ],
    ids=lambda value: next(iter(value.items())) if isinstance(value, dict) else None,
)
def test_scopes(core, client, scope, expected):
    """A path is a subtree by whole segments, so Bob never gets Bobby's records; a namespace is exact."""
    create(
        client,
        core,
        entry(0, "bob", "/facts/bob/"),
        entry(1, "bobby", "/facts/bobby/"),
        entry(2, "bob deep", "/facts/bob/2026/"),
    )

    assert texts(client.list_memory_records(memoryId=core.memory_id, **scope)) == expected


@pytest.mark.parametrize("scope", [{}, {"namespace": "/a/", "namespacePath": "/a/"}], ids=["neither", "both"])
def test_exactly_one_scope(core, client, scope):
    """namespace or namespacePath, not none and not both."""
    with pytest.raises(client.exceptions.ValidationException) as caught:
        client.list_memory_records(memoryId=core.memory_id, **scope)

    assert [row["name"] for row in caught.value.response["fieldList"]] == ["namespace", "namespacePath"]


def test_the_strategy_filter(core, client):
    """Only records of that strategy."""
    create(client, core, entry(0, "a", memoryStrategyId="s-a"), entry(1, "b", memoryStrategyId="s-b"))

    assert texts(listed(client, core, memoryStrategyId="s-b")) == ["b"]


@pytest.mark.parametrize(
    ("key", "operator", "right", "expected"),
    [
        ("who", "EQUALS_TO", {"stringValue": "bob"}, ["1"]),
        ("who", "EXISTS", None, ["1", "2"]),
        ("who", "NOT_EXISTS", None, ["3"]),
        ("tags", "CONTAINS", {"stringValue": "b"}, ["1"]),
        ("rank", "GREATER_THAN", {"numberValue": 1}, ["2"]),
        ("rank", "GREATER_THAN_OR_EQUALS", {"numberValue": 1}, ["1", "2"]),
        ("rank", "LESS_THAN", {"numberValue": 2}, ["1"]),
        ("rank", "LESS_THAN_OR_EQUALS", {"numberValue": 2}, ["1", "2"]),
        ("seen", "BEFORE", {"dateTimeValue": datetime(2027, 1, 1, tzinfo=timezone.utc)}, ["1"]),
        ("seen", "AFTER", {"dateTimeValue": datetime(2027, 1, 1, tzinfo=timezone.utc)}, ["2"]),
        ("who", "GREATER_THAN", {"numberValue": 0}, []),
        ("rank", "EQUALS_TO", {"stringValue": "1"}, []),
    ],
)
def test_metadata_filters(core, client, *, key, operator, right, expected):
    """Each operator on the kind of value it is for; another kind does not match."""
    first = {
        "who": {"stringValue": "bob"},
        "tags": {"stringListValue": ["a", "b"]},
        "rank": {"numberValue": 1},
        "seen": {"dateTimeValue": datetime(2026, 1, 1, tzinfo=timezone.utc)},
    }
    second = {
        "who": {"stringValue": "ann"},
        "rank": {"numberValue": 2},
        "seen": {"dateTimeValue": datetime(2028, 1, 1, tzinfo=timezone.utc)},
    }
    create(client, core, entry(1, "1", metadata=first), entry(2, "2", metadata=second), entry(3, "3"))
    expression = {"left": {"metadataKey": key}, "operator": operator}
    if right:
        expression["right"] = {"metadataValue": right}

    assert texts(listed(client, core, metadataFilters=[expression])) == expected


def test_metadata_filters_are_anded_and_limited(core, client):
    """All must hold; at most five; a comparison needs a right side."""
    exists = {"left": {"metadataKey": "a"}, "operator": "EXISTS"}
    other = {"left": {"metadataKey": "b"}, "operator": "EXISTS"}
    create(client, core, entry(metadata={"a": {"numberValue": 1}}))

    assert texts(listed(client, core, metadataFilters=[exists])) == ["Likes tea"]
    assert texts(listed(client, core, metadataFilters=[exists, other])) == []
    for bad in ([exists] * 6, [{"left": {"metadataKey": "a"}, "operator": "EQUALS_TO"}]):
        with pytest.raises(client.exceptions.ValidationException):
            listed(client, core, metadataFilters=bad)


def test_updating(core, client):
    """Members that are given change, others stay; unknown ids fail alone."""
    record_id = create_one(client, core, metadata={"a": {"numberValue": 1}}, memoryStrategyId="s-a")
    later = datetime(2026, 9, 9, tzinfo=timezone.utc)
    changes = [
        {"memoryRecordId": record_id, "timestamp": later, "content": {"text": "new"}},
        {"memoryRecordId": MISSING, "timestamp": later},
        {"memoryRecordId": record_id, "timestamp": later, "namespaces": ["/facts/*/"]},
    ]

    answer = client.batch_update_memory_records(memoryId=core.memory_id, records=changes)
    record = get(client, core, record_id)

    assert [row["memoryRecordId"] for row in answer["successfulRecords"]] == [record_id]
    assert [row["errorCode"] for row in answer["failedRecords"]] == [404, 400]
    assert (record["content"]["text"], record["timestamp"]) == ("new", later)
    assert (record["namespaces"], record["memoryStrategyId"]) == (["/facts/bob/"], "s-a")

    client.batch_update_memory_records(
        memoryId=core.memory_id,
        records=[
            {
                "memoryRecordId": record_id,
                "timestamp": later,
                "namespaces": ["/facts/ann/"],
                "memoryStrategyId": "s-b",
                "metadata": {"b": {"numberValue": 2}},
            }
        ],
    )
    moved = get(client, core, record_id)
    assert (moved["namespaces"], moved["memoryStrategyId"]) == (["/facts/ann/"], "s-b")
    assert moved["metadata"] == {"b": {"numberValue": 2}}
    assert moved["content"]["text"] == "new"


def test_expiry_is_reported(core, client):
    """expiresAt follows the batch's recordExpirySpecification; REMOVE takes it away; under 31 days is refused."""
    answer = create(client, core, entry(), recordExpirySpecification={"recordExpiryDurationDays": 31})
    record_id = answer["successfulRecords"][0]["memoryRecordId"]
    record = get(client, core, record_id)
    client.batch_update_memory_records(
        memoryId=core.memory_id,
        records=[{"memoryRecordId": record_id, "timestamp": NOW}],
        recordExpirySpecification={"action": "REMOVE"},
    )

    assert (record["expiresAt"] - record["createdAt"]).days == 31
    assert "expiresAt" not in get(client, core, record_id)


def test_deleting(core, client):
    """One by one or in a batch; unknown ids are errors, alone or per record."""
    one, two = create_one(client, core), create_one(client, core)

    deleted = client.delete_memory_record(memoryId=core.memory_id, memoryRecordId=one, namespace="/facts/bob/")
    answer = client.batch_delete_memory_records(
        memoryId=core.memory_id, records=[{"memoryRecordId": one}, {"memoryRecordId": two}]
    )

    assert deleted["memoryRecordId"] == one
    assert [row["memoryRecordId"] for row in answer["successfulRecords"]] == [two]
    assert [(row["memoryRecordId"], row["errorCode"]) for row in answer["failedRecords"]] == [(one, 404)]
    for call in (client.get_memory_record, client.delete_memory_record):
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            call(memoryId=core.memory_id, memoryRecordId=one)


@pytest.mark.parametrize("record_id", ["mem-" + "0" * 47, "rec-" + "0" * 36], ids=["too-long", "no-prefix"])
def test_record_id_limits(core, client, record_id):
    """40 to 50 characters beginning with mem-."""
    with pytest.raises(client.exceptions.ValidationException):
        client.get_memory_record(memoryId=core.memory_id, memoryRecordId=record_id)


def test_batches_are_limited_to_100(core, client):
    """Update and delete too."""
    ids = [{"memoryRecordId": MISSING}] * 101

    with pytest.raises(client.exceptions.ValidationException):
        client.batch_delete_memory_records(memoryId=core.memory_id, records=ids)
    with pytest.raises(client.exceptions.ValidationException):
        client.batch_update_memory_records(memoryId=core.memory_id, records=[row | {"timestamp": NOW} for row in ids])


def test_memories_do_not_share_records(core, client):
    """A record is found in its own memory alone."""
    create_one(client, core)

    other = client.list_memory_records(memoryId="other-abcdefghij", namespacePath="/")
    assert other["memoryRecordSummaries"] == []
