"""The statements of the store. All conditions have the owner in them: what is another's is as if it were not there."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Executable,
    Integer,
    cast,
    delete,
    extract,
    func,
    insert,
    literal,
    literal_column,
    null,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from .database import packed
from .tables import CONVERSATIONS, ITEMS, RESPONSES, RUNS

LONGEST_ID = 128
AT_ONCE = 500  # values of one statement; databases allow some thousands
_LONGEST_CHAIN = 10_000  # responses that build on each other
# Seconds on the database's clock: leases are judged by all gateways, and their clocks may differ.
NOW: ColumnElement[int] = cast(extract("epoch", func.now()), BigInteger)


def key_of(name: str) -> str:
    """Return an id as it is kept and looked up: callers choose ids of items, and no database takes all of them."""
    return name[:LONGEST_ID].replace("\0", "\ufffd")


def response_of(response_id: str, owner: str) -> Executable:
    """Return the query for a response that has not expired; `alive`: see `Stored`."""
    c = RESPONSES.c
    mine = (c.id == key_of(response_id), c.owner == owner, c.expires_at > int(time.time()))
    alive = (RUNS.c.lease_until > NOW).label("alive")
    return select(RESPONSES, alive).outerjoin(RUNS, RUNS.c.id == c.id).where(*mine)


def conversation_where(conversation_id: str, owner: str) -> tuple[Any, ...]:
    """Return the conditions for a conversation that has not expired."""
    c = CONVERSATIONS.c
    return c.id == key_of(conversation_id), c.owner == owner, c.expires_at > int(time.time())


async def kept(connection: AsyncConnection, conversation_id: str, owner: str, until: int) -> bool:
    """Keep a conversation longer. Return whether it is there: then its row is locked, so that turns do not mix."""
    mine = conversation_where(conversation_id, owner)
    return (await connection.execute(update(CONVERSATIONS).where(*mine).values(expires_at=until))).rowcount > 0


def chain_of(response_id: str, owner: str, most: int, *, only_ids: bool = False) -> Executable:
    """Return the query for a response and its ancestors, the latest first."""
    c = RESPONSES.c
    mine = (c.id == key_of(response_id), c.owner == owner, c.expires_at > int(time.time()))
    first = select(c.id, c.previous_id, literal(0).label("depth")).where(*mine)
    found = first.cte("chain", recursive=True)
    older = select(c.id, c.previous_id, (found.c.depth + 1).label("depth")).where(
        c.id == found.c.previous_id, c.owner == owner, found.c.depth < most
    )
    found = found.union_all(older)
    if only_ids:
        return select(found.c.id)
    columns = (c.id, c.previous_id, c.conversation_id, c.status, c.response, c.input)
    without = (null().label("events"), cast(null(), Boolean).label("alive"))
    return select(*columns, *without).join(found, found.c.id == c.id).order_by(found.c.depth)


def forget_items(response_id: str, owner: str) -> Any:
    """Return the statement that deletes the items of a response."""
    return delete(ITEMS).where(ITEMS.c.response_id == key_of(response_id), ITEMS.c.owner == owner)


def is_ended() -> ColumnElement[bool]:
    """Return the condition that a response is not being made."""
    return RESPONSES.c.id.not_in(select(RUNS.c.id).where(RUNS.c.lease_until > NOW))


async def drop_beyond(connection: AsyncConnection, most: int) -> int:
    """Delete what there is beyond `most` responses. What later ones build on expires with them, and goes with them.

    What is being made stays, however old it is.
    """
    count: int = (await connection.execute(select(func.count()).select_from(RESPONSES))).scalar_one()
    if count <= most:
        return 0
    c = RESPONSES.c
    made: ColumnElement[Any] = (
        literal_column("rowid", Integer) if connection.dialect.name == "sqlite" else c.id
    )  # those of one second, in order
    oldest = select(c.id).where(is_ended()).order_by(c.expires_at, c.created_at, made).limit(count - most)
    return int((await connection.execute(delete(RESPONSES).where(RESPONSES.c.id.in_(oldest)))).rowcount)


def item_rows(
    items: Sequence[dict[str, Any]], owner: str, response_id: str | None, conversation_id: str | None
) -> list[dict[str, Any]]:
    """Return the rows of items that can be referred to: of a conversation, or else of a response."""
    place = {
        "owner": owner,
        "response_id": None if conversation_id else response_id,
        "conversation_id": conversation_id,
    }
    return [{**place, "id": key_of(str(one["id"])), "item": packed(one)} for one in items]


async def add_items(connection: AsyncConnection, rows: Sequence[dict[str, Any]]) -> None:
    """Add items, in this order."""
    if rows:
        await connection.execute(insert(ITEMS), rows)


async def keep_chain(connection: AsyncConnection, response_id: str, owner: str, until: int) -> None:
    """Keep a response and its ancestors as long as what builds on them."""
    rows = (await connection.execute(chain_of(response_id, owner, _LONGEST_CHAIN, only_ids=True))).all()
    ids = [row.id for row in rows]
    for start in range(0, len(ids), AT_ONCE):
        some = RESPONSES.c.id.in_(ids[start : start + AT_ONCE])
        # Another response may build on them that is kept for longer, by a setting that was another one then.
        await connection.execute(update(RESPONSES).where(some, RESPONSES.c.expires_at < until).values(expires_at=until))
