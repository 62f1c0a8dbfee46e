"""What is stored, restored, cut and summarised is what the stock manager would have: a block is never in it."""

import copy

import pytest
from bedrock_agentcore.memory.integrations.strands.config import PersistenceMode
from strands.agent.conversation_manager import SlidingWindowConversationManager, SummarizingConversationManager
from strands.types.exceptions import ContextWindowOverflowException
from turn_builders import GATED, STOCK, blocks_kept, blocks_per_call, last_block, spoken, until, yes

from strands_gated_memory.testing.model import ScriptedModel, ToolCall, blocks_shown

BOTH = pytest.mark.parametrize("kind", [STOCK, GATED])
MARKER = "Likes tea"


class Redacting(ScriptedModel):
    """A model whose guardrail replaces what the user said."""

    async def stream(self, *arguments, **keywords):
        async for event in super().stream(*arguments, **keywords):
            if "messageStop" in event:
                yield {"redactContent": {"redactUserContentMessage": "[redacted]"}}
            yield event


def without_ids(messages):
    """Return messages as a caller wrote them: Strands adds a tracking id to each one's dict."""
    return [{key: value for key, value in message.items() if key != "tracking_id"} for message in messages]


@pytest.mark.parametrize("settings", [{}, {"batch_size": 4}, {"async_mode": True}], ids=["plain", "batched", "async"])
@pytest.mark.parametrize("mode", ["turn", "history"])
def test_a_restart_restores_what_the_stock_manager_restores(bench, settings, mode):
    """Three turns, a new process: same history as with the stock manager, and the next turn has its own block."""
    bench.remember(MARKER)
    policy = {"inject": {"mode": mode}}
    restored = {}
    for kind in (STOCK, GATED):
        where = {"session_id": f"of-{kind}", "decider": yes, "policy": policy, **settings}
        with bench.manager(kind, **where) as manager:
            first = bench.agent(manager)
            for prompt in ("What do I drink?", "And eat?", "Thanks!"):
                first(prompt)
        restored[kind] = bench.agent(bench.manager(kind, **where))

    assert spoken(restored[GATED].messages) == spoken(restored[STOCK].messages)
    assert len(restored[GATED].messages) == 6
    restored[GATED]("What do I drink?")
    assert blocks_per_call(restored[GATED]) == [1]


def test_a_warm_and_a_cold_process_show_the_model_the_same(bench):
    """The next call after a restart holds the same messages as without one."""
    bench.remember(MARKER)
    warm = bench.agent(bench.manager(decider=yes))
    warm("What do I drink?")
    cold = bench.agent(bench.manager(decider=yes))

    warm("And at night?")
    cold("And at night?")

    assert spoken(warm.model.calls[-1]) == spoken(cold.model.calls[-1])


@BOTH
@pytest.mark.parametrize("batch_size", [1, 10])
def test_nothing_of_a_recall_is_written_to_the_session(bench, kind, batch_size):
    """Messages, agent state and session events hold no memory, buffered or not."""
    bench.remember(MARKER)
    with bench.manager(kind, decider=yes, batch_size=batch_size) as manager:
        agent = bench.agent(manager)
        agent("What do I drink?")
        agent("And eat?")

    assert len(blocks_shown(agent.model.calls[-1])) >= 1
    assert "What do I drink?" in bench.stored()
    assert MARKER not in bench.stored()


def test_persistence_none_still_recalls(bench):
    """Nothing is written, and the block is shown."""
    bench.remember(MARKER)
    bench.core.calls.clear()
    agent = bench.agent(bench.manager(decider=yes, persistence_mode=PersistenceMode.NONE))

    agent("What do I drink?")

    assert bench.core.calls.of("CreateEvent") == ()
    assert blocks_per_call(agent) == [1]
    assert last_block(agent) == [MARKER]


def test_the_flush_timer_flushes(bench):
    """`flush_interval_seconds` writes the buffer in the background, and close() ends it."""
    bench.remember(MARKER)
    manager = bench.manager(decider=yes, batch_size=50, flush_interval_seconds=0.1)
    with manager:
        bench.agent(manager)("What do I drink?")
        until(lambda: "What do I drink?" in bench.stored())

    assert "What do I drink?" in bench.stored()
    assert manager.pending_message_count() == 0
    assert MARKER not in bench.stored()


def test_a_summary_holds_no_memory(bench):
    """The summariser is shown no block, so neither the summary nor the agent's stored state has one."""
    bench.remember(MARKER)
    overflow = ContextWindowOverflowException("too long")
    summariser_saw = []

    def reply(messages):
        if "summarize" in str(messages[-1]["content"]).lower():
            summariser_saw.append(messages)
            return f"Summary of: {messages}"
        if len(messages) == 7 and not summariser_saw:
            return overflow
        return "Fine."

    agent = bench.agent(
        bench.manager(decider=yes),
        model=ScriptedModel(reply),
        conversation_manager=SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=2),
    )
    for number in range(4):
        agent(f"What do I drink? {number}")

    assert len(summariser_saw) == 1
    assert blocks_per_call(agent)[-1] == 1
    assert MARKER not in str(summariser_saw)
    assert MARKER not in str(agent.conversation_manager.get_state())
    assert MARKER not in bench.stored()


def test_a_sliding_window_cuts_as_without_memory(bench):
    """The window keeps as many messages as with no recall at all, and the block is still shown."""
    bench.remember(MARKER)
    lengths = {}
    for name, namespaces in (("with", {"namespaces": ("/facts/{actorId}/",)}), ("without", {"namespaces": ()})):
        manager = bench.manager(decider=yes, session_id=name, **namespaces)
        agent = bench.agent(manager, conversation_manager=SlidingWindowConversationManager(window_size=4))
        for number in range(5):
            agent(f"What do I drink? {number}")
        lengths[name] = [len(messages) for messages in agent.model.calls]
        assert blocks_per_call(agent) == ([1] * 5 if name == "with" else [0] * 5)

    assert lengths["with"] == lengths["without"]


@BOTH
@pytest.mark.parametrize("batch_size", [1, 10])
def test_guardrail_redaction_replaces_the_message_everywhere(bench, kind, batch_size):
    """The redacted text is what the agent keeps, what is stored and what a restart restores."""
    bench.remember(MARKER)
    settings = {"decider": yes, "batch_size": batch_size}
    with bench.manager(kind, **settings) as manager:
        agent = bench.agent(manager, model=Redacting(["No."]))
        agent("My secret drink?")
    restored = bench.agent(bench.manager(kind, **settings))

    assert len(blocks_shown(agent.model.calls[0])) == 1
    assert spoken(agent.messages) == [("user", "[redacted]"), ("assistant", "No.")]
    assert spoken(restored.messages) == spoken(agent.messages)


@pytest.mark.parametrize("position", ["after", "before"])
@pytest.mark.parametrize("mode", ["turn", "history"])
@pytest.mark.parametrize("shape", ["blocks", "messages"])
def test_the_callers_list_comes_back_unchanged(bench, mode, shape, position):
    """A list of blocks or messages can be used again: same query, one new block, nothing of memory stored."""
    bench.remember(MARKER)
    blocks = [{"text": "What do I drink?"}]
    prompt = blocks if shape == "blocks" else [{"role": "user", "content": blocks}]
    before = copy.deepcopy(prompt)
    policy = {"inject": {"mode": mode, "position": position}}
    first = bench.agent(bench.manager(decider=yes, policy=policy))
    second = bench.agent(bench.manager(decider=yes, session_id="session-2", policy=policy))

    first(prompt)
    first(prompt)
    second(prompt)

    assert without_ids(prompt) == before
    assert bench.queries() == ["What do I drink?"] * 3
    assert blocks_per_call(second) == [1]
    assert MARKER not in bench.stored()


@pytest.mark.parametrize("mode", ["turn", "history"])
def test_a_retry_after_a_model_error_asks_the_same_again(bench, mode):
    """The same list after a failure: the query is the user's text, and no block has been stored."""
    bench.remember(MARKER)
    prompt = [{"role": "user", "content": [{"text": "What do I drink?"}]}]
    agent = bench.agent(bench.manager(decider=yes, policy={"inject": {"mode": mode}}), ValueError("down"), "Tea.")

    with pytest.raises(ValueError, match="down"):
        agent(prompt)
    agent(prompt)

    assert prompt[0]["content"] == [{"text": "What do I drink?"}]
    assert bench.queries() == ["What do I drink?"] * 2
    assert MARKER not in bench.stored()
    assert blocks_per_call(agent) == ([1, 1] if mode == "turn" else [1, 2])


def test_a_snapshot_holds_no_block(bench):
    """Taken between the model calls of a turn, or after it."""
    bench.remember(MARKER)
    taken = []

    from strands import tool

    @tool
    def save() -> str:
        """Save the conversation."""
        taken.append(str(agent.take_snapshot(preset="session")))
        return "saved"

    agent = bench.agent(bench.manager(decider=yes), ToolCall("save", {}), "Done.", tools=[save])
    agent("What do I drink?")
    taken.append(str(agent.take_snapshot(preset="session")))

    assert blocks_per_call(agent) == [1, 1]
    assert len(taken) == 2
    assert all("What do I drink?" in snapshot and MARKER not in snapshot for snapshot in taken)


def test_an_agent_can_be_collected(bench):
    """The manager of a long-lived server keeps no agent alive."""
    import gc
    import weakref

    manager = bench.manager(decider=yes)
    agent = bench.agent(manager)
    agent("What do I drink?")
    gone = weakref.ref(agent)
    del agent
    gc.collect()

    assert gone() is None
    assert blocks_kept(bench.agent(manager, agent_id="next")) == []
