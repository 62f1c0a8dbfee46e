"""Changing the class name is the whole migration: every argument of the parent does here what it does there."""

import inspect

import boto3
import pytest
from bedrock_agentcore.memory.integrations.strands.bedrock_converter import AgentCoreMemoryConverter
from bedrock_agentcore.memory.integrations.strands.config import RetrievalConfig
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager
from botocore.config import Config
from turn_builders import FACTS, GATED, PREFERENCES, STOCK, broken, spoken, yes

from strands_gated_memory import ConfigurationError, GatedMemoryError, GatedMemorySessionManager, RecallStats

BOTH = pytest.mark.parametrize("kind", [AgentCoreMemorySessionManager, GatedMemorySessionManager])


class Shouting(AgentCoreMemoryConverter):
    """Stores what the user says in capitals."""

    @staticmethod
    def message_to_payload(session_message):
        return [(text.upper(), role) for text, role in AgentCoreMemoryConverter.message_to_payload(session_message)]


def gated(*arguments, decider=None, **keywords):
    return GatedMemorySessionManager(*arguments, decider=decider, **keywords)


def clients(manager):
    """Return what can be told apart of a manager's two clients: service, region, options."""
    found = [manager.memory_client.gmdp_client.meta, manager.memory_client.gmcp_client.meta]
    return [
        (
            m.service_model.service_name,
            m.region_name,
            m.config.user_agent_extra,
            m.config.read_timeout,
            m.config.retries,
        )
        for m in found
    ]


def test_every_argument_of_the_parent_has_its_name_place_and_default():
    """The parent's parameters are ours, in the same order and kind, before our own."""
    theirs = list(inspect.signature(AgentCoreMemorySessionManager).parameters.values())
    ours = inspect.signature(GatedMemorySessionManager).parameters

    positional = [p.name for p in theirs if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert list(ours)[: len(positional)] == positional
    assert {p.name: (p.kind, p.default) for p in theirs} == {
        p.name: (ours[p.name].kind, ours[p.name].default) for p in theirs
    }


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(lambda bench: ((), {"region_name": "eu-west-1"}), id="region"),
        pytest.param(lambda bench: (("eu-west-1",), {}), id="region positional"),
        pytest.param(lambda bench: ((), {"boto_session": boto3.Session(region_name="ap-south-1")}), id="session"),
        pytest.param(lambda bench: ((None, bench.session), {}), id="session positional"),
        pytest.param(
            lambda bench: (("eu-west-1",), {"boto_session": bench.session}), id="region wins over the session's"
        ),
        pytest.param(lambda bench: ((), {"boto_client_config": Config(read_timeout=7)}), id="client config"),
        pytest.param(lambda bench: ((), {"boto_client_config": Config(user_agent_extra="shop/1.0")}), id="user agent"),
        pytest.param(
            lambda bench: (("us-west-2", bench.session, Config(retries={"max_attempts": 7})), {}), id="all positional"
        ),
        pytest.param(lambda bench: ((), {"converter": Shouting}), id="converter"),
    ],
)
def test_an_argument_means_what_it_means_to_the_parent(bench, arguments):
    """Region, session, client configuration and converter reach the parent's clients unchanged."""
    positional, keywords = arguments(bench)
    theirs = AgentCoreMemorySessionManager(bench.config(), *positional, **keywords)
    ours = gated(bench.config(), *positional, **keywords)

    assert clients(ours) == clients(theirs)
    assert ours.converter is theirs.converter
    assert isinstance(ours, AgentCoreMemorySessionManager)


@BOTH
def test_the_configuration_can_be_given_by_name(bench, kind):
    """`agentcore_memory_config=` works, and the object is kept, not copied."""
    config = bench.config(namespaces=())

    extra = {} if kind is AgentCoreMemorySessionManager else {"decider": None}
    manager = kind(agentcore_memory_config=config, boto_session=bench.session, **extra)

    assert manager.config is config
    assert manager.session_id == config.session_id


@BOTH
def test_the_converter_stores_what_is_said(bench, kind):
    """A converter of the user's own writes the events of both managers."""
    extra = {} if kind is AgentCoreMemorySessionManager else {"decider": None}
    manager = kind(bench.config(), boto_session=bench.session, converter=Shouting, **extra)

    bench.agent(manager)("good morning")

    assert "GOOD MORNING" in bench.stored()


def test_searches_carry_the_users_client_settings_but_one_short_attempt(bench):
    """The search client keeps region and user agent, and waits `retrieve.timeout_s` once."""
    bench.core.fail("RetrieveMemoryRecords", "ThrottledException")
    config = Config(user_agent_extra="shop/1.0", retries={"max_attempts": 5})
    manager = gated(bench.config(), "eu-west-1", bench.session, config)

    bench.agent(manager)("What do I drink?")

    assert len(bench.searches()) == 1
    client = manager._source.retriever._client
    assert client.meta.region_name == "eu-west-1"
    assert client.meta.config.user_agent_extra == "shop/1.0 strands-agents strands-gated-memory"
    assert client.meta.config.read_timeout == manager.policy.retrieve.timeout_s


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("polcy", "did you mean 'policy'"),
        ("boto_client_cfg", "did you mean 'boto_client_config'"),
        ("region", "did you mean 'region_name'"),
        ("zzz", "known: agentcore_memory_config"),
    ],
)
def test_an_unknown_keyword_warns_with_the_nearest_name(bench, name, hint):
    """What the parent swallows silently is said here, and still ignored."""
    with pytest.warns(UserWarning, match=f"no argument '{name}'.*{hint}") as warned:
        manager = GatedMemorySessionManager(bench.config(), boto_session=bench.session, decider=None, **{name: 1})

    assert warned[0].filename == __file__
    assert manager.session_id == "session-1"


@pytest.mark.parametrize(
    ("namespace", "message"),
    [
        ("/facts/{tenant}/", r"placeholder \{tenant\}; only \{actorId\}, \{sessionId\}"),
        ("/facts/{}/", r"placeholder \{\}"),
        ("/facts/{actorid}/", r"placeholder \{actorid\}"),
        ("/facts/{actorId/", "unbalanced brace"),
        ("/facts/actorId}/", "unbalanced brace"),
        ("/facts/{actorId:{x}}/", "formats the placeholder 'actorId'"),
        ("/facts/{actorId!r}/", "formats the placeholder 'actorId'"),
        ("/facts/{actorId:d}/", "formats the placeholder 'actorId'"),
    ],
)
def test_a_template_that_cannot_be_filled_is_refused_at_construction(bench, namespace, message):
    """The stock manager logs an ERROR per turn and recalls nothing."""
    with pytest.raises(ConfigurationError, match=message):
        bench.manager(namespaces=(namespace,))


@pytest.mark.parametrize("setting", ["pinned", "descriptions"])
def test_a_namespace_that_is_not_configured_cannot_be_pinned_or_described(bench, setting):
    """A misspelt namespace in the router names the one that was meant."""
    wrong = "/fact/{actorId}/"
    router = {setting: (wrong,) if setting == "pinned" else {wrong: "facts"}}

    with pytest.raises(ConfigurationError, match=rf"router.{setting} names '{wrong}'.*did you mean '{FACTS}'"):
        bench.manager(namespaces=(FACTS, PREFERENCES), policy={"router": router})


async def _async_callback(recall):
    """Nobody would await it."""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"policy": {"gate": 1}}, "policy must be a RecallPolicy, got {'gate': 1}", id="policy"),
        pytest.param({"stats": {}}, "stats must be a RecallStats, got {}", id="stats"),
        pytest.param({"stats": RecallStats}, "stats must be a RecallStats", id="stats class"),
        pytest.param({"on_recall": "print"}, r"on_recall cannot be called as function\(recall\)", id="on_recall"),
        pytest.param({"on_recall": _async_callback}, "on_recall is async", id="on_recall async"),
        pytest.param({"decider": "embeded"}, "did you mean 'embedded'", id="decider misspelt"),
        pytest.param({"decider": 7}, r"a function \(state, questions\)", id="decider number"),
        pytest.param({"decider": lambda state: {}}, r"cannot be called as function\(state, questions\)", id="arity"),
        pytest.param({"decider": RecallStats}, r"pass an instance, RecallStats\(...\)", id="decider class"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_what_to_write(bench, arguments, message):
    """Mistakes surface when the manager is built, as a ValueError of ours, before any request is made."""
    with pytest.raises(ConfigurationError, match=message) as raised:
        gated(bench.config(), boto_session=bench.session, **arguments)

    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, GatedMemoryError)
    assert len(bench.core.calls) == 0


def test_an_async_decider_is_refused(bench):
    """Its coroutine would never be awaited."""

    async def decide(state, questions):
        return {}

    with pytest.raises(ConfigurationError, match="is async"):
        bench.manager(decider=decide)


def test_a_strategy_template_without_its_strategy_is_said(bench, caplog):
    """A path with a hole finds nothing, so construction says which `strategy_id` is missing."""
    namespace = "/strategy/{memoryStrategyId}/actors/{actorId}/"

    bench.manager(namespaces={namespace: RetrievalConfig(strategy_id="facts-a1b2c3d4e5")})
    said_with_strategy = [r for r in caplog.records if "strategy_id" in r.getMessage()]
    bench.manager(namespaces=(namespace,))

    assert said_with_strategy == []
    assert "strategy_id" in caplog.text
    assert namespace in caplog.text


def test_the_public_attributes_are_readable(bench):
    """`stats`, `policy`, `decider` and `last_recall` belong to the manager and cannot be swapped."""
    manager = bench.manager(decider=yes)
    assert manager.last_recall is None

    bench.agent(manager)("What do I drink?")

    assert manager.last_recall is not None
    assert manager.stats.turns == 1
    assert bench.manager(decider=None).decider is None
    for name in ("stats", "policy", "decider", "last_recall"):
        with pytest.raises(AttributeError):
            setattr(manager, name, None)


def test_the_session_is_written_as_the_parent_writes_it(bench):
    """The same requests in the same order: events and restores; nothing of a recall in them."""
    bench.remember("Likes tea")
    made = {}
    for kind, extra in ((AgentCoreMemorySessionManager, {}), (GatedMemorySessionManager, {"decider": broken})):
        bench.core.calls.clear()
        manager = kind(bench.config(session_id=f"of-{kind.__name__}"), boto_session=bench.session, **extra)
        agent = bench.agent(manager)
        agent("What do I drink?")
        agent("And with milk?")
        made[kind] = [call.operation for call in bench.core.calls if call.operation != "RetrieveMemoryRecords"]
        assert "Likes tea" not in bench.stored()
        assert spoken(agent.messages)[-1] == ("assistant", "Fine.")

    assert made[GatedMemorySessionManager] == made[AgentCoreMemorySessionManager]
    assert made[GatedMemorySessionManager].count("CreateEvent") >= 4


@pytest.mark.parametrize("kind", [STOCK, GATED])
def test_a_configuration_changed_later_is_followed(bench, kind):
    """Namespaces, their limits and the tag, from the next turn on, as the parent does."""
    bench.remember("Likes tea").remember("Window seat", namespace=PREFERENCES)
    manager = bench.manager(kind)
    agent = bench.agent(manager)
    agent("What do I drink?")
    manager.config.retrieval_config = {PREFERENCES: RetrievalConfig(top_k=3)}
    manager.config.context_tag = "memory"
    agent("Where do I sit?")

    assert bench.searches()[-1].namespace_path == PREFERENCES.format(actorId=bench.actor)
    (block,) = [block["text"] for block in agent.model.calls[-1][-1]["content"] if "<memory>" in block["text"]]
    assert "Window seat" in block
    assert "Likes tea" not in block
