"""What fits one request: nothing of a question is ever cut, and no question is lost."""

from hypothesis import given, settings
from hypothesis import strategies as st
from loopback import STATE, noul, nouls

from strands_gated_memory.deciders.limits import Limits, fit, may_be_truncated, state_text, tokens_of


@settings(max_examples=100, deadline=None)
@given(
    message=st.text(max_size=3000),
    previous=st.lists(st.text(max_size=300), max_size=4),
    texts=st.lists(st.text(min_size=1, max_size=400), max_size=30),
    most=st.integers(1, 10),
    window=st.integers(300, 2000),
)
def test_every_question_is_asked_once_whole_or_named_as_too_long(message, previous, texts, most, window):
    questions = {f"q{at}": noul(text) for at, text in enumerate(texts)}
    state = {"message": message, "previous": previous}
    found = fit(state, questions, Limits(max_questions=most, window_tokens=window))

    asked = [name for group in found.groups for name in group]
    assert sorted([*asked, *found.too_long]) == sorted(questions)
    assert all(group[name] is questions[name] for group in found.groups for name in group)
    assert all(0 < len(group) <= most for group in found.groups)
    assert found.cut == (found.state != state)
    assert tokens_of(state_text(found.state)) <= max(window // 2, 40)


def test_without_limits_everything_is_one_request():
    found = fit(STATE, nouls(500), Limits())

    assert len(found.groups) == 1
    assert found.state == STATE
    assert not found.cut


def test_a_token_budget_splits():
    found = fit(STATE, nouls(10), Limits(max_request_tokens=500))

    assert len(found.groups) > 1
    assert sum(len(group) for group in found.groups) == 10


def test_the_oldest_text_goes_first():
    state = {"message": "m", "previous": ["old " * 200, "new"]}
    found = fit(state, nouls(1), Limits(max_state_tokens=100))

    assert found.state == {"message": "m", "previous": ["new"]}
    assert found.cut


def test_a_count_below_the_window_is_no_truncation():
    assert not may_be_truncated(STATE, nouls(1), Limits(window_tokens=4096), 4095)
    assert may_be_truncated(STATE, nouls(1), Limits(window_tokens=4096), 4096)
    assert not may_be_truncated(STATE, nouls(1), Limits(), 4096)
    assert not may_be_truncated(STATE, nouls(1), Limits(window_tokens=4096), None)
