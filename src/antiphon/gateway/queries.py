"""The statements of the store. All conditions have the owner in them: what is another's is as if it were not there."""

from __future__ import annotations

import time
from typing import Any

from sqlalchemy import ColumnElement, Executable, Integer, delete, func, literal, literal_column, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from .tables import CONVERSATIONS, ITEMS, RESPONSES

LONGEST_ID = 128


def key_of(name: str) -> str:
    """Return an id as it is kept and looked up: callers choose ids of items, and no database takes all of them."""
    return name[:LONGEST_ID].replace("\0", "\ufffd")


def response_of(response_id: str, owner: str) -> Executable:
    """Return the query for a response that has not expired."""
    return select(RESPONSES).where(
        RESPONSES.c.id == key_of(response_id), RESPONSES.c.owner == owner, RESPONSES.c.expires_at > int(time.time())
    )


def conversation_where(conversation_id: str, owner: str) -> tuple[Any, ...]:
    """Return the conditions for a conversation that has not expired."""
    c = CONVERSATIONS.c
    return c.id == key_of(conversation_id), c.owner == owner, c.expires_at > int(time.time())


def kept_until(conversation_id: str, owner: str, until: int) -> Any:
    """Return the statement that keeps a conversation longer. It locks the row."""
    return update(CONVERSATIONS).where(*conversation_where(conversation_id, owner)).values(expires_at=until)


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
    columns = (c.id, c.previous_id, c.conversation_id, c.status, c.response, c.input, literal(None).label("events"))
    return select(*columns).join(found, found.c.id == c.id).order_by(found.c.depth)


def forget_items(response_id: str, owner: str) -> Any:
    """Return the statement that deletes the items of a response."""
    return delete(ITEMS).where(ITEMS.c.response_id == key_of(response_id), ITEMS.c.owner == owner)


async def drop_beyond(connection: AsyncConnection, most: int) -> int:
    """Delete what there is beyond `most` responses. What later ones build on expires with them, and goes with them."""
    count: int = (await connection.execute(select(func.count()).select_from(RESPONSES))).scalar_one()
    if count <= most:
        return 0
    c = RESPONSES.c
    made: ColumnElement[Any] = (
        literal_column("rowid", Integer) if connection.dialect.name == "sqlite" else c.id
    )  # those of one second, in order
    oldest = select(c.id).order_by(c.expires_at, c.created_at, made).limit(count - most)
    return int((await connection.execute(delete(RESPONSES).where(RESPONSES.c.id.in_(oldest)))).rowcount)
