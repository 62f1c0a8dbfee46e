"""Entering and leaving `local_agentcore`."""

import os
import subprocess
import sys
import threading

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.bedrockagentcore import urls as data_urls
from moto.bedrockagentcore.responses import BedrockAgentCoreResponse
from moto.bedrockagentcorecontrol import urls as control_urls
from moto.bedrockagentcorecontrol.responses import BedrockAgentCoreControlResponse

from strands_gated_memory.testing import HashingEncoder, local_agentcore

ANY_ID = "somebody_else-abcdefghij"
SECOND = 1_700_000_000


def write_event(client, memory_id, **more):
    request = {"actorId": "bob", "sessionId": "s1", "eventTimestamp": SECOND, "payload": [{"blob": "x"}]} | more
    return client.create_event(memoryId=memory_id, **request)["event"]


def events_of(client, memory_id):
    return client.list_events(memoryId=memory_id, actorId="bob", sessionId="s1")["events"]


def test_importing_the_package_does_not_import_moto():
    """Nothing heavy is loaded before it is used."""
    code = "import sys, strands_gated_memory.testing.agentcore; assert not {'moto', 'responses'} & set(sys.modules)"

    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_the_environment_comes_back_as_it_was(monkeypatch):
    """Credentials, region and endpoint settings last as long as the context."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "")
    before = dict(os.environ)

    with local_agentcore(region_name="eu-west-1"):
        assert os.environ["AWS_DEFAULT_REGION"] == "eu-west-1"
        assert os.environ["AWS_ACCESS_KEY_ID"]

    assert dict(os.environ) == before


def test_a_credential_that_was_deleted_inside_does_not_break_the_exit():
    """The exit survives a test that cleans its own environment."""
    before = dict(os.environ)

    with local_agentcore():
        del os.environ["AWS_ACCESS_KEY_ID"]

    assert dict(os.environ) == before


def test_a_configured_region_is_kept(monkeypatch):
    """The user's own region wins over the default one."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")

    with local_agentcore(encoder=HashingEncoder()) as core:
        client = boto3.client("bedrock-agentcore")

        assert client.meta.region_name == "eu-central-1"
        assert events_of(client, core.memory_id) == []


def test_a_configured_endpoint_does_not_lead_out(monkeypatch):
    """A client inside never goes to somebody's endpoint override."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:4566")
    monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")

    with local_agentcore() as core:
        assert events_of(boto3.client("bedrock-agentcore"), core.memory_id) == []


def test_moto_is_as_before_after_exit():
    """A client made afterwards under moto sees plain moto."""
    with local_agentcore():
        pass

    assert data_urls.url_paths["{0}/.*$"] == BedrockAgentCoreResponse.dispatch
    assert control_urls.url_paths["{0}/.*$"] == BedrockAgentCoreControlResponse.dispatch
    with mock_aws():
        client = boto3.client("bedrock-agentcore", region_name="us-east-1")
        write_event(client, ANY_ID)
        with pytest.raises(NotImplementedError):
            client.list_actors(memoryId=ANY_ID)


def test_the_exit_also_happens_on_an_error():
    """An exception inside leaves nothing mounted."""
    with pytest.raises(KeyError), local_agentcore():
        raise KeyError

    assert data_urls.url_paths["{0}/.*$"] == BedrockAgentCoreResponse.dispatch


def test_every_entry_starts_empty():
    """State does not outlive the context."""
    with local_agentcore() as first:
        write_event(boto3.client("bedrock-agentcore"), ANY_ID)
    with local_agentcore() as second:
        assert events_of(boto3.client("bedrock-agentcore"), ANY_ID) == []
        assert list(second.calls.counts()) == ["ListEvents"]

    assert first.memory_id != second.memory_id


def test_own_sessions_are_answered_too():
    """A client of a session with credentials of its own is answered."""
    with local_agentcore() as core:
        session = boto3.Session(
            aws_access_key_id="AKIAABCDEFGHIJKLMNOP", aws_secret_access_key="secret", region_name="us-west-2"
        )

        assert events_of(session.client("bedrock-agentcore"), core.memory_id) == []


def test_nested_the_inner_one_answers_until_it_ends():
    """Nesting hides the outer state and gives it back."""
    with local_agentcore() as outer:
        client = boto3.client("bedrock-agentcore")
        write_event(client, outer.memory_id)
        with local_agentcore():
            assert events_of(client, outer.memory_id) == []

        assert len(events_of(client, outer.memory_id)) == 1


def test_inside_another_mock_aws_the_other_services_keep_their_state():
    """A user's own moto data survives entry and exit."""
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="kept")
        with local_agentcore():
            assert len(s3.list_buckets()["Buckets"]) == 1

        assert len(s3.list_buckets()["Buckets"]) == 1


def test_a_second_thread_cannot_enter_at_the_same_time():
    """Two at once in threads is refused with the reason; afterwards entering works."""
    raised = []

    def enter():
        try:
            with local_agentcore():
                pass
        except RuntimeError as error:
            raised.append(str(error))

    with local_agentcore():
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
    enter()

    assert len(raised) == 1
    assert "another thread" in raised[0]


def test_requests_may_come_from_many_threads(core, client):
    """Nothing is lost when threads write at once."""

    def write(number):
        for _ in range(10):
            write_event(client, core.memory_id, sessionId=f"s{number}")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    sessions = client.list_sessions(memoryId=core.memory_id, actorId="bob")["sessionSummaries"]
    assert len(sessions) == 8
    assert core.calls.counts()["CreateEvent"] == 80


def test_it_decorates_a_function():
    """Usable as a decorator, as moto's is."""

    @local_agentcore()
    def ask():
        return events_of(boto3.client("bedrock-agentcore"), ANY_ID)

    assert ask() == []


def test_an_older_client_can_be_attached():
    """A client that bypasses moto is taken in by `attach`."""
    code = """
import os
import boto3
os.environ.update(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_DEFAULT_REGION="us-east-1")
session = boto3.Session()
from strands_gated_memory.testing import local_agentcore
with local_agentcore() as core:
    client = session.client("bedrock-agentcore")
    core.attach(client)
    assert client.list_actors(memoryId=core.memory_id)["actorSummaries"] == []
"""

    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )


def test_the_ready_made_memory_is_known_to_the_control_plane(core, control):
    """The handle's memory is ACTIVE and has three strategies."""
    memory = control.get_memory(memoryId=core.memory_id)["memory"]

    assert memory["status"] == "ACTIVE"
    assert {row["type"]: row["strategyId"] for row in memory["strategies"]} == core.strategy_ids
    assert [row["namespaceTemplates"] for row in memory["strategies"]] == [
        ["/facts/{actorId}/"],
        ["/preferences/{actorId}/"],
        ["/summaries/{actorId}/{sessionId}/"],
    ]


def test_namespace_templates_are_kept_on_create_and_update(core, control):
    """Both spellings of a strategy's namespaces come back, whichever was given."""
    strategy = {"semanticMemoryStrategy": {"name": "facts", "namespaceTemplates": ["/f/{actorId}/"]}}
    created = control.create_memory(name="mine", eventExpiryDuration=30, memoryStrategies=[strategy])["memory"]
    strategy_id = created["strategies"][0]["strategyId"]

    change = {"memoryStrategyId": strategy_id, "namespaceTemplates": ["/g/{actorId}/"]}
    control.update_memory(memoryId=created["id"], memoryStrategies={"modifyMemoryStrategies": [change]})

    (row,) = control.get_memory(memoryId=created["id"])["memory"]["strategies"]
    assert created["strategies"][0]["namespaces"] == ["/f/{actorId}/"]
    assert row["namespaces"] == row["namespaceTemplates"] == ["/g/{actorId}/"]


def test_a_deleted_memory_is_not_found(core, client, control):
    """Deleting through the control plane is felt by the data plane."""
    control.delete_memory(memoryId=core.memory_id)

    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.list_actors(memoryId=core.memory_id)


def test_an_arn_names_the_same_memory(core, client, control):
    """The data plane takes an id or an ARN."""
    write_event(client, core.memory_id)
    arn = control.get_memory(memoryId=core.memory_id)["memory"]["arn"]

    assert client.list_actors(memoryId=arn)["actorSummaries"] == [{"actorId": "bob"}]


def test_strict_ids_must_be_created_in_the_region_of_the_request():
    """With strict ids an unknown memory, or a known one elsewhere, is not found."""
    with local_agentcore(strict_memory_ids=True) as core:
        here = boto3.client("bedrock-agentcore", region_name="us-east-1")
        elsewhere = boto3.client("bedrock-agentcore", region_name="us-west-2")

        assert events_of(here, core.memory_id) == []
        with pytest.raises(here.exceptions.ResourceNotFoundException):
            events_of(here, ANY_ID)
        with pytest.raises(elsewhere.exceptions.ResourceNotFoundException):
            events_of(elsewhere, core.memory_id)


def test_a_malformed_memory_id_is_refused(client):
    """Even without strict ids, an id must look like one."""
    with pytest.raises(ClientError) as caught:
        client.list_actors(memoryId="not_a_memory_id")

    assert caught.value.response["reason"] == "FieldValidationFailed"
    assert caught.value.response["fieldList"][0]["name"] == "memoryId"


def test_without_moto_the_error_says_how_to_install_it_from_an_index_and_from_a_clone(monkeypatch):
    monkeypatch.setitem(sys.modules, "moto", None)

    how = r"'strands-gated-memory\[testing\]', or from a clone: pip install '\.\["
    with pytest.raises(ImportError, match=how), local_agentcore():
        pass
