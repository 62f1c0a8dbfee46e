"""Stock faults of facts/agentcore.md section 5, by number: public reports that concern recall."""

import asyncio
import logging
import threading

from bedrock_agentcore.memory.integrations.strands.config import PersistenceMode, RetrievalConfig
from fault_register import fault
from turn_builders import FACTS, PREFERENCES, blocks_kept, blocks_per_call, no, yes

from strands_gated_memory.testing.model import blocks_shown

ASK = "What do I drink?"
TEA = "Likes tea"
SEARCH = "RetrieveMemoryRecords"
IMAGE = {"image": {"format": "png", "source": {"bytes": b"png"}}}


def one_turn(bench, kind, prompt=ASK, **settings):
    agent = bench.agent(bench.manager(kind, decider=yes, **settings))
    agent(prompt)
    return agent


def errors_told(agent):
    """Return the failures of searches that the manager can tell its owner, by kind; {} if it cannot."""
    stats = getattr(agent._session_manager, "stats", None)
    return stats.as_dict()["retrieval_errors_by_kind"] if stats else {}


@fault("5.1", stock="fails")
def _(bench, kind, caplog):
    """Issue 420: over ten turns each model call is shown one block, not one more than the last."""
    agent = bench.agent(bench.remember(TEA).manager(kind, decider=yes))
    for _ in range(10):
        agent(ASK)

    assert blocks_per_call(agent) == [1] * 10


@fault("5.2", stock="fixed")
def _(bench, kind, caplog):
    """A message without content does not end the turn."""
    agent = one_turn(bench, kind, [{"role": "user", "content": []}])

    assert agent.messages[-1]["role"] == "assistant"


@fault("5.3", stock="fails")
def _(bench, kind, caplog):
    """The text after an image is searched for; upstream skips such messages since 1.5.1."""
    one_turn(bench, kind, [IMAGE, {"text": ASK}])

    assert bench.queries() == [ASK]


@fault("5.4", stock="fixed")
def _(bench, kind, caplog):
    """An empty text does not end the turn."""
    agent = one_turn(bench, kind, [{"text": ""}])

    assert agent.messages[-1]["role"] == "assistant"


@fault("5.5", stock="fixed")
def _(bench, kind, caplog):
    """`relevance_score` leaves out what is below it; it did nothing before 1.2.0."""
    for score in (0.1, 0.4, 0.6, 0.9):
        bench.plant(text=f"Scored {score}", score=score)
    agent = one_turn(bench, kind, namespaces={FACTS: RetrievalConfig(relevance_score=0.5)})

    (block,) = blocks_shown(agent.model.calls[0])
    assert [score for score in ("0.1", "0.4", "0.6", "0.9") if score in block] == ["0.6", "0.9"]


@fault("5.6", stock="fixed")
def _(bench, kind, caplog):
    """The filter reads `score`, the service's field, not `relevanceScore`."""
    bench.plant(text="Low", score=0.1, relevanceScore=0.9).plant(text="High", score=0.9, relevanceScore=0.1)
    agent = one_turn(bench, kind)

    (block,) = blocks_shown(agent.model.calls[0])
    assert "High" in block
    assert "Low" not in block


@fault("5.7", stock="fixed")
def _(bench, kind, caplog):
    """The model call ends with the user's message: no assistant prefill."""
    agent = one_turn(bench.remember(TEA), kind)

    last = agent.model.calls[0][-1]
    assert last["role"] == "user"
    assert ASK in str(last["content"])
    assert TEA in str(last["content"])


@fault("5.8", stock="fixed")
def _(bench, kind, caplog):
    """With `async_mode` other tasks run during a search: here one that the search waits for."""
    begun, other_task_ran, waited = threading.Event(), threading.Event(), []

    def search_begins(path):
        begun.set()
        waited.append(other_task_ran.wait(30))

    async def other_task():
        while not begun.is_set():
            await asyncio.sleep(0.001)
        other_task_ran.set()

    async def talk():
        other = asyncio.create_task(other_task())
        agent = bench.agent(bench.at_each(SEARCH, search_begins).manager(kind, decider=yes, async_mode=True))
        await agent.invoke_async(ASK)
        await other

    asyncio.run(talk())
    assert waited == [True]


@fault("5.9", stock="fixed")
def _(bench, kind, caplog):
    """Namespaces are searched side by side: each of two searches waits until both have begun."""
    both = threading.Barrier(2)
    bench.at_each(SEARCH, lambda path: both.wait(30))
    agent = bench.agent(bench.manager(kind, decider=yes, namespaces=(FACTS, PREFERENCES)))
    agent(ASK)

    assert not both.broken
    assert len(bench.searches()) == 2


@fault("5.10", stock="fails")
def _(bench, kind, caplog):
    """A throttled search does not raise, and can be told from an empty memory."""
    bench.core.fail(SEARCH, "ThrottledException")
    agent = one_turn(bench, kind)

    assert agent.messages[-1]["role"] == "assistant"
    assert errors_told(agent) == {"throttled": 1}


@fault("5.19", stock="fixed")
def _(bench, kind, caplog):
    """Memory is recalled though nothing is stored."""
    agent = one_turn(bench.remember(TEA), kind, persistence_mode=PersistenceMode.NONE)

    assert blocks_per_call(agent) == [1]
    assert bench.core.calls.of("CreateEvent") == ()


@fault("5.21", stock="fails")
def _(bench, kind, caplog):
    """A memory that is not found does not raise, and can be told from an empty one."""
    bench.core.fail(SEARCH, "ResourceNotFoundException", message="MemoryItem does not exist")
    agent = one_turn(bench, kind)

    assert agent.messages[-1]["role"] == "assistant"
    assert errors_told(agent) == {"not_found": 1}


@fault("5.22-path", stock="fails")
def _(bench, kind, caplog):
    """A template without a slash at its end is searched with one: /users/bob is no prefix of /users/bobby."""
    one_turn(bench, kind, namespaces=("/users/{actorId}",))

    assert [call.namespace_path for call in bench.searches()] == [f"/users/{bench.actor}/"]


@fault("5.22-record", stock="fails")
def _(bench, kind, caplog):
    """Bobby's record in an answer to Bob's search is not shown to Bob."""
    bench.plant(text="Bobby's secret", score=0.9, namespaces=[f"/facts/{bench.actor}by/"])
    agent = one_turn(bench.remember(TEA), kind)

    assert TEA in str(agent.model.calls[0])
    assert "secret" not in str(agent.model.calls[0])


@fault("5.23", stock="fixed")
def _(bench, kind, caplog):
    """A namespace is searched as a path, with all that is below it."""
    agent = one_turn(bench.remember(TEA, namespace="/facts/{actorId}/session-7/"), kind)

    assert blocks_per_call(agent) == [1]
    assert bench.searches()[0].namespace is None


@fault("5.24-attempts", stock="fails")
def _(bench, kind, caplog):
    """A throttled search is not tried again while the user waits for the first token."""
    bench.core.fail(SEARCH, "ThrottledException", times=2)
    one_turn(bench, kind)

    assert len(bench.searches()) == 1


@fault("5.24-own-summary", stock="fails")
def _(bench, kind, caplog):
    """The running session's own summary is not shown: the conversation holds it."""
    bench.remember('<topic name="Tea">Talked about tea.</topic>', namespace="/summaries/{actorId}/session-1/")
    agent = one_turn(bench, kind, namespaces=("/summaries/{actorId}/",))

    assert len(bench.searches()) == 1
    assert blocks_per_call(agent) == [0]


@fault("5.25", stock="fails")
def _(bench, kind, caplog):
    """An empty `retrieval_config`, from a missing permission upstream, is said at construction."""
    bench.manager(kind, namespaces={})

    assert [r for r in caplog.records if r.levelno >= logging.WARNING and "retrieval_config" in r.getMessage()] != []


@fault("5.26", stock="fails")
def _(bench, kind, caplog):
    """Memory can be switched off for a call."""
    agent = bench.agent(bench.remember(TEA).manager(kind, decider=yes))
    agent(ASK, invocation_state={"recall": False})

    assert bench.queries() == []
    assert blocks_per_call(agent) == [0]


@fault("5.27", stock="fails")
def _(bench, kind, caplog):
    """A turn that needs no memory makes no search."""
    bench.agent(bench.manager(kind, decider=no))("Thanks!")

    assert bench.queries() == []


@fault("5.29", stock="fixed")
def _(bench, kind, caplog):
    """`{actorId}` and `{sessionId}` are filled in."""
    one_turn(bench, kind, namespaces=("/facts/{actorId}/{sessionId}/",))

    assert [call.namespace_path for call in bench.searches()] == [f"/facts/{bench.actor}/session-1/"]


@fault("5.31", stock="fails")
def _(bench, kind, caplog):
    """A conversation that a server hands to somebody else holds no memory of the first user."""
    agent = one_turn(bench.remember(TEA), kind)

    assert blocks_per_call(agent) == [1]
    assert blocks_kept(agent) == []
