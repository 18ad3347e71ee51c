"""The body of an answer that should be a stream of events: what it is, told by how it begins.

The OpenAI SDK takes any body for a stream, and finds no event in what is none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import httpx2

from antiphon.errors import BadInput
from antiphon.stream.sse import detect_format

BEGINNING = 4096  # bytes after which a body must have said what it is
MOST_WHOLE = 64 * 2**20  # bytes of a body that is read whole
_FRAMING = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # of the body as it was sent


class Begun(httpx2.AsyncByteStream):
    """The body of an answer, decompressed, whose beginning is looked at before it is read."""

    def __init__(self, answer: httpx2.Response) -> None:
        self._answer = answer
        self._rest = answer.aiter_bytes()
        self._begun = b""

    async def beginning(self) -> bytes:
        """Return the first line that is not blank, or more. Comments of events are such lines."""
        while b"\n" not in self._begun.lstrip() and len(self._begun) < BEGINNING:
            piece = await anext(self._rest, None)
            if piece is None:
                break
            self._begun += piece
        return self._begun

    async def read(self) -> bytes:
        """Return all of it, up to `MOST_WHOLE` bytes and a piece, and close it."""
        pieces = [self._begun]
        size = len(self._begun)
        async with aclosing(self):
            async for piece in self._rest:
                pieces.append(piece)
                size += len(piece)
                if size > MOST_WHOLE:
                    break
        return b"".join(pieces)

    def response(self) -> httpx2.Response:
        """Return the answer with this body."""
        answer = self._answer
        headers = [(name, value) for name, value in answer.headers.multi_items() if name.lower() not in _FRAMING]
        return httpx2.Response(
            answer.status_code, headers=headers, stream=self, request=answer.request, extensions=answer.extensions
        )

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        begun, self._begun = self._begun, b""
        if begun:
            yield begun
        async for piece in self._rest:
            yield piece

    async def aclose(self) -> None:
        """Close the answer."""
        await self._answer.aclose()
        with suppress(RuntimeError):  # somebody waits for a piece, and is told by the answer
            await self._rest.aclose()


def begins_events(body: bytes) -> bool:
    """Return whether a body, or its beginning, is a stream of server-sent events."""
    if not body.strip() or body.lstrip()[:1] == b"<":
        return False
    try:
        return detect_format(body) == "sse"
    except BadInput:
        return False
