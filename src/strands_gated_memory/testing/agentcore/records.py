"""Long-term memory: writing, reading, listing and searching records. A function per operation, named as boto3's is."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.utils import parse_to_aware_datetime

from .protocol import Row, ServiceError, invalid, not_found, page_of
from .ranking import score_of
from .state import Memory, World

NO_STRATEGY = "self-managed"
"""Reported for records written without a strategy; what the service reports there is not documented."""
SYSTEM_METADATA = "x-amz-agentcore-memory-"
"""Metadata keys that begin so are the service's own: writing them is refused."""
DEFAULT_TOP_K = 10
"""Used when a request has no topK. The service has a default too, which its model does not state."""
_DAY_S = 86_400

_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "BEFORE": ("dateTimeValue", operator.lt),
    "AFTER": ("dateTimeValue", operator.gt),
    "GREATER_THAN": ("numberValue", operator.gt),
    "GREATER_THAN_OR_EQUALS": ("numberValue", operator.ge),
    "LESS_THAN": ("numberValue", operator.lt),
    "LESS_THAN_OR_EQUALS": ("numberValue", operator.le),
}

Record = dict[str, Any]
"""As responses show it, without a score."""


def batch_create_memory_records(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Store up to 100 records. Idempotent by `clientToken`.

    What breaks a limit of the service model refuses the whole request. A record alone fails, with errorCode 400 in
    `failedRecords`, when its requestIdentifier came before in the batch or its namespace holds a wildcard.
    """
    _refuse_system_metadata(parameters["records"])
    now = time.time()
    seen: set[str] = set()

    def create(given: dict[str, Any]) -> str:
        if given["requestIdentifier"] in seen:
            raise ServiceError("ValidationException", 400, "requestIdentifier is not unique in the batch")
        seen.add(given["requestIdentifier"])
        _refuse_wildcards(given)
        record_id = f"mem-00000000-0000-4000-8000-{next(memory.sequence):012x}"
        memory.records[record_id] = {
            "memoryRecordId": record_id,
            "content": given["content"],
            "memoryStrategyId": given.get("memoryStrategyId") or NO_STRATEGY,
            "namespaces": given["namespaces"],
            "createdAt": now,
            "timestamp": given["timestamp"],
            "metadata": given.get("metadata"),
            "expiresAt": _expiry(parameters, now, None),
        }
        return record_id

    return memory.once("BatchCreateMemoryRecords", parameters, lambda: _each(parameters, create))


def batch_update_memory_records(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Change up to 100 records; members left out stay. A record alone fails with 404 when it does not exist."""
    _refuse_system_metadata(parameters["records"])
    now = time.time()

    def update(given: dict[str, Any]) -> str:
        record = _record(memory, given)
        _refuse_wildcards(given)
        members = ("content", "namespaces", "memoryStrategyId", "metadata", "timestamp")
        changes = {name: given[name] for name in members if given.get(name) is not None}
        record.update(changes, expiresAt=_expiry(parameters, now, record["expiresAt"]))
        return str(record["memoryRecordId"])

    return _each(parameters, update)


def batch_delete_memory_records(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete up to 100 records. A record alone fails with 404 when it does not exist."""
    return _each(parameters, lambda given: _deleted(memory, given))


def delete_memory_record(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete one record; ResourceNotFoundException when it does not exist."""
    return {"memoryRecordId": _deleted(memory, parameters)}


def get_memory_record(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return one record; ResourceNotFoundException when it does not exist."""
    record = _record(memory, parameters)
    expiry = {"expiresAt": record["expiresAt"]} if record["expiresAt"] is not None else {}
    return {"memoryRecord": _summary(record) | expiry}


def list_memory_records(world: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """List the records of a namespace or namespacePath by id, which is the order of writing; never with a score.

    `maxResults` is 1 to 100, by default 20. Planted summaries of the namespace come first.
    """
    in_scope = _scope_of(parameters)
    records = _matching(memory, in_scope, parameters, "metadataFilters")
    rows = [Row(record["memoryRecordId"], _summary(record)) for record in records]
    return page_of(world.planted_in(in_scope) + rows, "ListMemoryRecords", "memoryRecordSummaries", parameters)


def retrieve_memory_records(world: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Rank the records in scope by the similarity of their stored text, as it is, to the query.

    `searchQuery` has 1 to 10,000 characters; `topK`, 1 to 100, bounds the whole result and `maxResults`, 1 to 100
    and by default 20, a page of it. Equal similarities are in order of the record id. Planted summaries of the
    namespace come first and count towards topK. Takes the lock for a moment only, as it encodes texts.
    """
    criteria = parameters["searchCriteria"]
    in_scope = _scope_of(parameters)
    with world.lock:
        matching = _matching(memory, in_scope, criteria, "searchCriteria.metadataFilters")
        records = [_summary(record) for record in matching]
    cosines = world.ranker.cosines(criteria["searchQuery"], [record["content"]["text"] for record in records])
    ranked = sorted(zip(cosines, records, strict=True), key=lambda row: (-row[0], row[1]["memoryRecordId"]))
    rows = [Row(record["memoryRecordId"], record | {"score": score_of(cosine)}) for cosine, record in ranked]
    best = (world.planted_in(in_scope) + rows)[: criteria.get("topK", DEFAULT_TOP_K)]
    return page_of(best, "RetrieveMemoryRecords", "memoryRecordSummaries", parameters)


def metadata_test(filters: Sequence[Mapping[str, Any]] | None, path: str) -> Callable[[Mapping[str, Any] | None], bool]:
    """Return the test that 1 to 5 filters, all of which must hold, put to metadata.

    - `EXISTS`, `NOT_EXISTS`: the key alone.
    - `EQUALS_TO`: the same kind of value, and equal.
    - `CONTAINS`: a `stringListValue` with the `stringValue` among its members.
    - `BEFORE`, `AFTER`: a `dateTimeValue`. `GREATER_THAN` and its kin: a `numberValue`.

    Metadata without the key, or with a value of another kind, does not match. The service also refuses keys that
    the memory does not index; every key is accepted here.

    Args:
        filters: As in the request; None passes everything.
        path: Where they are in the request, for the error.

    Raises:
        ServiceError: ValidationException when an operator lacks its right side.
    """
    for number, expression in enumerate(filters or (), start=1):
        if expression["operator"] not in ("EXISTS", "NOT_EXISTS") and expression.get("right") is None:
            raise invalid((f"{path}.{number}.member.right", "Member must not be null"))
    return lambda metadata: all(_holds(expression, metadata or {}) for expression in filters or ())


def _holds(expression: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    value = metadata.get(expression["left"]["metadataKey"])
    wanted = expression["operator"]
    if wanted in ("EXISTS", "NOT_EXISTS"):
        return (value is not None) is (wanted == "EXISTS")
    if value is None:
        return False
    right = expression["right"]["metadataValue"]
    if wanted == "CONTAINS":
        return right.get("stringValue") in value.get("stringListValue", ())
    value, right = _comparable(value), _comparable(right)
    if wanted == "EQUALS_TO":
        return bool(value == right)
    kind, compare = _COMPARISONS[wanted]
    return kind in value and kind in right and compare(value[kind], right[kind])


def _comparable(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: parse_to_aware_datetime(content) if kind == "dateTimeValue" else content
        for kind, content in value.items()
    }


def _scope_of(parameters: dict[str, Any]) -> Callable[[str], bool]:
    """Return the test that a request's scope puts to a record's namespace.

    `namespace` matches exactly. `namespacePath` matches as a subtree by whole segments: `/facts/bob/` holds
    `/facts/bob` and `/facts/bob/2026/`, never `/facts/bobby/`; `/` holds everything.

    Raises:
        ServiceError: ValidationException unless exactly one of the two is given.
    """
    exact, path = parameters.get("namespace"), parameters.get("namespacePath")
    if (exact is None) == (path is None):
        message = "Exactly one of namespace and namespacePath must be provided"
        raise invalid(("namespace", message), ("namespacePath", message))
    if path is None:
        return lambda namespace: namespace == exact
    return lambda namespace: f"{namespace.rstrip('/')}/".startswith(f"{path.rstrip('/')}/")


def _matching(memory: Memory, in_scope: Callable[[str], bool], wanted: dict[str, Any], path: str) -> list[Record]:
    """Return the records in scope that pass strategy and metadata filters, in order of writing."""
    passes = metadata_test(wanted.get("metadataFilters"), path)
    strategy = wanted.get("memoryStrategyId")
    return [
        record
        for record in memory.records.values()
        if any(map(in_scope, record["namespaces"]))
        and strategy in (None, record["memoryStrategyId"])
        and passes(record["metadata"])
    ]


def _summary(record: Record) -> Record:
    return {name: value for name, value in record.items() if name != "expiresAt" and value not in (None, {})}


def _record(memory: Memory, named: dict[str, Any]) -> Record:
    record_id = named["memoryRecordId"]
    if record_id not in memory.records:
        raise not_found(f"Memory record not found: {record_id}")
    return memory.records[record_id]


def _deleted(memory: Memory, named: dict[str, Any]) -> str:
    record_id = str(_record(memory, named)["memoryRecordId"])
    del memory.records[record_id]
    return record_id


def _each(parameters: dict[str, Any], work: Callable[[dict[str, Any]], str]) -> dict[str, Any]:
    """Return the response of a batch: for each record, the id that `work` returned, or the error that it raised."""
    answer: dict[str, Any] = {"successfulRecords": [], "failedRecords": []}
    for given in parameters["records"]:
        outcome = {name: given[name] for name in ("requestIdentifier", "memoryRecordId") if name in given}
        try:
            outcome |= {"memoryRecordId": work(given), "status": "SUCCEEDED"}
        except ServiceError as error:
            failure = {"status": "FAILED", "errorCode": error.code, "errorMessage": error.message}
            answer["failedRecords"].append({"memoryRecordId": ""} | outcome | failure)
        else:
            answer["successfulRecords"].append(outcome)
    return answer


def _refuse_wildcards(given: dict[str, Any]) -> None:
    if any("*" in namespace for namespace in given.get("namespaces", ())):
        raise ServiceError("ValidationException", 400, "a record's namespace must not hold a wildcard")


def _refuse_system_metadata(records: list[dict[str, Any]]) -> None:
    problems = [
        (f"records.{number}.member.metadata.{key}", "Member must not be a reserved key")
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
