"""How a stream of events is read to its end, the same for every subject, and the text that it carried.

An asynchronous stream over inputs that never wait is stepped by hand, so that it pays for no event loop. Where streams
run side by side (`Load.streams` > 1) all share one loop, and every chunk costs one `sleep(0)`, for every subject.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeAlias

from .workloads import Json, Load

Stream: TypeAlias = Iterator[Any] | AsyncIterator[Any]
Open: TypeAlias = Callable[[Load], Stream]  # one stream of events over the inputs


def drain(open: Open, load: Load, runner: asyncio.Runner) -> None:
    """Read the events of all streams of `load` to the end and drop them."""
    if load.streams > 1:
        runner.run(_side_by_side(open, load))
        return
    stream = open(load)
    if isinstance(stream, AsyncIterator):
        _by_hand(_dropped(stream))
    else:
        for _ in stream:
            pass


def collected(open: Open, load: Load, runner: asyncio.Runner) -> list[Any]:
    """Return the events of one stream of `load`."""
    stream = open(load)
    if isinstance(stream, AsyncIterator):
        return runner.run(_listed(stream))
    return list(stream)


def text_of(events: list[Any]) -> str:
    """Return all deltas of `events` joined, whatever their kind: openai objects, dicts, or pieces of an SSE body."""
    if events and isinstance(events[0], bytes):
        events = [json.loads(line[6:]) for line in b"".join(events).split(b"\n") if line[:7] == b"data: {"]
    fields: list[Json] = [event if isinstance(event, dict) else event.to_dict() for event in events]
    return "".join(one["delta"] for one in fields if isinstance(one.get("delta"), str))


def arriving(items: Iterable[Any], load: Load) -> AsyncIterator[Any]:
    """Return `items` as an asynchronous source: with one `sleep(0)` each where streams run side by side."""
    return _breathing(items) if load.streams > 1 else _at_once(items)


async def _at_once(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def _breathing(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        await asyncio.sleep(0)
        yield item


async def _side_by_side(open: Open, load: Load) -> None:
    streams = (open(load) for _ in range(load.streams))
    await asyncio.gather(*(_dropped(stream) for stream in streams if isinstance(stream, AsyncIterator)))


async def _dropped(stream: AsyncIterator[Any]) -> None:
    async for _ in stream:
        pass


async def _listed(stream: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in stream]


def _by_hand(work: Coroutine[Any, Any, None]) -> None:
    try:
        work.send(None)
    except StopIteration:
        return
    work.close()
    raise RuntimeError("a stream waited although all its input was there")
