"""Episodes and the reflections drawn from them.

An episode becomes "<situation>: <intent>; <outcome>; <reflection>; <its steps, within a bound>", a reflection
"<title>: <use cases>; <hints>".
"""

from __future__ import annotations

from . import unknown_json
from .fields import by_spelling, without
from .json_text import Child, Json
from .labels import with_confidence
from .phrasing import joined, labelled

_SITUATION = ("situation", "description")
_INTENT = ("intent", "user_intent", "goal")
_VERDICT = ("assessment", "assessment_user", "assessment_assistant")
_OUTCOME = ("justification", "finding", "outcome", "result")
_LESSON = ("reflection", "lesson", "lessons")
_STEP = ("action", "thought")
_EPISODE_KEYS = frozenset((*_SITUATION, *_INTENT, *_VERDICT, *_OUTCOME, *_LESSON, *_STEP))
_TELLING_KEYS = frozenset({"situation", "intent", "user_intent", *_VERDICT, "justification", "finding", "reflection"})
_REFLECTION_KEYS = frozenset({"title", "use_cases", "hints"})
_STEPS = ("turns", "steps", "actions")
_STEPS_CHARACTERS = 600
"""How much of an episode's steps is kept: the first ones, whole."""
_HANDLED = _EPISODE_KEYS | {*_STEPS, "operator"}
_YES = frozenset({"yes", "true", "ja", "sí", "si", "oui", "sim", "да", "はい", "是", "예", "네", "نعم"})
_NO = frozenset({"no", "false", "nein", "non", "não", "нет", "いいえ", "否", "아니요", "لا", "partial", "partially"})


def is_episode(fields: dict[str, Json]) -> bool:
    """Tell whether an object is an episode: it has a situation or turns, or two other fields of one."""
    return (
        "situation" in fields
        or isinstance(fields.get("turns"), (list, dict))
        or (len(fields.keys() & _EPISODE_KEYS) > 1 and bool(fields.keys() & _TELLING_KEYS))
    )


def is_reflection(fields: dict[str, Json]) -> bool:
    """Tell whether an object is a reflection: two of title, use cases and hints."""
    return len(fields.keys() & _REFLECTION_KEYS) > 1


def render(record: dict[str, Json], child: Child) -> str:
    """Return an episode as a line, then whatever else the object says."""
    fields = by_spelling(record)
    situation = _first(fields, _SITUATION, child)
    body = [
        _first(fields, _INTENT, child),
        _outcome(fields, child),
        *(child(fields.get(key)) for key in _STEP),
        _first(fields, _LESSON, child),
    ]
    rest = unknown_json.render(without(record, _HANDLED), child)
    line = joined([labelled(situation, joined(body)), rest, within_bound(_steps(fields, child))])
    return with_confidence(line, fields, child)


def within_bound(steps: list[str]) -> str:
    """Return the first of an episode's steps, as many as fit, in one line; of a single long one its start."""
    kept: list[str] = []
    left = _STEPS_CHARACTERS
    for step in filter(None, steps):
        if len(step) > left:
            kept.append("…" if kept else step[:left].rsplit(" ", 1)[0] + "…")
            break
        kept.append(step)
        left -= len(step)
    return joined(kept)


def render_reflection(record: dict[str, Json], child: Child) -> str:
    """Return a reflection as a line, then whatever else the object says."""
    fields = by_spelling(record)
    body = joined(child(fields.get(key)) for key in ("use_cases", "hints"))
    rest = unknown_json.render(without(record, _REFLECTION_KEYS | {"operator"}), child)
    return with_confidence(joined([labelled(child(fields.get("title")), body), rest]), fields, child)


def _steps(fields: dict[str, Json], child: Child) -> list[str]:
    found: list[str] = []
    for key in _STEPS:
        steps = fields.get(key)
        listed = steps if isinstance(steps, list) else [steps]
        found += [render(step, child) if isinstance(step, dict) else child(step) for step in listed]
    return found


def _outcome(fields: dict[str, Json], child: Child) -> str:
    """Return what came of it; a bare "Yes" is left out where a justification says the same in words."""
    verdict = _first(fields, _VERDICT, child)
    reason = _first(fields, _OUTCOME, child)
    bare = verdict.casefold().rstrip(".!")
    if bare in _YES and reason:
        return reason
    if bare in _YES | _NO:
        verdict = f"assessment: {verdict}"
    return joined([verdict, reason])


def _first(fields: dict[str, Json], names: tuple[str, ...], child: Child) -> str:
    """Return the aliases of one slot that hold something, mostly one."""
    return joined(child(fields.get(name)) for name in names)
