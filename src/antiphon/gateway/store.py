"""Finished responses, conversations and their items, in a database that many gateways may share.

All is looked up by its owner too: what belongs to another key is as if it were not there. What is acknowledged was
committed. Each operation is one transaction, and takes a limited time.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from .config import MEMORY, StoreConfig
from .database import packed, packed_aside, unpacked
from .errors import StoreUnavailable
from .queries import (
    AT_ONCE,
    NOW,
    add_items,
    chain_of,
    conversation_where,
    drop_beyond,
    forget_items,
    is_ended,
    item_rows,
    kept,
    key_of,
    response_of,
)
from .stored import Json, Stored, add_outputs, stored_in
from .tables import CONVERSATIONS, ITEMS, RESPONSES, WISHES
from .together import Together
from .transactions import Database, uncut

MOST_IN_MEMORY = 1000  # responses
MOST_LOOKS = 100_000  # whether it can be used is the same for all who ask at the same time
MOST_PUTS = 50  # responses of one transaction: those that build on others cost some statements each
LONGEST_WISH = 3600  # seconds after which nobody waits for the answer to a wish, whatever their settings


@dataclass(frozen=True, slots=True)
class _Put:
    """A response that is to be kept, and its row."""

    stored: Stored
    owner: str
    until: int
    row: Json


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation without its items."""

    id: str
    created_at: int
    metadata: Json


class Store:
    """Keeps responses in the database at the configured URL. It is opened by the first operation.

    Raises BadInput for a URL that is none, or whose driver is not there.
    """

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self.most = min(config.most_responses, MOST_IN_MEMORY) if config.url == MEMORY else config.most_responses
        self.database = Database(config, self._begin_cleaning)
        self._cleaner: asyncio.Task[None] | None = None
        self._looks = Together(self._look, MOST_LOOKS, alone=False)
        self._puts = Together(self._put_all, MOST_PUTS, alone=True)

    def until(self) -> int:
        """Return when what is stored now expires."""
        return int(time.time() + self._config.keep_seconds)

    # --- responses ---------------------------------------------------------------------------------------------

    @uncut
    async def ready(self) -> None:
        """Return if the database answers; where writing failed, if it can be written again. Raises StoreUnavailable."""
        await self._looks.done(None)

    @uncut
    async def _look(self, who: Sequence[None]) -> None:
        writes = self.database.is_unwritable
        async with self.database.transaction(writes=writes) as connection:
            if not writes:
                await connection.execute(select(1))
                return
            row = {
                "id": f"probe_{os.urandom(24).hex()}",
                "owner": "",
                "created_at": 0,
                "expires_at": 0,
                "metadata": b"",
            }
            await connection.execute(insert(CONVERSATIONS).values(row))
            await connection.execute(delete(CONVERSATIONS).where(CONVERSATIONS.c.id == row["id"]))

    @uncut
    async def put(self, stored: Stored, owner: str) -> None:
        """Keep a response; what it builds on is kept as long. Once this returns it is safe."""
        until = self.until()
        row = {
            "id": stored.id,
            "owner": owner,
            "created_at": int(stored.response["created_at"]),
            "expires_at": until,
            "previous_id": stored.previous_id,
            "conversation_id": stored.conversation_id,
            "status": str(stored.response["status"]),
            "response": await packed_aside(stored.response),
            "input": await packed_aside(stored.input),
            "events": stored.events,
        }
        await self._puts.done(_Put(stored, owner, until, row))

    @uncut
    async def _put_all(self, some: Sequence[_Put]) -> None:
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(insert(RESPONSES), [one.row for one in some])
            await add_outputs(connection, [(one.stored, one.owner) for one in some], some[-1].until)
            if self.database.in_memory:
                await drop_beyond(connection, self.most)

    @uncut
    async def get(self, response_id: str, owner: str) -> Stored | None:
        """Return a response; None where there is none, or it is another owner's."""
        async with self.database.transaction(writes=False) as connection:
            row = (await connection.execute(response_of(response_id, owner))).one_or_none()
        return None if row is None else stored_in(row)

    @uncut
    async def chain(self, response_id: str, owner: str, most: int) -> list[Stored] | None:
        """Return the response and all that it builds on, the first one first; None where one of them is not there.

        Without their events. At most about `most` are looked at.
        """
        async with self.database.transaction(writes=False) as connection:
            rows = (await connection.execute(chain_of(response_id, owner, most))).all()
        if not rows or rows[-1].previous_id is not None:
            return None
        return [stored_in(row) for row in reversed(rows)]

    @uncut
    async def delete(self, response_id: str, owner: str) -> bool:
        """Delete a response. Return whether it was there."""
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(forget_items(response_id, owner))
            gone = await connection.execute(
                delete(RESPONSES).where(RESPONSES.c.id == key_of(response_id), RESPONSES.c.owner == owner)
            )
        return gone.rowcount > 0

    @uncut
    async def items(self, ids: Iterable[str], owner: str) -> dict[str, Json]:
        """Return those of the items with these ids that are there."""
        named = {key_of(one): one for one in ids}
        keys = list(named)
        found: dict[str, Json] = {}
        async with self.database.transaction(writes=False) as connection:
            for start in range(0, len(keys), AT_ONCE):
                some = ITEMS.c.id.in_(keys[start : start + AT_ONCE])
                rows = (
                    await connection.execute(select(ITEMS.c.id, ITEMS.c.item).where(ITEMS.c.owner == owner, some))
                ).all()
                found |= {named[row.id]: unpacked(row.item) for row in rows}
        return found

    # --- conversations -----------------------------------------------------------------------------------------

    @uncut
    async def begin_conversation(self, one: Conversation, items: Sequence[Json], owner: str) -> None:
        """Keep a new conversation."""
        row = {"id": one.id, "owner": owner, "created_at": one.created_at, "expires_at": self.until()}
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(insert(CONVERSATIONS).values({**row, "metadata": packed(one.metadata)}))
            await add_items(connection, item_rows(items, owner, None, one.id))

    @uncut
    async def conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        """Return a conversation; None where there is none, or it is another owner's."""
        query = select(CONVERSATIONS).where(*conversation_where(conversation_id, owner))
        async with self.database.transaction(writes=False) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else Conversation(row.id, row.created_at, unpacked(row.metadata))

    @uncut
    async def conversation_items(self, conversation_id: str, owner: str, most: int) -> list[Json] | None:
        """Return the items of a conversation, in order; None where there is no such conversation."""
        query = select(ITEMS.c.item).where(ITEMS.c.conversation_id == key_of(conversation_id)).order_by(ITEMS.c.number)
        async with self.database.transaction(writes=False) as connection:
            found = await connection.execute(
                select(CONVERSATIONS.c.id).where(*conversation_where(conversation_id, owner))
            )
            if found.one_or_none() is None:
                return None
            rows = (await connection.execute(query.limit(most))).all()
        return [unpacked(row.item) for row in rows]

    @uncut
    async def change_conversation(self, conversation_id: str, metadata: Json, owner: str) -> None:
        """Replace the metadata of a conversation."""
        change = (
            update(CONVERSATIONS).where(*conversation_where(conversation_id, owner)).values(metadata=packed(metadata))
        )
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(change)

    @uncut
    async def extend_conversation(self, conversation_id: str, items: Sequence[Json], owner: str) -> bool:
        """Add items to the end of a conversation. Return whether it was there."""
        async with self.database.transaction(writes=True) as connection:
            if not await kept(connection, conversation_id, owner, self.until()):
                return False
            await add_items(connection, item_rows(items, owner, None, conversation_id))
        return True

    @uncut
    async def delete_item(self, conversation_id: str, item_id: str, owner: str) -> bool:
        """Delete an item of a conversation. Return whether it was there."""
        mine = (
            ITEMS.c.owner == owner,
            ITEMS.c.conversation_id == key_of(conversation_id),
            ITEMS.c.id == key_of(item_id),
        )
        async with self.database.transaction(writes=True) as connection:
            gone = await connection.execute(delete(ITEMS).where(*mine))
        return gone.rowcount > 0

    @uncut
    async def delete_conversation(self, conversation_id: str, owner: str) -> bool:
        """Delete a conversation and its items. Return whether it was there."""
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(
                delete(ITEMS).where(ITEMS.c.conversation_id == key_of(conversation_id), ITEMS.c.owner == owner)
            )
            gone = await connection.execute(delete(CONVERSATIONS).where(*conversation_where(conversation_id, owner)))
        return gone.rowcount > 0

    # --- upkeep ------------------------------------------------------------------------------------------------

    @uncut
    async def clean(self) -> int:
        """Delete what has expired, and beyond the limit what would expire next. Return how many responses went."""
        now = int(time.time())
        async with self.database.transaction(writes=True) as connection:
            old = delete(RESPONSES).where(RESPONSES.c.expires_at <= now, is_ended())
            gone = (await connection.execute(old)).rowcount
            gone += await drop_beyond(connection, self.most)
            await connection.execute(delete(CONVERSATIONS).where(CONVERSATIONS.c.expires_at <= now))
            await connection.execute(delete(WISHES).where(WISHES.c.until <= NOW - LONGEST_WISH))
        return int(gone)

    async def aclose(self) -> None:
        """Close all connections."""
        if self.database.aside.has_begun:
            await self.database.aside.run(self._end_cleaning())
        await self.database.aclose()

    # --- inside ------------------------------------------------------------------------------------------------

    def _begin_cleaning(self) -> None:
        if self._cleaner is None:
            self._cleaner = asyncio.create_task(self._clean_again_and_again())

    async def _end_cleaning(self) -> None:
        if self._cleaner is not None:
            self._cleaner.cancel()
            await asyncio.wait((self._cleaner,))
            self._cleaner = None

    async def _clean_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._config.clean_every)
            try:
                await self.clean()
            except StoreUnavailable:
                continue  # it was logged, and the next time may be better
