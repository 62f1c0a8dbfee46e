"""`local_agentcore`: mounts the emulation on moto, and what it yields to tests.

moto's `mock_aws` answers, with our response classes in its URL tables, in a clean environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from .calls import CallLog, wire_name
from .ranking import SentenceEncoder

if TYPE_CHECKING:
    from .state import World

NETWORK_ERRORS = ("ConnectTimeoutError", "EndpointConnectionError", "ReadTimeoutError")
"""Failures without an answer; raised as botocore raises them, retries included."""
_STRATEGIES: dict[str, tuple[str, str]] = {
    "semanticMemoryStrategy": ("facts", "/facts/{actorId}/"),
    "userPreferenceMemoryStrategy": ("preferences", "/preferences/{actorId}/"),
    "summaryMemoryStrategy": ("summaries", "/summaries/{actorId}/{sessionId}/"),
}
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_REGIONS = ("AWS_DEFAULT_REGION", "AWS_REGION")
_ENDPOINTS = {
    # Each of these would send a client to another address than the one that moto listens for.
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_USE_FIPS_ENDPOINT": "false",
    "AWS_USE_DUALSTACK_ENDPOINT": "false",
}


class LocalAgentCore:
    """An emulated AgentCore Memory while its `local_agentcore` lasts.

    Args:
        world: Its state.
        region_name: The region in which the ready-made memory is created.
    """

    def __init__(self, world: World, region_name: str) -> None:
        self._world = world
        self.region_name = region_name
        """Where the control plane knows `memory_id`."""
        self.memory_id, self.strategy_ids = _create_memory(world, region_name)

    memory_id: str
    """An ACTIVE memory with three strategies: `/facts/{actorId}/` (SEMANTIC), `/preferences/{actorId}/`
    (USER_PREFERENCE) and `/summaries/{actorId}/{sessionId}/` (SUMMARIZATION). Nothing is extracted from events."""

    strategy_ids: Mapping[str, str]
    """The id of each strategy of that memory, by type: `strategy_ids["SEMANTIC"]`."""

    @property
    def calls(self) -> CallLog:
        """Every request to a memory operation so far, boto3's retries included."""
        return self._world.calls

    def fail(
        self,
        operation: str,
        error_code: str,
        times: int | None = None,
        namespace: str | None = None,
        *,
        status: int | None = None,
        message: str | None = None,
    ) -> None:
        """Make an operation fail, over the wire, before it changes anything.

        boto3 retries what it holds to be transient (ThrottledException, ServiceException, network failures), so
        `times=1` alone is usually unseen by the caller; use None or a client with one attempt.

        Args:
            operation: `"RetrieveMemoryRecords"` or `"retrieve_memory_records"`.
            error_code: An error that the service model lists for the operation, such as `"ThrottledException"`
                (429), `"AccessDeniedException"` (403), `"ResourceNotFoundException"` (404), `"ServiceException"`
                (500), `"ValidationException"` (400) or `"ServiceQuotaExceededException"` (402); or
                `"ReadTimeoutError"`, `"ConnectTimeoutError"`, `"EndpointConnectionError"` for no answer at all.
            times: How many requests fail, retries counted; None for all. Faults are used up oldest first.
            namespace: Only requests for this namespace or namespacePath, or that write a record there; slashes at
                the end do not matter, and placeholders are not filled.
            status: The HTTP status of a code that the model does not list, such as 403 of
                `"ExpiredTokenException"`.
            message: The error's message; None for one that says that it was injected.

        Raises:
            ValueError: The operation is not emulated, the code is not one of its errors and has no status, or
                `times` is below 1.
        """
        from botocore import exceptions

        from .protocol import ServiceError, operation_model
        from .state import Fault

        name, text = wire_name(operation), message or f"{error_code} injected by local_agentcore"
        modelled = {shape.name: shape.metadata["error"] for shape in operation_model(name).error_shapes}
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1, or None for every request, got {times}")
        if status is not None or error_code in modelled:
            error = partial(ServiceError, error_code, status or modelled[error_code]["httpStatusCode"], text)
        elif error_code in NETWORK_ERRORS:
            kind = getattr(exceptions, error_code)
            error = partial(kind, endpoint_url="https://bedrock-agentcore.local", error=text)
        else:
            known = ", ".join([*sorted(modelled), *NETWORK_ERRORS])
            raise ValueError(f"{error_code!r} is no error of {name}: give its status=, or choose one of {known}")
        with self._world.lock:
            self._world.faults.append(Fault(name, namespace, error, times or inf))

    def delay(self, operation: str, seconds: float, namespace: str | None = None) -> None:
        """Make an operation slow. The client's own read timeout does not see it: use `fail` for that.

        Args:
            operation: As in `fail`.
            seconds: How long each request waits before it is answered; the longest match counts. Ends early when
                the context manager does.
            namespace: As in `fail`.

        Raises:
            ValueError: The operation is not emulated, or `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"seconds must not be negative, got {seconds}")
        with self._world.lock:
            self._world.delays[wire_name(operation), namespace] = seconds

    def clear_faults(self) -> None:
        """Remove every fault and every delay."""
        with self._world.lock:
            self._world.faults.clear()
            self._world.delays.clear()

    def add_raw_record(self, namespace: str, summary: Any) -> None:
        """Plant a summary, malformed or not, in the answers of RetrieveMemoryRecords and ListMemoryRecords.

        It is in every memory, first in its namespace, counts towards topK, passes every filter, and is written as
        given. botocore still parses it: null members vanish, and a `content` without exactly one non-null member
        (`{"text": None}`, `{}`) makes it refuse the whole response with `ResponseParserError`.
        `{"json": {}}` arrives as `{"SDK_UNKNOWN_MEMBER": ...}`; a missing `content`, `score` or `namespaces`
        arrives missing.

        Args:
            namespace: The resolved namespace in which requests find it, whatever the summary says.
            summary: Anything that is JSON; a `datetime` becomes seconds. Copied.

        Raises:
            TypeError: It is not JSON.
        """
        planted = json.loads(json.dumps(summary, default=_json_value))
        with self._world.lock:
            self._world.planted.append((namespace, planted))

    def attach(self, client: Any) -> None:
        """Send a client here that was made from a session older than moto's first import, and so bypasses it.

        Args:
            client: A `bedrock-agentcore` or `bedrock-agentcore-control` client.
        """
        from moto.core.models import patch_client

        patch_client(client)


def _create_memory(world: World, region_name: str) -> tuple[str, Mapping[str, str]]:
    from moto.core.models import DEFAULT_ACCOUNT_ID

    control = world.control(os.environ.get("MOTO_ACCOUNT_ID", DEFAULT_ACCOUNT_ID), region_name)
    memory = control.create_memory(
        name="local",
        event_expiry_duration=90,
        description=None,
        encryption_key_arn=None,
        memory_execution_role_arn=None,
        memory_strategies=[{kind: {"name": name, "namespaces": [ns]}} for kind, (name, ns) in _STRATEGIES.items()],
        tags=None,
    )
    control.get_memory(memory.memory_id)  # the first look turns CREATING into ACTIVE
    return memory.memory_id, {strategy["type"]: strategy["strategyId"] for strategy in memory.strategies}


def _json_value(value: Any) -> Any:
    """Return a value that JSON has no word for as the wire has it."""
    if isinstance(value, datetime):
        return value.timestamp()
    raise TypeError(f"a summary must be JSON, got {type(value).__name__}")


@contextmanager
def local_agentcore(
    *,
    region_name: str = "us-east-1",
    encoder: SentenceEncoder | None = None,
    strict_memory_ids: bool = False,
) -> Iterator[LocalAgentCore]:
    """Answer every `bedrock-agentcore` and `bedrock-agentcore-control` client in this process from memory.

    boto3 clients made inside, from the default session or another, need no credentials and reach nothing outside;
    neither does any other AWS client, as moto answers those. State is fresh on each entry. Entered again in the
    same thread, the inner one answers until it ends, then the outer one again; entered in a second thread at the
    same time, it raises. Requests may come from any thread. On exit everything is as before: environment, moto's
    tables, boto3's default session.

    A `boto3.Session` made before this process first imported moto (the first entry does) knows nothing of it: pass
    its clients to `LocalAgentCore.attach`, or make the session inside.

    What it does not do: extract records from events, enforce rates or expiry, check IAM, index metadata.

    Args:
        region_name: Where the ready-made memory is created; also the region of clients that have no other, when
            none is configured in the environment.
        encoder: Ranks searches; None for the package's own, loaded at the first search.
        strict_memory_ids: Answer ResourceNotFoundException for a memory id that was not created through the control
            plane in the region of the request. By default every well-formed id is a memory, empty at first and the
            same one in every region, unless it was deleted.

    Yields:
        The handle: memory id, calls, faults.

    Raises:
        ImportError: moto is not installed: `pip install 'strands-gated-memory[testing]'`, or from a clone
            `pip install '.[testing]'`.
        RuntimeError: It is active in another thread.
    """
    try:
        from moto import mock_aws
        from moto.bedrockagentcore.urls import url_paths as data_paths
        from moto.bedrockagentcorecontrol.urls import url_paths as control_paths
    except ImportError as error:
        raise ImportError(
            "local_agentcore needs moto: pip install 'strands-gated-memory[testing]', "
            "or from a clone: pip install '.[testing]'"
        ) from error
    from .responses import ControlResponse, MemoryResponse, serving
    from .state import World

    world = World(encoder, strict_memory_ids=strict_memory_ids)
    with ExitStack() as undo:
        undo.enter_context(serving(world))
        undo.enter_context(patch.dict(os.environ, _environment(region_name)))
        mock = mock_aws()
        mock.start()
        undo.callback(_stop, mock)
        for paths, response in ((data_paths, MemoryResponse), (control_paths, ControlResponse)):
            undo.enter_context(patch.dict(paths, dict.fromkeys(paths, response.dispatch)))
        undo.callback(world.closed.set)
        yield LocalAgentCore(world, region_name)


def _environment(region_name: str) -> dict[str, str]:
    """Return credentials and a region if there are none, and what leads to no other address than AWS's own."""
    changes = dict(_ENDPOINTS)
    if not any(os.environ.get(name) for name in _CREDENTIALS):
        changes |= dict.fromkeys(_CREDENTIALS, "local")
    if not any(os.environ.get(name) for name in _REGIONS):
        changes["AWS_DEFAULT_REGION"] = region_name
    return changes


def _stop(mock: Any) -> None:
    for name in _CREDENTIALS:
        os.environ.setdefault(name, "local")  # moto deletes these and trips over one that is gone already
    mock.stop()
