"""HTTP connections of the served gateway, where httptools reads them: with bounds that uvicorn sets for h11 alone.

Imported where httptools is installed; elsewhere there is `h11_connection`.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MOST_SILENT = 64 * 1024  # bytes that are no head and no body yet, as uvicorn has it for h11
MOST_AHEAD = 8  # requests that may wait for the one before them


class HttptoolsConnection(HttpToolsProtocol):
    """A connection that ends where a head, or what follows a body, never ends; and whose client is seen to leave.

    uvicorn 0.54 keeps a head of any size, and tells a client's leaving to the latest request alone: one that waits
    for its turn would hide it from the one that is being answered.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._silent = 0  # bytes that came since there was something of a request
        self._earlier: list[RequestResponseCycle] = []  # not answered yet, before the latest one

    def data_received(self, data: bytes) -> None:
        """Read what came."""
        self._silent += len(data)
        super().data_received(data)
        if self._silent > MOST_SILENT or len(self._earlier) > MOST_AHEAD:
            self._refuse()

    def on_headers_complete(self) -> None:
        """Begin a request, or let it wait for its turn."""
        self._silent = 0
        before = self.cycle
        super().on_headers_complete()
        self._earlier = [one for one in (*self._earlier, before) if _is_open(one) and one is not self.cycle]
        if self._earlier:
            self.flow.resume_reading()  # else nobody would see the client leave

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._silent = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End a request's body."""
        self._silent = 0
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell all requests that their client is gone."""
        for one in filter(_is_open, self._earlier):
            one.disconnected = True
            one.message_event.set()
        super().connection_lost(exc)

    def _refuse(self) -> None:
        if self.transport.is_closing():
            return
        if _is_open(self.cycle) or self._earlier:
            self.transport.abort()  # an answer may be on its way, and this one would be read as a part of it
        else:
            self.send_400_response("The head of the request is too large.")


def _is_open(cycle: RequestResponseCycle | None) -> bool:
    return cycle is not None and not cycle.response_complete
