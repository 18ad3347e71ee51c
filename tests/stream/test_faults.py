"""Sources that break and consumers that leave: every source is closed, every stream ends once, nothing is left over."""

from __future__ import annotations

import asyncio
import gc
import random
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import aclosing, closing
from typing import Any, cast

import pytest

from antiphon import SourceError, aconvert, aconvert_sse, convert, convert_sse, to_response

from .cases.build import DONE, Json, call, end, sse, text, think
from .summary import TERMINAL, told

SAME_EVERY_TIME: dict[str, Any] = {"events": "dict", "ids": "counted", "created_at": 0}
A1 = '{"a":1}'
TALK: list[Json] = [think("hm"), text("One"), text(" two"), call(0, "call_x", "f", '{"a":'), call(0, args="1}"), end()]


class Gone(Exception):
    """What a source raises here."""


def leaving(events: AsyncIterator[Json]) -> aclosing[AsyncGenerator[Json, None]]:
    """Return the context that closes the stream when its reader leaves."""
    return aclosing(cast("AsyncGenerator[Json, None]", events))


def leaving_sync(events: Iterator[Json]) -> closing[Generator[Json, None, None]]:
    return closing(cast("Generator[Json, None, None]", events))


class Log:
    """What became of the sources."""

    def __init__(self) -> None:
        self.opened = 0
        self.closed = 0

    async def stream(self, chunks: Iterable[Any], fault: BaseException | None = None) -> AsyncIterator[Any]:
        """Yield the chunks, each after a turn of the loop, then raise the fault."""
        self.opened += 1
        try:
            for one in chunks:
                await asyncio.sleep(0)
                yield one
            if fault is not None:
                raise fault
        finally:
            self.closed += 1

    def sync_stream(self, chunks: Iterable[Any], fault: BaseException | None = None) -> Iterator[Any]:
        """Yield the chunks, then raise the fault."""
        self.opened += 1
        try:
            yield from chunks
            if fault is not None:
                raise fault
        finally:
            self.closed += 1


def ended_once(events: list[Json]) -> bool:
    return [event["type"] in TERMINAL for event in events] == [False] * (len(events) - 1) + [True]


# Many at once.


async def one_of_many(log: Log, dice: random.Random) -> tuple[list[Json], bool]:
    """Return the events of a stream that may break or be left at any point, and whether it was left."""
    chunks = TALK[: dice.randint(0, len(TALK))]
    source = log.stream(chunks, Gone("gone") if dice.random() < 0.5 else None)
    leave_after = dice.randint(0, 12) if dice.random() < 0.4 else 1000
    events: list[Json] = []
    async with leaving(aconvert(source, **SAME_EVERY_TIME)) as stream:
        async for event in stream:
            events.append(event)
            if len(events) > leave_after:
                return events, True
    return events, False


async def many(seed: int) -> Log:
    """Run a hundred streams at once, and return what became of their sources."""
    log = Log()
    dice = [random.Random(seed * 1000 + n) for n in range(100)]
    for events, left in await asyncio.gather(*(one_of_many(log, each) for each in dice)):
        assert left or ended_once(events)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return log


async def test_a_hundred_at_once_leave_nothing_over() -> None:
    log = await many(0)
    assert log.opened == log.closed == 100
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_memory_is_given_back() -> None:
    for seed in range(3):  # what is made once and kept is made here
        await many(seed)
    gc.collect()
    tracemalloc.start()
    try:
        await many(3)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for seed in range(4, 10):
            await many(seed)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000  # bytes, over 600 streams


async def test_streams_that_are_left_without_a_word_are_closed() -> None:
    log = Log()

    async def leave() -> None:
        async for _ in aconvert(log.stream(TALK), **SAME_EVERY_TIME):
            break

    await asyncio.gather(*(leave() for _ in range(20)))
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert log.opened == log.closed == 20
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stream_that_is_never_read_opens_nothing() -> None:
    log = Log()
    async with leaving(aconvert(log.stream(TALK), **SAME_EVERY_TIME)):
        pass
    assert log.opened == log.closed == 0


# Exceptions that pass.


async def test_cancelling_closes_the_source_and_passes() -> None:
    log = Log()
    reached = asyncio.Event()

    async def endless() -> AsyncIterator[Json]:
        try:
            log.opened += 1
            yield text("Hi")
            reached.set()
            await asyncio.sleep(3600)
        finally:
            log.closed += 1

    events: list[Json] = []

    async def consume() -> None:
        await note(aconvert(endless(), **SAME_EVERY_TIME), events)

    task = asyncio.create_task(consume())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log.opened == log.closed == 1
    assert not [event for event in events if event["type"] in TERMINAL]


@pytest.mark.parametrize("fault", [asyncio.CancelledError(), KeyboardInterrupt(), GeneratorExit()], ids=repr)
async def test_what_is_no_fault_of_the_source_passes(fault: BaseException) -> None:
    log = Log()
    events: list[Json] = []
    with pytest.raises(type(fault)):
        await note(aconvert(Raising(log, [text("Hi")], fault), **SAME_EVERY_TIME), events)
    assert log.closed == 1
    assert not [event for event in events if event["type"] in TERMINAL]


class Raising:
    """An asynchronous iterator that is no generator, and has `aclose`."""

    def __init__(self, log: Log, chunks: list[Json], fault: BaseException | None) -> None:
        self.log, self.rest, self.fault = log, list(chunks), fault

    def __aiter__(self) -> Raising:
        return self

    async def __anext__(self) -> Json:
        if self.rest:
            return self.rest.pop(0)
        raise self.fault or StopAsyncIteration

    async def aclose(self) -> None:
        self.log.closed += 1


class SdkStream(Raising):
    """An asynchronous iterator with `close`, as the SDKs' streams have it."""

    aclose: Any = None

    async def close(self) -> None:
        self.log.closed += 1


async def note(events: AsyncIterator[Any], seen: list[Any]) -> None:
    """Write down each event as it comes, so that what came before an exception is known."""
    async for event in events:
        seen.append(event)  # noqa: PERF401


def note_sync(events: Iterable[Any], seen: list[Any]) -> None:
    for event in events:
        seen.append(event)  # noqa: PERF402


@pytest.mark.parametrize("kind", [Raising, SdkStream])
@pytest.mark.parametrize("leave", [True, False], ids=["left", "read to the end"])
async def test_a_source_that_is_no_generator_is_closed(kind: type[Raising], leave: bool) -> None:
    log = Log()
    async with leaving(aconvert(kind(log, TALK, None), **SAME_EVERY_TIME)) as stream:
        async for _ in stream:
            if leave:
                break
    assert log.closed >= 1


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_is_no_fault_of_a_sync_source_passes(fault: BaseException) -> None:
    log = Log()
    seen: list[Json] = []
    with pytest.raises(type(fault)):
        note_sync(convert(log.sync_stream([text("Hi")], fault), **SAME_EVERY_TIME), seen)
    assert log.closed == 1
    assert not [event for event in seen if event["type"] in TERMINAL]


# Leaving early.


def test_a_sync_source_is_closed_when_its_reader_leaves() -> None:
    log = Log()
    with leaving_sync(convert(log.sync_stream(TALK), **SAME_EVERY_TIME)) as stream:
        next(stream)
    assert log.opened == log.closed == 1


def test_a_sync_source_is_closed_when_its_reader_forgets_it() -> None:
    log = Log()
    for _ in convert(log.sync_stream(TALK), **SAME_EVERY_TIME):
        break
    gc.collect()
    assert log.opened == log.closed == 1


@pytest.mark.parametrize("fault", [None, Gone("gone")], ids=["whole", "broken"])
def test_a_sync_source_is_closed_at_its_end(fault: BaseException | None) -> None:
    log = Log()
    events = list(convert(log.sync_stream(TALK[:2], fault), **SAME_EVERY_TIME))
    assert ended_once(events)
    assert log.opened == log.closed == 1


def test_a_source_of_bytes_is_closed_when_its_reader_leaves() -> None:
    log = Log()
    with leaving_sync(convert_sse(log.sync_stream([sse(one) for one in TALK]), **SAME_EVERY_TIME)) as stream:
        next(stream)
    assert log.opened == log.closed == 1


async def test_an_async_source_of_bytes_is_closed_when_its_reader_leaves() -> None:
    log = Log()
    async with leaving(aconvert_sse(log.stream([sse(one) for one in TALK]), **SAME_EVERY_TIME)) as stream:
        await anext(stream)
    assert log.opened == log.closed == 1


async def test_a_source_of_bytes_is_closed_after_done() -> None:
    log = Log()
    pieces = [sse(*TALK, DONE), sse(text("never read"))]
    events = [event async for event in aconvert_sse(log.stream(pieces), **SAME_EVERY_TIME)]
    assert ended_once(events)
    assert "never read" not in str(events)
    assert log.opened == log.closed == 1


async def test_an_error_ends_the_reading_and_closes_the_source() -> None:
    log = Log()
    chunks = [text("Hi"), {"error": {"message": "broken"}}, text("never read")]
    events = [event async for event in aconvert(log.stream(chunks), **SAME_EVERY_TIME)]
    assert ended_once(events)
    assert told(events).terminal == "failed"
    assert log.opened == log.closed == 1


async def test_async_and_sync_say_the_same() -> None:
    for length in range(len(TALK) + 1):
        for fault in (None, Gone("gone")):
            log = Log()
            events = [event async for event in aconvert(log.stream(TALK[:length], fault), **SAME_EVERY_TIME)]
            assert events == list(convert(log.sync_stream(TALK[:length], fault), **SAME_EVERY_TIME))


async def test_a_source_is_not_read_ahead() -> None:
    pulled: list[int] = []

    async def counting() -> AsyncIterator[Json]:
        for n, one in enumerate(TALK):
            pulled.append(n)
            yield one

    async with leaving(aconvert(counting(), **SAME_EVERY_TIME)) as stream:
        await anext(stream)
        assert pulled == [0]


# raise_on_error.

FAULTS: list[Any] = [
    pytest.param([text("Hi")], Gone("gone"), Gone, id="the source raises"),
    pytest.param([], Gone("gone"), Gone, id="the source raises at once"),
    pytest.param([text("Hi"), {"error": {"message": "broken", "code": 429}}], None, SourceError, id="an error object"),
    pytest.param([text("Hi")], None, SourceError, id="cut"),
    pytest.param([], None, SourceError, id="empty"),
    pytest.param([text("Hi"), end("error")], None, SourceError, id="finish error"),
]


@pytest.mark.parametrize(("chunks", "fault", "expected"), FAULTS)
def test_the_exception_comes_after_the_terminal_event(
    chunks: list[Json], fault: BaseException | None, expected: type[Exception]
) -> None:
    log = Log()
    seen: list[Json] = []
    with pytest.raises(expected) as caught:
        note_sync(convert(log.sync_stream(chunks, fault), raise_on_error=True, **SAME_EVERY_TIME), seen)
    assert ended_once(seen)
    assert told(seen).terminal == "failed"
    assert fault is None or caught.value is fault
    assert log.opened == log.closed == 1


@pytest.mark.parametrize(("chunks", "fault", "expected"), FAULTS)
async def test_the_exception_comes_after_the_terminal_event_async(
    chunks: list[Json], fault: BaseException | None, expected: type[Exception]
) -> None:
    log = Log()
    seen: list[Json] = []
    with pytest.raises(expected):
        await note(aconvert(log.stream(chunks, fault), raise_on_error=True, **SAME_EVERY_TIME), seen)
    assert ended_once(seen)
    assert log.opened == log.closed == 1


@pytest.mark.parametrize(("chunks", "fault", "expected"), FAULTS)
def test_without_it_nothing_is_raised(
    chunks: list[Json], fault: BaseException | None, expected: type[Exception]
) -> None:
    assert told(list(convert(Log().sync_stream(chunks, fault), **SAME_EVERY_TIME))).terminal == "failed"


@pytest.mark.parametrize("finish", ["stop", "length", "content_filter"])
def test_an_end_that_is_no_failure_raises_nothing(finish: str) -> None:
    events = list(convert([text("Hi"), end(finish)], raise_on_error=True, **SAME_EVERY_TIME))
    assert told(events).terminal in ("completed", "incomplete")


def test_the_error_says_code_and_message() -> None:
    broken = {"error": {"message": "too fast", "code": 429}}
    with pytest.raises(SourceError) as caught:
        list(convert([text("Hi"), broken], raise_on_error=True, **SAME_EVERY_TIME))
    assert caught.value.code == "rate_limit_exceeded"
    assert "too fast" in caught.value.message
    with pytest.raises(SourceError):
        to_response(broken, raise_on_error=True, **SAME_EVERY_TIME)


def test_a_fault_of_the_reader_is_the_readers() -> None:
    log = Log()

    def read() -> None:
        for _ in convert(log.sync_stream(TALK), raise_on_error=True, **SAME_EVERY_TIME):
            raise LookupError("mine")

    with pytest.raises(LookupError):
        read()
    gc.collect()
    assert log.opened == log.closed == 1


@pytest.mark.parametrize("make", [list, iter, tuple], ids=["list", "iterator", "tuple"])
def test_any_iterable_is_a_source(make: Callable[[list[Json]], Iterable[Json]]) -> None:
    assert told(list(convert(make(TALK), **SAME_EVERY_TIME))).terminal == "completed"
