"""Is a decision model there, how fast is it, and does it tell an obvious yes from an obvious no?"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ..core.cuts import DEFAULT_DEADLINE_S
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
from ..runtime import budget, forks
from ..runtime.asking import KINDS
from ..runtime.breaker import identity_of
from ..runtime.guard import Guard
from ..runtime.loading import load
from ..runtime.workers import DECISIONS

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
_NEEDS: State = {"message": "What should I order for dinner tonight?", "previous": []}
_NEEDS_NOT: State = {"message": "What is 17 times 23?", "previous": []}
_NOTE = "The user is vegetarian and allergic to peanuts."


@dataclass(frozen=True)
class Report:
    """What `check` found."""

    available: bool
    """Whether one question was answered."""
    failure: str | None
    """Why not; None when it was."""
    model: str | None
    """The id of the model that answered, if it says so."""
    load_ms: float
    """Milliseconds until the model was loaded or the server looked up."""
    latency_ms: Mapping[int, float | None]
    """Milliseconds of one request, per number of questions; None where it failed."""
    needs_memory: float | None
    """P(a lookup is worth making) for a message that needs memory."""
    needs_nothing: float | None
    """The same for one that needs nothing."""
    gate_threshold: float | None
    """The gate's threshold known for the model."""
    deadline_s: float
    """How long a recall may take with this decider by default, in seconds."""
    notes: tuple[str, ...] = ()
    """What should be looked at."""
    members: Mapping[str, str | None] = field(default_factory=dict)
    """Of a list, lists within it included: why each member does not answer, by name; None for one that does."""

    @property
    def partly_dead(self) -> bool:
        """Whether a list answers, but not every member of it."""
        return self.available and any(self.members.values())


def check(decider: Decider) -> Report:
    """Ask a decider a few questions and time it, a list's members each for itself before.

    Never raises for what the decider does.
    """
    started = time.monotonic()
    members = {name: _warmed(member) or probe(member, _PATIENCE_S) for name, member in _members(decider)}
    report = _timed(decider, started, warmed=bool(members))
    return replace(report, members=members)


def _timed(decider: Decider, started: float, *, warmed: bool) -> Report:
    warm = None if warmed else attribute_of(decider, "warm")
    try:
        if callable(warm):
            warm()
    except Exception as error:
        return _unavailable(decider, error, started)
    load_ms = _ms(started)
    try:
        reply = _ask(decider, _NEEDS, {"gate": GATE_CRITERIA.question()})
    except Exception as error:
        return _unavailable(decider, error, started)
    answer = reply["gate"]
    if isinstance(answer, NoAnswer):
        return _unavailable(decider, BadAnswer(_unanswered(answer)), started)
    latency = {size: _latency_ms(decider, size) for size in SIZES}
    no = _ask_quietly(decider, _NEEDS_NOT)
    threshold = reply.thresholds.get("gate")
    own = attribute_of(decider, "thresholds")
    if threshold is None and isinstance(own, Thresholds):
        threshold = own.gate
    report = Report(
        available=True,
        failure=None,
        model=reply.model or attribute_of(decider, "model_id"),
        load_ms=load_ms,
        latency_ms=latency,
        needs_memory=probability_of(answer),
        needs_nothing=no,
        gate_threshold=threshold,
        deadline_s=_deadline_s(decider),
    )
    return replace(report, notes=tuple(_notes(report, reply)))


def probe(decider: Decider, seconds: float) -> str | None:
    """Ask one question within so many seconds; return what went wrong, None if it was answered."""
    try:
        answer = _ask(decider, _NEEDS, {"gate": GATE_CRITERIA.question()}, seconds)["gate"]
    except Exception as error:
        return f"{error_kind(error)}: {error}"
    if isinstance(answer, NoAnswer) and answer.reason not in UNDECIDED:
        return _unanswered(answer)
    return None


def _unanswered(answer: NoAnswer) -> str:
    why = f" ({answer.why})" if answer.why else ""
    return f"the probe question was not answered: {answer.reason}{why}"


def _members(decider: Decider) -> tuple[tuple[str, Decider], ...]:
    """Return name and decider of each member of a list, none for what is no list."""
    return _numbered(list_members_of(decider))


def _numbered(members: Sequence[tuple[str, Decider]]) -> tuple[tuple[str, Decider], ...]:
    """Tell members of one name apart by their place: lists within a list may repeat a name."""
    names = [name for name, _ in members]
    return tuple(
        (name if names.count(name) == 1 else f"{name} ({at + 1})", member) for at, (name, member) in enumerate(members)
    )


def _listed(failures: Mapping[str, str | None]) -> str:
    return "; ".join(f"{name}: {why}" for name, why in failures.items() if why is not None)


class _Starts:
    """What has been asked at the start already, and how many are being asked: servers make many managers."""

    def __init__(self) -> None:
        self._asked: set[Hashable] = set()
        self.after_fork()
        forks.notice(self)

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
        if _members(decider):
            _raise_if_a_member_is_dead(decider)
            return
        failure = _warmed(decider, key) or probe(decider, _deadline_s(decider))
        if failure is not None:
            raise ConfigurationError(
                f"decider {name_of(decider)} does not answer ({failure}); run `strands-gated-memory check <spec>`, "
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


def _raise_if_a_member_is_dead(decider: Decider) -> None:
    failures = {name: _warmed(member) or probe(member, _deadline_s(member)) for name, member in _members(decider)}
    if any(failures.values()):
        raise ConfigurationError(
            f"not every decider of the list answers ({_listed(failures)}); leave out what is dead, or pass "
            'decider_check="warn" to start all the same'
        )


def lines(report: Report, spec: str) -> list[str]:
    """Return a report as lines to print."""
    members = [f"  {name}: {'NOT available, ' + why if why else 'available'}" for name, why in report.members.items()]
    if not report.available:
        return [f"{spec}: NOT available", f"  {report.failure}", *members]
    dead = sum(why is not None for why in report.members.values())
    state = f"PARTLY available, {dead} of {len(report.members)} do not answer" if dead else "available"
    found = [f"{spec}: {state}" + (f", model {report.model}" if report.model else ""), *members]
    found.append(f"  load or look-up       {report.load_ms:8.0f} ms")
    found += [
        f"  {size:2} question{'s' if size > 1 else ' '}          {'  failed' if ms is None else f'{ms:8.0f}'} ms"
        for size, ms in report.latency_ms.items()
    ]
    found.append(f"  gate, needs memory    {_shown(report.needs_memory)}   {_NEEDS['message']}")
    found.append(f"  gate, needs nothing   {_shown(report.needs_nothing)}   {_NEEDS_NOT['message']}")
    found.append(f"  gate threshold        {_shown(report.gate_threshold)}   deadline {report.deadline_s:g} s")
    return [*found, *(f"  ! {note}" for note in report.notes)]


def _notes(report: Report, reply: Reply) -> list[str]:
    yes, no, threshold = report.needs_memory, report.needs_nothing, report.gate_threshold
    notes = [why for stage, why in reply.untuned.items() if stage != "router"]
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
    try:
        answers = _ask(decider, _NEEDS, questions)
    except Exception:
        return None
    return None if any(isinstance(answer, NoAnswer) for answer in answers.values()) else _ms(started)


def _ask(decider: Decider, state: State, questions: Mapping[str, Question], seconds: float = _PATIENCE_S) -> Reply:
    """Ask as a turn does: in a thread, so that a decider that blocks holds nobody, and no event loop runs there."""
    guard = Guard(DECISIONS, KINDS, lane=("check", id(decider)))
    with budget.limited_to(seconds):
        reply, error = guard.begin(lambda: asked(decider, state, questions)).end(seconds)
    if isinstance(error, Exception):
        raise error
    if reply is None:  # it raised what is no `Exception`, such as SystemExit: that ends the call alone
        raise DeciderUnavailable(f"it raised {type(error).__name__}") from error
    return reply


def _ask_quietly(decider: Decider, state: State) -> float | None:
    try:
        return probability_of(_ask(decider, state, {"gate": GATE_CRITERIA.question()})["gate"])
    except Exception:
        return None


def _warmed(decider: Decider, key: object = None) -> str | None:
    try:
        load(decider, key)
    except Exception as error:
        return f"{error_kind(error)}: {error}"
    return None


def _in_background(decider: Decider, asks: bool, room: threading.BoundedSemaphore, key: object) -> None:
    try:
        _load_and_ask(decider, asks, key)
    finally:
        room.release()


def _load_and_ask(decider: Decider, asks: bool, key: object) -> None:
    if members := _members(decider):
        _load_and_ask_members(decider, members, asks)
        return
    failure = _warmed(decider, key)
    if failure is not None and not asks:  # the first decision will fail the same way, and be counted
        logger.debug("reason=<%s> | the decision model could not be loaded ahead of time", failure)
        return
    failure = failure or (probe(decider, _PATIENCE_S) if asks else None)
    if failure is not None:
        _warn("the decision model does not answer | turns will recall without it", name_of(decider), failure)


def _load_and_ask_members(decider: Decider, members: Sequence[tuple[str, Decider]], asks: bool) -> None:
    """Load every member, and ask those that talk to something."""
    failures = {
        name: _warmed(member)
        or (probe(member, _PATIENCE_S) if asks and attribute_of(member, "remote", False) else None)
        for name, member in members
    }
    if not (asks and any(failures.values())):
        return
    if all(failures.values()):
        _warn("no decider of the list answers | turns will recall without it", name_of(decider), _listed(failures))
        return
    for name, failure in failures.items():
        if failure is not None:
            _warn("a decider of a list does not answer | the others decide", name, failure)


def _warn(what: str, name: str, failure: str) -> None:
    with contextlib.suppress(Exception):  # a log handler of the application's
        logger.warning(f"decider=<%s>, cause=<%s> | {what}", name, failure[:_MOST_CAUSE_CHARACTERS])


def _unavailable(decider: Decider, error: Exception, started: float) -> Report:
    return Report(
        available=False,
        failure=f"{error_kind(error)}: {error}",
        model=None,
        load_ms=_ms(started),
        latency_ms=dict.fromkeys(SIZES),
        needs_memory=None,
        needs_nothing=None,
        gate_threshold=None,
        deadline_s=_deadline_s(decider),
    )


def _deadline_s(decider: Decider) -> float:
    own = attribute_of(decider, "deadline_s")
    return float(own) if isinstance(own, int | float) and 0 < own < math.inf else DEFAULT_DEADLINE_S


def _ms(started: float) -> float:
    return 1000 * (time.monotonic() - started)


def _shown(value: float | None) -> str:
    return "    none" if value is None else f"{value:8.3f}"


def decisions(
    decider: Decider,
    message: str,
    namespaces: Sequence[str],
    records: Sequence[str] = (),
    previous: Sequence[str] = (),
) -> list[str]:
    """Return the decisions for one message as lines to print.

    Args:
        decider: The decision model.
        message: The user's message.
        namespaces: Namespaces to route between.
        records: Records to judge.
        previous: Texts before the message, oldest first, user and assistant alternating.
    """
    from ..core.types import Record, Turn
    from ..policy import RecallPolicy
    from ..recall import RecallPipeline

    turn = Turn(message, tuple(previous))
    found_by = [Record(text, namespaces[0]) for text in records]

    def search(name: str) -> list[Record]:
        return found_by if name == namespaces[0] else []

    trace = RecallPipeline(decider).recall(turn, namespaces, search).trace
    gate, cuts = trace.gate, trace.thresholds
    assert gate is not None
    found = [f"gate {gate.outcome}  {_beside(gate.probability, cuts['gate'])}"]
    found += [
        f"  {'search' if name in gate.selected else 'skip'}  {_beside(p, cuts['router'])}  {name}"
        for name, p in gate.namespaces.items()
    ]
    calls, judged = trace.decider_calls, trace.judgements
    if records and not judged:  # the gate is closed, or the namespace is not searched: judge them all the same
        judging = RecallPipeline(decider, RecallPolicy(gate={"threshold": 0.0}))
        trace = judging.recall(turn, namespaces[:1], search).trace
        calls, judged = (*calls, *(call for call in trace.decider_calls if call.stage == "validator")), trace.judgements
    counted = getattr(decider, "counted_part", None)
    for one in judged:
        beside = _beside(one.probability, trace.thresholds["validator"])
        found.append(f"  {'keep' if one.keep else 'drop'}  {beside}  {one.rendered}  ({one.reason})")
        if counted is not None and one.probability is not None:
            part = counted({"message": message, "previous": list(previous)}, one.rendered)
            found += [f"        counted: {part}"] if part != one.rendered else []
    for call in calls:
        took = f"{call.questions} questions in {1000 * call.seconds:.0f} ms"
        found.append(
            f"{call.stage}: {took}"
            + (f", model {call.model}" if call.model else "")
            + (f", answered by {call.answered_by}" if call.answered_by else "")
        )
        found += [f"  ! passed over {who}" for who in call.passed_over]
        found += [f"  ! failed open: {call.cause}"] if call.error else []
        found += [f"  ! not answered: {dict(call.no_answers)}"] if call.no_answers else []
        found += [f"  ! {why}" for why in call.explanations.values()]
        found += [f"  ! {why}" for why in call.untuned]
    return found


def _beside(probability: float | None, threshold: float | None) -> str:
    assert threshold is not None
    return f"{_shown(probability).strip()}  (threshold {threshold:.3f})"
