"""The memory manager over store packages of others, as they are on the package index: mem0's and Zep's.

They bring SDKs of their own, so `nox -s stores` gives them an environment; elsewhere these tests are skipped. Their
clients are real, down to the request: what answers is a transport of httpx.
"""

import itertools
import json

import httpx
import pytest
from strands import Agent, tool

from strands_gated_memory import GatedMemoryManager
from strands_gated_memory.testing import ScriptedModel, blocks_shown
from strands_gated_memory.testing.model import ToolCall

ASK = "What do I drink?"
FACTS = ("Likes tea", "Has a shop")


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


class Service:
    """What answers requests: facts, or an error."""

    def __init__(self, path, page):
        self.status = 200
        self.queries = []
        self.searches = path
        self._page = page

    def __call__(self, request):
        if not request.url.path.startswith(self.searches):
            return httpx.Response(
                200, json={"user_email": "user@example.com", "org_id": "org", "project_id": "project"}
            )
        if self.status != 200:
            return httpx.Response(self.status, json={"message": "no"})
        self.queries.append(json.loads(request.content)["query"])
        return httpx.Response(200, json=self._page)

    async def answer(self, request):
        return self(request)


@pytest.fixture
def mem0(monkeypatch, tmp_path):
    monkeypatch.setenv("MEM0_TELEMETRY", "False")
    monkeypatch.setenv("MEM0_DIR", str(tmp_path))
    package = pytest.importorskip("mem0_strands")
    from mem0 import MemoryClient
    from mem0_strands.client import Mem0ServiceClient

    results = [
        {"id": f"m{n}", "memory": text, "score": 0.9 - n / 10, "created_at": "2026-03-15T10:00:00-07:00"}
        for n, text in enumerate(FACTS)
    ]
    service = Service("/v3/memories/search", {"results": results})
    client = MemoryClient(api_key="key", client=httpx.Client(transport=httpx.MockTransport(service)))
    return service, package.Mem0MemoryStore(user_id="user", client=Mem0ServiceClient(client=client))


@pytest.fixture
def zep():
    package = pytest.importorskip("zep_strands")
    from zep_cloud.client import AsyncZep

    edges = [
        {"uuid": f"e{n}", "fact": text, "name": "FACT", "created_at": "2026-03-15T10:00:00Z",
         "source_node_uuid": "s", "target_node_uuid": "t"}
        for n, text in enumerate(FACTS)
    ]  # fmt: skip
    service = Service("/api/v4/graphs", {"items": edges})
    client = httpx.AsyncClient(transport=httpx.MockTransport(service.answer))
    store = package.ZepMemoryStore(
        zep_client=AsyncZep(api_key="key", httpx_client=client, max_retries=0),
        graph_uuid="0b5c0b4e-0000-4000-8000-000000000000",
        search_scope="edges",
        writable=False,
    )
    return service, store


@pytest.fixture(params=["mem0", "zep"])
def served(request):
    return request.getfixturevalue(request.param)


def judge(state, questions):
    """Open the gate for what is about drinks, and keep all but the shop."""
    opened = "drink" in state["message"]
    return {
        name: {"noul": 0.9 if opened and "shop" not in question["instructions"] else 0.01}
        for name, question in questions.items()
    }


def agent_over(store, *replies, **settings):
    manager = GatedMemoryManager([store], **{"decider": judge, **settings})
    model = ScriptedModel(replies or itertools.repeat("Fine."))
    return Agent(model=model, memory_manager=manager, tools=[clock], callback_handler=None)


def test_a_turn_is_decided_searched_once_and_shown_on_every_call(served):
    service, store = served
    agent = agent_over(store, ToolCall("clock", {}), "Tea.", "Bye.")

    agent(ASK)
    agent("Thanks!")

    shown = [blocks_shown(call) for call in agent.model.calls]
    assert shown == [["<user_context>\nLikes tea\n</user_context>"]] * 2 + [[]]
    assert service.queries == [ASK]


def test_ids_scores_and_times_are_read_where_the_package_gives_them(served):
    _, store = served
    agent = agent_over(store, decider=None)

    agent(ASK)

    records = agent.memory_manager.last_recall.records
    assert [record.text for record in records] == list(FACTS)
    assert all(record.record_id for record in records)
    assert {record.namespace for record in records} == {store.name}
    if store.name == "mem0":
        assert [record.score for record in records] == [0.9, 0.8]
        assert {record.created_at.isoformat() for record in records} == {"2026-03-15T10:00:00-07:00"}


@pytest.mark.parametrize("status", [401, 429, 500])
def test_a_service_that_refuses_is_counted_by_the_packages_kind_and_costs_no_turn(served, status):
    service, store = served
    service.status = status
    agent = agent_over(store)

    assert agent(ASK).stop_reason == "end_turn"

    (kind,) = agent.memory_manager.stats.as_dict()["retrieval_errors_by_kind"]
    assert kind.endswith("Error")
    assert blocks_shown(agent.model.calls[0]) == []


def test_its_tool_is_validated(served):
    _, store = served
    agent = agent_over(
        store,
        ToolCall("search_memory", {"query": "what to drink"}),
        "Tea.",
        tool_results="validated",
        injection=False,
    )

    agent(ASK)

    result = str(agent.model.calls[-1][-1])
    assert "Likes tea" in result
    assert "shop" not in result
    assert agent.memory_manager.tool_stats.as_dict()["records_injected"] == 1
