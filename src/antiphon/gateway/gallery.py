"""The pictures of the processes behind one port: while somebody looks at the page, each draws its own into a folder, and
whichever is asked shows them all."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec

log = logging.getLogger("antiphon.gateway")
EVERY = 1.0  # seconds between two drawings
LOOKING = 5.0  # seconds for which a look counts
LATE = 10.0  # seconds after which pictures are not shown: their process is gone, or nobody has looked


class Picture(msgspec.Struct, frozen=True):
    """A stream as it is shown. `owner`: whose key asked for it. `began`: seconds since 1970."""

    owner: str
    backend: str
    began: float
    svg: str


class Gallery:
    """The pictures in `folder`, of one process among those that share it. `drawn`: returns this one's own."""

    def __init__(self, folder: Path, drawn: Callable[[], Awaitable[list[Picture]]]) -> None:
        self._drawn = drawn
        self._file = folder / f"{os.getpid()}-{os.urandom(4).hex()}.page"
        self._look = folder / "looked"
        self._failed = False

    async def others(self) -> list[Picture]:
        """Return the pictures of the other processes. Those draw for a while from now on: at first there may be none."""
        return await asyncio.to_thread(self._looked)

    @asynccontextmanager
    async def drawing(self) -> AsyncGenerator[None]:
        """Draw for the others while the block lasts and somebody looks."""
        ends = asyncio.Event()
        task = asyncio.create_task(self._draw_until(ends))
        try:
            yield
        finally:
            ends.set()
            await asyncio.wait((task,))
            await asyncio.to_thread(self._file.unlink, missing_ok=True)

    # --- inside ------------------------------------------------------------------------------------------------

    async def _draw_until(self, ends: asyncio.Event) -> None:
        while not ends.is_set():
            if await asyncio.to_thread(_age_of, self._look) < LOOKING:
                await self._draw()
            with suppress(TimeoutError):
                await asyncio.wait_for(ends.wait(), EVERY)

    async def _draw(self) -> None:
        data = msgspec.json.encode(await self._drawn())
        try:
            await asyncio.to_thread(self._replace, data)
            self._failed = False
        except OSError as problem:
            if not self._failed:
                log.warning("what this process streams cannot be drawn for the others: %s", problem.strerror)
            self._failed = True

    def _replace(self, data: bytes) -> None:
        """Put a whole file in the place of the last one: who reads it meanwhile reads that."""
        fresh = self._file.with_suffix(".drawn")
        fresh.write_bytes(data)
        fresh.replace(self._file)

    def _looked(self) -> list[Picture]:
        with suppress(OSError):  # where nothing can be written, they do not draw either
            self._look.touch()
        return list(self._others())

    def _others(self) -> Iterator[Picture]:
        for path in self._file.parent.glob("*.page"):
            if path == self._file or _age_of(path) > LATE:
                continue
            with suppress(OSError, msgspec.DecodeError):
                yield from msgspec.json.decode(path.read_bytes(), type=list[Picture])


def _age_of(path: Path) -> float:
    """Return how many seconds ago a file was written; without end where there is none."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return float("inf")
