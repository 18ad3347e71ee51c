"""What the processes behind one port count: each writes its numbers into a folder, and whichever is asked adds them up."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from .metrics import Metrics

log = logging.getLogger("antiphon.gateway")
EVERY = 1.0  # seconds between two writings
LATE = 10.0  # seconds after which a process that has not written is taken for gone: what it counted stays


class Beside:
    """One process among those that share `folder`. `gauges`: returns what there is in this process now."""

    def __init__(self, folder: Path, metrics: Metrics, gauges: Callable[[], dict[str, int]]) -> None:
        self._metrics, self._gauges = metrics, gauges
        self._file = folder / f"{os.getpid()}-{os.urandom(4).hex()}.json"
        self._failed = False

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """Write what is counted while the block lasts, and a last time at its end."""
        ends = asyncio.Event()
        task = asyncio.create_task(self._write_until(ends))
        try:
            yield
        finally:
            ends.set()  # not cancelled: a thread that writes would go on, beside the one that writes last
            await asyncio.wait((task,))
            await self._write({})

    async def joined(self) -> tuple[Metrics, dict[str, int]]:
        """Return what all processes counted, and what there is in all that run; this one as it is now."""
        joined, gauges = Metrics(), Counter(self._gauges())
        joined.join(self._metrics.held())
        for held, is_late in await asyncio.to_thread(lambda: list(self._others())):
            joined.join(held["metrics"])
            if not is_late:
                gauges.update(held["gauges"])
        return joined, dict(gauges)

    # --- inside ------------------------------------------------------------------------------------------------

    async def _write_until(self, ends: asyncio.Event) -> None:
        while not ends.is_set():
            await self._write(self._gauges())
            with suppress(TimeoutError):
                await asyncio.wait_for(ends.wait(), EVERY)

    async def _write(self, gauges: dict[str, int]) -> None:
        data = msgspec.json.encode({"metrics": self._metrics.held(), "gauges": gauges})
        try:
            await asyncio.to_thread(self._replace, data)
            self._failed = False
        except OSError as problem:
            if not self._failed:
                log.warning("what this process counts cannot be written for the others: %s", problem.strerror)
            self._failed = True

    def _replace(self, data: bytes) -> None:
        """Put a whole file in the place of the last one: who reads it meanwhile reads that."""
        fresh = self._file.with_suffix(".new")
        fresh.write_bytes(data)
        fresh.replace(self._file)

    def _others(self) -> Iterator[tuple[dict[str, Any], bool]]:
        for path in self._file.parent.glob("*.json"):
            if path == self._file:
                continue
            try:
                held, written = msgspec.json.decode(path.read_bytes()), path.stat().st_mtime
            except (OSError, msgspec.DecodeError):
                continue
            yield held, time.time() - written > LATE
