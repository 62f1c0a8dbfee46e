"""OpenTelemetry: spans under Strands' own, metrics, no text unless asked for."""

import asyncio

import pytest
import strands.telemetry.tracer as strands_tracer
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from turn_builders import FACTS, PREFERENCES, blocks_per_call, broken, judging, no, yes

from strands_gated_memory import RecallStats
from strands_gated_memory.core.types import DeciderCall, GateDecision, Recall, TurnTrace
from strands_gated_memory.reporting.report import Report, Searched
from strands_gated_memory.reporting.telemetry import Metrics

NAMESPACES = (FACTS, PREFERENCES)
MARKER = "xylophone"


@pytest.fixture(scope="session")
def _providers():
    # The providers are the process's, and can be set once; tests of this module may run in several batches.
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    spans, meters = TracerProvider(), MeterProvider(metric_readers=[reader])
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(spans)
    metrics.set_meter_provider(meters)
    yield exporter, reader
    spans.shutdown()
    meters.shutdown()


@pytest.fixture(scope="module")
def _collected(_providers):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strands_tracer, "_tracer_instance", None)
        yield _providers


@pytest.fixture
def exporter(_collected):
    _collected[0].clear()
    return _collected[0]


@pytest.fixture
def measured(_collected):
    """Return how much each metric has grown: {(name, attributes): value or count of a histogram}."""

    def read():
        data = _collected[1].get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                if scope.scope.name != "strands_gated_memory":
                    continue
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        key = (metric.name, tuple(sorted(point.attributes.items())))
                        found[key] = getattr(point, "value", None) or getattr(point, "count", 0)
        return found

    before = read()
    return lambda: {key: value - before.get(key, 0) for key, value in read().items() if value != before.get(key, 0)}


def ours(exporter):
    return [span for span in exporter.get_finished_spans() if span.name in _NAMES]


_NAMES = ("memory.recall", "memory.gate", "memory.retrieve", "memory.judge")


def named(exporter, name):
    return [span for span in exporter.get_finished_spans() if span.name == name]


@pytest.mark.parametrize("async_mode", [False, True])
def test_a_recall_is_a_tree_under_the_agents_own_span(bench, exporter, async_mode):
    bench.remember("Likes tea").remember("Window seat", namespace=PREFERENCES)
    manager = bench.manager(decider=yes, namespaces=NAMESPACES, async_mode=async_mode)
    asyncio.run(bench.agent(manager).invoke_async("What do I drink?"))

    (agent,) = [span for span in exporter.get_finished_spans() if span.name.startswith("invoke_agent")]
    (recall,) = named(exporter, "memory.recall")
    children = [span for span in ours(exporter) if span is not recall]
    assert recall.parent.span_id == agent.context.span_id
    assert recall.context.trace_id == agent.context.trace_id
    assert sorted(span.name for span in children) == ["memory.gate", "memory.judge", *["memory.retrieve"] * 2]
    assert all(span.parent.span_id == recall.context.span_id for span in children)
    assert all(agent.start_time <= span.start_time <= span.end_time <= agent.end_time for span in ours(exporter))
    assert all(recall.start_time <= span.start_time <= span.end_time <= recall.end_time for span in children)
    gate, judge = named(exporter, "memory.gate")[0], named(exporter, "memory.judge")[0]
    assert gate.end_time <= min(span.start_time for span in named(exporter, "memory.retrieve"))
    assert judge.start_time >= max(span.end_time for span in named(exporter, "memory.retrieve"))


def test_spans_hold_the_decisions(bench, exporter):
    bench.remember("Likes tea", "Works at night")
    bench.agent(bench.manager(decider=judging(tea=0.9, night=0.01), namespaces=NAMESPACES))("What do I drink?")

    recall, gate, judge = (
        dict(named(exporter, f"memory.{name}")[0].attributes) for name in ("recall", "gate", "judge")
    )
    assert recall == {
        "gated_memory.gate.outcome": "open",
        "gated_memory.namespaces": 2,
        "gated_memory.lookups": 2,
        "gated_memory.records.returned": 2,
        "gated_memory.records.injected": 1,
        "gated_memory.records.dropped": 1,
        "gated_memory.block.tokens": recall["gated_memory.block.tokens"],
        "gated_memory.failed_open": False,
    }
    assert (gate["gated_memory.gate.probability"], gate["gated_memory.gate.threshold"]) == (0.9, 0.2)
    assert gate["gated_memory.router.namespaces"] == NAMESPACES
    assert gate["gated_memory.router.probabilities"] == (0.9, 0.9)
    assert sorted(judge["gated_memory.validator.probabilities"]) == [0.01, 0.9]
    assert sorted(judge["gated_memory.validator.reasons"]) == ["below_threshold", "relevant"]
    lookups = [dict(span.attributes) for span in named(exporter, "memory.retrieve")]
    assert [one["gated_memory.namespace"] for one in lookups] == list(NAMESPACES)
    assert [one["gated_memory.records.returned"] for one in lookups] == [2, 0]


def test_a_closed_gate_has_no_children_but_the_gate(bench, exporter):
    bench.agent(bench.manager(decider=no))("Thanks!")

    assert sorted(span.name for span in ours(exporter)) == ["memory.gate", "memory.recall"]


def test_failures_have_a_status_and_a_kind(bench, exporter):
    bench.core.fail("RetrieveMemoryRecords", "ThrottledException")
    bench.agent(bench.manager(decider=broken))("What do I drink?")

    (gate,), (lookup,), (recall,) = (named(exporter, f"memory.{name}") for name in ("gate", "retrieve", "recall"))
    assert (gate.status.status_code, gate.attributes["error.type"]) == (StatusCode.ERROR, "RuntimeError")
    assert (lookup.status.status_code, lookup.attributes["error.type"]) == (StatusCode.ERROR, "throttled")
    assert recall.attributes["gated_memory.failed_open"]


@pytest.mark.parametrize("content", [False, True])
def test_text_is_there_only_on_request(bench, exporter, content):
    """Not in a name, an attribute, a status or an event, of a turn that works and of one that fails."""

    def quotes(state, questions):
        raise RuntimeError(state["message"])

    bench.remember(f"Plays the {MARKER}")
    for number, decider in enumerate((yes, quotes)):
        manager = bench.manager(decider=decider, session_id=f"s{number}", tracing={"trace_content": content})
        agent = bench.agent(manager)
        agent(f"What about my {MARKER}?")
        assert blocks_per_call(agent) == [1]

    shown = [(span.name, dict(span.attributes), span.status.description, str(span.events)) for span in ours(exporter)]
    assert len(shown) == 8
    assert (MARKER in str(shown)) == content
    if content:
        recall = named(exporter, "memory.recall")[0]
        assert recall.attributes["gated_memory.message"] == f"What about my {MARKER}?"
        assert f"Plays the {MARKER}" in recall.attributes["gated_memory.block"]


def test_metrics_count_what_the_counters_count(bench, measured):
    bench.remember("Likes tea", "Works at night", "likes TEA.")
    agent = bench.agent(bench.manager(decider=judging(tea=0.9, night=0.01), namespaces=NAMESPACES))
    agent("What do I drink?")
    bench.agent(bench.manager(decider=no, session_id="s2"))("Thanks!")
    bench.core.fail("RetrieveMemoryRecords", "ThrottledException")
    bench.agent(bench.manager(decider=broken, session_id="s3"))("What do I drink?")

    prefix = "gated_memory."
    found = {(name.removeprefix(prefix), attributes): value for (name, attributes), value in measured().items()}
    assert found == {
        ("turns", (("outcome", "open"),)): 1,
        ("turns", (("outcome", "closed"),)): 1,
        ("turns", (("outcome", "failed"),)): 1,
        ("lookups", (("pinned", False),)): 3,
        ("retrieval.errors", (("kind", "throttled"),)): 1,
        ("records.returned", ()): 3,
        ("records.injected", ()): 1,
        ("records.dropped", (("reason", "duplicate"),)): 1,
        ("records.dropped", (("reason", "below_threshold"),)): 1,
        ("decider.calls", (("stage", "gate"),)): 3,
        ("decider.calls", (("stage", "validator"),)): 1,
        ("decider.errors", (("kind", "RuntimeError"), ("stage", "gate"))): 1,
        ("recall.duration", ()): 3,
        ("decider.duration", (("stage", "gate"),)): 3,
        ("decider.duration", (("stage", "validator"),)): 1,
        ("retrieval.duration", ()): 3,
    }


def test_metrics_and_counters_agree_on_a_request_that_waited_for_the_model_to_load(measured):
    """Nobody was asked: no request, and no failure."""
    call = DeciderCall("gate", 3, 0.1, no_answers={"warming": 3})
    gate = GateDecision(True, None, {}, (), "warming")
    recall, stats = Recall((), None, (), TurnTrace(gate, decider_calls=(call,), started=0.0)), RecallStats()
    Metrics().report(Report(recall, Searched("m", "u", "s")))
    stats.add(recall)

    assert stats.as_dict()["decider_calls"] == 0
    assert {name for name, _ in measured()} == {"gated_memory.turns", "gated_memory.recall.duration"}


def test_a_token_counter_that_fails_is_a_recall_that_failed_open(bench, exporter):
    """As in the counters, though no request failed."""

    def fail(text):
        raise RuntimeError("no tokens")

    bench.remember("Likes tea")
    manager = bench.manager(decider=yes, policy={"select": {"token_counter": fail}})
    bench.agent(manager)("What do I drink?")

    assert manager.stats.degraded
    assert named(exporter, "memory.recall")[0].attributes["gated_memory.failed_open"]


def test_an_exporter_that_raises_costs_nothing(bench, exporter, monkeypatch):
    def fail(*arguments, **keywords):
        raise OSError("no collector")

    bench.remember("Likes tea")
    monkeypatch.setattr(exporter, "export", fail)
    monkeypatch.setattr("strands_gated_memory.reporting.telemetry._turns.add", fail, raising=True)
    agent = bench.agent(bench.manager(decider=yes))
    agent("What do I drink?")

    assert blocks_per_call(agent) == [1]


@pytest.mark.parametrize("lost", ["memory.gate", "memory.retrieve", "memory.judge"])
@pytest.mark.parametrize("moment", ["on_start", "on_end"])
def test_a_processor_that_raises_costs_one_span(bench, exporter, monkeypatch, lost, moment):
    """The others are there, the one of the whole recall included: an unended span is never exported."""
    bench.remember("Likes tea")
    processors = trace.get_tracer_provider()._active_span_processor
    was = getattr(processors, moment)

    def fail(span, *arguments, **keywords):
        if span.name == lost:
            raise RuntimeError("no processor")
        was(span, *arguments, **keywords)

    monkeypatch.setattr(processors, moment, fail)
    agent = bench.agent(bench.manager(decider=yes))
    agent("What do I drink?")

    assert blocks_per_call(agent) == [1]
    assert {span.name for span in ours(exporter)} == {*_NAMES} - {lost}


def test_metrics_that_raise_cost_no_span(bench, exporter, monkeypatch):
    bench.remember("Likes tea")

    def fail(*arguments):
        raise RuntimeError("no meter")

    monkeypatch.setattr("strands_gated_memory.reporting.telemetry._turns.add", fail, raising=True)
    bench.agent(bench.manager(decider=yes))("What do I drink?")

    assert {span.name for span in ours(exporter)} == {*_NAMES}
