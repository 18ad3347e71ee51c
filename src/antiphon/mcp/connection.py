"""A connection to an MCP server: one task opens it, holds it and closes it; any task may use it meanwhile.

The transports of the `mcp` package must be left in the task that entered them, and who calls `connect()` is often not
who calls `cleanup()`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import httpx2
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

from antiphon.exceptions import UserError

logger = logging.getLogger("antiphon")

Open: TypeAlias = Callable[[], AbstractAsyncContextManager[Any]]


class Connection:
    """One connection. `open` makes the transport; `on_message` is told what the server says unasked.

    `on_tools_changed`, where given, is called when the server says that its tools changed, and when it may have.
    """

    def __init__(
        self,
        name: str,
        open: Open,
        *,
        timeout: float | None,
        on_message: Any = None,
        on_tools_changed: Callable[[], None] | None = None,
    ) -> None:
        self.name = name
        self._open, self._timeout, self._on_message = open, timeout, on_message
        self._on_tools_changed = on_tools_changed
        self._holder: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Client]
        self._stop: asyncio.Event
        self._client: Client | None = None
        self._renewing = asyncio.Lock()
        self._waiting = 0  # how many wait for it to be connected

    @property
    def client(self) -> Client:
        """Return the client. Raises UserError where there is no connection."""
        if self._client is None or self._holder is None or self._holder.done():
            raise UserError(
                f"the MCP server {self.name!r} is not connected: use it in `async with server:`, or call connect() first"
            )
        return self._client

    async def start(self) -> None:
        """Connect, unless that is done. Raises UserError where the server cannot be reached."""
        if self._holder is None or self._holder.done():
            self._ready = asyncio.get_running_loop().create_future()
            self._stop = asyncio.Event()
            self._holder = asyncio.create_task(self._hold(self._ready, self._stop))
        self._waiting += 1
        try:
            self._client = await asyncio.shield(self._ready)
        except asyncio.CancelledError:
            if self._waiting == 1:  # nobody else waits for it
                self._holder.cancel()
                await asyncio.wait({self._holder})
            raise
        finally:
            self._waiting -= 1

    async def stop(self) -> None:
        """Close the connection, and a server that was started for it. Safe to call again."""
        holder, self._holder, self._client = self._holder, None, None
        if holder is not None:
            self._stop.set()
            await asyncio.wait({holder})

    async def renew(self, lost: Client) -> None:
        """Connect anew, unless somebody did so since the client `lost` was found to be of no use."""
        async with self._renewing:
            if self._client is lost:
                await self.stop()
                await self.start()

    async def _hold(self, ready: asyncio.Future[Client], stop: asyncio.Event) -> None:
        try:
            async with Client(
                self._open(), read_timeout_seconds=self._timeout, message_handler=self._on_message, cache=None
            ) as client:
                ready.set_result(client)
                watcher = asyncio.create_task(self._watch(client))
                await stop.wait()
                watcher.cancel()
                await asyncio.gather(watcher, return_exceptions=True)
        except Exception as error:  # noqa: BLE001  # transports raise what they like, in groups too
            self._failed(ready, reason(error))
        finally:
            ready.cancel()  # whoever waits still is told that nothing comes

    async def _watch(self, client: Client) -> None:
        """Hear of changed tools. Protocols before 2026-07-28 say it unasked, so there is nothing to ask for."""
        if self._on_tools_changed is None:
            return
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                self._on_tools_changed()  # what changed before the server heard of us is not said
                async for _ in subscription:
                    self._on_tools_changed()
        except ListenNotSupportedError:
            return
        except (SubscriptionLost, MCPError, TimeoutError):
            self._on_tools_changed()

    def _failed(self, ready: asyncio.Future[Client], why: str) -> None:
        if ready.done():
            logger.warning("the MCP server %s did not close well: %s", self.name, why)
        else:
            ready.set_exception(UserError(f"the MCP server {self.name!r} cannot be reached: {why}"))


def reason(error: BaseException) -> str:
    """Return why something failed, in words that hold no URL, header or key."""
    match error:
        case BaseExceptionGroup(exceptions=(first, *_)):
            return reason(first)
        case MCPError():
            return error.message
        case httpx2.HTTPStatusError():
            return f"HTTP status {error.response.status_code}"
        case OSError(strerror=str(words)):
            return words
        case _:
            return type(error).__name__
