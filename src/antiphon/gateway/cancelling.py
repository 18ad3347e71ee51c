"""Cancelling of streams that are not in the background, whichever process makes them.

cancel -> find -> here: ended at once
           |
         Wishes (the store) -> the process that makes it looks there once in each beat, while it makes any
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from .answer import Answer, Answers
from .config import StoreConfig
from .errors import StoreUnavailable
from .ids import OwnIds
from .keys import Caller
from .making import overloaded
from .store import Store
from .stored import Json
from .wishes import Answered, Wish, Wishes, new_wish

PATIENCE = 3  # beats that other processes get to hear of a wish
MOST_WISHES = 100  # that one process has at the same time
LONGEST_WAIT = 0.1  # seconds between two looks for answers
LONGEST_PAUSE = 30  # beats between two looks, where the database is away
# Over what a response repeats of its request: one with `store: false` leaves none of that in a database, not even for
# the moment in which another process reads it there.
UNSAID: Json = {
    "instructions": None,
    "metadata": {},
    "prompt": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "user": None,
}


class Cancelling:
    """Ends streams of this process, and asks other processes on the same database to end theirs.

    `ids`: those that this process gives. `store`: None where there is none.
    """

    def __init__(self, config: StoreConfig, answers: Answers, ids: OwnIds, store: Store | None) -> None:
        self._config, self._answers, self._ids = config, answers, ids
        is_shared = store is not None and not store.database.in_memory
        self._wishes = Wishes(store) if store is not None and is_shared else None
        self._asked: dict[str, asyncio.Future[Answered]] = {}  # wishes of this process
        self._hearing: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def cancel(self, response_id: str, caller: Caller) -> Json | None:
        """Return a stream's response, cancelled, if this process makes it. None also where it ended as something else."""
        running = self._answers.find(response_id, caller)
        return None if running is None else await self._answers.cancel(running)

    async def cancel_elsewhere(self, response_id: str, caller: Caller) -> Json | None:
        """Return the same of a stream that another process makes; it takes some beats to know that none does.

        Raises StoreUnavailable where they cannot be asked, and ApiError where too many wait for that.
        """
        if self._wishes is None or not self._ids.are_elsewhere(response_id):
            return None
        if len(self._asked) >= MOST_WISHES:
            raise overloaded(MOST_WISHES, " elsewhere that are to be cancelled")
        return await self._wished(self._wishes, new_wish(response_id, caller.owner))

    def watch(self) -> None:
        """Look for wishes while there are streams; called with each stream that begins."""
        if self._wishes is not None and (self._watching is None or self._watching.done()):
            self._watching = asyncio.create_task(self._watch(self._wishes))

    async def aclose(self) -> None:
        """Look no longer, and return once what was taken is answered."""
        tasks = [task for task in (self._watching, self._hearing) if task is not None]
        for task in tasks:
            task.cancel()
        tasks += self._ending
        if tasks:
            await asyncio.wait(tasks)

    # --- who asks ----------------------------------------------------------------------------------------------

    async def _wished(self, wishes: Wishes, wish: Wish) -> Json | None:
        answered = self._asked[wish.id] = asyncio.get_running_loop().create_future()
        try:
            await wishes.make(wish, PATIENCE * self._config.beat)
            if self._hearing is None or self._hearing.done():
                self._hearing = asyncio.create_task(self._hear(wishes))
            return await self._granted(wishes, wish, answered)
        finally:
            del self._asked[wish.id]

    async def _granted(self, wishes: Wishes, wish: Wish, answered: asyncio.Future[Answered]) -> Json | None:
        """Return what came of a wish that others can see, and forget it."""
        try:
            await asyncio.wait((answered,), timeout=PATIENCE * self._config.beat)
            if not answered.done() and not await wishes.withdraw(wish):
                await asyncio.wait((answered,), timeout=2 * self._config.timeout)
            return answered.result().response if answered.done() else None
        finally:
            with suppress(StoreUnavailable):  # what is left is deleted as what has expired
                await wishes.drop(wish)

    async def _hear(self, wishes: Wishes) -> None:
        """Hear of the answers to all wishes of this process, with one query each time."""
        while self._asked:
            await asyncio.sleep(min(self._config.beat / 4, LONGEST_WAIT))
            with suppress(StoreUnavailable):  # who waits finds that when its time is over
                for name, answer in (await wishes.answered(list(self._asked))).items():
                    if name in self._asked and not self._asked[name].done():
                        self._asked[name].set_result(answer)

    # --- who is asked ------------------------------------------------------------------------------------------

    async def _watch(self, wishes: Wishes) -> None:
        pause = 1
        while self._answers.are_streaming:
            await asyncio.sleep(pause * self._config.beat)
            try:
                await self._look(wishes)
                pause = 1
            except StoreUnavailable:
                pause = min(2 * pause, LONGEST_PAUSE)

    async def _look(self, wishes: Wishes) -> None:
        """Take the wishes for streams of this process. They end beside each other, and keep nobody from the next look."""
        wished = {wish.id: wish for wish in await wishes.untaken()}
        found = {name: self._answers.find(wish.response_id, Caller(wish.owner)) for name, wish in wished.items()}
        running = {name: answer for name, answer in found.items() if answer is not None}
        for name in await wishes.take([*running]) if running else ():
            task = asyncio.create_task(self._end(wishes, wished[name], running[name]))
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _end(self, wishes: Wishes, wish: Wish, answer: Answer) -> None:
        cancelled = await self._answers.cancel(answer)
        if cancelled is not None and not cancelled.get("store"):
            cancelled = {name: UNSAID.get(name, value) for name, value in cancelled.items()}
        with suppress(StoreUnavailable):  # it is ended all the same
            await wishes.answer(wish, cancelled)
