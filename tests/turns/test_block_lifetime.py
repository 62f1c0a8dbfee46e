"""How long the recall block lives: on every model call of its turn, once, and nowhere else."""

import asyncio
import threading

import pytest
from strands import Agent, tool
from strands.types.exceptions import ModelThrottledException
from strands.types.tools import ToolContext
from turn_builders import Hanging, blocks_kept, blocks_per_call, last_block, no, probabilities, yes

from strands_gated_memory.testing.model import ScriptedModel, ToolCall


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


@tool(context=True)
def order(tool_context: ToolContext) -> str:
    """Order, once a human agrees."""
    return f"ordered: {tool_context.interrupt('approval', reason='order?')}"


def test_ten_turns_show_one_block_per_call_and_keep_none(bench):
    """Nothing accumulates: each model call has its own turn's block and no earlier one."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes))

    for number in range(10):
        agent(f"What do I drink, question {number}?")
        assert blocks_kept(agent) == []

    assert blocks_per_call(agent) == [1] * 10
    assert last_block(agent) == ["Likes tea"]


def test_the_block_is_gone_when_the_next_turn_needs_none(bench):
    """A closed gate after an open one shows nothing, not the old block."""
    bench.remember("Likes tea")

    def tea_only(state, questions):
        return (yes if "drink" in state["message"] else no)(state, questions)

    agent = bench.agent(bench.manager(decider=tea_only))
    agent("What do I drink?")
    agent("Thanks!")

    assert blocks_per_call(agent) == [1, 0]


@pytest.mark.parametrize("position", ["after", "before"])
def test_every_call_of_a_tool_loop_shows_the_block_once(bench, position):
    """Three model calls, two tool results: one block each, and the tool result stays first in its message."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes, policy={"inject": {"position": position}})
    agent = bench.agent(manager, ToolCall("clock", {}, "t1"), ToolCall("clock", {}, "t2"), "Tea.", tools=[clock])

    agent("What do I drink now?")

    assert blocks_per_call(agent) == [1, 1, 1]
    assert len(bench.searches()) == 1
    for messages in agent.model.calls[1:]:
        results = [m for m in messages if any("toolResult" in block for block in m["content"])]
        assert all("toolResult" in m["content"][0] for m in results)
    assert blocks_kept(agent) == []


@pytest.mark.parametrize("async_mode", [False, True], ids=["sync-mode", "async-mode"])
@pytest.mark.parametrize("way", ["call", "invoke_async", "stream_async"])
def test_every_way_of_invoking_shows_one_block(bench, async_mode, way):
    """agent(), invoke_async and stream_async, with and without `async_mode`."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes, async_mode=async_mode), tools=[clock])

    async def talk():
        if way == "invoke_async":
            return str(await agent.invoke_async("What do I drink?"))
        events = [event async for event in agent.stream_async("What do I drink?")]
        return "".join(event["data"] for event in events if "data" in event)

    answer = str(agent("What do I drink?")) if way == "call" else asyncio.run(talk())

    assert answer.strip() == "Fine."
    assert blocks_per_call(agent) == [1]
    assert blocks_kept(agent) == []


def test_async_mode_leaves_the_event_loop_free(bench):
    """A search that another task of the loop ends: it would hang for ever if it kept the loop."""
    bench.remember("Likes tea")
    with Hanging() as hanging:
        manager = bench.at_each("RetrieveMemoryRecords", lambda path: hanging()).manager(decider=yes, async_mode=True)
        agent = bench.agent(manager)

        async def other_task():
            while not hanging.begun.is_set():
                await asyncio.sleep(0.001)
            hanging.release()

        async def talk():
            other = asyncio.create_task(other_task())
            await agent.invoke_async("What do I drink?")
            await other

        asyncio.run(talk())

    assert blocks_per_call(agent) == [1]


def test_a_turn_cut_short_by_its_reader_goes_on_with_its_block(bench):
    """A stream that is closed after its first event has not answered: `agent()` is still about that ask."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=probabilities(gate=0.9)))

    async def talk():
        stream = agent.stream_async("What do I drink?")
        async for event in stream:
            if "data" in event:
                break
        await stream.aclose()
        await agent.invoke_async(None)

    asyncio.run(talk())

    assert blocks_per_call(agent) == [1, 1]
    assert len(bench.searches()) == 1


@pytest.mark.parametrize("mode", ["turn", "history"])
def test_a_recall_that_ends_after_its_turn_was_cancelled_touches_no_later_turn(bench, mode):
    """In async mode a recall runs on in its thread; here it ends while the next turn runs a tool."""
    bench.remember("Likes tea")
    asked, release, late = threading.Event(), threading.Event(), threading.Event()

    def decide(state, questions):
        if "drink" in state["message"]:
            asked.set()
            assert release.wait(60)
        return (yes if "drink" in state["message"] else no)(state, questions)

    def note(recall):
        if recall.records:
            late.set()

    @tool
    def work() -> str:
        """Work, until the other recall is over."""
        release.set()
        return "done" if late.wait(60) else "never"

    policy = {"deadline_s": 20.0, "inject": {"mode": mode}}
    manager = bench.manager(decider=decide, policy=policy, on_recall=note, async_mode=True)
    agent = bench.agent(manager, ToolCall("work", {}, "t1"), "Done.", tools=[work])

    async def talk():
        turn = asyncio.create_task(agent.invoke_async("What do I drink?"))
        assert await asyncio.to_thread(asked.wait, 10)
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
        await agent.invoke_async("Work, please.")

    asyncio.run(talk())

    assert late.is_set()
    assert blocks_per_call(agent) == [0, 0]
    assert blocks_kept(agent) == []
    assert manager.stats.turns == 2


def test_the_block_survives_an_interrupt_and_ends_with_the_turn(bench):
    """A tool asks a human: the resumed call is still the same turn; the next call without an ask is not."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes), ToolCall("order", {}), "Ordered.", "Yes?", tools=[order])

    interrupted = agent("Order my drink")
    assert interrupted.stop_reason == "interrupt"
    (asked,) = interrupted.interrupts
    agent([{"interruptResponse": {"interruptId": asked.id, "response": "go"}}])
    agent(None)

    assert blocks_per_call(agent) == [1, 1, 0]
    assert len(bench.searches()) == 1
    assert blocks_kept(agent) == []


def test_a_throttled_model_is_retried_with_the_same_block(bench):
    """ModelThrottled: one search, one block on both calls."""
    from strands import ModelRetryStrategy

    bench.remember("Likes tea")
    retry = ModelRetryStrategy(max_attempts=2, initial_delay=0, max_delay=0)
    throttled = ModelThrottledException("slow down")
    agent = bench.agent(bench.manager(decider=yes), throttled, "Tea.", retry_strategy=retry)

    agent("What do I drink?")

    assert blocks_per_call(agent) == [1, 1]
    assert len(bench.searches()) == 1


def test_a_model_error_reaches_the_caller_and_its_block_lives_until_the_answer(bench):
    """`agent()` after the error is the same turn; after the answer there is none to show a block for."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)
    agent = bench.agent(manager, ValueError("model is down"), "Hello.", "Anything else?")

    with pytest.raises(ValueError, match="model is down"):
        agent("What do I drink?")
    agent(None)
    agent(None)

    assert blocks_per_call(agent) == [1, 1, 0]
    assert len(bench.searches()) == 1
    assert manager.stats.turns == 1


def test_a_sub_agent_never_sees_the_block(bench):
    """An agent used as a tool gets its input alone."""
    bench.remember("Likes tea")
    helper_model = ScriptedModel(["From the helper."])
    helper = Agent(model=helper_model, name="helper", description="Helps.", callback_handler=None)
    agent = bench.agent(
        bench.manager(decider=yes), ToolCall("helper", {"input": "help"}), "Done.", tools=[helper.as_tool()]
    )

    agent("What do I drink?")

    assert len(helper_model.calls) == 1
    assert "Likes tea" not in str(helper_model.calls)
    assert blocks_per_call(agent) == [1, 1]


def test_two_agents_on_one_manager_have_a_block_each(bench):
    """State is per agent: the second one's turn neither shows nor clears the first one's block."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)
    second = bench.agent(manager, "Hello.", agent_id="second")
    seen = []

    @tool
    def ask_second() -> str:
        """Ask the other agent, in the middle of the first one's turn."""
        second("What do I drink, second?")
        seen.extend(blocks_per_call(second))
        return "asked"

    first = bench.agent(manager, ToolCall("ask_second", {}), "Done.", agent_id="first", tools=[ask_second])
    first("What do I drink, first?")

    assert seen == [1]
    assert blocks_per_call(first) == [1, 1]
    assert manager.stats.turns == 2


def test_two_sessions_in_threads_keep_apart(bench):
    """Two managers, two agents, at once: each sees its own session's blocks."""
    bench.remember("Likes tea", namespace="/facts/anna/").remember("Likes rum", namespace="/facts/otto/")
    agents = {
        actor: bench.agent(bench.manager(decider=yes, actor_id=actor, session_id=f"of-{actor}"))
        for actor in ("anna", "otto")
    }
    together = threading.Barrier(2)

    def talk(actor):
        for number in range(3):
            together.wait(timeout=60)
            agents[actor](f"What do I drink? {number}")

    threads = [threading.Thread(target=talk, args=(actor,)) for actor in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert blocks_per_call(agents["anna"]) == blocks_per_call(agents["otto"]) == [1, 1, 1]
    assert "rum" not in str(agents["anna"].model.calls)
    assert "tea" not in str(agents["otto"].model.calls)
