"""Responses that are made in the background by this process: whoever asked for them may go, and come back.

POST -> Run -> Answer -> Recorded -> followers
                 |
               Runs (the store) -> polling, followers and cancelling in other processes
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from antiphon.request.styles import BYTES

from .answer import KEEP_ALIVE, Answer
from .config import GatewayConfig
from .errors import Cancelled, ShuttingDown, Stopped, StoreUnavailable, TookTooLong
from .keys import Caller
from .making import Making, overloaded
from .recorded import Recorded, batched, events_after, packed_events
from .running import Run, StreamCut
from .runs import Runs, ended, with_status
from .store import Store
from .stored import Json, Stored

log = logging.getLogger("antiphon.gateway")
Close = Callable[[Answer, Making], Awaitable[None]]

CANCELLED = "the response was cancelled by a request"
ENDING = 10.0  # seconds that runs get to write down how they ended, when the process does


class Background:
    """The runs of this process, and those of others as the store shows them. `close`: called with each answer at its
    end."""

    def __init__(self, config: GatewayConfig, store: Store, close: Close) -> None:
        self._config, self._store, self._close = config, store, close
        self._runs = Runs(store, config.store.lease)
        self._running: dict[str, tuple[Run, Answer]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._beating: asyncio.Task[None] | None = None
        self._starting = 0
        self._ends = False
        self._lets_go = False  # of those who follow what other processes make

    def __len__(self) -> int:
        return len(self._running) + self._starting

    async def begin(self, making: Making, caller: Caller, recorded: Recorded) -> Run:
        """Begin a response, which is in the store when this returns. Raises ApiError where no place is free.

        A caller that leaves meanwhile changes nothing: what is in the store is made.
        """
        if self._ends:
            raise ShuttingDown("the gateway is about to end")
        if len(self) >= self._config.limits.background:
            raise overloaded(self._config.limits.background, " in the background")
        run = Run(making, caller, recorded)
        self._starting += 1
        return await asyncio.shield(self._begin(run))

    def find(self, response_id: str, caller: Caller) -> Run | None:
        """Return the run of that id that this caller's key began, if it is made here."""
        run, _ = self._running.get(response_id, (None, None))
        return run if run is not None and run.caller.owner == caller.owner else None

    async def stored(self, response_id: str, owner: str) -> Stored | None:
        """Return a response as the store has it. One whose maker is gone has ended as failed."""
        stored = await self._store.get(response_id, owner)
        if stored is None or stored.alive is not False:
            return stored
        await self._runs.take_over(response_id, owner)
        return await self._store.get(response_id, owner)

    async def cancel(self, response_id: str, caller: Caller) -> Stored | None:
        """Return a response once it has ended: where it is made, or, where that does nothing, here."""
        run = self.find(response_id, caller)
        if run is not None:
            self._stop(run.id, Cancelled(CANCELLED))
        else:
            await self._runs.cancel(response_id, caller.owner)
        until = time.monotonic() + 3 * self._config.store.beat
        stored = await self.stored(response_id, caller.owner)
        while stored is not None and stored.alive and time.monotonic() < until:
            await asyncio.sleep(min(self._config.store.beat / 4, 0.1))
            stored = await self.stored(response_id, caller.owner)
        if stored is None or not stored.alive:
            return stored
        await self._runs.take_over(response_id, caller.owner, cancelled=True)
        return await self.stored(response_id, caller.owner)

    def forget(self, response_id: str, caller: Caller) -> None:
        """End a run here whose response was deleted."""
        if self.find(response_id, caller) is not None:
            self._stop(response_id, Cancelled("the response was deleted"))

    def follow(self, response_id: str, caller: Caller, number: int) -> AsyncGenerator[bytes]:
        """Yield the events after that number of a response that is being made, here or elsewhere, to its end.

        Raises StreamCut where that cannot be had any more.
        """
        run = self.find(response_id, caller)
        if run is not None:
            return run.events_after(number, self._config.limits.keep_alive)
        return self._elsewhere(response_id, caller.owner, number)

    def end_all(self, why: str) -> None:
        """End all runs as failed, and the streams of those who follow runs of other processes without an ending."""
        self._lets_go = True
        for name in tuple(self._running):
            self._stop(name, ShuttingDown(why))

    async def finished(self, seconds: float) -> None:
        """Return once all runs have ended, or that time is over."""
        if self._tasks and seconds > 0:
            await asyncio.wait(tuple(self._tasks.values()), timeout=seconds)

    async def aclose(self) -> None:
        """End all runs as failed, and return once that is in the store."""
        self._ends = True
        self.end_all("the gateway was shut down")
        await self.finished(ENDING)
        tasks = [*self._tasks.values(), *([self._beating] if self._beating is not None else [])]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- inside ------------------------------------------------------------------------------------------------

    async def _begin(self, run: Run) -> Run:
        try:
            await self._runs.begin(self._as_stored(run, run.head, None), run.caller.owner)
        finally:
            self._starting -= 1
        limits, exchange = self._config.limits, run.making.exchange
        answer = Answer(exchange, run.caller, limits, lambda event, final: self._ended(run, event, final))
        answer.seen.append(run.say)
        self._running[run.id] = run, answer
        self._tasks[run.id] = asyncio.create_task(self._make(run, answer))
        if self._ends:
            answer.end(ShuttingDown("the gateway was shut down"))
        elif self._beating is None or self._beating.done():
            self._beating = asyncio.create_task(self._beat_again_and_again())
        return run

    def _stop(self, name: str, reason: Stopped) -> None:
        if name in self._running:
            self._running[name][1].end(reason)

    async def _make(self, run: Run, answer: Answer) -> None:
        total = self._config.limits.total
        late = TookTooLong(f"the response took more than {total} s")
        timer = None if total is None else asyncio.get_running_loop().call_later(total, answer.end, late)
        is_cut = True
        try:
            answer.begin_aside()
            async for _ in answer.batches():
                pass  # followers read what is recorded
            if answer.broken is not None:
                await self._broke(run)
            is_cut = False
        finally:
            if timer is not None:
                timer.cancel()
            run.over(is_cut=is_cut)
            del self._running[run.id]
            del self._tasks[run.id]
            await self._close(answer, run.making)

    async def _broke(self, run: Run) -> None:
        """Keep the ending of a response that a fault of ours ended, so that nobody waits for it."""
        events = list(ended(run.recorded.since(0), run.head, "the gateway failed; its log says where"))
        final: Json = BYTES.read(events[-1])["response"]
        await self._kept(run, self._as_stored(run, final, packed_events(b"".join(events))))
        for event in events[run.recorded.events :]:
            run.recorded.add(event)

    async def _ended(self, run: Run, event: bytes, final: Json) -> bytes:
        """Keep the ending of a run before its followers see it."""
        _, answer = self._running[run.id]
        said = run.recorded.packed() + packed_events(event)
        if isinstance(answer.stop.reason, Cancelled) and final.get("status") == "failed":
            final = with_status(final, "cancelled")
        await self._kept(run, self._as_stored(run, final, said))
        return event

    def _as_stored(self, run: Run, final: Json, events: bytes | None) -> Stored:
        history = run.making.history
        return Stored(final, history.own, events, history.previous_id, history.conversation_id)

    async def _kept(self, run: Run, stored: Stored) -> None:
        """Store an ending, and try that for as long as others take the response for one that is being made."""
        until = time.monotonic() + self._config.store.lease
        while True:
            try:
                if not await self._runs.end(stored, run.caller.owner):
                    log.warning("response %s had ended before this process finished it", run.id)
                return
            except StoreUnavailable:
                if time.monotonic() > until:
                    log.warning("response %s was made, and its ending could not be stored", run.id)
                    return
            await asyncio.sleep(self._config.store.beat)

    async def _beat_again_and_again(self) -> None:
        while self._running:
            await asyncio.sleep(self._config.store.beat)
            await self._beat()

    async def _beat(self) -> None:
        """Tell the store of all runs, and end those that are cancelled, deleted or taken for lost."""
        runs = [run for run, _ in self._running.values()]
        before = {run.id: run.told for run in runs}
        try:
            ours = await self._runs.beat({run.id: run.fresh() for run in runs})
        except StoreUnavailable:
            for run in runs:
                run.told = before[run.id]
            return
        for run in runs:
            if run.id not in ours:
                self._stop(run.id, Cancelled("the response was deleted, or taken for lost"))
            elif ours[run.id]:
                self._stop(run.id, Cancelled(CANCELLED))

    async def _elsewhere(self, response_id: str, owner: str, number: int) -> AsyncGenerator[bytes]:
        beat, keep_alive, lease = self._config.store.beat, self._config.limits.keep_alive, self._config.store.lease
        heard = asked = time.monotonic()
        while True:
            if self._lets_go:
                raise StreamCut  # it goes on: whoever follows it asks another process for the rest
            try:
                said, is_over = await self._said(response_id, owner, number)
                asked = time.monotonic()
            except StoreUnavailable:
                if time.monotonic() > asked + lease:
                    raise StreamCut from None
                said, is_over = b"", False
            for data, last in batched(events_after(said, number)):
                number, heard = last, time.monotonic()
                yield data
            if is_over:
                return
            if time.monotonic() > heard + keep_alive:
                heard = time.monotonic()
                yield KEEP_ALIVE
            await asyncio.sleep(beat / 2)

    async def _said(self, response_id: str, owner: str, number: int) -> tuple[bytes, bool]:
        """Return the events there are, packed, from some number on that is not after `number` + 1; and whether the last
        one is among them. Raises StreamCut where the response is gone."""
        said = await self._runs.said(response_id, number)
        if said is not None:
            return said, False
        stored = await self.stored(response_id, owner)
        if stored is None:
            raise StreamCut
        if stored.alive is not None:  # its lease was over, and has been renewed
            return b"", False
        return stored.events or b"", True
