"""Events, sessions and actors over real boto3."""

from datetime import datetime, timezone

import boto3
import pytest
from botocore.config import Config

SECOND = 1_700_000_000


def write(client, core, text="hi", *, at=SECOND, actor="bob", session="s1", **more):
    payload = [{"conversational": {"role": "USER", "content": {"text": text}}}]
    request = {"actorId": actor, "sessionId": session, "eventTimestamp": at, "payload": payload} | more
    return client.create_event(memoryId=core.memory_id, **request)["event"]


def listed(client, core, *, session="s1", **more):
    request = {"memoryId": core.memory_id, "actorId": "bob", "sessionId": session, "includePayloads": True} | more
    return client.list_events(**request)


def texts(response):
    return [event["payload"][0]["conversational"]["content"]["text"] for event in response["events"]]


def test_an_event_comes_back_as_it_was_written(core, client):
    """Payloads of all three kinds, metadata and time survive."""
    payload = [
        {"conversational": {"role": "ASSISTANT", "content": {"text": "a&Action=b ☕"}}},
        {"blob": {"nested": [1, None, {"x": True}]}},
        {"json": {"content": {"id": 7}}},
    ]
    metadata = {"kind": {"stringValue": "note"}}
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)

    created = write(client, core, at=at, payload=payload, metadata=metadata)
    got = client.get_event(memoryId=core.memory_id, actorId="bob", sessionId="s1", eventId=created["eventId"])["event"]

    assert got == created
    assert (got["payload"], got["metadata"], got["eventTimestamp"]) == (payload, metadata, at)
    assert (got["memoryId"], got["actorId"], got["sessionId"]) == (core.memory_id, "bob", "s1")
    assert "branch" not in got


def test_events_are_listed_newest_first_by_their_own_time(core, client):
    """The order is by eventTimestamp, and by writing within the same second."""
    for text, at in (("b", SECOND + 2), ("a", SECOND + 1), ("c1", SECOND + 3), ("c2", SECOND + 3)):
        write(client, core, text, at=at)

    assert texts(listed(client, core)) == ["c2", "c1", "b", "a"]


def test_payloads_come_only_when_asked_for(core, client):
    """includePayloads decides."""
    write(client, core)

    (event,) = client.list_events(memoryId=core.memory_id, actorId="bob", sessionId="s1")["events"]
    assert "payload" not in event


def test_pages_follow_on(core, client):
    """20 by default, 100 at most, and every event once over the pages."""
    for number in range(130):
        write(client, core, str(number), at=SECOND + number)

    assert len(listed(client, core)["events"]) == 20
    first = listed(client, core, maxResults=100)
    second = listed(client, core, maxResults=100, nextToken=first["nextToken"])
    assert texts(first) + texts(second) == [str(number) for number in reversed(range(130))]
    assert "nextToken" not in second


def test_an_event_written_between_pages_repeats_nothing(core, client):
    """The next page goes on after the last event shown."""
    for number in range(4):
        write(client, core, str(number), at=SECOND + number)
    first = listed(client, core, maxResults=2)
    write(client, core, "late", at=SECOND + 99)

    assert texts(listed(client, core, maxResults=2, nextToken=first["nextToken"])) == ["1", "0"]


def test_a_foreign_token_is_refused(core, client):
    """A token belongs to the request that gave it."""
    for number in range(3):
        write(client, core, str(number), at=SECOND + number)
    token = listed(client, core, maxResults=1)["nextToken"]

    for bad in ({"nextToken": "nonsense"}, {"nextToken": token, "includePayloads": False}):
        with pytest.raises(client.exceptions.InvalidInputException):
            listed(client, core, maxResults=1, **bad)


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([("kind", "EQUALS_TO", "a")], ["1"]),
        ([("kind", "EXISTS", None)], ["2", "1"]),
        ([("kind", "NOT_EXISTS", None)], ["3"]),
        ([("kind", "EXISTS", None), ("who", "EQUALS_TO", "x")], ["2"]),
        ([("kind", "EQUALS_TO", "zzz")], []),
    ],
    ids=["equals", "exists", "not-exists", "all-must-hold", "none"],
)
def test_metadata_filters(core, client, expressions, expected):
    """Every expression must hold."""
    write(client, core, "1", at=SECOND + 1, metadata={"kind": {"stringValue": "a"}})
    write(client, core, "2", at=SECOND + 2, metadata={"kind": {"stringValue": "b"}, "who": {"stringValue": "x"}})
    write(client, core, "3", at=SECOND + 3)
    filters = [
        {"left": {"metadataKey": key}, "operator": operator}
        | ({"right": {"metadataValue": {"stringValue": value}}} if value else {})
        for key, operator, value in expressions
    ]

    assert texts(listed(client, core, filter={"eventMetadata": filters})) == expected


def test_equals_needs_something_to_compare_with(core, client):
    """EQUALS_TO without a right side is refused."""
    with pytest.raises(client.exceptions.ValidationException):
        listed(client, core, filter={"eventMetadata": [{"left": {"metadataKey": "k"}, "operator": "EQUALS_TO"}]})


def test_branches(core, client):
    """A branch filter selects its events, and its parents' up to where it starts."""
    write(client, core, "m1", at=SECOND + 1)
    root = write(client, core, "m2", at=SECOND + 2)
    write(client, core, "m3", at=SECOND + 3)
    fork = write(client, core, "b1", at=SECOND + 4, branch={"name": "b", "rootEventId": root["eventId"]})
    later = write(client, core, "b2", at=SECOND + 5, branch={"name": "b"})
    write(client, core, "c1", at=SECOND + 6, branch={"name": "c", "rootEventId": fork["eventId"]})

    def of(name, **more):
        return texts(listed(client, core, filter={"branch": {"name": name, **more}}))

    assert texts(listed(client, core)) == ["c1", "b2", "b1", "m3", "m2", "m1"]
    assert of("main") == ["m3", "m2", "m1"]
    assert of("b") == ["b2", "b1"]
    assert of("b", includeParentBranches=True) == ["b2", "b1", "m2", "m1"]
    assert of("c", includeParentBranches=True) == ["c1", "b1", "m2", "m1"]
    assert of("none") == []
    assert later["branch"] == {"name": "b", "rootEventId": root["eventId"]}


def test_an_unknown_root_event_is_not_found(core, client):
    """A branch starts from an event of its session."""
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        write(client, core, branch={"name": "b", "rootEventId": "0000#ab"})


def test_a_client_token_makes_one_event(core, client):
    """The same token with the same request answers again and stores once; with another request it is refused."""
    first = write(client, core, clientToken="t1")
    again = write(client, core, clientToken="t1")

    assert first == again
    assert len(listed(client, core)["events"]) == 1
    with pytest.raises(client.exceptions.ValidationException) as caught:
        write(client, core, "other", clientToken="t1")
    assert caught.value.response["reason"] == "IdempotentParameterMismatchException"


def test_without_a_session_id_one_is_made(core, client):
    """sessionId is optional."""
    created = client.create_event(
        memoryId=core.memory_id, actorId="bob", eventTimestamp=SECOND, payload=[{"blob": "x"}]
    )["event"]

    assert len(listed(client, core, session=created["sessionId"])["events"]) == 1


def test_deleting_an_event(core, client):
    """A deleted event is gone, and cannot be deleted twice."""
    event = write(client, core)
    ids = {"memoryId": core.memory_id, "actorId": "bob", "sessionId": "s1", "eventId": event["eventId"]}

    assert client.delete_event(**ids)["eventId"] == event["eventId"]
    assert listed(client, core)["events"] == []
    for call in (client.delete_event, client.get_event):
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            call(**ids)


def test_sessions_and_actors(core, client):
    """Sessions are listed newest first, actors by id; emptied sessions only without the filter."""
    for session in ("s1", "s2", "s3"):
        emptied = write(client, core, session=session)
    write(client, core, actor="org/ann:7", session="t1")
    client.delete_event(memoryId=core.memory_id, actorId="bob", sessionId="s3", eventId=emptied["eventId"])

    sessions = client.list_sessions(memoryId=core.memory_id, actorId="bob")["sessionSummaries"]
    full = client.list_sessions(memoryId=core.memory_id, actorId="bob", filter={"eventFilter": "HAS_EVENTS"})
    actors = [page["actorSummaries"] for page in client.get_paginator("list_actors").paginate(memoryId=core.memory_id)]

    assert [row["sessionId"] for row in sessions] == ["s3", "s2", "s1"]
    assert [row["sessionId"] for row in full["sessionSummaries"]] == ["s2", "s1"]
    assert actors == [[{"actorId": "bob"}, {"actorId": "org/ann:7"}]]


def test_session_pages(core, client):
    """Sessions page as events do."""
    for number in range(5):
        write(client, core, session=f"s{number}")

    pages = client.get_paginator("list_sessions").paginate(
        memoryId=core.memory_id, actorId="bob", PaginationConfig={"PageSize": 2}
    )
    assert [[row["sessionId"] for row in page["sessionSummaries"]] for page in pages] == [
        ["s4", "s3"],
        ["s2", "s1"],
        ["s0"],
    ]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("actorId", {"actor": "-bad"}),
        ("sessionId", {"session": "s" * 101}),
        ("payload.1.member.conversational.content.text", {"text": "x" * 100_001}),
        ("payload", {"payload": [{"blob": "x"}] * 101}),
        ("metadata.k.value.stringValue", {"metadata": {"k": {"stringValue": "x" * 257}}}),
        ("metadata.k.value.stringValue", {"metadata": {"k": {"stringValue": "{}"}}}),
        ("metadata", {"metadata": {str(number): {"stringValue": "x"} for number in range(16)}}),
        ("extractionMode", {"extractionMode": "NEVER"}),
    ],
)
def test_event_limits(core, client, field, change):
    """What passes botocore and breaks a limit is refused, with the field named and no text quoted."""
    with pytest.raises(client.exceptions.ValidationException) as caught:
        write(client, core, **change)

    assert [row["name"] for row in caught.value.response["fieldList"]] == [field]
    assert "xxx" not in str(caught.value)


@pytest.mark.parametrize("change", [{"payload": [{}]}, {"actorId": None}, {"metadata": {"": {"stringValue": "x"}}}])
def test_what_a_careless_client_sends_is_refused(core, change):
    """A client that checks nothing itself meets the service's check of unions, required members and minimums."""
    careless = boto3.client("bedrock-agentcore", config=Config(parameter_validation=False))
    request = {"actorId": "bob", "sessionId": "s1", "eventTimestamp": "2026-01-02T03:04:05Z", "payload": [{"blob": 1}]}
    careless.create_event(memoryId=core.memory_id, **request)

    with pytest.raises(careless.exceptions.ValidationException) as caught:
        careless.create_event(memoryId=core.memory_id, **request | change)

    assert caught.value.response["reason"] == "CannotParse"
    assert next(iter(change)) in str(caught.value)


@pytest.mark.parametrize("more", [{"maxResults": 101}, {"filter": {"branch": {"name": "-"}}}])
def test_list_limits(core, client, more):
    """maxResults is at most 100, names have a pattern."""
    with pytest.raises(client.exceptions.ValidationException):
        listed(client, core, **more)
