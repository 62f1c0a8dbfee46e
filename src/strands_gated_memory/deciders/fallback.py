"""Several decision models in a row: the first that answers within the deadline decides."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

from ..core.functions import outcome_of
from ..core.questions import Decider, NoAnswer, Question, Reply, State, asked, attribute_of, explanations_of, is_usable
from ..core.types import UNDECIDED
from ..errors import (
    BadReturn,
    ConfigurationError,
    DeciderError,
    DeciderUnavailable,
    error_kind,
)
from ..runtime import clock
from ..runtime.decide import KINDS, is_bounded, is_ready, load
from ..runtime.guard import FAIR, CircuitBreaker, Guard, breaker_of, settings_in_force
from ..runtime.threads import DECISIONS
from .client import DEFAULT_CALL_S

logger = logging.getLogger(__name__)

_MARGIN_S = 0.02
_LOADING_SHARE = 0.5
"""Share of a member's time that is waited for it to be loaded: whoever waits for the list must hear of it in time."""


class FallbackDecider:
    """Asks deciders in order until one gives a usable answer.

    Each may use an equal share of the time that is left, so a list of two under a deadline of 1.5 s leaves
    the second at least half of it; one that fails at once passes its time on. Probabilities of two models
    are never mixed in one reply: thresholds differ.

    A member that keeps failing is passed over at once for a while, by a circuit breaker of its own.

    Args:
        members: Name and decider, first choice first.
        call_s: How long one call may take over all members, where whoever waits sets no shorter limit.
        keys: Who each member is for its circuit breaker, see `breaker_of`; default the members themselves.

    Raises:
        ConfigurationError: The list is empty.
    """

    remote = True
    bounded = True

    def __init__(
        self,
        members: Sequence[tuple[str, Decider]],
        *,
        call_s: float = DEFAULT_CALL_S,
        keys: Sequence[object] | None = None,
    ) -> None:
        if not members:
            raise ConfigurationError('decider is an empty list; write for instance ["jev", "embedded"]')
        self.members = tuple(members)
        self._call_s = call_s
        self._keys = tuple(keys or [member for _, member in self.members])
        self._guards = [
            Guard(DECISIONS, KINDS, [breaker_of(("decider", key), f"decider:{name}")])
            for (name, _), key in zip(self.members, self._keys, strict=True)
        ]

    def __repr__(self) -> str:
        return f"FallbackDecider({', '.join(name for name, _ in self.members)})"

    @property
    def deadline_s(self) -> float | None:
        """The longest that a member asks for, None if none does."""
        asked = [attribute_of(member, "deadline_s") for _, member in self.members]
        return max((float(one) for one in asked if isinstance(one, int | float)), default=None)

    @property
    def list_members(self) -> tuple[tuple[str, Decider], ...]:
        """Name and decider of each member, with the members of a list within the list in its place."""
        return tuple(
            one
            for name, member in self.members
            for one in attribute_of(member, "list_members", ()) or ((name, member),)
        )

    @property
    def answers_custom(self) -> bool:
        """Whether any member answers questions of a caller's own."""
        return any(attribute_of(member, "answers_custom", True) for _, member in self.members)

    @property
    def breakers(self) -> tuple[CircuitBreaker, ...]:
        """The members' circuit breakers, those of lists within the list included."""
        nested = [one for _, member in self.members if isinstance(member, FallbackDecider) for one in member.breakers]
        return (*(guard.breakers[0] for guard in self._guards), *nested)

    def warm(self) -> None:
        """Load every member; one that cannot be loaded is logged and does not keep the others from it.

        Raises:
            DeciderUnavailable: None could be loaded.
        """
        failed: list[str] = []
        for (name, member), key in zip(self.members, self._keys, strict=True):
            error = outcome_of(partial(load, member, key))
            if error is not None:
                failed.append(f"{name}: {error_kind(error)}: {error}")
        if len(failed) == len(self.members):
            raise DeciderUnavailable(f"no decider of the list can be loaded ({'; '.join(failed)})")
        for failure in failed:
            logger.warning("cause=<%s> | a decider of a list cannot be loaded | the others decide", failure)

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask; see `Decider.decide`.

        Raises:
            DeciderError: Nobody answered; of the kind of the last failure.
        """
        call_s = max(self._call_s, self.deadline_s or 0.0)
        until = clock.until(call_s + _MARGIN_S) - _MARGIN_S
        passed_over: list[str] = []
        explanations: dict[str, str] = {}
        last: BaseException = DeciderUnavailable("nobody was asked")
        undecided: Reply | None = None
        for at, (name, member) in enumerate(self.members):
            share = clock.left(until) / (len(self.members) - at)
            began = time.monotonic()
            if not is_ready(member, self._keys[at], share * _LOADING_SHARE):
                passed_over.append(f"{name}: warming")
                undecided = undecided or Reply({question: NoAnswer("warming") for question in questions})
                continue
            share -= time.monotonic() - began
            with clock.limited_to(share):
                attempt = self._guards[at].begin(
                    partial(asked, member, state, questions), settings_in_force(), in_this_thread=is_bounded(member)
                )
                is_fair = share >= FAIR * call_s / len(self.members)
                reply, error = attempt.end(share, is_fair=is_fair, works=is_usable)
            if reply is None or error is not None:
                last = error or last
                passed_over.append(f"{name}: {error_kind(last)}")
                if isinstance(error, BadReturn):
                    explanations[passed_over[-1]] = str(error)
                continue
            reply.answered_by, reply.passed_over = reply.answered_by or name, tuple(passed_over)
            reply.explanations = {**explanations, **reply.explanations}
            reasons = {answer.reason for answer in reply.values() if isinstance(answer, NoAnswer)}
            if any(not isinstance(answer, NoAnswer) for answer in reply.values()):
                return reply
            if reasons <= set(UNDECIDED):
                undecided = undecided or reply
            last = BadReturn(f"{name} gave no usable answer ({', '.join(sorted(reasons))})")
            passed_over.append(
                f"{name}: {next(iter(reasons)) if reasons and reasons <= set(UNDECIDED) else 'no usable answer'}"
            )
            explanations.update((passed_over[-1], why) for why in explanations_of(reply).values())
        if undecided is not None:
            return undecided
        kind = type(last) if isinstance(last, DeciderError) else DeciderUnavailable
        whys = "".join(f"; {who}: {why}" for who, why in explanations.items())
        raise kind(f"no decider of the list answered ({'; '.join(passed_over)}){whys}")
