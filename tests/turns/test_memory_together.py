"""The memory manager beside the rest of Strands: session managers, other agents, graphs, formats, interrupts."""

import asyncio
import gc
import itertools
import weakref

import pytest
from memory_builders import ListStore, remembering
from pydantic import BaseModel
from strands import Agent, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.memory import ExtractionConfig, InvocationTrigger
from strands.multiagent import GraphBuilder, Swarm
from strands.session import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException
from strands.types.tools import ToolContext
from turn_builders import GATED, STOCK, blocks_kept, blocks_per_call, last_block, yes

from strands_gated_memory import GatedMemoryManager
from strands_gated_memory.testing.model import ScriptedModel, ToolCall, blocks_shown

ASK = "What do I drink?"


class Drink(BaseModel):
    """What to drink."""

    name: str


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


@tool(context=True)
def order(tool_context: ToolContext) -> str:
    """Order, once a human agrees."""
    return f"ordered: {tool_context.interrupt('approval', reason='order?')}"


# Session managers


def test_beside_a_session_manager_of_files_nothing_recalled_is_stored(tmp_path):
    def agent(*replies):
        manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path))
        return remembering(ListStore("facts", "Likes tea"), replies=replies, agent={"session_manager": manager})

    agent("Tea.")(ASK)
    restored = agent("Still tea.")
    restored("And now?")

    assert blocks_per_call(restored) == [1]
    assert len(restored.messages) == 4
    assert "Likes tea" not in "".join(path.read_text() for path in tmp_path.rglob("*.json"))


@pytest.mark.parametrize("kind", [STOCK, GATED])
def test_beside_agentcores_session_manager_that_only_stores(bench, kind):
    """The advised pair: the session manager keeps the session, the memory manager recalls."""
    session_manager = bench.manager(kind, namespaces={})
    agent = remembering(ListStore("facts", "Likes tea"), agent={"session_manager": session_manager})

    agent(ASK)

    assert blocks_per_call(agent) == [1]
    assert ASK in bench.stored()
    assert "Likes tea" not in bench.stored()


@pytest.mark.parametrize("mode", ["turn", "history"])
def test_beside_a_session_manager_that_recalls_too_each_shows_its_own_block(bench, mode):
    """Neither takes the other's block for something that the user typed."""
    session_manager = bench.remember("Likes milk").manager(decider=yes, policy={"inject": {"mode": mode}})
    agent = remembering(
        ListStore("facts", "Likes tea"),
        replies=[ToolCall("clock", {}), "Tea."],
        agent={"session_manager": session_manager, "tools": [clock]},
    )

    agent(ASK)

    assert blocks_per_call(agent) == [2, 2]
    assert "&lt;" not in str(agent.model.calls)
    assert [query for query, _ in agent.memory_manager._store_of["facts"].searched] == [ASK]


def test_beside_a_stock_session_manager_that_recalls_too_the_query_is_what_the_user_said(bench):
    """That manager writes into the user's message; with a tag of its own each block stays one."""
    store = ListStore("facts", "Likes tea")
    session_manager = bench.remember("Likes milk").manager(STOCK)
    agent = remembering(store, context_tag="memory", agent={"session_manager": session_manager})

    agent(ASK)

    assert store.searched[0][0] == ASK
    assert len(blocks_shown(agent.model.calls[0], "memory")) == 1
    assert len(blocks_shown(agent.model.calls[0])) == 1


# Other agents


def test_a_sub_agent_recalls_for_its_own_ask_in_the_middle_of_a_turn():
    """Both share one manager: the outer turn's block is still there after the tool."""
    store = ListStore("facts", "Likes tea")
    manager = GatedMemoryManager([store], decider=None)
    waiter = remembering(manager=manager, replies=["Tea it is."])

    @tool
    def ask_waiter(question: str) -> str:
        """Ask the waiter."""
        return str(waiter(question))

    agent = remembering(
        manager=manager, replies=[ToolCall("ask_waiter", {"question": "What is there?"}), "Tea."],
        agent={"tools": [ask_waiter]},
    )  # fmt: skip
    agent(ASK)

    assert blocks_per_call(agent) == [1, 1]
    assert blocks_per_call(waiter) == [1]
    assert [query for query, _ in store.searched] == [ASK, "What is there?"]
    assert manager.stats.turns == 2


def test_two_agents_share_one_manager_at_the_same_time():
    """Each has its own ask and block, on one loop."""
    stores = {}

    class Echo(ListStore):
        async def search(self, query, options=None):
            if len(self.searched) == 0:
                await super().search(query, options)
                await stores["second"].wait()
            else:
                await super().search(query, options)
                stores["second"].set()
            return [type(self.entries[0])(f"about {query}")]

    async def serve():
        stores["second"] = asyncio.Event()
        manager = GatedMemoryManager([Echo("facts", "Likes tea")], decider=None)
        agents = [remembering(manager=manager) for _ in range(2)]
        await asyncio.gather(*(agent.invoke_async(f"question {n}") for n, agent in enumerate(agents)))
        return agents

    agents = asyncio.run(serve())

    assert [last_block(agent) for agent in agents] == [["about question 0"], ["about question 1"]]


def test_each_node_of_a_graph_recalls_for_what_it_is_given():
    store = ListStore("facts", "Likes tea")
    manager = GatedMemoryManager([store], decider=None)
    nodes = {name: remembering(manager=manager, replies=[f"{name} done"] * 2, agent={"name": name}) for name in "ab"}
    builder = GraphBuilder()
    for name, node in nodes.items():
        builder.add_node(node, name)
    builder.add_edge("a", "b")
    builder.set_entry_point("a")
    builder.set_max_node_executions(4)

    result = builder.build()(ASK)

    assert result.status.value == "completed"
    assert [blocks_per_call(node) for node in nodes.values()] == [[1], [1]]
    assert manager.stats.turns == 2


def test_each_agent_of_a_swarm_recalls_for_what_it_is_given():
    store = ListStore("facts", "Likes tea")
    manager = GatedMemoryManager([store], decider=None)
    handoff = ToolCall("handoff_to_agent", {"agent_name": "cook", "message": "Cook something"})
    waiter = remembering(manager=manager, replies=[handoff, "Over to the cook."], agent={"name": "waiter"})
    cook = remembering(manager=manager, replies=["Cooked."], agent={"name": "cook"})

    result = Swarm([waiter, cook])(ASK)

    assert result.status.value == "completed"
    assert set(blocks_per_call(waiter)) == {1}
    assert blocks_per_call(cook) == [1]
    assert manager.stats.turns == 2


def test_an_agent_that_is_gone_is_collected_while_its_manager_lives():
    manager = GatedMemoryManager([ListStore("facts", "Likes tea")], decider=None)
    agent = remembering(manager=manager)
    agent(ASK)
    gone = weakref.ref(agent)

    del agent
    gc.collect()

    assert gone() is None


# Ways of a turn


def test_structured_output_is_no_ask_and_has_the_block():
    store = ListStore("facts", "Likes tea")
    agent = remembering(store, replies=["Tea.", ToolCall("Drink", {"name": "tea"})])

    result = agent(ASK, structured_output_model=Drink)

    assert result.structured_output == Drink(name="tea")
    assert set(blocks_per_call(agent)) == {1}
    assert len(store.searched) == 1


def test_a_stream_shows_the_block_and_streams():
    agent = remembering(ListStore("facts", "Likes tea"))

    async def talk():
        return "".join([event["data"] async for event in agent.stream_async(ASK) if "data" in event])

    assert asyncio.run(talk()) == "Fine."
    assert blocks_per_call(agent) == [1]


def test_a_stream_that_its_reader_leaves_has_not_answered():
    store = ListStore("facts", "Likes tea")
    agent = remembering(store)

    async def talk():
        stream = agent.stream_async(ASK)
        async for event in stream:
            if "data" in event:
                break
        await stream.aclose()

    asyncio.run(talk())
    agent()

    assert blocks_per_call(agent) == [1, 1]
    assert len(store.searched) == 1


def test_an_interrupt_keeps_the_block_until_the_ask_is_answered():
    store = ListStore("facts", "Likes tea")
    agent = remembering(store, replies=[ToolCall("order", {}), "Ordered.", "Yes?"], agent={"tools": [order]})

    (interrupt,) = agent(ASK).interrupts
    agent([{"interruptResponse": {"interruptId": interrupt.id, "response": "go"}}])
    agent()

    assert blocks_per_call(agent) == [1, 1, 0]
    assert len(store.searched) == 1


def test_an_interrupt_that_another_process_answers_recalls_again(tmp_path):
    store = ListStore("facts", "Likes tea")

    def agent(*replies):
        manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path))
        return remembering(store, replies=replies, agent={"session_manager": manager, "tools": [order]})

    (interrupt,) = agent(ToolCall("order", {}))(ASK).interrupts
    second = agent("Ordered.")
    second([{"interruptResponse": {"interruptId": interrupt.id, "response": "go"}}])

    assert [query for query, _ in store.searched] == [ASK, ASK]
    assert blocks_per_call(second) == [1]


@pytest.mark.parametrize("summarising", [False, True], ids=["dropped", "summarised"])
def test_a_conversation_that_is_reduced_holds_no_memory(summarising):
    """In the middle of a turn: the ask goes, and its block with it."""
    calls = [ToolCall("clock", {}, f"t{number}") for number in range(3)]
    steps = itertools.count()

    def reply(messages):
        if "summarize" in str(messages[-1]["content"]).lower():
            return f"Summary of {messages}"
        step = next(steps)
        if step == 3:
            return ContextWindowOverflowException("too long")
        return calls[step] if step < 3 else "Tea."

    reducing = (
        SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=2)
        if summarising
        else SlidingWindowConversationManager(window_size=4, should_truncate_results=False)
    )
    agent = remembering(
        ListStore("facts", "Likes tea"),
        agent={"model": ScriptedModel(reply), "tools": [clock], "conversation_manager": reducing},
    )

    result = agent(ASK)

    assert result.stop_reason == "end_turn"
    assert "Likes tea" not in str(agent.messages)
    assert "Likes tea" not in str(reducing.get_state())
    assert blocks_shown(agent.model.calls[-1]) == []


@pytest.mark.parametrize("mode", ["turn", "history"])
def test_extraction_never_saves_what_was_recalled(mode):
    """Recalled memories that are extracted again fill stores with junk."""
    saved = []

    class Saving(ListStore):
        writable = True

        async def add_messages(self, messages, context=None):
            saved.extend(messages)

    store = Saving("facts", "Likes tea")
    store.extraction = ExtractionConfig(trigger=InvocationTrigger())
    agent = remembering(store, policy={"inject": {"mode": mode}})

    agent(ASK)
    agent("And at night?")

    assert [m["content"][0]["text"] for m in saved if m["role"] == "user"] == [ASK, "And at night?"]
    assert "Likes tea" not in str(saved)


def test_nothing_accumulates_over_many_turns():
    agent = remembering(ListStore("facts", "Likes tea"))

    for number in range(10):
        agent(f"Question {number}?")

    assert blocks_per_call(agent) == [1] * 10
    assert blocks_kept(agent) == []
    assert isinstance(agent, Agent)
