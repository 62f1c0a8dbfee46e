"""What the commands `check` and `ask` print, as lines."""

from __future__ import annotations

from collections.abc import Sequence

from .core.questions import Decider, attribute_of
from .core.types import Record, Turn
from .deciders.check import NEEDS, NEEDS_NOT, Report
from .policy import RecallPolicy
from .recall import RecallPipeline


def lines(report: Report, spec: str) -> list[str]:
    """Return a report as lines to print."""
    members = [f"  {name}: {'NOT available, ' + why if why else 'available'}" for name, why in report.members.items()]
    if not report.available:
        return [f"{spec}: NOT available", f"  {report.failure}", *members]
    dead = sum(why is not None for why in report.members.values())
    state = f"PARTLY available, {dead} of {len(report.members)} do not answer" if dead else "available"
    printed = [f"{spec}: {state}" + (f", model {report.model}" if report.model else ""), *members]
    printed.append(f"  load or look-up       {report.load_ms:8.0f} ms")
    printed += [
        f"  {size:2} question{'s' if size > 1 else ' '}          {'  failed' if ms is None else f'{ms:8.0f}'} ms"
        for size, ms in report.latency_ms.items()
    ]
    printed.append(f"  gate, needs memory    {_shown(report.needs_memory)}   {NEEDS['message']}")
    printed.append(f"  gate, needs nothing   {_shown(report.needs_nothing)}   {NEEDS_NOT['message']}")
    printed.append(f"  gate threshold        {_shown(report.gate_threshold)}   deadline {report.deadline_s:g} s")
    return [*printed, *(f"  ! {note}" for note in report.notes)]


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
    turn = Turn(message, tuple(previous))
    stored = [Record(text, namespaces[0]) for text in records]

    def search(name: str) -> list[Record]:
        return stored if name == namespaces[0] else []

    trace = RecallPipeline(decider).recall(turn, namespaces, search).trace
    gate, cuts = trace.gate, trace.thresholds
    assert gate is not None
    skipped = "skip" if gate.open else "skip (gate closed)"
    printed = [f"gate {gate.outcome}  {_beside(gate.probability, cuts['gate'])}"]
    printed += [
        f"  {'search' if name in gate.selected else skipped}  {_beside(p, cuts['router'])}  {name}"
        for name, p in gate.namespaces.items()
    ]
    calls, judged = trace.decider_calls, trace.judgements
    if records and not judged:  # the gate is closed, or the namespace is not searched: judge them all the same
        judging = RecallPipeline(decider, RecallPolicy(gate={"threshold": 0.0}))
        trace = judging.recall(turn, namespaces[:1], search).trace
        calls, judged = (*calls, *(call for call in trace.decider_calls if call.stage == "validator")), trace.judgements
    counted = attribute_of(decider, "counted_part")
    for judgement in judged:
        beside = _beside(judgement.probability, trace.thresholds["validator"])
        printed.append(
            f"  {'keep' if judgement.keep else 'drop'}  {beside}  {judgement.rendered}  ({judgement.reason})"
        )
        if counted is not None and judgement.probability is not None:
            part = counted({"message": message, "previous": list(previous)}, judgement.rendered)
            printed += [f"        counted: {part}"] if part != judgement.rendered else []
    for call in calls:
        took = f"{call.questions} questions in {1000 * call.seconds:.0f} ms"
        printed.append(
            f"{call.stage}: {took}"
            + (f", model {call.model}" if call.model else "")
            + (f", answered by {call.answered_by}" if call.answered_by else "")
        )
        printed += [f"  ! passed over {who}" for who in call.passed_over]
        printed += [f"  ! failed open: {call.cause}"] if call.error else []
        printed += [f"  ! not answered: {dict(call.no_answers)}"] if call.no_answers else []
        printed += [f"  ! {why}" for why in call.explanations.values()]
        printed += [f"  ! {why}" for why in call.untuned]
    return printed


def _beside(probability: float | None, threshold: float | None) -> str:
    assert threshold is not None
    return f"{_shown(probability).strip()}  (threshold {threshold:.3f})"


def _shown(value: float | None) -> str:
    return "    none" if value is None else f"{value:8.3f}"
