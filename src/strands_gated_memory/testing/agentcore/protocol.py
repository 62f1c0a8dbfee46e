"""How the service refuses a request and pages a listing. Imports moto, so import it inside functions only.

botocore's own validator checks required members, types and minimums; maximums, patterns and enumerations of the
service model reach the service, so they are checked here: searchQuery 10,000 characters, topK and maxResults 100,
16,000 characters of text, 100 records per batch, one namespace per record, and so on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple

from botocore.validate import ParamValidator
from moto.core.exceptions import AWSError, InvalidToken
from moto.core.utils import get_service_model
from moto.utilities.paginator import Paginator

DEFAULT_PAGE = 20
"""The service's default of maxResults."""


class ServiceError(AWSError):
    """An error that the service answers with.

    Args:
        code: The error's name in the service model, such as `"ResourceNotFoundException"`.
        status: Its HTTP status.
        message: What went wrong. Never holds a value that the model calls sensitive.
        members: Other members of its body.
    """

    def __init__(self, code: str, status: int, message: str, **members: Any) -> None:
        super().__init__(message, code, status)
        if code == "ValidationException":
            members = {"reason": "FieldValidationFailed"} | members
        self.description = json.dumps({"__type": code, "message": message} | members)


def invalid(*problems: tuple[str, str]) -> ServiceError:
    """Return the ValidationException for members that break a constraint.

    Args:
        problems: Paths of members, as in `records.1.member.content.text` (counted from 1), and the constraints.
    """
    told = "; ".join(f"Value at '{path}' failed to satisfy constraint: {problem}" for path, problem in problems)
    message = f"{len(problems)} validation error{'s' * (len(problems) != 1)} detected: {told}"
    fields = [{"name": path, "message": problem} for path, problem in problems]
    return ServiceError("ValidationException", 400, message, fieldList=fields)


def not_found(message: str) -> ServiceError:
    """Return a ResourceNotFoundException."""
    return ServiceError("ResourceNotFoundException", 404, message)


def operation_model(operation: str) -> Any:
    """Return botocore's model of an operation of the data plane, by its wire name."""
    return get_service_model("bedrock-agentcore").operation_model(operation)


def check_limits(operation: str, parameters: dict[str, Any]) -> None:
    """Check a request as the service's front door does: the whole request passes or fails.

    Args:
        operation: Wire name.
        parameters: The members of the request, from path, query and body together.

    Raises:
        ServiceError: ValidationException with the members at fault in `fieldList`, whose values are not quoted; reason
            `CannotParse` for what botocore would not have sent.
    """
    shape = operation_model(operation).input_shape
    report = ParamValidator().validate(parameters, shape)
    if report.has_errors():
        raise ServiceError("ValidationException", 400, report.generate_report(), reason="CannotParse")
    problems = list(_problems(shape, parameters, ""))
    if problems:
        raise invalid(*problems)


def _problems(shape: Any, value: Any, path: str) -> Iterator[tuple[str, str]]:
    limits, kind = shape.metadata, shape.type_name
    if kind in ("string", "list", "map") and len(value) > limits.get("max", inf):
        yield path, f"Member must have length less than or equal to {limits['max']}"
    elif kind in ("integer", "double") and value > limits.get("max", inf):
        yield path, f"Member must have value less than or equal to {limits['max']}"
    elif kind == "string" and value not in limits.get("enum", [value]):
        yield path, f"Member must satisfy enum value set: [{', '.join(limits['enum'])}]"
    elif kind == "string" and not re.fullmatch(limits.get("pattern", "(?s:.*)"), value):
        yield path, f"Member must satisfy regular expression pattern: {limits['pattern']}"
    elif kind == "list":
        for number, item in enumerate(value, start=1):
            yield from _problems(shape.member, item, f"{path}.{number}.member")
    elif kind == "map":
        for key, item in value.items():
            yield from _problems(shape.key, key, f"{path}.key")
            yield from _problems(shape.value, item, f"{path}.{key}.value")
    elif kind == "structure" and not shape.is_document_type:
        for name, item in value.items():
            if name in shape.members:
                yield from _problems(shape.members[name], item, f"{path}.{name}".lstrip("."))


class Row(NamedTuple):
    """One item of a listing."""

    key: str
    """Unique in the listing; without "|"."""
    body: Any


def page_of(rows: list[Row], operation: str, member: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the page that a request asks for, as its response.

    Args:
        rows: Everything the request matches, in order.
        operation: Wire name; a token only continues the operation that gave it.
        member: Where the items stand in the response.
        parameters: The request. `maxResults` (default 20) and `nextToken` are read; a token only continues a
            request that is otherwise the same.

    Raises:
        ServiceError: InvalidInputException for a token that this request did not give.
    """
    request = {name: value for name, value in parameters.items() if name not in ("maxResults", "nextToken")}
    try:
        paginator = Paginator(
            max_results=parameters.get("maxResults"),
            max_results_default=DEFAULT_PAGE,
            starting_token=parameters.get("nextToken"),
            unique_attribute="key",
            param_values_to_check=request | {"operation": operation},
        )
        page, token = paginator.paginate(rows)
    except InvalidToken:
        raise ServiceError("InvalidInputException", 400, "nextToken is not a token of this request") from None
    return {member: [row.body for row in page]} | ({"nextToken": token} if token else {})
