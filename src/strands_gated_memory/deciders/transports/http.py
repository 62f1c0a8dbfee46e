"""One POST with a bearer key, over a connection pool that the process shares.

httpx has a timeout per phase, not per call: the body is read in pieces with one eye on the clock, and
the caller waits for this in another thread, so that not even a server that drips headers holds it.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import threading
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ...errors import (
    BadAnswer,
    ConfigurationError,
    DeciderDenied,
    DeciderError,
    DeciderNotFound,
    DeciderRejected,
    DeciderThrottled,
    DeciderTimeout,
    DeciderUnavailable,
    PromptTooLong,
)
from ...runtime.clock import left
from ...runtime.decide import KINDS
from ...runtime.guard import Guard
from ...runtime.threads import DECISIONS
from ..secret import Secret
from ..shown import one_line, quoted

if TYPE_CHECKING:
    import httpx

_MAX_BYTES = 4_000_000
"""More than any answer to questions of ours; a server that sends more is not a decision model."""
_PAUSE_S = 0.1
"""Wait before the second attempt where the server names no time."""
_HEALTH_S = 2.0
_KNOWN_S = 300.0
"""For how long what a server said of itself is not asked again, in seconds: servers make a client per request."""
_MOST_KNOWN = 64
"""How long a server may take to describe itself, in seconds."""
_RETRIED_STATUSES = (502, 503, 529)

_lock = threading.Lock()
_shared: httpx.Client | None = None


def shared_client() -> httpx.Client:
    """Return the process's connection pool, made at the first call."""
    global _shared  # noqa: PLW0603 - one pool per process is the point
    with _lock:
        if _shared is None:
            from http.cookiejar import CookieJar, DefaultCookiePolicy

            import httpx

            _shared = httpx.Client(
                # One pool serves every key: a cookie kept from one answer would join the users of two.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0),
                follow_redirects=False,  # a redirect would take the key to another host
                headers={
                    "User-Agent": "strands-gated-memory",
                    "Accept": "application/json",
                    "Accept-Encoding": "identity",
                },
            )
            atexit.register(_shared.close)
        return _shared


def _forget_client() -> None:
    global _lock, _shared
    _lock, _shared = threading.Lock(), None  # a fork must not share its parent's connections


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_client)


_KNOWN: dict[str, tuple[float, dict[str, Any]]] = {}


def _known(url: str | None) -> dict[str, Any]:
    """Return what a server has said of itself lately."""
    until, about = _KNOWN.get(url or "", (0.0, {}))
    return dict(about) if time.monotonic() < until else {}


class HttpTransport:
    """A decision model behind a URL.

    Args:
        url: The address that takes the POST.
        key: Sent as `Authorization: Bearer`; None: nothing is sent.
        headers: Further headers, none of them secret.
        health_url: Where a strands-decider server describes itself; None: not asked.

    Raises:
        ConfigurationError: The URL cannot be used.
    """

    def __init__(
        self,
        url: str,
        key: Secret | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        health_url: str | None = None,
    ) -> None:
        self.url = checked_url(url)
        self.about: dict[str, Any] = _known(health_url)
        self._key = key
        self._headers = dict(headers or {})
        self._health_url = health_url

    def __repr__(self) -> str:
        return f"HttpTransport({self.url!r}{', key=***' if self._key else ''})"

    def prepare(self) -> None:
        """Ask a server that describes itself for its window and model; one that does not is left alone."""
        if self._health_url is None or self.about:
            return
        url, until = self._health_url, time.monotonic() + _HEALTH_S
        # In a thread, so that not even headers that drip hold whoever starts.
        described = Guard(DECISIONS, KINDS, lane=("health", url)).begin(lambda: _exchange("GET", url, until))
        answer, _ = described.end(_HEALTH_S)
        if answer is None or answer[0] != 200:  # not there, or not a server that describes itself
            return
        try:
            found = json.loads(answer[2])
        except (ValueError, RecursionError):
            return
        if isinstance(found, Mapping):
            window = found.get("max_length")
            if isinstance(window, int) and not isinstance(window, bool) and window > 0:
                self.about["window_tokens"] = window
            for name in ("model", "device"):
                if isinstance(found.get(name), str):
                    self.about[name] = one_line(found[name])
            if len(_KNOWN) < _MOST_KNOWN or url in _KNOWN:
                _KNOWN[url] = (time.monotonic() + _KNOWN_S, dict(self.about))

    def send(self, document: Mapping[str, Any], until: float) -> object:
        """POST the document and return the JSON that comes back."""
        import httpx

        try:
            status, headers, body = self._post(
                json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"), until
            )
        except httpx.TimeoutException as error:
            raise DeciderTimeout(f"{self.url} gave no answer in time ({type(error).__name__})") from None
        except (httpx.TransportError, httpx.InvalidURL) as error:
            # A request that never got an answer is safe to repeat: decisions change nothing.
            raise DeciderUnavailable(
                f"{self.url} cannot be reached ({type(error).__name__}: {self._masked(str(error))})",
                retry_after_s=_PAUSE_S,
            ) from None
        if status != 200:
            raise self._refusal(status, headers, body)
        found = _parsed(body, self.url)
        if isinstance(found, Mapping) and "answers" not in found and ("error" in found or "detail" in found):
            complaint = found.get("error")
            code = complaint.get("code") if isinstance(complaint, Mapping) else None
            said = code if isinstance(code, int) and 400 <= code < 600 else status  # some gateways answer 200 always
            raise self._refusal(said, headers, body)
        return found

    def _post(self, body: bytes, until: float) -> tuple[int, httpx.Headers, bytes]:
        if left(until) <= 0:
            raise DeciderTimeout(f"no time left to ask {self.url}")
        status, headers, whole = _exchange(
            "POST",
            self.url,
            until,
            content=body,
            headers={**self._headers, "Content-Type": "application/json"},
            auth=_bearer(self._key) if self._key else None,
        )
        # Some servers quote the key that they refuse: it is taken out before anything can print it.
        return status, headers, self._key.mask_bytes(whole) if self._key else whole

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> DeciderError:
        detail = error_detail(body)
        message = f"{self.url} answered {status}" + (f": {detail}" if detail else "")
        wait = retry_after_s(headers.get("retry-after-ms"), headers.get("retry-after"))
        if status == 429:
            return DeciderThrottled(message, retry_after_s=wait)
        if status in _RETRIED_STATUSES:
            return DeciderUnavailable(message, retry_after_s=_PAUSE_S if wait is None else wait)
        return by_status(status, message, detail)

    def _masked(self, text: str) -> str:
        return self._key.mask(text) if self._key else text


def _exchange(method: str, url: str, until: float, **request: Any) -> tuple[int, httpx.Headers, bytes]:
    """Send a request and read the answer, as long as there is time and it is not too large."""
    import httpx

    timeout = httpx.Timeout(max(left(until), 0.001))
    with shared_client().stream(method, url, timeout=timeout, **request) as response:
        pieces: list[bytes] = []
        size = 0
        for piece in response.iter_raw():
            pieces.append(piece)
            size += len(piece)
            if left(until) <= 0:
                raise DeciderTimeout(f"{url} did not finish its answer in time")
            if size > _MAX_BYTES:
                raise BadAnswer(f"{url} answered with more than {_MAX_BYTES} bytes")
        encoding = response.headers.get("content-encoding", "")
        return response.status_code, response.headers, _unpacked(b"".join(pieces), encoding, url)


def _unpacked(body: bytes, encoding: str, url: str) -> bytes:
    """Undo a compression that nobody asked for, and not beyond the size that an answer may have."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return body
    if name not in ("gzip", "x-gzip", "deflate"):
        raise BadAnswer(f"{url} answered in the encoding {one_line(name, 20)!r}, which was not asked for")
    try:
        unpacker = zlib.decompressobj(zlib.MAX_WBITS | 32)
        found = unpacker.decompress(body, _MAX_BYTES + 1)
    except zlib.error:
        raise BadAnswer(f"{url} answered with {name} that cannot be unpacked") from None
    if len(found) > _MAX_BYTES:
        raise BadAnswer(f"{url} answered with more than {_MAX_BYTES} bytes")
    if not unpacker.eof:
        raise BadAnswer(f"{url} answered with {name} that is cut off")
    return found


def by_status(status: int, message: str, detail: str = "") -> DeciderError:
    """Return the error that an HTTP status stands for, without a second attempt."""
    if status in (401, 403):
        return DeciderDenied(message)
    if status == 404:
        return DeciderNotFound(message)
    if status in (400, 413, 422) and looks_too_long(detail):
        return PromptTooLong(message)
    if 400 <= status < 500:
        return DeciderRejected(message)
    if status >= 500:
        return DeciderUnavailable(message)
    return BadAnswer(message)


_TOO_LONG = re.compile(
    r"context (window|length)|no tokens left|too (long|large|many tokens|many questions)|maximum .*(tokens|length)"
    r"|token limit|exceeds? .*(window|tokens|length)",
    re.IGNORECASE,
)


def looks_too_long(detail: str) -> bool:
    """Tell whether a server's complaint is about size."""
    return bool(_TOO_LONG.search(detail))


def error_detail(body: bytes) -> str:
    """Return what a server says about an error, short and on one line, never the input that it quotes."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""  # a proxy's page, or anything: the status says enough
    if not isinstance(found, Mapping):
        return ""
    detail = next((found[name] for name in ("detail", "error", "message") if found.get(name)), "")
    if isinstance(detail, list):
        parts = [f"{_place(one.get('loc'))}: {one.get('msg', '')}" for one in detail[:3] if isinstance(one, Mapping)]
        detail = "; ".join(parts)
    elif isinstance(detail, Mapping):
        names = ("error_type", "type", "code", "message")
        detail = ": ".join(str(detail[name]) for name in names if detail.get(name))
    return one_line(str(detail))


def _place(loc: object) -> str:
    return ".".join(map(str, loc)) if isinstance(loc, list) else str(loc or "")


_NUMBER = r"\s*[0-9]+(\.[0-9]+)?\s*"


def retry_after_s(milliseconds: str | None, value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, None if it says nothing usable."""
    try:
        if milliseconds is not None and re.fullmatch(_NUMBER, milliseconds):
            return float(milliseconds) / 1000
        if value is None:
            return None
        if re.fullmatch(_NUMBER, value):
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def checked_url(url: str) -> str:
    """Return a URL that can be used and printed.

    Raises:
        ConfigurationError: It is not http(s), has no host, or holds what might be a secret.
    """
    import httpx

    if not isinstance(url, str):
        raise ConfigurationError(f"a decider's URL must be a string, got {type(url).__name__}")
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_ok = urlsplit(""), False
    if parts.username is not None or parts.password is not None or parts.query:
        # Not quoted: it may hold a key, and httpx writes URLs to its log.
        raise ConfigurationError(
            "a decider's URL may not hold a user, a password or a query: URLs get logged. "
            "Put the key into SYSTEMONE_API_KEY, or write deciders.catalog.system_one(url, api_key=...)"
        )
    usable = parts.scheme in ("http", "https") and parts.hostname and port_ok and not re.search(r"\s", url)
    found = urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))
    try:
        if usable and httpx.URL(found).host:
            return found
    except (httpx.InvalidURL, ValueError):  # such as a host that cannot be, or one that is too long
        pass
    raise ConfigurationError(f"decider URL {quoted(url)} cannot be used; write http://host:port or https://host")


def is_loopback(url: str) -> bool:
    """Tell whether a URL stays on this machine."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _parsed(body: bytes, url: str) -> object:
    try:
        return json.loads(body, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise BadAnswer(f"{url} answered 200, but not with JSON") from None


_TWICE = object()
"""Stands for what a document says twice: no answer that can be trusted, whatever it says."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        found.update((name, _TWICE) for name, count in counts.items() if count > 1)
    return found


def _bearer(key: Secret) -> httpx.Auth:
    import httpx

    class Bearer(httpx.Auth):
        """Puts the key into the request and nowhere else, so that no frame holds it in a header mapping."""

        def auth_flow(self, request: httpx.Request) -> Any:
            request.headers["Authorization"] = "Bearer " + key.reveal()
            yield request

    return Bearer()
