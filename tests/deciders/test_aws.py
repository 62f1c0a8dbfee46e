"""SageMaker and AgentCore Runtime, by botocore's Stubber and moto: the request, and what each error is called."""

import io
import json

import boto3
import botocore.exceptions
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber
from loopback import STATE, nouls
from moto import mock_aws

from strands_gated_memory import resolve_decider
from strands_gated_memory.core.questions import NoAnswer, Noul
from strands_gated_memory.deciders import catalog
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

ARN = "arn:aws:bedrock-agentcore:us-west-2:123456789012:runtime/decider-Ab12Cd34Ef"
ANSWER = {"model": "strands-decider-2B-hobson-v19", "answers": {"record_0": {"type": "noul", "noul": 0.4}},
          "usage": {"input_tokens": 60, "output_tokens": 1}, "latency_ms": 50.1}  # fmt: skip


@pytest.fixture(autouse=True)
def _no_aws(monkeypatch, tmp_path):
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def session():
    return boto3.Session("AKIDEXAMPLE", "not-a-secret", region_name="eu-west-1")


@pytest.fixture(params=["sagemaker", "agentcore"])
def stubbed(request):
    """A decider whose client is stubbed, and two functions that queue a response and an error."""
    if request.param == "sagemaker":
        decider = catalog.sagemaker("my-endpoint", boto_session=session())
        operation, body_name = "invoke_endpoint", "Body"
    else:
        decider = catalog.agentcore(ARN, boto_session=session())
        operation, body_name = "invoke_agent_runtime", "response"
    with Stubber(decider._transport._made()) as stub:

        def answer(document):
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            stub.add_response(operation, _response(body_name, StreamingBody(io.BytesIO(data), len(data))))

        def fail(code, message="", status=400, **members):
            stub.add_client_error(operation, code, message, status, response_meta=members or None)

        yield decider, answer, fail


def _response(body_name, body):
    more = {"contentType": "application/json", "statusCode": 200} if body_name == "response" else {}
    return {body_name: body, **more}


def test_an_answer_is_read(stubbed):
    decider, answer, _ = stubbed
    answer(ANSWER)

    found = decider.decide(STATE, nouls(1))

    assert found == {"record_0": Noul(0.4)}
    assert found.model == "strands-decider-2B-hobson-v19"
    assert found.thresholds == {}  # nouls of no published wording have none


ERRORS = {
    "throttled": ("ThrottlingException", "Rate exceeded", 429, DeciderThrottled),
    "denied": ("AccessDeniedException", "not authorized", 403, DeciderDenied),
    "expired": ("ExpiredTokenException", "expired", 403, DeciderDenied),
    "no such endpoint": ("ValidationError", "Endpoint my-endpoint of account 1 not found.", 400, DeciderNotFound),
    "no such runtime": ("ResourceNotFoundException", "No endpoint", 404, DeciderNotFound),
    "invalid": ("ValidationException", "bad payload", 400, DeciderRejected),
    "internal": ("InternalServerException", "oops", 500, DeciderUnavailable),
}


@pytest.mark.parametrize(("code", "message", "status", "error"), ERRORS.values(), ids=ERRORS)
def test_an_error_has_its_name(stubbed, code, message, status, error):
    decider, _, fail = stubbed
    fail(code, message, status)

    with pytest.raises(error) as caught:
        decider.decide(STATE, nouls(1))
    assert error_kind(caught.value) != "error"


def test_one_retry_when_the_service_is_not_ready(stubbed):
    decider, answer, fail = stubbed
    fail("ServiceUnavailable", "", 503)
    answer(ANSWER)

    assert decider.decide(STATE, nouls(1)) == {"record_0": Noul(0.4)}


def test_not_json(stubbed):
    decider, answer, _ = stubbed
    answer(b"<html>")

    with pytest.raises(BadAnswer):
        decider.decide(STATE, nouls(1))


def test_the_models_own_refusal_is_unwrapped():
    decider = catalog.sagemaker("my-endpoint", boto_session=session())
    too_long = '{"detail": "prompt of 5000 tokens exceeds the context window of 4096"}'
    with Stubber(decider._transport._made()) as stub:
        stub.add_client_error(
            "invoke_endpoint", "ModelError", "Received client error (422) from primary", 424,
            modeled_fields={"OriginalStatusCode": 422, "OriginalMessage": too_long},
        )  # fmt: skip
        assert decider.decide(STATE, nouls(1)) == {"record_0": NoAnswer("too_long")}


def test_the_runtime_says_that_it_is_loading():
    decider = catalog.agentcore(ARN, boto_session=session())
    with Stubber(decider._transport._made()) as stub:
        for document in ({"error": "loading"}, ANSWER):
            data = json.dumps(document).encode()
            stub.add_response("invoke_agent_runtime", _response("response", StreamingBody(io.BytesIO(data), len(data))))
        assert decider.decide(STATE, nouls(1)) == {"record_0": Noul(0.4)}


def test_the_request_is_system_ones_and_the_session_is_kept():
    decider = catalog.agentcore(ARN, boto_session=session())
    seen = []
    client = decider._transport._made()
    assert client.meta.region_name == "us-west-2"  # the ARN's, not the session's
    client.meta.events.register(
        "provide-client-params.bedrock-agentcore.InvokeAgentRuntime", lambda params, **_: seen.append(params)
    )
    with Stubber(client) as stub:
        for _ in range(2):
            data = json.dumps(ANSWER).encode()
            stub.add_response("invoke_agent_runtime", _response("response", StreamingBody(io.BytesIO(data), len(data))))
            decider.decide(STATE, nouls(1))

    assert json.loads(seen[0]["payload"])["questions"]["record_0"]["type"] == "noul"
    assert seen[0]["runtimeSessionId"] == seen[1]["runtimeSessionId"]
    assert len(seen[0]["runtimeSessionId"]) >= 33


class Raises:
    def __init__(self, error):
        self.error = error

    def invoke_endpoint(self, **_):
        raise self.error


LOCAL = {
    "no answer in time": (botocore.exceptions.ReadTimeoutError(endpoint_url="u"), DeciderTimeout),
    "no connection": (botocore.exceptions.EndpointConnectionError(endpoint_url="u"), DeciderUnavailable),
    "connection lost": (botocore.exceptions.ConnectionClosedError(endpoint_url="u"), DeciderUnavailable),
    "no credentials": (botocore.exceptions.NoCredentialsError(), DeciderDenied),
    "no region": (botocore.exceptions.NoRegionError(), DeciderRejected),
}


@pytest.mark.parametrize(("raised", "error"), LOCAL.values(), ids=LOCAL)
def test_what_botocore_raises_itself(raised, error):
    decider = catalog.sagemaker("my-endpoint", boto_session=session())
    decider._transport._client = Raises(raised)

    with pytest.raises(error):
        decider.decide(STATE, nouls(1))


def test_region_and_credentials_resolve_at_the_first_call():
    decider = resolve_decider("sagemaker:my-endpoint")

    with pytest.raises(DeciderRejected, match="AWS_REGION"):
        decider.decide(STATE, nouls(1))


def test_through_moto(monkeypatch):
    """The whole of botocore, signing and parsing included, against moto's queued result."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        from moto.sagemakerruntime.models import sagemakerruntime_backends

        backend = sagemakerruntime_backends["123456789012"]["us-east-1"]
        backend.results_queue.append((json.dumps(ANSWER), "application/json", "prod", ""))
        decider = catalog.sagemaker("my-endpoint", region_name="us-east-1")
        decider._transport._made()  # on a busy machine boto3 alone may take longer than the call

        assert decider.decide(STATE, nouls(1)) == {"record_0": Noul(0.4)}
