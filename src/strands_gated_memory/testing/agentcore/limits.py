"""Checks a request against the limits in botocore's service model.

botocore itself checks required members, types and minimums before it sends anything; maximums, patterns,
enumerations and unions reach the service, so they are checked here: searchQuery 10,000 characters, topK and
maxResults 100, 16,000 characters of text, 100 records per batch, one namespace per record, and so on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timezone
from functools import cache
from typing import Any

from .errors import FieldProblem, cannot_parse, invalid
from .service_model import operation_model

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "integer": (int,),
    "double": (int, float),
    "boolean": (bool,),
    "timestamp": (int, float, str),
}


def check_limits(operation: str, parameters: dict[str, Any]) -> None:
    """Check a request as the service's front door does: the whole request passes or fails.

    Args:
        operation: Wire name.
        parameters: The members of the request, from path, query and body together.

    Raises:
        ServiceError: ValidationException with the members at fault in `fieldList`; reason `CannotParse` for a
            wrong type, `FieldValidationFailed` otherwise. Values are not quoted.
    """
    problems = list(_problems(operation_model(operation).input_shape, parameters, ""))
    if problems:
        raise invalid(*problems)


def seconds_since_epoch(value: Any, name: str) -> float:
    """Return a timestamp from the wire, a number or ISO 8601 text, as seconds since 1970.

    Raises:
        ServiceError: ValidationException, reason `CannotParse`.
    """
    if isinstance(value, int | float):
        return float(value)
    try:
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        raise cannot_parse(name, "Member must be a timestamp") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _problems(shape: Any, value: Any, path: str) -> Iterator[FieldProblem]:
    if shape.metadata.get("document"):
        return
    allowed = _PYTHON_TYPES.get(shape.type_name)
    if allowed and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
        raise cannot_parse(path or "body", f"Member must be a {shape.type_name}")
    if shape.type_name == "structure":
        yield from _structure_problems(shape, value, path)
    elif shape.type_name == "list":
        yield from _size_problems(shape, len(value), path, "length")
        for number, item in enumerate(value, start=1):
            yield from _problems(shape.member, item, f"{path}.{number}.member")
    elif shape.type_name == "map":
        yield from _size_problems(shape, len(value), path, "length")
        for key, item in value.items():
            yield from _problems(shape.key, key, f"{path}.key")
            yield from _problems(shape.value, item, f"{path}.{key}.value")
    elif shape.type_name == "string":
        yield from _string_problems(shape, value, path)
    elif shape.type_name in ("integer", "double"):
        yield from _size_problems(shape, value, path, "value")
    elif shape.type_name == "timestamp":
        seconds_since_epoch(value, path)


def _structure_problems(shape: Any, value: dict[str, Any], path: str) -> Iterator[FieldProblem]:
    given = {name: item for name, item in value.items() if item is not None and name in shape.members}
    prefix = f"{path}." if path else ""
    for name in shape.required_members:
        if name not in given:
            yield FieldProblem(f"{prefix}{name}", "Member must not be null")
    if shape.metadata.get("union") and len(given) != 1:
        yield FieldProblem(path, "Member must have exactly one member set")
    for name, item in given.items():
        yield from _problems(shape.members[name], item, f"{prefix}{name}")


def _string_problems(shape: Any, value: str, path: str) -> Iterator[FieldProblem]:
    enum = shape.metadata.get("enum")
    if enum and value not in enum:
        yield FieldProblem(path, f"Member must satisfy enum value set: [{', '.join(enum)}]")
    too_long = list(_size_problems(shape, len(value), path, "length"))
    yield from too_long
    pattern = shape.metadata.get("pattern")
    if pattern and not too_long and not _compiled(pattern).fullmatch(value):
        yield FieldProblem(path, f"Member must satisfy regular expression pattern: {pattern}")


def _size_problems(shape: Any, size: float, path: str, what: str) -> Iterator[FieldProblem]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        yield FieldProblem(path, f"Member must have {what} greater than or equal to {least}")
    if most is not None and size > most:
        yield FieldProblem(path, f"Member must have {what} less than or equal to {most}")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
