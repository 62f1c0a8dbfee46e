"""How a request's namespace or namespacePath selects records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import FieldProblem, invalid


def same_namespace(one: str, other: str) -> bool:
    """Return whether two namespaces are the same but for slashes at the end."""
    return one.rstrip("/") == other.rstrip("/")


def is_below(namespace: str, path: str) -> bool:
    """Return whether a namespace is a path or lies below it, by whole segments.

    `/facts/bob/` holds `/facts/bob` and `/facts/bob/2026/`, never `/facts/bobby/`. `/` holds everything.
    """
    top = path.rstrip("/")
    return same_namespace(namespace, path) or namespace.startswith(f"{top}/")


def scope_of(parameters: dict[str, Any]) -> Callable[[str], bool]:
    """Return the test that a request's scope puts to a record's namespace.

    Args:
        parameters: The request: `namespace` matches exactly, `namespacePath` as a subtree.

    Raises:
        ServiceError: ValidationException unless exactly one of the two is given.
    """
    exact, path = parameters.get("namespace"), parameters.get("namespacePath")
    if (exact is None) == (path is None):
        message = "Exactly one of namespace and namespacePath must be provided"
        raise invalid(FieldProblem("namespace", message), FieldProblem("namespacePath", message))
    if path is not None:
        return lambda namespace: is_below(namespace, path)
    return lambda namespace: namespace == exact
