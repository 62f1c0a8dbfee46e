"""Answers one request: notes it, applies faults and limits, and hands it to the operation."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from . import events, records, search
from .calls import Call
from .errors import ServiceError, cannot_parse
from .limits import check_limits
from .stored import MemoryState
from .world import World

Handler = Callable[[World, MemoryState, dict[str, Any]], dict[str, Any]]

_HANDLERS: dict[str, Handler] = {
    "BatchCreateMemoryRecords": records.batch_create,
    "BatchDeleteMemoryRecords": records.batch_delete,
    "BatchUpdateMemoryRecords": records.batch_update,
    "CreateEvent": events.create_event,
    "DeleteEvent": events.delete_event,
    "DeleteMemoryRecord": records.delete_record,
    "GetEvent": events.get_event,
    "GetMemoryRecord": records.get_record,
    "ListActors": events.list_actors,
    "ListEvents": events.list_events,
    "ListMemoryRecords": records.list_records,
    "ListSessions": events.list_sessions,
}
"""The operations that hold the lock throughout. A search encodes texts, so it takes the lock for a moment only."""

_CREATED = {"BatchCreateMemoryRecords", "CreateEvent"}


class Request(NamedTuple):
    """A request as it arrived."""

    operation: str
    """Wire name."""
    account_id: str
    region_name: str
    located: dict[str, Any]
    """Members from the path and the query string, decoded."""
    body: str
    """JSON, or nothing."""


class Reply(NamedTuple):
    """A response."""

    status: int
    headers: dict[str, str]
    body: str


def answer(world: World, request: Request) -> Reply:
    """Answer a request; the service's errors are answers too.

    Raises:
        HTTPClientError: A network failure was asked for with `LocalAgentCore.fail`.
    """
    try:
        parameters = _parameters(request)
        world.calls.add(Call(request.operation, parameters))
        world.closed.wait(world.faults.seconds_for(request.operation, parameters))
        world.faults.raise_for(request.operation, parameters)
        check_limits(request.operation, parameters)
        body = _handle(world, request, parameters)
    except ServiceError as error:
        return _reply(error.status, error.body(), {"x-amzn-ErrorType": error.code})
    return _reply(201 if request.operation in _CREATED else 200, body, {})


def _handle(world: World, request: Request, parameters: dict[str, Any]) -> dict[str, Any]:
    memory = world.memory(parameters["memoryId"], request.account_id, request.region_name)
    if request.operation == "RetrieveMemoryRecords":
        return search.retrieve(world, memory, parameters)
    with world.lock:
        return _HANDLERS[request.operation](world, memory, parameters)


def _parameters(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(request.body or "{}")
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise cannot_parse("body", "The body must be a JSON object")
    return body | request.located


def _reply(status: int, body: dict[str, Any], headers: dict[str, str]) -> Reply:
    return Reply(status, {"Content-Type": "application/json", **headers}, json.dumps(body))
