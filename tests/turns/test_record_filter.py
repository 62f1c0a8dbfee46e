"""A filter of the application's, and namespaces that find nothing: what a search leaves out is never silent."""

import functools
import logging

import pytest
from bedrock_agentcore.memory.client import MemoryClient
from turn_builders import FACTS, PREFERENCES, last_block, yes

from strands_gated_memory import ConfigurationError, GatedMemorySessionManager, RecallPolicy, RecallStats


def filtered(bench, record_filter, **policy):
    return GatedMemorySessionManager(
        bench.config(), boto_session=bench.session, decider=None, record_filter=record_filter,
        policy=RecallPolicy(**policy),
    )  # fmt: skip


def test_a_record_filter_leaves_records_out(bench):
    bench.remember("Likes tea", "Secret salary")
    manager = filtered(bench, lambda record: "Secret" not in record.text)
    agent = bench.agent(manager)
    agent("What do I drink?")

    assert last_block(agent) == ["Likes tea"]
    assert manager.stats.as_dict()["records_dropped"] == {"filtered": 1}


@pytest.mark.parametrize("failure", ["raises", "returns a coroutine", "cannot be judged"])
def test_a_record_filter_that_fails_is_closed_and_counted(bench, caplog, failure):
    bench.remember("Likes tea", "Secret salary")

    async def later():
        return True

    class Neither:
        def __bool__(self):
            raise TypeError

    def check(record):
        if "Secret" not in record.text:
            return True
        if failure == "raises":
            raise KeyError(record.text)
        return later() if failure == "returns a coroutine" else Neither()

    manager = filtered(bench, check)
    agent = bench.agent(manager)
    agent("What do I drink?")

    kind = "KeyError" if failure == "raises" else "TypeError"
    assert last_block(agent) == ["Likes tea"]
    assert manager.stats.as_dict()["records_dropped"] == {"filter_failed": 1}
    assert manager.stats.as_dict()["record_filter_errors_by_kind"] == {kind: 1}
    assert str(manager.stats).startswith("!! record filter errors  1")
    assert f"stage=<filter>, reason=<{kind}>" in caplog.text
    assert "salary" not in caplog.text


def test_a_pinned_record_is_filtered_on_every_turn(bench):
    """Also when it comes from the cache: access may be withdrawn meanwhile, and given again."""
    bench.remember("Likes tea")
    allowed = []
    manager = filtered(bench, lambda record: allowed[-1], router={"pinned": [FACTS]})
    agent = bench.agent(manager)
    shown = []
    for verdict in (True, False, True):
        allowed.append(verdict)
        agent("What do I drink?")
        shown.append(last_block(agent))

    assert shown == [["Likes tea"], [], ["Likes tea"]]
    assert len(bench.core.calls.of("ListMemoryRecords")) == 1


@pytest.mark.parametrize("wrong", [3, "text"])
def test_a_record_filter_must_be_a_plain_function(bench, wrong):
    async def check(record):
        return True

    with pytest.raises(ConfigurationError, match="record_filter cannot be called as"):
        filtered(bench, wrong)
    with pytest.raises(ConfigurationError, match="record_filter is async"):
        filtered(bench, check)


@pytest.mark.parametrize("where", ["class", "instance", "nowhere"])
def test_a_wrapped_client_is_told_that_it_is_passed_by(bench, caplog, monkeypatch, where):
    @functools.wraps(MemoryClient.retrieve_memories)
    def wrapped(self, *args, **kwargs):
        return []

    if where == "class":
        monkeypatch.setattr(MemoryClient, "retrieve_memories", wrapped)
    managers = [bench.manager(session_id=f"s{number}") for number in range(2)]
    if where == "instance":
        managers[0].memory_client.retrieve_memories = lambda **kwargs: []
    bench.agent(managers[0])

    told = [one for one in caplog.records if "retrieve_memories is wrapped" in one.getMessage()]
    assert len(told) == (where != "nowhere")
    assert all("record_filter" in one.getMessage() for one in told)


def empty_warnings(caplog):
    return [one.getMessage() for one in caplog.records if "no lookup of this namespace" in one.getMessage()]


@pytest.mark.parametrize("namespace", ["/fatcs/{actorId}/", "/preferences/{actorId}", "/facts/written-out/{actorId}/"])
def test_a_namespace_that_never_finds_anything_is_told_once(bench, caplog, namespace):
    """After twenty lookups, whoever made them, by its template; one that finds something is not told."""
    bench.remember("Likes tea")
    stats = RecallStats()
    for number in range(25):
        bench.agent(bench.manager(stats=stats, session_id=f"s{number}", namespaces=(FACTS, namespace)))("What?")
        assert len(empty_warnings(caplog)) == (number >= 19)

    assert f"namespace=<{namespace.rstrip('/')}" in empty_warnings(caplog)[0]
    assert "normal while its users are new" in empty_warnings(caplog)[0]
    assert f"{namespace} gave no record in any of 25 lookups" in str(stats)
    assert FACTS + " gave" not in str(stats)


def test_a_path_written_out_for_one_user_is_told_without_the_user(bench, caplog):
    manager = bench.manager(namespaces=(f"/fatcs/{bench.actor}/",))
    agent = bench.agent(manager)
    for _ in range(20):
        agent("What?")

    assert "namespace=</fatcs/{actorId}/>" in empty_warnings(caplog)[0]
    assert bench.actor not in empty_warnings(caplog)[0] + str(manager.stats)


def test_what_fails_or_has_found_something_is_not_told_to_be_empty(bench, caplog):
    bench.remember("Likes tea", namespace=PREFERENCES)
    manager = bench.manager(decider=yes, namespaces=(FACTS, PREFERENCES), policy={"breaker": None})
    agent = bench.agent(manager)
    bench.core.fail("RetrieveMemoryRecords", "ThrottledException")
    for _ in range(21):
        agent("What?")

    assert empty_warnings(caplog) == []
    assert manager.stats.as_dict()["namespaces_without_records"] == {}


@pytest.mark.parametrize(("given", "said"), [(None, "None"), ({}, "empty")])
def test_a_configuration_that_recalls_nothing_is_told_once(bench, caplog, given, said):
    caplog.set_level(logging.WARNING)
    for number in range(3):
        bench.manager(retrieval_config=given, session_id=f"s{number}")

    assert caplog.text.count(f"retrieval_config is {said}") == 1
    assert "write AgentCoreMemoryConfig(retrieval_config=" in caplog.text


async def later(value):
    """Stand for a function that somebody wrote for an event loop."""


@pytest.mark.parametrize("function", [lambda: True, lambda record, turn: True, later], ids=["none", "two", "async"])
@pytest.mark.parametrize("argument", ["record_filter", "on_recall"])
def test_a_function_that_could_never_be_called_is_refused(bench, argument, function):
    with pytest.raises(ConfigurationError, match=rf"{argument} .*(cannot be called as|is async).*"):
        GatedMemorySessionManager(bench.config(), boto_session=bench.session, decider=None, **{argument: function})


@pytest.mark.parametrize("function", [lambda: 1, lambda text, model: 1, later], ids=["none", "two", "async"])
def test_a_token_counter_that_could_never_be_called_is_refused(function):
    with pytest.raises(ValueError, match=r"select\.token_counter .*(cannot be called as|is async)"):
        RecallPolicy(select={"token_counter": function})


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt, GeneratorExit], ids=lambda kind: kind.__name__)
def test_a_record_filter_that_tries_to_end_the_thread_leaves_out_its_record_alone(bench, caplog, ending):
    """The search has not failed, its circuit breaker stays closed, and no log line quotes the record."""
    bench.remember("Likes tea", "Secret salary")

    def check(record):
        if "Secret" in record.text:
            raise ending(record.text)
        return True

    manager = filtered(bench, check)
    agent = bench.agent(manager)
    agent("What do I drink?")

    counts = manager.stats.as_dict()
    assert last_block(agent) == ["Likes tea"]
    assert (counts["retrieval_errors"], counts["record_filter_errors_by_kind"]) == (0, {ending.__name__: 1})
    assert "Secret" not in caplog.text


def test_the_warning_about_a_record_filter_says_that_it_is_closed(bench, caplog):
    """Only what lets memory through has failed open."""
    bench.remember("Likes tea")
    bench.agent(filtered(bench, lambda record: 1 / 0))("What do I drink?")

    (line,) = [line for line in caplog.messages if "stage=<filter>" in line]
    assert "failed closed" in line
    assert "failed open" not in line


def test_a_namespace_without_its_strategy_id_is_told_once(bench, caplog):
    """A server makes a manager for each request, and each of them fills the templates several times."""
    for _ in range(3):
        bench.manager(namespaces=("/strategies/{memoryStrategyId}/{actorId}/",))

    assert len([line for line in caplog.messages if "strategy_id" in line]) == 1


@pytest.mark.parametrize("blank", ["", " ", "\t\n"], ids=repr)
def test_a_namespace_without_a_name_is_refused(bench, blank):
    """Filled, it would be "/", under which the records of all users stand."""
    with pytest.raises(ConfigurationError, match="is empty; write"):
        bench.manager(namespaces=(FACTS, blank))
