"""Finished responses, conversations and their items, in a database that many gateways may share.

All is looked up by its owner too: what belongs to another key is as if it were not there. What is acknowledged was
committed. Each operation is one transaction, and takes a limited time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Executable, delete, func, insert, literal, select, text, update
from sqlalchemy.engine import Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from .config import MEMORY, StoreConfig
from .database import engine_url, make_engine, packed, unpacked
from .errors import StoreUnavailable
from .tables import CONVERSATIONS, ITEMS, RESPONSES, migrate

Json: TypeAlias = dict[str, Any]
log = logging.getLogger("antiphon.gateway")

MOST_IN_MEMORY = 1000  # responses
_LONGEST_CHAIN = 10_000  # responses that build on each other


@dataclass(frozen=True, slots=True)
class Stored:
    """A finished response, with the items of its request, and its events if it was streamed."""

    response: Json
    input: list[Json]
    events: bytes | None = None
    previous_id: str | None = None
    conversation_id: str | None = None

    @property
    def id(self) -> str:
        """The response's id."""
        return str(self.response["id"])


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
        self._most = min(config.most_responses, MOST_IN_MEMORY) if config.url == MEMORY else config.most_responses
        self._engine = make_engine(engine_url(config.url), config.timeout)
        self._is_open = False
        self._opening = asyncio.Lock()
        self._cleaner: asyncio.Task[None] | None = None

    # --- responses ---------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Return if the database answers. Raises StoreUnavailable."""
        async with self._transaction(writes=False) as connection:
            await connection.execute(text("SELECT 1"))

    async def put(self, stored: Stored, owner: str) -> None:
        """Keep a response; what it builds on is kept as long. Once this returns it is safe."""
        until = self._until()
        row = {
            "id": stored.id,
            "owner": owner,
            "created_at": int(stored.response["created_at"]),
            "expires_at": until,
            "previous_id": stored.previous_id,
            "conversation_id": stored.conversation_id,
            "status": str(stored.response["status"]),
            "response": packed(stored.response),
            "input": packed(stored.input),
            "events": stored.events,
        }
        output: list[Json] = stored.response["output"]
        async with self._transaction(writes=True) as connection:
            await connection.execute(insert(RESPONSES).values(row))
            # Of a response alone its output can be referred to: clients that send all again would fill the table.
            items = [*stored.input, *output] if stored.conversation_id else output
            if stored.conversation_id is not None:  # first, since it locks the row: turns do not mix
                await connection.execute(_kept_until(stored.conversation_id, owner, until))
            await self._add_items(connection, items, owner, stored.id, stored.conversation_id)
            if stored.previous_id is not None:
                await self._keep_chain(connection, stored.previous_id, owner, until)

    async def get(self, response_id: str, owner: str) -> Stored | None:
        """Return a response; None where there is none, or it is another owner's."""
        async with self._transaction(writes=False) as connection:
            row = (await connection.execute(_one(response_id, owner))).one_or_none()
        return None if row is None else _stored(row)

    async def chain(self, response_id: str, owner: str, most: int) -> list[Stored] | None:
        """Return the response and all that it builds on, the first one first; None where one of them is not there.

        Without their events. At most about `most` are looked at.
        """
        async with self._transaction(writes=False) as connection:
            rows = (await connection.execute(_chain(response_id, owner, most))).all()
        if not rows or rows[-1].previous_id is not None:
            return None
        return [_stored(row) for row in reversed(rows)]

    async def delete(self, response_id: str, owner: str) -> bool:
        """Delete a response. Return whether it was there."""
        async with self._transaction(writes=True) as connection:
            await connection.execute(_forget_items(response_id, owner))
            gone = await connection.execute(
                delete(RESPONSES).where(RESPONSES.c.id == response_id, RESPONSES.c.owner == owner)
            )
        return gone.rowcount > 0

    async def items(self, ids: Iterable[str], owner: str) -> dict[str, Json]:
        """Return those of the items with these ids that are there."""
        wanted = list(ids)
        query = select(ITEMS.c.id, ITEMS.c.item).where(ITEMS.c.owner == owner, ITEMS.c.id.in_(wanted))
        async with self._transaction(writes=False) as connection:
            rows = (await connection.execute(query)).all()
        return {row.id: unpacked(row.item) for row in rows}

    # --- conversations -----------------------------------------------------------------------------------------

    async def begin_conversation(self, one: Conversation, items: Sequence[Json], owner: str) -> None:
        """Keep a new conversation."""
        row = {"id": one.id, "owner": owner, "created_at": one.created_at, "expires_at": self._until()}
        async with self._transaction(writes=True) as connection:
            await connection.execute(insert(CONVERSATIONS).values({**row, "metadata": packed(one.metadata)}))
            await self._add_items(connection, items, owner, None, one.id)

    async def conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        """Return a conversation; None where there is none, or it is another owner's."""
        query = select(CONVERSATIONS).where(*_mine(conversation_id, owner))
        async with self._transaction(writes=False) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else Conversation(row.id, row.created_at, unpacked(row.metadata))

    async def conversation_items(self, conversation_id: str, owner: str, most: int) -> list[Json] | None:
        """Return the items of a conversation, in order; None where there is no such conversation."""
        query = select(ITEMS.c.item).where(ITEMS.c.conversation_id == conversation_id).order_by(ITEMS.c.number)
        async with self._transaction(writes=False) as connection:
            found = await connection.execute(select(CONVERSATIONS.c.id).where(*_mine(conversation_id, owner)))
            if found.one_or_none() is None:
                return None
            rows = (await connection.execute(query.limit(most))).all()
        return [unpacked(row.item) for row in rows]

    async def change_conversation(self, conversation_id: str, metadata: Json, owner: str) -> None:
        """Replace the metadata of a conversation."""
        change = update(CONVERSATIONS).where(*_mine(conversation_id, owner)).values(metadata=packed(metadata))
        async with self._transaction(writes=True) as connection:
            await connection.execute(change)

    async def extend_conversation(self, conversation_id: str, items: Sequence[Json], owner: str) -> None:
        """Add items to the end of a conversation."""
        async with self._transaction(writes=True) as connection:
            await connection.execute(_kept_until(conversation_id, owner, self._until()))
            await self._add_items(connection, items, owner, None, conversation_id)

    async def delete_item(self, conversation_id: str, item_id: str, owner: str) -> bool:
        """Delete an item of a conversation. Return whether it was there."""
        mine = (ITEMS.c.owner == owner, ITEMS.c.conversation_id == conversation_id, ITEMS.c.id == item_id)
        async with self._transaction(writes=True) as connection:
            gone = await connection.execute(delete(ITEMS).where(*mine))
        return gone.rowcount > 0

    async def delete_conversation(self, conversation_id: str, owner: str) -> bool:
        """Delete a conversation and its items. Return whether it was there."""
        async with self._transaction(writes=True) as connection:
            await connection.execute(
                delete(ITEMS).where(ITEMS.c.conversation_id == conversation_id, ITEMS.c.owner == owner)
            )
            gone = await connection.execute(delete(CONVERSATIONS).where(*_mine(conversation_id, owner)))
        return gone.rowcount > 0

    # --- upkeep ------------------------------------------------------------------------------------------------

    async def clean(self) -> int:
        """Delete what has expired, and the oldest responses beyond the limit. Return how many responses went."""
        now = int(time.time())
        async with self._transaction(writes=True) as connection:
            gone = (await connection.execute(delete(RESPONSES).where(RESPONSES.c.expires_at <= now))).rowcount
            count = (await connection.execute(select(func.count()).select_from(RESPONSES))).scalar_one()
            if count > self._most:
                gone += await _drop_oldest(connection, count - self._most)
            await connection.execute(delete(CONVERSATIONS).where(CONVERSATIONS.c.expires_at <= now))
        return int(gone)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._cleaner is not None:
            self._cleaner.cancel()
            await asyncio.wait((self._cleaner,))
            self._cleaner = None
        await self._engine.dispose()
        self._is_open = False

    # --- inside ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _transaction(self, *, writes: bool) -> AsyncGenerator[AsyncConnection]:
        try:
            async with asyncio.timeout(self._config.timeout):
                if not self._is_open:
                    await self._open()
                async with self._engine.execution_options(antiphon_writes=writes).begin() as connection:
                    yield connection
        except (SQLAlchemyError, OSError, TimeoutError) as problem:
            kind = type(problem.__cause__ or problem).__name__  # the words may hold what was to be stored
            log.warning("the store cannot be used: %s", kind)
            raise StoreUnavailable(f"the store cannot be used now ({kind})") from None

    async def _open(self) -> None:
        """Bring the tables to this version, once. Where that fails the next operation tries again."""
        async with self._opening:
            if not self._is_open:
                async with self._engine.begin() as connection:
                    await connection.run_sync(migrate)
                self._is_open = True
                self._cleaner = asyncio.create_task(self._clean_again_and_again())

    async def _clean_again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._config.clean_every)
            try:
                await self.clean()
            except StoreUnavailable:
                continue  # it was logged, and the next time may be better

    def _until(self) -> int:
        return int(time.time() + self._config.keep_seconds)

    async def _add_items(
        self,
        connection: AsyncConnection,
        items: Sequence[Json],
        owner: str,
        response_id: str | None,
        conversation_id: str | None,
    ) -> None:
        place = {
            "owner": owner,
            "response_id": None if conversation_id else response_id,
            "conversation_id": conversation_id,
        }
        rows = [{**place, "id": str(one["id"])[:128], "item": packed(one)} for one in items]
        if rows:
            await connection.execute(insert(ITEMS), rows)

    async def _keep_chain(self, connection: AsyncConnection, response_id: str, owner: str, until: int) -> None:
        rows = (await connection.execute(_chain(response_id, owner, _LONGEST_CHAIN, only_ids=True))).all()
        ids = [row.id for row in rows]
        for start in range(0, len(ids), 500):
            some = RESPONSES.c.id.in_(ids[start : start + 500])
            await connection.execute(update(RESPONSES).where(some).values(expires_at=until))


# --- queries -----------------------------------------------------------------------------------------------------------


def _one(response_id: str, owner: str) -> Executable:
    return select(RESPONSES).where(
        RESPONSES.c.id == response_id, RESPONSES.c.owner == owner, RESPONSES.c.expires_at > int(time.time())
    )


def _mine(conversation_id: str, owner: str) -> tuple[Any, ...]:
    c = CONVERSATIONS.c
    return c.id == conversation_id, c.owner == owner, c.expires_at > int(time.time())


def _kept_until(conversation_id: str, owner: str, until: int) -> Any:
    return update(CONVERSATIONS).where(*_mine(conversation_id, owner)).values(expires_at=until)


def _chain(response_id: str, owner: str, most: int, *, only_ids: bool = False) -> Executable:
    """Return the query for a response and its ancestors, the latest first."""
    c = RESPONSES.c
    first = select(c.id, c.previous_id, literal(0).label("depth")).where(c.id == response_id, c.owner == owner)
    found = first.cte("chain", recursive=True)
    older = select(c.id, c.previous_id, (found.c.depth + 1).label("depth")).where(
        c.id == found.c.previous_id, c.owner == owner, found.c.depth < most
    )
    found = found.union_all(older)
    if only_ids:
        return select(found.c.id)
    columns = (c.id, c.previous_id, c.conversation_id, c.status, c.response, c.input, literal(None).label("events"))
    return select(*columns).join(found, found.c.id == c.id).order_by(found.c.depth)


def _forget_items(response_id: str, owner: str) -> Any:
    return delete(ITEMS).where(ITEMS.c.response_id == response_id, ITEMS.c.owner == owner)


async def _drop_oldest(connection: AsyncConnection, count: int) -> int:
    oldest = select(RESPONSES.c.id).order_by(RESPONSES.c.created_at, RESPONSES.c.id).limit(count)
    return int((await connection.execute(delete(RESPONSES).where(RESPONSES.c.id.in_(oldest)))).rowcount)


def _stored(row: Row[Any]) -> Stored:
    response: Mapping[str, Any] = unpacked(row.response)
    return Stored(dict(response), unpacked(row.input), row.events, row.previous_id, row.conversation_id)
