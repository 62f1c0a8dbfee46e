"""Short-term memory: events, sessions, actors. A function per operation, named as boto3's method is."""

from __future__ import annotations

import time
import uuid
from typing import Any

from botocore.utils import parse_to_aware_datetime

from .protocol import Row, not_found, page_of
from .records import metadata_test
from .state import Memory, Session, World

MAIN_BRANCH = "main"

Event = dict[str, Any]
"""As responses show it; without `branch` on the main branch."""


def create_event(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Store an event. Idempotent by `clientToken`; without a `sessionId` a new session is made.

    Raises:
        ServiceError: ValidationException for a token used differently before; ResourceNotFoundException for an unknown
            `rootEventId`.
    """
    return memory.once("CreateEvent", parameters, lambda: _created(memory, parameters))


def _created(memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    session_id = parameters.get("sessionId") or uuid.uuid4().hex
    seconds = parse_to_aware_datetime(parameters["eventTimestamp"]).timestamp()
    key = (parameters["actorId"], session_id)
    session = memory.sessions.get(key) or Session(time.time(), {})
    event = _ids(parameters) | {
        "sessionId": session_id,
        "eventId": f"{max(0, round(seconds * 1000)):016d}#{next(memory.sequence):08x}",
        "eventTimestamp": seconds,
        "payload": parameters["payload"],
    }
    if parameters.get("metadata"):
        event["metadata"] = parameters["metadata"]
    if parameters.get("branch") and parameters["branch"]["name"] != MAIN_BRANCH:
        event["branch"] = _rooted(parameters["branch"], session)
    memory.sessions[key] = session
    session.events[event["eventId"]] = event
    return {"event": event}


def get_event(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return one event with its payload; ResourceNotFoundException when there is none."""
    events = _events(memory, parameters)
    if parameters["eventId"] not in events:
        raise not_found(f"Event not found: {parameters['eventId']}")
    return {"event": events[parameters["eventId"]] | _ids(parameters)}


def delete_event(world: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """Delete one event; ResourceNotFoundException when there is none."""
    get_event(world, memory, parameters)
    del _events(memory, parameters)[parameters["eventId"]]
    return {"eventId": parameters["eventId"]}


def list_events(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """List a session's events, newest first by `eventTimestamp`, the later written first among equals.

    `maxResults` is 1 to 100, by default 20. Payloads come only with `includePayloads`. Metadata filters, 1 to 5,
    must all hold. An unknown session has no events.
    """
    wanted = parameters.get("filter") or {}
    passes = metadata_test(wanted.get("eventMetadata"), "filter.eventMetadata")
    events = [event for _, event in sorted(_events(memory, parameters).items(), reverse=True)]
    if wanted.get("branch"):
        events = _of_branch(events, wanted["branch"])
    left_out = () if parameters.get("includePayloads") else ("payload",)
    rows = [
        Row(event["eventId"], {name: value for name, value in event.items() if name not in left_out} | _ids(parameters))
        for event in events
        if passes(event.get("metadata"))
    ]
    return page_of(rows, "ListEvents", "events", parameters)


def list_sessions(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """List an actor's sessions, newest first; with `HAS_EVENTS`, only those that still have events."""
    actor_id = parameters["actorId"]
    only_with_events = (parameters.get("filter") or {}).get("eventFilter") == "HAS_EVENTS"
    rows = [
        Row(session_id, {"sessionId": session_id, "actorId": actor_id, "createdAt": session.created_at})
        for (of, session_id), session in reversed(memory.sessions.items())
        if of == actor_id and (session.events or not only_with_events)
    ]
    return page_of(rows, "ListSessions", "sessionSummaries", parameters)


def list_actors(_: World, memory: Memory, parameters: dict[str, Any]) -> dict[str, Any]:
    """List the actors that have sessions, by id."""
    actors = sorted({actor_id for actor_id, _ in memory.sessions})
    rows = [Row(actor_id, {"actorId": actor_id}) for actor_id in actors]
    return page_of(rows, "ListActors", "actorSummaries", parameters)


def _ids(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in ("memoryId", "actorId", "sessionId") if name in parameters}


def _events(memory: Memory, parameters: dict[str, Any]) -> dict[str, Event]:
    session = memory.sessions.get((parameters["actorId"], parameters["sessionId"]))
    return session.events if session else {}


def _branch_of(event: Event) -> str:
    return str(event.get("branch", {}).get("name", MAIN_BRANCH))


def _rooted(branch: dict[str, Any], session: Session) -> dict[str, Any]:
    """Return a branch with the event it starts from, which later events of the branch need not repeat."""
    root = branch.get("rootEventId")
    if root is None:
        branches = (event["branch"] for event in session.events.values() if _branch_of(event) == branch["name"])
        return dict(next(branches, branch))
    if root not in session.events:
        raise not_found(f"Root event not found: {root}")
    return branch


def _of_branch(events: list[Event], wanted: dict[str, Any]) -> list[Event]:
    """Keep a branch's events and, if asked for, those of its parents up to the events it starts from."""
    by_id = {event["eventId"]: event for event in events}
    name, last = wanted["name"], max(by_id, default="")
    names: set[str] = set()
    kept: set[str] = set()
    while name not in names:
        names.add(name)
        own = [event for event in events if _branch_of(event) == name]
        kept |= {event["eventId"] for event in own if event["eventId"] <= last}
        root_id = next((event["branch"].get("rootEventId") for event in own if "branch" in event), None)
        if root_id not in by_id or not wanted.get("includeParentBranches"):
            break
        last, name = root_id, _branch_of(by_id[root_id])
    return [event for event in events if event["eventId"] in kept]
