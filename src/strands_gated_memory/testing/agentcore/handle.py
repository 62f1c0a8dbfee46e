"""What `local_agentcore` yields: the memory to use, the calls so far, and what may go wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from .calls import CallLog
from .stored import PlantedSummary
from .world import World

_STRATEGIES: dict[str, tuple[str, str]] = {
    "semanticMemoryStrategy": ("facts", "/facts/{actorId}/"),
    "userPreferenceMemoryStrategy": ("preferences", "/preferences/{actorId}/"),
    "summaryMemoryStrategy": ("summaries", "/summaries/{actorId}/{sessionId}/"),
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
        self._world.faults.fail(operation, error_code, times=times, namespace=namespace, status=status, message=message)

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
        self._world.faults.delay(operation, seconds, namespace=namespace)

    def clear_faults(self) -> None:
        """Remove every fault and every delay."""
        self._world.faults.clear()

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
        planted = PlantedSummary(namespace, json.loads(json.dumps(summary, default=_json_value)))
        with self._world.lock:
            self._world.planted.append(planted)

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
