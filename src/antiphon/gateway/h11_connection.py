"""HTTP connections of the served gateway, where h11 reads them: a client is seen to leave, and a broken body ends it."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from .heads import (
    HEAD_SECONDS,
    MOST_HEAD,
    BadHead,
    Patience,
    check_head,
    closing,
    origin_form,
    refusal,
    send_at_once,
    too_large,
)

MOST_AHEAD = 64 * 1024  # bytes of requests that may wait for the one before them

# What httptools refuses, and h11 0.16 reads: lines that end otherwise or go on, control characters, two lengths.
_LAX = re.compile(
    rb"(?<!\r)\n|\r(?!\n)|\n[ \t]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\ncontent-length:[^\n]*,|"
    rb"\ncontent-length:(?s:.*)\ncontent-length:",
    re.IGNORECASE,
)


class H11Connection(H11Protocol):
    """A connection whose client is seen to leave, also while a request waits for its turn, or where its body breaks.

    uvicorn 0.54 stops reading there, so that it keeps little, and nobody sees the connection end; and to a request
    whose body breaks it gives a second answer, beside its own.
    """

    head_seconds = HEAD_SECONDS

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn = _Strict(h11.SERVER, MOST_HEAD)
        self._latest: RequestResponseCycle | None = None
        self._is_refused = False  # nothing more is read
        self._patience = Patience(self.head_seconds)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin, and wait for a head."""
        super().connection_made(transport)
        send_at_once(transport)
        self._patience.begin(self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._patience.stop()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        if not self._is_refused:
            super().data_received(data)

    def on_response_complete(self) -> None:
        """Wait for the next head, or begin the request that is there."""
        self._patience.begin(self.transport)
        super().on_response_complete()

    def handle_events(self) -> None:
        """Read what came."""
        super().handle_events()
        if self.cycle is not self._latest:
            self._patience.stop()
            cycle = self._latest = self.cycle
            cycle.send = closing(cycle, cycle.send)  # type: ignore[method-assign, assignment]  # uvicorn makes its cycles by itself
        waits = self.conn.their_state is h11.DONE and self.conn.our_state is not h11.DONE
        if not waits or self.transport.is_closing():
            return
        ahead, _ = self.conn.trailing_data
        if len(ahead) > MOST_AHEAD:
            self.transport.abort()  # an answer is on its way, and another one would be read as a part of it
        elif ahead:
            self.flow.resume_reading()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP; a request that is being read is over with it."""
        raised = sys.exception()
        problem = raised.why if isinstance(raised, _Refused) else BadHead()
        cycle: RequestResponseCycle | None = self.cycle
        if cycle and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            problem.of_head = cycle.scope["method"] == "HEAD"
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._is_refused = True
            self.transport.write(refusal(problem))
            self._patience.linger(self.transport)
        else:  # it has its answer, or a part of it
            self.transport.abort()

    def shutdown(self) -> None:
        """End at the server's end."""
        if self._is_refused:  # past h11, which does not know that it was answered
            self.transport.close()
        else:
            super().shutdown()

    def _should_upgrade(self) -> bool:
        return False


class _Strict(h11.Connection):
    """Reads heads as strictly as httptools does, and a whole URL as a target."""

    def next_event(self) -> Any:
        """Return what h11 returns. Raises RemoteProtocolError also for a head that is refused."""
        if self.their_state is not h11.IDLE:
            return super().next_event()
        before, _ = self.trailing_data
        blank = len(before) - len(before.lstrip(b"\r\n"))
        if blank:  # some clients end a body with a line of their own. Source: RFC 9112, section 2.2
            self._receive_buffer.maybe_extract_at_most(blank)
        event = self._head(is_head=before[blank:].startswith(b"HEAD "))
        if not isinstance(event, h11.Request):
            return event
        after, _ = self.trailing_data
        return _checked(event, before[blank : len(before) - len(after)])

    def _head(self, *, is_head: bool) -> Any:
        try:
            return super().next_event()
        except h11.RemoteProtocolError as problem:
            raise _Refused(too_large() if problem.error_status_hint == 431 else BadHead(), of_head=is_head) from None


class _Refused(h11.RemoteProtocolError):
    """A head is refused, by h11 or here."""

    def __init__(self, why: BadHead, *, of_head: bool) -> None:
        super().__init__(why.message, why.status)
        self.why = why
        why.of_head = of_head


def _checked(event: h11.Request, head: bytes) -> h11.Request:
    try:
        if len(head) > MOST_HEAD:
            raise too_large()
        if _LAX.search(head):
            raise BadHead
        check_head(event.method.decode(), event.target, event.http_version.decode(), event.headers)
    except BadHead as problem:
        raise _Refused(problem, of_head=event.method == b"HEAD") from None
    target = origin_form(event.target)
    if target == event.target:
        return event
    return h11.Request(method=event.method, target=target, headers=event.headers, http_version=event.http_version)
