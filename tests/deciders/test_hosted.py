"""Hosted models by their names, against servers of the recorded shape."""

import json

import pytest
from loopback import STATE, noul, nouls, serving, system_one

from strands_gated_memory import RecallPipeline, Turn, resolve_decider
from strands_gated_memory.core.questions import NoAnswer, Noul
from strands_gated_memory.errors import ConfigurationError

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


def luna(request):
    answers = [
        {"type": "refusal", "name": one["name"]}
        if "refuse" in one["instructions"]
        else {"type": "predicate", "name": one["name"], "probability": 0.8}
        for one in request.document["questions"]
    ]
    return 200, {"model": "gpt-6-luna", "answers": answers, "usage": {"input_tokens": 9, "output_tokens": 1}}


HOSTED = {
    "jev": ("TYPESAFE", "", "/v1/systemone", "jev-1.13.0", system_one(0.8)),
    "jev:jev-latest": ("TYPESAFE", "", "/v1/systemone", "jev-latest", system_one(0.8)),
    "openrouter:typesafe/jev-1.13": (
        "OPENROUTER", "/api", "/api/alpha/decisions", "typesafe/jev-1.13", system_one(0.8, "typesafe/jev-1.13")),
    "liquid": ("LIQUID", "", "/v1/systemone", "d1.1", system_one(0.8, "d1.1")),
    "liquid:d1-ultra": ("LIQUID", "", "/v1/systemone", "d1-ultra", system_one(0.8, "d1-ultra")),
    "openai": ("OPENAI", "/v1", "/v1/decisions", "gpt-6-luna", luna),
    "openai:gpt-6-luna-2610": ("OPENAI", "/v1", "/v1/decisions", "gpt-6-luna-2610", luna),
}  # fmt: skip


@pytest.mark.parametrize("spec", HOSTED)
def test_a_hosted_model_is_asked_as_its_documentation_says(spec, monkeypatch):
    variable, base, path, model, reply = HOSTED[spec]
    with serving(reply) as server:
        monkeypatch.setenv(f"{variable}_API_KEY", "sk-test-123456")
        monkeypatch.setenv(f"{variable}_BASE_URL", server.url + base)
        found = resolve_decider(spec).decide(STATE, nouls(3))

    request = server.requests[0]
    assert found == {f"record_{at}": Noul(0.8) for at in range(3)}
    assert request.path == path
    assert request.headers["authorization"] == "Bearer sk-test-123456"
    assert request.document["model"] == model


def test_openrouter_answers_without_the_optional_fields_are_accepted(monkeypatch):
    def reply(request):
        answers = {name: {"type": "noul", "noul": 0.2} for name in request.document["questions"]}
        head = {"id": "d-1", "provider": "TypeSafe", "model": "typesafe/jev-1.13", "usage": {"cost": 1e-6}}
        return 200, {**head, "answers": answers}

    with serving(reply) as server:
        monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-123456")
        monkeypatch.setenv("OPENROUTER_BASE_URL", server.url)
        assert resolve_decider("openrouter:typesafe/jev-1.13").decide(STATE, nouls(1)) == {"record_0": Noul(0.2)}


def test_openai_refusals_are_no_decision(monkeypatch):
    with serving(luna) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-123456")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url + "/v1")
        found = resolve_decider("openai").decide(STATE, {"a": noul("refuse this"), "b": noul("Fine.")})

    assert found == {"a": NoAnswer("refused"), "b": Noul(0.8)}
    assert json.loads(server.requests[0].document["input"]) == STATE


@pytest.mark.parametrize(("spec", "most"), [("jev", 100), ("openai", 200), ("liquid", 100)])
def test_payload_limits_split_a_large_request(spec, most, monkeypatch):
    variable, base, _, _, reply = HOSTED[spec]
    with serving(reply) as server:
        monkeypatch.setenv(f"{variable}_API_KEY", "sk-test-123456")
        monkeypatch.setenv(f"{variable}_BASE_URL", server.url + base)
        found = resolve_decider(spec).decide(STATE, nouls(250))

    assert len(found) == 250
    assert set(found.values()) == {Noul(0.8)}
    assert max(len(request.document["questions"]) for request in server.requests) <= most


def test_jevs_threshold_is_used_for_jev(monkeypatch):
    """0.45 opens the gate for Jev (0.43) and drops a record (0.50)."""
    with serving(system_one(0.45)) as server:
        monkeypatch.setenv("TYPESAFE_API_KEY", "sk-test-123456")
        monkeypatch.setenv("TYPESAFE_BASE_URL", server.url)
        pipeline = RecallPipeline(resolve_decider("jev"))
        gate = pipeline.gate(Turn("What should I drink?"), ["/facts/"])

    assert gate.outcome == "open"


MISSING = {
    "jev": "TYPESAFE_API_KEY",
    "openrouter:typesafe/jev-1.13": "OPENROUTER_API_KEY",
    "openrouter": "openrouter:typesafe/jev-1.13",
    "openai": "OPENAI_API_KEY",
    "liquid": "LIQUID_API_KEY",
    "sagemaker": "sagemaker:my-endpoint",
    "sagemaker:not a name": "sagemaker:my-endpoint",
    "agentcore": "arn:aws:bedrock-agentcore",
    "agentcore:my-runtime": "arn:aws:bedrock-agentcore",
    "systemone": "systemone:http://127.0.0.1:8000",
    "systemone:127.0.0.1:8000": "http://host:port",
    "http://": "http://host:port",
    "http://host:99999999": "http://host:port",
    "https://user:pa55word@host": "SYSTEMONE_API_KEY",
    "https://host?key=pa55word": "SYSTEMONE_API_KEY",
    "fitted:no-such-file.json": "python -m harness fit",
    "fitted": "fitted:thresholds.json",
    "auto:fast": '"auto"',
    "jef": "'jev'",
    "gpt-6": "function (state, questions)",
    "strands-decider:./no/such/folder": "strands-decider",  # the extra to install, or the folder that is missing
}


@pytest.mark.parametrize("spec", MISSING)
def test_what_cannot_work_fails_at_construction_with_the_fix(spec):
    with pytest.raises(ConfigurationError) as caught:
        resolve_decider(spec)

    assert MISSING[spec] in str(caught.value)
    assert "pa55word" not in str(caught.value)


def test_liquid_needs_an_address(monkeypatch):
    monkeypatch.setenv("LIQUID_API_KEY", "sk-test-123456")

    with pytest.raises(ConfigurationError, match="LIQUID_BASE_URL"):
        resolve_decider("liquid")


@pytest.mark.parametrize("key", ["two\nlines", "ümlaut-key-123"])
def test_a_key_that_no_header_can_carry_is_refused_unquoted(key, monkeypatch):
    monkeypatch.setenv("TYPESAFE_API_KEY", key)

    with pytest.raises(ConfigurationError, match="TYPESAFE_API_KEY") as caught:
        resolve_decider("jev")
    assert key not in str(caught.value)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(ConfigurationError, match=r"pip install 'strands-gated-memory\[strands-decider\]'"):
        resolve_decider("strands-decider")
