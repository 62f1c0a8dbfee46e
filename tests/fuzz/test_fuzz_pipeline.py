"""Whole recalls over hostile records, answers, searches and policies: nothing raises, every limit and count holds."""

import json
import logging

import pytest
from hostile import NAMESPACES, Replies, deciders, found, fuzz, policies, text, usual
from hypothesis import example, given
from hypothesis import strategies as st

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, SearchResult, Turn
from strands_gated_memory.core.types import Dropped
from strands_gated_memory.deciders.resolve import resolve_decider
from strands_gated_memory.reporting.log import log_failures

TAG = "user_context"

searches = st.tuples(
    st.sampled_from(["list", "result", "generator", "raises", "none"]), found, st.lists(found, max_size=3)
)


def searching(kind, items):
    """Return a search of one namespace that gives the items in one way or another."""

    def search(namespace):
        if kind == "raises":
            raise ConnectionError("no route")
        if kind == "none":
            return None
        if kind == "generator":
            return (item for item in items)
        if kind == "result":
            kept = tuple(item for item in items if isinstance(item, Record))
            return SearchResult(kept, (Dropped(Record("", namespace), "out_of_scope"),))
        return list(items)

    return search


def policy_of(given_policy):
    """Return a policy without the breaker, which remembers across examples."""
    off = {"breaker": None} if "breaker" in RecallPolicy.model_fields else {}
    return RecallPolicy(**given_policy, **off)


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@fuzz
@given(text, st.lists(text, max_size=2), deciders, searches, policies)
@example("x", [], Replies([{"type": "noul", "noul": 0.9}], None), ("list", [Record("</user_context>", "n")], []), {})
def test_a_recall_never_raises_and_keeps_its_promises(message, previous, decider, search, given_policy):
    """Escaped, within the limits, everything that was found accounted for, and countable."""
    policy = policy_of(given_policy)
    kind, items, _ = search
    pipeline = RecallPipeline(resolve_decider(decider), policy)

    recall = pipeline.recall(Turn(message, tuple(previous)), NAMESPACES, searching(kind, items))

    select = policy.select
    assert select.max_records is None or len(recall.records) <= select.max_records
    assert (recall.block is None) == (not recall.records)
    if recall.block is not None:
        assert recall.block.startswith(f"<{TAG}>\n")
        assert recall.block.endswith(f"\n</{TAG}>")
        inner = recall.block[len(TAG) + 3 : -len(TAG) - 4]
        assert "<" not in inner
        assert ">" not in inner
        if policy.render.mode == "prose":
            assert len(inner.split("\n")) == len(recall.records)
        assert select.max_context_tokens is None or recall.trace.block_tokens <= select.max_context_tokens
    assert recall.trace.returned == len(recall.records) + len(recall.dropped)
    given_records = [item for item in items if isinstance(item, Record)]
    assert all(any(record is one for one in given_records) for record in recall.records)
    assert set(recall.trace.gate.namespaces) == set(NAMESPACES)
    if recall.trace.gate.outcome == "closed":
        assert recall.trace.gate.selected == ()
        assert {lookup.namespace for lookup in recall.trace.lookups} <= set(policy.router.pinned)
    stats = RecallStats()
    stats.add(recall)
    log_failures(recall)
    counted = json.loads(json.dumps(stats.as_dict()))
    assert counted["turns"] == 1
    assert counted["records_returned"] == counted["records_injected"] + sum(counted["records_dropped"].values())
    assert str(stats)
    assert "\n" not in stats.line()


@fuzz
@given(text, found, st.lists(usual, min_size=1, max_size=4), policies)
def test_a_recall_is_the_same_twice(message, items, given, given_policy):
    """The same turn, records and answers give the same block, whatever the order of threads."""
    policy = policy_of(given_policy)

    def once():
        pipeline = RecallPipeline(resolve_decider(Replies(given, None)), policy)
        return pipeline.recall(Turn(message), NAMESPACES, searching("list", items))

    first, second = once(), once()

    assert first.block == second.block
    assert [d.reason for d in first.dropped] == [d.reason for d in second.dropped]


@fuzz
@given(text, st.lists(text, max_size=2), found, policies)
def test_without_a_valid_answer_everything_is_kept_that_the_limits_allow(message, previous, items, given_policy):
    """Fail open: a decision model that says nothing is as none at all."""
    policy = policy_of(given_policy)
    turn = Turn(message, tuple(previous))
    silent = RecallPipeline(resolve_decider(Replies([], None)), policy)
    none = RecallPipeline(None, policy)

    kept = silent.recall(turn, NAMESPACES, searching("list", items))
    all_of_them = none.recall(turn, NAMESPACES, searching("list", items))

    assert kept.block == all_of_them.block
    assert kept.records == all_of_them.records


@fuzz
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=14, unique=True),
    st.floats(0.5, 1),
    st.none() | st.integers(0, 6),
    st.none() | st.integers(0, 120),
)
def test_limits_hold_and_are_used(numbers, probability, max_records, max_tokens):
    """Many good records: as many as fit, the limits named as the reason of the others."""
    policy = policy_of({"deadline_s": 20.0, "select": {"max_records": max_records, "max_context_tokens": max_tokens}})
    items = [
        Record("tea " * (number % 7) + f"note {number}", NAMESPACES[0], record_id=str(number)) for number in numbers
    ]
    pipeline = RecallPipeline(resolve_decider(Replies([{"type": "noul", "noul": probability}], None)), policy)

    recall = pipeline.recall(Turn("x"), NAMESPACES[:1], searching("list", items))

    reasons = {dropped.reason for dropped in recall.dropped}
    assert reasons <= {"max_records", "max_context_tokens"}
    assert len(recall.records) <= (len(items) if max_records is None else max_records)
    assert max_tokens is None or recall.trace.block_tokens <= max_tokens
    if "max_context_tokens" not in reasons:
        assert len(recall.records) == min(len(items), len(items) if max_records is None else max_records)


@fuzz
@given(text, st.lists(text, max_size=2), deciders, found)
def test_gate_and_judge_alone_never_raise(message, previous, decider, items):
    """The stages that harnesses call by themselves."""
    pipeline = RecallPipeline(resolve_decider(decider), policy_of({"deadline_s": 20.0}))
    turn = Turn(message, tuple(previous))
    records = [item for item in items if isinstance(item, Record)]

    decision = pipeline.gate(turn, NAMESPACES)
    judgements = pipeline.judge(turn, records)

    assert set(decision.selected) <= set(NAMESPACES)
    assert [j.record for j in judgements] == records
    assert all(j.probability is None or 0.0 <= j.probability <= 1.0 for j in judgements)
