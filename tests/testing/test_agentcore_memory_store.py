"""AgentCore's memory stores for Strands' own path, over the emulation: they write, and find, as on the service."""

import asyncio
import itertools

import boto3
import pytest
from bedrock_agentcore.memory.client import MemoryClient
from bedrock_agentcore.memory.integrations.strands.memorystore import (
    AgentCoreMemoryStore,
    create_agentcore_memory_stores,
)
from botocore.exceptions import ClientError
from strands import Agent

from strands_gated_memory import GatedMemoryManager
from strands_gated_memory.testing import ScriptedModel, blocks_shown, seed_records

ASK = "What do I drink?"


@pytest.fixture
def memory_client(core):
    return MemoryClient(region_name="us-east-1", boto3_session=boto3.Session(region_name="us-east-1"))


def remember(core, client, *texts, namespace="/facts/{actorId}/"):
    seed_records(client, core.memory_id, [{"text": t, "namespace": namespace} for t in texts], actor_id="bob")


def store(core, memory_client, **settings):
    given = {"memory_id": core.memory_id, "actor_id": "bob", "session_id": "s1", "client": memory_client}
    read = {} if "namespace_path" in settings else {"namespace": "/facts/{actorId}/"}
    return AgentCoreMemoryStore(**{**given, **read, **settings})


def found(store, query="tea", **options):
    return [entry.content for entry in asyncio.run(store.search(query, options or None))]


def test_a_namespace_is_read_exactly_and_a_path_with_what_stands_below_it(core, client, memory_client):
    remember(core, client, "Likes tea")
    remember(core, client, "Likes milk in tea", namespace="/facts/{actorId}/home/")

    assert found(store(core, memory_client, namespace_path="/facts/{actorId}")) == ["Likes tea", "Likes milk in tea"]
    assert found(store(core, memory_client, namespace="/facts/{actorId}/home/")) == ["Likes milk in tea"]


def test_the_limit_and_the_least_score_are_kept(core, client, memory_client):
    remember(core, client, *(f"Likes tea number {n}" for n in range(4)))
    core.add_raw_record("/facts/bob/", {"content": {"text": "Far away"}, "score": 0.01, "memoryRecordId": "mem-far"})

    assert len(found(store(core, memory_client), max_search_results=2)) == 2
    assert "Far away" not in found(store(core, memory_client, min_score=0.2))


def test_an_entry_has_id_score_time_and_namespaces(core, client, memory_client):
    remember(core, client, "Likes tea")

    (entry,) = asyncio.run(store(core, memory_client).search("tea"))

    assert entry.metadata["_id"].startswith("mem-")
    assert 0 < entry.metadata["_score"] <= 1
    assert entry.metadata["_createdAt"].endswith("Z")
    assert entry.metadata["_namespaces"] == ["/facts/bob/"]


def test_a_refusal_is_raised(core, memory_client):
    core.fail("RetrieveMemoryRecords", "AccessDeniedException")

    with pytest.raises(ClientError, match="AccessDenied"):
        found(store(core, memory_client))


def test_a_conversation_is_written_once_with_what_was_said_and_no_memory(core, client, memory_client):
    """The store packs turns into an event; a batch that is sent again is no second event."""
    remember(core, client, "Likes tea")
    stores = create_agentcore_memory_stores(
        memory_id=core.memory_id,
        actor_id="bob",
        session_id="s1",
        namespaces=[{"namespace": "/facts/{actorId}/"}, {"namespace": "/preferences/{actorId}/"}],
        extraction=True,
        client=memory_client,
    )
    model = ScriptedModel(itertools.repeat("Tea."))
    agent = Agent(model=model, memory_manager=GatedMemoryManager(stores, decider=None), callback_handler=None)

    async def talk():
        for _ in range(5):
            await agent.invoke_async(ASK)
        await agent.shutdown_async()

    asyncio.run(talk())

    assert blocks_shown(model.calls[-1]) == ["<user_context>\nLikes tea\n</user_context>"]
    (event,) = client.list_events(memoryId=core.memory_id, actorId="bob", sessionId="s1", includePayloads=True)[
        "events"
    ]
    said = [part["conversational"]["content"]["text"] for part in event["payload"]]
    assert said == [ASK, "Tea."] * 5


def test_an_event_that_is_sent_again_is_stored_once(core, client, memory_client):
    writing = store(core, memory_client, writable=True)
    message = {"role": "user", "content": [{"text": "Hello"}]}

    class Context:
        sequence_numbers = (1,)

    asyncio.run(writing.add_messages([message], Context()))
    asyncio.run(writing.add_messages([message], Context()))

    events = client.list_events(memoryId=core.memory_id, actorId="bob", sessionId="s1")["events"]
    assert len(events) == 1
