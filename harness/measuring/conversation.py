"""`conversation`: one conversation through every arm, measured at the model and at the memory service.

Each arm is a real Strands agent with a session manager on an emulated AgentCore Memory; what it was shown and what the
service was asked is counted from outside, the same way for all. The memory service's time is modelled, and nothing
sleeps. The decision model's time is that of its requests, recorded and replayed with the answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import numpy as np
from bedrock_agentcore.memory.integrations.strands.session_manager import AgentCoreMemorySessionManager

from strands_gated_memory import GatedMemorySessionManager
from strands_gated_memory.core.gate import describe
from strands_gated_memory.core.questions import About, Answer, Decider, NoAnswer, Question, Reply, State
from strands_gated_memory.core.render import render_record
from strands_gated_memory.core.wordings import GATE_CRITERIA, RECORD_CRITERIA, ROUTE_CRITERIA
from strands_gated_memory.deciders.function import FunctionDecider
from strands_gated_memory.demo.arms import (
    LOOKUP_MS,
    REGION,
    ArmResult,
    arm_config,
    arm_figures,
    is_stated,
    records_in,
    run_conversation,
)
from strands_gated_memory.demo.persona import MUST_HAVE, Persona, load_persona
from strands_gated_memory.embedded.encoder import CACHE_ENTRIES, Encoder, VectorCache, default_encoder
from strands_gated_memory.errors import DeciderUnavailable
from strands_gated_memory.policy import RecallPolicy
from strands_gated_memory.testing import local_agentcore, seed_records

from ..data.datasets import Dataset
from ..errors import RunFailed
from ..recording.recorder import RecordingDecider, question_hash, state_hash
from .measurement import Measurement
from .metrics import rate_interval
from .options import Settings
from .tables import NOTHING, Result, Table, number, with_interval

Stages = frozenset[About]


@dataclass(frozen=True)
class Arm:
    """One way to recall.

    Attributes:
        name: What tables call it.
        stages: What the decision model is asked; nothing else is decided.
        policy: Settings of the recall.
        who: "nobody" (no decisions), "decider" (the one that is measured), "labels" or "error".
    """

    name: str
    stages: Stages = frozenset()
    policy: Mapping[str, Any] = field(default_factory=dict)
    who: str = "decider"


_SELECTIONS = ("threshold", "ranking", "hybrid")
_SURE = {"gate": {"threshold": 0.5}, "router": {"threshold": 0.5}, "validator": {"threshold": 0.5}}
_PATIENT = {"deadline_s": 60.0, "retrieve": {"timeout_s": 30.0}, "stats_log": "off"}
"""Decisions are timed, not cut off: a busy machine must not change what is measured."""
STOCK = "stock raw"
ARMS: tuple[Arm, ...] = (
    Arm(STOCK, who="nobody"),
    Arm("stock rendered", who="nobody", policy={"render": {"mode": "prose"}}),
    Arm("gate", frozenset({"gate"})),
    Arm("gate + router", frozenset({"gate", "namespace"})),
    *(
        Arm(f"gate + validator, {mode}", frozenset({"gate", "record"}), {"select": {"mode": mode}})
        for mode in _SELECTIONS
    ),
    Arm("gate + router + validator (the default)", frozenset({"gate", "namespace", "record"})),
    Arm("oracle (the labels)", frozenset({"gate", "namespace", "record"}), _SURE, who="labels"),
    Arm("always error", frozenset({"gate", "namespace", "record"}), who="error"),
)
"""In the order of the tables. "stock rendered" is the stock behaviour over records in one style of prose."""


class StagedDecider:
    """Lets through what one arm asks, abstains from the rest, and counts what reached the decision model.

    A request that was asked before in the same measurement is answered as it was then, latency included: arms that
    start alike ask alike, and a replay from the recording gives the same sums.

    Args:
        decider: Who is asked.
        stages: What is let through.
        memo: Shared by the arms of a measurement.

    Attributes:
        calls: Requests so far.
        questions: Questions in them.
        ms: Their latencies in sum.
        failure: A recording that lacks an answer: the measurement cannot go on, though the agent does.
    """

    def __init__(self, decider: Decider, stages: Stages, memo: dict[Any, Any]) -> None:
        self._decider = decider
        self._stages = stages
        self._memo = memo
        self.calls = 0
        self.questions = 0
        self.ms = 0.0
        self.failure: RunFailed | None = None
        self.thresholds = getattr(decider, "thresholds", None)
        self.deadline_s = getattr(decider, "deadline_s", None)

    def decide(self, state: State, questions: Mapping[str, Question]) -> Reply:
        """Ask; see `Decider.decide`."""
        asked = {name: question for name, question in questions.items() if question.about in self._stages}
        answers: dict[str, Answer] = dict.fromkeys(questions, NoAnswer("abstained"))
        if not asked:
            return Reply(answers)
        key = (state_hash(state), tuple(question_hash(question) for question in asked.values()))
        if key not in self._memo:
            self._memo[key] = self._asked(state, asked)
        reply, error, ms = self._memo[key]
        self.calls += 1
        self.questions += len(asked)
        self.ms += ms
        if error is not None:
            raise error
        answers.update(zip(asked, reply, strict=True))
        return Reply(answers)

    def _asked(self, state: State, asked: Mapping[str, Question]) -> tuple[list[Answer], Exception | None, float]:
        started = time.perf_counter()
        before = _total_ms(self._decider)
        try:
            raw = self._decider.decide(state, asked)
            found, error = [raw.get(name, NoAnswer("missing")) for name in asked], None
        except RunFailed as failure:
            self.failure = failure
            raise
        except Exception as failed:
            found, error = [], failed
        after = _total_ms(self._decider)
        ms = 1000 * (time.perf_counter() - started) if before is None or after is None else after - before
        return found, error, ms


class ErrorDecider:
    """Cannot be reached, ever."""

    def decide(self, state: State, questions: Mapping[str, Question]) -> dict[str, Answer]:  # noqa: ARG002
        """Fail.

        Raises:
            DeciderUnavailable: Always.
        """
        raise DeciderUnavailable("the always-error arm")


def oracle(persona: Persona) -> FunctionDecider:
    """Return a decider that answers from a persona's labels.

    It knows a turn by its message and a record by its text, rendered as the policy does it. A record is needed when
    its label says so; so is one that states the same fact; a namespace is when it holds such a record.
    """
    needed: dict[str, set[str]] = {}
    opens: dict[str, bool] = {}
    for turn in persona.conversation:
        relevant = {record.id for record in persona.records if is_stated(record.id, set(turn.relevant), persona)}
        needed.setdefault(turn.user, set()).update(relevant)
        opens[turn.user] = opens.get(turn.user, False) or turn.needs_memory
    records: dict[str, set[str]] = {}
    spaces: dict[str, set[str]] = {}
    for record in persona.records:
        text = RECORD_CRITERIA.question(render_record(record.text)).instructions
        records.setdefault(text, set()).add(record.id)
        about = describe(persona.template(record.namespace))
        if about:
            spaces.setdefault(ROUTE_CRITERIA.question(about).instructions, set()).add(record.id)
    gate = GATE_CRITERIA.question().instructions

    def decide(state: Mapping[str, Any], questions: Mapping[str, Any]) -> dict[str, Any]:
        wanted = needed.get(state["message"], set())
        answers = {}
        for name, question in questions.items():
            text = question["instructions"]
            yes = opens.get(state["message"], False) if text == gate else bool(
                wanted & (records.get(text) or spaces.get(text) or set())
            )  # fmt: skip
            answers[name] = {"type": "noul", "noul": 1.0 if yes else 0.0}
        return answers

    return FunctionDecider(decide)


def evaluate(data: Dataset, decider: RecordingDecider, settings: Settings, *, encoder: Any = None) -> Result | None:
    """Run every arm, as often as the settings say.

    Args:
        data: A data set; without a conversation there is nothing to measure.
        decider: The decision model that is measured.
        settings: Runs and seed.
        encoder: Ranks records in the emulation; default the embedded one.

    Raises:
        RunFailed: The recording to replay lacks an answer.
    """
    if data.conversation is None:
        return None
    persona = load_persona(data.path)
    runs = []
    for run in range(settings.runs):
        decider.run = run
        runs.append(_run(persona, decider, encoder))
    decider.run = 0
    failed = sum(one.figures["decider_errors"] for run in runs for one in run if one.arm.who == "decider")
    if failed and not decider.errors:  # what the pipeline refused, the decider knows nothing of
        decider.errors["not usable for the turn"] = failed
    return _result(data, decider, settings, runs)


@dataclass(frozen=True)
class _Ran:
    """One arm, run once."""

    arm: Arm
    result: ArmResult
    figures: Mapping[str, Any]
    wall_ms: float


def _run(persona: Persona, decider: RecordingDecider, encoder: Any) -> list[_Ran]:
    memo: dict[Any, Any] = {}
    found: list[_Ran] = []
    # The emulation ranks with an encoder of its own, and each arm starts with an empty cache: otherwise the embedded
    # model would find every record encoded already, by the search or by an arm before.
    with local_agentcore(region_name=REGION, encoder=encoder or Encoder()) as memory:
        session = boto3.Session(region_name=REGION)  # one for all: each would load the service models anew
        seed_records(
            session.client("bedrock-agentcore"),
            memory.memory_id,
            [{"text": record.text, "namespace": persona.template(record.namespace)} for record in persona.records],
            actor_id=persona.actor_id,
        )
        for arm in ARMS:
            staged = _staged(arm, persona, decider, memo)
            default_encoder().cache = VectorCache(CACHE_ENTRIES)
            with _quiet(arm.who == "error"):
                manager = _manager(arm, persona, memory, staged, session)
                started = time.perf_counter()
                result = run_conversation(arm.name, persona, memory, manager)
                wall_ms = 1000 * (time.perf_counter() - started)
            if staged is not None and staged.failure is not None:
                raise staged.failure
            found.append(_Ran(arm, result, _figures(arm, result, persona, staged, found), wall_ms))
    return found


def _staged(arm: Arm, persona: Persona, decider: Decider, memo: dict[Any, Any]) -> StagedDecider | None:
    if arm.who == "nobody":
        return None
    if arm.who == "decider":
        return StagedDecider(decider, arm.stages, memo)
    return StagedDecider(oracle(persona) if arm.who == "labels" else ErrorDecider(), arm.stages, {})


def _manager(arm: Arm, persona: Persona, memory: Any, staged: StagedDecider | None, session: boto3.Session) -> Any:
    config = arm_config("".join(c if c.isalnum() else "-" for c in arm.name), persona, memory)
    if arm.name == STOCK:
        return AgentCoreMemorySessionManager(config, boto_session=session)
    if arm.who == "nobody":
        policy = _updated(RecallPolicy.stock(), {**_PATIENT, **arm.policy})
    else:
        policy = RecallPolicy(**{**_PATIENT, **arm.policy})
    return GatedMemorySessionManager(config, boto_session=session, decider=staged, policy=policy, decider_check="off")


def _updated(policy: RecallPolicy, changes: Mapping[str, Any]) -> RecallPolicy:
    kept = policy.model_dump()
    merged = {name: {**kept[name], **value} if isinstance(value, Mapping) else value for name, value in changes.items()}
    return RecallPolicy(**(kept | merged))


# Figures


def _figures(
    arm: Arm, result: ArmResult, persona: Persona, staged: StagedDecider | None, before: Sequence[_Ran]
) -> dict[str, Any]:
    found = dict(arm_figures(result, persona))
    turns = len(result.turns)
    ms = staged.ms if staged is not None and arm.who == "decider" else 0.0
    injected = bearing = 0
    for turn in result.turns:
        present = records_in(turn.block, persona)
        injected += len(present)
        bearing += sum(is_stated(name, set(turn.turn.relevant), persona) for name in present)
    stock = before[0].figures["modelled_memory_service_ms"] if before else found["modelled_memory_service_ms"]
    saved = stock - found["modelled_memory_service_ms"]
    calls = staged.calls if staged is not None else 0
    found |= {
        "bearing_share": bearing / injected if injected else None,
        "must_have_by_turn": _must_haves(result, persona),
        "decider_calls": calls,
        "decider_questions": staged.questions if staged is not None else 0,
        "decider_ms": ms,
        "modelled_recall_ms": found["modelled_memory_service_ms"] + ms,
        "saved_lookup_ms": saved,
        "break_even_ms_a_turn": saved / turns if staged is not None and turns else None,
        "break_even_ms_a_call": saved / calls if calls else None,
    }
    return found


def _must_haves(result: ArmResult, persona: Persona) -> list[tuple[int, int]]:
    """Return, per turn that has must-haves, how many were injected and how many there are."""
    counted = []
    for turn in result.turns:
        present = records_in(turn.block, persona)
        wanted = [name for name, grade in turn.turn.relevant.items() if grade == MUST_HAVE]
        if wanted:
            counted.append((sum(is_stated(name, present, persona) for name in wanted), len(wanted)))
    return counted


def _result(data: Dataset, decider: RecordingDecider, settings: Settings, runs: Sequence[Sequence[_Ran]]) -> Result:
    first = runs[0]
    tables = [
        _what(first, decider.name, data.name, settings),
        *(make(first, decider.name, data.name) for make in (_cost, _time)),
    ]
    if len(runs) > 1:
        tables.append(_drift(runs, decider.name, data.name))
    failed = sum(one.figures["decider_errors"] for run in runs for one in run if one.arm.who == "decider")
    if failed:
        stamp = f"{decider.name}: {failed} decider errors in the arms that ask it; they failed open"
        tables = [table.model_copy(update={"stamp": stamp}) for table in tables]
    return Result(
        command="conversation",
        data=data.name,
        data_sha256=data.sha256,
        decider=decider.name,
        model=decider.model_id,
        tables=tuple(tables),
        sentences=tuple(_sentences(first, data.name, decider.name)),
        figures={one.arm.name: dict(one.figures) for one in first},
        plots={
            "arms": [
                {
                    "arm": one.arm.name,
                    **{
                        name: one.figures[name]
                        for name in (
                            "lookups", "records_injected", "context_tokens", "conversation_memory_tokens",
                            "must_have_recall", "modelled_recall_ms",
                        )
                    },
                }
                for one in first
            ]
        },
        timing={f"wall ms, {one.arm.name}": round(one.wall_ms, 1) for one in first},
        errors=failed,
    )  # fmt: skip


def _what(ran: Sequence[_Ran], who: str, data: str, settings: Settings) -> Table:
    rows = []
    for one in ran:
        f = one.figures
        by_turn = f["must_have_by_turn"]
        around = rate_interval([hit for hit, _ in by_turn], [wanted for _, wanted in by_turn], settings.seed)
        rows.append(
            (
                one.arm.name,
                who if one.arm.who == "decider" else NOTHING,
                str(f["retrievals"]),
                str(f["lookups"]),
                str(f["records_injected"]),
                number(f["bearing_share"], 2),
                with_interval(number(f["must_have_recall"], 2), around),
                f"{f['context_tokens']:,}",
                f"{f['conversation_memory_tokens']:,}",
                str(f["decider_errors"]),
            )
        )
    columns = (
        "arm", "decider", "turns searched", "lookups", "records", "with bearing", "must-haves", "context tokens",
        "memory tokens", "errors",
    )  # fmt: skip
    turns = len(ran[0].result.turns)
    notes = (
        f"{turns} turns, real agents, an emulated AgentCore Memory. Context tokens: the blocks of the turns, once "
        "each; memory tokens: all recall blocks over all model calls, old ones that are sent again included; a token "
        "is four characters. With bearing: the share of injected records that the labels grade 1 or 2. Must-haves: "
        "the share of grade-2 records, or of ones that state the same fact, that were in the prompt, with a 95 % "
        "bootstrap interval over turns where they differ.",
    )
    return Table(
        key=f"arms-{data}", title=f"{data}: what was searched and shown", columns=columns, rows=tuple(rows), notes=notes
    )


def _cost(ran: Sequence[_Ran], who: str, data: str) -> Table:
    rows = []
    for one in ran:
        f = one.figures
        asks = one.arm.who == "decider"
        rows.append(
            (
                one.arm.name,
                who if asks else NOTHING,
                str(f["decider_calls"]),
                f"{f['modelled_memory_service_ms']:,}",
                number(f["break_even_ms_a_turn"], 0) if asks else NOTHING,
                number(f["break_even_ms_a_call"], 0) if asks else NOTHING,
            )
        )
    columns = (
        "arm", "decider", "decider calls", "lookup ms (modelled)", "break-even ms a turn", "break-even ms a call",
    )  # fmt: skip
    notes = (
        f"Lookup ms: {LOOKUP_MS} ms for each turn that searches, the mean of the post; namespaces are searched side by "
        "side. Break-even: below this decision time the arm waits less than the stock manager.",
    )
    return Table(
        key=f"arms-cost-{data}", title=f"{data}: what it costs", columns=columns, rows=tuple(rows), notes=notes
    )


def _time(ran: Sequence[_Ran], who: str, data: str) -> Table:
    rows = []
    for one in ran:
        f = one.figures
        asks = one.arm.who == "decider"
        if asks or one.arm.name == STOCK:
            rows.append(
                (
                    one.arm.name,
                    who if asks else NOTHING,
                    number(f["decider_ms"], 0) if asks else NOTHING,
                    f"{f['modelled_memory_service_ms']:,}",
                    f"{f['modelled_recall_ms']:,.0f}",
                    _verdict(f) if asks else NOTHING,
                )
            )
    columns = ("arm", "decider", "decider ms", "lookup ms (modelled)", "wall clock ms (modelled)", "against stock")
    notes = (
        "Decider ms are those of the recorded requests, on the machine that recorded them. Wall clock: what the user "
        "waits for recall over the conversation, decisions and lookups one after the other.",
    )
    return Table(key=f"arms-{data}-time", title=f"{data}: time", columns=columns, rows=tuple(rows), notes=notes)


def _verdict(f: Mapping[str, Any]) -> str:
    change = f["saved_lookup_ms"] - f["decider_ms"]
    return f"{change:,.0f} ms faster" if change >= 0 else f"{-change:,.0f} ms slower"


_DRIFTING = ("lookups", "records_injected", "conversation_memory_tokens", "must_have_recall")


def _drift(runs: Sequence[Sequence[_Ran]], who: str, data: str) -> Table:
    rows = []
    for at, one in enumerate(runs[0]):
        if one.arm.who != "decider":
            continue
        row = [one.arm.name, who]
        for name in _DRIFTING:
            values = [run[at].figures[name] for run in runs if run[at].figures[name] is not None]
            digits = 2 if name == "must_have_recall" else 0
            row.append(f"{min(values):.{digits}f} … {max(values):.{digits}f}" if values else NOTHING)
        rows.append(tuple(row))
    columns = ("arm", "decider", "lookups", "records", "memory tokens", "must-haves")
    return Table(
        key=f"arms-drift-{data}", title=f"{data}, {len(runs)} runs: least … most", columns=columns, rows=tuple(rows)
    )


def _sentences(ran: Sequence[_Ran], data: str, who: str) -> Iterator[str]:
    by_name = {one.arm.name: one.figures for one in ran}
    stock = by_name[STOCK]
    full = next(one for one in ran if len(one.arm.stages) == 3 and one.arm.who == "decider")
    turns, f = len(full.result.turns), full.figures
    tokens = stock["conversation_memory_tokens"]
    less = 1 - f["conversation_memory_tokens"] / tokens if tokens else 0.0
    yield (
        f"{data}, {who}, {full.arm.name}: {f['retrievals']} of {turns} turns searched, "
        f"{stock['records_injected']} records down to {f['records_injected']}, {100 * less:.0f} % fewer memory tokens "
        f"over the conversation, must-haves {number(f['must_have_recall'], 2)} against the stock manager's "
        f"{number(stock['must_have_recall'], 2)}."
    )
    errors = next(one for one in ran if one.arm.who == "error").figures
    lost = errors["retrievals"] < stock["retrievals"] or (errors["must_have_recall"] or 0) < (
        stock["must_have_recall"] or 0
    )
    yield (
        f"{data}, always error: {errors['decider_errors']} errors counted, {errors['retrievals']} of {turns} "
        "turns searched: "
        + ("memory was LOST, which must not be." if lost else "no memory was lost, and it does not look like success.")
    )


def _total_ms(decider: Decider) -> float | None:
    total = getattr(decider, "total_ms", None)
    return float(total) if isinstance(total, int | float | np.floating) else None


@contextmanager
def _quiet(quiet: bool) -> Iterator[None]:
    """Keep the failures that are made on purpose out of the log."""
    log = logging.getLogger("strands_gated_memory")
    before = log.level
    if quiet:
        log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(before)


MEASUREMENT = Measurement(
    "conversation",
    "Conversation: the arms over eight turns",
    ("persona", "conversations"),
    "conversation",
    evaluate,
)
