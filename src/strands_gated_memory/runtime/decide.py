"""Decision models that must be loaded into this process first: who loads them, and how long a turn waits for that.

A model that is being loaded is not failing. So a turn waits for it before it asks, in its own thread and for a
part of its deadline, and goes on without a decision when that is over; no circuit breaker hears of it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Hashable, Mapping
from typing import NamedTuple

from ..core import questions as q
from ..core.questions import Decider, attribute_of
from ..core.types import DeciderCall, Stage, Turn
from ..errors import (
    BadReturn,
    ConfigurationError,
    DeciderOverloaded,
    DeciderSkipped,
    DeciderTimeout,
    cause_of,
    error_kind,
)
from ..policy import CUTS, DEFAULT_DEADLINE_S, MOST_SECONDS, CutName, CutsInForce, InForce, RecallPolicy, cuts_in_force
from .clock import Clock, limited_to
from .guard import FAIR, CircuitBreaker, Guard, Kinds, breaker_of, governed_by, identity_of
from .threads import DECISIONS, notice

LONGEST_S = 600.0
"""A model that takes longer than this is asked all the same: what hangs for ever must be counted as a failure."""
_MOST_AT_ONCE = 4
"""How many models turns may begin to load at a time; a model beyond them is loaded by its first request."""


class _Load:
    """One model's load, under way or over."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.started = time.monotonic()
        self.succeeded = False

    def run(self, decider: Decider) -> None:
        try:
            decider.warm()  # type: ignore[attr-defined]
            self.succeeded = True
        finally:
            self.over.set()


class _Loads:
    """The loads of this process, by decider."""

    def __init__(self) -> None:
        self.after_fork()
        notice(self)

    def after_fork(self) -> None:
        """Forget them: what the parent loads or has loaded may not be here."""
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._known: dict[Hashable, _Load] = {}

    def enter(self, key: object) -> tuple[_Load, bool]:
        """Return a decider's load, and whether it is new and the caller's to run.

        Raises:
            TypeError: The end of the decider cannot be noticed, so nothing can be kept about it.
        """
        identity, anchors = identity_of(key)
        with self._lock:
            known = self._known.get(identity)
            if known is not None:
                return known, False
            load = self._known[identity] = _Load()
        for anchor in anchors:
            weakref.finalize(anchor, self._known.pop, identity, None).atexit = False
        return load, True

    def start(self, load: _Load, decider: Decider) -> None:
        """Run a new load in a thread; without room for it, leave it to the first request."""
        room = self._room

        def run() -> None:
            try:
                load.run(decider)
            except BaseException:  # the first request fails the same way, and is counted
                return
            finally:
                room.release()

        if not room.acquire(blocking=False):
            load.over.set()
            return
        try:
            threading.Thread(target=run, name="gated-memory-load", daemon=True).start()
        except RuntimeError:  # the process may start no more
            room.release()
            load.over.set()


_loads = _Loads()


def load(decider: Decider, key: object = None) -> None:
    """Load a decider in this thread, if it has anything to load.

    While another thread loads it, this one waits: there may be no room for a second copy. What that thread could not
    load is tried again here.

    Args:
        decider: What to load.
        key: Who it is, see `breaker_of`; default the decider itself.

    Raises:
        Exception: Whatever its `warm` raises.
    """
    if not callable(attribute_of(decider, "warm")):
        return
    try:
        running, is_new = _loads.enter(decider if key is None else key)
    except TypeError:
        running, is_new = _Load(), True
    if not is_new:
        running.over.wait()
        if running.succeeded and _stays_loaded(decider):
            return
    (running if is_new else _Load()).run(decider)


def is_ready(decider: Decider, key: object, seconds: float) -> bool:
    """Wait until a decider is loaded; one that nobody loads yet is, in a thread of its own.

    Args:
        decider: The decider. One that only talks to something has nothing to load.
        key: As for `load`.
        seconds: How long to wait.

    Returns:
        Whether it can be asked now: it is loaded, or its load has failed, so that asking shows why.
    """
    if not _must_be_loaded(decider):
        return True
    try:
        running, is_new = _loads.enter(decider if key is None else key)
    except TypeError:
        return True
    if is_new:
        _loads.start(running, decider)
    if running.over.is_set() or time.monotonic() - running.started > LONGEST_S:
        return True
    return running.over.wait(max(0.0, seconds))


def _must_be_loaded(decider: Decider) -> bool:
    if not callable(attribute_of(decider, "warm")):
        return False
    is_loaded = attribute_of(decider, "is_loaded")
    if isinstance(is_loaded, bool):
        return not is_loaded
    return not attribute_of(decider, "remote", False)


def _stays_loaded(decider: Decider) -> bool:
    """Tell whether there is nothing to look up again, as there is of a server, and nothing was given up meanwhile."""
    return not attribute_of(decider, "remote", False) and attribute_of(decider, "is_loaded") is not False


KINDS = Kinds(DeciderSkipped, DeciderOverloaded, DeciderTimeout)
"""What to call the failures of asking."""
_NAME_CHARACTERS = 80
_LOADING_SHARE = 0.25
"""Share of the deadline that a turn waits for a model to be loaded: the searches keep their time."""
_A_WAIT_S = 0.01
"""From which on a turn has waited for a model to be loaded, in seconds."""
_CUTS_OF: dict[Stage, tuple[CutName, ...]] = {"gate": ("gate", "router"), "validator": ("validator", "relative")}
"""The cuts that the reply to a stage's request is held against."""


class Asked(NamedTuple):
    """What came of a request."""

    answers: Mapping[str, q.Answer]
    """An answer to every question."""
    call: DeciderCall | None
    """None when nobody was asked."""
    cuts: CutsInForce
    """Those in force for these answers."""


class Asker:
    """Asks one decision model under one policy.

    Args:
        decider: The decision model; None if there is none to ask.
        policy: Thresholds, deadline and circuit breaker.
        key: Who it is for its circuit breaker and its share of the threads; None: the decider itself.

    Raises:
        ConfigurationError: `decider` has no `decide`.
    """

    def __init__(self, decider: q.Decider | None, policy: RecallPolicy, key: object) -> None:
        if decider is not None and not isinstance(decider, q.Decider):
            raise ConfigurationError(
                f"RecallPipeline needs an object with decide(state, questions), or None, got {type(decider).__name__}; "
                "write RecallPipeline(resolve_decider(...), policy)"
            )
        self.decider = decider
        self._policy = policy
        self._set_cuts = policy.cuts()
        self._measured: dict[str, tuple[float, str | None]] = {}
        self._has_answered = False
        whose = decider if key is None else key
        name = f"decider:{key if isinstance(key, str) else q.name_of(decider)[:_NAME_CHARACTERS]}"
        self._whose = whose
        breaker = breaker_of(("decider", whose), name)
        # Requests of the validator are larger: they may all fail while the gate's succeed.
        larger = breaker_of(("decider", whose, "validator"), f"{name}:validator")
        self._gate = Guard(DECISIONS, KINDS, [breaker])
        self._validator = Guard(DECISIONS, KINDS, [breaker, larger])

    @property
    def deadline_s(self) -> float:
        """Seconds that a whole recall may take."""
        return self.deadline().value

    def deadline(self) -> InForce:
        """Return the deadline in force: the policy's, else the decider's own."""
        if self._policy.deadline_s is not None:
            return InForce(self._policy.deadline_s, "policy")
        own = q.attribute_of(self.decider, "deadline_s")
        if isinstance(own, int | float) and not isinstance(own, bool) and 0 < own <= MOST_SECONDS:
            return InForce(float(own), "decider", q.title_of(self.decider))
        return InForce(DEFAULT_DEADLINE_S, "default")

    def breakers(self) -> list[CircuitBreaker]:
        """Return its circuit breaker, those of a list's members, and the validator's if it has ever opened."""
        if self.decider is None:
            return []
        members = q.attribute_of(self.decider, "breakers", ())
        members = members if isinstance(members, tuple) else ()
        breaker, larger = self._validator.breakers
        validator = [larger] if larger.has_opened else []
        return [breaker, *(one for one in members if isinstance(one, CircuitBreaker)), *validator]

    def cuts(self, reply: q.Reply | None = None) -> CutsInForce:
        """Return the cuts in force.

        Args:
            reply: For its answers; None: as of the latest reply to each stage's request. Before the first one a list's
                are those of the member that is asked first.
        """
        measured = self._measured if reply is None else _measured_by(reply)
        if self.decider is None:
            return cuts_in_force(self._set_cuts, {}, {}, None)
        whose = self.decider
        if reply is None and not self._has_answered:
            whose = next((member for _, member in q.list_members_of(whose)), whose)
        return cuts_in_force(self._set_cuts, measured, q.thresholds_of(whose), q.title_of(whose))

    def ask(
        self, stage: Stage, turn: Turn, questions: Mapping[str, q.Question], budget_s: float, clock: Clock
    ) -> Asked:
        """Ask; every question gets an answer, which may be `NoAnswer`.

        Args:
            stage: What the questions decide.
            turn: What the user asks.
            questions: Question per id.
            budget_s: Seconds to wait.
            clock: The recall's.
        """
        started_s = clock.spent()
        reply, error = self._reply(stage, turn, questions, budget_s)
        answers: dict[str, q.Answer] = reply
        if error is not None:
            reason: q.NoAnswerReason = "timeout" if error_kind(error) == "timeout" else "missing"
            answers = {name: q.NoAnswer(reason) for name in questions}
        else:
            latest = _measured_by(reply)
            self._has_answered = self._has_answered or any(not isinstance(one, q.NoAnswer) for one in reply.values())
            kept = {name: value for name, value in self._measured.items() if name not in _CUTS_OF[stage]}
            self._measured = kept | {name: latest[name] for name in _CUTS_OF[stage] if name in latest}
        call = DeciderCall(
            stage=stage,
            questions=len(questions),
            seconds=clock.spent() - started_s,
            started_s=started_s,
            model=reply.model,
            answered_by=reply.answered_by,
            passed_over=reply.passed_over,
            truncated=reply.truncated,
            untuned=tuple(
                why
                for name, why in reply.untuned.items()
                if name != "router" and not (name in CUTS and self._set_cuts[name] is not None)
            ),
            error=error_kind(error) if error is not None else None,
            no_answers={} if error is not None else q.unanswered(answers),
            cause=None if error is None else cause_of(error, (turn.text, *turn.previous, *_subjects(questions))),
            explanations=_explanations(reply, answers, error),
        )
        return Asked(answers, call, self.cuts(reply))

    def _reply(
        self, stage: Stage, turn: Turn, questions: Mapping[str, q.Question], budget_s: float
    ) -> tuple[q.Reply, BaseException | None]:
        """Return the reply, which counts if there is no error, and the error."""
        decider, settings, nothing = self.decider, self._policy.breaker, q.Reply({})
        assert decider is not None
        if budget_s <= 0.0:
            return nothing, DeciderTimeout("no time was left to ask")
        began = time.monotonic()
        if not is_ready(decider, self._whose, min(budget_s, _LOADING_SHARE * self.deadline_s)):
            return _warming(questions), None
        waited_s = time.monotonic() - began
        budget_s -= waited_s
        is_fair = budget_s >= self.deadline_s * FAIR
        guard = self._validator if stage == "validator" else self._gate
        with limited_to(budget_s), governed_by(settings):
            # The reply is read over there: it may be as slow or as hostile as the call. And nothing is done here
            # between begin and end: the thread that wakes would only wait for the interpreter's lock.
            attempt = guard.begin(
                lambda: q.asked(decider, q.state_of(turn), questions), settings, in_this_thread=is_bounded(decider)
            )
            reply, error = attempt.end(budget_s, is_fair=is_fair, works=q.is_usable)
        if isinstance(error, DeciderTimeout) and not is_fair and waited_s > _A_WAIT_S:
            return _warming(questions), None
        return nothing if reply is None else reply, error


def is_bounded(decider: q.Decider) -> bool:
    """Tell whether a decider says that it is back in time by itself, and has nothing to load first.

    It needs no thread of its own: it is called in the turn's.
    """
    return q.attribute_of(decider, "bounded", False) is True and q.attribute_of(decider, "is_loaded") is not False


def _warming(questions: Mapping[str, q.Question]) -> q.Reply:
    return q.Reply({name: q.NoAnswer("warming") for name in questions})


def _explanations(reply: q.Reply, answers: Mapping[str, q.Answer], error: BaseException | None) -> Mapping[str, str]:
    if error is not None:
        return {error_kind(error): str(error)} if isinstance(error, BadReturn) else {}
    return {**reply.explanations, **q.explanations_of(answers)}


def _measured_by(reply: q.Reply) -> dict[str, tuple[float, str | None]]:
    return {name: (value, reply.model) for name, value in reply.thresholds.items()}


def _subjects(questions: Mapping[str, q.Question]) -> list[str]:
    return [one.subject or "" for one in questions.values()]
