"""The stock session manager of bedrock-agentcore, with a real Strands agent, over the emulation."""

import asyncio
import warnings

import pytest
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.models import Model

from strands_gated_memory.testing import seed_records

UNCUT = {"conversation_manager": NullConversationManager(), "callback_handler": None}
PROMPTS = ("one", "two", "three")


class Parrot(Model):
    """Answers `echo <n>` and keeps the messages it was given; may redact what the user said."""

    def __init__(self, redaction=None):
        self.seen = []
        self.redaction = redaction

    def update_config(self, **model_config):
        pass

    def get_config(self):
        return {}

    async def structured_output(self, output_model, prompt, system_prompt=None, **kwargs):
        raise NotImplementedError
        yield

    async def stream(self, messages, tool_specs=None, system_prompt=None, **kwargs):
        self.seen.append([dict(message) for message in messages])
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"echo {len(self.seen)}"}}}
        yield {"contentBlockStop": {}}
        if self.redaction:
            yield {"redactContent": {"redactUserContentMessage": self.redaction}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def manager(core, **settings):
    config = AgentCoreMemoryConfig(memory_id=core.memory_id, actor_id="bob", session_id="s1", **settings)
    return AgentCoreMemorySessionManager(config, region_name="us-east-1")


def texts(agent):
    return [(message["role"], message["content"][-1]["text"]) for message in agent.messages]


def conversation(count):
    spoken = zip(PROMPTS, range(1, count + 1), strict=False)
    return [pair for prompt, number in spoken for pair in (("user", prompt), ("assistant", f"echo {number}"))]


@pytest.mark.parametrize("settings", [{}, {"batch_size": 4}], ids=["unbuffered", "batch-size-4"])
def test_a_second_manager_restores_the_history(core, settings):
    """Three turns, a new process: the same messages, and one agent event as before."""
    first = manager(core, **settings)
    agent = Agent(model=Parrot(), session_manager=first, callback_handler=None)
    for prompt in PROMPTS:
        agent(prompt)
    first.close()

    restored = Agent(model=Parrot(), session_manager=manager(core, **settings), callback_handler=None)

    assert texts(agent) == conversation(3)
    assert texts(restored) == conversation(3)


def test_a_second_manager_restores_the_history_in_async_mode(core):
    """The same with async_mode, whose calls come from other threads."""

    async def talk():
        agent = Agent(model=Parrot(), session_manager=manager(core, async_mode=True), callback_handler=None)
        for prompt in PROMPTS:
            await agent.invoke_async(prompt)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the SDK warns about its own async mode
        asyncio.run(talk())
        restored = Agent(model=Parrot(), session_manager=manager(core, async_mode=True), callback_handler=None)

    assert texts(restored) == conversation(3)


def test_a_long_session_is_restored_over_pages(core):
    """More events than a page holds."""
    agent = Agent(model=Parrot(), session_manager=manager(core), **UNCUT)
    for number in range(60):
        agent(f"turn {number}")

    restored = Agent(model=Parrot(), session_manager=manager(core), **UNCUT)

    assert len(core.calls.of("ListEvents")) > 2
    assert texts(restored)[-2:] == texts(agent)[-2:]
    assert len(restored.messages) == 120


def test_the_stock_retrieval_finds_seeded_records(core, client):
    """The manager's own lookup reaches RetrieveMemoryRecords and injects what it finds."""
    seed_records(client, core.memory_id, [{"text": "Likes tea", "namespace": "/facts/{actorId}/"}], actor_id="bob")
    seed_records(client, core.memory_id, [{"text": "Bobby's own", "namespace": "/facts/bobby/"}])
    model = Parrot()
    settings = {"retrieval_config": {"/facts/{actorId}/": RetrievalConfig(top_k=3)}}
    agent = Agent(model=model, session_manager=manager(core, **settings), callback_handler=None)

    agent("What do I drink?")

    (call,) = core.calls.of("RetrieveMemoryRecords")
    seen = str(model.seen[0])
    assert (call.namespace_path, call.query) == ("/facts/bob/", "What do I drink?")
    assert "Likes tea" in seen
    assert "Bobby" not in seen


def test_guardrail_redaction_replaces_the_event(core):
    """Redacting a message deletes its event and writes another, which a restart restores in its place."""
    agent = Agent(model=Parrot("[redacted]"), session_manager=manager(core), callback_handler=None)
    agent("secret")

    restored = Agent(model=Parrot(), session_manager=manager(core), callback_handler=None)

    assert len(core.calls.of("DeleteEvent")) == 1
    assert texts(restored) == [("user", "[redacted]"), ("assistant", "echo 1")]
