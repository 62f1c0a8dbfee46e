"""The real strands-decider package on a tiny checkpoint: in this process, and served over loopback."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request

import pytest
from loopback import STATE, noul, nouls
from tiny_checkpoint import build

from strands_gated_memory import RecallPipeline, RecallPolicy, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.core.questions import Choice, NoAnswer, Noul, Question, Score
from strands_gated_memory.deciders.check import check
from strands_gated_memory.errors import ConfigurationError, DeciderTimeout, DeciderUnavailable
from strands_gated_memory.runtime import clock

pytestmark = [
    pytest.mark.strands_decider,
    pytest.mark.skipif(importlib.util.find_spec("strands_decider") is None, reason="extra [strands-decider] absent"),
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.filterwarnings("ignore"),  # torch, transformers and peft warn about themselves
    pytest.mark.timeout(240),
]

TURN = Turn("What should I drink?", ("Hi", "Hello, how can I help?"))
NAMESPACES = ("/preferences/{actorId}/", "/facts/{actorId}/")
RECORDS = [Record(f"The user likes drink {at}.", NAMESPACES[1], 0.4, f"r{at}") for at in range(6)]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return build(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def local(checkpoint):
    decider = resolve_decider(f"strands-decider:{checkpoint}")
    decider.warm()
    return decider


@pytest.fixture(scope="module")
def served(checkpoint):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", "from strands_decider.cli import app; app()", "serve", checkpoint]
    command += ["--device", "cpu", "--port", str(port)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(60)


def _wait_for(url, server, seconds=120):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert server.poll() is None, "strands-decider serve has ended"
        try:
            with urllib.request.urlopen(url + "/health", timeout=1) as response:
                return json.load(response)
        except OSError:
            time.sleep(0.2)
    raise AssertionError("strands-decider serve did not start")


@pytest.fixture(params=["in process", "served"])
def decider(request):
    if request.param == "in process":
        return request.getfixturevalue("local")
    found = resolve_decider(request.getfixturevalue("served"))
    found.warm()
    return found


def test_every_type_of_question_is_answered(decider):
    found = decider.decide(
        STATE,
        {
            "a": noul("It is.", criteria={"true": "yes", "false": "no"}),
            "b": Question("choice", "Which?", {"tea": "hot", "juice": None}),
            "c": Question("score", "How much?", ("none", "some", "all")),
        },
    )

    assert isinstance(found["a"], Noul)
    assert isinstance(found["b"], Choice)
    assert isinstance(found["c"], Score)
    assert found.model == "strands-decider-tiny"


def test_a_whole_recall(decider):
    """Every question of a turn is decided; the untuned model is pointed out."""
    pipeline = RecallPipeline(decider, RecallPolicy(deadline_s=60, retrieve={"timeout_s": 2}))
    recall = pipeline.recall(TURN, NAMESPACES, lambda name: [one for one in RECORDS if one.namespace == name])
    stats = RecallStats()
    stats.add(recall)

    assert recall.trace.gate.outcome == "open"
    assert {judged.probability is None for judged in recall.trace.judgements} == {False}
    assert stats.decider_errors == 0
    assert "not on strands-decider-tiny" in str(stats)


def test_in_process_and_served_agree(local, served):
    here = local.decide(STATE, nouls(5))
    there = resolve_decider(served).decide(STATE, nouls(5))

    assert {name: answer.noul for name, answer in here.items()} == pytest.approx(
        {name: answer.noul for name, answer in there.items()}, abs=1e-3
    )


def test_a_hundred_records(decider):
    found = decider.decide(STATE, nouls(130))

    assert len(found) == 130
    assert all(isinstance(answer, Noul) for answer in found.values())


def test_a_record_beyond_the_window_costs_only_itself(decider):
    """It is neither cut silently nor refused together with its siblings."""
    found = decider.decide(STATE, nouls(4) | {"long": noul("zq " * 6000)})

    assert found.pop("long") == NoAnswer("too_long")
    assert all(isinstance(answer, Noul) for answer in found.values())


def test_a_message_beyond_the_window_is_cut_in_the_open(decider):
    found = decider.decide({"message": "zq " * 30_000, "previous": []}, nouls(2))

    assert all(isinstance(answer, Noul) for answer in found.values())
    assert found.truncated >= 1


def test_the_strict_window_refuses_what_the_estimate_let_through(local):
    """Text of a byte per token defeats the estimate of three: the engine's refusal is met by halving."""
    found = local.decide(STATE, nouls(3) | {"dense": noul("".join(chr(0x3400 + at) for at in range(2500)))})

    assert found.pop("dense") == NoAnswer("too_long")
    assert all(isinstance(answer, Noul) for answer in found.values())


def test_threads_get_their_own_answers(local):
    messages = [f"Question number {at}?" for at in range(8)]
    alone = [local.decide({"message": one, "previous": []}, nouls(2)) for one in messages]
    together = [None] * 8

    def ask(at):
        for _ in range(3):
            together[at] = local.decide({"message": messages[at], "previous": []}, nouls(2))

    threads = [threading.Thread(target=ask, args=(at,)) for at in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert together == alone


def test_check_reports_it(decider):
    report = check(decider)

    assert report.available
    assert report.model == "strands-decider-tiny"
    assert None not in report.latency_ms.values()
    print(repr(decider), {size: round(ms, 1) for size, ms in report.latency_ms.items()})


def test_the_served_window_is_learnt(served):
    decider = resolve_decider(served)
    decider.warm()

    assert decider.limits.window_tokens == 4096
    assert decider.deadline_s == 30.0  # it reports a CPU


def test_nothing_is_loaded_before_it_is_needed(checkpoint):
    code = (
        "import sys, strands_gated_memory as g\n"
        f"g.resolve_decider('strands-decider:{checkpoint}')\n"
        "print([name for name in ('torch', 'strands_decider', 'httpx') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)

    assert "torch" not in run.stdout
    assert "strands_decider" not in run.stdout


def test_a_damaged_checkpoint_is_unavailable(tmp_path):
    (tmp_path / "strands_decider_config.json").write_text("{}")
    decider = resolve_decider(f"strands-decider:{tmp_path}")

    for _ in range(2):  # the second time at once, without another try
        with pytest.raises(DeciderUnavailable):
            decider.decide(STATE, nouls(1))


def test_a_turn_does_not_wait_for_a_model_that_is_still_being_loaded(checkpoint, monkeypatch):
    decider = resolve_decider(f"strands-decider:{checkpoint}")
    loading, release = threading.Event(), threading.Event()

    def loads():
        loading.set()
        release.wait(60)
        raise DeciderUnavailable("the test is over")

    def warms():
        with pytest.raises(DeciderUnavailable):
            decider.warm()

    monkeypatch.setattr(decider._transport, "_load", loads)
    warming = threading.Thread(target=warms, daemon=True)
    warming.start()
    assert loading.wait(60)

    with clock.limited_to(0.5), pytest.raises(DeciderTimeout):
        decider.decide(STATE, nouls(1))
    release.set()
    warming.join(60)


def test_a_folder_without_a_checkpoint_fails_at_construction(tmp_path):
    with pytest.raises(ConfigurationError, match=r"strands_decider_config\.json"):
        resolve_decider(f"strands-decider:{tmp_path}")


@pytest.mark.parametrize(
    "name", ["\x00", "\ud800", "a" * 5000, "/" + "a" * 5000, "~nobody-here/x", "https://u:s3cr3tpw@h", "."],
)  # fmt: skip
def test_a_name_that_no_folder_can_have_fails_at_construction(name):
    with pytest.raises(ConfigurationError) as caught:
        resolve_decider(f"strands-decider:{name}")

    assert "s3cr3tpw" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_forked_while_the_model_is_loaded_can_load_it(checkpoint):
    transport = resolve_decider(f"strands-decider:{checkpoint}")._transport
    transport._loading.acquire()
    child = os.fork()
    if child == 0:
        os._exit(0 if transport._loading.acquire(timeout=1) else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
