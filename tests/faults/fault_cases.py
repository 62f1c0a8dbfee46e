"""Every fault of the matrix: what happens on the wire, and what the counters are to call it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from fault_proxy import Exchange, Fault


@dataclass(frozen=True)
class Case:
    """One fault."""

    play: Fault | None
    """What the proxy does; None: it is not the proxy that fails."""
    decider: str
    """What a decision model that fails so is counted as."""
    search: str
    """What a search that fails so is counted as."""
    whole: bool = False
    """Whether it hits the whole server: every search, not one namespace's."""
    lasting: bool = False
    """Whether the server does not come back within the turn: no gate means no judge either."""
    slow: bool = False
    """Whether it takes the time that later stages would have needed."""


def delay(exchange: Exchange) -> None:
    exchange.hang()
    answer = exchange.upstream()
    exchange.send(answer.status, answer.body, answer.headers)


def drip_headers(exchange: Exchange) -> None:
    exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Slow: ")
    exchange.drip(b"x")


def drip_body(exchange: Exchange) -> None:
    answer = exchange.upstream()
    exchange.send_head(answer.status, 1_000_000, answer.headers)
    exchange.drip(b" ")


def reset(exchange: Exchange) -> None:
    exchange.reset()


def close(exchange: Exchange) -> None:
    """Close the connection properly, without having said anything."""


def half_a_body(exchange: Exchange) -> None:
    answer = exchange.upstream()
    exchange.send_head(answer.status, len(answer.body), answer.headers)
    exchange.write(answer.body[: len(answer.body) // 2])


def not_http(exchange: Exchange) -> None:
    exchange.write(b"SSH-2.0-OpenSSH_9.6\r\n")


def killed(exchange: Exchange) -> None:
    exchange.proxy.kill()


def says(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Fault:
    return lambda exchange: exchange.send(status, body, headers)


_BUSY = json.dumps({"message": "injected"}).encode()
_PAGE = b"<html><body>Bad gateway</body></html>"


def cut_json(exchange: Exchange) -> None:
    """Send half of the JSON under a length that is right for it."""
    answer = exchange.upstream()
    exchange.send(answer.status, answer.body[: len(answer.body) // 2], answer.headers)


_STATUSES = {
    400: ("rejected", "rejected"),
    403: ("access_denied", "access_denied"),
    404: ("not_found", "not_found"),
    429: ("throttled", "throttled"),
    500: ("unavailable", "service_failed"),
    503: ("unavailable", "service_failed"),
    529: ("unavailable", "service_failed"),
}

CASES: dict[str, Case] = {
    "delay": Case(delay, "timeout", "timeout", slow=True),
    "headers drip": Case(drip_headers, "timeout", "timeout", slow=True),
    "body drips": Case(drip_body, "timeout", "timeout", slow=True),
    "reset": Case(reset, "unavailable", "unavailable"),
    "closed unanswered": Case(close, "unavailable", "unavailable"),
    "half a body": Case(half_a_body, "unavailable", "bad_response"),
    "not HTTP": Case(not_http, "unavailable", "unavailable"),
    "killed mid-request": Case(killed, "unavailable", "unavailable", whole=True, lasting=True),
    "DNS failure": Case(None, "unavailable", "unavailable", whole=True),
    "cut JSON": Case(cut_json, "bad_answer", "bad_response"),
    "page instead of JSON": Case(says(200, _PAGE, {"Content-Type": "text/html"}), "bad_answer", "bad_response"),
    "JSON list": Case(says(200, b"[1, 2]"), "bad_answer", "bad_response"),
    "JSON of another service": Case(says(200, b'{"choices": []}'), "bad_answer", "bad_response"),
    "empty body": Case(says(200, b""), "bad_answer", "bad_response"),
    **{f"status {status}": Case(says(status, _BUSY), *kinds) for status, kinds in _STATUSES.items()},
}
