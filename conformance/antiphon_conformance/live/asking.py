"""Asks a server over our HTTP backend, and keeps everything it sends as it came: one `Exchange` for each request.

A tap sits between the HTTP client and the network, so what is judged is what was on the wire, also where the backend
refuses it: an error, a web page, a redirection.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx2

from antiphon.backend import Pieces, Timeouts
from antiphon.errors import ConnectionFailed, ProviderError, TimedOut
from antiphon.stream.faults import redact
from antiphon_conformance.exchange import Api, Exchange, Failure, Piece
from antiphon_providers.backends.http import HttpBackend

MOST = 2 * 2**20  # bytes of an answer that are kept, some hundred times what a probe asks for; what goes on is not read
RESPONSES = "/responses"
SHORTEST_KEY = 6  # characters; what is shorter is a placeholder
# Headers of an answer that are kept: none of them tells who asked.
KEPT = ("content-type", "content-length", "content-encoding", "transfer-encoding", "location", "server", "retry-after")


class ResponsesBackend(HttpBackend):
    """A server that speaks Responses natively, reached as chat backends are."""

    async def events(self, body: Mapping[str, Any]) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of the body as they come from the network."""
        async with self._answer("POST", RESPONSES, body, None, None) as answer:
            while (piece := await answer.piece()) is not None:
                yield piece


Pulled: TypeAlias = Pieces | AsyncGenerator[bytes, None]


@dataclass(slots=True)
class Capture:
    """What the network gave so far."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    pieces: list[Piece] = field(default_factory=list[Piece])
    size: int = 0
    begun: float = field(default_factory=time.monotonic)
    too_long: bool = False
    connected: bool = True

    def take(self, data: bytes) -> None:
        """Keep one piece. Raises httpx2.ReadError where the answer is longer than what is kept."""
        self.pieces.append(Piece(round(self.passed, 3), data[: MOST - self.size]))
        self.size += len(data)
        if self.size > MOST:
            self.too_long = True
            raise httpx2.ReadError(f"the answer is longer than {MOST} bytes")

    @property
    def passed(self) -> float:
        """The seconds since the request."""
        return time.monotonic() - self.begun


class _Tap(httpx2.AsyncBaseTransport):
    """The network, and a note of all that comes from it."""

    def __init__(self, network: httpx2.AsyncBaseTransport, capture: Capture) -> None:
        self._network, self._capture = network, capture

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            answer = await self._network.handle_async_request(request)
        except httpx2.ConnectError:
            self._capture.connected = False
            raise
        named = {name.lower(): value for name, value in answer.headers.items()}
        self._capture.status = answer.status_code
        self._capture.headers = {name: redact(named[name]) for name in KEPT if name in named}
        answer.stream = _Tapped(answer.stream, self._capture)
        return answer

    async def aclose(self) -> None:
        await self._network.aclose()


class _Tapped(httpx2.AsyncByteStream):
    """A body, noted piece by piece."""

    def __init__(self, body: Any, capture: Capture) -> None:
        self._body, self._capture = body, capture

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._body:
            self._capture.take(piece)
            yield piece

    async def aclose(self) -> None:
        await self._body.aclose()


@dataclass(frozen=True, slots=True)
class Server:
    """A server that can be asked. Each request has a connection of its own, which is closed after it."""

    url: str
    api: Api
    timeouts: Timeouts
    api_key: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    async def ask(self, body: Mapping[str, Any], *, leave_after: int | None = None) -> Exchange:
        """Return the exchange for a request whose `stream` says whether it streams. `leave_after`: the client closes
        the connection after so many pieces."""
        capture = Capture()
        left, failed = False, None
        async with self._client(capture) as client:
            backend = self._backend(client)
            try:
                if isinstance(backend, ResponsesBackend):
                    left = await _pulled(backend.events(body), leave_after)
                elif body.get("stream") is True:
                    left = await _pulled(backend.stream(body), leave_after)
                else:
                    await backend.complete(body)
            except ProviderError as error:
                failed = error
        failure, message = _failure(failed, capture)
        pieces = self._hidden(_decoded(capture))
        return Exchange(
            self.api,
            dict(body),
            capture.status,
            capture.headers,
            pieces,
            failure,
            self._without_key(message),
            round(capture.passed, 3),
            left,
        )

    async def models(self) -> list[str]:
        """Return the names of the models that the server lists. Raises ProviderError where it cannot be asked."""
        async with self._client(Capture()) as client:
            return [str(one["id"]) for one in await self._backend(client).models()]

    def _client(self, capture: Capture) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=_Tap(httpx2.AsyncHTTPTransport(), capture), trust_env=False)

    def _backend(self, client: httpx2.AsyncClient) -> HttpBackend:
        kind = HttpBackend if self.api == "chat" else ResponsesBackend
        url = self.url.rstrip("/").removesuffix(RESPONSES)
        return kind(url, self.api_key, headers=self.headers, timeout=self.timeouts, client=client)

    def _secrets(self) -> list[str]:
        given = [self.api_key or "", *(value.rpartition(" ")[2] for value in self.headers.values())]
        return [one for one in given if len(one) >= SHORTEST_KEY]

    def _without_key(self, message: str) -> str:
        for secret in self._secrets():
            message = message.replace(secret, "***")
        return message

    def _hidden(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """Return the body without keys that the server repeats: as one piece where there are any."""
        body = b"".join(piece.data for piece in pieces)
        clean = body
        for secret in self._secrets():
            clean = clean.replace(secret.encode(), b"***")
        return pieces if clean == body else (Piece(pieces[0].at, clean),)


async def _pulled(stream: Pulled, leave_after: int | None) -> bool:
    """Pull a stream to its end; returns whether it was left before."""
    count = 0
    async with aclosing(stream):
        async for _ in stream:
            count += 1
            if leave_after is not None and count >= leave_after:
                return True
    return False


def _failure(error: ProviderError | None, capture: Capture) -> tuple[Failure, str]:
    """Return how an exchange failed. A refusal is no failure: it was answered."""
    if capture.too_long:
        return "too_long", f"the answer is longer than {MOST} bytes"
    match error:
        case TimedOut(stage=stage):
            kinds: dict[str, Failure] = {"connect": "connect", "total": "late"}
            return kinds.get(stage, "silent"), str(error)
        case ConnectionFailed():
            return ("broken" if capture.connected else "connect"), str(error)
        case None:
            return "", ""
        case _:
            return "", "" if capture.status is not None else str(error)


def _decoded(capture: Capture) -> tuple[Piece, ...]:
    """Return the pieces of the body, as one where it came compressed."""
    if not capture.headers.get("content-encoding") or not capture.pieces:
        return tuple(capture.pieces)
    raw = b"".join(piece.data for piece in capture.pieces)
    headers = {"content-encoding": capture.headers["content-encoding"]}
    try:
        body = httpx2.Response(200, headers=headers, content=raw).content
    except httpx2.DecodingError:
        body = raw
    return (Piece(capture.pieces[0].at, body[:MOST]),)
