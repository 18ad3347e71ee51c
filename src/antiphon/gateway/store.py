"""Finished responses, conversations and their items, in a database that many gateways may share.

All is looked up by its owner too: what belongs to another key is as if it were not there. What is acknowledged was
committed. Each operation is one transaction, and takes a limited time.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from sqlalchemy import delete, insert, select, text, update
from sqlalchemy.engine import Row
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from .config import MEMORY, StoreConfig
from .database import engine_url, file_of, identity_of, make_engine, packed, packed_aside, unpacked
from .errors import StoreUnavailable
from .queries import chain_of, conversation_where, drop_beyond, forget_items, kept_until, key_of, response_of
from .tables import CONVERSATIONS, ITEMS, RESPONSES, migrate

Json: TypeAlias = dict[str, Any]
P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("antiphon.gateway")

MOST_IN_MEMORY = 1000  # responses
_LONGEST_CHAIN = 10_000  # responses that build on each other
_AT_ONCE = 500  # values of one statement; databases allow some thousands


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


def uncut(
    method: Callable[Concatenate[Store, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Store, P], Coroutine[Any, Any, T]]:
    """Return an operation that goes on to its end where its caller is cancelled, such as by a client that leaves.

    A connection that is cut in the middle of a statement is thrown away, and with it a database in memory.
    """

    @wraps(method)
    async def whole(self: Store, /, *args: P.args, **kwargs: P.kwargs) -> T:
        task = asyncio.ensure_future(method(self, *args, **kwargs))
        self.running.add(task)
        task.add_done_callback(self.running.discard)
        return await asyncio.shield(task)

    return whole


class Store:
    """Keeps responses in the database at the configured URL. It is opened by the first operation.

    Raises BadInput for a URL that is none, or whose driver is not there.
    """

    def __init__(self, config: StoreConfig) -> None:
        self._config = config
        self._most = min(config.most_responses, MOST_IN_MEMORY) if config.url == MEMORY else config.most_responses
        url = engine_url(config.url)
        self._engine = make_engine(url, config.timeout)
        self._file = file_of(url)
        self._in_memory = self._file is None and url.startswith("sqlite")
        self._identity: tuple[int, int] | None = None  # of the file that was opened
        self._is_open = False
        self.running: set[asyncio.Future[Any]] = set()  # operations, also those whose callers are gone
        self._opening = asyncio.Lock()
        self._cleaner: asyncio.Task[None] | None = None

    # --- responses ---------------------------------------------------------------------------------------------

    @uncut
    async def ready(self) -> None:
        """Return if the database answers. Raises StoreUnavailable."""
        async with self._transaction(writes=False) as connection:
            await connection.execute(text("SELECT 1"))

    @uncut
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
            "response": await packed_aside(stored.response),
            "input": await packed_aside(stored.input),
            "events": stored.events,
        }
        output: list[Json] = stored.response["output"]
        async with self._transaction(writes=True) as connection:
            await connection.execute(insert(RESPONSES).values(row))
            # Of a response alone its output can be referred to: clients that send all again would fill the table.
            items = [*stored.input, *output] if stored.conversation_id else output
            if stored.conversation_id is not None:  # first, since it locks the row: turns do not mix
                await connection.execute(kept_until(stored.conversation_id, owner, until))
            await self._add_items(connection, items, owner, stored.id, stored.conversation_id)
            if stored.previous_id is not None:
                await self._keep_chain(connection, stored.previous_id, owner, until)
            if self._in_memory:
                await drop_beyond(connection, self._most)

    @uncut
    async def get(self, response_id: str, owner: str) -> Stored | None:
        """Return a response; None where there is none, or it is another owner's."""
        async with self._transaction(writes=False) as connection:
            row = (await connection.execute(response_of(response_id, owner))).one_or_none()
        return None if row is None else _stored(row)

    @uncut
    async def chain(self, response_id: str, owner: str, most: int) -> list[Stored] | None:
        """Return the response and all that it builds on, the first one first; None where one of them is not there.

        Without their events. At most about `most` are looked at.
        """
        async with self._transaction(writes=False) as connection:
            rows = (await connection.execute(chain_of(response_id, owner, most))).all()
        if not rows or rows[-1].previous_id is not None:
            return None
        return [_stored(row) for row in reversed(rows)]

    @uncut
    async def delete(self, response_id: str, owner: str) -> bool:
        """Delete a response. Return whether it was there."""
        async with self._transaction(writes=True) as connection:
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
        async with self._transaction(writes=False) as connection:
            for start in range(0, len(keys), _AT_ONCE):
                some = ITEMS.c.id.in_(keys[start : start + _AT_ONCE])
                rows = (
                    await connection.execute(select(ITEMS.c.id, ITEMS.c.item).where(ITEMS.c.owner == owner, some))
                ).all()
                found |= {named[row.id]: unpacked(row.item) for row in rows}
        return found

    # --- conversations -----------------------------------------------------------------------------------------

    @uncut
    async def begin_conversation(self, one: Conversation, items: Sequence[Json], owner: str) -> None:
        """Keep a new conversation."""
        row = {"id": one.id, "owner": owner, "created_at": one.created_at, "expires_at": self._until()}
        async with self._transaction(writes=True) as connection:
            await connection.execute(insert(CONVERSATIONS).values({**row, "metadata": packed(one.metadata)}))
            await self._add_items(connection, items, owner, None, one.id)

    @uncut
    async def conversation(self, conversation_id: str, owner: str) -> Conversation | None:
        """Return a conversation; None where there is none, or it is another owner's."""
        query = select(CONVERSATIONS).where(*conversation_where(conversation_id, owner))
        async with self._transaction(writes=False) as connection:
            row = (await connection.execute(query)).one_or_none()
        return None if row is None else Conversation(row.id, row.created_at, unpacked(row.metadata))

    @uncut
    async def conversation_items(self, conversation_id: str, owner: str, most: int) -> list[Json] | None:
        """Return the items of a conversation, in order; None where there is no such conversation."""
        query = select(ITEMS.c.item).where(ITEMS.c.conversation_id == key_of(conversation_id)).order_by(ITEMS.c.number)
        async with self._transaction(writes=False) as connection:
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
        async with self._transaction(writes=True) as connection:
            await connection.execute(change)

    @uncut
    async def extend_conversation(self, conversation_id: str, items: Sequence[Json], owner: str) -> None:
        """Add items to the end of a conversation."""
        async with self._transaction(writes=True) as connection:
            await connection.execute(kept_until(conversation_id, owner, self._until()))
            await self._add_items(connection, items, owner, None, conversation_id)

    @uncut
    async def delete_item(self, conversation_id: str, item_id: str, owner: str) -> bool:
        """Delete an item of a conversation. Return whether it was there."""
        mine = (
            ITEMS.c.owner == owner,
            ITEMS.c.conversation_id == key_of(conversation_id),
            ITEMS.c.id == key_of(item_id),
        )
        async with self._transaction(writes=True) as connection:
            gone = await connection.execute(delete(ITEMS).where(*mine))
        return gone.rowcount > 0

    @uncut
    async def delete_conversation(self, conversation_id: str, owner: str) -> bool:
        """Delete a conversation and its items. Return whether it was there."""
        async with self._transaction(writes=True) as connection:
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
        async with self._transaction(writes=True) as connection:
            gone = (await connection.execute(delete(RESPONSES).where(RESPONSES.c.expires_at <= now))).rowcount
            gone += await drop_beyond(connection, self._most)
            await connection.execute(delete(CONVERSATIONS).where(CONVERSATIONS.c.expires_at <= now))
        return int(gone)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._cleaner is not None:
            self._cleaner.cancel()
            await asyncio.wait((self._cleaner,))
            self._cleaner = None
        if self.running:
            await asyncio.wait(tuple(self.running))
        await self._engine.dispose()
        self._is_open = False

    # --- inside ------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _transaction(self, *, writes: bool) -> AsyncGenerator[AsyncConnection]:
        try:
            # A database in memory waits for nothing but itself, and would be lost with a connection that is cut.
            async with asyncio.timeout(None if self._in_memory else self._config.timeout):
                if not self._is_open or identity_of(self._file) != self._identity:
                    await self._open()
                async with self._engine.execution_options(antiphon_writes=writes).begin() as connection:
                    yield connection
        except (SQLAlchemyError, OSError, TimeoutError) as problem:
            kind = type(problem.__cause__ or problem).__name__  # the words may hold what was to be stored
            log.warning("the store cannot be used: %s", kind)
            raise StoreUnavailable(f"the store cannot be used now ({kind})") from None

    async def _open(self) -> None:
        """Bring the tables to this version, once. Where that fails the next operation tries again.

        A file that was deleted, or replaced, is opened anew: what is written to the old one is lost with the process.
        """
        async with self._opening:
            if self._is_open and identity_of(self._file) == self._identity:
                return
            if self._is_open:
                self._is_open = False
                log.warning("the store's file is another one, or gone: it is opened anew")
                await self._engine.dispose()
            async with self._engine.begin() as connection:
                await connection.run_sync(migrate)
            self._is_open, self._identity = True, identity_of(self._file)
            if self._cleaner is None:
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
        rows = [{**place, "id": key_of(str(one["id"])), "item": packed(one)} for one in items]
        if rows:
            await connection.execute(insert(ITEMS), rows)

    async def _keep_chain(self, connection: AsyncConnection, response_id: str, owner: str, until: int) -> None:
        rows = (await connection.execute(chain_of(response_id, owner, _LONGEST_CHAIN, only_ids=True))).all()
        ids = [row.id for row in rows]
        for start in range(0, len(ids), _AT_ONCE):
            some = RESPONSES.c.id.in_(ids[start : start + _AT_ONCE])
            # Another response may build on them that is kept for longer, by a setting that was another one then.
            await connection.execute(
                update(RESPONSES).where(some, RESPONSES.c.expires_at < until).values(expires_at=until)
            )


def _stored(row: Row[Any]) -> Stored:
    response: Mapping[str, Any] = unpacked(row.response)
    return Stored(dict(response), unpacked(row.input), row.events, row.previous_id, row.conversation_id)
