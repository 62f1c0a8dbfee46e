"""The examples of this part run, against loopback servers."""

import importlib.util
import io
import json
from pathlib import Path

import boto3
import pytest
from botocore.response import StreamingBody
from loopback import serving

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_message(request):
    """A model that opens for what it should."""
    yes = any(word in request.document["state"]["message"] for word in ("dinner", "table"))
    answers = {name: {"type": "noul", "noul": 0.9 if yes else 0.05} for name in request.document["questions"]}
    return 200, {"model": "jev-1.13.0", "answers": answers}


def test_served(capsys):
    with serving(by_message) as server:
        example("decider_served").main(server.url)
    out = capsys.readouterr().out

    assert "gate: closed" in out
    assert "allergic to peanuts" in out


def test_jev(capsys, monkeypatch):
    with serving(by_message) as server:
        monkeypatch.setenv("TYPESAFE_API_KEY", "sk-test-123456")
        monkeypatch.setenv("TYPESAFE_BASE_URL", server.url)
        example("decider_jev").main()

    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["closed", "closed", "open"]


def test_jev_without_a_key():
    with pytest.raises(SystemExit, match="TYPESAFE_API_KEY"):
        example("decider_jev").main()


def test_sagemaker(capsys, monkeypatch):
    class Client:
        def invoke_endpoint(self, Body, **_):
            names = json.loads(Body)["questions"]
            yes = "dinner" in json.loads(Body)["state"]["message"]
            data = json.dumps({"answers": {name: {"noul": 0.9 if yes else 0.1} for name in names}}).encode()
            return {"Body": StreamingBody(io.BytesIO(data), len(data))}

    session = boto3.Session("AKIDEXAMPLE", "not-a-secret", region_name="us-east-1")
    monkeypatch.setattr(session, "client", lambda *_, **__: Client())

    assert example("decider_sagemaker").main("my-endpoint", session) == 0
    assert "sagemaker:my-endpoint: available" in capsys.readouterr().out


def test_fallback(capsys):
    stats = example("decider_fallback").main()

    assert stats.as_dict()["decider_answered_by"] == {"keyword": 3}
    assert stats.as_dict()["gate"]["closed"] == 1
