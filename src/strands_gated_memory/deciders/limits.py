"""What fits one request of a model: a state is shortened visibly, questions are split, never cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.questions import Question, State

_BYTES_PER_TOKEN = 3
"""A cautious guess for every script: English has about 4 bytes a token, Chinese about 3."""
_TEMPLATE_TOKENS = 96
"""What a model's own prompt puts around a question."""


@dataclass(frozen=True)
class Limits:
    """What one request of a model may hold; None: no limit known."""

    max_questions: int | None = None
    """Questions per request."""
    max_state_tokens: int | None = None
    """Tokens of the state, estimated."""
    max_request_tokens: int | None = None
    """Tokens of the state and all questions, estimated."""
    window_tokens: int | None = None
    """The context window: the state and any one question share it."""


@dataclass(frozen=True)
class Fitted:
    """A request's parts within the limits."""

    state: State
    cut: bool
    """Whether the state lost text."""
    groups: tuple[Mapping[str, Question], ...]
    """The questions, one mapping per request, in order."""
    too_long: tuple[str, ...]
    """Ids of questions that no request can hold."""


def fit(state: State, questions: Mapping[str, Question], limits: Limits) -> Fitted:
    """Arrange a state and its questions into requests that a model accepts."""
    window = limits.window_tokens
    # Half the window for the state, so that every question of ordinary length finds room beside it.
    state_limits = [n for n in (limits.max_state_tokens, window // 2 if window else None) if n]
    short, cut = shortened(state, min(state_limits)) if state_limits else (state, False)
    used = tokens_of(state_text(short))
    room = window - used if window else None
    groups: list[dict[str, Question]] = []
    too_long: list[str] = []
    weight = 0
    for name, question in questions.items():
        cost = question_tokens(question)
        if room is not None and cost > room:
            too_long.append(name)
            continue
        full = bool(groups) and (
            (limits.max_questions is not None and len(groups[-1]) >= limits.max_questions)
            or (limits.max_request_tokens is not None and used + weight + cost > limits.max_request_tokens)
        )
        if not groups or full:
            groups.append({})
            weight = 0
        groups[-1][name] = question
        weight += cost
    return Fitted(short, cut, tuple(groups), tuple(too_long))


def may_be_truncated(state: State, questions: Mapping[str, Question], limits: Limits, input_tokens: int | None) -> bool:
    """Tell whether a model's token count says that it cut what it was sent.

    A server that cuts silently reports exactly its window for one question. For several it reports the
    sum over questions, so there the count alone proves nothing: it must also be possible that the state and
    the longest question reach the window.
    """
    window = limits.window_tokens
    if window is None or input_tokens is None or input_tokens < window:
        return False
    if len(questions) == 1:
        return True
    longest = max(
        len(json.dumps(question.wire(), ensure_ascii=False).encode("utf-8", "replace"))
        for question in questions.values()
    )
    return (
        len(state_text(state).encode("utf-8", "replace")) + longest + _TEMPLATE_TOKENS >= window
    )  # a token has at least one byte


def state_text(state: State) -> str:
    """Return the state as it travels, for measuring."""
    return json.dumps(dict(state), ensure_ascii=False)


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text, rather too many than too few."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_PER_TOKEN)


def question_tokens(question: Question) -> int:
    """Estimate the tokens of a question in a model's prompt."""
    return tokens_of(json.dumps(question.wire(), ensure_ascii=False)) + _TEMPLATE_TOKENS


def shortened(state: State, limit: int) -> tuple[State, bool]:
    """Return a state of at most so many tokens, and whether it lost text.

    The oldest texts go first, then the middle of the message: requests stand at either end.
    """
    message, previous = state["message"], list(state["previous"])
    cut = False
    while previous and tokens_of(state_text({"message": message, "previous": previous})) > limit:
        previous.pop(0)
        cut = True
    room, short = limit * _BYTES_PER_TOKEN, message
    while room and tokens_of(state_text({"message": short, "previous": previous})) > limit:
        short, cut = _middle_cut(message, room), True
        room = room * 3 // 4  # quotes and newlines weigh more in JSON than in the text
    return {"message": short, "previous": previous}, cut


def _middle_cut(text: str, room: int) -> str:
    data = text.encode("utf-8", "replace")
    tail = data[max(0, len(data) - room // 3) :] if room >= _BYTES_PER_TOKEN else b""
    return f"{data[: room * 2 // 3].decode('utf-8', 'ignore')} … {tail.decode('utf-8', 'ignore')}"
