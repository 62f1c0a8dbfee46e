"""The metadata filters of long-term records."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import FieldProblem, invalid
from .limits import seconds_since_epoch

_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "BEFORE": ("dateTimeValue", operator.lt),
    "AFTER": ("dateTimeValue", operator.gt),
    "GREATER_THAN": ("numberValue", operator.gt),
    "GREATER_THAN_OR_EQUALS": ("numberValue", operator.ge),
    "LESS_THAN": ("numberValue", operator.lt),
    "LESS_THAN_OR_EQUALS": ("numberValue", operator.le),
}


def metadata_test(filters: Sequence[Mapping[str, Any]] | None, path: str) -> Callable[[Mapping[str, Any] | None], bool]:
    """Return the test that 1 to 5 filters, all of which must hold, put to a record's metadata.

    - `EXISTS`, `NOT_EXISTS`: the key alone.
    - `EQUALS_TO`: the same kind of value, and equal.
    - `CONTAINS`: a `stringListValue` with the `stringValue` among its members.
    - `BEFORE`, `AFTER`: a `dateTimeValue`. `GREATER_THAN` and its kin: a `numberValue`.

    A record without the key, or with a value of another kind, does not match. The service also refuses keys that
    the memory does not index; every key is accepted here.

    Args:
        filters: As in the request; None passes every record.
        path: Where they are in the request, for the error.

    Raises:
        ServiceError: ValidationException when an operator lacks its right side.
    """
    for number, expression in enumerate(filters or (), start=1):
        if expression["operator"] not in ("EXISTS", "NOT_EXISTS") and expression.get("right") is None:
            raise invalid(FieldProblem(f"{path}.{number}.member.right", "Member must not be null"))
    return lambda metadata: all(_holds(expression, metadata or {}) for expression in filters or ())


def _holds(expression: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    value = metadata.get(expression["left"]["metadataKey"])
    wanted = expression["operator"]
    if wanted in ("EXISTS", "NOT_EXISTS"):
        return (value is not None) is (wanted == "EXISTS")
    if value is None:
        return False
    right = expression["right"]["metadataValue"]
    if wanted == "EQUALS_TO":
        return _comparable(value) == _comparable(right)
    if wanted == "CONTAINS":
        return bool(right.get("stringValue") in value.get("stringListValue", ()))
    kind, compare = _COMPARISONS[wanted]
    if kind not in value or kind not in right:
        return False
    return compare(_comparable(value)[kind], _comparable(right)[kind])


def _comparable(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        kind: seconds_since_epoch(content, "metadataValue") if kind == "dateTimeValue" else content
        for kind, content in value.items()
    }
