"""Records without a decision, from many namespaces: no namespace crowds out another one's best."""

import pytest
from turn_builders import FACTS, PREFERENCES, broken, last_block, probabilities, yes

from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn, resolve_decider

HEALTH = "/health/{actorId}/"
EPILEPSY = "Toma medicación para la epilepsia"


def filled(bench, health_score=0.9):
    """Ten preferences and ten facts, then one record about health."""
    for number in range(10):
        bench.plant(PREFERENCES, text=f"Likes dish {number}", score=0.5 - number / 100)
        bench.plant(FACTS, text=f"Has seen film {number}", score=0.6 - number / 100)
    bench.plant(HEALTH, text=EPILEPSY, score=health_score)


def lines_of(bench, **settings):
    agent = bench.agent(bench.manager(namespaces=(PREFERENCES, FACTS, HEALTH), **settings))
    agent("What shall I do tonight?")
    return last_block(agent)


@pytest.mark.parametrize("decider", [None, broken, "embedded"], ids=["nobody", "fails", "abstains"])
@pytest.mark.parametrize("health_score", [0.9, 0.25], ids=["best score", "worst score"])
def test_the_best_of_each_namespace_is_taken_first(bench, decider, health_score):
    """The limit leaves out the twenty-first record, and that is not the one about health."""
    filled(bench, health_score)
    agent = bench.agent(bench.manager(namespaces=(PREFERENCES, FACTS, HEALTH), decider=decider))
    agent("¿Qué puedo hacer esta noche?")

    lines = last_block(agent)

    assert EPILEPSY in lines
    assert len(lines) == 20
    assert "Likes dish 9" not in lines


def test_they_are_taken_by_score_across_namespaces_and_stand_as_configured(bench):
    """Five of twenty-one: the best of each namespace, then the two next best scores, which are facts."""
    filled(bench)

    lines = lines_of(bench, decider=None, policy={"select": {"max_records": 5}})

    assert lines == ["Likes dish 0", "Has seen film 0", "Has seen film 1", "Has seen film 2", EPILEPSY]


def test_the_stock_policy_keeps_configuration_order(bench):
    filled(bench)
    stock = RecallPolicy.stock()
    limited = stock.model_copy(update={"select": stock.select.model_copy(update={"max_records": 3})})

    manager = bench.manager(namespaces=(PREFERENCES, FACTS, HEALTH), decider=None, policy=limited)
    bench.agent(manager)("What shall I do tonight?")

    assert [one.text for one in manager.last_recall.records] == ["Likes dish 0", "Likes dish 1", "Likes dish 2"]


def test_a_limit_of_tokens_leaves_each_namespace_its_best_too(bench):
    filled(bench, health_score=0.25)

    lines = lines_of(bench, decider=None, policy={"select": {"max_context_tokens": 40}})

    assert EPILEPSY in lines
    assert "Likes dish 0" in lines
    assert "Has seen film 0" in lines


def recalled(records, most, decide=None):
    """Return the texts that a limit lets in, records given as (namespace, text, score)."""
    found = [Record(text, namespace, score) for namespace, text, score in records]
    namespaces = list(dict.fromkeys(record.namespace for record in found))
    policy = RecallPolicy(select={"max_records": most})
    recall = RecallPipeline(None if decide is None else resolve_decider(decide), policy).recall(
        Turn("What shall I do?"), namespaces, lambda name: [record for record in found if record.namespace == name]
    )
    return [record.text for record in recall.records]


def test_without_scores_they_are_taken_in_turns_by_namespace():
    """Three lists of which none is better."""
    records = [(name, f"{name}{number}", None) for name in "abc" for number in range(5)]

    assert recalled(records, 7) == ["a0", "a1", "a2", "b0", "b1", "c0", "c1"]


def test_a_namespace_without_scores_takes_turns_with_those_that_have_them():
    """Neither crowds the other out: a pinned namespace is listed, without scores."""
    records = [("pinned", f"pinned{number}", None) for number in range(9)]
    records += [("scored", f"scored{number}", 0.9) for number in range(9)]

    taken = recalled(records, 6)

    assert [text[:6] for text in taken] == ["pinned"] * 3 + ["scored"] * 3


@pytest.mark.parametrize("score", [float("nan"), "0.9", 10**400, object()], ids=["nan", "text", "huge", "object"])
def test_a_score_that_is_no_number_breaks_nothing(score):
    records = [("a", "a0", 0.5), ("a", "a1", score), ("b", "b0", score), ("b", "b1", 0.1)]

    assert len(recalled(records, 3)) == 3


def deciding(*undecided):
    """Return a decision function that says nothing about records with one of these words, and 0.9 of the rest."""

    def decide(state, questions):
        return {
            name: answer
            for name, answer in yes(state, questions).items()
            if not any(word in questions[name]["instructions"] for word in undecided)
        }

    return decide


def test_decided_records_leave_a_place_for_a_namespaces_best_undecided_one():
    """The Spanish record among English ones: it is the one that the model could not judge, not the worst."""
    records = [("/facts/", f"Has seen film {number:02}", 0.5) for number in range(30)] + [("/health/", EPILEPSY, 0.9)]

    taken = recalled(records, 20, deciding("epilepsia"))

    assert taken[-1] == EPILEPSY
    assert taken[:-1] == [f"Has seen film {number:02}" for number in range(19)]


def test_decided_records_keep_half_of_the_places_and_their_order():
    """However many namespaces hold undecided records."""
    records = [("/facts/", f"film {number}", 0.5) for number in range(6)]
    records += [(f"/n{number}/", f"dish {number}", 0.9) for number in range(6)]

    taken = recalled(records, 4, deciding("dish"))

    assert taken == ["film 0", "film 1", "dish 0", "dish 1"]


def test_one_place_goes_to_the_decided_one():
    records = [("/facts/", "film", 0.1), ("/dishes/", "dish", 0.9)]

    assert recalled(records, 1, deciding("dish")) == ["film"]


def test_undecided_records_leave_the_decided_their_order():
    """By probability, whatever their scores."""
    records = [("/facts/", "first", 0.1), ("/facts/", "second", 0.9), ("/facts/", "third", 0.5)]
    decide = probabilities(0.9, record_0=0.4, record_1=0.6, record_2=0.5)

    assert recalled(records, 2, decide)[0] in ("second", "third")


def decided_but(*words):
    """Return a decision function that gives no answer about texts that hold one of the words."""

    def decide(state, questions):
        return {
            name: {"type": "noul", "noul": 0.9}
            for name, question in questions.items()
            if not any(word in question["instructions"] for word in words)
        }

    return decide


@pytest.mark.parametrize("counter", [None, len, lambda text: len(text.split())], ids=["default", "characters", "words"])
def test_a_limit_of_tokens_keeps_room_for_a_namespaces_best_undecided_one(counter):
    """Ten decided records of a hundred words fill the limit three times; the one about health is in all the same."""
    long = [Record(f"Film {number}: " + "seen it " * 50, FACTS, 0.9) for number in range(10)]
    found = {FACTS: long, HEALTH: [Record(EPILEPSY, HEALTH, 0.99), Record(f"{EPILEPSY} leve", HEALTH, 0.9)]}
    count = counter or (lambda text: len(text) / 4)
    limit = 3 * count(long[0].text)
    select = {"max_context_tokens": int(limit), **({"token_counter": counter} if counter else {})}
    pipeline = RecallPipeline(resolve_decider(decided_but("epilepsia")), RecallPolicy(select=select))

    recall = pipeline.recall(Turn("What shall I do?"), list(found), found.get)

    assert EPILEPSY in [record.text for record in recall.records]
    assert len([record for record in recall.records if record.namespace == FACTS]) >= 2
    assert count(recall.block) <= limit


def test_half_of_the_tokens_at_most_are_kept_for_undecided_ones():
    """One undecided record each in thirty namespaces leaves the decided ones half of the limit."""
    found = {FACTS: [Record(f"Film {number}: " + "seen it " * 20, FACTS, 0.9) for number in range(30)]}
    for number in range(30):
        found[f"/n{number}/"] = [Record(f"Nota {number}: " + "vista " * 25, f"/n{number}/", 0.5)]
    policy = RecallPolicy(select={"max_context_tokens": 1000, "max_records": None})
    pipeline = RecallPipeline(resolve_decider(decided_but("vista")), policy)

    recall = pipeline.recall(Turn("What shall I do?"), list(found), found.get)

    decided = [record for record in recall.records if record.namespace == FACTS]
    assert 400 < sum(len(record.text) / 4 for record in decided) < 600
    assert len(recall.records) > len(decided) + 5
