"""Connections that are kept for the next request, and may have been closed by the server meanwhile."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

import httpcore2
import httpx2


class KeptConnections(httpx2.AsyncClient):
    """An HTTP client that sends a request once more where the connection that it had kept was gone.

    Servers close idle connections when they like (llama.cpp's and uvicorn's after five seconds), also in the moment in
    which a request is sent, so one that got not a byte of an answer on a connection of an earlier request was refused
    by nobody (RFC 9112, section 9.3.1). The second time it takes none that was idle then. A request that went out on a
    new one is never sent again, nor is one whose body is read from somewhere while it is sent.

    What a server sent beyond an answer is no answer to the next request, which gets RemoteProtocolError.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._losses = _Losses()
        self.event_hooks = {"response": [_was_asked_for]}
        for transport in (self._transport, *self._mounts.values()):
            if isinstance(transport, httpx2.AsyncHTTPTransport):
                # httpx2 2.16 has no argument for what httpcore2 calls `network_backend`.
                pool = transport._pool  # pyright: ignore[reportPrivateUsage]
                pool._network_backend = _Heard(pool._network_backend, self._losses)  # pyright: ignore[reportPrivateUsage]

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the response, as `httpx2.AsyncClient.send` does. Raises what that raises, from the last connection."""
        passed: list[str] = []

        async def note(stage: str, _: dict[str, Any]) -> None:
            passed.append(stage)

        request.extensions = {**request.extensions, "trace": note}
        try:
            return await super().send(request, **options)
        except httpx2.ReadError as lost:
            if not isinstance(lost.__cause__, Unanswered) or self.is_closed or _is_new(passed):
                raise
            if lost.request is not request or not _is_held(request):  # a redirection led to that connection
                raise
        self._losses.count += 1
        return await super().send(request, **options)


class Unanswered(httpcore2.ReadError):
    """The connection ended, or broke, without a byte since something was sent on it."""


@dataclass
class _Losses:
    """How many requests lost their connection. One that heard nothing of the server since is not trusted either.

    Servers that are begun anew lose all of them at once, and a request is sent once more, not once for each of them.
    """

    count: int = 0


class _Heard(httpcore2.AsyncNetworkBackend):
    """Connects as `inner` does, with streams that know whether they heard of the server."""

    def __init__(self, inner: httpcore2.AsyncNetworkBackend, losses: _Losses) -> None:
        self._inner, self._losses = inner, losses

    async def connect_tcp(self, *where: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return _HeardStream(await self._inner.connect_tcp(*where, **options), self._losses)

    async def connect_unix_socket(self, *where: Any, **options: Any) -> httpcore2.AsyncNetworkStream:
        return _HeardStream(await self._inner.connect_unix_socket(*where, **options), self._losses)

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _HeardStream(httpcore2.AsyncNetworkStream):
    """A connection. Reading raises Unanswered where it ends, or breaks, while it waits for an answer."""

    def __init__(self, inner: httpcore2.AsyncNetworkStream, losses: _Losses) -> None:
        self._inner, self._losses = inner, losses
        self.waits = False  # something was sent, and nothing came since
        self._known = losses.count  # when it last heard something

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        try:
            came = await self._inner.read(max_bytes, timeout)
        except httpcore2.ReadError as problem:
            if self.waits:
                raise Unanswered(str(problem) or "the connection broke without an answer") from problem
            raise
        if came:
            self.waits, self._known = False, self._losses.count
        elif self.waits:
            raise Unanswered("the server closed the connection without an answer")
        return came

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self.waits = True
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        return _HeardStream(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._losses)

    def get_extra_info(self, info: str) -> Any:
        """Return what `inner` says. By `is_readable` an idle connection is known to be over. Source: httpcore2 2.16."""
        if info == "is_readable" and self._known != self._losses.count:
            return True
        return self._inner.get_extra_info(info)


async def _was_asked_for(response: httpx2.Response) -> None:
    """Refuse an answer that was there before its request: httpcore2 keeps what came with the last one. (RFC 9112, 9.2.)"""
    stream = response.extensions.get("network_stream")
    if isinstance(stream, _HeardStream) and stream.waits:
        raise httpx2.RemoteProtocolError("the server sent more than the answer before", request=response.request)


def _is_new(passed: list[str]) -> bool:
    return any(".connect_" in stage for stage in passed)


def _is_held(request: httpx2.Request) -> bool:
    """Return whether the body is there to be sent again."""
    return isinstance(request.stream, httpx2.ByteStream)
