"""All state of one `local_agentcore`: memories, control plane, faults, calls, ranker. Gone when it ends."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from moto.bedrockagentcorecontrol.models import BedrockAgentCoreControlBackend

from .calls import CallLog
from .protocol import Row, ServiceError, not_found
from .ranking import Ranker, SentenceEncoder


class Session(NamedTuple):
    """One session of an actor. Stays when its events are deleted."""

    created_at: float
    events: dict[str, dict[str, Any]]
    """As responses show them, by id: `<16 digits, milliseconds of the event's time>#<8 hex digits, order of writing>`,
    so that ids sort by time."""


class Memory:
    """Everything that one memory id holds. Callers hold the world's lock."""

    def __init__(self) -> None:
        self.sessions: dict[tuple[str, str], Session] = {}
        """By actor id and session id, in the order of their beginning."""
        self.records: dict[str, dict[str, Any]] = {}
        """As responses show them, by id, in the order of writing; `expiresAt` is reported, never acted on."""
        self.sequence = itertools.count(1)
        self._answered: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}

    def once(self, operation: str, parameters: dict[str, Any], answer: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return `answer()`, or what it returned for the same `clientToken` before.

        Raises:
            ServiceError: ValidationException, reason IdempotentParameterMismatchException, when the token came
                before with other parameters. A memory store sends an event again with the time of sending, so an
                event's time is none of them.
        """
        token = parameters.get("clientToken")
        asked = json.dumps({**parameters, "eventTimestamp": None}, sort_keys=True)
        if not token:
            return answer()
        if (operation, token) not in self._answered:
            self._answered[operation, token] = (asked, answer())
        asked_before, answered = self._answered[operation, token]
        if asked_before != asked:
            message = "The clientToken was used before with different parameters"
            raise ServiceError("ValidationException", 400, message, reason="IdempotentParameterMismatchException")
        return answered


@dataclass
class Fault:
    """An error that a test asks for."""

    operation: str
    namespace: str | None
    error: Callable[[], Exception]
    left: float
    """How many more requests fail."""


class World:
    """One emulated service.

    Args:
        encoder: Ranks records; None for the package's own encoder, loaded at the first search.
        strict_memory_ids: Whether an id must have been created through the control plane, in the account and
            region of the request. Otherwise every well-formed id names a memory, empty at first and the same
            in every region.
    """

    def __init__(self, encoder: SentenceEncoder | None, *, strict_memory_ids: bool) -> None:
        self.lock = threading.RLock()
        self.thread = threading.get_ident()
        self.calls = CallLog()
        self.faults: list[Fault] = []
        self.delays: dict[tuple[str, str | None], float] = {}
        """Seconds by operation and namespace."""
        self.ranker = Ranker(encoder)
        self.planted: list[tuple[str, Any]] = []
        """Namespaces and summaries that responses repeat as they are."""
        self.closed = threading.Event()
        """Set when the context manager ends: sleeping requests wake up."""
        self._strict = strict_memory_ids
        self._memories: dict[str, Memory] = {}
        self._deleted: set[str] = set()
        self._control: dict[tuple[str, str], BedrockAgentCoreControlBackend] = {}

    def control(self, account_id: str, region_name: str) -> BedrockAgentCoreControlBackend:
        """Return moto's control plane of an account and region, made for this world alone."""
        with self.lock:
            if (account_id, region_name) not in self._control:
                self._control[account_id, region_name] = BedrockAgentCoreControlBackend(region_name, account_id)
            return self._control[account_id, region_name]

    def memory(self, memory_id: str, account_id: str, region_name: str) -> Memory:
        """Return what a memory holds.

        Args:
            memory_id: An id or an ARN.
            account_id: Account of the request.
            region_name: Region of the request.

        Raises:
            ServiceError: ResourceNotFoundException for an id that was deleted through the control plane and, when
                ids are strict, for one that was not created there.
        """
        name = memory_id.rsplit(":memory/", 1)[-1]
        with self.lock:
            unknown = self._strict and name not in self.control(account_id, region_name).memories
            if unknown or name in self._deleted:
                raise not_found(f"Memory not found: {name}")
            return self._memories.setdefault(name, Memory())

    def forget(self, memory_id: str) -> None:
        """Drop a memory and refuse its id from now on."""
        with self.lock:
            self._memories.pop(memory_id, None)
            self._deleted.add(memory_id)

    def planted_in(self, matches: Callable[[str], bool]) -> list[Row]:
        """Return the planted summaries whose namespace passes a test, in the order of planting."""
        with self.lock:
            summaries = [summary for namespace, summary in self.planted if matches(namespace)]
        return [Row(f"planted-{number}", summary) for number, summary in enumerate(summaries)]

    def wait_and_fail(self, operation: str, parameters: dict[str, Any]) -> None:
        """Hold a request up by the longest delay that matches it, then raise the oldest fault that does.

        Raises:
            ServiceError: The fault, when it is an answer of the service.
            HTTPClientError: The fault, when there was no answer.
        """
        named = {name.rstrip("/") for name in _namespaces(parameters)}

        def concerns(what: str, namespace: str | None) -> bool:
            return what == operation and (namespace is None or namespace.rstrip("/") in named)

        with self.lock:
            seconds = max((seconds for rule, seconds in self.delays.items() if concerns(*rule)), default=0.0)
        self.closed.wait(seconds)
        with self.lock:
            fault = next((fault for fault in self.faults if concerns(fault.operation, fault.namespace)), None)
            if fault is None:
                return
            fault.left -= 1
            if not fault.left:
                self.faults.remove(fault)
        raise fault.error()


def _namespaces(parameters: dict[str, Any]) -> Iterator[str]:
    """Yield every namespace that a request names: its scope, and those of the records it writes."""
    for part in [parameters, *parameters.get("records", ())]:
        for name in (part.get("namespace"), part.get("namespacePath"), *part.get("namespaces", ())):
            if name is not None:
                yield name
