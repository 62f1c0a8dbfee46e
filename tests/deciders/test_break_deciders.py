"""Specifications, servers and deciders that try to break things: each ends in an error of ours or in no decision."""

import asyncio
import contextlib
import gzip
import json
import os
import threading

import pytest
from loopback import STATE, noul, nouls, raw, serving, system_one

from strands_gated_memory import ConfigurationError, RecallPipeline, Record, Thresholds, Turn, resolve_decider
from strands_gated_memory.core.questions import NoAnswer, Noul, asked
from strands_gated_memory.core.wordings import GATE_CRITERIA
from strands_gated_memory.deciders import catalog
from strands_gated_memory.deciders.check import check, check_at_start
from strands_gated_memory.deciders.secret import Secret
from strands_gated_memory.deciders.transports.aws import SageMaker
from strands_gated_memory.errors import BadAnswer, DeciderError, DeciderRejected, DeciderThrottled
from strands_gated_memory.terminal import lines

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

SECRET = "s3cr3tpw"
ANSWER = {"type": "noul", "noul": 0.5}


class Shy:
    """A decider whose repr gives its key away."""

    def __repr__(self):
        return f"Shy({SECRET})"

    def decide(self, state, questions):
        raise ValueError("no")


class Hostile:
    def __repr__(self):
        raise RuntimeError("no repr")


class NotCallable:
    decide = 5


class TooFew:
    def decide(self, questions):
        return {}


class AsyncCall:
    async def __call__(self, state, questions):
        return {}


async def yields(state, questions):
    yield {}


ITSELF = []
ITSELF.append(ITSELF)

BAD = {
    "empty": "",
    "whitespace": " \n",
    "half a pair": "\ud800",
    "huge": "x" * 1_000_000,
    "huge with a colon": "sagemaker:" + "x" * 1_000_000,
    "bytes": b"jev",
    "a mapping with a key": {"api_key": SECRET},
    "a hostile repr": Hostile(),
    "decide is no function": NotCallable(),
    "decide takes too little": TooFew(),
    "an async object": AsyncCall(),
    "an async generator": yields,
    "a list that holds itself": ITSELF,
    "a nested list with None": [["embedded"], [None]],
    "a port that cannot be": f"http://user:{SECRET}@h:99999",
    "half a bracket": f"http://user:{SECRET}@[::1",
    "one slash": f"http:/user:{SECRET}@h",
    "a misspelt scheme": f"htp://user:{SECRET}@h",
    "a misspelt scheme with a query": f"htp://h?key={SECRET}",
    "a port and a query": f"http://h:x?key={SECRET}",
    "no scheme": f"systemone:user:{SECRET}@h",
    "in the wrong place": f"sagemaker:http://u:{SECRET}@h",
    "in an ARN's place": f"agentcore:https://u:{SECRET}@h",
    "in a variant": f"embedded:http://u:{SECRET}@h",
    "in a file's place": f"fitted:http://u:{SECRET}@h",
    "a key in place of a name": f"sk-or-v1-0123456789abcdef-{SECRET}",
    "NUL": "http://h\x00",
    "no IPv4 address": "http://999.1.1.1",
    "no IDNA": "http://xn--a",
    "a very long host": "http://" + "a" * 70_000,
    "a very long path": "http://h/" + "a" * 70_000,
    "file": "file:///etc/passwd",
}


@pytest.mark.parametrize("spec", BAD.values(), ids=BAD)
def test_a_bad_specification_is_a_short_error_without_credentials(spec):
    with pytest.raises(ConfigurationError) as caught:
        resolve_decider(spec)

    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 700


class WithThresholds:
    def __init__(self, thresholds):
        self.thresholds = thresholds

    def decide(self, state, questions):
        return {}


class WithARaisingAttribute(WithThresholds):
    thresholds = property(lambda self: 1 / 0, lambda self, value: None)


@pytest.mark.parametrize("thresholds", [{"gate": 0.3, "router": 0.3, "validator": 0.3}, 0.3, Thresholds])
@pytest.mark.parametrize("inside", [lambda one: one, lambda one: ["embedded", one]], ids=["alone", "in a list"])
def test_thresholds_that_would_be_passed_over_are_refused(thresholds, inside):
    with pytest.raises(
        ConfigurationError, match=r"WithThresholds.*got \w+; write .*import Thresholds.*gate="
    ) as caught:
        resolve_decider(inside(WithThresholds(thresholds)))

    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "decider", [WithThresholds(None), WithThresholds(Thresholds(0.3, 0.3, 0.4)), WithARaisingAttribute(None)]
)
def test_thresholds_that_are_usable_or_none_are_taken(decider):
    assert resolve_decider(decider) is decider


GOOD_URLS = ["HTTP://127.0.0.1:8000/", "http://[::1]:8000//", "https://h/prefix/v1/", "http://exämple.com"]


@pytest.mark.parametrize("url", GOOD_URLS)
def test_a_url_that_works_is_taken(url):
    assert resolve_decider(url).name.endswith("/v1/systemone")


@pytest.mark.parametrize("key", [None, 5, b"key"])
def test_a_key_of_another_type_is_a_configuration_error(key):
    with pytest.raises(ConfigurationError, match="string"):
        Secret(key, "api_key")


# Servers


@raw
def http_1_0(request, handler):
    handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + json.dumps({"answers": {"record_0": ANSWER}}).encode())


def says(body, status=200, **headers):
    return lambda request: (status, body, headers)


def packed(document):
    return gzip.compress(json.dumps(document).encode())


TWICE = b'{"answers": {"record_0": {"noul": 0.1}, "record_0": {"noul": 0.9}, "record_1": {"noul": 0.1, "noul": 0.9}}}'
ANSWERED = {
    "twice": (says(TWICE), {"record_0": NoAnswer("invalid"), "record_1": NoAnswer("invalid")}),
    "NaN": (says(b'{"answers": {"record_0": {"noul": NaN}}}'), {"record_0": NoAnswer("invalid")}),
    "HTTP/1.0": (http_1_0, {"record_0": Noul(0.5)}),
    "packed": (
        lambda request: (200, packed({"answers": {"record_0": ANSWER}}), {"Content-Encoding": "gzip"}),
        {"record_0": Noul(0.5)},
    ),
}


@pytest.mark.parametrize(("reply", "expected"), ANSWERED.values(), ids=ANSWERED)
def test_what_an_odd_server_says(reply, expected):
    with serving(reply) as server:
        found = catalog.system_one(server.url).decide(STATE, nouls(2))

    assert found == {"record_0": NoAnswer("missing"), "record_1": NoAnswer("missing")} | expected


ODD = {
    "a place that is no list": (says({"detail": [{"loc": 5, "msg": "bad"}]}, 422), DeciderRejected, "5: bad"),
    "no detail": (says({"detail": None}, 422), DeciderRejected, "answered 422"),
    "control characters": (says({"detail": "\x1b[2J evil\x07"}, 422), DeciderRejected, "evil"),
    "200 with an error's code": (says({"error": {"code": 429, "message": "busy"}}), DeciderThrottled, "busy"),
    "200 with an error": (says({"detail": "no such model"}), BadAnswer, "no such model"),
    "another encoding": (lambda request: (200, b"x", {"Content-Encoding": "zstd"}), BadAnswer, "zstd"),
    "not the encoding it says": (lambda request: (200, b"x", {"Content-Encoding": "gzip"}), BadAnswer, "gzip"),
    "a bomb": (lambda request: (200, BOMB, {"Content-Encoding": "gzip"}), BadAnswer, "more than"),
}
BOMB = gzip.compress(b" " * 50_000_000)


@pytest.mark.parametrize(("reply", "error", "text"), ODD.values(), ids=ODD)
def test_what_an_odd_failure_is_called(reply, error, text):
    with serving(reply) as server, pytest.raises(error) as caught:
        catalog.system_one(server.url).decide(STATE, nouls(1))

    assert text in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_bomb_is_not_unpacked():
    import tracemalloc

    with serving(lambda request: (200, BOMB, {"Content-Encoding": "gzip"})) as server:
        decider = catalog.system_one(server.url)
        tracemalloc.start()
        with pytest.raises(DeciderError):
            decider.decide(STATE, nouls(1))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert peak < 20_000_000


def test_milliseconds_that_are_none_leave_the_seconds():
    said = [(429, {}, {"retry-after-ms": "soon", "Retry-After": "0"}), system_one(0.6)]

    def reply(request):
        one = said.pop(0)
        return one(request) if callable(one) else one

    with serving(reply) as server:
        assert catalog.system_one(server.url).decide(STATE, nouls(1)) == {"record_0": Noul(0.6)}


def test_a_models_name_is_short_and_printable():
    with serving(system_one(0.5, model="m\n\x1b[31m" + "x" * 100_000)) as server:
        model = catalog.system_one(server.url).decide(STATE, nouls(1)).model

    assert model.isprintable()
    assert len(model) <= 200


KEY = 'sk/a"b\\c+secret'
ECHO = {
    "escaped in an error": (401, b'{"detail": "bad sk\\/a\\"b\\\\c\\u002Bsecret"}'),
    "as the model's name": (200, json.dumps({"model": KEY, "answers": {"gate": ANSWER}}).encode()),
}


@pytest.mark.parametrize("reply", ECHO.values(), ids=ECHO)
def test_a_key_that_comes_back_with_escapes_is_masked(reply):
    with serving(lambda request: reply) as server:
        report = "\n".join(lines(check(catalog.system_one(server.url, api_key=KEY)), "x"))

    assert "secret" not in report
    assert "***" in report


def test_a_servers_cookie_is_not_sent_with_another_key():
    def reply(request):
        return (*system_one()(request), {"Set-Cookie": "user=1; Path=/"})

    with serving(reply) as server:
        for key in ("first-key", "second-key"):
            catalog.system_one(server.url, api_key=key).decide(STATE, nouls(1))

    assert [request.headers.get("cookie") for request in server.requests] == [None, None]


def test_a_server_that_drips_its_description_holds_nobody():
    import socket

    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip():
        line, _ = listener.accept()
        with line:
            line.sendall(b"HTTP/1.1 200 OK\r\n")
            with contextlib.suppress(OSError):
                while not over.wait(0.1):
                    line.sendall(b"X-Slow: y\r\n")

    threading.Thread(target=drip, daemon=True).start()
    with listener:
        catalog.system_one(f"http://127.0.0.1:{listener.getsockname()[1]}").warm()
        over.set()


# Deciders


class Mutates:
    """Changes all that it is given, then has no answer."""

    def decide(self, state, questions):
        state["message"] = "CHANGED"
        state["previous"].append("CHANGED")
        for question in questions.values():
            question.criteria.clear()
        questions.clear()
        return {}


def answers(state, questions):
    untouched = state["message"] != "CHANGED" and all(one["criteria"] for one in questions.values())
    return {name: {"noul": 0.9 if untouched else 0.1} for name in questions}


def recalled(spec):
    pipeline = RecallPipeline(resolve_decider(spec))
    return pipeline.recall(Turn("What should I drink?"), ["/facts/"], lambda name: [Record("Tea.", name)]).trace


def test_a_decider_that_changes_its_arguments_harms_no_other():
    trace = recalled([Mutates(), answers])

    assert trace.gate.probability == 0.9
    assert trace.decider_calls[0].answered_by == "answers"


def test_check_survives_a_decider_that_changes_its_arguments():
    first, second = check(Mutates()), check(resolve_decider(answers))

    assert "missing" in first.failure
    assert second.needs_memory == 0.9


ENDINGS = [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError(), GeneratorExit()]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda one: type(one).__name__)
def test_what_is_no_exception_ends_the_call_alone(ending):
    def ends(state, questions):
        raise ending

    trace = recalled([ends, answers])

    assert trace.decider_calls[0].answered_by == "answers"
    assert type(ending).__name__ in check(resolve_decider(ends)).failure
    with pytest.raises(ConfigurationError, match=type(ending).__name__):
        check_at_start(resolve_decider(ends), "raise")


def test_a_start_that_must_raise_does_not_wait_for_ever():
    over = threading.Event()

    def blocks(state, questions):
        over.wait()

    decider = resolve_decider(blocks)
    decider.deadline_s = 0.3
    with pytest.raises(ConfigurationError, match="timeout"):
        check_at_start(decider, "raise")
    over.set()


def test_a_start_inside_an_event_loop_may_ask_a_language_model():
    class Loops:
        def decide(self, state, questions):
            return asyncio.run(self.later(questions))

        async def later(self, questions):
            return {name: Noul(0.5) for name in questions}

    async def start():
        check_at_start(Loops(), "raise")

    asyncio.run(start())


def test_a_coroutine_is_named_and_not_left_behind():
    async def later():
        return {}

    with pytest.raises(BadAnswer, match="async"):
        asked(resolve_decider(lambda state, questions: later()), STATE, {"q": noul()})


def test_a_generator_is_no_answer():
    def generates(state, questions):
        yield {}

    assert recalled(generates).decider_calls[0].error == "bad_answer"


def test_a_foreign_repr_is_never_printed(caplog):
    caplog.set_level("DEBUG")
    shy = Shy()
    shy.remote = True
    check_at_start(shy, "warn")
    for thread in threading.enumerate():
        if thread.name == "gated-memory-warm":
            thread.join(60)
    with pytest.raises(ConfigurationError) as caught:
        check_at_start(shy, "raise")
    shown = f"{caplog.text}{caught.value}{recalled(shy)}{recalled([shy])}"

    assert "Shy" in shown
    assert SECRET not in shown


# Forks


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_shares_neither_lock_nor_client():
    transport = SageMaker("my-endpoint")
    transport._client = object()
    transport._lock.acquire()
    child = os.fork()
    if child == 0:
        free = transport._lock.acquire(timeout=1)
        os._exit(0 if free and transport._client is None else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert transport._client is not None


def test_the_published_wording_is_as_it_was():
    assert set(GATE_CRITERIA.question().criteria) == {"true", "false"}
