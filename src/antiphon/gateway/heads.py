"""What the served gateway asks of the head of a request, whichever library reads it, and what it answers where that fails.

Both readers let through what a server behind or before the gateway may read as another request, each something else.
Source: RFC 9112, sections 2.2, 2.3, 3.2, 5.2 and 6; tried with httptools 0.9 and h11 0.16.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from http import HTTPMethod, HTTPStatus
from typing import Any, Protocol, TypeAlias

import msgspec

from .errors import ApiError

MOST_HEAD = 64 * 1024  # bytes of a head, and of what is no head and no body yet
HEAD_SECONDS = 60.0  # in which the next head must be there, as nginx has it
LINGERING = 2.0  # seconds in which a client that is refused may go on sending, and read why
INVALID = "what was sent is no HTTP request"
CLOSE = (b"connection", b"close")

_METHODS = frozenset(HTTPMethod) - {HTTPMethod.CONNECT}
_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~!$&'()*+;=%-]*)(?::[0-9]*)?")

Headers: TypeAlias = Iterable[tuple[bytes, bytes]]  # the names are in lower case
Send: TypeAlias = Callable[[Any], Coroutine[Any, Any, None]]


class BadHead(Exception):
    """A head, or what should be one, that is refused with `status`."""

    def __init__(self, message: str = INVALID, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.status = message, status
        self.of_head = False  # of a HEAD request, whose answer has no body


def too_large() -> BadHead:
    """Return the refusal of a head that is too large. Source: RFC 6585, section 5."""
    return BadHead(f"the head of the request has more than {MOST_HEAD} bytes", 431)


def check_head(method: str, target: bytes, version: str, headers: Headers) -> None:
    """Raise BadHead where a head does not say in one way alone what is asked for, of whom, and where its body ends."""
    if method not in _METHODS:
        raise BadHead("the method is none of " + ", ".join(sorted(_METHODS)))
    if version not in ("1.0", "1.1"):
        raise BadHead("the version is neither HTTP/1.0 nor HTTP/1.1")
    if b"#" in target or not (target[:1] in (b"/", b"*") or _ABSOLUTE.match(target)):
        raise BadHead("the target is neither a path nor a URL")
    named = list(headers)
    _check_host([value for name, value in named if name == b"host"], version)
    _check_framing([value for name, value in named if name == b"transfer-encoding"], named, version)


def _check_host(hosts: list[bytes], version: str) -> None:
    if len(hosts) > 1 or (version == "1.1" and not hosts):
        raise BadHead(f"there are {len(hosts)} Host headers, and HTTP/1.1 wants one")
    if hosts and not _HOST.fullmatch(hosts[0].strip(b" \t")):
        raise BadHead("the Host header is no name with or without a port")


def _check_framing(codings: list[bytes], headers: Headers, version: str) -> None:
    if not codings:
        return
    if version == "1.0" or any(name == b"content-length" for name, _ in headers):
        raise BadHead("there is a Transfer-Encoding where the length of the body is said otherwise")
    if [one.strip(b" \t").lower() for one in codings] != [b"chunked"]:
        raise BadHead("the Transfer-Encoding is not chunked")


def origin_form(target: bytes) -> bytes:
    """Return the path and query of a target, which may be a whole URL. Source: RFC 9112, section 3.2.2."""
    whole = _ABSOLUTE.match(target)
    if whole is None:
        return target
    rest = target[whole.end() :]
    return rest if rest.startswith(b"/") else b"/" + rest


def refusal(problem: BadHead) -> bytes:
    """Return the answer to what is no request: an error object, as for all that is refused."""
    body = msgspec.json.encode(ApiError(problem.status, problem.message, code="invalid_http").body())
    lines = [
        b"HTTP/1.1 %d %b" % (problem.status, HTTPStatus(problem.status).phrase.encode()),
        b"content-type: application/json",
        b"content-length: %d" % len(body),
        b"connection: close",
        b"",
        b"" if problem.of_head else body,
    ]
    return b"\r\n".join(lines)


class Cycle(Protocol):
    """A request that is being answered, as uvicorn has it."""

    waiting_for_100_continue: bool


def closing(cycle: Cycle, send: Send) -> Send:
    """Return `send`, which ends the connection where the client was not told to send the body that it announced.

    It may send the next request instead, which would be read as that body. Source: RFC 9110, section 10.1.1.
    """

    async def told(message: Any) -> None:
        if message["type"] == "http.response.start" and cycle.waiting_for_100_continue:
            message = {**message, "headers": [*message.get("headers", ()), CLOSE]}
        await send(message)

    return told


def send_at_once(transport: asyncio.Transport) -> None:
    """Let small pieces go out without waiting for the client to confirm those before: each event would be 40 ms late.

    asyncio does so by itself, but not where uvicorn binds the socket for several workers (seen with 0.54).
    """
    held = transport.get_extra_info("socket")
    if held is not None and held.family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError):  # the client has left already
            held.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class Patience:
    """Closes a connection on which no request comes for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, transport: asyncio.Transport) -> None:
        """Wait from now on."""
        self._set(self._seconds, transport)

    def linger(self, transport: asyncio.Transport) -> None:
        """End what is sent, and close a moment later: what a client sent meanwhile would take from it what it was told.

        What comes is to be thrown away. Source: RFC 9112, section 9.6.
        """
        if transport.can_write_eof() and not transport.is_closing():
            transport.write_eof()
            transport.resume_reading()
            self._set(LINGERING, transport)
        else:
            transport.close()

    def _set(self, seconds: float, transport: asyncio.Transport) -> None:
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, transport.close)

    def stop(self) -> None:
        """Wait no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
