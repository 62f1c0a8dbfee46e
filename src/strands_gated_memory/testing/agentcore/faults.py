"""Errors and delays that a test asks for, matched to requests by operation and namespace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .errors import ServiceError
from .namespaces import same_namespace
from .service_model import error_statuses, wire_name

NETWORK_ERRORS = ("ConnectTimeoutError", "EndpointConnectionError", "ReadTimeoutError")
"""Failures without an answer; raised as botocore raises them, retries included."""


@dataclass
class _Fault:
    operation: str
    namespace: str | None
    code: str
    status: int
    message: str
    left: int | None
    """How many more requests fail; None for all."""


@dataclass(frozen=True)
class _Delay:
    operation: str
    namespace: str | None
    seconds: float


class FaultBoard:
    """The faults and delays in force. Safe to change while requests are running."""

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._delays: list[_Delay] = []
        self._lock = threading.Lock()

    def fail(
        self,
        operation: str,
        error_code: str,
        *,
        times: int | None,
        namespace: str | None,
        status: int | None,
        message: str | None,
    ) -> None:
        """Add a fault; see `LocalAgentCore.fail`."""
        name = wire_name(operation)
        modelled = error_statuses(name)
        if status is None and error_code not in modelled and error_code not in NETWORK_ERRORS:
            known = ", ".join([*sorted(modelled), *NETWORK_ERRORS])
            raise ValueError(f"{error_code!r} is no error of {name}: give its status=, or choose one of {known}")
        if times is not None and times < 1:
            raise ValueError(f"times must be at least 1, or None for every request, got {times}")
        text = message or f"{error_code} injected by local_agentcore"
        fault = _Fault(name, namespace, error_code, status or modelled.get(error_code, 0), text, times)
        with self._lock:
            self._faults.append(fault)

    def delay(self, operation: str, seconds: float, *, namespace: str | None) -> None:
        """Add a delay; see `LocalAgentCore.delay`."""
        if seconds < 0:
            raise ValueError(f"seconds must not be negative, got {seconds}")
        added = _Delay(wire_name(operation), namespace, seconds)
        with self._lock:
            replaced = (added.operation, added.namespace)
            self._delays = [delay for delay in self._delays if (delay.operation, delay.namespace) != replaced]
            self._delays.append(added)

    def clear(self) -> None:
        """Remove every fault and delay."""
        with self._lock:
            self._faults.clear()
            self._delays.clear()

    def seconds_for(self, operation: str, parameters: dict[str, Any]) -> float:
        """Return how long a request waits: the longest delay that matches it, else 0."""
        with self._lock:
            return max((delay.seconds for delay in self._delays if _matches(delay, operation, parameters)), default=0.0)

    def raise_for(self, operation: str, parameters: dict[str, Any]) -> None:
        """Raise the oldest fault that matches a request, and use up one of its times.

        Raises:
            ServiceError: The fault, when it is an answer of the service.
            HTTPClientError: The fault, when it is one of `NETWORK_ERRORS`.
        """
        with self._lock:
            fault = next((fault for fault in self._faults if _matches(fault, operation, parameters)), None)
            if fault is None:
                return
            if fault.left is not None:
                fault.left -= 1
                if fault.left == 0:
                    self._faults.remove(fault)
        if fault.status == 0:
            import botocore.exceptions

            error: type[Exception] = getattr(botocore.exceptions, fault.code)
            raise error(endpoint_url="https://bedrock-agentcore.local", error=fault.message)  # type: ignore[call-arg]
        raise ServiceError(fault.code, fault.status, fault.message)


def _matches(rule: _Fault | _Delay, operation: str, parameters: dict[str, Any]) -> bool:
    if rule.operation != operation:
        return False
    wanted = rule.namespace
    return wanted is None or any(same_namespace(wanted, name) for name in _namespaces(parameters))


def _namespaces(parameters: dict[str, Any]) -> Iterator[str]:
    """Yield every namespace that a request names: its scope, and those of the records it writes."""
    records = parameters.get("records")
    for part in [parameters, *(records if isinstance(records, list) else [])]:
        if isinstance(part, dict):
            several = part.get("namespaces")
            named = [part.get("namespace"), part.get("namespacePath"), *(several if isinstance(several, list) else [])]
            yield from (name for name in named if isinstance(name, str))
