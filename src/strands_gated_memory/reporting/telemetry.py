"""OpenTelemetry spans and metrics of a recall, made from its trace when it is over.

    memory.recall              under the span that is current, which is the agent's
    ├── memory.gate            the request that holds the gate's and the router's questions
    ├── memory.retrieve        one per namespace searched, side by side
    └── memory.judge           the request that holds one question per record

They hold counts, probabilities, cuts, outcomes and kinds of failure, never text of the turn unless it is
passed in. Without an SDK that collects them, nothing happens. Nothing here raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.trace import Span, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from ..core.types import UNDECIDED, DeciderCall, Lookup, Recall, Turn, TurnTrace
from .log import log_debug

SCOPE = "strands_gated_memory"
"""Name of the tracer and the meter."""

_PREFIX = "gated_memory."
_SPANS = {"gate": "memory.gate", "validator": "memory.judge"}

# Proxies until a provider is set, whenever that is.
_tracer = trace.get_tracer(SCOPE)
_meter = metrics.get_meter(SCOPE)
_turns = _meter.create_counter(_PREFIX + "turns", description="Turns, by outcome of the gate.")
_turn_failures = _meter.create_counter(_PREFIX + "turn.failures", description="Turns that had no memory at all.")
_lookups = _meter.create_counter(_PREFIX + "lookups", description="Searches of a namespace.")
_retrieval_errors = _meter.create_counter(_PREFIX + "retrieval.errors", description="Failed searches, by kind.")
_returned = _meter.create_counter(_PREFIX + "records.returned", description="Records that searches returned.")
_injected = _meter.create_counter(_PREFIX + "records.injected", description="Records shown to the model.")
_dropped = _meter.create_counter(_PREFIX + "records.dropped", description="Records left out, by reason.")
_decider_calls = _meter.create_counter(_PREFIX + "decider.calls", description="Requests to the decision model.")
_decider_errors = _meter.create_counter(
    _PREFIX + "decider.errors", description="Failed requests and unusable answers of the decision model, by kind."
)
_recall_s = _meter.create_histogram(_PREFIX + "recall.duration", unit="s", description="A whole recall.")
_decider_s = _meter.create_histogram(_PREFIX + "decider.duration", unit="s", description="One request, by stage.")
_retrieval_s = _meter.create_histogram(_PREFIX + "retrieval.duration", unit="s", description="One namespace's search.")


def record(recall: Recall, content: Turn | None = None) -> None:
    """Make the spans and metrics of one turn, under the current span.

    Args:
        recall: What was recalled.
        content: The turn, if its text, the records' and the block's may be in the spans; None: no text at all.
    """
    with _contained():
        _measure(recall)
    with _contained():
        _make_spans(recall, content)


@contextlib.contextmanager
def _contained() -> Iterator[None]:
    """Go on after what an exporter or a processor of the user's raises: one span or the metrics are lost."""
    try:
        yield
    except Exception:
        log_debug("telemetry of a recall failed")


def _measure(recall: Recall) -> None:
    seen = recall.trace
    _turns.add(1, {"outcome": seen.gate.outcome if seen.gate else "none"})
    if seen.failure is not None:
        _turn_failures.add(1, {"kind": seen.failure})
    for lookup in seen.lookups:
        if lookup.error is not None:
            _retrieval_errors.add(1, {"kind": lookup.error})
        if not (lookup.cached or lookup.skipped):
            _lookups.add(1, {"pinned": lookup.pinned})
            _retrieval_s.record(lookup.seconds)
    for call in seen.decider_calls:
        for kind, count in _errors(call).items():
            _decider_errors.add(count, {"stage": call.stage, "kind": kind})
        if not call.skipped:
            _decider_calls.add(1, {"stage": call.stage})
            _decider_s.record(call.seconds, {"stage": call.stage})
    _returned.add(seen.returned)
    _injected.add(len(recall.records))
    for one in recall.dropped:
        _dropped.add(1, {"reason": one.reason})
    if seen.gate is not None and seen.gate.outcome != "disabled":
        _recall_s.record(seen.seconds)


def _make_spans(recall: Recall, content: Turn | None) -> None:
    seen = recall.trace
    root = _tracer.start_span("memory.recall", start_time=_ns(seen, 0.0))
    if root.is_recording():
        root.set_attributes(_recall_attributes(recall, content))
        under = trace.set_span_in_context(root, otel_context.get_current())
        for call in seen.decider_calls:
            with _contained():
                span = _tracer.start_span(
                    _SPANS.get(call.stage, "memory.judge"),
                    under,
                    start_time=_ns(seen, call.started_s),
                    attributes=_call_attributes(call, recall, content),
                )
                _end(span, call.error, _ns(seen, call.started_s + call.seconds))
        for lookup in seen.lookups:
            with _contained():
                span = _tracer.start_span(
                    "memory.retrieve",
                    under,
                    start_time=_ns(seen, lookup.started_s),
                    attributes=_lookup_attributes(lookup),
                )
                _end(span, lookup.error, _ns(seen, lookup.started_s + lookup.seconds))
    _end(root, seen.failure, _ns(seen, seen.seconds))


def _recall_attributes(recall: Recall, content: Turn | None) -> dict[str, AttributeValue]:
    seen = recall.trace
    gate = seen.gate
    found: dict[str, Any] = {
        "gate.outcome": gate.outcome if gate else None,
        "namespaces": seen.namespaces,
        "lookups": sum(1 for lookup in seen.lookups if not (lookup.cached or lookup.skipped)),
        "records.returned": seen.returned,
        "records.injected": len(recall.records),
        "records.dropped": len(recall.dropped),
        "block.tokens": seen.block_tokens,
        "failed_open": seen.failure is not None
        or any(_errors(call) for call in seen.decider_calls)
        or any(lookup.error for lookup in seen.lookups),
    }
    if content is not None:
        found |= {"message": content.text, "previous": list(content.previous), "block": recall.block}
    return _attributes(found)


def _call_attributes(call: DeciderCall, recall: Recall, content: Turn | None) -> dict[str, AttributeValue]:
    seen = recall.trace
    found: dict[str, Any] = {
        "decider.questions": call.questions,
        "decider.model": call.model,
        "decider.answered_by": call.answered_by,
        "decider.passed_over": list(call.passed_over) or None,
        "decider.truncated": call.truncated or None,
        **{f"decider.no_answers.{reason}": count for reason, count in call.no_answers.items()},
    }
    if call.stage == "gate" and seen.gate is not None:
        found |= {
            "gate.outcome": seen.gate.outcome,
            "gate.probability": seen.gate.probability,
            "gate.threshold": seen.thresholds.get("gate"),
            "router.threshold": seen.thresholds.get("router"),
            "router.namespaces": list(seen.gate.namespaces),
            # An array of one type: a namespace without a decision has -1.
            "router.probabilities": [-1.0 if p is None else p for p in seen.gate.namespaces.values()],
            "router.selected": list(seen.gate.selected),
        }
    if call.stage == "validator":
        found |= {
            "validator.threshold": seen.thresholds.get("validator"),
            "validator.relative": seen.thresholds.get("relative"),
            "validator.probabilities": [-1.0 if j.probability is None else j.probability for j in seen.judgements],
            "validator.kept": sum(1 for j in seen.judgements if j.keep),
            "validator.reasons": [j.reason for j in seen.judgements],
        }
        if content is not None:
            found["validator.records"] = [j.rendered for j in seen.judgements]
    return _attributes(found)


def _lookup_attributes(lookup: Lookup) -> dict[str, AttributeValue]:
    return _attributes(
        {
            "namespace": lookup.namespace,
            "records.returned": lookup.records,
            "pinned": lookup.pinned,
            "cached": lookup.cached,
        }
    )


def _errors(call: DeciderCall) -> dict[str, int]:
    if call.error is not None:
        return {call.error: 1}
    return {reason: count for reason, count in call.no_answers.items() if reason not in UNDECIDED}


def _end(span: Span, error: str | None, at_ns: int) -> None:
    if error is not None:
        span.set_attribute("error.type", error)
        span.set_status(Status(StatusCode.ERROR, error))
    span.end(at_ns)


def _ns(seen: TurnTrace, offset_s: float) -> int:
    """Return a moment of the recall, in nanoseconds since 1970."""
    return int((seen.started + offset_s) * 1e9)


def _attributes(found: Mapping[str, Any]) -> dict[str, AttributeValue]:
    return {_PREFIX + name: value for name, value in found.items() if value is not None}
