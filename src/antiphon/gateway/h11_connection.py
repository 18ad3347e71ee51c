"""HTTP connections of the served gateway, where h11 reads them: a client is seen to leave, and a broken body ends it."""

from __future__ import annotations

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

MOST_AHEAD = 64 * 1024  # bytes of requests that may wait for the one before them


class H11Connection(H11Protocol):
    """A connection whose client is seen to leave, also while a request waits for its turn, or where its body breaks.

    uvicorn 0.54 stops reading there, so that it keeps little, and nobody sees the connection end; and to a request
    whose body breaks it gives a second answer, beside its own.
    """

    def handle_events(self) -> None:
        """Read what came."""
        super().handle_events()
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
        cycle: RequestResponseCycle | None = self.cycle
        if cycle and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:  # it has its answer, or a part of it
            self.transport.abort()
