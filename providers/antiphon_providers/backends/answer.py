"""One answer of a server, as HTTP gives it: its head says whether it is one, its body is read in pieces and closed."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Self

import anyio
import httpx2

from antiphon.backend.begun import BEGINNING, MOST_WHOLE
from antiphon.errors import BadAnswer, BadInput, ProviderError, Stage
from antiphon.stream.sse import DONE, detect_format

from .completion import completion_of_stream, is_stream
from .concealing import Hide
from .failures import (
    failure_of_answer,
    failure_of_error,
    failure_of_page,
    is_page,
    reports_error,
    request_id_in,
)
from .pace import Pace

CLIENT_ERRORS = (httpx2.HTTPError, httpx2.StreamError, OSError)

MOST_ERROR = 65536  # bytes of the body of an error
_DRAIN = 0.1  # seconds for what comes after `[DONE]`: with that read, the connection serves the next request
_DONE_EVENT = b"data: [DONE]\n\n"


class Answer:
    """The answer to one request, which is sent when the answer is entered.

    Entering raises for what is no answer: another status than 2xx. Leaving closes it: the connection is kept for the
    next request if the body was read to its end, and is broken else.
    """

    def __init__(self, send: Callable[[], Awaitable[httpx2.Response]], pace: Pace, hide: Hide) -> None:
        self._send, self._pace, self._hide = send, pace, hide
        self._stage: Stage = "first_byte"
        self._last = self._before = b""  # the last two pieces

    async def __aenter__(self) -> Self:
        try:
            self._response = await self._send()
        except BaseException:
            self._pace.stop()
            raise
        self._body = self._response.aiter_bytes()
        try:
            if not self._response.is_success:
                raise await self._refusal()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    @property
    def request_id(self) -> str | None:
        """The provider's number of the request, once the answer was entered."""
        return request_id_in(self._response.headers)

    async def piece(self) -> bytes | None:
        """Return the next piece of the body, which is not empty, or None at its end."""
        outer = sys.exception()
        wait = self._pace.first if self._stage == "first_byte" else self._pace.next
        try:
            piece = await wait(anext(self._body))
        except StopAsyncIteration:
            return None
        except CLIENT_ERRORS as error:
            failure = failure_of_error(error, self._hide, self._stage, outer)
        else:
            self._stage = "idle"
            self._before, self._last = self._last, piece
            return piece
        raise failure

    async def first_events(self) -> bytes | None:
        """Return the beginning of the SSE body, or None where there is none: `piece` gives the rest.

        A whole completion comes as one message. Raises BadAnswer for a web page or for what is no chat answer.
        """
        if self._says("event-stream"):
            return await self.piece()
        begun = await self._beginning()
        if is_page(begun) or not begun.strip():
            raise self._bad(begun)
        try:
            format = detect_format(begun)
        except BadInput:
            raise self._bad(begun) from None
        if format == "sse" or (format == "jsonl" and not self._says("/json")):
            return begun
        return self._events(begun + await self._read(MOST_WHOLE))

    async def completion(self) -> dict[str, Any]:
        """Return the whole completion. Raises BadAnswer where the body is none, the error that a body reports."""
        body = await self._read(MOST_WHOLE)
        found = _json(body)
        if isinstance(found, dict):
            return self._whole(found, body)  # pyright: ignore[reportUnknownArgumentType]
        if isinstance(found, list) and found:
            return completion_of_stream(self._events(body), self._hide)
        if self._says("event-stream") or is_stream(body):
            return completion_of_stream(body, self._hide)
        raise self._bad(body)

    async def json_object(self) -> dict[str, Any]:
        """Return the JSON object that the body is. Raises as `completion`."""
        body = await self._read(MOST_WHOLE)
        found = _json(body)
        if not isinstance(found, dict):
            raise self._bad(body)
        return self._faultless(found, body)  # pyright: ignore[reportUnknownArgumentType]

    async def models(self) -> list[dict[str, Any]]:
        """Return the listed models: `data` of OpenAI's list, or a bare list."""
        body = await self._read(MOST_WHOLE)
        found = _json(body)
        listed: Any = found.get("data") if isinstance(found, dict) else found  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if not isinstance(listed, list):
            raise self._bad(body)
        return [one for one in listed if isinstance(one, dict) and "id" in one]  # pyright: ignore[reportUnknownVariableType]

    # --- inside ------------------------------------------------------------------------------------------------

    def _says(self, kind: str) -> bool:
        return kind in self._response.headers.get("content-type", "").lower()

    async def _beginning(self) -> bytes:
        """Return the first line of the body, or more."""
        begun = b""
        while b"\n" not in begun.lstrip() and len(begun) < BEGINNING:
            piece = await self.piece()
            if piece is None:
                break
            begun += piece
        return begun

    async def _read(self, most: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while (piece := await self.piece()) is not None:
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise BadAnswer(f"the answer is longer than {most} bytes", status_code=self._response.status_code)
        return b"".join(pieces)

    def _events(self, body: bytes) -> bytes:
        """Return a JSON body as messages: a completion, a list of chunks; JSON lines are left as they are."""
        found = _json(body)
        if isinstance(found, list):
            return b"".join(_event(one) for one in found)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(found, dict):
            return _event(self._whole(found, body)) + _DONE_EVENT  # pyright: ignore[reportUnknownArgumentType]
        if body.lstrip()[:1] == b"{" and not is_stream(body):  # it was cut
            raise self._bad(body)
        return body

    def _whole(self, found: dict[str, Any], body: bytes) -> dict[str, Any]:
        if not self._faultless(found, body).get("choices"):
            raise self._bad(body)
        return found

    def _faultless(self, found: dict[str, Any], body: bytes) -> dict[str, Any]:
        if reports_error(found):
            raise failure_of_answer(self._response.status_code, self._response.headers, body, self._hide)
        return found

    def _bad(self, body: bytes) -> BadAnswer:
        came = self._response.headers.get("content-type") or "no content type"
        return failure_of_page(self._response.status_code, self._response.headers, body, self._hide, came)

    async def _refusal(self) -> ProviderError:
        """Return the error that the status says, with as much of the body as comes."""
        status, headers = self._response.status_code, self._response.headers
        body = b""
        with suppress(ProviderError):
            while len(body) < MOST_ERROR and (piece := await self.piece()) is not None:
                body += piece
        if not self._response.has_redirect_location:
            return failure_of_answer(status, headers, body[:MOST_ERROR], self._hide)
        target = self._hide(headers["location"])
        return BadAnswer(
            f"the provider answered {status}, a redirection to {target}: set the base URL to where it leads",
            status_code=status,
        )

    async def _close(self) -> None:
        """Close the body. Shielded: where a task group was cancelled, each `await` would raise again."""
        self._pace.stop()
        with anyio.CancelScope(shield=True):
            try:
                if (self._before + self._last)[-64:].rstrip().endswith(DONE):
                    await self._drain()
            finally:
                await self._body.aclose()
                await self._response.aclose()

    async def _drain(self) -> None:
        with suppress(TimeoutError, *CLIENT_ERRORS):
            async with asyncio.timeout(_DRAIN):
                async for _ in self._body:
                    pass


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _event(payload: Any) -> bytes:
    return b"data: %b\n\n" % json.dumps(payload).encode()
