"""Preferences: `{"context", "preference", "categories"}`, with the spellings seen in the wild.

A context that names an occasion comes first ("Ordering tea: No milk"); one that tells where the preference
is known from comes after, in brackets. No word is added, so a record keeps its language.
"""

from __future__ import annotations

from . import unknown_json
from .context import capitalised, is_occasion
from .fields import by_spelling, without
from .json_text import Child, Json
from .labels import with_category, with_confidence
from .phrasing import joined, labelled

_VALUE_KEYS = ("preference", "fact", "value", "text", "content", "description", "setting", "summary")
_FULL_STOPS = ".。．।۔"


def is_preference(fields: dict[str, Json]) -> bool:
    """Tell whether an object is a preference: it says so, or it sets a text in a context."""
    return "preference" in fields or ("context" in fields and any(key in fields for key in _VALUE_KEYS))


def render(record: dict[str, Json], child: Child) -> str:
    """Return the preference with its context, then whatever else the object says."""
    fields = by_spelling(record)
    context = child(fields.get("context"))
    preference, name = "", "preference"
    for key in _VALUE_KEYS:
        preference = child(fields.get(key))
        if preference:
            name = key
            break
    preference = with_category(preference, fields, child, labelled_already=bool(context) and is_occasion(context))
    rest = unknown_json.render(without(record, {"context", "preference", name}), child)
    return with_confidence(joined([in_context(preference, context), rest]), fields, child)


def in_context(preference: str, context: str) -> str:
    """Return a preference with its context, each one line.

    Args:
        preference: "" leaves the context alone.
        context: "" leaves the preference alone, and so does a context that repeats it.
    """
    if not preference or not context or context.casefold() == preference.casefold():
        return preference or context
    if is_occasion(context):
        return labelled(capitalised(context), preference)
    return f"{preference} ({_bare(context)})"


def _bare(context: str) -> str:
    if context.startswith("(") and context.endswith(")") and context.count("(") == 1:
        context = context[1:-1]
    ends_once = context.endswith(tuple(_FULL_STOPS)) and not context.endswith("..")
    return context[:-1] if ends_once and len(context) > 1 else context
