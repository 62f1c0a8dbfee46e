"""Stock faults of facts/agentcore.md section 4, by name: what is searched for, and where the block ends up."""

import pytest
from fault_register import fault
from pydantic import BaseModel
from strands import tool
from strands.agent import _continuation
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.hooks import BeforeModelCallEvent
from strands.memory import MemoryEntry, MemoryManager, MemoryStore
from strands.types.exceptions import ContextWindowOverflowException, ModelThrottledException
from strands.vended_plugins.steering import Guide, Proceed, SteeringHandler
from turn_builders import STOCK, blocks_per_call, last_block, spoken, yes

from strands_gated_memory.testing.model import ScriptedModel, ToolCall, blocks_shown

ASK = "What do I drink?"
TEA = "Likes tea"


class Drink(BaseModel):
    """What to drink."""

    name: str


@tool
def clock() -> str:
    """Tell the time."""
    return "noon"


def shown(agent):
    """Return everything of memory that the last model call was shown, tags removed."""
    blocks = blocks_shown(agent.model.calls[-1])
    return "\n".join(block.removeprefix("<user_context>").removesuffix("</user_context>").strip() for block in blocks)


def one_turn(bench, kind, prompt=ASK, **settings):
    agent = bench.agent(bench.manager(kind, decider=yes, **settings))
    agent(prompt)
    return agent


@fault("caller-list-mutated", stock="fails")
def _(bench, kind, caplog):
    """A list of the caller's is as it was after the turn."""
    prompt = [{"text": ASK}]
    one_turn(bench.remember(TEA), kind, prompt)

    assert prompt == [{"text": ASK}]


@fault("caller-list-reused", stock="fails")
def _(bench, kind, caplog):
    """A list used for two turns is searched for with the user's words both times."""
    prompt = [{"text": ASK}]
    agent = one_turn(bench.remember(TEA), kind, prompt)
    agent(prompt)

    assert bench.queries() == [ASK, ASK]


@fault("caller-list-persisted", stock="fails")
def _(bench, kind, caplog):
    """A list used again does not carry memory into the stored session."""
    prompt = [{"text": ASK}]
    one_turn(bench.remember(TEA), kind, prompt)
    bench.core.calls.clear()
    one_turn(bench, kind, prompt, session_id="session-2")

    assert ASK in bench.stored()
    assert TEA not in bench.stored()


@fault("retry-after-a-model-error", stock="fails")
def _(bench, kind, caplog):
    """The same list after a failed model call asks the same, and stores no memory."""
    bench.remember(TEA)
    prompt = [{"text": ASK}]
    agent = bench.agent(bench.manager(kind, decider=yes), ValueError("down"), "Tea.")
    with pytest.raises(ValueError, match="down"):
        agent(prompt)
    agent(prompt)

    assert bench.queries() == [ASK, ASK]
    assert TEA not in bench.stored()


@fault("throttled-model", stock="fixed")
def _(bench, kind, caplog):
    """A retry within the turn searches once and shows one block."""
    from strands import ModelRetryStrategy

    retry = ModelRetryStrategy(max_attempts=2, initial_delay=0, max_delay=0)
    manager = bench.remember(TEA).manager(kind, decider=yes)
    agent = bench.agent(manager, ModelThrottledException("slow"), "Tea.", retry_strategy=retry)
    agent(ASK)

    assert bench.queries() == [ASK]
    assert blocks_per_call(agent) == [1, 1]


@fault("continuation-merged", stock="fails")
def _(bench, kind, caplog):
    """Input that a background task merges into the ask is not searched for with the block, and stores none."""
    agent = bench.agent(bench.remember(TEA).manager(kind, decider=yes))
    rest = ["A task has finished."]

    def go_on(event):
        if rest:
            _continuation.add_input(event, _continuation._ContinuationInput(rest.pop()))

    agent.add_hook(go_on, BeforeModelCallEvent)
    agent(ASK)

    assert rest == []
    assert bench.queries() == [ASK]
    assert TEA not in bench.stored()


@fault("summary-holds-memory", stock="fails")
def _(bench, kind, caplog):
    """A summary, which is stored with the agent's state, holds no memory."""

    def reply(messages):
        if "summarize" in str(messages[-1]["content"]).lower():
            return f"Summary of {messages}"
        return ContextWindowOverflowException("too long") if len(messages) == 5 else "Fine."

    summarising = SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=2)
    manager = bench.remember(TEA).manager(kind, decider=yes)
    agent = bench.agent(manager, model=ScriptedModel(reply), conversation_manager=summarising)
    for _ in range(3):
        agent(ASK)

    assert "Summary of" in str(agent.messages)
    assert TEA not in str(summarising.get_state())


@fault("snapshot-holds-memory", stock="fails")
def _(bench, kind, caplog):
    """A snapshot of the conversation holds no memory."""
    snapshot = one_turn(bench.remember(TEA), kind).take_snapshot(preset="session")

    assert ASK in str(snapshot)
    assert TEA not in str(snapshot)


@fault("warm-and-cold-differ", stock="fails")
def _(bench, kind, caplog):
    """A process that goes on and one that has restarted hold the same conversation."""
    warm = one_turn(bench.remember(TEA), kind)
    cold = bench.agent(bench.manager(kind, decider=yes))

    assert spoken(warm.messages) == spoken(cold.messages)


@fault("structured-output-searched", stock="fails")
def _(bench, kind, caplog):
    """The prompt that forces a format is not searched for."""
    agent = bench.agent(bench.manager(kind, decider=yes), "Tea.", ToolCall("Drink", {"name": "tea"}), "Done.")
    agent(ASK, structured_output_model=Drink)

    assert bench.queries() == [ASK]


@fault("direct-tool-call-searched", stock="fails")
def _(bench, kind, caplog):
    """A recorded direct tool call is not searched for."""
    agent = bench.agent(bench.manager(kind, decider=yes), tools=[clock])
    agent.tool.clock()

    assert len(agent.messages) == 4
    assert bench.queries() == []


@fault("steering-guidance-searched", stock="fails")
def _(bench, kind, caplog):
    """Guidance that a plugin adds within a turn is not searched for."""

    class Once(SteeringHandler):
        guided = False

        async def steer_after_model(self, *, agent, message, stop_reason, **kwargs):
            first, self.guided = not self.guided, True
            return Guide(reason="Say it in French.") if first else Proceed(reason="fine")

    bench.agent(bench.manager(kind, decider=yes), plugins=[Once()])(ASK)

    assert bench.queries() == [ASK]


@fault("every-message-of-a-prompt-searched", stock="fails")
def _(bench, kind, caplog):
    """Of a prompt of several messages the last user text is searched for."""
    one_turn(bench, kind, [{"role": "user", "content": [{"text": word}]} for word in ("old", "new")])

    assert bench.queries() == ["new"]


@fault("second-text-block-ignored", stock="fails")
def _(bench, kind, caplog):
    """All text of the message is searched for."""
    one_turn(bench, kind, [{"text": "I am thirsty."}, {"text": ASK}])

    assert bench.queries() == [f"I am thirsty.\n{ASK}"]


@fault("empty-text-first", stock="fails")
def _(bench, kind, caplog):
    """An empty block before the text does not cost the turn its memory."""
    agent = one_turn(bench.remember(TEA), kind, [{"text": ""}, {"text": ASK}])

    assert blocks_per_call(agent) == [1]


@fault("whitespace-searched", stock="fails")
def _(bench, kind, caplog):
    """A blank message is not searched for."""
    one_turn(bench, kind, " \n")

    assert bench.queries() == []


@fault("memory-manager-searches-for-the-block", stock="fails")
def _(bench, kind, caplog):
    """Strands' own MemoryManager beside ours searches for the user's words."""

    class Notes(MemoryStore):
        name, description, max_search_results, writable, extraction = "notes", None, None, False, None
        queries = ()

        async def search(self, query, options=None):
            self.queries += (query,)
            return [MemoryEntry("Works at night")]

    notes = Notes()
    manager = bench.remember(TEA).manager(kind, decider=yes)
    bench.agent(manager, memory_manager=MemoryManager([notes]))(ASK)

    assert notes.queries == (ASK,)


@fault("tool-results-are-not-searched", stock="fixed")
def _(bench, kind, caplog):
    """A tool loop searches once, and assistant messages and restored history never."""
    agent = bench.agent(bench.manager(kind, decider=yes), ToolCall("clock", {}), "Noon.", tools=[clock])
    agent(ASK)
    bench.agent(bench.manager(kind, decider=yes))

    assert bench.queries() == [ASK]
    assert kind == STOCK or last_block(agent) == []
