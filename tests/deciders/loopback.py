"""A server on 127.0.0.1 that answers as a function says and keeps what it was sent."""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from strands_gated_memory.core.questions import Question, State

STATE: State = {"message": "What should I drink?", "previous": ["Hi", "Hello, how can I help?"]}


def noul(text="It is.", **fields):
    return Question("noul", text, **fields)


def nouls(count, text="Note {}."):
    return {f"record_{at}": noul(text.format(at)) for at in range(count)}


def system_one(probability=0.9, model="jev-1.13.0", tokens=100):
    """Answer every noul of a System One request with the same probability."""

    def reply(request):
        answers = {name: {"type": "noul", "noul": probability} for name in request.document["questions"]}
        return 200, {
            "model": model,
            "answers": answers,
            "usage": {"input_tokens": tokens, "output_tokens": len(answers)},
        }

    return reply


@dataclass
class Request:
    path: str
    headers: dict
    document: dict
    ended: threading.Event
    """What is to hang waits for it: the server has ended."""


@dataclass
class Loopback:
    url: str
    requests: list = field(default_factory=list)


@contextmanager
def serving(reply):
    """Serve `reply(request) -> (status, document or bytes[, headers])`; a reply that returns None closes the line.

    A reply may also be a function of (request, handler) marked `raw`: it writes what it likes.
    """
    found, ended = Loopback(""), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def do_GET(self):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(body), ended)
            found.requests.append(request)
            try:
                if getattr(reply, "raw", False):
                    reply(request, self)
                    self.close_connection = True
                    return
                result = reply(request)
                if result is None:
                    self.close_connection = True
                    return
                status, document, *headers = result
                data = document if isinstance(document, bytes) else json.dumps(document).encode()
                self.send_response(status)
                for name, value in (headers[0] if headers else {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                pass  # the client has gone

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass  # the client has gone

    server = Quiet(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        server.shutdown()
        server.server_close()


def raw(function):
    function.raw = True
    return function


def in_turn(*replies):
    """Reply with each in turn, the last one for good."""
    left = list(replies)

    def reply(request):
        one = left.pop(0) if len(left) > 1 else left[0]
        return one(request) if callable(one) else one

    return reply
