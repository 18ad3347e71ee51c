"""A backend whose answer can be ended from outside: as if it had failed, so that the stream ends as failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any, TypeVar

from antiphon.backend import Backend, Form, Pieces, Timeout

T = TypeVar("T")


class Stop:
    """Ends what is awaited through it, by raising `reason` there; later waits raise it at once."""

    def __init__(self) -> None:
        self.reason: Exception | None = None
        self._task: asyncio.Task[object] | None = None

    def set(self, reason: Exception) -> None:
        """End the wait that goes on, and all later ones. The first reason counts."""
        if self.reason is None:
            self.reason = reason
            if self._task is not None:
                self._task.cancel()

    def check(self) -> None:
        """Raise the reason, if there is one."""
        if self.reason is not None:
            raise self.reason

    async def guard(self, awaited: Awaitable[T]) -> T:
        """Return what `awaited` gives. Raises the reason where it is stopped; another cancelling passes."""
        task = self._task = asyncio.current_task()
        try:
            return await awaited
        except asyncio.CancelledError:
            if self.reason is None or task is None or task.uncancel() > 0:
                raise
        finally:
            self._task = None
        raise self.reason


class StoppableBackend:
    """One request's view of a backend."""

    def __init__(self, inner: Backend, stop: Stop) -> None:
        self._inner, self._stop = inner, stop

    @property
    def form(self) -> Form:
        """What the backend gives."""
        return self._inner.form

    def stream(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, timeout: Timeout | None = None
    ) -> Pieces:
        """Return the answer's pieces, until it is stopped. The number of the request is not told to callers."""
        return Pieces(self._pulled(body, headers, timeout), lambda: None)

    async def _pulled(
        self, body: Mapping[str, Any], headers: Mapping[str, str] | None, times: Timeout | None
    ) -> AsyncGenerator[Any, None]:
        self._stop.check()
        pieces = self._inner.stream(body, headers=headers, timeout=times)
        try:
            while True:
                self._stop.check()
                try:
                    piece = await self._stop.guard(anext(pieces))
                except StopAsyncIteration:
                    return
                yield piece
        finally:
            await pieces.aclose()

    async def complete(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
    ) -> Any:
        """Return the whole answer, unless it is stopped before."""
        self._stop.check()
        return await self._stop.guard(self._inner.complete(body, headers=headers, timeout=timeout))

    async def models(self) -> list[dict[str, Any]]:
        """Return the models of the backend."""
        return await self._inner.models()

    async def aclose(self) -> None:
        """Do nothing: the backend is closed by whoever made it."""
