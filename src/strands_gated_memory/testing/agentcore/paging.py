"""Cuts an ordered listing into pages. A page goes on after the last item shown, so writes in between repeat nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from .errors import invalid_input

T = TypeVar("T")

DEFAULT_PAGE = 20
"""The service's default of maxResults."""


class Page(NamedTuple):
    """Some items of a listing."""

    items: list[Any]
    next_token: str | None
    """None on the last page."""

    def as_response(self, member: str) -> dict[str, Any]:
        """Return the response body with the items under `member`; no `nextToken` on the last page."""
        body: dict[str, Any] = {member: self.items}
        if self.next_token is not None:
            body["nextToken"] = self.next_token
        return body


def page_of(items: Sequence[T], key: Callable[[T], Sequence[Any]], operation: str, parameters: dict[str, Any]) -> Page:
    """Return the page that a request asks for.

    Args:
        items: Everything the request matches, in ascending order of `key`.
        key: A unique, JSON-safe sort key of an item.
        operation: Wire name; a token only continues the operation that gave it.
        parameters: The request. `maxResults` (default 20) and `nextToken` are read; a token only continues a
            request that is otherwise the same.

    Raises:
        ServiceError: InvalidInputException for a token that this request did not give.
    """
    request = {name: value for name, value in parameters.items() if name not in ("maxResults", "nextToken")}
    text = json.dumps([operation, request], sort_keys=True)
    scope = hashlib.sha256(text.encode()).hexdigest()[:16]
    token = parameters.get("nextToken")
    rest = list(items)
    if token is not None:
        last = _decoded(token, scope)
        rest = [item for item in rest if list(key(item)) > last]
    size = int(parameters.get("maxResults") or DEFAULT_PAGE)
    shown = rest[:size]
    more = len(rest) > size
    return Page(list(shown), _encoded(list(key(shown[-1])), scope) if more else None)


def _encoded(last: list[Any], scope: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([scope, last]).encode()).decode()


def _decoded(token: str, scope: str) -> list[Any]:
    try:
        of, last = json.loads(base64.urlsafe_b64decode(token.encode()))
    except ValueError:
        of, last = None, None
    if of != scope or not isinstance(last, list):
        raise invalid_input("nextToken is not a token of this request")
    return last
