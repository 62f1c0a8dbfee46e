"""RetrieveMemoryRecords over real boto3: ranking, scores, limits, pages."""

import sys
import types

import boto3
import numpy as np
import pytest

from strands_gated_memory.testing import HashingEncoder, local_agentcore, seed_records
from strands_gated_memory.testing.agentcore.ranking import Ranker, score_of

TEXTS = ["Drinks green tea in the morning", "Plays chess on Sundays", "Drinks black coffee at noon"]


def seed(client, core, texts=TEXTS, namespace="/facts/bob/"):
    return seed_records(client, core.memory_id, [{"text": text, "namespace": namespace} for text in texts])


def search(client, core, query="green tea in the morning", *, path="/facts/bob/", page=None, token=None, **criteria):
    more = {"maxResults": page} if page else {}
    if token:
        more["nextToken"] = token
    return client.retrieve_memory_records(
        memoryId=core.memory_id, namespacePath=path, searchCriteria={"searchQuery": query, **criteria}, **more
    )


def rows(response):
    return response["memoryRecordSummaries"]


def texts(response):
    return [row["content"]["text"] for row in rows(response)]


def test_the_most_similar_comes_first(core, client):
    """The order is by similarity and the scores fall within the narrow band."""
    seed(client, core)

    found = search(client, core)
    scores = [row["score"] for row in rows(found)]

    assert texts(found)[0] == TEXTS[0]
    assert scores == sorted(scores, reverse=True)
    assert all(0.35 <= score <= 0.50 for score in scores)


@pytest.mark.parametrize(("cosine", "score"), [(-1, 0.35), (0, 0.3875), (0.5, 0.434375), (1, 0.5), (1.0001, 0.5)])
def test_the_score_is_a_rising_function_of_the_cosine(cosine, score):
    """Worked by hand from the formula in the docstring."""
    assert score_of(cosine) == pytest.approx(score)


def test_ties_are_in_order_of_the_record_id(core, client):
    """Equal texts always come in the same order."""
    ids = seed(client, core, ["same", "same", "same"])

    assert [row["memoryRecordId"] for row in rows(search(client, core, "same"))] == sorted(ids)


def test_the_stored_text_is_embedded_as_it_is():
    """JSON is not unwrapped before it is compared, and each text is encoded once."""

    class Recording(HashingEncoder):
        seen: tuple = ()

        def encode(self, texts):
            self.seen += tuple(texts)
            return super().encode(texts)

    encoder = Recording()
    with local_agentcore(encoder=encoder) as core:
        client = boto3.client("bedrock-agentcore")
        seed(client, core, ['{"fact": "tea"}', '{"fact": "tea"}'])
        search(client, core, "tea?")
        search(client, core, "tea?")

    assert encoder.seen == ("tea?", '{"fact": "tea"}')


def test_an_empty_namespace_is_no_error(core, client):
    """Nothing found is an empty list, and nothing is encoded."""
    assert rows(search(client, core)) == []


def test_bob_does_not_get_bobbys_records(core, client):
    """A path is a subtree by whole segments."""
    seed(client, core, ["bob"], "/facts/bob/")
    seed(client, core, ["bobby"], "/facts/bobby/")
    seed(client, core, ["bob deep"], "/facts/bob/2026/")

    assert sorted(texts(search(client, core, "bob"))) == ["bob", "bob deep"]
    assert sorted(texts(search(client, core, "bob", path="/facts/bob"))) == ["bob", "bob deep"]


def test_an_exact_namespace(core, client):
    """namespace matches itself alone; with namespacePath, or without either, the request is refused."""
    seed(client, core, ["here"], "/a/")
    seed(client, core, ["deeper"], "/a/b/")
    request = {"memoryId": core.memory_id, "searchCriteria": {"searchQuery": "q"}}

    assert texts(client.retrieve_memory_records(namespace="/a/", **request)) == ["here"]
    for bad in ({}, {"namespace": "/a/", "namespacePath": "/a/"}):
        with pytest.raises(client.exceptions.ValidationException):
            client.retrieve_memory_records(**bad, **request)


def test_top_k_bounds_the_result_and_max_results_a_page(core, client):
    """topK 25 comes as pages of 20 and 5, each record once, scores falling; without topK ten come."""
    seed(client, core, [f"tea number {number}" for number in range(40)])

    first = search(client, core, "tea number 7", topK=25)
    second = search(client, core, "tea number 7", topK=25, token=first["nextToken"])
    scores = [row["score"] for row in rows(first) + rows(second)]

    assert (len(rows(first)), len(rows(second))) == (20, 5)
    assert len({row["memoryRecordId"] for row in rows(first) + rows(second)}) == 25
    assert scores == sorted(scores, reverse=True)
    assert "nextToken" not in second
    assert len(rows(search(client, core, "tea number 7", topK=40, page=100))) == 40
    assert len(rows(search(client, core, "tea number 7"))) == 10


def test_a_token_of_another_query_is_refused(core, client):
    """A token continues the search that gave it."""
    seed(client, core)
    token = search(client, core, "a", page=1)["nextToken"]

    with pytest.raises(client.exceptions.InvalidInputException):
        search(client, core, "b", page=1, token=token)


def test_strategy_and_metadata_filters(core, client):
    """Both narrow the candidates before topK."""
    seed_records(
        client,
        core.memory_id,
        [
            {"text": "tea a", "namespace": "/n/", "memory_strategy_id": "s-a", "metadata": {"x": 1}},
            {"text": "tea b", "namespace": "/n/", "memory_strategy_id": "s-b", "metadata": {"x": 2}},
        ],
    )
    above = {"left": {"metadataKey": "x"}, "operator": "GREATER_THAN", "right": {"metadataValue": {"numberValue": 1}}}

    assert texts(search(client, core, "tea a", path="/n/", memoryStrategyId="s-b", topK=1)) == ["tea b"]
    assert texts(search(client, core, "tea a", path="/n/", metadataFilters=[above], topK=1)) == ["tea b"]


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("searchCriteria.searchQuery", {"query": "x" * 10_001}),
        ("searchCriteria.topK", {"topK": 101}),
        ("maxResults", {"page": 101}),
        ("namespacePath", {"path": "/facts/{actorId}/"}),
        (
            "searchCriteria.metadataFilters",
            {"metadataFilters": [{"left": {"metadataKey": "k"}, "operator": "EXISTS"}] * 6},
        ),
    ],
)
def test_search_limits(core, client, field, change):
    """What passes botocore and breaks a limit is refused, with the field named and the query not quoted."""
    with pytest.raises(client.exceptions.ValidationException) as caught:
        search(client, core, **change)

    assert [row["name"] for row in caught.value.response["fieldList"]] == [field]
    assert "xxx" not in str(caught.value)


def test_the_limits_themselves_are_allowed(core, client):
    """10,000 characters, topK 100, a page of 100."""
    seed(client, core)

    assert len(rows(search(client, core, "x" * 10_000, topK=100, page=100))) == 3


def test_the_default_encoder_is_the_packages_own(monkeypatch):
    """It is loaded at the first search that has something to rank, and a failure to load is not hidden."""
    module = types.ModuleType("strands_gated_memory.embedded.encoder")
    module.default_encoder = HashingEncoder
    monkeypatch.setitem(sys.modules, module.__name__, module)
    ranker = Ranker(None)

    assert ranker.cosines("tea", []) == []
    assert ranker.cosines("tea", ["tea"]) == [1.0]

    def broken():
        raise OSError("no model")

    module.default_encoder = broken
    with pytest.raises(OSError, match="no model"):
        Ranker(None).cosines("tea", ["tea"])


def test_an_encoder_that_returns_too_little_is_reported():
    """A vector per text, or an error that says so."""

    class Short:
        def encode(self, texts):
            return np.zeros((1, 384))

    with pytest.raises(ValueError, match=r"\(1, 384\) for 2 texts"):
        Ranker(Short()).cosines("a", ["b"])


def test_the_hashing_encoder_is_normalised_and_stable():
    """Unit vectors of 384 numbers, even for no text; the same text the same vector, case ignored."""
    vectors = HashingEncoder().encode(["", "Tea", "tea", "coffee", "teapot"])

    assert vectors.shape == (5, 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(5))
    assert (vectors[1] == vectors[2]).all()
    assert vectors[2] @ vectors[4] > vectors[2] @ vectors[3]
    assert HashingEncoder().encode([]).shape == (0, 384)
