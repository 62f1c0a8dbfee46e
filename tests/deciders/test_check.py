"""`check` and `ask` on the command line, and the probe at a manager's start."""

import logging
import subprocess
import sys
import threading
import time

import pytest
from bedrock_agentcore.memory.integrations.strands.config import AgentCoreMemoryConfig, RetrievalConfig
from loopback import serving, system_one

from strands_gated_memory import (
    ConfigurationError,
    GatedMemorySessionManager,
    RecallPipeline,
    RecallPolicy,
    Turn,
    resolve_decider,
)
from strands_gated_memory.cli import main
from strands_gated_memory.core.questions import Noul
from strands_gated_memory.deciders.check import check, probe
from strands_gated_memory.terminal import decisions, lines
from strands_gated_memory.testing import HashingEncoder, local_agentcore

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


class Told:
    """P(yes) by whether the message asks for dinner."""

    def __init__(self, yes=0.9, no=0.1, seconds=0.0):
        self.yes, self.no, self.seconds = yes, no, seconds
        self.asked = 0

    def decide(self, state, questions):
        self.asked += 1
        time.sleep(self.seconds)
        return {name: Noul(self.yes if "dinner" in state["message"] else self.no) for name in questions}


def test_a_report_names_latency_and_sanity():
    report = check(Told())

    assert report.available
    assert set(report.latency_ms) == {1, 8, 20}
    assert (report.needs_memory, report.needs_nothing) == (0.9, 0.1)
    assert report.notes == ()


def test_a_model_slower_than_its_deadline_is_pointed_out():
    slow = Told(seconds=0.06)
    slow.deadline_s = 0.1

    assert any("deadline is 0.1 s" in note for note in check(slow).notes)


def test_a_model_that_cannot_tell_is_pointed_out():
    assert any("worthless" in note for note in check(Told(0.4, 0.6)).notes)


def test_a_model_that_is_not_there():
    with serving(system_one()) as server:
        gone = server.url
    from strands_gated_memory.deciders.catalog import system_one as client

    report = check(client(gone))

    assert not report.available
    assert report.failure.startswith("unavailable")
    assert lines(report, "x")[0] == "x: NOT available"


def test_probe_says_what_is_wrong():
    assert probe(Told(), 1) is None
    assert "invalid" in probe(Told(2.0), 1)


def test_cli_check(capsys):
    with serving(system_one(0.9, "jev-1.14.0")) as server:
        status = main(["check", server.url])
    out = capsys.readouterr().out

    assert status == 0
    assert "available, model jev-1.14.0" in out
    assert "20 questions" in out
    assert "measured on jev-1.13" in out


def test_cli_check_of_a_wrong_address(capsys):
    with serving(lambda request: (404, {"detail": "Not Found"})) as server:
        status = main(["check", server.url])

    assert status == 1
    assert "not_found" in capsys.readouterr().out


def test_cli_ask(capsys):
    with serving(system_one(0.9)) as server:
        status = main(["ask", server.url, "What should I drink?", "--record", "Likes tea."])
    out = capsys.readouterr().out

    assert status == 0
    assert "gate open  0.900" in out
    assert "keep  0.900  (threshold 0.500)  Likes tea." in out
    assert "/preferences/{actorId}/" in out


def test_cli_ask_with_the_texts_before(capsys):
    """Gate, router and validator are asked about the same state as in a conversation."""
    said = ["--previous", "What shall I cook?", "--previous", "A lentil curry."]
    with serving(system_one(0.9)) as server:
        assert main(["ask", server.url, "And for tomorrow?", "--record", "Likes tea.", *said]) == 0

    states = [request.document["state"] for request in server.requests if request.document]
    assert states == [{"message": "And for tomorrow?", "previous": ["What shall I cook?", "A lentil curry."]}] * 2


def test_cli_ask_shows_which_part_of_a_long_record_counted(capsys):
    """A record of many sentences says which of them its probability comes from; a short one says nothing."""
    filling = "The quarterly report had forty pages, and the printer on the third floor was out of toner. " * 4
    records = ["--record", f"{filling}The user must not have peanuts.", "--record", "The user is vegan."]

    assert main(["ask", "embedded", "What should I cook tonight?", *records]) == 0

    counted = [line for line in capsys.readouterr().out.splitlines() if "counted:" in line]
    assert len(counted) == 1
    assert counted[0].endswith("The user must not have peanuts.")


@pytest.mark.parametrize("count", [1, 3])
def test_cli_ask_with_half_an_exchange_before(capsys, count):
    assert main(["ask", "embedded", "And for tomorrow?", *["--previous", "What shall I cook?"] * count]) == 2

    assert f"--previous was given {count} time" in (said := capsys.readouterr().err)
    assert "user then assistant" in said


def test_check_and_ask_say_what_came_instead_of_an_answer():
    decider = resolve_decider(lambda state, questions: dict.fromkeys(questions, 0.9))

    assert "float alone came" in check(decider).failure
    assert "float alone came" in probe(decider, 60)
    assert any("float alone came" in line for line in decisions(decider, "hi", ["/facts/"]))


def test_cli_ask_of_a_broken_model(capsys):
    with serving(lambda request: (500, {})) as server:
        status = main(["ask", server.url, "What should I drink?"])

    assert status == 1
    assert "failed open" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["check", "jef"], ["ask", "jev", "hi"]])
def test_cli_wrong_spec(command, capsys):
    assert main(command) == 2
    assert "strands-gated-memory: decider" in capsys.readouterr().err


def test_cli_takes_an_address_with_commas(capsys):
    with serving(lambda request: (500, {})) as dead, serving(system_one(0.9)) as alive:
        assert main(["ask", f"{dead.url}/a,b,{alive.url}/c,d", "What should I drink?"]) == 0

    assert {request.path for request in dead.requests} == {"/a,b/v1/systemone"}
    assert {request.path for request in alive.requests} == {"/c,d/v1/systemone"}


@pytest.mark.parametrize("first", ["dead", "alive"])
def test_cli_check_names_the_dead_member_of_a_list(capsys, first):
    """Wherever it stands: by name and reason, with an exit status apart from dead and from fine."""
    with serving(lambda request: (404, {"detail": "no such endpoint"})) as dead, serving(system_one(0.9)) as alive:
        specs = [dead.url, alive.url] if first == "dead" else [alive.url, dead.url]
        assert main(["check", ",".join(specs)]) == 3
    out = capsys.readouterr().out

    assert "PARTLY available, 1 of 2" in out
    assert "model jev-1.13.0" in out
    assert f"  {dead.url}: NOT available, not_found" in out
    assert "no such endpoint" in out
    assert f"  {alive.url}: available" in out


def test_cli_check_of_a_list_whose_members_all_answer_or_none(capsys):
    with serving(system_one(0.9)) as one, serving(system_one(0.9)) as other:
        assert main(["check", f"{one.url},{other.url}"]) == 0
    assert "PARTLY" not in capsys.readouterr().out

    broken = (500, {})
    with serving(lambda request: broken) as one, serving(lambda request: broken) as other:
        assert main(["check", f"{one.url},{other.url}"]) == 1
    out = capsys.readouterr().out
    assert all(f"  {server.url}: NOT available, unavailable" in out for server in (one, other))


def test_a_list_within_a_list_is_checked_member_by_member():
    def tired(state, questions):
        raise ZeroDivisionError("no")

    def silent(state, questions):
        return {}

    def good(state, questions):
        return {name: {"type": "noul", "noul": 0.9} for name in questions}

    report = check(resolve_decider([tired, [silent, [good]]]))

    assert report.partly_dead
    assert report.members["good"] is None
    assert "ZeroDivisionError" in report.members["tired"]
    assert "missing" in report.members["silent"]


@pytest.mark.parametrize(
    "address", ["127.0.0.1:8000", "localhost:9", "my-host/path", "decider.internal:80/v1", "[::1]:8000", "ftp://host/a"]
)
@pytest.mark.parametrize("command", [["check"], ["ask"]])
def test_cli_says_what_an_address_lacks(command, address, capsys):
    assert main([*command, address, *(["hi"] if command == ["ask"] else [])]) == 2

    assert f"write 'http://{address.removeprefix('ftp://')}'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "address", ["user:secret@host/path", "sk-abcdef.secretsecretsecretsecret", "host/a?key=secret"]
)
def test_cli_does_not_repeat_what_may_be_a_credential(address, capsys):
    assert main(["check", address]) == 2

    assert "secret" not in capsys.readouterr().err


@pytest.fixture(scope="module")
def core():
    with local_agentcore(encoder=HashingEncoder()) as handle:
        yield handle


def manager(core, **options):
    config = AgentCoreMemoryConfig(
        memory_id=core.memory_id, actor_id="bob", session_id="s1",
        retrieval_config={"/facts/{actorId}/": RetrievalConfig()},
    )  # fmt: skip
    return GatedMemorySessionManager(config, region_name="us-east-1", **options)


def _warmed():
    for thread in threading.enumerate():
        if thread.name == "gated-memory-warm":
            thread.join(60)


def test_a_wrong_address_is_known_before_the_first_turn(core, caplog):
    with serving(lambda request: (404, {"detail": "no such endpoint"})) as server:
        manager(core, decider=server.url)
        _warmed()

    assert "the decision model does not answer" in caplog.text
    assert "no such endpoint" in caplog.text


def test_raise_makes_it_an_error(core):
    missing = (404, {"detail": "no such endpoint"})
    with serving(lambda request: missing) as server, pytest.raises(ConfigurationError, match="no such endpoint"):
        manager(core, decider=server.url, decider_check="raise")


def test_raise_asks_a_function_too(core):
    def broken(state, questions):
        raise RuntimeError("no")

    with pytest.raises(ConfigurationError, match="RuntimeError"):
        manager(core, decider=broken, decider_check="raise")


def test_raise_names_the_dead_member_of_a_list(core):
    """Strict by request: a list that answers by its second member only does not start."""
    missing = (404, {"detail": "no such endpoint"})
    with serving(lambda request: missing) as server, pytest.raises(ConfigurationError) as raised:
        manager(core, decider=["embedded", [server.url]], decider_check="raise")

    assert f"{server.url}: not_found" in str(raised.value)
    assert "embedded:" not in str(raised.value)


def test_the_warning_at_the_start_names_the_dead_member_of_a_list(core, caplog):
    with serving(lambda request: (404, {"detail": "no such endpoint"})) as dead, serving(system_one(0.9)) as alive:
        manager(core, decider=["embedded", [alive.url, dead.url]])
        _warmed()

    assert f"decider=<{dead.url}>, cause=<not_found" in caplog.text
    assert "a decider of a list does not answer" in caplog.text
    assert alive.url not in caplog.text


def test_off_asks_nobody(core, caplog):
    with serving(lambda request: (404, {})) as server:
        manager(core, decider=server.url, decider_check="off")
        _warmed()

    assert server.requests == []
    assert caplog.text == ""


def test_a_healthy_decider_is_asked_one_question_quietly(core, caplog):
    caplog.set_level(logging.WARNING)
    with serving(system_one(0.9)) as server:
        found = manager(core, decider=server.url)
        _warmed()

    assert len(server.requests) == 1
    assert found.stats.as_dict()["decider_calls"] == 0
    assert caplog.text == ""


def test_a_server_that_makes_a_manager_per_request_probes_once(core, caplog):
    """One paid request, and one warning when it fails; an object passed is asked once as long as it lives."""

    class Remote(Told):
        remote = True

    with serving(lambda request: (404, {"detail": "no such endpoint"})) as server:
        for _ in range(5):
            manager(core, decider=[server.url, "embedded"])
            manager(core, decider=server.url)
            _warmed()
        asked = [request for request in server.requests if request.path.endswith("systemone")]
    told, other = Remote(), Remote()
    for _ in range(5):
        manager(core, decider=told)
        manager(core, decider=other)
        _warmed()

    assert len(asked) == 2  # of the list, and alone
    assert caplog.text.count("the decision model does not answer") == 1
    assert caplog.text.count("a decider of a list does not answer") == 1
    assert (told.asked, other.asked) == (1, 1)


def test_deciders_that_hang_at_the_start_cost_few_threads_and_no_other_decider(core):
    """An object per request whose server hangs: turns with another one are decided in time."""
    over = threading.Event()

    class Hangs:
        remote = True

        def decide(self, state, questions):
            over.wait(300)

    try:
        managers = [manager(core, decider=Hangs()) for _ in range(50)]
        time.sleep(0.2)
        warming = [thread for thread in threading.enumerate() if thread.name == "gated-memory-warm"]
        pipeline = RecallPipeline(resolve_decider(Told()), RecallPolicy(deadline_s=60))
        outcome = pipeline.gate(Turn("dinner?"), ["/facts/"]).outcome
    finally:
        over.set()
        _warmed()

    assert len(managers) == 50
    assert len(warming) <= 4
    assert outcome == "open"


def test_by_default_a_function_is_not_probed(core):
    told = Told()
    manager(core, decider=told)
    _warmed()

    assert told.asked == 0


def test_an_unknown_mode_is_refused(core):
    with pytest.raises(ConfigurationError, match="decider_check"):
        manager(core, decider=None, decider_check="loud")


def test_importing_the_package_loads_no_client():
    """Beyond what the parent class loads itself."""
    code = (
        "import sys, bedrock_agentcore.memory.integrations.strands.session_manager\n"
        "before = set(sys.modules)\n"
        "import strands_gated_memory, strands_gated_memory.deciders.catalog\n"
        "heavy = ('httpx', 'httpcore', 'torch', 'strands_decider', 'boto3', 'strands_gated_memory.deciders.llm')\n"
        "print(sorted(set(heavy) & (set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"


def test_cli_ask_shows_the_thresholds_in_force(capsys):
    with serving(system_one(0.45)) as server:  # the model says that it is Jev 1.13
        main(["ask", server.url, "What should I drink?", "--record", "Likes tea."])
    out = capsys.readouterr().out

    assert "gate open  0.450  (threshold 0.430)" in out
    assert "search  0.450  (threshold 0.430)  /facts/{actorId}/" in out
    assert "drop  0.450  (threshold 0.500)  Likes tea." in out


def test_cli_ask_judges_records_behind_a_closed_gate_and_shows_what_failed(capsys):
    def reply(request):
        if "gate" in request.document["questions"]:
            return system_one(0.1)(request)
        return 500, {}

    with serving(reply) as server:
        main(["ask", server.url, "Hello!", "--record", "Likes tea."])
    out = capsys.readouterr().out

    assert "gate closed" in out
    assert "Likes tea.  (not_judged)" in out
    assert "validator: 1 questions" in out
    assert "failed open" in out


@pytest.mark.parametrize("stdout", ["full", "closed"])
def test_a_stdout_that_takes_nothing_is_no_traceback(stdout):
    code = "import sys; from strands_gated_memory.cli import main; sys.exit(main(['check', 'embedded']))"
    redirect = {"full": ">/dev/full", "closed": ">&-"}[stdout]
    run = subprocess.run(
        ["sh", "-c", f'"$0" -W ignore -c "$1" {redirect}', sys.executable, code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "Traceback" not in run.stderr
    assert run.returncode == {"full": 1, "closed": 0}[stdout]


def test_an_interrupt_is_no_traceback(monkeypatch):
    def interrupted(options):
        raise KeyboardInterrupt

    monkeypatch.setattr("strands_gated_memory.cli._run", interrupted)

    assert main(["check", "embedded"]) == 130


@pytest.mark.parametrize(
    "function",
    [
        lambda state, questions: {"answers": {name: {"type": "noul", "noul": 0.9} for name in questions}},
        lambda state, questions: {at: {"type": "noul", "noul": 0.9} for at, _ in enumerate(questions)},
        lambda state, questions: {"type": "noul", "noul": 0.9},
    ],
    ids=["wrapped", "numbered", "one answer"],
)
def test_a_mapping_by_other_keys_is_told_to_have_them(function):
    """The answers are right, and their keys are not."""
    failure = check(resolve_decider(function)).failure

    assert "none of its keys is the id of a question" in failure
    assert "for id in questions" in failure


def test_cli_ask_says_which_members_of_a_list_were_passed_over(capsys):
    with serving(lambda request: (500, {})) as dead, serving(system_one(0.9)) as live:
        status = main(["ask", f"{dead.url},{live.url}", "What should I drink?", "--record", "Likes tea."])
    out = capsys.readouterr().out

    assert status == 0
    assert f"passed over {dead.url}: " in out
    assert f"answered by {live.url}" in out


@pytest.mark.parametrize(
    ("slip", "said"),
    [
        ("http:/127.0.0.1:9", "write 'http://127.0.0.1:9'"),
        ("https:127.0.0.1:9/a", "write 'http://127.0.0.1:9/a' or 'https://127.0.0.1:9/a'"),
        ("HTTP:\\\\host:80", "write 'http://host:80'"),
        ("", "is empty"),
        ("embedded,", "is empty"),
        (",", "is empty"),
    ],
)
@pytest.mark.parametrize("command", ["check", "ask"])
def test_cli_says_what_a_slip_lacks(command, slip, said, capsys):
    assert main([command, slip, *(["hi"] if command == "ask" else [])]) == 2
    assert said in capsys.readouterr().err


def test_the_members_of_a_list_that_talk_to_nothing_are_not_probed_at_the_start(core):
    """A function may cost what it likes: only what talks to something is asked before it is needed."""
    told = Told()
    with serving(system_one(0.9)) as server:
        manager(core, decider=[server.url, told])
        _warmed()

    assert told.asked == 0
    assert any(request.path.endswith("systemone") for request in server.requests)
