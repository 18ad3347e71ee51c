"""Streams that are left early leave nothing behind: no socket, no task, no memory.

100 of them as a rule; ANTIPHON_LEAK_STREAMS says how many.
"""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc

import pytest

from antiphon import aconvert, aconvert_sse

from .kinds import KINDS, Made, made, sockets
from .loopback import Act, chunked, serve, text

STREAMS = int(os.environ.get("ANTIPHON_LEAK_STREAMS", "100"))
BYTES_A_STREAM = 2000  # the allocator and the caches of the SDKs need some air


async def cancelled(one: Made) -> None:
    """Pull a converted stream until it hangs, then cancel the task."""
    convert = aconvert_sse if one.backend.form == "sse" else aconvert
    spoke = asyncio.Event()

    async def pull() -> None:
        async for event in convert(one.backend.stream(one.body()), events="dict"):
            if event["type"] == "response.output_text.delta":
                spoke.set()

    task = asyncio.create_task(pull())
    await spoke.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_streams_leave_nothing_behind(kind: str) -> None:
    script = chunked([*text("Hello")[:2], Act.HANG])
    before = sockets()
    async with serve(script) as server, made(kind, server.url) as one:
        for _ in range(20):  # what is loaded and cached at first use
            await cancelled(one)
        tasks = len(asyncio.all_tasks())
        gc.collect()
        tracemalloc.start()
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(STREAMS // 10):
            await asyncio.gather(*(cancelled(one) for _ in range(10)))
            server.requests.clear()
        await server.until(lambda it: it.open == 0)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
        tracemalloc.stop()
        assert server.left == 20 + STREAMS // 10 * 10
        assert len(asyncio.all_tasks()) <= tasks
        assert grown < BYTES_A_STREAM * STREAMS
        print(f"{kind}: {STREAMS} streams, {grown} bytes more, {len(asyncio.all_tasks())} tasks")
    await asyncio.sleep(0.1)
    assert sockets() <= before
