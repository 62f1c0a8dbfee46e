"""Several decision models in a row: the first that answers within the deadline decides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout

from ..core import budget
from ..core.questions import Decider, NoAnswer, Question, Reply, State, Thresholds, checked
from ..core.workers import PoolFull, WorkerPool
from ..errors import BadAnswer, ConfigurationError, DeciderError, DeciderUnavailable, error_kind
from .client import DEFAULT_CALL_S

MEMBERS = WorkerPool("gated-memory-fallback", size=16, backlog=64)
"""Runs the members, so that one that hangs is passed over."""

_MARGIN_S = 0.02


class FallbackDecider:
    """Asks deciders in order until one gives a usable answer.

    Each may use an equal share of the time that is left, so a list of two under a deadline of 1.5 s leaves
    the second at least half of it; one that fails at once passes its time on. Probabilities of two models
    are never mixed in one reply: thresholds differ.

    Args:
        members: Name and decider, first choice first.
        call_s: How long one call may take over all members, where whoever waits sets no shorter limit.

    Raises:
        ConfigurationError: The list is empty.
    """

    remote = True

    def __init__(self, members: Sequence[tuple[str, Decider]], *, call_s: float = DEFAULT_CALL_S) -> None:
        if not members:
            raise ConfigurationError('decider is an empty list; write for instance ["jev", "embedded"]')
        self.members = tuple(members)
        self._call_s = call_s

    def __repr__(self) -> str:
        return f"FallbackDecider({', '.join(name for name, _ in self.members)})"

    @property
    def deadline_s(self) -> float | None:
        """The longest that a member asks for, None if none does."""
        asked = [getattr(member, "deadline_s", None) for _, member in self.members]
        return max((float(one) for one in asked if isinstance(one, int | float)), default=None)

    def warm(self) -> None:
        """Load every member; one that cannot be loaded does not keep the others from it.

        Raises:
            DeciderUnavailable: None could be loaded.
        """
        failed: list[str] = []
        for name, member in self.members:
            warm = getattr(member, "warm", None)
            try:
                if callable(warm):
                    warm()
            except Exception as error:
                failed.append(f"{name}: {error_kind(error)}")
        if len(failed) == len(self.members):
            raise DeciderUnavailable(f"no decider of the list can be loaded ({'; '.join(failed)})")

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask; see `Decider.decide`.

        Raises:
            DeciderError: Nobody answered; of the kind of the last failure.
        """
        until = budget.until(max(self._call_s, self.deadline_s or 0.0) + _MARGIN_S) - _MARGIN_S
        passed_over: list[str] = []
        last: Exception = DeciderUnavailable("nobody was asked")
        abstained: Reply | None = None
        for at, (name, member) in enumerate(self.members):
            share = budget.left(until) / (len(self.members) - at)
            try:
                reply = _ask(member, state, questions, share)
            except Exception as error:
                last = error
                passed_over.append(f"{name}: {error_kind(error)}")
                continue
            reply.answered_by, reply.passed_over = reply.answered_by or name, tuple(passed_over)
            reasons = {answer.reason for answer in reply.values() if isinstance(answer, NoAnswer)}
            if any(not isinstance(answer, NoAnswer) for answer in reply.values()):
                return reply
            if reasons <= {"abstained"}:
                abstained = abstained or reply
            last = BadAnswer(f"{name} gave no usable answer ({', '.join(sorted(reasons))})")
            passed_over.append(f"{name}: {'abstained' if reasons <= {'abstained'} else 'no usable answer'}")
        if abstained is not None:
            return abstained
        kind = type(last) if isinstance(last, DeciderError) else DeciderUnavailable
        raise kind(f"no decider of the list answered ({'; '.join(passed_over)})")


def _ask(member: Decider, state: State, questions: Mapping[str, Question], seconds: float) -> Reply:
    with budget.limited_to(seconds):
        try:
            future = MEMBERS.submit(lambda: member.decide(state, questions))
        except (PoolFull, RuntimeError) as error:
            raise DeciderUnavailable(str(error)) from None
    try:
        raw = future.result(timeout=seconds)
    except (FutureTimeout, TimeoutError):
        future.cancel()
        raise TimeoutError(f"no answer within {seconds:.3f} s") from None
    if not isinstance(raw, Mapping):
        raise BadAnswer(f"decide() returned {type(raw).__name__}, not a mapping of id to answer")
    answers = {name: checked(raw.get(name), question) for name, question in questions.items()}
    if isinstance(raw, Reply):
        return Reply(
            answers,
            model=raw.model,
            answered_by=raw.answered_by,
            thresholds=raw.thresholds,
            untuned=raw.untuned,
            truncated=raw.truncated,
        )
    own = getattr(member, "thresholds", None)
    shipped = dataclasses.asdict(own) if isinstance(own, Thresholds) else {}
    measured = {name: value for name, value in shipped.items() if value is not None}
    return Reply(answers, model=getattr(member, "model_id", None), thresholds=measured)
