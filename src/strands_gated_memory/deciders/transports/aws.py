"""A decision model behind an AWS endpoint: SageMaker `InvokeEndpoint`, AgentCore `InvokeAgentRuntime`.

The body is the System One document. Region and credentials resolve at the first call, from a session of
our own, so that the memory's session and retries are left alone.
"""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Mapping
from typing import Any

from ...errors import (
    BadAnswer,
    ConfigurationError,
    DeciderDenied,
    DeciderError,
    DeciderNotFound,
    DeciderRejected,
    DeciderThrottled,
    DeciderTimeout,
    DeciderUnavailable,
)
from ...runtime import threads
from ...runtime.clock import left
from ..shown import quoted
from .http import by_status, error_detail

_PAUSE_S = 0.1
_CONNECT_S = 2.0


class _AwsTransport:
    """What both share: the client, made once, and the translation of botocore's errors."""

    service = ""

    def __init__(self, session: Any, region: str | None, read_s: float) -> None:
        self._session = session
        self._region = region
        self._read_s = read_s
        self._lock = threading.Lock()
        self._client: Any = None
        threads.notice(self)

    def after_fork(self) -> None:
        """Take a new lock and a new client: two processes must not share a connection."""
        self._lock = threading.Lock()
        self._client = None

    def send(self, document: Mapping[str, Any], until: float) -> object:
        """Invoke; see `Transport.send`."""
        import botocore.exceptions as aws

        if left(until) <= 0:
            raise DeciderTimeout(f"no time left to ask {self}")
        body = json.dumps(document, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return self._document(self._invoke(self._made(), body))
        except aws.ClientError as error:
            raise self._refusal(error) from None
        except (aws.ReadTimeoutError, aws.ConnectTimeoutError) as error:
            raise DeciderTimeout(f"{self} gave no answer in time ({type(error).__name__})") from None
        except (aws.NoCredentialsError, aws.PartialCredentialsError, aws.TokenRetrievalError) as error:
            raise DeciderDenied(f"{self} needs AWS credentials ({type(error).__name__})") from None
        except aws.NoRegionError:
            raise DeciderRejected(f"{self} needs an AWS region; set AWS_REGION") from None
        except (aws.HTTPClientError, aws.EndpointConnectionError) as error:
            raise DeciderUnavailable(
                f"{self} cannot be reached ({type(error).__name__})", retry_after_s=_PAUSE_S
            ) from None
        except aws.BotoCoreError as error:
            raise DeciderRejected(f"{self} cannot be asked ({type(error).__name__}: {error})") from None

    def _invoke(self, client: Any, body: bytes) -> bytes:
        raise NotImplementedError

    def _document(self, body: bytes) -> object:
        try:
            found: object = json.loads(body)
        except (ValueError, RecursionError):
            raise BadAnswer(f"{self} did not answer with JSON") from None
        if isinstance(found, Mapping) and "answers" not in found and ("error" in found or "detail" in found):
            detail = error_detail(body)
            if "loading" in detail.lower():
                raise DeciderUnavailable(f"{self} is still loading its model", retry_after_s=1.0)
            raise by_status(422, f"{self} refuses the request: {detail}", detail)
        return found

    def _refusal(self, error: Any) -> DeciderError:
        found = error.response.get("Error") or {}
        code, text = str(found.get("Code", "")), " ".join(str(found.get("Message", "")).split())[:200]
        message = f"{self} answered {code}: {text}"
        status = error.response.get("OriginalStatusCode")
        if code == "ModelError" and isinstance(status, int):  # the model's own answer, wrapped
            original = str(error.response.get("OriginalMessage") or "")
            detail = error_detail(original.encode()) or text
            return by_status(status, f"{self}: the model answered {status}: {detail}", detail)
        if re.search(r"Throttl|TooManyRequests|LimitExceeded|Quota", code):
            return DeciderThrottled(message)
        if re.search(r"AccessDenied|UnrecognizedClient|ExpiredToken|InvalidSignature|InvalidClientToken", code):
            return DeciderDenied(message)
        if code == "ResourceNotFoundException" or re.search(r"not found|Could not find", text, re.IGNORECASE):
            return DeciderNotFound(message)
        if code in ("ServiceUnavailable", "ServiceUnavailableException", "ModelNotReadyException"):
            return DeciderUnavailable(message, retry_after_s=_PAUSE_S)
        status = (error.response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
        return by_status(status if isinstance(status, int) else 500, message, text)

    def _made(self) -> Any:
        with self._lock:
            if self._client is None:
                import boto3
                from botocore.config import Config

                session = self._session or boto3.Session()
                self._client = session.client(
                    self.service,
                    region_name=self._region,
                    config=Config(
                        connect_timeout=min(_CONNECT_S, self._read_s),
                        read_timeout=self._read_s,
                        retries={"total_max_attempts": 1},  # the second attempt is ours, within the deadline
                        max_pool_connections=32,
                        user_agent_extra="strands-gated-memory",
                    ),
                )
            return self._client


class SageMaker(_AwsTransport):
    """A SageMaker endpoint that takes the System One body; see `catalog.sagemaker`. `read_s` is in seconds."""

    service = "sagemaker-runtime"

    def __init__(self, endpoint: str, session: Any = None, region: str | None = None, read_s: float = 10.0) -> None:
        if not re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", endpoint):
            raise ConfigurationError(
                f'decider {quoted("sagemaker:" + endpoint)}: that is no endpoint name; write "sagemaker:my-endpoint"'
            )
        super().__init__(session, region, read_s)
        self.endpoint = endpoint

    def __repr__(self) -> str:
        return f"SageMaker endpoint {self.endpoint!r}"

    def _invoke(self, client: Any, body: bytes) -> bytes:
        response = client.invoke_endpoint(
            EndpointName=self.endpoint, ContentType="application/json", Accept="application/json", Body=body
        )
        data: bytes = response["Body"].read()
        return data


class AgentCoreRuntime(_AwsTransport):
    """A strands-decider on AgentCore Runtime; see `catalog.agentcore`. `read_s` is in seconds.

    One runtime session per process: a new session starts a new machine, which loads the model first.
    """

    service = "bedrock-agentcore"

    def __init__(self, arn: str, session: Any = None, region: str | None = None, read_s: float = 30.0) -> None:
        found = re.fullmatch(r"arn:aws[a-z-]*:bedrock-agentcore:([a-z0-9-]+):\d{12}:runtime/[\w.-]+", arn)
        if not found:
            raise ConfigurationError(
                f"decider {quoted('agentcore:' + arn)}: that is no runtime ARN; write "
                '"agentcore:arn:aws:bedrock-agentcore:<region>:<account>:runtime/<id>"'
            )
        super().__init__(session, region or found[1], read_s)
        self.arn = arn
        self._runtime_session = f"strands-gated-memory-{uuid.uuid4().hex}"

    def __repr__(self) -> str:
        return f"AgentCore runtime {self.arn.rsplit('/', 1)[-1]!r}"

    def _invoke(self, client: Any, body: bytes) -> bytes:
        response = client.invoke_agent_runtime(
            agentRuntimeArn=self.arn,
            runtimeSessionId=self._runtime_session,
            contentType="application/json",
            accept="application/json",
            payload=body,
        )
        data: bytes = response["response"].read()
        status = response.get("statusCode", 200)
        if isinstance(status, int) and status >= 400:
            detail = error_detail(data)
            raise by_status(status, f"{self} answered {status}: {detail}", detail)
        return data
