"""The service's errors as exceptions, and how each looks on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class FieldProblem(NamedTuple):
    """One entry of a ValidationException's `fieldList`."""

    name: str
    """Path of the member, as in `records.1.member.content.text` (counted from 1)."""
    message: str


class ServiceError(Exception):
    """An error that the service answers with.

    Args:
        code: The error's name in the service model, such as `"ResourceNotFoundException"`.
        status: Its HTTP status.
        message: What went wrong. Never holds a value that the model calls sensitive.
        reason: Only for ValidationException: a value of `ValidationExceptionReason`.
        fields: Only for ValidationException: the members at fault.
    """

    def __init__(
        self,
        code: str,
        status: int,
        message: str,
        *,
        reason: str | None = None,
        fields: Sequence[FieldProblem] = (),
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.status = status
        self.message = message
        self.reason = reason
        self.fields = tuple(fields)

    def body(self) -> dict[str, object]:
        """Return the members of the error's JSON body."""
        body: dict[str, object] = {"message": self.message}
        if self.code == "ValidationException":
            body["reason"] = self.reason or "FieldValidationFailed"
            if self.fields:
                body["fieldList"] = [field._asdict() for field in self.fields]
        return body


def invalid(*fields: FieldProblem) -> ServiceError:
    """Return the ValidationException for members that break a constraint."""
    problems = "; ".join(f"Value at '{field.name}' failed to satisfy constraint: {field.message}" for field in fields)
    message = f"{len(fields)} validation error{'s' * (len(fields) != 1)} detected: {problems}"
    return ServiceError("ValidationException", 400, message, reason="FieldValidationFailed", fields=fields)


def cannot_parse(name: str, message: str) -> ServiceError:
    """Return the ValidationException for a member of the wrong type."""
    field = FieldProblem(name, message)
    return ServiceError("ValidationException", 400, message, reason="CannotParse", fields=[field])


def mismatched_token() -> ServiceError:
    """Return the ValidationException for a `clientToken` used again with other parameters."""
    message = "The clientToken was used before with different parameters"
    return ServiceError("ValidationException", 400, message, reason="IdempotentParameterMismatchException")


def invalid_input(message: str) -> ServiceError:
    """Return an InvalidInputException."""
    return ServiceError("InvalidInputException", 400, message)


def not_found(message: str) -> ServiceError:
    """Return a ResourceNotFoundException."""
    return ServiceError("ResourceNotFoundException", 404, message)
