"""A search that fails costs its own records only, is told apart from an empty one, and never raises into the turn."""

import threading

import pytest
from turn_builders import FACTS, PREFERENCES, Hanging, blocks_per_call, last_block, until, yes

from strands_gated_memory import Record, SearchResult
from strands_gated_memory.retrieval.agentcore import AgentCoreRetriever, NamespaceSearch

SEARCH = "RetrieveMemoryRecords"
NAMESPACES = (FACTS, PREFERENCES)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("ThrottledException", None, "throttled"),
        ("TooManyRequestsException", 429, "throttled"),
        ("AccessDeniedException", None, "access_denied"),
        ("ExpiredTokenException", 403, "access_denied"),
        ("ResourceNotFoundException", None, "not_found"),
        ("ValidationException", None, "rejected"),
        ("InvalidInputException", None, "rejected"),
        ("ServiceQuotaExceededException", None, "rejected"),
        ("ServiceException", None, "service_failed"),
        ("SomethingNewException", 503, "service_failed"),
        ("ReadTimeoutError", None, "timeout"),
        ("ConnectTimeoutError", None, "timeout"),
        ("EndpointConnectionError", None, "unavailable"),
    ],
)
def test_each_failure_has_its_own_name_in_the_counters(bench, code, status, kind):
    """One attempt, no exception, and the kind that an operator needs."""
    bench.core.fail(SEARCH, code, status=status)
    manager = bench.manager(decider=yes)
    agent = bench.agent(manager)

    assert agent("What do I drink?").stop_reason == "end_turn"

    assert blocks_per_call(agent) == [0]
    assert manager.stats.as_dict()["retrieval_errors_by_kind"] == {kind: 1}
    assert str(manager.stats).startswith("!! retrieval errors  1  (failed open")


def test_an_empty_memory_is_no_failure(bench):
    """Nothing found: no block and no error."""
    manager = bench.manager(decider=yes)

    bench.agent(manager)("What do I drink?")

    assert manager.stats.as_dict()["retrievals"] == 1
    assert manager.stats.retrieval_errors == 0
    assert "!!" not in str(manager.stats)


def test_one_failing_namespace_leaves_the_others_records(bench):
    """A partial result is used, and the failure counted once."""
    bench.remember("Likes tea").remember("Window seat", namespace=PREFERENCES)
    bench.core.fail(SEARCH, "AccessDeniedException", namespace=f"/facts/{bench.actor}/")
    manager = bench.manager(decider=yes, namespaces=NAMESPACES)
    agent = bench.agent(manager)

    agent("Where do I sit?")

    assert last_block(agent) == ["Window seat"]
    assert manager.stats.as_dict()["retrieval_errors_by_kind"] == {"access_denied": 1}


def test_a_slow_namespace_is_left_behind(bench):
    """The turn waits `retrieve.timeout_s`, uses what is there, and counts a timeout."""
    bench.remember("Likes tea").remember("Window seat", namespace=PREFERENCES)
    with Hanging() as hanging:
        bench.at_each(SEARCH, lambda path: "/facts/" in path and hanging())
        policy = {"deadline_s": 60.0, "retrieve": {"timeout_s": 2.0}}
        manager = bench.manager(decider=yes, namespaces=NAMESPACES, policy=policy)
        agent = bench.agent(manager)

        agent("Where do I sit?")

        assert hanging.begun.is_set()
        assert not hanging.ended.is_set()
    assert last_block(agent) == ["Window seat"]
    assert manager.stats.as_dict()["retrieval_errors_by_kind"] == {"timeout": 1}


def test_late_records_never_touch_a_later_turn(bench):
    """What arrives after its turn is dropped: the next turn's block is its own."""
    bench.remember("Likes tea")
    hangs = [True]
    with Hanging() as hanging:
        bench.at_each(SEARCH, lambda path: hangs and hanging())
        policy = {"deadline_s": 60.0, "retrieve": {"timeout_s": 2.0}}
        manager = bench.manager(decider=yes, policy=policy)
        agent = bench.agent(manager)
        agent("slow")
        hangs.clear()
    until(bench.searches)
    bench.core.fail(SEARCH, "ThrottledException")
    agent("And now?")

    assert blocks_per_call(agent) == [0, 0]
    assert manager.last_recall.records == ()
    assert manager.stats.as_dict()["retrieval_errors_by_kind"] == {"throttled": 1, "timeout": 1}
    assert manager.stats.as_dict()["records_returned"] == 0


def test_namespaces_are_searched_side_by_side(bench):
    """Each of three searches waits until all have begun."""
    namespaces = tuple(f"/n{number}/{{actorId}}/" for number in range(3))
    all_begun = threading.Barrier(3)
    manager = bench.at_each(SEARCH, lambda path: all_begun.wait(30)).manager(namespaces=namespaces)

    bench.agent(manager)("What do I drink?")

    assert not all_begun.broken
    assert len(bench.searches()) == 3
    assert manager.stats.retrieval_errors == 0


def test_memory_comes_back_when_the_service_does(bench):
    """A failed turn leaves nothing behind."""
    bench.remember("Likes tea")
    bench.core.fail(SEARCH, "ServiceException", times=1)
    agent = bench.agent(bench.manager(decider=yes))

    agent("What do I drink?")
    agent("And now?")

    assert blocks_per_call(agent) == [0, 1]


class Pages:
    """A data-plane client that answers with the given pages, then fails."""

    def __init__(self, *pages):
        self.pages = list(pages)
        self.requests = []

    def retrieve_memory_records(self, **request):
        self.requests.append(request)
        page = self.pages[len(self.requests) - 1]
        if isinstance(page, Exception):
            raise page
        return page


def summaries(*texts):
    return [{"memoryRecordId": f"mem-{text}", "content": {"text": text}, "score": 0.5} for text in texts]


def retriever(client, **search):
    named = NamespaceSearch("/facts/{actorId}/", "/facts/bob/", **{"top_k": 10, "relevance_score": 0.2, **search})
    return AgentCoreRetriever(client, "memory-1", "session-1", {named.key: named}, skip_own_summary=True)


def test_pages_are_followed_up_to_top_k():
    """A service that pages smaller than asked still gives top_k records, and no request more."""
    client = Pages(
        {"memoryRecordSummaries": summaries("a", "b"), "nextToken": "1"},
        {"memoryRecordSummaries": [], "nextToken": "2"},
        {"memoryRecordSummaries": summaries("c", "d"), "nextToken": "3"},
    )

    found = retriever(client, top_k=3).search("/facts/{actorId}/", "q")

    assert [record.text for record in found] == ["a", "b", "c"]
    assert [request.get("nextToken") for request in client.requests] == [None, "1", "2"]


def test_a_token_that_repeats_ends_the_search():
    """A service that hands out the same page forever is not asked forever."""
    page = {"memoryRecordSummaries": summaries("a"), "nextToken": "same"}

    found = retriever(Pages(page, page, page)).search("/facts/{actorId}/", "q")

    assert len(found.records) == 2


@pytest.mark.parametrize(("top_k", "asked"), [(1, 1), (30, 30), (100, 100), (101, 100), (1000, 100)])
def test_top_k_is_clamped_to_the_services_limit(bench, top_k, asked):
    """More than 100 asks for 100, where the stock manager gets a ValidationException and no memory."""
    from bedrock_agentcore.memory.integrations.strands.config import RetrievalConfig

    bench.remember(*(f"Fact number {number}" for number in range(101)))
    manager = bench.manager(namespaces={FACTS: RetrievalConfig(top_k=top_k)}, policy={"select": {"max_records": None}})

    bench.agent(manager)("What do I drink?")

    (search,) = bench.searches()
    assert search.top_k == asked
    assert len(manager.last_recall.records) == min(asked, 101)
    assert manager.stats.retrieval_errors == 0


@pytest.mark.parametrize(
    ("question", "cut"),
    [
        ("word " * 4000, len(("word " * 2000).strip())),
        ("x" * 20_000, 10_000),
        ("漢字" * 10_000, 10_000),
        ("short", 5),
    ],
)
def test_a_long_query_is_cut_at_a_word(bench, question, cut):
    """Over 10,000 characters the service refuses; the cut query is searched and never ends in half a word."""
    bench.remember("Likes tea")
    manager = bench.manager(decider=yes)
    agent = bench.agent(manager)

    agent(question)

    (query,) = bench.queries()
    assert len(query) <= 10_000
    assert len(query) >= cut - len("word … word")
    beginning, _, end = query.partition(" … ")
    assert question.startswith(beginning)
    assert question.rstrip().endswith(end)
    assert not question.startswith("word") or {*beginning.split(), *end.split()} == {"word"}
    assert last_block(agent) == ["Likes tea"]


@pytest.mark.parametrize("story", ["I walked along the quay. " * 480, "log line without a point\n" * 900])
def test_a_long_message_is_searched_for_by_both_its_ends(bench, story):
    """The question may stand before a long story or after it; both ends reach the service."""
    bench.remember("Likes tea")
    agent = bench.agent(bench.manager(decider=yes))

    agent(f"Which tea do I like? {story}")
    agent(f"{story} So what can I cook for my daughter tonight?")

    first, last = bench.queries()
    assert first.startswith("Which tea do I like?")
    assert last.endswith("So what can I cook for my daughter tonight?")
    assert max(len(first), len(last)) <= 10_000


def test_the_strategy_is_sent_only_behind_its_switch(bench):
    """`retrieve.send_strategy_id` filters by strategy; by default it fills the path alone, as in the stock manager."""
    from bedrock_agentcore.memory.integrations.strands.config import RetrievalConfig

    strategy = bench.core.strategy_ids["SEMANTIC"]
    bench.remember("Likes tea", memory_strategy_id=strategy).remember("Likes rum")
    namespaces = {FACTS: RetrievalConfig(strategy_id=strategy)}
    agent = bench.agent(bench.manager(namespaces=namespaces))
    filtered = bench.agent(
        bench.manager(namespaces=namespaces, session_id="s2", policy={"retrieve": {"send_strategy_id": True}})
    )

    agent("What do I drink?")
    filtered("What do I drink?")

    assert sorted(last_block(agent)) == ["Likes rum", "Likes tea"]
    assert last_block(filtered) == ["Likes tea"]


def test_a_search_result_says_what_it_left_out():
    """The search's own drops are counted with the pipeline's."""
    assert list(SearchResult((Record("a", "n"),))) == [Record("a", "n")]
