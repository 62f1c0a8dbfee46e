"""Long-term memory: writing, reading and listing records. Searching them is in `search`."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from .errors import FieldProblem, invalid, not_found
from .limits import seconds_since_epoch
from .metadata_filters import metadata_test
from .namespaces import scope_of
from .paging import page_of
from .stored import MemoryState, StoredRecord
from .world import World

NO_STRATEGY = "self-managed"
"""Reported for records written without a strategy; what the service reports there is not documented."""
SYSTEM_METADATA = "x-amz-agentcore-memory-"
"""Metadata keys that begin so are the service's own: writing them is refused."""
_DAY_S = 86_400
_BAD, _MISSING = 400, 404


def batch_create(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Store up to 100 records. Idempotent by `clientToken`.

    What breaks a limit of the service model refuses the whole request. A record alone fails, with errorCode 400 in
    `failedRecords`, when its requestIdentifier came before in the batch or its namespace holds a wildcard.
    """
    return memory.once("BatchCreateMemoryRecords", parameters, lambda asked: _batch_create(memory, asked))


def _batch_create(memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    _refuse_system_metadata(parameters["records"])
    now = time.time()
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    seen: set[str] = set()
    for given in parameters["records"]:
        identifier = given["requestIdentifier"]
        trouble = "requestIdentifier is not unique in the batch" if identifier in seen else _namespace_trouble(given)
        seen.add(identifier)
        if trouble:
            failed.append(_outcome("", _BAD, trouble) | {"requestIdentifier": identifier})
            continue
        record = StoredRecord(
            record_id=f"mem-00000000-0000-4000-8000-{memory.next_sequence():012x}",
            text=given["content"]["text"],
            namespaces=tuple(given["namespaces"]),
            strategy_id=given.get("memoryStrategyId") or NO_STRATEGY,
            created_at=now,
            timestamp=seconds_since_epoch(given["timestamp"], "timestamp"),
            metadata=given.get("metadata"),
            expires_at=_expiry(parameters, now, None),
        )
        memory.records[record.record_id] = record
        done.append(_outcome(record.record_id) | {"requestIdentifier": identifier})
    return {"successfulRecords": done, "failedRecords": failed}


def batch_update(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Change up to 100 records; members left out stay. A record alone fails with 404 when it does not exist."""
    _refuse_system_metadata(parameters["records"])
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for given in parameters["records"]:
        record = memory.records.get(given["memoryRecordId"])
        trouble = _namespace_trouble(given)
        if record is None or trouble:
            code, why = (_MISSING, "Memory record not found") if record is None else (_BAD, str(trouble))
            failed.append(_outcome(given["memoryRecordId"], code, why))
            continue
        changed: dict[str, Any] = {
            "timestamp": seconds_since_epoch(given["timestamp"], "timestamp"),
            "expires_at": _expiry(parameters, time.time(), record.expires_at),
        }
        if given.get("content"):
            changed["text"] = given["content"]["text"]
        if given.get("namespaces") is not None:
            changed["namespaces"] = tuple(given["namespaces"])
        if given.get("memoryStrategyId"):
            changed["strategy_id"] = given["memoryStrategyId"]
        if given.get("metadata") is not None:
            changed["metadata"] = given["metadata"]
        memory.records[record.record_id] = replace(record, **changed)
        done.append(_outcome(record.record_id))
    return {"successfulRecords": done, "failedRecords": failed}


def batch_delete(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete up to 100 records. A record alone fails with 404 when it does not exist."""
    done: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for given in parameters["records"]:
        if memory.records.pop(given["memoryRecordId"], None) is None:
            failed.append(_outcome(given["memoryRecordId"], _MISSING, "Memory record not found"))
        else:
            done.append(_outcome(given["memoryRecordId"]))
    return {"successfulRecords": done, "failedRecords": failed}


def delete_record(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete one record; ResourceNotFoundException when it does not exist."""
    record = _record(memory, parameters)
    del memory.records[record.record_id]
    return {"memoryRecordId": record.record_id}


def get_record(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return one record; ResourceNotFoundException when it does not exist."""
    record = _record(memory, parameters)
    body = summary_of(record)
    if record.expires_at is not None:
        body["expiresAt"] = record.expires_at
    return {"memoryRecord": body}


def list_records(world: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """List the records of a namespace or namespacePath by id, which is the order of writing; never with a score.

    `maxResults` is 1 to 100, by default 20. Planted summaries of the namespace come first.
    """
    matches = scope_of(parameters)
    records = matching(memory, parameters, parameters.get("memoryStrategyId"), parameters.get("metadataFilters"))
    rows = [((0, index, ""), summary) for index, summary in enumerate(world.planted_in(matches))]
    rows += [((1, 0, record.record_id), summary_of(record)) for record in records]
    page = page_of(rows, lambda row: row[0], "ListMemoryRecords", parameters)
    return page._replace(items=[body for _, body in page.items]).as_response("memoryRecordSummaries")


def matching(memory: MemoryState, parameters: dict[str, Any], strategy_id: str | None, filters: Any) -> list[Any]:
    """Return the records in a request's scope that pass its strategy and metadata filters, in order of writing."""
    in_scope = scope_of(parameters)
    path = "searchCriteria.metadataFilters" if "searchCriteria" in parameters else "metadataFilters"
    passes = metadata_test(filters, path)
    return [
        record
        for record in memory.records.values()
        if any(map(in_scope, record.namespaces))
        and strategy_id in (None, record.strategy_id)
        and passes(record.metadata)
    ]


def summary_of(record: StoredRecord) -> dict[str, Any]:
    """Return a record as responses show it, without a score."""
    body: dict[str, Any] = {
        "memoryRecordId": record.record_id,
        "content": {"text": record.text},
        "memoryStrategyId": record.strategy_id,
        "namespaces": list(record.namespaces),
        "createdAt": record.created_at,
        "timestamp": record.timestamp,
    }
    if record.metadata:
        body["metadata"] = record.metadata
    return body


def _record(memory: MemoryState, parameters: dict[str, Any]) -> StoredRecord:
    found = memory.records.get(parameters["memoryRecordId"])
    if found is None:
        raise not_found(f"Memory record not found: {parameters['memoryRecordId']}")
    return found


def _outcome(record_id: str, code: int | None = None, message: str | None = None) -> dict[str, Any]:
    if code is None:
        return {"memoryRecordId": record_id, "status": "SUCCEEDED"}
    return {"memoryRecordId": record_id, "status": "FAILED", "errorCode": code, "errorMessage": message}


def _namespace_trouble(given: dict[str, Any]) -> str | None:
    wild = any("*" in namespace for namespace in given.get("namespaces") or ())
    return "a record's namespace must not hold a wildcard" if wild else None


def _refuse_system_metadata(records: list[dict[str, Any]]) -> None:
    problems = [
        FieldProblem(f"records.{number}.member.metadata.{key}", "Member must not be a reserved key")
        for number, record in enumerate(records, start=1)
        for key in record.get("metadata") or ()
        if key.startswith(SYSTEM_METADATA)
    ]
    if problems:
        raise invalid(*problems)


def _expiry(parameters: dict[str, Any], now: float, current: float | None) -> float | None:
    wanted = parameters.get("recordExpirySpecification") or {}
    if "recordExpiryDurationDays" in wanted:
        return now + float(wanted["recordExpiryDurationDays"]) * _DAY_S
    return None if wanted.get("action") == "REMOVE" else current
