"""A finished response as it is kept, and what of it can be gone on from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy.engine import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from .database import unpacked
from .queries import add_items, item_rows, keep_chain, kept

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stored:
    """A response, with the items of its request, and its events if it was streamed.

    `alive`: of one that is made in the background, whether whoever makes it is; None once it is finished.
    """

    response: Json
    input: list[Json]
    events: bytes | None = None
    previous_id: str | None = None
    conversation_id: str | None = None
    alive: bool | None = None

    @property
    def id(self) -> str:
        """The response's id."""
        return str(self.response["id"])


async def add_outputs(connection: AsyncConnection, some: Sequence[tuple[Stored, str]], until: int) -> None:
    """Let what finished responses hold be gone on from; each comes with its owner."""
    rows: list[Json] = []
    for stored, owner in some:
        rows += await _output_rows(connection, stored, owner, until)
    await add_items(connection, rows)
    for stored, owner in some:
        if stored.previous_id is not None:
            await keep_chain(connection, stored.previous_id, owner, until)


async def _output_rows(connection: AsyncConnection, stored: Stored, owner: str, until: int) -> list[Json]:
    """Return the rows of a response's items. Where its conversation was deleted, it stays for itself."""
    output: list[Json] = stored.response["output"]
    conversation = stored.conversation_id
    if conversation is not None and not await kept(connection, conversation, owner, until):
        conversation = None
    # Of a response alone its output can be referred to: clients that send all again would fill the table.
    items = [*stored.input, *output] if conversation is not None else output
    return item_rows(items, owner, stored.id, conversation)


def stored_in(row: Row[Any]) -> Stored:
    """Return the response in a row."""
    response: Mapping[str, Any] = unpacked(row.response)
    return Stored(dict(response), unpacked(row.input), row.events, row.previous_id, row.conversation_id, row.alive)
