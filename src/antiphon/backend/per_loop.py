"""One client for each event loop: connections belong to the loop that made them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

C = TypeVar("C")


class PerLoop(Generic[C]):
    """Clients by their event loops, each made by `make` at its first use."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]]) -> None:
        self._make, self._close = make, close
        self._clients: dict[asyncio.AbstractEventLoop, C] = {}

    def get(self) -> C:
        """Return the client of the loop that runs; it is made at its first use."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for gone in [one for one in list(self._clients) if one.is_closed()]:  # other threads have loops too
                self._clients.pop(gone, None)  # nothing of it can be closed any more
            client = self._clients[loop] = self._make()
        return client

    async def close(self) -> None:
        """Close the client of the loop that runs. The next use makes a new one."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await self._close(client)
