"""What the memory manager does beyond the contract: the parent's arguments, its tools, stores of every kind."""

import asyncio
import itertools
import logging
import threading
from datetime import datetime, timezone

import pytest
from memory_builders import ListStore, remembering
from strands import Agent, tool
from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent
from strands.memory import ExtractionConfig, InvocationTrigger, MemoryEntry, MemoryManager
from strands.vended_memory_stores import TestMemoryStore
from turn_builders import Asked, blocks_per_call, judging, last_block, no, probabilities, yes

from strands_gated_memory import (
    ConfigurationError,
    GatedMemoryManager,
    RecallPipeline,
    RecallPolicy,
    RecallStats,
    Record,
    Turn,
)
from strands_gated_memory.errors import DeciderUnavailable
from strands_gated_memory.retrieval.stores import StoreSearch, to_record
from strands_gated_memory.testing.model import ScriptedModel, ToolCall, blocks_shown

ASK = "What do I drink?"


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


def tools_of(agent):
    return sorted(agent.tool_names)


# The parent's arguments


def test_without_injection_nothing_is_recalled_and_the_tool_stays():
    store = ListStore("facts", "Likes tea")
    agent = remembering(store, injection=False)

    agent(ASK)

    assert blocks_per_call(agent) == [0]
    assert store.searched == []
    assert tools_of(agent) == ["search_memory"]


@pytest.mark.parametrize("trigger", ["userTurn", "everyTurn"])
def test_a_named_trigger_recalls_once_per_ask(trigger):
    store = ListStore("facts", "Likes tea")
    agent = remembering(
        store, injection={"trigger": trigger}, replies=[ToolCall("clock", {}), "Tea."], agent={"tools": [clock]}
    )

    agent(ASK)

    assert blocks_per_call(agent) == [1, 1]
    assert len(store.searched) == 1


def test_a_trigger_of_ones_own_keeps_a_turn_from_being_recalled():
    """It is asked with the conversation, the agent and its state, as the parent asks it."""
    store, seen = ListStore("facts", "Likes tea"), []

    def trigger(context):
        seen.append(context)
        return "drink" in str(context.messages[-1])

    agent = remembering(store, injection={"trigger": trigger})
    agent("Hello")
    agent(ASK)

    assert blocks_per_call(agent) == [0, 1]
    assert [query for query, _ in store.searched] == [ASK]
    assert agent.memory_manager.stats.as_dict()["gate"]["disabled"] == 1
    assert seen[0].agent is agent
    assert seen[0].state is agent.state


def test_a_trigger_may_wait_for_a_later_call_of_the_turn():
    store = ListStore("facts", "Likes tea")
    agent = remembering(
        store,
        injection={"trigger": lambda context: len(context.messages) > 1},
        replies=[ToolCall("clock", {}), "Tea."],
        agent={"tools": [clock]},
    )

    agent(ASK)

    assert blocks_per_call(agent) == [0, 1]
    assert agent.memory_manager.stats.turns == 1


def test_a_trigger_is_not_asked_again_for_what_was_recalled():
    """A retry after an error of the model keeps its block."""
    once = iter([True])
    agent = remembering(
        ListStore("facts", "Likes tea"),
        injection={"trigger": lambda _: next(once)},
        replies=[ValueError("down"), "Tea."],
    )
    with pytest.raises(ValueError, match="down"):
        agent(ASK)

    agent()

    assert blocks_per_call(agent) == [1, 1]
    assert agent.memory_manager.stats.as_dict()["turn_failures"] == 0


def test_a_call_with_recall_switched_off_asks_no_function_of_the_application():
    def fail(context):
        raise LookupError("asked")

    agent = remembering(ListStore("facts"), injection={"trigger": fail, "query": fail})

    agent(ASK, invocation_state={"recall": False})

    counts = agent.memory_manager.stats.as_dict()
    assert (counts["turn_failures"], counts["gate"]["disabled"]) == (0, 1)


def test_the_query_is_derived_as_the_application_says():
    """None recalls nothing; the decision model is still asked about what the user said."""
    store, asked = ListStore("facts", "Likes tea"), Asked()

    def query(context):
        said = context.messages[-1]["content"][0]["text"]
        return None if said == "Hello" else f"about {said}"

    agent = remembering(store, injection={"query": query}, decider=asked)
    agent("Hello")
    agent(ASK)

    assert [query for query, _ in store.searched] == [f"about {ASK}"]
    assert asked.messages == [ASK, ASK]
    assert blocks_per_call(agent) == [0, 1]


@pytest.mark.parametrize("setting", ["trigger", "query", "format"])
def test_a_function_of_the_application_that_raises_costs_the_turn_its_memory(setting, caplog):
    def fail(context):
        raise LookupError("Likes tea")

    replies, tools = [ToolCall("clock", {}), "Tea."], {"tools": [clock]}
    agent = remembering(ListStore("facts", "Likes tea"), injection={setting: fail}, replies=replies, agent=tools)

    assert agent(ASK).stop_reason == "end_turn"
    assert blocks_per_call(agent) == [0, 0]
    counts = agent.memory_manager.stats.as_dict()
    assert (counts["turns"], counts["turn_failures"]) == (1, 1)
    assert "LookupError" in caplog.text
    assert "tea" not in caplog.text


def test_max_entries_caps_what_is_shown_over_all_stores():
    """The parent shows the first store's alone; here each store keeps its best."""
    stores = [ListStore(name, *(f"{name} {number}" for number in range(5))) for name in ("a", "b")]
    agent = remembering(*stores, injection={"max_entries": 2})

    agent(ASK)

    assert sorted(last_block(agent)) == ["a 0", "b 0"]
    assert agent.memory_manager.policy.select.max_records == 2


def test_the_block_is_written_by_the_applications_format_from_what_was_kept():
    store = ListStore("facts", "Likes tea", "Has a shop")

    def write(context):
        return "NOTES " + "; ".join(f"{entry.store_name}: {entry.content}" for entry in context.entries)

    agent = remembering(store, injection={"format": write}, decider=judging(shop=0.01))
    agent(ASK)

    assert agent.model.calls[0][0]["content"][-1]["text"].strip() == "NOTES facts: Likes tea"
    assert agent.memory_manager.last_recall.trace.block_tokens > 0


def test_tools_and_extraction_are_the_parents():
    """add_memory writes; messages are extracted; a store's own tools are registered; its `initialize` is called."""

    class Full(TestMemoryStore):
        initialized = 0
        saved = ()

        async def initialize(self):
            self.initialized += 1

        async def add_messages(self, messages, context=None):
            self.saved = (*self.saved, *messages)

        def get_tools(self):
            return [clock]

    store = Full(name="facts", persist=False, extraction=ExtractionConfig(trigger=InvocationTrigger()))
    replies = [ToolCall("add_memory", {"entries": ["Likes tea"]}), "Noted.", "Tea."]
    agent = remembering(store, replies=replies, add_tool_config={"name": "add_memory", "stores": ["facts"]})

    agent("Remember that I like tea")
    agent("Do I like tea?")

    assert tools_of(agent) == ["add_memory", "clock", "search_memory"]
    assert store.initialized == 1
    assert "Do I like tea?" in str(store.saved)
    assert "user_context" not in str(store.saved)
    assert last_block(agent) == ["Likes tea"]


def test_a_search_of_the_application_is_the_parents():
    store = ListStore("facts", "Likes tea", "Has a shop")
    manager = remembering(store, decider=no, tool_results="validated").memory_manager

    found = asyncio.run(manager.search("tea", {"max_search_results": 7}))

    assert [(entry.content, entry.store_name) for entry in found] == [("Likes tea", "facts"), ("Has a shop", "facts")]
    assert store.searched == [("tea", 7)]


# The search tool


def looking_up(*stores, tool_input=None, name="search_memory", decider=no, **settings):
    """Return what a `search_memory` call of the model gave it, and the manager; `no` keeps the gate closed."""
    call = ToolCall(name, {"query": "tea", **(tool_input or {})})
    agent = remembering(*stores, replies=[call, "Done."], decider=decider, **settings)
    agent("Look it up")
    return agent.model.calls[-1][-1]["content"][0]["toolResult"], agent.memory_manager


def test_the_tools_results_are_as_they_are_by_default():
    result, manager = looking_up(ListStore("facts", "Likes tea", "Has a shop"))

    assert "Has a shop" in str(result)
    assert manager.tool_stats.turns == 0


def test_validated_results_are_those_that_bear_on_the_tools_query():
    """No gate and no router; counted apart from turns."""
    asked = Asked(judging(shop=0.01))
    store = ListStore("facts", "Likes tea", "Has a shop", "Likes tea", description="facts about the user")
    result, manager = looking_up(store, ListStore("more"), tool_results="validated", injection=False, decider=asked)

    assert result["status"] == "success"
    assert "Likes tea" in str(result)
    assert str(result).count("content': [") == 1
    assert "Has a shop" not in str(result)
    assert '"store_name": "facts"' in str(result)
    assert asked.messages == ["tea"]
    assert [set(questions) for questions in asked.questions] == [{"record_0", "record_1"}]
    counts = manager.tool_stats.as_dict()
    assert (counts["turns"], counts["records_returned"], counts["records_injected"]) == (1, 3, 1)
    assert counts["records_dropped"] == {"below_threshold": 1, "duplicate": 1}
    assert manager.stats.turns == 0
    assert manager.last_recall is None


def test_the_tool_names_stores_and_a_limit():
    facts, plans = ListStore("facts", "Likes tea"), ListStore("plans", "Goes to Bristol")
    plans.max_search_results = 4
    stores = {"stores": ["plans"]}

    looking_up(facts, plans, tool_input=stores, tool_results="validated")
    looking_up(facts, plans, tool_input={**stores, "max_search_results": 2}, tool_results="validated")

    assert [limit for _, limit in plans.searched] == [4, 2]
    assert facts.searched == []


def test_a_validated_tool_has_the_name_and_the_description_of_the_parents():
    """Whatever the parent writes into it."""
    given = {"name": "look_up", "description": "Look things up."}
    stores = [ListStore("facts", description="facts about the user"), ListStore("plans")]
    theirs = MemoryManager(stores=stores, search_tool_config=given).tools[0].tool_spec
    agent = remembering(*stores, search_tool_config=given, tool_results="validated")

    assert [one.tool_spec for one in agent.memory_manager.tools] == [theirs]
    assert tools_of(agent) == ["look_up"]


def test_a_tools_search_that_fails_costs_its_store_and_is_counted_apart():
    broken = ListStore("plans", error=PermissionError("no"))
    result, manager = looking_up(ListStore("facts", "Likes tea"), broken, tool_results="validated", decider=None)

    assert "Likes tea" in str(result)
    assert manager.tool_stats.as_dict()["retrieval_errors_by_kind"] == {"PermissionError": 1}
    assert manager.tool_stats.turns == 1


# Stores


def test_a_store_is_chosen_by_its_description_and_one_without_is_always_searched():
    asked = Asked(probabilities(0.9, namespace_1=0.01))
    stores = [
        ListStore("facts", "Likes tea", description="facts of life"),
        ListStore("preferences", "Prefers milk", description="what they prefer"),
        ListStore("summaries", "Talked of milk"),
    ]
    agent = remembering(*stores, decider=asked)
    agent(ASK)

    assert [len(store.searched) for store in stores] == [1, 0, 1]
    gate = asked.questions[0]
    assert set(gate) == {"gate", "namespace_0", "namespace_1"}
    assert "facts of life" in gate["namespace_0"]["instructions"]
    assert agent.memory_manager.last_recall.trace.gate.namespaces["summaries"] is None


def test_the_policys_description_wins_over_the_stores():
    asked = Asked()
    stores = [ListStore("a", description="facts"), ListStore("b", description="excursions")]
    agent = remembering(*stores, decider=asked, policy={"router": {"descriptions": {"b": "journeys"}}})
    agent(ASK)

    assert "journeys" in asked.questions[0]["namespace_1"]["instructions"]
    assert "excursions" not in str(asked.questions[0])


def test_a_pinned_store_is_searched_on_every_turn_whatever_the_gate_says():
    """And anew: what one query found holds for no other."""
    pinned, other = ListStore("allergies", "Allergic to nuts"), ListStore("facts", "Likes tea")

    def decide(state, questions):
        return (no if "gate" in questions else yes)(state, questions)

    agent = remembering(pinned, other, decider=decide, policy={"router": {"pinned": ["allergies"]}})
    agent("Cake?")
    agent("Nuts?")
    agent("Nuts?")

    assert [query for query, _ in pinned.searched] == ["Cake?", "Nuts?", "Nuts?"]
    assert other.searched == []
    assert blocks_per_call(agent) == [1, 1, 1]


def test_each_store_is_asked_for_as_many_entries_as_the_manager_says():
    store = ListStore("facts")
    store.max_search_results = 3

    remembering(store)(ASK)
    remembering(store, max_search_results=50)(ASK)

    assert [limit for _, limit in store.searched] == [20, 50]


def test_a_store_that_hangs_costs_itself():
    slow = ListStore("plans", "Goes to Bristol")
    slow.hangs = True
    agent = remembering(ListStore("facts", "Likes tea"), slow, policy={"retrieve": {"timeout_s": 0.05}})

    agent(ASK)

    assert last_block(agent) == ["Likes tea"]
    assert agent.memory_manager.stats.as_dict()["retrieval_errors_by_kind"] == {"timeout": 1}


def test_stores_that_hang_keep_no_threads():
    """More than there are threads for searches: each is waited for, none is refused."""
    stores = [ListStore(f"store {number}") for number in range(200)]
    for store in stores:
        store.hangs = True
    agent = remembering(*stores, policy={"retrieve": {"timeout_s": 0.1}})

    agent(ASK)

    assert agent.memory_manager.stats.as_dict()["retrieval_errors_by_kind"] == {"timeout": 200}


def test_a_function_that_hangs_over_an_entry_costs_its_store():
    """It is left behind in a thread."""
    go = threading.Event()

    def read(entry):
        if "hang" in entry.content:
            go.wait(60)
        return to_record(entry)

    stores = [ListStore("facts", "Likes tea"), ListStore("plans", "Please hang")]
    agent = remembering(*stores, to_record=read, policy={"retrieve": {"timeout_s": 0.1}})
    try:
        agent(ASK)
    finally:
        go.set()

    assert last_block(agent) == ["Likes tea"]
    assert agent.memory_manager.stats.as_dict()["retrieval_errors_by_kind"] == {"timeout": 1}


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (None, "TypeError"),
        (7, "TypeError"),
        ("Likes tea", "TypeError"),
        ({"entries": []}, "TypeError"),
        (ValueError("no"), "ValueError"),
        (SystemExit(1), "unavailable"),
    ],
)
def test_a_reply_that_is_no_list_is_the_stores_failure(reply, kind):
    class Odd(ListStore):
        async def search(self, query, options=None):
            if isinstance(reply, BaseException):
                raise reply
            return reply

    agent = remembering(Odd("plans"), ListStore("facts", "Likes tea"))
    agent(ASK)

    assert last_block(agent) == ["Likes tea"]
    assert agent.memory_manager.stats.as_dict()["retrieval_errors_by_kind"] == {kind: 1}


def test_a_lookup_takes_as_long_as_its_own_store():
    slow = ListStore("plans")
    slow.hangs = True
    agent = remembering(ListStore("facts", "Likes tea"), slow, policy={"retrieve": {"timeout_s": 0.5}})

    agent(ASK)

    quick, late = agent.memory_manager.last_recall.trace.lookups
    assert quick.seconds < late.seconds - 0.2


def test_a_store_that_never_stops_is_read_to_a_bound():
    class Endless(ListStore):
        async def search(self, query, options=None):
            return (MemoryEntry(f"Likes tea {number}") for number in itertools.count())

    agent = remembering(Endless("facts"))
    agent(ASK)

    assert len(last_block(agent)) == 20
    assert agent.memory_manager.stats.as_dict()["records_returned"] == 1000


def test_a_search_that_is_given_up_is_cancelled_on_the_loop():
    """Nothing of it runs on in a server's loop."""
    ended = []

    class Hanging(ListStore):
        async def search(self, query, options=None):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(query)

    async def serve():
        agent = remembering(Hanging("plans"), policy={"retrieve": {"timeout_s": 0.05}})
        await agent.invoke_async(ASK)
        await asyncio.sleep(0)
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(serve()) == []
    assert ended == [ASK]


def test_the_agents_loop_runs_on_while_a_recall_waits():
    """The search ends only when another task of the loop has run: with a blocked loop it would time out."""
    signal = {}

    class Waiting(ListStore):
        async def search(self, query, options=None):
            signal["searching"].set()
            await signal["go"].wait()
            return await super().search(query, options)

    async def serve():
        signal.update(searching=asyncio.Event(), go=asyncio.Event())
        agent = remembering(Waiting("facts", "Likes tea"), policy={"retrieve": {"timeout_s": 30}, "deadline_s": 60})
        turn = asyncio.create_task(agent.invoke_async(ASK))
        await signal["searching"].wait()
        signal["go"].set()
        await turn
        return agent

    assert last_block(asyncio.run(serve())) == ["Likes tea"]


def test_the_decision_is_made_off_the_loop():
    """A decision model that waits for a task of the loop gets its answer."""
    go = threading.Event()

    def decide(state, questions):
        assert go.wait(30)
        return yes(state, questions)

    async def serve():
        agent = remembering(ListStore("facts", "Likes tea"), decider=decide, policy={"deadline_s": 60})
        turn = asyncio.create_task(agent.invoke_async(ASK))
        asyncio.get_running_loop().call_later(0.05, go.set)
        await turn
        return agent

    assert last_block(asyncio.run(serve())) == ["Likes tea"]


@pytest.mark.parametrize("read", [to_record, lambda entry: Record(entry.content, "facts")], ids=["ours", "own"])
def test_a_loop_that_has_ended_is_a_failure_like_others(read):
    """A recall that nobody waits for any more may outlive it."""
    ended = asyncio.new_event_loop()
    ended.close()
    search = StoreSearch(
        {"facts": ListStore("facts")}, "tea", max_results=lambda _: 20, to_record=read, loop=ended, timeout_s=1.0
    )

    recall = RecallPipeline(None).recall(Turn(ASK), ["facts"], search)

    assert [lookup.error for lookup in recall.trace.lookups] == ["unavailable"]


def test_a_client_that_is_bound_to_the_loop_is_used_there():
    class Bound(ListStore):
        loop = None

        async def search(self, query, options=None):
            running = asyncio.get_running_loop()
            self.loop = self.loop or running
            if self.loop is not running:
                raise RuntimeError("attached to a different loop")
            return await super().search(query, options)

    async def serve():
        agent = remembering(Bound("facts", "Likes tea"))
        for _ in range(3):
            await agent.invoke_async(ASK)
        return agent

    agent = asyncio.run(serve())

    assert blocks_per_call(agent) == [1, 1, 1]
    assert agent.memory_manager.stats.retrieval_errors == 0


def test_a_turn_that_is_cancelled_during_its_recall_is_counted_and_leaves_nothing(caplog):
    reached = {}

    class Reached(ListStore):
        async def search(self, query, options=None):
            reached["event"].set()
            return await super().search(query, options)

    async def serve():
        reached["event"] = asyncio.Event()
        store = Reached("facts", "Likes tea")
        store.hangs = True
        agent = remembering(store, policy={"retrieve": {"timeout_s": 0.2}})
        turn = asyncio.create_task(agent.invoke_async(ASK))
        await reached["event"].wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        store.hangs = False
        while not agent.memory_manager.stats.turns:  # the recall that nobody waits for ends by itself
            await asyncio.sleep(0.01)
        await agent.invoke_async("Hello")
        return agent

    agent = asyncio.run(serve())

    assert blocks_per_call(agent) == [1]
    assert agent.memory_manager.stats.turns == 2
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_a_long_message_is_cut_for_the_search():
    store = ListStore("facts")

    remembering(store)("tea " * 10_000)

    ((query, _),) = store.searched
    assert len(query) <= 10_000


# Entries


@pytest.mark.parametrize(
    ("metadata", "score", "record_id", "day"),
    [
        ({"_score": 0.5, "_id": "r1", "_createdAt": "2026-03-15T10:00:00.000Z"}, 0.5, "r1", 15),
        ({"score": 2, "id": 7, "created_at": "2026-03-15T10:00:00+02:00"}, 2.0, "7", 15),
        ({"_relevanceScore": 3, "uuid": "u1", "createdAt": datetime(2026, 3, 16)}, 3.0, "u1", 16),
        ({"_relevance_score": 0.25, "timestamp": 1773619200}, 0.25, None, 16),
        ({"score": True, "id": ["no"], "created_at": "yesterday"}, None, None, None),
        ({"score": 10**400, "created_at": 1e300}, None, None, None),
        (None, None, None, None),
    ],
)
def test_score_id_and_time_are_read_under_the_names_that_stores_use(metadata, score, record_id, day):
    record = to_record(MemoryEntry("Likes tea", "facts", metadata))

    assert (record.text, record.namespace, record.score, record.record_id) == ("Likes tea", "facts", score, record_id)
    assert (record.created_at and record.created_at.day) == day
    assert record.created_at is None or record.created_at.tzinfo is not None


@pytest.mark.parametrize("entry", [None, "Likes milk", MemoryEntry(None), MemoryEntry("Milk", metadata=["?"])])
def test_an_entry_that_cannot_be_read_costs_itself_and_is_counted(entry):
    agent = remembering(ListStore("facts", "Likes tea", entries=[entry]))

    agent(ASK)

    assert last_block(agent) == ["Likes tea"]
    assert agent.memory_manager.stats.as_dict()["records_dropped"] == {"malformed": 1}


def test_entries_may_be_read_by_the_application():
    def read(entry):
        if "secret" in entry.content:
            raise LookupError("not this one")
        return Record(entry.content.upper(), entry.store_name, created_at=datetime(2026, 1, 2, tzinfo=timezone.utc))

    agent = remembering(
        ListStore("facts", "Likes tea", "A secret"), to_record=read, policy={"inject": {"show_dates": True}}
    )
    agent(ASK)

    assert last_block(agent) == ["[2026-01-02] LIKES TEA"]
    assert agent.memory_manager.stats.as_dict()["records_dropped"] == {"malformed": 1}


@pytest.mark.parametrize("scores", [[0.1, 0.2, 0.3], [0.9, 0.5, 0.1], [None, None, None]])
def test_the_nearest_come_first_whatever_a_store_calls_a_score(scores):
    """Some stores over pgvector give distances, which rise; some give none."""
    entries = [
        MemoryEntry(text, metadata={"id": key, "_score": score} if score is not None else {"id": key})
        for text, key, score in zip(("first", "second", "third"), "cba", scores, strict=True)
    ]
    agent = remembering(ListStore("facts", entries=entries), policy={"select": {"max_records": 2}})

    agent(ASK)

    assert last_block(agent) == ["first", "second"]


def test_the_same_id_in_two_stores_is_not_the_same_record():
    """Each counts its own from 1."""
    first = ListStore("facts", entries=[MemoryEntry("Likes tea", metadata={"id": 1})])
    second = ListStore("plans", entries=[MemoryEntry("Goes to Bristol", metadata={"id": 1})])
    agent = remembering(first, second)

    agent(ASK)

    assert sorted(last_block(agent)) == ["Goes to Bristol", "Likes tea"]


def test_the_same_id_twice_in_one_store_is_one_record():
    entries = [MemoryEntry("Likes tea", metadata={"id": 1}), MemoryEntry("Likes tea a lot", metadata={"id": 1})]
    agent = remembering(ListStore("facts", entries=entries))

    agent(ASK)

    assert last_block(agent) == ["Likes tea"]


def test_what_a_store_keeps_is_not_changed():
    kept = MemoryEntry("Likes tea", metadata={"id": "1"})

    remembering(ListStore("facts", entries=[kept]))(ASK)

    assert kept == MemoryEntry("Likes tea", metadata={"id": "1"})


def test_a_record_filter_sees_every_record():
    agent = remembering(
        ListStore("facts", "Likes tea", "Has a shop"), record_filter=lambda record: "shop" not in record.text
    )
    agent(ASK)

    assert last_block(agent) == ["Likes tea"]
    assert agent.memory_manager.stats.as_dict()["records_dropped"] == {"filtered": 1}


def test_a_record_filter_that_hangs_costs_its_store():
    go = threading.Event()
    stores = [ListStore("facts", "Likes tea"), ListStore("plans", "Please hang")]
    agent = remembering(
        *stores,
        record_filter=lambda record: "hang" not in record.text or go.wait(60),
        policy={"retrieve": {"timeout_s": 0.1}},
    )
    try:
        agent(ASK)
    finally:
        go.set()

    assert last_block(agent) == ["Likes tea"]
    assert agent.memory_manager.stats.as_dict()["retrieval_errors_by_kind"] == {"timeout": 1}


# The ask


def test_a_redacted_ask_shows_its_block_no_more():
    """A guardrail replaces the user's text, and a hook has the model called again."""

    class Guarded(ScriptedModel):
        async def stream(self, messages, *args, **kwargs):
            if not self.calls:
                yield {"redactContent": {"redactUserContentMessage": "[redacted]"}}
            async for event in super().stream(messages, *args, **kwargs):
                yield event

    agent = remembering(ListStore("facts", "Likes tea"), agent={"model": Guarded(["No.", "Sorry."])})
    again = [True]
    agent.add_hook(lambda event: setattr(event, "retry", bool(again) and again.pop()), AfterModelCallEvent)

    agent(ASK)

    assert blocks_per_call(agent) == [1, 0]


def test_an_ask_that_a_hook_has_replaced_is_counted():
    store = ListStore("facts", "Likes tea")
    agent = remembering(store)

    def replace(event):
        event.agent.messages[-1] = {"role": "user", "content": [{"text": "something else"}]}

    agent.add_hook(replace, BeforeModelCallEvent)
    agent(ASK)

    assert blocks_per_call(agent) == [0]
    assert agent.memory_manager.stats.as_dict()["turn_failures"] == 1
    assert store.searched == []


def test_a_tool_result_for_an_ask_that_is_gone_is_counted():
    """The client ran the tool, and handed over a conversation without the question."""
    store = ListStore("facts", "Likes tea")
    said = [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [{"text": "Hello"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "clock", "input": {}}}]},
    ]
    agent = remembering(store, agent={"messages": said, "tools": [clock]})

    agent([{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "noon"}]}}])

    assert agent.memory_manager.stats.as_dict()["turn_failures"] == 1
    assert store.searched == []


def test_a_block_has_the_tag_that_is_given():
    agent = remembering(ListStore("facts", "Likes tea"), context_tag="memory")

    agent("<memory>Likes gin</memory>")

    assert [blocks_shown(call, "memory") for call in agent.model.calls] == [["<memory>\nLikes tea\n</memory>"]]


# Making one


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"tool_results": "checked"}, '"as_is" or "validated", got \'checked\''),
        ({"max_search_results": 0}, "whole number above 0, got 0"),
        ({"max_search_results": True}, "whole number above 0, got True"),
        ({"to_record": "read"}, "to_record"),
        ({"on_recall": 3}, "on_recall"),
        ({"record_filter": 3}, "record_filter"),
        ({"policy": "stock"}, "policy must be a RecallPolicy"),
        ({"stats": {}}, "stats must be a RecallStats"),
        ({"tool_stats": {}}, "tool_stats must be a RecallStats"),
        ({"decider": "embeded"}, "did you mean 'embedded'"),
        ({"decider_check": "maybe"}, "decider_check must be"),
        ({"context_tag": "no tag"}, "plain XML name"),
        ({"policy": RecallPolicy(router={"pinned": ["fact"]})}, "pinned names 'fact'.*did you mean 'facts'"),
        ({"policy": RecallPolicy(router={"descriptions": {"x": "y"}})}, "descriptions names 'x'.*they are 'facts'"),
        ({"trace_path": "/"}, "trace"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_fix(settings, says):
    with pytest.raises(ConfigurationError, match=says):
        GatedMemoryManager([ListStore("facts")], **{"decider": None, **settings})


def test_what_the_parent_refuses_is_refused():
    with pytest.raises(ValueError, match="at least one store"):
        GatedMemoryManager([])
    with pytest.raises(ValueError, match="duplicate store name 'facts'"):
        GatedMemoryManager([ListStore("facts"), ListStore("facts")], decider=None)


def test_a_decider_that_cannot_be_loaded_is_told_by_warm():
    class Unloadable:
        def warm(self):
            raise OSError("no such file")

        def decide(self, state, questions):
            return {}

    manager = GatedMemoryManager([ListStore("facts")], decider=Unloadable(), decider_check="off")

    with pytest.raises(DeciderUnavailable, match="no such file"):
        manager.warm()


def test_counters_are_shared_and_logged_at_the_first_failure(caplog):
    stats = RecallStats()
    with caplog.at_level(logging.INFO, "strands_gated_memory"):
        remembering(ListStore("facts"), stats=stats)(ASK)
        remembering(ListStore("facts", error=OSError("down")), stats=stats)(ASK)

    assert stats.turns == 2
    assert caplog.text.count("recall counters") == 1


def test_text_of_users_is_never_logged(caplog):
    error = RuntimeError("searching for What do I drink? failed")
    with caplog.at_level(logging.INFO):
        agent = remembering(ListStore("facts", "Likes tea"), ListStore("plans", error=error), decider=yes)
        agent(ASK)

    ours = "\n".join(record.getMessage() for record in caplog.records if record.name == "strands_gated_memory")
    assert "RuntimeError" in ours
    assert "drink" not in ours
    assert "tea" not in ours


def test_a_manager_of_strands_own_is_replaced_in_one_line():
    """The same call with the other class, all arguments of the parent by position."""
    model = ScriptedModel(itertools.repeat("Fine."))
    manager = GatedMemoryManager([ListStore("facts", "Likes tea")], True, False, True, decider=None)

    agent = Agent(model=model, memory_manager=manager, callback_handler=None)
    agent(ASK)

    assert isinstance(manager, MemoryManager)
    assert last_block(agent) == ["Likes tea"]


@pytest.mark.parametrize("part", ["content", "metadata"])
@pytest.mark.parametrize("error", [LookupError, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_an_entry_that_raises_when_read_costs_itself(part, error):
    class Trap:
        content, metadata = "Rents a bike", None

    def spring(_):
        raise error("trap")

    setattr(Trap, part, property(spring))
    store = ListStore("facts", "Likes tea", entries=[Trap()])
    agent = remembering(store)

    assert agent(ASK).stop_reason == "end_turn"
    assert last_block(agent) == ["Likes tea"]
    assert [one.reason for one in agent.memory_manager.last_recall.dropped] == ["malformed"]


async def late(context):
    return True


@pytest.mark.parametrize(
    ("injection", "says"),
    [
        ("yes", "injection must be True, False or a mapping, got 'yes'"),
        ({"triger": "userTurn"}, "injection has no setting 'triger'; did you mean 'trigger'?"),
        ({"trigger": "sometimes"}, "injection trigger must be .* got 'sometimes'"),
        ({"trigger": late}, "injection trigger is async"),
        ({"query": "tea"}, "injection query cannot be called as function\\(context\\): it is of type str"),
        ({"format": lambda: ""}, "injection format cannot be called"),
    ],
)
def test_injection_settings_that_could_never_work_are_refused_at_once(injection, says):
    with pytest.raises(ConfigurationError, match=says):
        GatedMemoryManager([ListStore("facts")], injection=injection)


@pytest.mark.parametrize(
    ("stores", "says"),
    [
        (None, "stores must be a list of memory stores, got NoneType"),
        ("facts", "stores must be a list of memory stores, got str"),
        (["facts"], "a store of type str needs a name that is a text, got None"),
        ([ListStore(5)], "a store of type ListStore needs a name that is a text, got 5"),
    ],
)
def test_stores_that_could_never_be_searched_are_refused_at_once(stores, says):
    with pytest.raises(ConfigurationError, match=says):
        GatedMemoryManager(stores)
