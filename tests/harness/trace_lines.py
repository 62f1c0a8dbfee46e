"""Recorded turns for the tests of `label` and `replay`, in the schema of version 1."""

from __future__ import annotations

import json


def record(name, probability, keep, namespace="/facts/{actorId}/", *, text=None, reason="relevant"):
    line = {
        "id": name,
        "namespace": namespace,
        "score": 0.4,
        "probability": probability,
        "keep": keep,
        "reason": reason,
    }
    return line if text is None else line | {"text": text, "rendered": text}


def turn(name, probability, records=(), *, namespaces=None, message=None, previous=(), lookups=None, **fields):
    """One line. By default both namespaces were searched where the gate's probability reaches 0.2."""
    spaces = {"/facts/{actorId}/": 0.9, "/preferences/{actorId}/": 0.9} if namespaces is None else namespaces
    is_open = probability is None or probability >= 0.2
    searched = [space for space, p in spaces.items() if is_open and (p is None or p >= 0.2)]
    line = {
        "version": 1,
        "time": "2026-11-30T10:00:00.000Z",
        "turn": name,
        "memory_id": "memory-0123456789",
        "actor_id": "someone",
        "session_id": "session",
        "gate": {
            "outcome": "open" if is_open else "closed",
            "probability": probability,
            "namespaces": spaces,
            "selected": searched,
        },
        "thresholds": {"gate": 0.2, "router": 0.2, "validator": 0.2, "relative": 0.25},
        "questions": {"gate": "gate/criteria/1", "router": "route/criteria/1", "validator": "record/criteria/1"},
        "records": list(records),
        "dropped": [],
        "lookups": [
            {"namespace": space, "ms": 5.0, "records": 1, "error": None, "pinned": False, "cached": False}
            for space in searched
        ]
        if lookups is None
        else lookups,
        "decider_calls": [
            {"stage": "gate", "questions": 3, "ms": 2.0, "error": None, "no_answers": {}, "model": "embedded-1"}
        ],
        "namespaces": list(spaces),
        "block_tokens": 10,
        "ms": 12.0,
        "failure": None,
    }
    if message is not None:
        line |= {"message": message, "previous": list(previous), "block": None}
    return line | fields


def write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
