"""A key reaches the server and nothing else: no repr, log, exception, traceback or trace."""

import copy
import logging
import pickle
import traceback

import pytest
from loopback import STATE, nouls, serving, system_one

from strands_gated_memory import RecallPipeline, RecallStats, Record, Turn, resolve_decider
from strands_gated_memory.deciders import catalog
from strands_gated_memory.deciders.check import check
from strands_gated_memory.deciders.secret import Secret
from strands_gated_memory.reporting.log import log_failures
from strands_gated_memory.terminal import lines

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

KEY = "sk-very-secret-0123456789"

REPLIES = {
    "healthy": system_one(0.9),
    "echoes the key": lambda request: (401, {"detail": f"bad key {request.headers['authorization']}"}),
    "echoes it in a validation error": lambda request: (422, {"detail": [{"loc": [KEY], "msg": KEY, "input": KEY}]}),
    "closes the line": lambda request: None,
    "is no decision model": lambda request: (200, {"key": KEY}),
}


def with_locals(error):
    """The traceback as error trackers record it, with the locals of every frame but the test's own."""
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    ours = [frame for frame in found.stack if not frame.filename.endswith("test_secrets.py")]
    return str(error) + "".join(f"{frame.name} {frame.line} {frame.locals}" for frame in ours)


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES)
def test_a_key_leaks_nowhere(reply, caplog, monkeypatch):
    caplog.set_level(logging.DEBUG)
    with serving(reply) as server:
        monkeypatch.setenv("TYPESAFE_API_KEY", KEY)
        monkeypatch.setenv("TYPESAFE_BASE_URL", server.url)
        decider = resolve_decider(["jev"])
        found = RecallPipeline(decider).recall(Turn("Drink?"), ["/facts/"], lambda name: [Record("Tea.", name)])
        log_failures(found)
        stats = RecallStats()
        stats.add(found)
        report = "\n".join(lines(check(decider), "jev"))
        try:
            decider.members[0][1].decide(STATE, nouls(1))
            trace = ""
        except Exception as error:
            trace = with_locals(error) + repr(error.__cause__) + repr(error.__context__)

    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    seen = [caplog.text, repr(decider), repr(decider.members), repr(found), str(stats), stats.line(), report, trace]
    assert [text for text in seen if KEY in text] == []


def test_a_secret_cannot_be_printed_or_saved():
    secret = Secret(KEY, "TYPESAFE_API_KEY")

    assert KEY not in f"{secret} {secret!r} {[secret]}"
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        copy.copy(secret)


def test_a_users_text_is_in_no_log_above_debug(caplog):
    caplog.set_level(logging.INFO)
    with serving(
        lambda request: (422, {"detail": [{"loc": ["body"], "msg": "bad", "input": request.document}]})
    ) as server:
        found = RecallPipeline(catalog.system_one(server.url)).recall(
            Turn("my private question"), ["/facts/"], lambda name: [Record("my private note", name)]
        )
        log_failures(found)

    assert found.trace.decider_calls[0].error == "rejected"
    assert "private" not in caplog.text


def test_a_key_over_plain_http_draws_a_warning(caplog):
    catalog.system_one("http://decider.internal:8000", api_key=KEY)

    assert "unencrypted" in caplog.text
    assert KEY not in caplog.text
