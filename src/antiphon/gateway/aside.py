"""An event loop beside the one of the streams: a transaction takes many turns of its loop, and a turn in which hundreds
of streams have something to say is long."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Aside:
    """A loop in a thread of its own, which is begun when it is needed, and again after it was closed.

    `running`: what runs there now.
    """

    def __init__(self) -> None:
        self.running: set[asyncio.Task[Any]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._beginning = threading.Lock()

    @property
    def has_begun(self) -> bool:
        """Whether anything was run there."""
        return self._loop is not None

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what a coroutine gives there. It goes on to its end also where its caller is cancelled."""
        loop = self._begun()
        if loop is asyncio.get_running_loop():
            return await coroutine
        return await asyncio.shield(asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._held(coroutine), loop)))

    async def aclose(self) -> None:
        """End the thread. What still runs there is lost."""
        with self._beginning:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            await asyncio.to_thread(thread.join)

    async def _held(self, coroutine: Coroutine[Any, Any, T]) -> T:
        task = asyncio.current_task()
        assert task is not None
        self.running.add(task)
        try:
            return await coroutine
        finally:
            self.running.discard(task)

    def _begun(self) -> asyncio.AbstractEventLoop:
        with self._beginning:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="antiphon-store", daemon=True)
                self._thread.start()
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
