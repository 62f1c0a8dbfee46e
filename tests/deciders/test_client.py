"""One call over HTTP: its deadline, its one retry, its split requests, and what each failure is called."""

import threading

import pytest
from loopback import STATE, in_turn, noul, nouls, raw, serving, system_one

from strands_gated_memory import RecallPipeline, RecallStats, Record, Turn
from strands_gated_memory.core.questions import NoAnswer, Noul
from strands_gated_memory.deciders import catalog
from strands_gated_memory.deciders.client import DecisionClient
from strands_gated_memory.deciders.codecs.system_one import SystemOne
from strands_gated_memory.deciders.limits import Limits
from strands_gated_memory.deciders.transports.http import HttpTransport, retry_after_s, shared_client
from strands_gated_memory.errors import (
    BadAnswer,
    DeciderDenied,
    DeciderNotFound,
    DeciderRejected,
    DeciderThrottled,
    DeciderTimeout,
    DeciderUnavailable,
    error_kind,
)
from strands_gated_memory.runtime import clock

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


def client(url, *, call_s=30.0, **limits):
    return DecisionClient(
        SystemOne(),
        HttpTransport(url + "/v1/systemone"),
        name="test",
        model="m",
        limits=Limits(**limits),
        call_s=call_s,
    )


def test_answers_come_back_by_id_with_the_model_that_gave_them():
    with serving(system_one(0.7)) as server:
        reply = client(server.url).decide(STATE, nouls(3))

    assert reply == {f"record_{at}": Noul(0.7) for at in range(3)}
    assert reply.model == "jev-1.13.0"
    assert server.requests[0].document["state"] == STATE
    assert list(server.requests[0].document["state"]) == ["message", "previous"]
    assert server.requests[0].document["questions"]["record_0"] == {"type": "noul", "instructions": "Note 0."}


@raw
def hangs(request, handler):
    request.ended.wait()


@raw
def drips_headers(request, handler):
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not request.ended.wait(0.1):
        handler.wfile.write(b"X-Slow: y\r\n")
        handler.wfile.flush()


@raw
def drips_body(request, handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not request.ended.wait(0.1):
        handler.wfile.write(b" ")
        handler.wfile.flush()


@pytest.mark.parametrize("reply", [hangs, drips_headers, drips_body], ids=lambda reply: reply.__name__)
def test_one_deadline_covers_the_whole_call(reply):
    """The call is given up while the server still hangs, or sends a little now and then."""
    with serving(reply) as server, pytest.raises(DeciderTimeout):
        client(server.url, call_s=0.5).decide(STATE, nouls(1))


def test_whoever_waits_sets_a_shorter_deadline():
    with serving(hangs) as server, clock.limited_to(0.3), pytest.raises(DeciderTimeout):
        client(server.url, call_s=3600).decide(STATE, nouls(1))


def test_the_retry_shares_the_deadline():
    busy_then_hang = in_turn((503, {}), lambda request: request.ended.wait() and None)
    with serving(busy_then_hang) as server, pytest.raises(DeciderTimeout):
        client(server.url, call_s=2).decide(STATE, nouls(1))

    assert len(server.requests) == 2


RETRIED = {
    "429 with a retry-after that fits": (429, {}, {"Retry-After": "0"}),
    "429 with milliseconds": (429, {}, {"retry-after-ms": "20", "Retry-After": "60"}),
    "502": (502, b"<html>bad gateway</html>"),
    "503": (503, {}),
    "529": (529, {"detail": {"error_type": "overloaded", "message": "busy"}}),
    "connection closed without an answer": None,
}


@pytest.mark.parametrize("first", RETRIED.values(), ids=RETRIED)
def test_one_retry_where_it_can_help(first):
    with serving(in_turn(first, system_one(0.6))) as server:
        assert client(server.url).decide(STATE, nouls(1)) == {"record_0": Noul(0.6)}

    assert len(server.requests) == 2


@pytest.mark.parametrize("first", RETRIED.values(), ids=RETRIED)
def test_never_a_second_retry(first):
    with serving(lambda request: first) as server, pytest.raises((DeciderThrottled, DeciderUnavailable)):
        client(server.url).decide(STATE, nouls(1))

    assert len(server.requests) == 2


NOT_RETRIED = {
    "400": ((400, {"error": {"message": "no"}}), DeciderRejected),
    "401": ((401, {"detail": "bad key"}), DeciderDenied),
    "403": ((403, {}), DeciderDenied),
    "404": ((404, {"detail": "no such model"}), DeciderNotFound),
    "422": ((422, {"detail": [{"loc": ["body", "state"], "msg": "bad", "input": "SECRET"}]}), DeciderRejected),
    "429 without a time": ((429, {}), DeciderThrottled),
    "429 with a time that does not fit": ((429, {}, {"Retry-After": "60"}), DeciderThrottled),
    "500": ((500, {}), DeciderUnavailable),
    "504": ((504, {}), DeciderUnavailable),
    "a redirect": ((307, {}, {"Location": "http://127.0.0.1:1/elsewhere"}), BadAnswer),
    "200 without JSON": ((200, b")]}'\n{}"), BadAnswer),
    "200 with a list": ((200, []), BadAnswer),
    "200 with answers as a list": ((200, {"answers": []}), BadAnswer),
    "200 nested too deep": ((200, b"[" * 200_000), BadAnswer),
    "200 with five megabytes": ((200, b" " * 5_000_000), BadAnswer),
}


@pytest.mark.parametrize(("reply", "error"), NOT_RETRIED.values(), ids=NOT_RETRIED)
def test_what_cannot_be_helped_is_named_at_once(reply, error):
    with serving(lambda request: reply) as server, pytest.raises(error) as caught:
        client(server.url).decide(STATE, nouls(2))

    assert len(server.requests) == 1
    assert "SECRET" not in str(caught.value)
    assert error_kind(caught.value) != "error"


def test_a_closed_port_is_unavailable():
    with serving(system_one()) as server:
        gone = server.url
    with pytest.raises(DeciderUnavailable):
        client(gone).decide(STATE, nouls(1))


def test_more_questions_than_fit_are_split_and_all_answered():
    with serving(system_one(0.4)) as server:
        reply = client(server.url, max_questions=8).decide(STATE, nouls(20))

    assert reply == {f"record_{at}": Noul(0.4) for at in range(20)}
    assert sorted(len(request.document["questions"]) for request in server.requests) == [4, 8, 8]


def test_one_of_several_requests_failing_costs_its_questions_only():
    def reply(request):
        return (500, {}) if "record_8" in request.document["questions"] else system_one(0.4)(request)

    with serving(reply) as server:
        answers = client(server.url, max_questions=8).decide(STATE, nouls(20))

    assert [name for name, answer in answers.items() if answer == NoAnswer("missing")] == nouls_named(8, 16)
    assert sum(answer == Noul(0.4) for answer in answers.values()) == 12


def test_one_of_several_requests_hanging_costs_its_questions_only():
    def reply(request):
        if "record_8" in request.document["questions"]:
            request.ended.wait()
        return system_one(0.4)(request)

    with serving(reply) as server:
        answers = client(server.url, call_s=3, max_questions=8).decide(STATE, nouls(20))

    assert [name for name, answer in answers.items() if answer == NoAnswer("timeout")] == nouls_named(8, 16)


def test_a_record_that_the_model_finds_too_long_does_not_cost_its_siblings():
    def reply(request):
        if any("LONG" in one["instructions"] for one in request.document["questions"].values()):
            return 422, {"detail": "prompt of 5000 tokens exceeds the context window of 4096 tokens"}
        return system_one(0.4)(request)

    questions = nouls(8) | {"record_3": noul("LONG")}
    with serving(reply) as server:
        answers = client(server.url).decide(STATE, questions)

    assert answers.pop("record_3") == NoAnswer("too_long")
    assert set(answers.values()) == {Noul(0.4)}
    assert len(server.requests) <= 13


def test_halving_is_bounded():
    with serving(lambda request: (413, {"detail": "too large"})) as server:
        answers = client(server.url).decide(STATE, nouls(64))

    assert len(answers) == 64
    assert set(answers.values()) == {NoAnswer("too_long")}
    assert len(server.requests) <= 30


def test_a_full_window_counts_as_truncation():
    with serving(system_one(tokens=4096)) as server:
        one = client(server.url, window_tokens=4096).decide(STATE, nouls(1))
        many = client(server.url, window_tokens=4096).decide(STATE, nouls(40))

    assert one.truncated == 1
    assert many.truncated == 0  # forty short questions add up to as much without anything being cut


def test_truncation_is_shown_in_the_stats():
    stats = RecallStats()
    with serving(system_one(0.9, tokens=4096)) as server:
        pipeline = RecallPipeline(client(server.url, window_tokens=4096))
        stats.add(pipeline.recall(Turn("Drink?"), ["/facts/"], lambda name: [Record("Tea.", name)]))

    assert stats.as_dict()["decider_truncated"] == 2
    assert "decider input cut" in str(stats)


def test_a_state_that_cannot_fit_is_cut_and_counted():
    long = {"message": "First. " + "x" * 50_000 + " Last.", "previous": ["p" * 300]}
    with serving(system_one()) as server:
        reply = client(server.url, window_tokens=4096).decide(long, nouls(2))

    sent = server.requests[0].document["state"]
    assert reply.truncated == 1
    assert sent["message"].startswith("First. ")
    assert sent["message"].endswith(" Last.")
    assert len(sent["message"]) < 7000


def test_text_that_is_no_unicode_is_sent_all_the_same():
    with serving(system_one(0.5)) as server:
        reply = client(server.url).decide({"message": "half a pair \ud83d", "previous": []}, nouls(1))

    assert reply == {"record_0": Noul(0.5)}


def test_the_connection_is_reused():
    ports = set()

    def reply(request):
        return system_one()(request)

    with serving(reply) as server:
        for _ in range(5):
            client(server.url).decide(STATE, nouls(1))
        pool = shared_client()._transport._pool
        ports = [one for one in pool.connections if str(one._origin.port).encode() in server.url.encode()]

    assert len(ports) == 1


def test_threads_get_their_own_answers():
    def reply(request):
        number = float(request.document["state"]["message"])
        return 200, {"model": "m", "answers": {name: {"noul": number} for name in request.document["questions"]}}

    wrong = []
    with serving(reply) as server:
        one = client(server.url, call_s=60)

        def ask(number):
            for _ in range(10):
                found = one.decide({"message": str(number), "previous": []}, nouls(2))
                wrong.extend(answer for answer in found.values() if answer != Noul(number))

        threads = [threading.Thread(target=ask, args=(at / 10,)) for at in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]

    assert wrong == []


@pytest.mark.parametrize(
    ("milliseconds", "value", "seconds"),
    [(None, "3", 3.0), ("250", "3", 0.25), (None, None, None), (None, "soon", None), (None, "-1", None),
     (None, "Wed, 21 Oct 2015 07:28:00 GMT", 0.0)],
)  # fmt: skip
def test_retry_after(milliseconds, value, seconds):
    assert retry_after_s(milliseconds, value) == seconds


@pytest.mark.parametrize(
    ("given", "path"),
    [("", "/v1/systemone"), ("/", "/v1/systemone"), ("/v1", "/v1/systemone"), ("/v1/systemone", "/v1/systemone"),
     ("/prefix", "/prefix/v1/systemone"), ("/invocations", "/invocations")],
)  # fmt: skip
def test_where_a_url_leads(given, path):
    with serving(system_one()) as server:
        catalog.system_one(server.url + given).decide(STATE, nouls(1))

    assert server.requests[0].path == path
    assert server.requests[0].document["model"] == "jev-latest"


def test_a_fragment_names_the_model():
    with serving(system_one()) as server:
        catalog.system_one(server.url + "#d1.2").decide(STATE, nouls(1))

    assert server.requests[0].document["model"] == "d1.2"


def nouls_named(start, stop):
    return [f"record_{at}" for at in range(start, stop)]
