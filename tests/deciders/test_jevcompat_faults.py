"""Every fault that jevcompat's reference server can inject ends in decisions or in counted failures.

Run with `-s` to see the table.
"""

import time

import pytest

mock = pytest.importorskip("jevcompat.mock")

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn  # noqa: E402
from strands_gated_memory.core.questions import NoAnswer, Question  # noqa: E402
from strands_gated_memory.deciders import catalog  # noqa: E402

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

NAMESPACES = ("/preferences/{actorId}/", "/facts/{actorId}/")
TURN = Turn("What should I drink?", ("Hi", "Hello, how can I help?"))
RECORDS = [Record(f"The user likes drink {at}.", NAMESPACES[1], 0.4, f"r{at}") for at in range(6)]
DEADLINE_S = 60.0
"""No fault hangs: whatever else the machine does, a turn is over by then, and a call that is late has hung."""
STATE = {"message": TURN.text, "previous": list(TURN.previous)}
OTHER_TYPES = {
    "store": Question("choice", "Which store holds it?", {"Preferences": "tastes", "Facts": None, "Résumé": "work"}),
    "use": Question("score", "How useful is it?", ("not", "a little", "very")),
}

# What a caller may see of each fault: the kinds of failure that are counted. A fault that is not listed
# leaves every decision as the healthy server would make it.
COUNTED = {
    "wrong-route": {"not_found"},
    "xssi-200": {"bad_answer"},
    "first-question-only": {"missing"},
    "boolean-type": {"invalid"},
    "noul-range": {"invalid"},
    "reject-jev-latest": {"not_found"},
}
# Wrong in a choice or a score only: seen by these questions, which the pipeline does not ask by default.
COUNTED_ELSEWHERE = {
    "nfd-keys": {"store"},
    "choice-key-case": {"store"},
    "choice-sum": {"store"},
    "choice-second": {"store"},
    "score-keys-1-based": {"use"},
    "score-sum": {"use"},
    "no-null-description": "rejected",
}
# Answers that are right in form and wrong in kind: the probabilities change, and no client can tell.
UNDETECTABLE = {"id-leaks", "batch-leaks", "order-leaks"}
KEYED = {"auth-x-api-key": "access_denied", "auth-plain": None, "auth-invalid-403-text": None}

TABLE = []


def recall(fault, *, key=None, given=None):
    with mock.Running(mock.MockConfig(key=key, faults=frozenset({fault} if fault else ()))) as server:
        decider = catalog.system_one(server.url, api_key=given)
        # A fault of a list-wise cut must not hide behind it: the threshold alone decides.
        policy = RecallPolicy(
            gate={"threshold": 0.3}, router={"threshold": 0.3}, validator={"threshold": 0.5},
            select={"mode": "threshold"}, deadline_s=DEADLINE_S, retrieve={"timeout_s": DEADLINE_S / 2},
        )  # fmt: skip
        started = time.monotonic()
        found = RecallPipeline(decider, policy).recall(
            TURN, NAMESPACES, lambda name: [one for one in RECORDS if one.namespace == name]
        )
        took = time.monotonic() - started
        try:
            others = decider.decide(STATE, OTHER_TYPES)
            other = {name for name, answer in others.items() if isinstance(answer, NoAnswer)}
        except Exception as error:
            other = getattr(error, "kind", type(error).__name__)
    stats = RecallStats()
    stats.add(found)
    return found, stats.as_dict(), other, took


@pytest.fixture(scope="module")
def healthy():
    return recall(None)[0]


@pytest.fixture(scope="module", autouse=True)
def _table():
    yield
    width = max((len(row[0]) for row in TABLE), default=0)
    print("\n" + "\n".join(f"{name:<{width}}  {ms:5.0f} ms  {outcome}" for name, ms, outcome in TABLE))


@pytest.mark.parametrize("fault", sorted(mock.FAULTS))
def test_fault(fault, healthy):
    """A fault costs at most its questions' decisions: no exception, no timeout, no wrong keep or drop."""
    found, counted, other, took = recall(fault)
    kinds = counted["decider_errors_by_kind"]
    kept = {one.record_id for one in found.records}
    TABLE.append((fault, 1000 * took, _outcome(kinds, other)))

    assert set(kinds) == COUNTED.get(fault, set())
    assert (other or set()) == COUNTED_ELSEWHERE.get(fault, _expected_other(fault))
    if fault in UNDETECTABLE:
        return
    for judged in found.trace.judgements:
        right = next((one for one in healthy.trace.judgements if one.record == judged.record), None)
        if judged.probability is None:
            assert judged.keep  # no decision keeps the record
        elif right is not None:
            assert judged.probability == pytest.approx(right.probability)
            assert judged.keep == right.keep
    assert not any(lookup.error for lookup in found.trace.lookups)
    if not kinds:
        assert kept == {one.record_id for one in healthy.records}
        assert found.trace.gate.probability == healthy.trace.gate.probability


def _expected_other(fault):
    if fault in ("wrong-route", "reject-jev-latest"):
        return "not_found"
    if fault == "xssi-200":
        return "bad_answer"
    return {"use"} if fault == "first-question-only" else set()


def _outcome(kinds, other):
    decided = ", ".join(f"{kind} {n}" for kind, n in kinds.items()) or "decided"
    if not other:
        return decided
    return f"{decided}; choice and score: {other if isinstance(other, str) else 'invalid ' + ', '.join(sorted(other))}"


@pytest.mark.parametrize(
    ("fault", "given", "kinds"),
    [
        (None, "right-key-1", {}),
        (None, "wrong-key-1", {"access_denied": 2}),
        (None, None, {"access_denied": 2}),
        ("auth-x-api-key", "right-key-1", {"access_denied": 2}),
        ("auth-plain", None, {"access_denied": 2}),
        ("auth-invalid-403-text", "wrong-key-1", {"access_denied": 2}),
    ],
)
def test_keys(fault, given, kinds):
    """A server that wants a key and gets none, or a wrong one, is counted as such; all is recalled."""
    found, counted, _, took = recall(fault, key="right-key-1", given=given)
    TABLE.append(
        (
            f"key: {fault or 'healthy'}, {'none' if given is None else given[:5]} sent",
            1000 * took,
            _outcome(counted["decider_errors_by_kind"], set()),
        )
    )

    assert counted["decider_errors_by_kind"] == kinds
    assert not kinds or len(found.records) == len(RECORDS)


def test_a_busy_server_is_asked_once_more():
    """Every second request gets 429 with Retry-After: 0; every decision is made."""
    with mock.Running(mock.MockConfig(busy_every=2)) as server:
        pipeline = RecallPipeline(catalog.system_one(server.url))
        calls = [
            call
            for _ in range(3)
            for call in pipeline.recall(TURN, NAMESPACES, lambda name: RECORDS).trace.decider_calls
        ]

    assert [call.error for call in calls] == [None] * len(calls)
