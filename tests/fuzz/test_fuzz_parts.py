"""The parts that read what others wrote: answers, texts, namespaces, messages, replies of the service, settings."""

import unicodedata
from datetime import datetime

import pytest
from hostile import (
    answers,
    conversations,
    fuzz,
    json_values,
    messages,
    moments,
    numbers,
    policies,
    questions,
    record_text,
    scalars,
    text,
)
from hypothesis import assume, example, given
from hypothesis import strategies as st

from strands_gated_memory import ConfigurationError, RecallPolicy, Record
from strands_gated_memory.core import block
from strands_gated_memory.core.questions import Choice, NoAnswer, Noul, Question, Score, checked
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.select import fold, without_duplicates
from strands_gated_memory.core.turn import find_ask, find_unanswered, text_in, turn_of
from strands_gated_memory.core.types import Row, SearchResult
from strands_gated_memory.errors import RetrievalError
from strands_gated_memory.policy import TurnSettings
from strands_gated_memory.retrieval.agentcore import (
    MAX_QUERY_CHARACTERS,
    AgentCoreRetriever,
    NamespaceSearch,
    check_template,
    cut_query,
    fill,
    in_scope,
    is_of_session,
)

PATH = "/users/Bob/"


def failure_of(call, kind):
    """Return the failure of a kind that a call ends with, None if it ends well."""
    try:
        call()
    except kind as error:
        return error
    return None


@fuzz(short=150)
@given(answers, questions)
@example({"type": "noul", "noul": 1.5}, Question("noul", "x"))
@example({"type": "noul", "noul": -0.1}, Question("noul", "x"))
@example({"type": "noul", "noul": float("nan")}, Question("noul", "x"))
@example({"type": "score", "probabilities": {"0": 0.9, "1": 0.9}}, Question("score", "x", ("none", "some")))
def test_a_checked_answer_is_safe_to_use(answer, question):
    """Of the question's type, finite, within range, over the question's options; or no answer."""
    result = checked(answer, question)

    assert isinstance(result, NoAnswer | {"noul": Noul, "choice": Choice, "score": Score}[question.type])
    if isinstance(result, Noul):
        assert 0.0 <= result.noul <= 1.0
    if isinstance(result, Choice | Score):
        assert all(0.0 <= p <= 1.0 for p in result.probabilities.values())
        assert sum(result.probabilities.values()) == pytest.approx(1.0, abs=0.03)
    if isinstance(result, Choice):
        assert result.choice in question.criteria
    if isinstance(result, Score):
        assert 0.0 <= result.score <= len(question.criteria) - 1 + 0.03


@fuzz
@given(record_text)
def test_a_rendered_record_is_one_stable_clean_line(source):
    """Whatever the record holds: no line break, no control, no direction mark, nothing lost by rendering again."""
    line = render_record(source)

    assert line == " ".join(line.split())
    assert not {unicodedata.category(c) for c in line} & {"Cc", "Cs", "Zl", "Zp"}
    assert not set(line) & set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
    assert render_record(line) == line
    assert len(line) <= 4 * len(source) + 100


@fuzz
@given(st.lists(record_text, max_size=6), moments, st.booleans(), st.sampled_from(["user_context", "memory", "a-b.c"]))
def test_a_block_has_one_tag_and_a_line_per_record(sources, created_at, show_dates, tag):
    """No record closes the block's tag, opens another, or forges a line."""
    record = Record("x", "n", created_at=created_at)
    lines = [block.line_of(render_record(source), record, show_dates) for source in sources]
    text_of_block = block.block_of(lines, tag)

    if not sources:
        assert text_of_block is None
        return
    assert text_of_block.count("<") == 2
    assert text_of_block.count(">") == 2
    assert len(text_of_block.split("\n")) == len(sources) + 2
    assert len(text_of_block.splitlines()) == len(sources) + 2
    text_of_block.encode("utf-8")


@fuzz
@given(st.lists(st.tuples(record_text, moments, st.none() | st.sampled_from(["a", "b"])), max_size=6))
def test_duplicates_leave_one_of_each(items):
    """What is left out repeats something that stays; nothing that stays repeats another."""
    rows = [
        Row(Record(source, "n", record_id=name, created_at=at), render_record(source)) for source, at, name in items
    ]

    staying = [row for row in without_duplicates(rows) if row.reason is None]

    keys = [fold(row.text) for row in staying if row.text]
    assert len(keys) == len(set(keys))
    ids = [row.record.record_id for row in staying if row.record.record_id]
    assert len(ids) == len(set(ids))
    assert bool(staying) == bool(rows)


@fuzz(short=150)
@given(text)
def test_folding_again_changes_nothing(source):
    """The key of a key is the key."""
    once = fold(source)

    assert fold(once) == once


@fuzz
@given(messages | conversations, st.integers(0, 3), st.integers(1, 50))
def test_any_conversation_gives_a_turn(conversation, pairs, characters):
    """Messages of any shape: an ask is a user's text, and the history alternates within its limits."""
    settings = TurnSettings(history_pairs=pairs, history_characters=characters)

    ask = find_ask(conversation)
    said = text_in(ask) if ask is not None else "x"
    turn = turn_of(said, conversation, settings)
    unanswered = find_unanswered(conversation)

    assert ask is None or ask["role"] == "user"
    assert unanswered is None or unanswered is ask
    assert isinstance(said, str)
    assert len(turn.previous) <= 2 * pairs
    assert len(turn.previous) % 2 == 0
    assert all(isinstance(one, str) and len(one) <= characters for one in turn.previous)


ids = st.text("abcXYZ019-_/:.{}é", min_size=1, max_size=12) | text.filter(bool)
templates = st.lists(
    st.sampled_from(["/", "users", "{actorId}", "{sessionId}", "{memoryStrategyId}", "{tenant}", "{", "}", "{{", "}}",
                     "{}", "{0}", "{actorId!r}", "{actorId:>5}", "{actorId.x}", "{actorId[0]}", "é"]), max_size=8,
).map("".join)  # fmt: skip


@fuzz(short=150)
@given(templates, ids, ids, st.none() | ids)
def test_a_template_is_filled_or_refused_at_construction(template, actor_id, session_id, strategy_id):
    """What passes the check can be filled, with any ids; the rest is a ConfigurationError."""
    refused = failure_of(lambda: check_template(template), ConfigurationError)
    if refused is not None:
        assert repr(template) in str(refused)
        return
    path = fill(template, actor_id=actor_id, session_id=session_id, strategy_id=strategy_id)

    assert path.endswith("/")
    assert in_scope(path, path)


@fuzz(short=150)
@given(ids, ids)
@example("Bob", "by")
@example("Bob", "/by")
def test_a_neighbour_is_out_of_scope(actor_id, more):
    """The path of one actor never holds the records of an actor whose id begins alike."""
    assume("/" not in more)
    path = fill("/users/{actorId}/", actor_id=actor_id, session_id="s", strategy_id=None)
    assume(actor_id.rstrip("/") == actor_id)

    assert not in_scope(f"/users/{actor_id}{more}/", path)
    assert in_scope(f"/users/{actor_id}/{more}", path)
    assert not is_of_session(f"/users/{actor_id}/", "/users/{actorId}/", path, actor_id)


@fuzz
@given(st.builds(lambda piece, times: piece * times, text, st.integers(1, 1500)))
@example("word " * 2001)
@example("x" * 10_001)
@example(" " * 10_001)
def test_a_query_fits_the_service(query):
    """At most 10,000 characters, the beginning and the end of what was asked, and not empty unless it was."""
    cut = cut_query(query)
    beginning, _, end = cut.partition(" … ")

    assert len(cut) <= MAX_QUERY_CHARACTERS
    assert cut == query if len(query) <= MAX_QUERY_CHARACTERS else query.startswith(beginning) and query.endswith(end)
    assert bool(cut) == bool(query)


summaries = st.fixed_dictionaries(
    {},
    optional={
        "content": st.fixed_dictionaries({}, optional={"text": record_text | scalars}) | scalars,
        "namespaces": st.lists(st.sampled_from([PATH, "/users/Bobby/", "/users/Bob", "/users/Bob/x/"]) | scalars,
                               max_size=2) | scalars,
        "score": numbers,
        "memoryRecordId": st.none() | text | scalars,
        "createdAt": moments,
        "metadata": json_values,
    },
)  # fmt: skip
pages = st.fixed_dictionaries(
    {}, optional={"memoryRecordSummaries": st.lists(summaries | scalars, max_size=5) | st.none(),
                  "nextToken": st.none() | st.sampled_from(["a", "b"])},
)  # fmt: skip


class Pages:
    """A client that answers with the pages in turn, the last one for good."""

    def __init__(self, given):
        self._given = list(given)

    def retrieve_memory_records(self, **_):
        return self._given.pop(0) if len(self._given) > 1 else self._given[0]

    list_memory_records = retrieve_memory_records


@fuzz(short=150)
@example([{"memoryRecordSummaries": [{"content": {"text": "Tea."}, "score": 10**400}]}], 1, 0.0, False, False)
@given(st.lists(pages, min_size=1, max_size=3), st.integers(1, 6), st.floats(0, 1), st.booleans(), st.booleans())
def test_any_reply_of_the_service_is_records_or_a_named_failure(replies, top_k, score, whole, skip_own):
    """Each record within the path, of usable text; at most as many as asked for; whatever a page holds."""
    search = NamespaceSearch("key", PATH, top_k, score, whole=whole)
    retriever = AgentCoreRetriever(Pages(replies), "m", "s", {"key": search}, skip_own_summary=skip_own)

    found: list[SearchResult] = []
    failed = failure_of(lambda: found.append(retriever.search("key", "q")), RetrievalError)
    if failed is not None:
        assert failed.kind == "bad_response"
        return
    (result,) = found
    assert isinstance(result, SearchResult)
    assert len(result.records) + len(result.dropped) <= (100 if whole else top_k)
    assert all(isinstance(record.text, str) for record in result.records)
    assert all(record.created_at is None or isinstance(record.created_at, datetime | str) for record in result.records)


stage_settings = st.dictionaries(
    st.sampled_from(["threshold", "relative", "mode", "max_records", "timeout_s", "pinned", "show_dates", "position",
                     "history_pairs", "max_context_tokens", "dedupe"]) | text,
    scalars | st.lists(scalars, max_size=2), max_size=3,
)  # fmt: skip


@fuzz
@pytest.mark.filterwarnings("ignore:.*lets a turn wait:UserWarning")
@given(
    st.dictionaries(st.sampled_from([*RecallPolicy.model_fields]) | text, stage_settings | scalars, max_size=4)
    | policies
)
def test_a_policy_is_valid_or_refused_with_a_reason(given_policy):
    """Any setting of any type: a frozen policy, or a ValueError that names something."""
    made: list[RecallPolicy] = []
    refused = failure_of(lambda: made.append(RecallPolicy(**given_policy)), ValueError)
    if refused is not None:
        assert str(refused)
        return
    (policy,) = made
    assert policy.gate.threshold is None or 0.0 <= policy.gate.threshold <= 1.0
    assert policy.deadline_s is None or policy.deadline_s > 0
