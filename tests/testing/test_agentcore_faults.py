"""Faults, delays, planted records and the list of calls."""

import threading
import time

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from strands_gated_memory.testing import HashingEncoder, local_agentcore, seed_records

FOR_EVER = 3600.0
"""A delay in seconds that no test waits for."""


def search(client, core, path="/facts/bob/", **more):
    criteria = {"searchQuery": "tea", "topK": 5}
    return client.retrieve_memory_records(memoryId=core.memory_id, namespacePath=path, searchCriteria=criteria, **more)[
        "memoryRecordSummaries"
    ]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ThrottledException", 429),
        ("AccessDeniedException", 403),
        ("ResourceNotFoundException", 404),
        ("ServiceException", 500),
        ("ValidationException", 400),
        ("InvalidInputException", 400),
        ("ServiceQuotaExceededException", 402),
    ],
)
def test_a_modelled_error_arrives_as_its_own_class(core, client, code, status):
    """Code, status and message travel over the wire."""
    core.fail("retrieve_memory_records", code, message="because")

    with pytest.raises(getattr(client.exceptions, code)) as caught:
        search(client, core)

    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == status
    assert caught.value.response["Error"] == {"Code": code, "Message": "because"}


def test_an_unmodelled_error_needs_a_status(core, client):
    """Errors of the front door, such as an expired token, can be had too."""
    core.fail("RetrieveMemoryRecords", "ExpiredTokenException", status=403)

    with pytest.raises(ClientError) as caught:
        search(client, core)

    assert caught.value.response["Error"]["Code"] == "ExpiredTokenException"


@pytest.mark.parametrize("error", [ReadTimeoutError, ConnectTimeoutError, EndpointConnectionError])
def test_no_answer_at_all(core, client, error):
    """Network failures are botocore's own."""
    core.fail("RetrieveMemoryRecords", error.__name__)

    with pytest.raises(error):
        search(client, core)


def test_times_counts_requests_with_retries(core):
    """One throttled request is retried by boto3; four are not survived by three attempts."""
    client = boto3.client("bedrock-agentcore", config=Config(retries={"mode": "standard", "total_max_attempts": 3}))

    core.fail("RetrieveMemoryRecords", "ServiceException", times=1)
    assert search(client, core) == []
    assert len(core.calls.of("RetrieveMemoryRecords")) == 2

    core.calls.clear()
    core.fail("RetrieveMemoryRecords", "ServiceException", times=4)
    with pytest.raises(client.exceptions.ServiceException):
        search(client, core)
    assert len(core.calls.of("RetrieveMemoryRecords")) == 3


def test_a_fault_of_one_namespace_spares_the_others(core, client):
    """The namespace is matched whatever its last slash, and for writes too."""
    core.fail("RetrieveMemoryRecords", "AccessDeniedException", namespace="/facts/bob")
    core.fail("BatchCreateMemoryRecords", "ThrottledException", namespace="/facts/bob/")

    assert search(client, core, "/facts/ann/") == []
    with pytest.raises(client.exceptions.AccessDeniedException):
        search(client, core, "/facts/bob/")
    assert seed_records(client, core.memory_id, [{"text": "x", "namespace": "/facts/ann/"}])
    with pytest.raises(client.exceptions.ThrottledException):
        seed_records(client, core.memory_id, [{"text": "x", "namespace": "/facts/bob/"}])


def test_a_failed_write_changes_nothing(core, client):
    """A fault comes before the operation."""
    core.fail("BatchCreateMemoryRecords", "ServiceException", times=1)
    with pytest.raises(client.exceptions.ServiceException):
        seed_records(client, core.memory_id, [{"text": "x", "namespace": "/facts/bob/"}])

    assert search(client, core) == []


def test_clearing(core, client):
    """Afterwards nothing fails and nothing waits: a request that did would outlast the test's limit."""
    core.fail("RetrieveMemoryRecords", "ServiceException")
    core.delay("RetrieveMemoryRecords", FOR_EVER)
    core.clear_faults()

    assert search(client, core) == []


def test_a_delay(core, client):
    """The request waits so long."""
    core.delay("RetrieveMemoryRecords", 0.2)

    started = time.monotonic()
    search(client, core)

    assert time.monotonic() - started >= 0.2


def test_a_delayed_namespace_does_not_hold_up_the_rest():
    """Others are answered while four requests wait, which the end of the context lets go."""
    with local_agentcore(encoder=HashingEncoder()) as core:
        client = boto3.client("bedrock-agentcore", config=Config(max_pool_connections=8))
        core.delay("RetrieveMemoryRecords", FOR_EVER, namespace="/facts/bob/")
        threads = [threading.Thread(target=search, args=(client, core)) for _ in range(4)]
        for thread in threads:
            thread.start()
        while len(core.calls) < 4:
            time.sleep(0.01)

        assert search(client, core, "/facts/ann/") == []
        assert all(thread.is_alive() for thread in threads)
    for thread in threads:
        thread.join(60)

    assert not any(thread.is_alive() for thread in threads)


def test_the_exit_wakes_a_delayed_request():
    """No request sleeps on after the context has ended."""
    with local_agentcore(encoder=HashingEncoder()) as core:
        client = boto3.client("bedrock-agentcore")
        core.delay("RetrieveMemoryRecords", FOR_EVER)
        thread = threading.Thread(target=search, args=(client, core))
        thread.start()
        while not core.calls:
            time.sleep(0.01)
    thread.join(60)

    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("IngestData", "ServiceException"), "is not emulated"),
        (("CreateEvent", "NoSuchException"), "status="),
        (("BatchCreateMemoryRecords", "InvalidInputException"), "is no error of BatchCreateMemoryRecords"),
        (("CreateEvent", "ServiceException", 0), "at least 1"),
    ],
)
def test_a_wrong_fault_is_refused_at_once(core, arguments, words):
    """A fault that could never happen is a mistake of the test."""
    with pytest.raises(ValueError, match=words):
        core.fail(*arguments)


def test_a_negative_delay_is_refused(core):
    """Seconds are not negative."""
    with pytest.raises(ValueError, match="negative"):
        core.delay("CreateEvent", -1)


def test_the_calls_are_listed_with_their_parameters(core, client):
    """Name, scope, query and topK of each request, refused ones included."""
    search(client, core)
    client.list_memory_records(memoryId=core.memory_id, namespace="/facts/bob/")
    with pytest.raises(client.exceptions.ValidationException):
        client.list_memory_records(memoryId=core.memory_id)

    first, second, third = core.calls
    assert (first.operation, first.memory_id) == ("RetrieveMemoryRecords", core.memory_id)
    assert (first.namespace_path, first.namespace, first.query, first.top_k) == ("/facts/bob/", None, "tea", 5)
    assert (second.namespace, second.namespace_path, second.query, second.top_k) == ("/facts/bob/", None, None, None)
    assert third.parameters == {"memoryId": core.memory_id}
    assert core.calls.of("list_memory_records") == (second, third)
    assert core.calls.counts() == {"RetrieveMemoryRecords": 1, "ListMemoryRecords": 2}
    assert core.calls[0] is first
    assert core.calls[1:] == [second, third]
    assert "ListMemoryRecords" in repr(core.calls)


MALFORMED = [
    ({"memoryRecordId": "mem-1", "namespaces": ["/facts/bob/"]}, "content missing"),
    ({"content": {"json": {}}, "score": 0.4}, "content of an unknown kind"),
    ({"content": {"text": "x"}}, "everything else missing"),
    ({"content": {"text": "x"}, "namespaces": [], "score": None}, "no namespace, null score"),
    ({"content": {"text": "x"}, "namespaces": ["/facts/bobby/"], "score": 0.9}, "a stranger's namespace"),
    ({}, "nothing at all"),
]


@pytest.mark.parametrize("summary", [row for row, _ in MALFORMED], ids=[name for _, name in MALFORMED])
def test_a_planted_record_comes_as_it_is(core, client, summary):
    """First in its namespace, beside the good ones, in searches and listings."""
    seed_records(client, core.memory_id, [{"text": "tea", "namespace": "/facts/bob/"}])
    core.add_raw_record("/facts/bob/", summary)
    listed = client.list_memory_records(memoryId=core.memory_id, namespacePath="/facts/")["memoryRecordSummaries"]

    found = search(client, core)
    expected = {name: value for name, value in summary.items() if value is not None}
    if "json" in expected.get("content", {}):
        expected["content"] = {"SDK_UNKNOWN_MEMBER": {"name": "json"}}
    assert found[0] == listed[0] == expected
    assert [row["content"]["text"] for row in found[1:]] == ["tea"]
    assert search(client, core, "/facts/ann/") == []


def test_planted_records_page(core, client):
    """They count towards topK and pages like any other."""
    seed_records(client, core.memory_id, [{"text": "tea", "namespace": "/facts/bob/"}])
    for number in range(3):
        core.add_raw_record("/facts/bob/", {"memoryRecordId": str(number)})

    pages = client.get_paginator("retrieve_memory_records").paginate(
        memoryId=core.memory_id,
        namespacePath="/facts/bob/",
        searchCriteria={"searchQuery": "tea", "topK": 4},
        PaginationConfig={"PageSize": 2},
    )
    assert [len(page["memoryRecordSummaries"]) for page in pages] == [2, 2]


def test_a_null_text_is_refused_by_botocore_itself(core, client):
    """The wire carries it, botocore's parser does not: the whole response is lost."""
    from botocore.parsers import ResponseParserError

    core.add_raw_record("/facts/bob/", {"content": {"text": None}})

    with pytest.raises(ResponseParserError):
        search(client, core)


def test_a_planted_record_must_be_json(core):
    """Reported where it is planted."""
    with pytest.raises(TypeError, match="must be JSON, got object"):
        core.add_raw_record("/facts/bob/", {"content": object()})
