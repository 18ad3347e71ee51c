"""Wishes to cancel streams, as all gateways on a database see them.

    make -> take -> answer -> drop
      |
    withdraw, where nobody took it

A wish is answered once, or withdrawn: whoever takes it ends the stream, and nobody can after it was withdrawn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, insert, select, update

from .database import packed_aside, unpacked
from .queries import NOW, key_of
from .store import Store
from .stored import Json
from .tables import WISHES
from .transactions import Database, uncut

_C = WISHES.c


@dataclass(frozen=True, slots=True)
class Wish:
    """A wish: the stream of `owner` with that id is to be cancelled."""

    id: str
    response_id: str
    owner: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of a wish: the response, cancelled, or None where it was about to end, and ended as something else."""

    response: Json | None


def new_wish(response_id: str, owner: str) -> Wish:
    """Return a wish that nobody knows of yet."""
    return Wish(os.urandom(24).hex(), response_id, owner)


class Wishes:
    """What is in the store of streams that are to be cancelled."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def database(self) -> Database:
        """Where it is."""
        return self._store.database

    @uncut
    async def make(self, wish: Wish, seconds: float) -> None:
        """Let others see a wish. Nobody takes it once the time is over."""
        row = {"id": wish.id, "response_id": key_of(wish.response_id), "owner": wish.owner, "is_taken": False}
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(insert(WISHES).values({**row, "until": NOW + max(2, round(seconds) + 1)}))

    @uncut
    async def untaken(self) -> list[Wish]:
        """Return the wishes that nobody has taken."""
        query = select(_C.id, _C.response_id, _C.owner).where(_C.is_taken.is_(False), _C.until > NOW)
        async with self.database.transaction(writes=False) as connection:
            rows = (await connection.execute(query)).all()
        return [Wish(row.id, row.response_id, row.owner) for row in rows]

    @uncut
    async def take(self, names: Sequence[str]) -> set[str]:
        """Take the wishes with these ids, to be answered. Return those that were still there."""
        there = (_C.id.in_(names), _C.is_taken.is_(False))
        statement = update(WISHES).where(*there).values(is_taken=True).returning(_C.id)
        async with self.database.transaction(writes=True) as connection:
            return set((await connection.execute(statement)).scalars())

    @uncut
    async def answer(self, wish: Wish, response: Json | None) -> None:
        """Say what came of a wish."""
        held = await packed_aside(response)
        await self._changed(update(WISHES).where(_C.id == wish.id).values(answer=held))

    @uncut
    async def answered(self, names: Sequence[str]) -> dict[str, Answered]:
        """Return what came of those of the wishes with these ids that were answered."""
        query = select(_C.id, _C.answer).where(_C.id.in_(names), _C.answer.is_not(None))
        async with self.database.transaction(writes=False) as connection:
            rows = (await connection.execute(query)).all()
        return {row.id: Answered(unpacked(row.answer)) for row in rows}

    @uncut
    async def withdraw(self, wish: Wish) -> bool:
        """Return whether nobody has taken the wish: then nobody will."""
        return await self._changed(delete(WISHES).where(_C.id == wish.id, _C.is_taken.is_(False)))

    @uncut
    async def drop(self, wish: Wish) -> None:
        """Forget a wish."""
        await self._changed(delete(WISHES).where(_C.id == wish.id))

    async def _changed(self, statement: Any) -> bool:
        async with self.database.transaction(writes=True) as connection:
            return (await connection.execute(statement)).rowcount > 0
