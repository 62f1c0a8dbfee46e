"""OpenTelemetry spans and metrics of a recall, made from its trace when it is over.

    memory.recall              under the span that is current, which is the agent's
    ├── memory.gate            the request that holds the gate's and the router's questions
    ├── memory.retrieve        one per namespace searched, side by side
    └── memory.judge           the request that holds one question per record

They hold counts, probabilities, cuts, outcomes and kinds of failure, never text of the turn unless it is
asked for. Without an SDK that collects them, nothing happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.trace import Span, Status, StatusCode
from opentelemetry.util.types import AttributeValue

from ..core.types import DeciderCall, Lookup, Turn, TurnTrace
from .report import Report, errors_of, was_made

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


class Metrics:
    """Counters and histograms."""

    name = "metrics"

    def report(self, report: Report) -> None:
        """Measure one turn."""
        seen, counts = report.recall.trace, report.counts
        _turns.add(1, {"outcome": seen.gate.outcome if seen.gate else "none"})
        if seen.failure is not None:
            _turn_failures.add(1, {"kind": seen.failure})
        for lookup in filter(was_made, seen.lookups):
            _lookups.add(1, {"pinned": lookup.pinned})
            _retrieval_s.record(lookup.seconds)
        for call in filter(was_made, seen.decider_calls):
            _decider_calls.add(1, {"stage": call.stage})
            _decider_s.record(call.seconds, {"stage": call.stage})
        for call in seen.decider_calls:
            for kind, count in errors_of(call).items():
                _decider_errors.add(count, {"stage": call.stage, "kind": kind})
        for kind, count in counts.by_name["retrieval_errors_by_kind"].items():
            _retrieval_errors.add(count, {"kind": kind})
        for reason, count in counts.by_name["records_dropped"].items():
            _dropped.add(count, {"reason": reason})
        _returned.add(counts.totals["records_returned"])
        _injected.add(counts.totals["records_injected"])
        if seen.gate is not None and not counts.disabled:
            _recall_s.record(seen.seconds)


class Spans:
    """Spans under the span that is current.

    Args:
        content: Whether they hold the texts of the turn, the records and the block.
    """

    name = "spans"

    def __init__(self, content: bool) -> None:
        self._content = content

    def report(self, report: Report) -> None:
        """Make one turn's spans."""
        seen, content = report.recall.trace, report.turn if self._content else None
        root = _tracer.start_span("memory.recall", start_time=_ns(seen, 0.0))
        # Each is made whatever happens to the others; what a processor raises is raised at the end.
        with contextlib.ExitStack() as spans:
            spans.callback(_end, root, seen.failure, _ns(seen, seen.seconds))
            if not root.is_recording():
                return
            root.set_attributes(_recall_attributes(report, content))
            under = trace.set_span_in_context(root, otel_context.get_current())
            for lookup in reversed(seen.lookups):  # the last one that is put in is made first
                attributes = {
                    "namespace": lookup.namespace,
                    "records.returned": lookup.records,
                    "pinned": lookup.pinned,
                    "cached": lookup.cached,
                }
                spans.callback(_make_span, "memory.retrieve", under, seen, lookup, _attributes(attributes))
            for call in reversed(seen.decider_calls):
                name = _SPANS.get(call.stage, "memory.judge")
                spans.callback(_make_span, name, under, seen, call, _call_attributes(call, seen, content))


def _make_span(
    name: str,
    under: otel_context.Context,
    seen: TurnTrace,
    step: DeciderCall | Lookup,
    attributes: dict[str, AttributeValue],
) -> None:
    span = _tracer.start_span(name, under, start_time=_ns(seen, step.started_s), attributes=attributes)
    _end(span, step.error, _ns(seen, step.started_s + step.seconds))


def _recall_attributes(report: Report, content: Turn | None) -> dict[str, AttributeValue]:
    gate, totals = report.recall.trace.gate, report.counts.totals
    found: dict[str, Any] = {
        "gate.outcome": gate.outcome if gate else None,
        "namespaces": totals["stock_lookups"],
        "lookups": totals["lookups"],
        "records.returned": totals["records_returned"],
        "records.injected": totals["records_injected"],
        "records.dropped": len(report.recall.dropped),
        "block.tokens": totals["context_tokens"],
        "failed_open": report.counts.failed,
    }
    if content is not None:
        found |= {"message": content.text, "previous": list(content.previous), "block": report.recall.block}
    return _attributes(found)


def _call_attributes(call: DeciderCall, seen: TurnTrace, content: Turn | None) -> dict[str, AttributeValue]:
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
