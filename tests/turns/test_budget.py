"""What a limit of tokens does to long records: the best that does not fit whole is cut where a reader would stop."""

import itertools

import pytest
from turn_builders import FACTS, judging, last_block, yes

from strands_gated_memory import RecallPipeline, RecallPolicy, Record, Turn, resolve_decider
from strands_gated_memory.core.columns import columns
from strands_gated_memory.core.shorten import LEAST_COLUMNS

SENTENCES = "".join(f"The user has visited place {place} with Anna and liked the food there. " for place in range(500))
SHORT = [f"Likes dish {number}" for number in range(4)]


def block_of(bench, manager):
    agent = bench.agent(manager)
    agent("What shall I eat?")
    return last_block(agent)


def recalled(records, counter, limit, decide=yes, **select):
    policy = RecallPolicy(select={"token_counter": counter, "max_context_tokens": limit, "dedupe": False, **select})
    search = {FACTS: records}.get
    return RecallPipeline(resolve_decider(decide), policy).recall(Turn("What shall I eat?"), [FACTS], search)


def test_the_best_record_is_cut_to_what_is_left(bench):
    """9,000 characters with P 0.98 beside four short ones with P 0.3: it is there, up to the end of a sentence."""
    bench.remember(SENTENCES[:9000], *SHORT)
    manager = bench.manager(decider=judging(visited=0.98, dish=0.3))

    lines = block_of(bench, manager)

    assert SENTENCES.startswith(lines[0].removesuffix(" …"))
    assert lines[0].endswith("food there. …")
    assert len(lines[0]) > 7500
    trace = manager.last_recall.trace
    assert 1900 < trace.block_tokens <= 2000
    assert [judgement.shortened for judgement in trace.judgements if judgement.probability == 0.98] == [True]
    assert [judgement.reason for judgement in trace.judgements if judgement.shortened] == ["relevant"]
    assert manager.stats.as_dict()["records_shortened"] == 1
    assert "records shortened          1  (injected in part: the rest did not fit)" in str(manager.stats)


def test_those_that_still_fit_whole_may_follow(bench):
    """Room for one sentence and a half: what the half leaves goes to a short one."""
    bench.remember(SENTENCES[:700], *SHORT)
    manager = bench.manager(decider=judging(visited=0.98, dish=0.9), policy={"select": {"max_context_tokens": 35}})

    lines = block_of(bench, manager)

    assert lines[0].endswith("food there. …")
    assert lines[1:]
    assert set(lines[1:]) <= set(SHORT)
    assert manager.last_recall.trace.block_tokens <= 35


def test_a_single_record_of_all_that_the_service_stores(bench):
    bench.remember(SENTENCES[:16000])
    manager = bench.manager(decider=yes)

    (line,) = block_of(bench, manager)

    assert line.endswith("food there. …")
    assert 1900 < manager.last_recall.trace.block_tokens <= 2000


def test_of_several_long_records_one_is_cut_and_the_others_are_left_out(bench):
    bench.remember(*(f"Journey {number}. {SENTENCES[:12000]}" for number in range(3)))
    manager = bench.manager(decider=judging(**{"Journey 1": 0.95}))

    lines = block_of(bench, manager)

    assert len(lines) == 1
    assert lines[0].startswith("Journey 1.")
    assert manager.stats.as_dict()["records_dropped"] == {"max_context_tokens": 2}


def test_without_a_decision_a_long_record_gets_what_the_others_leave(bench):
    """Nothing says that it is better than those that fit whole, however good its search score."""
    bench.plant(text=SENTENCES[:16000], score=0.99)
    for text in SHORT:
        bench.plant(text=text, score=0.3)
    manager = bench.manager(decider=None)

    lines = block_of(bench, manager)

    assert lines[0].endswith("food there. …")
    assert lines[1:] == SHORT
    assert manager.last_recall.trace.block_tokens <= 2000


def test_a_rest_that_is_too_small_to_say_anything_is_not_used(bench):
    """Under `LEAST_COLUMNS` a record is left out as before."""
    bench.remember(SENTENCES[:700])
    manager = bench.manager(decider=yes, policy={"select": {"max_context_tokens": 8 + LEAST_COLUMNS // 4}})

    assert block_of(bench, manager) == []
    assert manager.stats.as_dict()["records_dropped"] == {"max_context_tokens": 1}


@pytest.mark.parametrize("setting", ["shorten", "stock"])
def test_it_can_be_switched_off_and_is_in_the_stock_policy(bench, setting):
    bench.remember(SENTENCES[:16000])
    policy = RecallPolicy(select={"shorten": False}) if setting == "shorten" else RecallPolicy.stock()
    if setting == "stock":
        limited = policy.select.model_copy(update={"max_context_tokens": 2000})
        policy = policy.model_copy(update={"select": limited})
    manager = bench.manager(decider=None, policy=policy)

    bench.agent(manager)("What shall I eat?")

    assert manager.last_recall.records == ()
    assert manager.stats.as_dict()["records_shortened"] == 0


CJK = "用户喜欢在下雨的晚上喝热茶，并且不吃花生。" * 700


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("The user " + "verylong" * 2000, "…"),
        ("x" * 16000, "…"),
        ("The user likes " + "walks and " * 1600, "…"),
        (CJK[:16000], "花生。 …"),
        ("用户喜欢在下雨的晚上喝热茶" * 1200, "…"),
        ("e\u0301" * 8000, "e\u0301…"),
        ("👩‍👩‍👧" * 3000, "👩‍👩‍👧…"),
        ("R&D <b> " * 2000, "…"),
        ("Q&A" * 5000, "…"),
    ],
    ids=["one long word", "no spaces", "one long sentence", "Chinese", "Chinese without a stop", "accents", "families",
         "tags", "ampersands"],
)  # fmt: skip
def test_a_cut_breaks_nothing(text, end):
    """No letter, emoji or escape is cut in two, whatever the script, and the limit is used."""
    recall = recalled([Record(text, FACTS)], lambda text: -(-len(text) // 4), 500)

    (line,) = recall.block.splitlines()[1:-1]
    assert line.endswith(end)
    assert 400 < recall.trace.block_tokens <= 500
    whole = line.removesuffix("…").removesuffix(" ")
    assert text.startswith(whole.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    assert not whole.endswith(("\u200d", "&", "&a", "&am", "&amp"))


@pytest.mark.parametrize(
    "text",
    ["See Dr. Smith about it, e.g. on Monday at 2. or so " * 20, "He said it (the 3.5 mg dose is fine) again " * 20],
)
def test_an_abbreviation_ends_no_sentence(text):
    (line,) = recalled([Record(text, FACTS)], len, 200).block.splitlines()[1:-1]

    assert line.endswith("…")
    assert not line.endswith(" …")


# Counters of a user's own


def words(text):
    return len(text.split())


def quadratic(text):
    """Count a whole as more than its parts."""
    return (len(text) / 40) ** 2


def by_page(text):
    """Count nothing for a while, then a page: not monotone in small steps, and not additive."""
    return len(text) // 500 * 100 + len(text) % 7


def fractions(text):
    return len(text) / 3.7


@pytest.mark.parametrize("counter", [words, quadratic, by_page, fractions, len])
@pytest.mark.parametrize("limit", [0, 1, 7, 60, 400, 3000])
@pytest.mark.parametrize("decide", [yes, None], ids=["decided", "undecided"])
def test_the_block_is_within_the_limit_by_the_policys_own_counter(counter, limit, decide):
    records = [Record(text, FACTS, record_id=str(at)) for at, text in enumerate([*SHORT, SENTENCES[:3000], "y" * 900])]

    recall = recalled(records, counter, limit, decide)

    assert recall.block is None or counter(recall.block) <= limit
    assert recall.trace.block_tokens <= limit
    assert len(recall.records) + len(recall.dropped) == len(records)


@pytest.mark.parametrize("counts", [lambda text: 1 / 0, lambda text: None, lambda text: float("nan"), lambda text: -1],
                         ids=["raises", "nothing", "no number", "negative"])  # fmt: skip
def test_a_counter_that_fails_is_counted_and_tokens_are_estimated(bench, counts):
    """The turn keeps its memory, within the limit as estimated."""
    bench.remember(SENTENCES[:16000], *SHORT)
    manager = bench.manager(decider=yes, policy={"select": {"token_counter": counts}})

    block_of(bench, manager)

    recall = manager.last_recall
    assert recall.records
    assert -(-len(recall.block) // 4) == recall.trace.block_tokens <= 2000
    assert manager.stats.degraded
    assert manager.stats.as_dict()["token_counter_errors"] == 1
    assert "token counter errors       1  (estimated as characters / 4)" in str(manager.stats)
    assert manager.stats.as_dict()["turn_failures"] == 0


def test_a_counter_that_fails_late_leaves_one_unit():
    """What was counted before its failure and what is estimated after it are not added up."""
    calls = itertools.count()

    def tires(text):
        if next(calls) > 3:
            raise TimeoutError
        return len(text)

    recall = recalled([Record(SENTENCES[:900], FACTS, record_id=str(at)) for at in range(9)], tires, 1000)

    assert [failure.kind for failure in recall.trace.failures] == ["timeout"]
    assert -(-len(recall.block) // 4) <= 1000


def test_a_counter_that_is_slow_is_asked_once_where_everything_fits():
    asked = []
    recalled([Record(text, FACTS) for text in SHORT], lambda text: asked.append(text) or len(text), 5000)

    assert len(asked) == 1


def test_a_counter_that_is_slow_does_not_hold_up_the_turn(later):
    """Once the deadline has passed, lines are weighed by their length, and the block alone is counted."""
    asked = []

    def slow(text):
        asked.append(text)
        later(60)
        return len(text)

    records = [Record(SENTENCES[:900], FACTS, record_id=str(number)) for number in range(200)]
    select = {"token_counter": slow, "max_context_tokens": 5000, "max_records": None, "dedupe": False}
    policy = RecallPolicy(select=select, deadline_s=60, retrieve={"timeout_s": 30})
    recall = RecallPipeline(None, policy).recall(Turn("What shall I eat?"), [FACTS], {FACTS: records}.get)

    assert recall.block
    assert len(recall.block) <= 5000
    assert len(asked) < 5


def test_the_least_is_measured_as_people_see_it():
    """Thirty Chinese characters say as much as sixty Latin ones."""
    (line,) = recalled([Record(CJK, FACTS)], len, 32 + 40).block.splitlines()[1:-1]

    assert len(line) < LEAST_COLUMNS <= columns(line)
