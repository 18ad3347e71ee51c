"""One response while it is made: pulled from the backend, kept until its reader takes it, ended from either side.

    EventStream -> pump -> what waits -> batches -> the client

The pump runs ahead of the reader by a bounded number of bytes: a slow reader slows the backend. What one piece of the
backend's answer caused goes out in one write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import msgspec

from antiphon.models.exchange import EventStream, Exchange
from antiphon.request.styles import BYTES
from antiphon.stream.handler import ChatCmplStreamHandler

from .config import Limits
from .errors import Cancelled, ShuttingDown, TooManyEvents
from .keys import Caller
from .stopping import Stop, StoppableBackend

KEEP_ALIVE = b": keep-alive\n\n"
DONE_MARKER = b"data: [DONE]\n\n"
_TERMINAL = frozenset((b"response.comp", b"response.inco", b"response.fail"))  # how the types of last events begin
_KIND = slice(7, 20)  # after "event: "

# A terminal event and its response in, the event to send out: called before it is sent.
Finish = Callable[[bytes, dict[str, Any]], Awaitable[bytes]]


class _Envelope(msgspec.Struct, gc=False):
    response: dict[str, Any]


class Answer:
    """The events of one response, from the backend to one reader.

    `head`: the response as its first event shows it, {} before that. `seen`: called with each event, for recordings
    and pictures. `finish`: see `Finish`. `began`: seconds on the loop's clock.
    """

    def __init__(self, exchange: Exchange, caller: Caller, limits: Limits, finish: Finish) -> None:
        self.stop = Stop()
        exchange.backend = StoppableBackend(exchange.backend, self.stop)
        self.exchange = exchange
        self.caller = caller
        self.head: dict[str, Any] = {}
        self.events = 0
        self.seen: list[Callable[[bytes], object]] = []
        self.left = False  # the reader went away
        self.ended = False  # the terminal event was made
        self.status = ""  # of the final response
        self.broken: BaseException | None = None  # a fault of our own
        self._limits = limits
        self._finish = finish
        self._loop = asyncio.get_running_loop()
        self.began = self._loop.time()
        self._waiting: list[bytes] = []
        self._size = 0
        self._reader: asyncio.Future[None] | None = None
        self._space: asyncio.Future[None] | None = None
        self._pump: asyncio.Task[None] | None = None
        self._begun: asyncio.Task[EventStream] | None = None
        self._is_cancelled = False

    @property
    def id(self) -> str:
        """The response's id; "" before its first event."""
        return str(self.head.get("id", ""))

    @property
    def outcome(self) -> str:
        """How it ended: "completed", "incomplete", "failed", "left" by its client, or "broken" by a fault of ours."""
        if self.status:
            return self.status
        return "broken" if self.broken is not None else "left"

    async def begin(self) -> None:
        """Return once events can be read. Raises what failed before; after a silence events come all the same."""
        begun = self._begun = asyncio.create_task(self.exchange.stream("sse"))
        done, _ = await asyncio.wait((begun,), timeout=self._limits.keep_alive)
        if done and begun.exception() is not None:
            self.status = "failed"
            begun.result()
        self._pump = asyncio.create_task(self._run(begun))
        if done:
            await asyncio.sleep(0)  # the first events are there, and so is the id

    def begin_aside(self) -> None:
        """Begin without waiting: what fails before the first event is in the events, too."""
        self._begun = asyncio.create_task(self.exchange.stream("sse"))
        self._pump = asyncio.create_task(self._run(self._begun))

    def end(self, reason: Exception) -> None:
        """End the response as failed, for this reason. Its reader gets what was made so far, and the ending."""
        self.stop.set(reason)
        _wake(self._space)

    async def over(self) -> None:
        """Return once its last event was made: what is ended has no more to wait for, whoever reads it."""
        if self._pump is not None:
            await asyncio.wait((self._pump,))

    def leave(self) -> None:
        """Forget the response: its reader went away. The backend's connection is closed at once.

        It is told once, to the one task that holds the connection: a second time would cut its closing off.
        """
        if not self.ended:
            self.left = True
        if not self._is_cancelled:
            self._is_cancelled = True
            beginning = self._begun is not None and not self._begun.done()
            task = self._begun if beginning else self._pump
            if task is not None:
                task.cancel()
        _wake(self._reader)

    async def aclose(self) -> None:
        """Leave, and return once all is closed."""
        self.leave()
        for task in (self._pump, self._begun):
            if task is not None:
                await asyncio.wait((task,))
                if not task.cancelled():
                    task.exception()  # it was told to whoever waited for it
        begun = self._begun
        if begun is not None and not begun.cancelled() and begun.exception() is None:
            await begun.result().aclose()  # it began in the moment in which its reader left: nobody pulls it

    async def batches(self) -> AsyncIterator[bytes]:
        """Yield what there is to send, whole events: all that waits, and comments where nothing comes."""
        while True:
            if self._waiting:
                data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
                self._waiting.clear()
                self._size = 0
                _wake(self._space)
                yield data
            elif self.left or self._pump is None or self._pump.done():
                return
            elif not await self._something():
                yield KEEP_ALIVE

    # --- inside ------------------------------------------------------------------------------------------------

    async def _something(self) -> bool:
        """Return whether something came before the silence was too long."""
        self._reader = self._loop.create_future()
        timer = self._loop.call_later(self._limits.keep_alive, _wake, self._reader)
        try:
            await self._reader
        finally:
            timer.cancel()
            self._reader = None
        return bool(self._waiting) or self.left or self._pump is None or self._pump.done()

    async def _run(self, begun: asyncio.Task[EventStream]) -> None:
        try:
            await self._pull(begun)
        except asyncio.CancelledError:
            raise
        except Exception as problem:  # noqa: BLE001 -- the stream is cut, so that it is taken for what it is
            if not self.ended:
                self.broken = problem
        finally:
            _wake(self._reader)

    async def _pull(self, begun: asyncio.Task[EventStream]) -> None:
        try:
            stream = await begun
        except asyncio.CancelledError:
            raise
        except Exception as problem:  # noqa: BLE001 -- whatever it is, the client was promised a stream
            await self._late(problem)
            return
        try:
            if self._is_cancelled:
                return  # it began all the same
            async for event in stream:
                if event[_KIND] in _TERMINAL:
                    event = await self._last(event, stream.response or {})
                self._put(event)
                if self._size > self._limits.buffer_bytes:
                    await self._wait_for_reader()
        finally:
            await stream.aclose()

    async def _late(self, problem: Exception) -> None:
        """Put the events of a response that failed before its first item, after the headers had been sent."""
        exchange = self.exchange
        handler = ChatCmplStreamHandler(
            exchange.profile, request=exchange.echo, ids=exchange.ids, created_at=exchange.created_at, events="sse"
        )
        *head, last = handler.fail(problem)
        for event in head:
            self._put(event)
        self._put(await self._last(last, handler.final or {}))

    async def _last(self, event: bytes, final: dict[str, Any]) -> bytes:
        event = await self._finish(event, final)
        self.ended, self.status = True, str(final.get("status", "failed"))
        return event

    def _put(self, event: bytes) -> None:
        if not self.events:
            self.head = msgspec.json.decode(event[event.index(b"\ndata: ") + 7 :], type=_Envelope).response
        self.events += 1
        self._waiting.append(event)
        self._size += len(event)
        for see in self.seen:
            see(event)
        if self._reader is not None:
            _wake(self._reader)
        if self.events >= self._limits.events and self.stop.reason is None:
            self.stop.set(TooManyEvents(f"the response has more than {self._limits.events} events"))

    async def _wait_for_reader(self) -> None:
        """Wait until what waits was taken, or the response is to end: then its last events go beyond the limit."""
        while self._size > self._limits.buffer_bytes and self.stop.reason is None:
            self._space = self._loop.create_future()
            try:
                await self._space
            finally:
                self._space = None


class Answers:
    """The responses that are made now."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._running: set[Answer] = set()
        self.pending = 0  # places that are taken, also by those that have not begun or are not streamed
        self.stops: set[Stop] = set()

    def __len__(self) -> int:
        return self.pending

    @property
    def are_streaming(self) -> bool:
        """Whether some of them are streams that their clients read."""
        return bool(self._running)

    def take(self) -> bool:
        """Take a place. Return False where all are taken."""
        if self.pending >= self._limits.streams:
            return False
        self.pending += 1
        return True

    def give_back(self) -> None:
        """Give a place back."""
        self.pending -= 1

    def add(self, answer: Answer) -> None:
        """Hold an answer until `remove`."""
        self._running.add(answer)

    def remove(self, answer: Answer) -> None:
        """Let go of an answer."""
        self._running.discard(answer)

    def find(self, response_id: str, caller: Caller) -> Answer | None:
        """Return the response of that id that this caller's key began, if it is being made here.

        One that has ended is not, also while a slow reader has not taken all of it yet: it is in the store.
        """
        mine = (one for one in self._running if one.id == response_id and one.caller.owner == caller.owner)
        return next((one for one in mine if not one.ended), None)

    async def cancel(self, answer: Answer) -> dict[str, Any] | None:
        """Cancel a response. Return it, as it was when it began, with the status "cancelled"; None where it was about
        to end, and ended as something else."""
        answer.end(Cancelled("the response was cancelled by a request"))
        await answer.over()
        return {**answer.head, "status": "cancelled"} if answer.status in ("", "failed") else None

    def end_all(self, why: str) -> None:
        """End all responses as failed."""
        count = self.pending
        for answer in tuple(self._running):
            answer.end(ShuttingDown(why))
        for stop in tuple(self.stops):
            stop.set(ShuttingDown(why))
        if count:
            logging.getLogger("antiphon.gateway").warning("%d responses were ended: %s", count, why)


def with_fields(event: bytes, fields: Mapping[str, Any]) -> bytes:
    """Return an event with these fields over its response's."""
    held = BYTES.read(event)
    written: bytes = BYTES.write({**held, "response": {**held["response"], **fields}})
    return written


def _wake(future: asyncio.Future[None] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
