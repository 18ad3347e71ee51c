"""HTTP connections of the served gateway, where httptools reads them: with bounds that uvicorn sets for h11 alone.

Imported where httptools is installed; elsewhere there is `h11_connection`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from .heads import (
    HEAD_SECONDS,
    MOST_HEAD,
    BadHead,
    Patience,
    Send,
    check_head,
    closing,
    origin_form,
    refusal,
    send_at_once,
    too_large,
)

MOST_AHEAD = 32  # requests that may wait for the one before them
MOST_BYTES_AHEAD = 64 * 1024  # of their bodies, as h11_connection has it for all of them


class HttptoolsConnection(HttpToolsProtocol):
    """A connection that ends where a head, or what follows a body, never ends; and whose client is seen to leave.

    What uvicorn 0.54 does otherwise: it keeps a head of any size, takes trailers for headers, loses the body of a
    request that would be upgraded, answers HTTP/1.0 in chunks, answers what is no HTTP in the middle of the answer
    before, and tells a client's leaving to the latest request alone: one that waits would hide it from the others.
    """

    head_seconds = HEAD_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._silent = 0  # bytes that came since there was something of a request
        self._head = 0  # bytes of the head that is being read
        self._in_head = False
        self._again = False  # the head asks for an upgrade, and is read again without that
        self._open: list[RequestResponseCycle] = []  # not answered yet
        self._refused: BadHead | None = None  # nothing more is read, and this is the last answer
        self._patience = Patience(self.head_seconds)

    # --- what comes --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin, and wait for a head."""
        super().connection_made(transport)
        send_at_once(transport)
        self._patience.begin(self.transport)

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        self._unset_keepalive_if_required()
        if self._refused is not None:
            return
        self._silent += len(data)
        try:
            self._read(data)
        except httptools.HttpParserError as problem:
            held = problem.__context__  # what a callback raised
            self._refuse(held if isinstance(held, BadHead) else BadHead())
            return
        if self._silent > MOST_HEAD:
            self._refuse(too_large())
        elif len(self._open) > MOST_AHEAD or sum(len(one.body) for one in self._open[1:]) > MOST_BYTES_AHEAD:
            self.transport.abort()  # an answer may be on its way, and another one would be read as a part of it

    def on_message_begin(self) -> None:
        """Begin a head."""
        super().on_message_begin()
        self._head, self._in_head = 0, True

    def on_url(self, url: bytes) -> None:
        """Take a piece of the target."""
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. What comes after the body is none: it could say what something before the gateway took out."""
        if self._in_head:
            self._count(name, value)
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin a request, or let it wait for its turn."""
        self._silent, self._in_head = 0, False
        version = self.parser.get_http_version()
        check_head(self.parser.get_method().decode(), self.url, version, self.headers)
        self._again = self.parser.should_upgrade()
        if self._again:
            return
        self._patience.stop()
        self.url = origin_form(self.url)
        self.expect_100_continue = self.expect_100_continue and version != "1.0"
        super().on_headers_complete()
        cycle = self.cycle
        send = _until_close(cycle) if version == "1.0" else closing(cycle, cycle.send)
        cycle.send = send  # type: ignore[method-assign, assignment]  # uvicorn makes its cycles by itself
        self._open = [*filter(_is_open, self._open), cycle]
        if len(self._open) > 1:
            self.flow.resume_reading()  # else nobody would see the client leave

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request's body."""
        if not self._again:
            self._silent = 0
            super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all requests that their client is gone."""
        self._patience.stop()
        for one in filter(_is_open, self._open):
            one.disconnected = True
            one.message_event.set()
        super().connection_lost(exc)

    # --- what goes ---------------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        """Begin the request that waits, if there is one."""
        super().on_response_complete()
        self._open = [*filter(_is_open, self._open)]
        if not self._open:
            self._patience.begin(self.transport)
            self._say_refused()

    # --- inside ------------------------------------------------------------------------------------------------

    def _should_upgrade(self) -> bool:
        return False

    def _read(self, data: bytes) -> None:
        """Parse what came. A request that would be upgraded is one as others are, and httptools skips its body."""
        while True:
            try:
                return self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as stop:
                data = self._head_without_upgrade() + data[stop.args[0] :]
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn has it

    def _head_without_upgrade(self) -> bytes:
        begin = b"%b %b HTTP/1.%b" % (self.parser.get_method(), self.url, self.parser.get_http_version()[-1:].encode())
        lines = [b"%b: %b" % (name, value) for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([begin, *lines, b"", b""])

    def _count(self, *pieces: bytes) -> None:
        self._head += sum(len(piece) + 2 for piece in pieces)
        if self._head > MOST_HEAD:
            raise too_large()

    def _refuse(self, problem: BadHead) -> None:
        """Read nothing more, and say why after the answers that are still to be given; a body that broke ends its own."""
        if self.transport.is_closing():
            return
        self.logger.warning("Invalid HTTP request received.")
        self._refused = problem
        problem.of_head = problem.of_head or self._is_of_head()
        self._open = [*filter(_is_open, self._open)]
        if self._open and self._open[-1].more_body:
            broken = self._open.pop()
            broken.disconnected = True
            broken.message_event.set()
            if self.pipeline and self.pipeline[0][0] is broken:
                self.pipeline.popleft()
            if broken.response_started:
                self.transport.abort()
                return
        if not self._open:
            self._say_refused()

    def _is_of_head(self) -> bool:
        """Return whether what is being read is a HEAD request, as far as it is known."""
        return self.parser.get_method() == b"HEAD"

    def _say_refused(self) -> None:
        if self._refused is None or self.transport.is_closing():
            return
        self.transport.write(refusal(self._refused))
        self._patience.linger(self.transport)


def _is_open(cycle: RequestResponseCycle) -> bool:
    return not (cycle.response_complete or cycle.disconnected)


def _until_close(cycle: RequestResponseCycle) -> Send:
    """Return what sends an answer to HTTP/1.0, which knows no chunks: a body of unknown length ends with the connection.

    Source: RFC 9112, section 6.3.
    """
    send, ends = cycle.send, False

    async def told(message: Any) -> None:
        nonlocal ends
        if message["type"] == "http.response.start":
            ends = all(name.lower() != b"content-length" for name, _ in message.get("headers", ()))
            cycle.chunked_encoding = False if ends else None
        elif ends:
            cycle.expected_content_length = len(message.get("body", b""))
        await send(message)

    return told
