"""What botocore's model of the data plane says: operations, their input shapes, their errors.

Read once per process. Nothing here knows about moto or about stored data.
"""

from __future__ import annotations

from functools import cache
from typing import Any

MEMORY_OPERATIONS = (
    "BatchCreateMemoryRecords",
    "BatchDeleteMemoryRecords",
    "BatchUpdateMemoryRecords",
    "CreateEvent",
    "DeleteEvent",
    "DeleteMemoryRecord",
    "GetEvent",
    "GetMemoryRecord",
    "ListActors",
    "ListEvents",
    "ListMemoryRecords",
    "ListSessions",
    "RetrieveMemoryRecords",
)
"""The operations that `local_agentcore` answers, by their wire names."""


@cache
def service_model() -> Any:
    """Return botocore's `ServiceModel` of `bedrock-agentcore`."""
    from botocore.loaders import Loader
    from botocore.model import ServiceModel

    return ServiceModel(Loader().load_service_model("bedrock-agentcore", "service-2"), "bedrock-agentcore")


@cache
def operation_model(operation: str) -> Any:
    """Return botocore's `OperationModel` of an operation, by its wire name."""
    return service_model().operation_model(operation)


def wire_name(operation: str) -> str:
    """Return the wire name of an operation.

    Args:
        operation: `"RetrieveMemoryRecords"` or `"retrieve_memory_records"`.

    Raises:
        ValueError: It is not one of `MEMORY_OPERATIONS`.
    """
    camel = "".join(part[:1].upper() + part[1:] for part in operation.split("_"))
    if camel not in MEMORY_OPERATIONS:
        raise ValueError(f"{operation!r} is not emulated; choose one of {', '.join(MEMORY_OPERATIONS)}")
    return camel


def error_statuses(operation: str) -> dict[str, int]:
    """Return the HTTP status of each error that the model lists for an operation, by error code."""
    return {
        shape.name: int(shape.metadata["error"]["httpStatusCode"]) for shape in operation_model(operation).error_shapes
    }
