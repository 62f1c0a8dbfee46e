"""Invocations without a text of the user: they go on with the last ask that has no final answer, counted once."""

import asyncio
import copy

import pytest
from pydantic import BaseModel
from strands import tool
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.hooks import BeforeModelCallEvent
from strands.types.exceptions import EventLoopException
from strands.types.tools import ToolContext
from turn_builders import FACTS, Asked, blocks_kept, blocks_per_call, broken, last_block, yes

from strands_gated_memory import RecallFailed
from strands_gated_memory.testing.model import ScriptedModel, ToolCall

ASK = "What do I drink?"
RESULT = {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "noon"}]}}
HELLO = {"role": "assistant", "content": [{"text": "Hello"}]}
CALL = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "clock", "input": {}}}]}


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


def user(*texts):
    return {"role": "user", "content": [{"text": text} for text in texts]}


def failed_turn(bench, manager, *replies, ask=ASK, **settings):
    """Return an agent whose first invocation ended with an error of the model."""
    agent = bench.agent(manager, ValueError("down"), *replies, **settings)
    with pytest.raises(ValueError, match="down"):
        agent(ask)
    return agent


@pytest.mark.parametrize("retry", [None, [], [{"role": "user", "content": []}]], ids=["none", "empty", "no content"])
def test_a_retry_after_an_error_keeps_its_block(bench, retry):
    """One search, one turn; the answer ends it."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = failed_turn(bench, manager, "Tea.", "Yes?")

    agent(retry)
    agent(None)

    assert blocks_per_call(agent) == [1, 1, 0]
    assert bench.queries() == [ASK]
    assert manager.stats.turns == 1


def test_a_retry_of_a_turn_that_failed_after_a_tool_keeps_its_block(bench):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, ToolCall("clock", {}, "t1"), ValueError("down"), "Tea.", tools=[clock])
    with pytest.raises(EventLoopException, match="down"):
        agent(ASK)

    agent()

    assert blocks_per_call(agent) == [1, 1, 1]
    assert bench.queries() == [ASK]


def test_a_message_that_the_application_appended_is_the_ask_of_an_empty_call(bench):
    """No MessageAddedEvent came for it; the question after an answer is newer than the answered one."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager)
    agent.messages.append(user(ASK))
    agent()
    agent.messages.append(user("And at night?"))
    agent()

    assert bench.queries() == [ASK, "And at night?"]
    assert blocks_per_call(agent) == [1, 1]
    assert manager.stats.turns == 2


def test_a_question_appended_after_an_error_replaces_the_unanswered_one(bench):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = failed_turn(bench, manager, "Tea.")

    agent.messages.append(user("And at night?"))
    agent()

    assert bench.queries() == [ASK, "And at night?"]
    assert "Likes tea" in str(agent.model.calls[-1][-1])


def test_a_retry_in_another_process_recalls_again(bench):
    """The block of the process that failed is gone with it."""
    failed_turn(bench, bench.remember("Likes tea").manager(decider=yes))
    asked = Asked()
    manager = bench.manager(decider=asked)
    agent = bench.agent(manager)

    agent()

    assert asked.messages[0] == ASK
    assert blocks_per_call(agent) == [1]
    assert manager.stats.turns == 1


def test_a_turn_stopped_by_a_limit_goes_on_with_its_block(bench):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, ToolCall("clock", {}), "Tea.", tools=[clock])

    stopped = agent(ASK, limits={"turns": 1})
    agent()

    assert stopped.stop_reason == "limit_turns"
    assert blocks_per_call(agent) == [1, 1]
    assert bench.queries() == [ASK]


def test_the_prompt_of_structured_output_is_not_the_ask_of_a_retry(bench):
    """The model fails when it is told to use the format: the user's question is still the ask."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, "Tea.", ValueError("down"), ToolCall("Drink", {"name": "tea"}), "Yes?")
    with pytest.raises(EventLoopException, match="down"):
        agent(ASK, structured_output_model=Drink)

    agent(structured_output_model=Drink)
    agent()

    assert bench.queries() == [ASK]
    assert blocks_per_call(agent) == [1, 1, 1, 0]


@pytest.mark.parametrize("asks", [[user(ASK)], [user("Hi"), HELLO, user(ASK)]])
def test_a_tool_result_from_the_client_goes_on_with_its_ask(bench, asks):
    """The client ran the tool: its result is the next invocation's only input."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, "At noon, tea.", messages=[*asks, CALL])

    agent([RESULT])

    assert bench.queries() == [ASK]
    assert blocks_per_call(agent) == [1]
    assert manager.stats.turns == 1


def test_a_tool_result_and_a_question_in_one_message(bench):
    """The question is the ask; the block stands in its text, and the message has no block more than the user sent."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, "Tea.", messages=[user("What time?"), CALL])

    agent([RESULT, {"text": "And for Sunday?"}])

    assert bench.queries() == ["And for Sunday?"]
    (shown,) = [m for m in agent.model.calls[0] if "Sunday" in str(m)]
    assert [next(iter(block)) for block in shown["content"]] == ["toolResult", "text"]
    assert shown["content"][1]["text"] == "And for Sunday?\n\n<user_context>\nLikes tea\n</user_context>"
    assert "Likes tea" not in str(agent.messages)


@pytest.mark.parametrize("mode", ["turn", "history"])
def test_an_interrupt_answered_by_another_process_recalls_again(bench, mode):
    """A rebuilt agent over the restored session: the block is made for the ask before the tool call."""
    policy = {"inject": {"mode": mode}}
    first = bench.agent(
        bench.remember("Likes tea").manager(decider=yes, policy=policy), ToolCall("order", {}), tools=[order]
    )
    (interrupt,) = first("Order my drink").interrupts
    manager = bench.manager(decider=yes, policy=policy)
    second = bench.agent(manager, "Ordered.", "Yes?", tools=[order])

    second([{"interruptResponse": {"interruptId": interrupt.id, "response": "go"}}])
    second()

    assert bench.queries() == ["Order my drink"] * 2
    assert manager.stats.turns == 1
    assert blocks_per_call(second) == ([1, 0] if mode == "turn" else [1, 1])
    asks = [m for m in second.model.calls[0] if "Order my drink" in str(m)]
    assert ["Likes tea" in str(ask) for ask in asks] == [True]


def test_an_interrupt_that_asks_twice_keeps_the_block(bench):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, ToolCall("order", {}, "t1"), ToolCall("order", {}, "t2"), "Ordered.", tools=[order])
    result = agent("Order my drink")
    for _ in range(2):
        (interrupt,) = result.interrupts
        result = agent([{"interruptResponse": {"interruptId": interrupt.id, "response": "go"}}])

    assert result.stop_reason == "end_turn"
    assert blocks_per_call(agent) == [1, 1, 1]
    assert manager.stats.turns == 1


@pytest.mark.parametrize("again", [None, [{"role": "user", "content": [RESULT]}]], ids=["none", "tool result"])
def test_after_the_answer_there_is_no_ask_to_go_on_with(bench, again):
    agent = bench.agent(bench.remember("Likes tea").manager(decider=yes))
    agent(ASK)

    agent(again)

    assert bench.queries() == [ASK]
    assert blocks_per_call(agent) == [1, 0]


@pytest.mark.parametrize("conversation", [[], [user("Hi"), HELLO]])
def test_a_tool_result_without_an_ask_is_counted(bench, conversation):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, messages=list(conversation))

    agent([RESULT])

    assert manager.last_recall.trace.failure == "ask_not_found"
    assert (manager.stats.turns, manager.stats.as_dict()["turn_failures"]) == (1, 1)
    assert blocks_per_call(agent) == [0]


def test_a_tool_result_whose_ask_the_window_dropped_is_counted(bench):
    """The other process has restored what the window left: no text of the user."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(
        manager, messages=[user(ASK), CALL], conversation_manager=SlidingWindowConversationManager(window_size=2)
    )
    del agent.messages[0]

    agent([RESULT])

    assert manager.last_recall.trace.failure == "ask_not_found"


def test_a_switched_off_retry_hides_the_block_and_a_later_one_shows_it(bench):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = failed_turn(bench, manager, ValueError("down"), "Tea.")
    with pytest.raises(ValueError, match="down"):
        agent(invocation_state={"recall": False})

    agent()

    assert blocks_per_call(agent) == [1, 0, 1]
    assert manager.stats.turns == 1


def test_a_turn_that_began_switched_off_recalls_when_it_is_switched_on(bench):
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, ValueError("down"), "Tea.")
    with pytest.raises(ValueError, match="down"):
        agent(ASK, invocation_state={"recall": False})

    agent()

    assert blocks_per_call(agent) == [0, 1]
    assert bench.queries() == [ASK]


def test_a_block_of_another_user_is_not_kept(bench):
    """The manager is pointed at another user between the error and the retry."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = failed_turn(bench, manager, "Fine.")

    manager.config.actor_id = "somebody-else"
    agent()

    assert blocks_per_call(agent) == [1, 0]


def test_history_mode_keeps_the_block_in_the_conversation_once(bench):
    manager = bench.remember("Likes tea").manager(decider=yes, policy={"inject": {"mode": "history"}})
    agent = failed_turn(bench, manager, "Tea.")

    agent()

    assert blocks_per_call(agent) == [1, 1]
    assert len(blocks_kept(agent)) == 1
    assert bench.queries() == [ASK]


def test_the_history_of_a_resumed_ask_is_what_came_before_it(bench):
    asked = Asked()
    before = [user("Hi"), HELLO]
    agent = bench.agent(bench.manager(decider=asked), messages=[*before, user(ASK), CALL])

    agent([RESULT])

    assert asked.states[0] == {"message": ASK, "previous": ["Hi", "Hello"]}


def test_in_async_mode_a_resumed_recall_leaves_the_event_loop_free(bench):
    """While the search waits for it, another task of the loop runs."""
    bench.remember("Likes tea")
    loop_ran, waited = asyncio.Event(), []

    def decide(state, questions):
        waited.append(asyncio.run_coroutine_threadsafe(loop_ran.wait(), loops[0]).result(10))
        return yes(state, questions)

    loops = []
    manager = bench.manager(decider=decide, policy={"deadline_s": 20.0}, async_mode=True)
    agent = bench.agent(manager, messages=[user(ASK)])

    async def talk():
        loops.append(asyncio.get_running_loop())
        turn = asyncio.create_task(agent.invoke_async(None))
        loop_ran.set()
        await turn

    asyncio.run(talk())

    assert waited[0] is True
    assert blocks_per_call(agent) == [1]


@pytest.mark.parametrize("async_mode", [False, True])
def test_a_strict_policy_raises_for_a_resumed_ask_too(bench, async_mode):
    manager = bench.manager(decider=broken, policy={"on_failure": "raise"}, async_mode=async_mode)
    agent = bench.agent(manager, messages=[user(ASK)])

    with pytest.raises(RecallFailed, match="gate"):
        asyncio.run(agent.invoke_async(None))

    assert manager.stats.turns == 1


def test_a_failure_nobody_foresaw_costs_a_resumed_turn_its_memory_alone(bench):
    manager = bench.remember("Likes tea").manager(decider=yes, namespaces=(FACTS,))
    agent = bench.agent(manager, messages=[user(ASK)])
    manager.config.context_tag = "no name"

    result = agent()

    assert result.stop_reason == "end_turn"
    assert manager.stats.as_dict()["turn_failures"] == 1


def test_two_agents_that_failed_keep_their_own_blocks(bench):
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)
    first = failed_turn(bench, manager, "Tea.", agent_id="first")
    second = failed_turn(bench, manager, "Rum.", ask="What do I eat?", agent_id="second")

    first()
    second()

    assert last_block(first) == last_block(second) == ["Likes tea"]
    assert bench.queries() == [ASK, "What do I eat?"]


def test_the_scripted_model_says_what_it_was_shown(bench):
    """`blocks_shown` finds a block within a text, which is where a mixed message holds it."""
    manager = bench.remember("Likes tea").manager(decider=yes, policy={"inject": {"position": "before"}})
    agent = bench.agent(manager, model=ScriptedModel(["Tea."]))

    agent([RESULT, {"text": ASK}])

    assert last_block(agent) == ["Likes tea"]
    assert agent.model.calls[0][0]["content"][1]["text"].endswith(f"\n\n{ASK}")


def test_a_recorded_tool_call_between_error_and_retry_answers_nothing(bench):
    """Strands records a direct tool call as a question of the user and an answer of the assistant."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = failed_turn(bench, manager, "Tea.", tools=[clock])

    agent.tool.clock()
    agent.tool.clock(user_message_override="For the record:")
    agent()

    assert last_block(agent) == ["Likes tea"]
    assert bench.queries() == [ASK]
    assert manager.stats.turns == 1


def test_a_recorded_tool_call_after_the_answer_is_nothing_to_go_on_with(bench):
    agent = bench.agent(bench.remember("Likes tea").manager(decider=yes), tools=[clock])
    agent(ASK)

    agent.tool.clock()
    agent()

    assert bench.queries() == [ASK]
    assert blocks_per_call(agent) == [1, 0]


def test_a_retry_of_structured_output_in_another_process_asks_what_the_user_asked(bench):
    """The model failed when Strands told it to use the format: that is no text of the user, and no answer came."""
    first = bench.agent(bench.remember("Likes tea").manager(decider=yes), "Tea.", ValueError("down"))
    with pytest.raises(EventLoopException, match="down"):
        first(ASK, structured_output_model=Drink)
    second = bench.agent(bench.manager(decider=yes), ToolCall("Drink", {"name": "tea"}))

    second(structured_output_model=Drink)

    assert bench.queries() == [ASK, ASK]
    assert blocks_per_call(second) == [1]


def test_structured_output_that_was_made_leaves_another_process_no_ask(bench):
    """The format was used after the prompt for it: the question has its answer."""
    first = bench.agent(bench.remember("Likes tea").manager(decider=yes), "Tea.", ToolCall("Drink", {"name": "tea"}))
    first(ASK, structured_output_model=Drink)
    second = bench.agent(bench.manager(decider=yes))

    second()

    assert bench.queries() == [ASK]
    assert blocks_per_call(second) == [0]


def test_a_cancelled_turn_goes_on_with_its_block(bench):
    """What Strands says for the assistant when a turn is cancelled is no answer."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager)
    agent.add_hook(lambda _: None if agent.model.calls else agent.cancel(), BeforeModelCallEvent)

    cancelled = agent(ASK)
    agent()
    agent()

    assert cancelled.stop_reason == "cancelled"
    assert last_block(agent) == []
    assert bench.queries() == [ASK]
    assert "Likes tea" in str(agent.model.calls[-2])
    assert manager.stats.turns == 1


def test_a_retry_over_rebuilt_messages_keeps_its_block(bench):
    """The application has put the conversation together again, without Strands' tracking ids."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = failed_turn(bench, manager, "Tea.")

    agent.messages = [{"role": m["role"], "content": copy.deepcopy(m["content"])} for m in agent.messages]
    agent()

    assert blocks_per_call(agent) == [1, 1]
    assert bench.queries() == [ASK]
    assert manager.stats.turns == 1
