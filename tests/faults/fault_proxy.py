"""A proxy on 127.0.0.1 that passes requests on, and spoils those that it is told to spoil.

It closes every connection after one exchange, so that a fault of one request is never the leftover of another.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import urlsplit

_DRIP_S = 0.05


@dataclass(frozen=True)
class Request:
    """A request as it arrived."""

    path: str
    document: Any
    """The body as JSON; None without one."""


@dataclass(frozen=True)
class Answer:
    """What the upstream server says."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Exchange:
    """One request on its way through the proxy: what a fault may do with it."""

    def __init__(self, handler: _Handler, body: bytes) -> None:
        self._handler = handler
        self._body = body
        self.proxy = handler.proxy
        self._healed = self.proxy.healed

    def upstream(self) -> Answer:
        """Pass the request on and return the answer."""
        address = urlsplit(self.proxy.upstream)
        connection = http.client.HTTPConnection(cast("str", address.hostname), address.port, timeout=60)
        try:
            headers = {name: value for name, value in self._handler.headers.items() if name.lower() != "connection"}
            connection.request(self._handler.command, self._handler.path, self._body, headers)
            answer = connection.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name.lower().startswith(("content-t", "x-"))}
            return Answer(answer.status, kept, answer.read())
        finally:
            connection.close()

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Send a whole answer."""
        self.send_head(status, len(body), headers)
        self.write(body)

    def send_head(self, status: int, length: int, headers: Mapping[str, str] | None = None) -> None:
        """Send a status line and headers, for a body of `length` bytes."""
        self._handler.send_response(status)
        for name, value in {"Content-Type": "application/json", "Connection": "close", **(headers or {})}.items():
            self._handler.send_header(name, value)
        self._handler.send_header("Content-Length", str(length))
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def hang(self) -> None:
        """Wait for the fault to be healed, or for the end of the proxy."""
        self._healed.wait()

    def drip(self, byte: bytes) -> None:
        """Send a byte now and then, until the fault is healed."""
        while not self._healed.wait(_DRIP_S):
            self.write(byte)

    def reset(self) -> None:
        """Close the connection with a reset, as a crash or a firewall does."""
        _reset(self._handler.connection)


Fault = Callable[[Exchange], None]


class FaultProxy:
    """A running proxy; see `proxying`."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.requests: list[Request] = []
        """Every request so far, in order of arrival."""
        self.spoilt = 0
        """How many of them met the fault."""
        self.healed = threading.Event()
        """Of the fault that is injected: it is no more, or the proxy is not."""
        self._fault: Fault | None = None
        self._when: Callable[[Request], bool] = lambda _request: True
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._server = _server_of(self)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def inject(self, fault: Fault | None, when: Callable[[Request], bool] = lambda _request: True) -> None:
        """Spoil the requests for which `when` is true; None spoils nothing."""
        with self._lock:
            self.healed.set()
            self.healed = threading.Event()
            self._fault, self._when = fault, when

    def kill(self) -> None:
        """Die as a process does that is killed: open connections are reset, new ones refused."""
        self._server.socket.close()
        with self._lock:
            for connection in self._open:
                _reset(connection)
            self._open.clear()

    def end(self) -> None:
        """Stop, and let go of requests that wait."""
        self.healed.set()
        self._server.shutdown()
        self._server.server_close()

    def take(self, request: Request) -> Fault | None:
        """Note a request, and return what shall become of it."""
        with self._lock:
            self.requests.append(request)
            if self._fault is None or not self._when(request):
                return None
            self.spoilt += 1
            return self._fault

    def connected(self, connection: socket.socket, *, is_open: bool) -> None:
        """Keep account of the open connections."""
        with self._lock:
            (self._open.add if is_open else self._open.discard)(connection)


@contextmanager
def proxying(upstream: str) -> Iterator[FaultProxy]:
    """Run a proxy in front of a server."""
    proxy = FaultProxy(upstream)
    try:
        yield proxy
    finally:
        proxy.end()


@contextmanager
def answering(reply: Callable[[Any], Any]) -> Iterator[str]:
    """Run a JSON server that answers each POST with `reply(document)`, and yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps(reply(document)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = _Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # the client has gone, which is what the tests are about


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultProxy

    def do_POST(self) -> None:
        self.close_connection = True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        exchange = Exchange(self, body)
        fault = self.proxy.take(Request(self.path, json.loads(body) if body else None))
        if fault is not None:
            fault(exchange)
        else:
            answer = exchange.upstream()
            exchange.send(answer.status, answer.body, answer.headers)

    do_GET = do_PUT = do_DELETE = do_POST

    def setup(self) -> None:
        super().setup()
        self.proxy.connected(self.connection, is_open=True)

    def finish(self) -> None:
        self.proxy.connected(self.connection, is_open=False)
        super().finish()

    def log_message(self, *_: object) -> None:
        pass


def _server_of(proxy: FaultProxy) -> ThreadingHTTPServer:
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    return _Quiet(("127.0.0.1", 0), handler)


def _reset(connection: socket.socket) -> None:
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RD)  # wakes the handler's thread if it reads
    except OSError:
        return
    finally:
        connection.close()
