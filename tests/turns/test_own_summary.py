"""The running session's own summary is left out only while the conversation still holds what it sums up."""

import warnings

import pytest
from strands.agent.conversation_manager import (
    NullConversationManager,
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.types.exceptions import ContextWindowOverflowException
from turn_builders import FACTS, last_block, yes

from strands_gated_memory.testing.model import ScriptedModel

OWN = "/summaries/{actorId}/session-1/"
SUMMARIES = "/summaries/{actorId}/"
SESSION = "/summaries/{actorId}/{sessionId}/"
ORDER = '<topic name="Order">The order number is 4711.</topic>'


def remembering(bench, namespaces=(SESSION,), **settings):
    """Return a manager over a memory whose only record is the summary of session-1."""
    bench.remember(ORDER, namespace=OWN)
    return bench.manager(decider=yes, namespaces=namespaces, **settings)


def shown(agent, turns):
    """Return for each turn whether the summary was shown."""
    found = []
    for number in range(turns):
        agent(f"What is my order number? {number}")
        found.append("4711" in str(last_block(agent)))
    return found


def test_it_is_recalled_once_a_window_has_dropped_the_sessions_beginning(bench):
    """A window of four messages: two turns are held, from the third on the summary says what is gone."""
    window = SlidingWindowConversationManager(window_size=4)
    manager = remembering(bench)

    assert shown(bench.agent(manager, conversation_manager=window), 4) == [False, False, False, True]
    assert manager.stats.as_dict()["records_dropped"] == {"own_summary": 3}


def test_it_is_recalled_once_messages_have_been_summed_up(bench):
    """A summarising manager counts what it has summed up as removed."""
    overflow = [ContextWindowOverflowException("too long")]

    def reply(messages):
        if "summarize" in str(messages[-1]["content"]).lower():
            return "They talked."
        return overflow.pop() if len(messages) == 5 and overflow else "Fine."

    managing = SummarizingConversationManager(summary_ratio=0.5, preserve_recent_messages=2)
    agent = bench.agent(remembering(bench), model=ScriptedModel(reply), conversation_manager=managing)

    assert shown(agent, 4) == [False, False, False, True]


@pytest.mark.parametrize("cut", ["in place", "replaced"])
def test_it_is_recalled_once_the_application_has_cut_the_conversation(bench, cut):
    """No conversation manager counts that."""
    agent = bench.agent(remembering(bench))
    before = shown(agent, 2)
    if cut == "in place":
        del agent.messages[:2]
    else:
        agent.messages = agent.messages[2:]

    assert (before, shown(agent, 2)) == ([False, False], [True, True])


@pytest.mark.parametrize(
    ("settings", "restored"),
    [
        pytest.param({}, False, id="restored whole"),
        pytest.param({"agent_id": "another"}, True, id="another agent, which has said nothing yet"),
        pytest.param({"window": 4}, True, id="restored without what a window had dropped"),
        pytest.param({"filter_restored_tool_context": True}, True, id="restored without tool results"),
    ],
)
def test_a_restored_session(bench, settings, restored):
    """In a new process the summary is left out only if the history came back whole."""
    settings = dict(settings)
    window, agent_id = settings.pop("window", 40), settings.pop("agent_id", "first")

    def windowed():
        return SlidingWindowConversationManager(window_size=window)

    with remembering(bench) as manager:
        shown(bench.agent(manager, agent_id="first", conversation_manager=windowed()), 3)
    again = bench.manager(decider=yes, namespaces=(SESSION,), **settings)

    assert shown(bench.agent(again, agent_id=agent_id, conversation_manager=windowed()), 1) == [restored]


def test_a_history_that_could_not_be_read_is_not_whole(bench):
    """The parent logs the failure and starts with an empty conversation."""
    with remembering(bench) as manager:
        shown(bench.agent(manager), 2)
    again = bench.manager(decider=yes, namespaces=(SESSION,))
    again.list_messages = lambda *arguments, **settings: []

    assert shown(bench.agent(again), 1) == [True]


def test_two_agents_in_a_session_hold_a_part_each(bench):
    manager = remembering(bench)
    first, second = bench.agent(manager, agent_id="first"), bench.agent(manager, agent_id="second")

    assert (shown(first, 1), shown(second, 1)) == ([True], [True])


@pytest.mark.parametrize(
    ("template", "own", "other"),
    [
        (SUMMARIES, OWN, "/summaries/{actorId}/session-0/"),
        ("/users/{actorId}/", "/users/{actorId}/summaries/session-1/", "/users/{actorId}/summaries/session-10/"),
        ("/sessions/{sessionId}/{actorId}/", "/sessions/session-1/{actorId}/", None),
        ("/users/{actorId}/of-{sessionId}-now/", "/users/{actorId}/of-session-1-now/", None),
    ],
    ids=["the namespace above", "two above", "in the middle of the path", "within a segment"],
)
def test_own_summaries_are_known_wherever_the_session_stands(bench, template, own, other):
    """Other sessions' summaries are recalled, and so is the own one once the beginning has gone."""
    bench.remember(ORDER, namespace=own)
    if other:
        bench.remember('<topic name="Rum">Talked about rum.</topic>', namespace=other)
    window = SlidingWindowConversationManager(window_size=2)
    agent = bench.agent(bench.manager(decider=yes, namespaces=(template,)), conversation_manager=window)

    agent("What is my order number?")
    first = str(last_block(agent))
    agent("And what was the drink?")
    agent("And what is it now?")

    assert ("4711" in first, "rum" in first) == (False, other is not None)
    assert "4711" in str(last_block(agent))


def test_a_user_whose_id_is_the_sessions_keeps_other_sessions_summaries(bench):
    """The id in the searched path says nothing about the session."""
    bench.remember('<topic name="Rum">Talked about rum.</topic>', namespace="/summaries/{actorId}/session-0/")
    agent = bench.agent(bench.manager(decider=yes, namespaces=(SUMMARIES,), session_id=bench.actor))

    agent("What was the drink?")

    assert "rum" in str(last_block(agent))


def test_a_pinned_summary_is_fetched_again_when_the_beginning_goes(bench):
    """What was kept of it before left the own summary out."""
    manager = remembering(bench, policy={"router": {"pinned": (SESSION,)}})
    agent = bench.agent(manager, conversation_manager=SlidingWindowConversationManager(window_size=4))

    assert shown(agent, 5) == [False, False, False, True, True]
    assert len(bench.core.calls.of("ListMemoryRecords")) == 2


# What is said at construction


@pytest.mark.parametrize("template", [SESSION, "/sessions/{sessionId}/summaries/{actorId}/"])
def test_a_namespace_that_can_never_yield_anything_is_told_about(bench, template):
    """Nothing removes the beginning, so the own summaries, and there are no others, are always left out."""
    manager = bench.manager(decider=yes, namespaces=(FACTS, template))

    with pytest.warns(UserWarning, match="will find nothing.*take the namespace out of retrieval_config") as drawn:
        bench.agent(manager, conversation_manager=NullConversationManager())

    assert template in str(drawn[0].message)
    assert len(drawn) == 1


@pytest.mark.parametrize(
    ("template", "policy", "managing"),
    [
        (SESSION, {}, SlidingWindowConversationManager()),
        (SESSION, {"retrieve": {"skip_own_summary": False}}, NullConversationManager()),
        (SUMMARIES, {}, NullConversationManager()),
        ("/facts/{actorId}/{sessionId}/", {}, NullConversationManager()),
    ],
    ids=["a window", "not skipped", "every session's", "no summaries"],
)
def test_a_namespace_that_may_yield_something_draws_no_warning(bench, template, policy, managing):
    manager = bench.manager(decider=yes, namespaces=(template,), policy=policy)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bench.agent(manager, conversation_manager=managing)
