"""One response that is made in the background by this process, as those hear it who follow it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from antiphon.errors import SourceError
from antiphon.ids import Prefix, RandomIds, choose_ids
from antiphon.request.styles import BYTES
from antiphon.stream.handler import ChatCmplStreamHandler

from .answer import KEEP_ALIVE
from .keys import Caller
from .making import Making
from .recorded import Recorded, batched, packed_events
from .stored import Json


class StreamCut(Exception):
    """What is followed is gone before its end: it was deleted, or the store is away for too long."""


class OneResponse(RandomIds):
    """Ids for a response whose own id is known before it is made, however often that is tried."""

    def __init__(self, response_id: str) -> None:
        self._response_id = response_id

    def make(self, prefix: Prefix) -> str:
        return self._response_id if prefix == "resp_" else super().make(prefix)


class Run:
    """One response that is made here. `head`: as it is at the beginning. `told`: events that others can see."""

    def __init__(self, making: Making, caller: Caller, recorded: Recorded) -> None:
        exchange = making.exchange
        self.id = choose_ids(exchange.ids).make("resp_")
        exchange.ids, exchange.created_at = OneResponse(self.id), int(time.time())
        handler = ChatCmplStreamHandler(
            exchange.profile, request=exchange.echo, ids=exchange.ids, created_at=exchange.created_at, events="sse"
        )
        # What the answer will begin with, said before the backend is asked.
        self._heads: list[bytes] = handler.fail(SourceError("server_error", "not asked yet"))[:2]
        self.head: Json = BYTES.read(self._heads[0])["response"]
        self.making, self.caller, self.recorded = making, caller, recorded
        self.told = 0
        self.is_over = self.is_cut = False
        self._news = asyncio.Event()
        for event in self._heads:
            self.recorded.add(event)

    def say(self, event: bytes) -> None:
        """Keep an event, and wake all followers."""
        if self._heads:
            self._heads.pop()
        else:
            self.recorded.add(event)
            self._wake()

    def over(self, *, is_cut: bool) -> None:
        """Let followers go: there will be no more events. `is_cut`: the last one is not the ending."""
        self.is_over, self.is_cut = True, is_cut
        self._wake()

    def fresh(self) -> tuple[int, bytes]:
        """Return what is not in the store yet, packed, and the number of its first event."""
        first, self.told = self.told, self.recorded.events
        said = b"".join(self.recorded.since(first))
        return first, packed_events(said) if said else b""

    async def events_after(self, number: int, keep_alive: float) -> AsyncGenerator[bytes]:
        """Yield the events after that number as they come, to the end; comments where nothing comes. Raises StreamCut."""
        at = number + 1
        while True:
            news, is_over = self._news, self.is_over
            if at < self.recorded.events:
                for said, last in batched(self.recorded.since(at)):
                    at = last + 1
                    yield said
            elif is_over:
                if self.is_cut:
                    raise StreamCut
                return
            else:
                try:
                    await asyncio.wait_for(news.wait(), keep_alive)
                except TimeoutError:
                    yield KEEP_ALIVE

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()
