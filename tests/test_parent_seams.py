"""Each seam of the SDKs that the manager is built on: when a release moves one, the test's name says which.

A failure means: read that part of `session_manager.py` or `injection/block_injector.py` again. tests/turns says
what users notice of it.
"""

import ast
import inspect
import itertools
from pathlib import Path

import boto3
import pytest
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager as Parent
from botocore.config import Config
from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, MessageAddedEvent
from strands.hooks.registry import HookOrder, HookRegistry
from strands.models import Model

from strands_gated_memory import GatedMemorySessionManager, session_manager
from strands_gated_memory.retrieval.agentcore import _ERRORS
from strands_gated_memory.testing import HashingEncoder, ScriptedModel, local_agentcore

FACTS = "/facts/{actorId}/"
OVERRIDDEN = {
    "__init__",
    "__exit__",
    "initialize",
    "register_hooks",
    "retrieve_customer_context",
    "redact_latest_message",
    "close",
}
"""What the manager overrides. `__module__` and the like aside, anything else would be by accident."""

sessions = itertools.count(1)


@pytest.fixture(scope="module")
def core():
    with local_agentcore(encoder=HashingEncoder()) as core:
        yield core


def config(core, **settings):
    given = {"actor_id": "user-1", "retrieval_config": {FACTS: RetrievalConfig(top_k=3)}, **settings}
    return AgentCoreMemoryConfig(memory_id=core.memory_id, session_id=f"session-{next(sessions)}", **given)


def talking(manager, **settings):
    replies = itertools.repeat("Fine.")
    return Agent(model=ScriptedModel(replies), session_manager=manager, callback_handler=None, **settings)


class Noted(Parent):
    """The parent, noting in which order Strands calls what."""

    def __init__(self, *arguments, **settings):
        self.noted = []
        super().__init__(*arguments, **settings)

    def initialize(self, agent, **settings):
        self.noted.append("initialize")
        super().initialize(agent, **settings)

    def append_message(self, message, agent, **settings):
        self.noted.append(f"append {message['role']}")
        super().append_message(message, agent, **settings)

    def retrieve_customer_context(self, event):
        self.noted.append(f"retrieve {event.message['role']}")


# The parent's class


def test_the_constructor_takes_the_same_arguments():
    """Ours passes them on one by one; a new one of the parent's would only go through **kwargs."""
    theirs = list(inspect.signature(Parent).parameters.values())

    assert [one.name for one in theirs] == [
        "agentcore_memory_config", "region_name", "boto_session", "boto_client_config", "converter", "kwargs",
    ]  # fmt: skip
    assert [one.name for one in theirs if one.kind is one.KEYWORD_ONLY] == ["converter"]
    ours = inspect.signature(GatedMemorySessionManager).parameters
    assert list(ours)[:4] == [one.name for one in theirs[:4]]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("initialize", ["self", "agent", "kwargs"]),
        ("register_hooks", ["self", "registry", "kwargs"]),
        ("retrieve_customer_context", ["self", "event"]),
        ("close", ["self"]),
        ("__enter__", ["self"]),
        ("__exit__", ["self", "exc_type", "exc_val", "exc_tb"]),
    ],
)
def test_the_methods_that_are_overridden_take_the_same_arguments(name, parameters):
    assert list(inspect.signature(getattr(Parent, name)).parameters) == parameters
    assert not inspect.iscoroutinefunction(getattr(Parent, name))


def test_nothing_of_the_parents_is_overridden_by_accident():
    """A method or property that the parent gains under a name of ours."""
    written = {
        name: value
        for name, value in vars(GatedMemorySessionManager).items()
        if (inspect.isfunction(value) or isinstance(value, property)) and name != "__subclasshook__"
    }

    assert {name for name in written if hasattr(Parent, name)} == OVERRIDDEN


def test_the_parent_knows_a_new_session_and_replaces_the_messages_of_a_restored_one(core):
    """Whether a conversation is the whole session is read off these two."""
    settings, session = config(core), boto3.Session(region_name="us-east-1")
    with Parent(settings, boto_session=session) as parent:
        assert parent._is_new_session is True
        talking(parent)("Hello")
    again = Parent(settings, boto_session=session)
    assert again._is_new_session is False
    given = []

    agent = talking(again, messages=given)

    assert agent.messages is not given
    assert len(agent.messages) == 2


def test_no_attribute_of_ours_is_one_of_the_parents(core):
    """What our constructor and methods assign to self, against what an instance of the parent holds."""
    tree = ast.parse(Path(session_manager.__file__).read_text(encoding="utf-8"))
    (manager,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "GatedMemorySessionManager")
    stored = (n for n in ast.walk(manager) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    ours = {n.attr for n in stored if isinstance(n.value, ast.Name) and n.value.id == "self"}
    theirs = set(dir(Parent(config(core), boto_session=boto3.Session(region_name="us-east-1"))))

    assert ours
    assert ours & theirs == set()


def test_the_configuration_is_kept_as_given_and_read_on_every_turn(core):
    """We follow a change of `config.actor_id` because the parent does."""
    given = config(core)
    manager = Parent(given, boto_session=boto3.Session(region_name="us-east-1"))
    searched = []
    manager.memory_client.retrieve_memories = lambda **request: searched.append(request["namespace_path"]) or []
    agent = talking(manager)

    agent("Hello")
    manager.config.actor_id = "user-2"
    agent("Hello again")

    assert manager.config is given
    assert searched == ["/facts/user-1/", "/facts/user-2/"]


def test_the_configuration_has_the_fields_that_are_read():
    fields = AgentCoreMemoryConfig.model_fields

    assert {"memory_id", "actor_id", "session_id", "retrieval_config", "context_tag"} <= set(fields)
    assert fields["context_tag"].default == "user_context"
    assert {"top_k", "relevance_score", "strategy_id"} <= set(RetrievalConfig.model_fields)


def test_clients_are_made_of_the_session_that_is_given(core):
    """Our search client is made as the parent's data-plane client is: same service, region and configuration."""
    made = []

    class Session(boto3.Session):
        def client(self, *names, **settings):
            made.append((*names, settings.get("region_name"), settings.get("config")))
            return super().client(*names, **settings)

    Parent(config(core), boto_session=Session(region_name="eu-west-1"), boto_client_config=Config(connect_timeout=7))

    data_plane = [(region, made_of) for service, region, made_of in made if service == "bedrock-agentcore" and made_of]
    region, made_of = data_plane[-1]  # the MemoryClient's own one, replaced by this, comes first
    assert (region, made_of.connect_timeout) == ("eu-west-1", 7)
    assert made_of.user_agent_extra == "strands-agents"


# The order of a turn


def test_a_message_is_stored_before_context_is_retrieved_for_it(core):
    """What `retrieve_customer_context` does to a message is not what is stored."""
    manager = Noted(config(core), boto_session=boto3.Session(region_name="us-east-1"))

    talking(manager)("Hello")

    assert manager.noted == [
        "initialize", "append user", "retrieve user", "append assistant", "retrieve assistant",
    ]  # fmt: skip


def test_the_order_is_the_same_in_async_mode(core, recwarn):
    manager = Noted(config(core, async_mode=True), boto_session=boto3.Session(region_name="us-east-1"))
    agent = talking(manager)

    async def talk():
        await agent.invoke_async("Hello")

    import asyncio

    asyncio.run(talk())

    assert manager.noted == [
        "initialize", "append user", "retrieve user", "append assistant", "retrieve assistant",
    ]  # fmt: skip


def test_an_invocation_announces_its_messages_and_each_is_added_later(core):
    """The ask is found at the start of an invocation, and recognised by identity when it is added."""
    announced, added, states = [], [], []
    agent = talking(None)
    agent.hooks.add_callback(BeforeInvocationEvent, lambda event: announced.extend(event.messages))
    agent.hooks.add_callback(BeforeInvocationEvent, lambda event: states.append(event.invocation_state))
    agent.hooks.add_callback(MessageAddedEvent, lambda event: added.append((event.agent, event.message)))

    agent("Hello", invocation_state={"recall": False})

    assert [message["role"] for message in announced] == ["user"]
    assert added[0][0] is agent
    assert added[0][1] is announced[0] or added[0][1]["content"][0] is announced[0]["content"][0]
    assert states[0]["recall"] is False


def test_the_end_of_an_invocation_tells_its_result():
    results = []
    agent = talking(None)
    agent.hooks.add_callback(AfterInvocationEvent, lambda event: results.append(event.result))

    agent("Hello")

    assert [result.stop_reason for result in results] == ["end_turn"]


def test_callbacks_can_be_ordered_last():
    """Ours looks at an invocation's messages after every other hook has."""
    heard = []
    agent = talking(None)
    agent.hooks.add_callback(BeforeInvocationEvent, lambda _: heard.append("last"), order=HookOrder.SDK_LAST)
    agent.hooks.add_callback(BeforeInvocationEvent, lambda _: heard.append("default"))

    agent("Hello")

    assert heard == ["default", "last"]


def test_an_exception_in_a_message_hook_ends_the_turn():
    """Why `retrieve_customer_context` must not raise, and why `on_failure="raise"` can."""
    agent = talking(None)

    def fail(_event):
        raise LookupError("in a hook")

    agent.hooks.add_callback(MessageAddedEvent, fail)

    with pytest.raises(LookupError, match="in a hook"):
        agent("Hello")


def test_a_bidi_agent_is_no_agent():
    """It is told apart by its class."""
    try:
        from strands.bidi import BidiAgent
    except ImportError:
        from strands.experimental.bidi import BidiAgent

    assert not issubclass(BidiAgent, Agent)
    assert isinstance(talking(None).hooks, HookRegistry)


# Showing the block


def test_the_context_injector_folds_text_into_a_copy_of_the_newest_user_message():
    """One block per call, after the user's text; the conversation stays as it was."""
    from strands.vended_plugins.context_injector import ContextInjector

    agent = talking(None)
    plugin = ContextInjector(lambda _context: "<note>tea</note>", name="seam", trigger="everyTurn")
    plugin.init_agent(agent)

    agent("Hello")
    agent("Hello again")

    assert ["".join(block["text"] for block in call[-1]["content"]) for call in agent.model.calls] == [
        "Hello\n\n<note>tea</note>",
        "Hello again\n\n<note>tea</note>",
    ]
    assert "tea" not in str(agent.messages)
    assert str(agent.model.calls).count("<note>") == 2


def test_the_input_stage_hands_over_messages_that_can_be_replaced():
    """The block is shown by returning a copy of the stage's context with other messages."""
    from dataclasses import is_dataclass, replace

    from strands.middleware import InvokeModelStage

    agent = talking(None)
    seen = []

    def shout(context):
        seen.append(context)
        return replace(context, messages=[{"role": "user", "content": [{"text": "HELLO"}]}])

    agent.add_middleware(InvokeModelStage.Input, shout)
    agent("Hello")

    assert is_dataclass(seen[0])
    assert agent.model.calls[0][0]["content"] == [{"text": "HELLO"}]
    assert agent.messages[0]["content"] == [{"text": "Hello"}]


def test_a_model_has_these_methods_to_write():
    """`ScriptedModel` and the decision model made of a Strands model rest on them."""
    assert Model.__abstractmethods__ == {"update_config", "get_config", "stream", "structured_output"}


# The service's model


@pytest.fixture(scope="module")
def service():
    return boto3.Session(region_name="us-east-1").client("bedrock-agentcore").meta.service_model


def test_the_search_takes_and_gives_what_is_sent_and_read(service):
    search = service.operation_model("RetrieveMemoryRecords")
    members = search.input_shape.members

    assert {"memoryId", "namespacePath", "searchCriteria", "maxResults", "nextToken"} <= set(members)
    assert {"searchQuery", "topK", "memoryStrategyId"} <= set(members["searchCriteria"].members)
    assert "memoryRecordSummaries" in search.output_shape.required_members
    summary = search.output_shape.members["memoryRecordSummaries"].member.members
    assert {"memoryRecordId", "content", "namespaces", "score", "createdAt", "metadata"} <= set(summary)


def test_the_list_takes_and_gives_what_is_sent_and_read(service):
    listing = service.operation_model("ListMemoryRecords")

    assert {"memoryId", "namespacePath", "memoryStrategyId", "maxResults", "nextToken"} <= set(
        listing.input_shape.members
    )
    assert "memoryRecordSummaries" in listing.output_shape.required_members


@pytest.mark.parametrize("operation", ["RetrieveMemoryRecords", "ListMemoryRecords"])
def test_every_error_of_the_service_has_a_name_of_ours(service, operation):
    """An error that a release adds would be counted by its status alone."""
    assert {shape.name for shape in service.operation_model(operation).error_shapes} <= set(_ERRORS)
