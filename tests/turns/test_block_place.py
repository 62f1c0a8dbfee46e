"""Where the block stands, what it looks like, and the stock manager's way of keeping it."""

import itertools
from dataclasses import replace

import pytest
from strands import Plugin, tool
from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.hooks import AfterModelCallEvent, BeforeModelCallEvent
from strands.memory import MemoryEntry, MemoryManager, MemoryStore
from strands.middleware import InvokeModelStage
from strands.types.exceptions import ContextWindowOverflowException
from strands.vended_plugins.context_injector import ContextInjector
from turn_builders import GATED, STOCK, blocks_kept, blocks_per_call, last_block, yes

from strands_gated_memory.testing.model import ScriptedModel, ToolCall, blocks_shown

IMAGE = {"image": {"format": "png", "source": {"bytes": b"png"}}}


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


@pytest.mark.parametrize(
    ("inject", "expected"),
    [
        ({}, ["What do I drink?", "\n\n<user_context>\nLikes tea\n</user_context>"]),
        ({"position": "before"}, ["<user_context>\nLikes tea\n</user_context>\n\n", "What do I drink?"]),
        (
            {"mode": "history", "position": "before"},
            ["<user_context>\nLikes tea\n</user_context>", "What do I drink?"],
        ),
        ({"mode": "history", "position": "after"}, ["What do I drink?", "<user_context>\nLikes tea\n</user_context>"]),
    ],
)
def test_the_block_stands_beside_the_users_text(bench, inject, expected):
    """`inject.position` places it after (default) or before, in both modes, in the user's own message."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes, policy={"inject": inject}))

    agent("What do I drink?")

    (message,) = agent.model.calls[0]
    assert message["role"] == "user"
    assert [block["text"] for block in message["content"]] == expected


def test_dates_are_printed_when_asked_for(bench):
    """`inject.show_dates` puts the day of writing before a record."""
    bench.plant(memoryRecordId="mem-1", text="Likes tea", createdAt=1773532800.0)
    agent = bench.agent(bench.manager(decider=yes, policy={"inject": {"show_dates": True}}))

    agent("What do I drink?")

    assert last_block(agent) == ["[2026-03-15] Likes tea"]


def test_the_configured_tag_wraps_the_block(bench):
    """`context_tag` of the parent's configuration is honoured."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes, context_tag="notes"))

    agent("What do I drink?")

    assert blocks_shown(agent.model.calls[0], "notes") == ["<notes>\nLikes tea\n</notes>"]


@pytest.mark.parametrize("kind", [STOCK, GATED])
def test_history_mode_keeps_blocks_as_the_stock_manager_does(bench, kind):
    """One more block per turn, in the conversation, on every call."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(kind, policy={"inject": {"mode": "history", "position": "before"}}))

    for number in range(4):
        agent(f"What do I drink? {number}")

    assert blocks_per_call(agent) == [1, 2, 3, 4]
    assert len(blocks_kept(agent)) == 4
    assert "Likes tea" not in bench.stored()


def seen_by(agent):
    """Return a list that gets the context of each model call, as this agent's middleware has left it."""
    contexts = []

    async def note(context, next_fn):
        contexts.append(context)
        async for event in next_fn(context):
            yield event

    agent.add_middleware(InvokeModelStage, note)
    return contexts


def where(messages, word="Likes tea"):
    """Return which messages hold a word."""
    return [place for place, message in enumerate(messages) if word in str(message)]


@pytest.mark.parametrize("position", ["after", "before"])
@pytest.mark.parametrize(
    "prompt", ["What do I drink?", [{"text": "One."}, {"text": "Two?"}], [IMAGE, {"text": "This?"}]]
)
def test_the_block_stays_in_the_message_of_the_ask(bench, prompt, position):
    """Tool calls follow: nothing is added to a message that holds a tool result."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes, policy={"inject": {"position": position}})
    agent = bench.agent(manager, ToolCall("clock", {}, "t1"), ToolCall("clock", {}, "t2"), "Tea.", tools=[clock])

    agent(prompt)

    for messages in agent.model.calls:
        assert where(messages) == [0]
        results = [m["content"] for m in messages if any("toolResult" in block for block in m["content"])]
        assert all(set(block) == {"toolResult"} for content in results for block in content)


def test_strands_is_told_of_a_dynamic_block_only_while_it_ends_the_last_message(bench):
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes), ToolCall("clock", {}, "t1"), "Tea.", "Ok.", tools=[clock])
    contexts = seen_by(agent)

    agent("What do I drink?")
    agent("And now?", invocation_state={"recall": False})

    assert [context.dynamic_trailing_blocks for context in contexts] == [1, 0, 0]


@pytest.mark.parametrize(("position", "told"), [("after", [1, 0]), ("before", [0, 0])])
def test_the_dynamic_blocks_follow_the_position(bench, position, told):
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes, policy={"inject": {"position": position}})
    agent = bench.agent(manager, ToolCall("clock", {}, "t1"), "Tea.", tools=[clock])
    contexts = seen_by(agent)

    agent("What do I drink?")

    assert [context.dynamic_trailing_blocks for context in contexts] == told


def test_a_mixed_message_counts_its_text_as_dynamic(bench):
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes))
    contexts = seen_by(agent)

    agent([{"toolResult": {"toolUseId": "x", "status": "success", "content": []}}, {"text": "And now?"}])

    assert contexts[0].dynamic_trailing_blocks == 1
    assert len(contexts[0].messages[0]["content"]) == 2


def test_strands_own_injector_and_memory_manager_work_beside_it(bench):
    """Each has its text, once; the trailing ones are all told; the other memory does not search for ours."""

    class Notes(MemoryStore):
        name, description, max_search_results, writable, extraction = "notes", None, None, False, None
        queries = ()

        async def search(self, query, options=None):
            self.queries += (query,)
            return [MemoryEntry("Works at night")]

    notes = Notes()
    bench.remember("Likes tea")
    agent = bench.agent(
        bench.manager(decider=yes),
        ToolCall("clock", {}, "t1"),
        "Tea.",
        tools=[clock],
        plugins=[ContextInjector(lambda _: "It is noon.", trigger="everyTurn")],
        memory_manager=MemoryManager([notes]),
    )
    contexts = seen_by(agent)

    agent("What do I drink?")

    (query,) = notes.queries
    assert query.startswith("What do I drink?")
    assert "Likes tea" not in query
    first, second = contexts
    assert [where(first.messages, word) for word in ("Likes tea", "It is noon", "Works at night")] == [[0], [0], [0]]
    assert first.dynamic_trailing_blocks == len(first.messages[0]["content"]) - 1 == 3
    assert where(second.messages) == [0]
    assert second.dynamic_trailing_blocks == 1  # the injector's own, beside the tool result


@pytest.mark.parametrize("rebuild", ["copied", "masked", "trimmed", "note behind"])
def test_the_ask_is_found_in_messages_that_other_middleware_has_copied(bench, rebuild):
    """Equal messages stand before it; the copies have neither identity nor tracking id."""

    def change(context):
        messages = [{"role": m["role"], "content": [dict(block) for block in m["content"]]} for m in context.messages]
        if rebuild == "masked":
            messages = [{**m, "content": [{"text": "[masked]"}]} if m["role"] == "user" else m for m in messages]
        if rebuild == "trimmed":
            messages = messages[-3:]
        if rebuild == "note behind":
            messages.append({"role": "user", "content": [{"text": "note"}]})
        return replace(context, messages=messages)

    class Early(Plugin):
        """Its middleware runs before ours, which is added once the session is restored."""

        name = "early"

        def init_agent(self, agent):
            agent.add_middleware(InvokeModelStage.Input, change)

    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes), plugins=[Early()])
    for _ in range(3):
        agent("Yes")

    last = len(agent.model.calls[-1]) - 1 - (rebuild == "note behind")
    assert where(agent.model.calls[-1]) == [last]
    assert blocks_per_call(agent) == [1, 1, 1]


def test_the_callers_own_message_used_twice_carries_one_block(bench):
    """The same object stands in the conversation twice, under one tracking id: the block is in the newest place."""
    bench.remember("Likes tea")
    message = {"role": "user", "content": [{"text": "What do I drink?"}]}
    agent = bench.agent(bench.manager(decider=yes))

    agent([message])
    agent([message])

    assert [where(messages) for messages in agent.model.calls] == [[0], [2]]


def overflowing(at_calls, *, then):
    """Return a script: too long at these calls, and else a reply in turn."""
    replies, calls = iter(then), itertools.count()

    def reply(messages):
        return ContextWindowOverflowException("too long") if next(calls) in at_calls else next(replies)

    return ScriptedModel(reply)


def test_an_overflow_that_leaves_the_ask_leaves_its_block(bench):
    """The oldest exchange is dropped, the call is made again: the block moves with its message."""
    bench.remember("Likes tea")
    model = overflowing({1}, then=["Hi.", "Tea."])
    agent = bench.agent(bench.manager(decider=yes), model=model)

    agent("Hello")
    agent("What do I drink?")

    assert [where(messages) for messages in model.calls] == [[0], [2], [0]]
    assert len(bench.searches()) == 2


@pytest.mark.parametrize("summarising", [False, True], ids=["dropped", "summarised"])
def test_an_ask_that_is_gone_takes_its_block_with_it(bench, summarising):
    """Reduced in the middle of a turn: the rest of the turn has no block, and no other message has it."""
    bench.remember("Likes tea")
    calls = [ToolCall("clock", {}, f"t{number}") for number in range(3)]
    steps = itertools.count()

    def reply(messages):
        if "summarize" in str(messages[-1]["content"]).lower():
            return "A summary."
        step = next(steps)
        if step == 3:
            return ContextWindowOverflowException("too long")
        return calls[step] if step < 3 else "Tea."

    manager = (
        SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=2)
        if summarising
        else SlidingWindowConversationManager(window_size=4, should_truncate_results=False)
    )
    agent = bench.agent(
        bench.manager(decider=yes), model=ScriptedModel(reply), tools=[clock], conversation_manager=manager
    )

    result = agent("What do I drink?")

    assert result.stop_reason == "end_turn"
    assert not where(agent.messages, "What do I drink?")
    assert where(agent.model.calls[-1]) == []


def test_a_redacted_ask_shows_its_block_no_more(bench):
    """A guardrail replaces the user's text, and a hook has the model called again."""

    class Guarded(ScriptedModel):
        async def stream(self, messages, *args, **kwargs):
            if not self.calls:
                yield {"redactContent": {"redactUserContentMessage": "[redacted]"}}
            async for event in super().stream(messages, *args, **kwargs):
                yield event

    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes), model=Guarded(["No.", "Sorry."]))
    again = [True]
    agent.add_hook(lambda event: setattr(event, "retry", bool(again) and again.pop()), AfterModelCallEvent)

    agent("What do I drink?")

    assert blocks_per_call(agent) == [1, 0]
    assert agent.messages[0]["content"] == [{"text": "[redacted]"}]


def test_a_block_that_cannot_be_shown_does_not_end_the_turn(bench, caplog):
    """The tag is changed to what is no tag, after the recall: the call is made without the block, and it is logged."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)
    agent = bench.agent(manager)
    agent.add_hook(lambda event: setattr(manager.config, "context_tag", "ünï"), BeforeModelCallEvent)

    result = agent("What do I drink?")

    assert result.stop_reason == "end_turn"
    assert where(agent.model.calls[0]) == []
    assert "the recall block cannot be shown" in caplog.text
    assert "Likes tea" not in caplog.text


@pytest.mark.parametrize("prompt", ["Yes", [{"text": "What is it?"}, IMAGE]], ids=["repeated", "image"])
def test_the_ask_is_found_in_a_conversation_that_a_hook_has_rebuilt(bench, prompt):
    """The hook keeps no tracking id; an equal message of an earlier turn carries nothing of this one's."""
    manager = bench.remember("Likes tea").manager(decider=yes)
    agent = bench.agent(manager, "Fine.", ToolCall("clock", {}), "Noon.", tools=[clock])

    def rebuild(event):
        agent.messages = [{"role": m["role"], "content": [dict(b) for b in m["content"]]} for m in agent.messages]

    agent(prompt, invocation_state={"recall": False})
    agent.add_hook(rebuild, BeforeModelCallEvent)
    agent(prompt)

    assert [where(call) for call in agent.model.calls[1:]] == [[2], [2]]
    assert manager.stats.turns == 2
