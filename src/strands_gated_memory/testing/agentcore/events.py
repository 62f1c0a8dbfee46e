"""Short-term memory: events, sessions, actors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

from .errors import FieldProblem, invalid, not_found
from .limits import seconds_since_epoch
from .paging import page_of
from .stored import MemoryState, StoredEvent, StoredSession
from .world import World

MAIN_BRANCH = "main"


def create_event(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Store an event. Idempotent by `clientToken`; without a `sessionId` a new session is made.

    Raises:
        ServiceError: ValidationException past a limit or for a token used differently before;
            ResourceNotFoundException for an unknown `rootEventId`.
    """
    return memory.once("CreateEvent", parameters, lambda asked: _create_event(memory, asked))


def _create_event(memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    actor_id = parameters["actorId"]
    session_id = parameters.get("sessionId") or uuid.uuid4().hex
    timestamp = seconds_since_epoch(parameters["eventTimestamp"], "eventTimestamp")
    branch = parameters.get("branch")
    if branch and branch["name"] == MAIN_BRANCH:
        branch = None
    session = memory.sessions.get((actor_id, session_id))
    if branch:
        branch = _rooted(branch, session)
    sequence = memory.next_sequence()
    if session is None:
        session = memory.sessions[actor_id, session_id] = StoredSession(time.time(), sequence)
    event = StoredEvent(
        event_id=f"{max(0, round(timestamp * 1000)):016d}#{sequence:08x}",
        timestamp=timestamp,
        sequence=sequence,
        payload=parameters["payload"],
        metadata=parameters.get("metadata") or {},
        branch=branch,
    )
    session.events[event.event_id] = event
    return {"event": _event_body(event, _ids(parameters) | {"sessionId": session_id}, with_payload=True)}


def get_event(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return one event with its payload; ResourceNotFoundException when there is none."""
    return {"event": _event_body(_event(memory, parameters), _ids(parameters), with_payload=True)}


def delete_event(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete one event; ResourceNotFoundException when there is none."""
    event = _event(memory, parameters)
    del memory.sessions[parameters["actorId"], parameters["sessionId"]].events[event.event_id]
    return {"eventId": event.event_id}


def list_events(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """List a session's events, newest first by `eventTimestamp`, the later written first among equals.

    `maxResults` is 1 to 100, by default 20. Payloads come only with `includePayloads`. Metadata filters, 1 to 5,
    must all hold. An unknown session has no events.
    """
    session = memory.sessions.get((parameters["actorId"], parameters["sessionId"]))
    wanted = parameters.get("filter") or {}
    events = sorted(session.events.values(), key=lambda event: event.newest_first) if session else []
    if wanted.get("branch"):
        events = _of_branch(events, wanted["branch"])
    for number, expression in enumerate(wanted.get("eventMetadata") or (), start=1):
        if expression["operator"] == "EQUALS_TO" and expression.get("right") is None:
            raise invalid(FieldProblem(f"filter.eventMetadata.{number}.member.right", "Member must not be null"))
        events = [event for event in events if _holds(expression, event.metadata)]
    page = page_of(events, lambda event: event.newest_first, "ListEvents", parameters)
    ids, with_payload = _ids(parameters), bool(parameters.get("includePayloads"))
    bodies = [_event_body(event, ids, with_payload=with_payload) for event in page.items]
    return page._replace(items=bodies).as_response("events")


def list_sessions(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """List an actor's sessions, newest first; with `HAS_EVENTS`, only those that still have events."""
    actor_id = parameters["actorId"]
    only_with_events = (parameters.get("filter") or {}).get("eventFilter") == "HAS_EVENTS"
    rows = [
        (-session.sequence, {"sessionId": session_id, "actorId": actor_id, "createdAt": session.created_at})
        for (of, session_id), session in reversed(memory.sessions.items())
        if of == actor_id and (session.events or not only_with_events)
    ]
    page = page_of(rows, lambda row: (row[0],), "ListSessions", parameters)
    return page._replace(items=[body for _, body in page.items]).as_response("sessionSummaries")


def list_actors(_: World, memory: MemoryState, parameters: dict[str, Any]) -> dict[str, Any]:
    """List the actors that have sessions, by id."""
    actors = sorted({actor_id for actor_id, _ in memory.sessions})
    page = page_of(actors, lambda actor_id: (actor_id,), "ListActors", parameters)
    return page._replace(items=[{"actorId": actor_id} for actor_id in page.items]).as_response("actorSummaries")


def _ids(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in ("memoryId", "actorId", "sessionId") if name in parameters}


def _event_body(event: StoredEvent, ids: dict[str, Any], *, with_payload: bool) -> dict[str, Any]:
    body = ids | {"eventId": event.event_id, "eventTimestamp": event.timestamp}
    if with_payload:
        body["payload"] = event.payload
    if event.branch:
        body["branch"] = event.branch
    if event.metadata:
        body["metadata"] = event.metadata
    return body


def _event(memory: MemoryState, parameters: Mapping[str, Any]) -> StoredEvent:
    session = memory.sessions.get((parameters["actorId"], parameters["sessionId"]))
    event = session.events.get(parameters["eventId"]) if session else None
    if event is None:
        raise not_found(f"Event not found: {parameters['eventId']}")
    return event


def _rooted(branch: dict[str, Any], session: StoredSession | None) -> dict[str, Any]:
    """Return a branch with the event it starts from, which later events of the branch need not repeat."""
    known = session.events if session else {}
    root = branch.get("rootEventId")
    if root is not None and root not in known:
        raise not_found(f"Root event not found: {root}")
    if root is None:
        roots = (event.branch for event in known.values() if event.branch and event.branch["name"] == branch["name"])
        return dict(next(roots, branch))
    return branch


def _of_branch(events: list[StoredEvent], wanted: Mapping[str, Any]) -> list[StoredEvent]:
    """Keep a branch's events and, if asked for, those of its parents up to the events it starts from."""
    name, kept = wanted["name"], []
    before: tuple[float, int] | None = None
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        own = [event for event in events if (event.branch or {}).get("name", MAIN_BRANCH) == name]
        kept += [event for event in own if before is None or event.newest_first >= before]
        root_id = next((event.branch.get("rootEventId") for event in own if event.branch), None)
        root = next((event for event in events if event.event_id == root_id), None)
        if root is None or not wanted.get("includeParentBranches"):
            break
        before = root.newest_first
        name = (root.branch or {}).get("name", MAIN_BRANCH)
    return sorted(kept, key=lambda event: event.newest_first)


def _holds(expression: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    key = expression["left"]["metadataKey"]
    if expression["operator"] == "EXISTS":
        return key in metadata
    if expression["operator"] == "NOT_EXISTS":
        return key not in metadata
    return bool(key in metadata and metadata[key] == expression["right"]["metadataValue"])
