"""A decision model reached by requests: codec, transport, limits and one deadline make a `Decider`.

A call splits its questions into requests that fit, sends them side by side, repeats a failed one at most
once, and is back by its deadline with whatever has been answered. What is missing is a `NoAnswer`.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core.questions import Answer, NoAnswer, NoAnswerReason, Question, Reply, State
from ..errors import DeciderError, DeciderTimeout, DeciderUnavailable, PromptTooLong
from ..runtime import clock
from ..runtime.decide import KINDS
from ..runtime.guard import Guard
from ..runtime.threads import WorkerPool
from .codecs.base import Codec
from .limits import Limits, fit, may_be_truncated, question_tokens, shortened, state_text, tokens_of
from .presets import SLOW_DEADLINE_S, preset_of, tuning_for
from .transports.base import Transport

REQUESTS = WorkerPool("gated-memory-request", size=64, share=16, backlog=64)
"""Runs single requests, so that a call can stop waiting for one that hangs."""

DEFAULT_CALL_S = 3.0
"""How long one call may take, in seconds, where whoever waits for it sets no shorter limit."""
_MARGIN_S = 0.03
"""A call ends so long before the limit of whoever waits, to hand over what has been answered."""
_LEAST_ATTEMPT_S = 0.05
"""A second attempt is not begun with less time than this."""
_MOST_HALVINGS = 12
"""How many requests may be made smaller because the model found them too long, per call."""


@dataclasses.dataclass
class _Part:
    """What became of one request."""

    answers: dict[str, Answer]
    model: str | None = None
    truncated: int = 0


class DecisionClient:
    """A decision model behind a transport.

    Args:
        codec: The wire format.
        transport: The way to the model.
        name: What specification it is, for messages, such as "jev".
        model: The model's id in requests.
        family: The model family, to find thresholds by.
        limits: What one request may hold.
        call_s: How long one call may take, in seconds.
        deadline_s: How long a whole recall may take with it, in seconds; None: the policy's default.

    Attributes:
        remote: True: a probe question at start makes sense.
    """

    remote = True
    bounded = True

    def __init__(
        self,
        codec: Codec,
        transport: Transport,
        *,
        name: str,
        model: str | None = None,
        family: str | None = None,
        limits: Limits | None = None,
        call_s: float = DEFAULT_CALL_S,
        deadline_s: float | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.family = family
        self._codec = codec
        self._transport = transport
        self._limits = limits or Limits()
        self._call_s = call_s
        self._deadline_s = deadline_s

    def __repr__(self) -> str:
        return f"DecisionClient({self.name!r}, {self._transport!r})"

    @property
    def deadline_s(self) -> float | None:
        """How long a recall may take with it; a strands-decider found to be on a CPU gets the slow preset's."""
        about = self._about()
        if self._deadline_s is None and about.get("device") == "cpu":
            preset = preset_of(about.get("model"), None)
            return SLOW_DEADLINE_S if preset and preset.family == "strands-decider" else None
        return self._deadline_s

    @property
    def limits(self) -> Limits:
        """What one request may hold, with the window that the server reports."""
        window = self._about().get("window_tokens")
        return dataclasses.replace(self._limits, window_tokens=window) if window else self._limits

    @property
    def is_loaded(self) -> bool | None:
        """Whether a model of this process is loaded; None for one elsewhere, for which nothing is."""
        own = getattr(self._transport, "is_loaded", None)
        return own if isinstance(own, bool) else None

    def warm(self) -> None:
        """Load or look up what the first request needs.

        Raises:
            DeciderError: The model cannot be loaded.
        """
        prepare = getattr(self._transport, "prepare", None)
        if callable(prepare):
            prepare()

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask; see `Decider.decide`.

        Raises:
            DeciderError: No request got an answer; the most telling failure of them.
        """
        call_s = max(self._call_s, self.deadline_s or 0.0)
        until = clock.until(call_s + _MARGIN_S) - _MARGIN_S
        fitted = fit(state, questions, self.limits)
        halvings = _Counter(_MOST_HALVINGS)
        answers: dict[str, Answer] = {name: NoAnswer("too_long") for name in fitted.too_long}
        guard = Guard(REQUESTS, KINDS, lane=repr(self))
        running = [
            (group, guard.begin(partial(self._ask, fitted.state, group, until, halvings))) for group in fitted.groups
        ]
        errors: list[DeciderError] = []
        parts: list[_Part] = []
        for group, attempt in running:
            part, error = attempt.end(clock.left(until))
            if part is not None:
                parts.append(part)
                answers.update(part.answers)
                continue
            if not isinstance(error, DeciderError):  # a library below broke: one request is lost, not the others
                kind = DeciderTimeout if isinstance(error, TimeoutError) else DeciderUnavailable
                error = kind(f"the request failed with {type(error).__name__}")
            errors.append(error)
            answers.update(dict.fromkeys(group, NoAnswer(_reason(error))))
        if errors and not parts:
            raise errors[0]
        model = next((part.model for part in parts if part.model), self._about().get("model"))
        known = tuning_for(model, self.family, questions.values())
        return Reply(
            {name: answers[name] for name in questions},
            model=model or self.model,
            thresholds=known.thresholds,
            untuned=known.untuned,
            truncated=sum(part.truncated for part in parts) + fitted.cut,
        )

    def _ask(self, state: State, questions: Mapping[str, Question], until: float, halvings: _Counter) -> _Part:
        """Ask one request; one that is too long for the model is made smaller and asked again."""
        try:
            body = self._send_twice_at_most(self._codec.encode(self.model, state, questions), until)
        except PromptTooLong:
            return self._ask_less(state, questions, until, halvings)
        decoded = self._codec.decode(body, questions)
        cut = may_be_truncated(state, questions, self.limits, decoded.input_tokens)
        return _Part(dict(decoded.answers), decoded.model, int(cut))

    def _ask_less(self, state: State, questions: Mapping[str, Question], until: float, halvings: _Counter) -> _Part:
        """Ask again what the model found too long: with less of the state, or half of the questions at a time."""
        size = tokens_of(state_text(state))
        is_the_state = size > max(question_tokens(question) for question in questions.values())
        if (len(questions) == 1 and not is_the_state) or not halvings.take():
            return _Part(dict.fromkeys(questions, NoAnswer("too_long")))
        if is_the_state:
            shorter, _ = shortened(state, size // 2)
            part = self._ask(shorter, questions, until, halvings)
            part.truncated += 1
            return part
        names = list(questions)
        middle = len(names) // 2
        first, second = (
            self._ask(state, {name: questions[name] for name in half}, until, halvings)
            for half in (names[:middle], names[middle:])
        )
        return _Part(first.answers | second.answers, first.model or second.model, first.truncated + second.truncated)

    def _send_twice_at_most(self, document: Mapping[str, Any], until: float) -> object:
        try:
            return self._transport.send(document, until)
        except DeciderError as error:
            wait = error.retry_after_s
            if wait is None or clock.left(until) < wait + _LEAST_ATTEMPT_S:
                raise
        time.sleep(wait)
        return self._transport.send(document, until)

    def _about(self) -> Mapping[str, Any]:
        about = getattr(self._transport, "about", None)
        return about if isinstance(about, Mapping) else {}


class _Counter:
    """So many times, over several threads."""

    def __init__(self, times: int) -> None:
        self._left = times
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0


def _reason(error: DeciderError) -> NoAnswerReason:
    if isinstance(error, PromptTooLong):
        return "too_long"
    return "timeout" if isinstance(error, DeciderTimeout) else "missing"
