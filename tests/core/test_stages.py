"""The pure stages, one by one: turn, router, same facts, selection, policy, answers."""

from __future__ import annotations

import math
from datetime import datetime, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from strands_gated_memory import Noul, Question, RecallPolicy, Record
from strands_gated_memory.core.gate import choose, describe
from strands_gated_memory.core.questions import Choice, NoAnswer, Score, Thresholds, checked
from strands_gated_memory.core.select import fold, injection_order, select, without_duplicates
from strands_gated_memory.core.turn import find_ask, find_unanswered, text_in, turn_of
from strands_gated_memory.core.types import Row
from strands_gated_memory.policy import SelectSettings, TurnSettings


def user(*texts):
    return {"role": "user", "content": [{"text": text} for text in texts]}


def assistant(text):
    return {"role": "assistant", "content": [{"text": text}]}


TOOL_USE = {"role": "assistant", "content": [{"toolUse": {"name": "t", "toolUseId": "1", "input": {}}}]}
TOOL_RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "1", "content": [{"text": "42"}]}}]}

TAG = "user_context"
BLOCK = "<user_context>\nsecret\n</user_context>"

# Turn


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        pytest.param([user("old"), user("new")], "new", id="the last user text"),
        pytest.param([user("ask"), TOOL_RESULT], "ask", id="a tool result is no ask"),
        pytest.param([{"role": "user", "content": [{"image": {}}, {"text": "what is this?"}]}], "what is this?",
                     id="an image first"),
        pytest.param([user("one", "two")], "one\ntwo", id="several text blocks"),
        pytest.param([user(BLOCK, "ask")], f"{BLOCK}\nask", id="what looks like a block"),
        pytest.param([{"role": "user", "content": [{"guardContent": {"text": {"text": "ask"}}}]}], "ask", id="guarded"),
        pytest.param([{"role": "user", "content": [*TOOL_RESULT["content"], {"text": "ask"}]}], "ask",
                     id="beside a tool result"),
    ],
)  # fmt: skip
def test_the_ask_is_the_last_user_text_of_the_input(messages, asked):
    assert text_in(find_ask(messages)) == asked


@pytest.mark.parametrize(
    "messages",
    [None, [], [assistant("hi")], [TOOL_RESULT], [user("")], [user("  \n")], [{"role": "user", "content": []}],
     [{"role": "user"}], [{"role": "user", "content": "plain"}], [{"role": "user", "content": [None, "x"]}]],
)  # fmt: skip
def test_input_without_user_text_has_no_ask(messages):
    assert find_ask(messages) is None


def test_history_is_the_last_user_text_and_the_final_assistant_text_before_the_ask():
    history = [user("first"), assistant("reply"), user("second"), assistant("looking"), TOOL_USE, TOOL_RESULT,
               assistant("found it")]  # fmt: skip

    assert turn_of("third", history, TurnSettings()).previous == ("second", "found it")
    assert turn_of("third", history, TurnSettings(history_pairs=2)).previous == (
        "first", "reply", "second", "found it")  # fmt: skip
    assert turn_of("third", history, TurnSettings(history_pairs=0)).previous == ()


def test_history_texts_are_cut_and_hold_no_recall_block():
    history = [{**user(BLOCK, "q" * 1000), "tracking_id": "1"}, assistant("a" * 1000)]

    assert turn_of("next", history, TurnSettings(), {"1": (BLOCK,)}).previous == ("q" * 400, "a" * 400)


def test_a_block_within_a_text_is_left_out_of_the_history():
    history = [{**user(f"first\n\n{BLOCK}"), "tracking_id": "1"}, assistant("reply")]

    assert turn_of("next", history, TurnSettings(), {"1": (BLOCK,)}).previous == ("first", "reply")


@pytest.mark.parametrize(
    ("messages", "unanswered"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([user("one")], "one", id="an ask"),
        pytest.param([user("one"), assistant("fine")], None, id="an answer"),
        pytest.param([user("one"), assistant("fine"), user("two")], "two", id="the next ask"),
        pytest.param([user("one"), user("two")], "two", id="two asks"),
        pytest.param([user("one"), TOOL_USE, TOOL_RESULT], "one", id="tool calls and results are no answers"),
        pytest.param([assistant("hello"), TOOL_USE, TOOL_RESULT], None, id="no ask"),
    ],
)
def test_the_unanswered_ask_is_the_last_user_text_without_a_final_answer(messages, unanswered):
    message = find_unanswered(messages)

    assert (None if message is None else text_in(message)) == unanswered


# Router


@pytest.mark.parametrize(
    ("namespace", "strategy", "word"),
    [
        ("/preferences/{actorId}/", None, "preferences"),
        ("/facts/{actorId}/", None, "facts"),
        ("/summaries/{actorId}/{sessionId}/", None, "summaries"),
        ("/strategies/{memoryStrategyId}/actors/{actorId}/episodes", None, "episodes"),
        ("/support/{actorId}/cases/", None, "support cases"),
        ("/users/ines/health/", None, "health"),
        ("/strategy/{memoryStrategyId}/actors/{actorId}/", "user_preference-a1b2c3d4e5", "preferences"),
        ("/strategy/x/actors/{actorId}/", "summary_builtin-a1b2c3d4e5", "summaries"),
    ],
)
def test_a_namespace_is_described_from_its_path_or_strategy(namespace, strategy, word):
    assert word in describe(namespace, strategy)


@pytest.mark.parametrize(
    "namespace", ["/strategy/{memoryStrategyId}/actors/{actorId}/", "/actor/u1/", "/users/ines/", "/", "", "/v1/data/"]
)
def test_a_namespace_that_says_nothing_has_no_description(namespace):
    assert describe(namespace) is None


@pytest.mark.parametrize(
    ("probabilities", "chosen"),
    [
        ({"a": 0.9, "b": 0.1}, ("a",)),
        ({"a": 0.5, "b": 0.49}, ("a",)),
        ({"a": 0.1, "b": 0.1}, ("a", "b")),
        ({"a": None, "b": 0.9}, ("a", "b")),
        ({"a": None, "b": 0.1}, ("a", "b")),
        ({}, ("a", "b")),
    ],
)
def test_namespaces_are_chosen_by_threshold_and_all_when_none_reaches_it(probabilities, chosen):
    assert choose(("a", "b"), probabilities, 0.5) == chosen


# Same facts


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("The user likes tea.", "the user  likes TEA", True),
        ("It’s “fine”", "It's \"fine\"", True),
        ("Ｔｅａ", "tea", True),
        ("well-known fact", "well known fact", True),
        ("allergic to nuts", "not allergic to nuts", False),
        ("3.5 mg", "35 mg", False),
        ("-5 degrees", "5 degrees", False),
        ("codes in C", "codes in C#", False),
        ("codes in C", "codes in C++", False),
        ("at 10%", "at 10", False),
    ],
)  # fmt: skip
def test_texts_are_the_same_fact_only_when_case_space_and_punctuation_differ(one, other, same):
    assert (fold(one) == fold(other)) is same


def repeated(records, texts):
    """Return the positions of what is left out as a duplicate."""
    rows = without_duplicates([Row(*pair) for pair in zip(records, texts, strict=True)])
    return {at for at, row in enumerate(rows) if row.reason == "duplicate"}


def test_of_equal_records_the_newest_stays_whatever_its_time_zone():
    records = [Record("a", "n", created_at=datetime(2026, 1, 1)), Record("a", "n", created_at=None),
               Record("a", "n", created_at=datetime(2026, 1, 2, tzinfo=timezone.utc))]  # fmt: skip

    assert repeated(records, ["a", "a", "a"]) == {0, 1}


def test_long_texts_repeat_only_as_they_are():
    """Folding what the service can hold, for a thousand records, would take longer than a recall may."""
    long = "Likes tea and walks. " * 300
    records = [Record(f"r{at}", "n") for at in range(4)]

    assert repeated(records, [long, long.upper(), long, "x"]) == {2}
    assert repeated(records, ["Likes tea.", "likes TEA", long, "x"]) == {1}


# Selection


def judged(*probabilities):
    return [Row(Record(f"r{at}", "n"), f"r{at}", p, line=f"r{at}") for at, p in enumerate(probabilities)]


@pytest.mark.parametrize(
    ("mode", "probabilities", "reasons"),
    [
        ("threshold", (0.9, 0.3, 0.1), [None, None, "below_threshold"]),
        ("ranking", (0.9, 0.3, 0.1), [None, "below_best", "below_best"]),
        ("ranking", (0.02, 0.005), [None, "below_best"]),
        ("hybrid", (0.9, 0.3, 0.1), [None, "below_best", "below_threshold"]),
        ("hybrid", (0.1, 0.05), ["below_threshold", "below_threshold"]),
        ("hybrid", (None, 0.9), [None, None]),
    ],
)
def test_a_mode_turns_probabilities_into_a_choice(mode, probabilities, reasons):
    thresholds = Thresholds(gate=0, router=0, validator=0.2, relative=0.5)

    rows = select(judged(*probabilities), SelectSettings(mode=mode), thresholds, TAG).rows

    assert [row.reason for row in rows] == reasons


@given(st.lists(st.one_of(st.none(), st.floats(0, 1)), max_size=12))
def test_injection_order_is_a_permutation_best_first_and_undecided_last(probabilities):
    rows = judged(*probabilities)
    order = injection_order(rows)
    known = [row.probability for row in order if row.probability is not None]

    assert sorted(row.text for row in order) == sorted(row.text for row in rows)
    assert known == sorted(known, reverse=True)
    assert all(row.probability is None for row in order[len(known) :])


# Policy


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *[(("gate", "threshold"), value) for value in (-0.1, 1.1, math.nan, math.inf, True, "0.5")],
        (("validator", "threshold"), 19),
        (("router", "threshold"), 2),
        (("router", "pinned_ttl_s"), 0),
        (("retrieve", "timeout_s"), -1),
        (("select", "mode"), "best"),
        (("select", "max_records"), -1),
        (("select", "max_context_tokens"), -1),
        (("inject", "mode"), "always"),
        (("inject", "position"), "middle"),
        (("turn", "history_pairs"), -1),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name(setting, value):
    stage, name = setting

    with pytest.raises(ValidationError, match=rf"{stage}\.{name}"):
        RecallPolicy(**{stage: {name: value}})


def test_a_percentage_and_a_misspelt_setting_are_refused_with_the_fix():
    with pytest.raises(ValidationError, match=r"did you mean 0\.19\?"):
        RecallPolicy(gate={"threshold": 19})
    with pytest.raises(ValidationError, match="did you mean 'threshold'"):
        RecallPolicy(gate={"treshold": 0.2})
    with pytest.raises(ValidationError, match="did you mean 'validator'"):
        RecallPolicy(validater={})


def test_a_policy_cannot_be_changed_after_it_is_made():
    policy = RecallPolicy()

    with pytest.raises(ValidationError, match="frozen"):
        policy.deadline_s = 1.0
    with pytest.raises(ValidationError, match="frozen"):
        policy.gate.threshold = 0.5


# Answers

NOUL = Question("noul", "?")
CHOICE = Question("choice", "?", {"a": None, "b": None})
SCORE = Question("score", "?", ["low", "high"])


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (NOUL, {"type": "noul", "noul": 0.5}, Noul(0.5)),
        (NOUL, {"noul": np.float32(0.5)}, Noul(0.5)),
        (NOUL, Noul(1), Noul(1.0)),
        (NOUL, None, NoAnswer("missing")),
        (NOUL, NoAnswer("refused"), NoAnswer("refused")),
        (NOUL, {"type": "refusal"}, NoAnswer("refused")),
        (NOUL, {"type": "noul"}, NoAnswer("invalid")),
        (NOUL, {"type": "noul", "noul": 10**400}, NoAnswer("invalid")),
        (NOUL, "yes", NoAnswer("invalid")),
        (CHOICE, {"type": "choice", "choice": "a", "probabilities": {"a": 0.75, "b": 0.25}},
         Choice("a", {"a": 0.75, "b": 0.25})),
        (CHOICE, {"type": "choice", "choice": "c", "probabilities": {"a": 0.5, "c": 0.5}}, NoAnswer("invalid")),
        (SCORE, {"type": "score", "score": 9, "probabilities": {"0": 0.25, "1": 0.75}},
         Score(0.75, {"0": 0.25, "1": 0.75})),
        (SCORE, {"type": "score", "probabilities": {"0": 1.0}}, NoAnswer("invalid")),
    ],
)  # fmt: skip
def test_an_answer_is_used_only_when_it_is_valid(question, answer, expected):
    assert checked(answer, question) == expected


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), lambda inner: st.lists(inner)
       | st.dictionaries(st.sampled_from(["type", "noul", "choice", "probabilities", "score"]), inner)))  # fmt: skip
def test_no_answer_whatever_it_is_raises(answer):
    for question in (NOUL, CHOICE, SCORE):
        found = checked(answer, question)
        assert isinstance(found, Noul | Choice | Score | NoAnswer)
        if isinstance(found, Noul):
            assert 0.0 <= found.noul <= 1.0
