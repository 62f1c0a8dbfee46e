"""Is a decision model there, how fast is it, and does it tell an obvious yes from an obvious no?"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..core.functions import outcome_of
from ..core.questions import (
    Decider,
    NoAnswer,
    Question,
    Reply,
    State,
    Thresholds,
    asked,
    attribute_of,
    list_members_of,
    name_of,
    probability_of,
)
from ..core.types import UNDECIDED
from ..core.wordings import GATE_CRITERIA, RECORD_CRITERIA
from ..errors import BadAnswer, ConfigurationError, DeciderUnavailable, error_kind
from ..policy import DEFAULT_DEADLINE_S
from ..runtime import clock, threads
from ..runtime.decide import KINDS, load
from ..runtime.guard import Guard, identity_of
from ..runtime.threads import DECISIONS

logger = logging.getLogger(__name__)

CheckMode = Literal["warn", "raise", "off"]
"""What happens at start when a decider does not answer a probe question.

- `"warn"`: a thread of its own asks; a failure is logged. Only deciders that talk to something are asked.
- `"raise"`: the constructor asks, any decider, and raises.
- `"off"`: nobody asks.

Each member of a list is asked for itself, and one that does not answer is named, even if the others do.
"""

SIZES = (1, 8, 20)
"""Questions per request whose latency is measured."""

_PATIENCE_S = 60.0
"""How long `check` waits for one request: longer than any deadline, to be able to name the time it takes."""
_MOST_AT_ONCE = 4
"""How many deciders may be loaded or probed at a time, in the background."""
_MOST_CAUSE_CHARACTERS = 600
_GATE: Mapping[str, Question] = {"gate": GATE_CRITERIA.question()}
NEEDS: State = {"message": "What should I order for dinner tonight?", "previous": []}
"""A message that needs memory."""
NEEDS_NOT: State = {"message": "What is 17 times 23?", "previous": []}
"""One that needs none."""
_NOTE = "The user is vegetarian and allergic to peanuts."


@dataclass(frozen=True)
class Report:
    """What `check` found."""

    failure: str | None
    """Why one question was not answered; None when it was."""
    load_ms: float
    """Milliseconds until the model was loaded or the server looked up."""
    deadline_s: float
    """How long a recall may take with this decider by default, in seconds."""
    model: str | None = None
    """The id of the model that answered, if it says so."""
    latency_ms: Mapping[int, float | None] = field(default_factory=lambda: dict.fromkeys(SIZES))
    """Milliseconds of one request, per number of questions; None where it failed."""
    needs_memory: float | None = None
    """P(a lookup is worth making) for a message that needs memory."""
    needs_nothing: float | None = None
    """The same for one that needs nothing."""
    gate_threshold: float | None = None
    """The gate's threshold known for the model."""
    untuned: tuple[str, ...] = ()
    """Why thresholds in use may not suit the model."""
    members: Mapping[str, str | None] = field(default_factory=dict)
    """Of a list, lists within it included: why each member does not answer, by name; None for one that does."""

    @property
    def available(self) -> bool:
        """Whether one question was answered."""
        return self.failure is None

    @property
    def partly_dead(self) -> bool:
        """Whether a list answers, but not every member of it."""
        return self.available and any(self.members.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What should be looked at."""
        return tuple(_notes(self)) if self.available else ()


def check(decider: Decider) -> Report:
    """Ask a decider a few questions and time it, a list's members each for itself before.

    Never raises for what the decider does.
    """
    started = time.monotonic()
    members = _failures(decider, _PATIENCE_S) if list_members_of(decider) else {}
    failure = None if members else _load_failure(decider)
    load_ms, deadline_s = _ms(started), _deadline_s(decider)
    reply = _answers(decider, NEEDS, _GATE) if failure is None else failure
    if isinstance(reply, str):
        return Report(reply, load_ms, deadline_s, members=members)
    own = attribute_of(decider, "thresholds")
    latency = {size: _latency_ms(decider, size) for size in SIZES}
    no = _answers(decider, NEEDS_NOT, _GATE)
    return Report(
        None,
        load_ms,
        deadline_s,
        model=reply.model or attribute_of(decider, "model_id"),
        latency_ms=latency,
        needs_memory=probability_of(reply["gate"]),
        needs_nothing=None if isinstance(no, str) else probability_of(no["gate"]),
        gate_threshold=reply.thresholds.get("gate", own.gate if isinstance(own, Thresholds) else None),
        untuned=tuple(why for stage, why in reply.untuned.items() if stage != "router"),
        members=members,
    )


def probe(decider: Decider, seconds: float) -> str | None:
    """Ask one question within so many seconds; return what went wrong, None if it was answered."""
    reply = _answers(decider, NEEDS, _GATE, seconds, undecided=UNDECIDED)
    return reply if isinstance(reply, str) else None


def _answers(
    decider: Decider,
    state: State,
    questions: Mapping[str, Question],
    seconds: float = _PATIENCE_S,
    *,
    undecided: Sequence[str] = (),
) -> Reply | str:
    """Ask, and return why if a question was not answered, but for the reasons in `undecided`.

    As in a turn a thread asks, so that a decider that blocks holds nobody, and no event loop runs there.
    """
    guard = Guard(DECISIONS, KINDS, lane=("check", id(decider)))
    with clock.limited_to(seconds):
        reply, error = guard.begin(lambda: asked(decider, state, questions)).end(seconds)
    if reply is None:
        # What is no `Exception`, such as SystemExit, ends the call alone.
        return _said(error if isinstance(error, Exception) else DeciderUnavailable(f"it raised {type(error).__name__}"))
    for answer in reply.values():
        if isinstance(answer, NoAnswer) and answer.reason not in undecided:
            why = f" ({answer.why})" if answer.why else ""
            return _said(BadAnswer(f"the probe question was not answered: {answer.reason}{why}"))
    return reply


def _load_failure(decider: Decider, key: object = None) -> str | None:
    outcome = outcome_of(lambda: load(decider, key))
    return _said(outcome) if isinstance(outcome, Exception) else None


def _said(error: Exception) -> str:
    return f"{error_kind(error)}: {error}"


def _failures(
    decider: Decider, seconds: float | None, key: object = None, *, remote_alone: bool = False
) -> dict[str, str | None]:
    """Load and probe a decider, or each member of a list; return per name what went wrong, None where nothing did.

    Args:
        decider: Whom to ask.
        seconds: How long to wait for each answer; None: each one's own deadline, 0: it is only loaded.
        key: Who the decider is, see `breaker_of`; default the decider itself.
        remote_alone: Whether only those that talk to something are probed; the others are only loaded.
    """
    members = list_members_of(decider)
    names = [name for name, _ in members]
    failures: dict[str, str | None] = {}
    for at, (name, member) in enumerate(members or ((name_of(decider), decider),)):
        # Lists within a list may repeat a name.
        unique = name if names.count(name) <= 1 else f"{name} ({at + 1})"
        wait = _deadline_s(member) if seconds is None else seconds
        if remote_alone and not attribute_of(member, "remote", False):
            wait = 0
        failures[unique] = _load_failure(member, None if members else key) or (probe(member, wait) if wait else None)
    return failures


class _Starts:
    """What has been asked at the start already, and how many are being asked: servers make many managers."""

    def __init__(self) -> None:
        self._asked: set[Hashable] = set()
        self.after_fork()
        threads.notice(self)

    def after_fork(self) -> None:
        """Take a new lock and all room: the parent's threads are not here."""
        self._lock = threading.Lock()
        self.room = threading.BoundedSemaphore(_MOST_AT_ONCE)

    def is_first(self, key: object) -> bool:
        """Tell whether nobody has asked this decider yet, and note that somebody does now."""
        try:
            identity, anchors = identity_of(key)
        except TypeError:  # its end cannot be noticed
            return True
        with self._lock:
            if identity in self._asked:
                return False
            self._asked.add(identity)
        for anchor in anchors:
            weakref.finalize(anchor, self._asked.discard, identity).atexit = False
        return True


_starts = _Starts()


def check_at_start(decider: Decider | None, mode: CheckMode, key: object = None) -> None:
    """Load a decider and probe it, as the mode says; see `CheckMode`.

    In mode "warn" a decider is probed once in a process, and few are loaded or probed at a time.

    Args:
        decider: Whom to ask.
        mode: What happens when there is no answer.
        key: Who the decider is, see `breaker_of`; default the decider itself.

    Raises:
        ConfigurationError: The mode is unknown; or it is "raise" and the decider, or a member of a list, does not
            answer.
    """
    if mode not in ("warn", "raise", "off"):
        raise ConfigurationError(f'decider_check must be "warn", "raise" or "off", got {mode!r}')
    if decider is None:
        return
    if mode == "raise":
        dead = _dead(_failures(decider, None, key))
        if dead and list_members_of(decider):
            raise ConfigurationError(
                f"not every decider of the list answers ({_listed(dead)}); leave out what is dead, or pass "
                'decider_check="warn" to start all the same'
            )
        for name, failure in dead.items():
            raise ConfigurationError(
                f"decider {name} does not answer ({failure}); run `strands-gated-memory check <spec>`, "
                'or pass decider_check="warn" to start all the same'
            )
        return
    remote = mode == "warn" and bool(attribute_of(decider, "remote", False))
    if not (remote or callable(attribute_of(decider, "warm"))):
        return
    room = _starts.room
    if not room.acquire(blocking=False):  # many hang: whoever asks first loads it, and counts what fails
        return
    asks = remote and _starts.is_first(decider if key is None else key)
    thread = threading.Thread(
        target=_in_background, args=(decider, asks, room, key), name="gated-memory-warm", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # the process may start no more
        room.release()


def _in_background(decider: Decider, asks: bool, room: threading.BoundedSemaphore, key: object) -> None:
    try:
        _load_and_ask(decider, asks, key)
    finally:
        room.release()


def _load_and_ask(decider: Decider, asks: bool, key: object) -> None:
    failures = _failures(decider, _PATIENCE_S if asks else 0, key, remote_alone=True)
    dead = _dead(failures)
    if not asks:  # the first decision will fail the same way, and be counted
        for failure in dead.values():
            logger.debug("reason=<%s> | the decision model could not be loaded ahead of time", failure)
    elif len(dead) < len(failures):
        for name, failure in dead.items():
            _warn("a decider of a list does not answer | the others decide", name, failure)
    elif list_members_of(decider):
        _warn("no decider of the list answers | turns will recall without it", name_of(decider), _listed(dead))
    else:
        _warn("the decision model does not answer | turns will recall without it", name_of(decider), *dead.values())


def _dead(failures: Mapping[str, str | None]) -> dict[str, str]:
    return {name: why for name, why in failures.items() if why is not None}


def _listed(dead: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in dead.items())


def _warn(what: str, name: str, failure: str) -> None:
    logger.warning(f"decider=<%s>, cause=<%s> | {what}", name, failure[:_MOST_CAUSE_CHARACTERS])


def _notes(report: Report) -> list[str]:
    yes, no, threshold = report.needs_memory, report.needs_nothing, report.gate_threshold
    notes = [*report.untuned]
    if (needed := _needed_s(report.latency_ms)) > report.deadline_s:
        notes.append(
            f"a gate and a validator request take {needed:.1f} s, the deadline is {report.deadline_s:g} s: turns will "
            f"fail open; set RecallPolicy(deadline_s={needed * 1.5 + 2:.0f}) or choose a faster model"
        )
    if None in report.latency_ms.values():
        notes.append("some requests failed")
    if yes is not None and no is not None and yes <= no:
        notes.append("it rates the message that needs nothing at least as high: its decisions are worthless")
    elif threshold is not None and yes is not None and no is not None and not no < threshold <= yes:
        notes.append("the threshold does not separate the two messages: measure your own")
    return notes


def _needed_s(latency: Mapping[int, float | None]) -> float:
    gate, validator = latency.get(SIZES[0]) or 0.0, latency.get(SIZES[-1]) or 0.0
    return (gate + validator) / 1000


def _latency_ms(decider: Decider, size: int) -> float | None:
    questions = {f"record_{at}": RECORD_CRITERIA.question(f"{_NOTE} ({at})") for at in range(size)}
    started = time.monotonic()
    return None if isinstance(_answers(decider, NEEDS, questions), str) else _ms(started)


def _deadline_s(decider: Decider) -> float:
    own = attribute_of(decider, "deadline_s")
    return float(own) if isinstance(own, int | float) and 0 < own < math.inf else DEFAULT_DEADLINE_S


def _ms(started: float) -> float:
    return 1000 * (time.monotonic() - started)
