"""Writes records through a real boto3 client, so that a seed passes the checks that any other writer meets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Protocol

BATCH = 100
"""The service's limit of records per request."""


class SeedRecord(Protocol):
    """What a seed needs; `strands_gated_memory.core.types.Record` has it."""

    @property
    def text(self) -> str:
        """The text to store, 1 to 16,000 characters."""

    @property
    def namespace(self) -> str:
        """Where; `{actorId}` is filled when an actor id is given."""


class SeedError(RuntimeError):
    """Some records were refused.

    Args:
        failed: The service's answer for each refused record; `index` is its place in the seed.
        created: The ids of the records that were stored before or beside them.
    """

    def __init__(self, failed: Sequence[Mapping[str, Any]], created: Sequence[str]) -> None:
        reasons = "; ".join(
            f"record {row['index']}: {row.get('errorCode')} {row.get('errorMessage')}" for row in failed
        )
        super().__init__(f"{len(failed)} of the records were refused, {len(created)} were stored: {reasons}")
        self.failed = tuple(failed)
        self.created = tuple(created)


def seed_records(
    client: Any,
    memory_id: str,
    records: Iterable[SeedRecord | Mapping[str, Any]],
    *,
    actor_id: str | None = None,
) -> list[str]:
    """Store records with `batch_create_memory_records`, at most 100 per request.

    Args:
        client: A `bedrock-agentcore` boto3 client, of the emulation or of AWS.
        memory_id: The memory.
        records: Objects or mappings with `text` and `namespace`, and optionally `metadata` (values as boto3 wants
            them, or plain strings, numbers, datetimes and lists of strings), `timestamp` or `created_at` (a datetime
            or seconds; now by default; sent as the record's source time, as createdAt is the service's own), and
            `memory_strategy_id`.
        actor_id: Fills `{actorId}` in namespaces.

    Returns:
        The new ids, in the order of the records.

    Raises:
        ValueError: A namespace still holds a placeholder; nothing was sent.
        SeedError: The service refused some records; names them. Later batches are not sent.
        ClientError: The service refused a request.
    """
    inputs = [_input(index, record, actor_id) for index, record in enumerate(records)]
    ids: list[str] = []
    for start in range(0, len(inputs), BATCH):
        batch = inputs[start : start + BATCH]
        answer = client.batch_create_memory_records(memoryId=memory_id, records=batch)
        created = {row["requestIdentifier"]: row["memoryRecordId"] for row in answer["successfulRecords"]}
        ids += [created[row["requestIdentifier"]] for row in batch if row["requestIdentifier"] in created]
        failed = [{"index": int(row["requestIdentifier"].split("-")[1]), **row} for row in answer["failedRecords"]]
        if failed:
            raise SeedError(failed, ids)
    return ids


def _input(index: int, record: SeedRecord | Mapping[str, Any], actor_id: str | None) -> dict[str, Any]:
    def read(name: str) -> Any:
        return record.get(name) if isinstance(record, Mapping) else getattr(record, name, None)

    text, namespace = read("text"), read("namespace")
    if text is None or namespace is None:
        raise ValueError(f"record {index} needs a text and a namespace, got {record!r}")
    if actor_id is not None:
        namespace = namespace.replace("{actorId}", actor_id)
    unfilled = re.findall(r"\{[^{}]*\}", namespace)
    if unfilled:
        raise ValueError(f"record {index}: namespace {namespace!r} still holds {', '.join(unfilled)}")
    timestamp = read("timestamp")
    if timestamp is None:
        timestamp = read("created_at")
    sent: dict[str, Any] = {
        "requestIdentifier": f"seed-{index}",
        "namespaces": [namespace],
        "content": {"text": text},
        "timestamp": datetime.now(timezone.utc) if timestamp is None else timestamp,
    }
    metadata = read("metadata")
    if metadata:
        sent["metadata"] = {key: _metadata_value(value) for key, value in metadata.items()}
    if read("memory_strategy_id"):
        sent["memoryStrategyId"] = read("memory_strategy_id")
    return sent


def _metadata_value(value: Any) -> Any:
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, datetime):
        return {"dateTimeValue": value}
    if isinstance(value, int | float):
        return {"numberValue": float(value)}
    if isinstance(value, list | tuple):
        return {"stringListValue": list(value)}
    return value
