"""What counts as the user's ask: the last user text of the invocation's input, all of it, and nothing else."""

import pytest
from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import AfterInvocationEvent
from strands.vended_plugins.steering import Guide, Proceed, SteeringHandler
from turn_builders import FACTS, PREFERENCES, Asked, blocks_kept, blocks_per_call, yes

from strands_gated_memory.testing.model import ScriptedModel, ToolCall, blocks_shown

IMAGE = {"image": {"format": "png", "source": {"bytes": b"png"}}}
DOCUMENT = {"document": {"format": "txt", "name": "menu", "source": {"bytes": b"soup"}}}
BLOCK = ["<user_context>", "Likes tea", "</user_context>"]
CACHE_POINT = {"cachePoint": {"type": "default"}}


class Drink(BaseModel):
    """What to drink."""

    name: str


@tool
def clock(zone: str = "UTC") -> str:
    """Tell the time."""
    return "noon"


def text(value):
    return {"text": value}


def guarded(value, qualifiers=None):
    return {"guardContent": {"text": {"text": value, **({"qualifiers": qualifiers} if qualifiers else {})}}}


def tool_result(tool_use_id="x", value="later"):
    return {"toolResult": {"toolUseId": tool_use_id, "status": "success", "content": [text(value)]}}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


@pytest.mark.parametrize(
    ("prompt", "ask"),
    [
        pytest.param("What do I drink?", "What do I drink?", id="string"),
        pytest.param([text("What do I drink?")], "What do I drink?", id="blocks"),
        pytest.param([IMAGE, text("Would I like this?")], "Would I like this?", id="image first"),
        pytest.param([DOCUMENT, text("What suits me?")], "What suits me?", id="document first"),
        pytest.param([CACHE_POINT, text("What suits me?")], "What suits me?", id="cache point first"),
        pytest.param([text("One."), IMAGE, text("Two?")], "One.\nTwo?", id="several text blocks"),
        pytest.param([text(""), text("What do I drink?")], "What do I drink?", id="empty text first"),
        pytest.param([text("  What do I drink?\n")], "What do I drink?", id="stripped"),
        pytest.param(
            [user(text("Old?")), {"role": "assistant", "content": [text("Yes.")]}, user(text("New?"))],
            "New?",
            id="several messages",
        ),
        pytest.param([user(text("One?")), user(text("Two?"))], "Two?", id="two user messages"),
        pytest.param([user(text("One?")), user(IMAGE)], "One?", id="text before an image message"),
        pytest.param([guarded("Where do I park?")], "Where do I park?", id="guarded"),
        pytest.param(
            [guarded("Where do I park?"), text("At noon?")], "Where do I park?\nAt noon?", id="guarded, plain"
        ),
        pytest.param(
            [IMAGE, guarded("Is this it?", ["query"])], "Is this it?", id="guarded, qualified, after an image"
        ),
        pytest.param([tool_result(), text("And for Sunday?")], "And for Sunday?", id="after a tool result"),
        pytest.param([text("And for Sunday?"), tool_result()], "And for Sunday?", id="before a tool result"),
        pytest.param([user(tool_result(), guarded("And now?"))], "And now?", id="guarded, after a tool result"),
    ],
)
def test_the_ask_is_all_text_of_the_last_user_text(bench, prompt, ask):
    """One search and one decision, both for the whole text; images, documents and other messages do not hide it."""
    bench.remember("Likes tea")
    asked = Asked()
    agent = bench.agent(bench.manager(decider=asked))

    agent(prompt)

    assert bench.queries() == [ask]
    assert set(asked.messages) == {ask}
    assert [block.splitlines() for block in blocks_shown(agent.model.calls[-1])] == [BLOCK]


@pytest.mark.parametrize(
    "prompt",
    [
        pytest.param(None, id="none"),
        pytest.param([], id="empty list"),
        pytest.param([user()], id="empty content"),
        pytest.param([text("")], id="empty text"),
        pytest.param(" \n\t", id="whitespace"),
        pytest.param([IMAGE], id="image alone"),
        pytest.param([{"role": "assistant", "content": [text("I am thinking of")]}], id="assistant text"),
    ],
)
def test_without_a_text_of_the_user_nothing_is_recalled(bench, prompt):
    """The turn goes on without a decision, a search, a block or a count."""
    asked = Asked()
    manager = bench.manager(decider=asked)
    agent = bench.agent(manager)

    result = agent(prompt)

    assert result.stop_reason == "end_turn"
    assert asked.states == []
    assert bench.queries() == []
    assert blocks_per_call(agent) == [0]
    assert manager.stats.turns == 0


def test_a_tool_result_is_not_an_ask(bench):
    """Neither the tool's answer nor one that the caller hands in after the answer."""
    agent = bench.agent(bench.manager(decider=yes), ToolCall("clock", {}), *["Good."] * 3, tools=[clock])
    agent("What time is it for me?")

    agent([user(tool_result())])

    assert bench.queries() == ["What time is it for me?"]


@pytest.mark.parametrize("replies", [("Tea.", ToolCall("Drink", {"name": "tea"})), (ToolCall("Drink", {"name": "t"}),)])
def test_structured_output_recalls_once(bench, replies):
    """The prompt that forces the format is no ask; the block is still there, once, when the object is made."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes), *replies, "Done.")

    result = agent("What do I drink?", structured_output_model=Drink)

    assert isinstance(result.structured_output, Drink)
    assert bench.queries() == ["What do I drink?"]
    assert set(blocks_per_call(agent)) == {1}
    assert blocks_kept(agent) == []


def test_a_recorded_direct_tool_call_is_not_an_ask(bench):
    """`agent.tool.clock()` writes messages, and recalls nothing, before and after a turn."""
    agent = bench.agent(bench.manager(decider=yes), tools=[clock])

    agent.tool.clock(zone="CET")
    agent("What do I drink?")
    agent.tool.clock(zone="CET")

    assert len(agent.messages) > 4
    assert bench.queries() == ["What do I drink?"]


def test_guidance_of_a_steering_handler_is_not_an_ask(bench):
    """A message that a plugin adds within the turn is not the user's; the turn keeps its block."""

    class Once(SteeringHandler):
        guided = False

        async def steer_after_model(self, *, agent, message, stop_reason, **kwargs):
            if self.guided:
                return Proceed(reason="fine")
            self.guided = True
            return Guide(reason="Say it in French.")

    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes), plugins=[Once()])

    agent("What do I drink?")

    assert bench.queries() == ["What do I drink?"]
    assert blocks_per_call(agent) == [1, 1]


def test_a_resumed_invocation_has_an_ask_of_its_own(bench):
    """`AfterInvocationEvent.resume` starts a new invocation: its text is searched, the old block is gone."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)
    agent = bench.agent(manager)
    rest = ["And what do I eat?"]
    agent.add_hook(lambda event: setattr(event, "resume", rest.pop() if rest else None), AfterInvocationEvent)

    agent("What do I drink?")

    assert bench.queries() == ["What do I drink?", "And what do I eat?"]
    assert blocks_per_call(agent) == [1, 1]


def test_recall_can_be_switched_off_for_one_call(bench):
    """`invocation_state={"recall": False}`: no decision, no search, no block, counted as disabled."""
    bench.remember("Likes tea")
    asked = Asked()
    manager = bench.manager(decider=asked)
    agent = bench.agent(manager)

    agent("What do I drink?", invocation_state={"recall": False})
    agent("And now?", invocation_state={"recall": True})

    assert asked.messages[0] == "And now?"
    assert bench.queries() == ["And now?"]
    assert blocks_per_call(agent) == [0, 1]
    assert manager.stats.as_dict()["gate"]["disabled"] == 1
    assert manager.stats.turns == 2


def test_the_decider_sees_the_last_exchange(bench):
    """Last user text and final assistant text, tool messages skipped, each cut to 400 characters, no block."""
    bench.remember("Likes tea")
    asked = Asked()
    long_answer = "x" * 500
    manager = bench.manager(decider=asked, policy={"inject": {"mode": "history"}})
    agent = bench.agent(manager, ToolCall("clock", {}), long_answer, "Fine.", tools=[clock])

    agent("What do I drink at noon?")
    agent("And at night?")

    assert [state["previous"] for state in asked.states[:2]] == [[], []]
    assert asked.states[-1] == {"message": "And at night?", "previous": ["What do I drink at noon?", "x" * 400]}


def test_a_decider_function_sees_the_wire_shape_alone(bench):
    """Plain dictionaries with type, instructions and criteria: what a remote model would get."""
    bench.remember("Likes tea")
    asked = Asked()
    agent = bench.agent(bench.manager(decider=asked, namespaces=(FACTS, PREFERENCES)))

    agent("What do I drink?")

    gate, validator = asked.questions
    assert set(gate) == {"gate", "namespace_0", "namespace_1"}
    assert set(validator) == {"record_0"}
    assert all(set(q) == {"type", "instructions", "criteria"} for q in [*gate.values(), *validator.values()])


def test_restored_history_is_not_an_ask(bench):
    """A second process restores the messages and searches nothing until it is asked."""
    bench.agent(bench.manager(decider=yes))("What do I drink?")
    restored = bench.agent(bench.manager(decider=yes))

    assert len(restored.messages) == 2
    assert bench.queries() == ["What do I drink?"]


def test_an_agent_as_tool_with_memory_of_its_own_asks_with_its_input(bench):
    """Only the sub-agent that has a manager recalls, and for what it was given."""
    bench.remember("Likes tea")
    helper = bench.agent(bench.manager(decider=yes), name="helper", description="Helps.", agent_id="helper")
    call = ToolCall("helper", {"input": "What does the user drink?"})
    boss = Agent(
        model=ScriptedModel([call, "Done."]),
        tools=[helper.as_tool(preserve_context=True)],
        callback_handler=None,
    )

    boss("Order something.")

    assert bench.queries() == ["What does the user drink?"]
    assert blocks_per_call(helper) == [1]
    assert blocks_per_call(boss) == [0, 0]
