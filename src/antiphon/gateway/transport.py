"""The app as a transport of the HTTP client: requests reach it inside the process, answers stream as they are made."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, MutableMapping
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

import httpx2
from starlette.applications import Starlette

T = TypeVar("T")
Message: TypeAlias = MutableMapping[str, Any]

AHEAD = 8  # messages that the app may be ahead of the reader


class _Exchange:
    """One request to the app, and the messages of its answer."""

    def __init__(self, app: Starlette, request: httpx2.Request, body: bytes) -> None:
        self._app, self._request, self._body = app, request, body
        times: dict[str, float | None] = request.extensions.get("timeout", {})
        self._patience = times.get("read")  # as over a connection, nothing else takes its time here
        self._scope = _scope(request)
        self._sent = False
        self._left = asyncio.Event()
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue(AHEAD)
        self._task = asyncio.create_task(self._run())

    async def next(self) -> Message | None:
        """Return the next message, None at the end of the answer. Raises what the app raised, and ReadTimeout where
        nothing comes for as long as the request allows."""
        try:
            async with asyncio.timeout(self._patience):
                message = await self._messages.get()
        except TimeoutError:
            why = f"the app gave nothing for {self._patience:g} s"
            raise httpx2.ReadTimeout(why, request=self._request) from None
        if message is None:
            await self._task
        return message

    async def leave(self) -> None:
        """Go away, as a client whose connection is closed, and return once the app is done."""
        self._left.set()
        while not self._task.done():
            while not self._messages.empty():
                self._messages.get_nowait()
            await asyncio.wait((self._task,), timeout=0.05)
        if self._messages.empty():
            self._messages.put_nowait(None)  # whoever still waits for a message waits no longer

    async def _run(self) -> None:
        try:
            await self._app(self._scope, self._receive, self._send)
        finally:
            if not self._left.is_set():
                await self._messages.put(None)

    async def _receive(self) -> Message:
        if not self._sent:
            self._sent = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        if not self._left.is_set():
            await self._messages.put(message)


def _scope(request: httpx2.Request) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": request.url.scheme,
        "path": request.url.path,
        "raw_path": request.url.raw_path.partition(b"?")[0],
        "query_string": request.url.query,
        "root_path": "",
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "server": (request.url.host, request.url.port),
        "client": ("127.0.0.1", 0),
    }


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: _Exchange, leave: Callable[[_Exchange], Awaitable[None]]) -> None:
        self._exchange, self._leave = exchange, leave

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (message := await self._exchange.next()) is not None:
            if message.get("body"):
                yield message["body"]

    async def aclose(self) -> None:
        await self._leave(self._exchange)


class AppTransport(httpx2.AsyncBaseTransport):
    """Sends requests to the app. Closing it leaves what is open, and closes the app's gateway."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        self._open: set[_Exchange] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer as soon as it begins; its body streams."""
        exchange = _Exchange(self._app, request, await request.aread())
        self._open.add(exchange)
        try:
            start = await exchange.next()
        except BaseException:
            await self._leave(exchange)
            raise
        if start is None:
            raise httpx2.RemoteProtocolError("the app gave no answer", request=request)
        return httpx2.Response(start["status"], headers=start["headers"], stream=_Body(exchange, self._leave))

    async def aclose(self) -> None:
        """Close the gateway."""
        for exchange in tuple(self._open):
            await self._leave(exchange)
        await self._app.state.gateway.aclose()

    async def _leave(self, exchange: _Exchange) -> None:
        self._open.discard(exchange)
        await exchange.leave()


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="antiphon-client", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return self._thread.is_alive()

    def run(self, awaited: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine gives that runs in the loop."""
        waiting: Future[T] = asyncio.run_coroutine_threadsafe(awaited, self._loop)
        try:
            return waiting.result()
        except BaseException:
            waiting.cancel()
            raise

    def finish(self, awaited: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the loop, to its end; in the loop's own thread, where garbage may be collected, later."""
        if threading.current_thread() is self._thread:
            asyncio.run_coroutine_threadsafe(awaited, self._loop)
        else:
            self.run(awaited)

    def close(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class _SyncBody(httpx2.SyncByteStream):
    def __init__(self, loop: _Loop, response: httpx2.Response) -> None:
        self._loop, self._response = loop, response

    def __iter__(self) -> Iterator[bytes]:
        pieces = self._response.aiter_raw()
        while (piece := self._loop.run(_next(pieces))) is not None:
            yield piece

    def close(self) -> None:
        if self._loop.is_open:  # else all was left with it
            self._loop.finish(self._response.aclose())


async def _next(pieces: AsyncIterator[bytes]) -> bytes | None:
    return await anext(pieces, None)


class SyncAppTransport(httpx2.BaseTransport):
    """As `AppTransport`, for callers without an event loop: the app runs in a thread."""

    def __init__(self, app: Starlette) -> None:
        self._inner = AppTransport(app)
        self._loop = _Loop()
        self._closed = False

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer as soon as it begins; its body streams."""
        asked = httpx2.Request(request.method, request.url, headers=request.headers, content=request.read())
        asked.extensions = {"timeout": request.extensions.get("timeout", {})}
        response = self._loop.run(self._inner.handle_async_request(asked))
        return httpx2.Response(
            response.status_code, headers=response.headers.raw, stream=_SyncBody(self._loop, response)
        )

    def close(self) -> None:
        """Close the gateway, and end the thread."""
        if not self._closed:
            self._closed = True
            self._loop.run(self._inner.aclose())
            self._loop.close()
