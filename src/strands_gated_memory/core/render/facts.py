"""Facts, and other objects that only carry one text: `{"language": ..., "fact": ...}` becomes the fact."""

from __future__ import annotations

from . import unknown_json
from .fields import LABELS, by_spelling, without
from .json_text import Child, Json
from .labels import with_category, with_confidence
from .phrasing import joined

_CARRIERS = frozenset(
    {"fact", "facts", "memory", "memories", "preferences", "records"}
    | {"value", "text", "content", "description", "setting", "summary"}
)


def is_fact(fields: dict[str, Json]) -> bool:
    """Tell whether an object is a fact, or holds nothing but one field that is known to carry the text."""
    return "fact" in fields or (len(fields.keys() - LABELS) == 1 and bool(fields.keys() & _CARRIERS))


def render(record: dict[str, Json], child: Child) -> str:
    """Return the fact, then whatever else the object says."""
    fields = by_spelling(record)
    name = "fact" if "fact" in fields else next(key for key in fields if key in _CARRIERS)
    fact = with_category(child(fields[name]), fields, child)
    rest = unknown_json.render(without(record, {name}), child)
    return with_confidence(joined([fact, rest]), fields, child)
