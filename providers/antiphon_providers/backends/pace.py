"""Watches the clock of one request: to the first byte, between two pieces, in total."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from dataclasses import replace
from typing import TypeVar

from antiphon.backend import Timeout, Timeouts
from antiphon.errors import Stage, TimedOut

T = TypeVar("T")

_SAID: dict[Stage, str] = {
    "connect": "there was no connection",
    "first_byte": "no byte of the answer came",
    "idle": "the stream was silent",
    "total": "the answer was not complete",
}


def settled(usual: Timeouts, asked: Timeout | None) -> Timeouts:
    """Return the times of one call: what it asks for, a number being the total, else the usual ones."""
    if asked is None:
        return usual
    return asked if isinstance(asked, Timeouts) else replace(usual, total=asked)


def timed_out(stage: Stage, seconds: float | None) -> TimedOut:
    """Return the error for a time that has passed."""
    limit = "in time" if seconds is None else f"{'for' if stage == 'idle' else 'within'} {seconds:g} s"
    return TimedOut(f"{_SAID[stage]} {limit} (timeout: {stage})", stage=stage)


class Pace:
    """The clock of one request, which starts with it. Only the time that is spent waiting in it can run out.

    As `asyncio.timeout`, but with one timer for all pieces of a stream, which is set anew when it rings too early:
    a timer of its own for each piece costs 6 µs, more than all else that is done with the piece.
    """

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._loop = asyncio.get_running_loop()
        self._clock = self._loop.time
        self._start = self._clock()
        self._idle = _seconds(timeouts.idle)
        self._end = self._start + _seconds(timeouts.total)
        self._task: asyncio.Task[object] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf  # when the wait that goes on runs out
        self._ran_out = False
        self._cancelled_before = 0

    async def first(self, awaited: Awaitable[T]) -> T:
        """Return what `awaited` gives: the head of the answer, or its first piece. Raises TimedOut."""
        return await self._until(self._start + _seconds(self._timeouts.first_byte), awaited, "first_byte")

    async def next(self, awaited: Awaitable[T]) -> T:
        """Return what `awaited` gives: a later piece. Raises TimedOut."""
        return await self._until(self._clock() + self._idle, awaited, "idle")

    def stop(self) -> None:
        """Forget the timer; called when the request is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _until(self, due: float, awaited: Awaitable[T], stage: Stage) -> T:
        due = min(due, self._end)
        if due == math.inf:
            return await awaited
        self._due, self._task = due, asyncio.current_task()
        if self._timer is None or self._timer.when() > due:
            self._set(due)
        try:
            came = await awaited
        except asyncio.CancelledError:
            if not self._was_us():
                raise
        else:
            if not self._ran_out or not self._was_us():
                return came
        finally:
            self._due = math.inf
        raise self._error(stage)

    def _set(self, when: float) -> None:
        self.stop()
        self._timer = self._loop.call_at(when, self._rings)

    def _rings(self) -> None:
        self._timer = None
        if self._due == math.inf or self._task is None:
            return
        if self._clock() < self._due:
            self._set(self._due)
            return
        self._ran_out = True
        self._cancelled_before = self._task.cancelling()
        self._task.cancel()

    def _was_us(self) -> bool:
        """Return whether the time ran out and nobody else cancelled the task; takes our own cancelling back."""
        if not self._ran_out or self._task is None:
            return False
        self._ran_out = False
        return self._task.uncancel() <= self._cancelled_before

    def _error(self, stage: Stage) -> TimedOut:
        if self._clock() >= self._end:
            return timed_out("total", self._timeouts.total)
        return timed_out(stage, self._timeouts.first_byte if stage == "first_byte" else self._timeouts.idle)


def _seconds(limit: float | None) -> float:
    return math.inf if limit is None else limit
