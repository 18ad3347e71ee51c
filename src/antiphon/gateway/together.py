"""What many ask of the store at the same time, done at once: a transaction costs much, and one more row in it little."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeAlias, TypeVar

from .errors import StoreUnavailable

T = TypeVar("T")
_Waiting: TypeAlias = list[tuple[T, asyncio.Future[None]]]


class Together(Generic[T]):
    """Has `act` do what waits, at most `most` at once; whoever comes meanwhile is in the next round.

    `alone`: where a round fails, each of it is tried by itself, since one may be what does not fit.
    """

    def __init__(self, act: Callable[[Sequence[T]], Awaitable[None]], most: int, *, alone: bool) -> None:
        self._act, self._most, self._alone = act, most, alone
        self._waiting: _Waiting[T] = []
        self._rounds: asyncio.Task[None] | None = None

    async def done(self, value: T) -> None:
        """Return once this was done. Raises what its round raises, or StoreUnavailable where that took too long."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((value, future))
        if self._rounds is None or self._rounds.done():
            self._rounds = asyncio.create_task(self._run())
        await future

    async def _run(self) -> None:
        while self._waiting:
            some, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            await self._round(some)

    async def _round(self, some: _Waiting[T]) -> None:
        try:
            await self._act([value for value, _ in some])
        except StoreUnavailable as problem:
            if self._alone and len(some) > 1 and not problem.is_late:
                for one in some:
                    await self._round([one])
                return
            if problem.is_late:  # the next round would be, too, and those who wait for it have waited for this one
                some, self._waiting = [*some, *self._waiting], []
            _tell(some, problem)
        except Exception as problem:  # noqa: BLE001 -- whatever it is, it is told to those who wait
            _tell(some, problem)
        else:
            _tell(some, None)


def _tell(some: _Waiting[T], problem: Exception | None) -> None:
    for _, future in some:
        if future.done():
            continue  # who waited was cancelled
        if problem is None:
            future.set_result(None)
        else:
            future.set_exception(problem)
