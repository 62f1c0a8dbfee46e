"""The keys of a JSON object, whatever way they are written.

Gives the handlers of known shapes their fields by one spelling, and the rest for `unknown_json`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from .json_text import Json

CATEGORIES = ("category", "categories")
"""Keys under which a record is filed; left out where its text says what is meant, see `labels.py`."""
IDS = frozenset(
    {"id", "uuid", "guid", "record_id", "memory_id", "memory_record_id", "fact_id", "preference_id", "episode_id"}
    | {"reflection_id", "entry_id", "chunk_id", "embedding_id", "vector_id", "point_id", "node_id", "hash"}
    | {"memory_strategy_id", "strategy_id", "request_identifier"}
)
"""Keys by which a store finds a record again. Others that end in "id", such as an order's, a user may ask for."""
LABELS = IDS | {*CATEGORIES, "confidence", "language", "lang"}
"""Keys that file or rate a record and say nothing about the user by themselves; where the shape is known,
`labels.py` says what becomes of them."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SPACERS = re.compile(r"[\s_-]+")


def spelling(key: str) -> str:
    """Return a key in snake case: "useCases", "Use cases" and "use-cases" are one key, as are "id" and "_id"."""
    return _SPACERS.sub("_", _CAMEL.sub("_", key.strip())).strip("_").casefold()


def by_spelling(record: dict[str, Json]) -> dict[str, Json]:
    """Return the object with its keys in snake case; of two that meet, the first with a value stays."""
    fields: dict[str, Json] = {}
    for key, value in record.items():
        name = spelling(key)
        if fields.get(name) in (None, "", [], {}):
            fields[name] = value
    return fields


def without(record: dict[str, Json], names: Collection[str]) -> dict[str, Json]:
    """Return a copy of the object without the labels and the named keys."""
    return {key: value for key, value in record.items() if spelling(key) not in LABELS and spelling(key) not in names}
