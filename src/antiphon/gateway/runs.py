"""Responses that are made in the background, as all gateways on a database see them.

    begin -> beat ... beat -> end
                       |
    cancel or the end of a lease -> take_over

A run has a row of its own while it is made. Whoever deletes that row, in one transaction with the response's ending,
has ended it: all others find it ended. So a response ends once, whichever processes are slow, dead or cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from antiphon.request.styles import BYTES
from antiphon.stream.native import repair

from .database import packed, packed_aside
from .history import CONTINUED
from .queries import AT_ONCE, NOW, key_of, response_of
from .recorded import events_after, packed_events
from .store import Store
from .stored import Json, Stored, add_outputs, stored_in
from .tables import RESPONSES, RUN_EVENTS, RUNS
from .transactions import Database, uncut

# What of a run is told anew, from the event with that number on.
_AGAIN = delete(RUN_EVENTS).where(RUN_EVENTS.c.run_id == bindparam("run"), RUN_EVENTS.c.number >= bindparam("first"))
LOST = "the process that made this response ended without finishing it"


class Runs:
    """What is in the store of responses that are made in the background. `lease`: seconds for which a beat holds."""

    def __init__(self, store: Store, lease: float) -> None:
        self._store, self._lease = store, max(1, round(lease))

    @property
    def database(self) -> Database:
        """Where it is."""
        return self._store.database

    @uncut
    async def begin(self, stored: Stored, owner: str) -> None:
        """Keep a response that is about to be made. Once this returns it can be asked for."""
        row = {
            "id": stored.id,
            "owner": owner,
            "created_at": int(stored.response["created_at"]),
            "expires_at": self._store.until(),
            "previous_id": stored.previous_id,
            "conversation_id": stored.conversation_id,
            "status": str(stored.response["status"]),
            "response": packed(stored.response),
            "input": await packed_aside(stored.input),
        }
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(insert(RESPONSES).values(row))
            run = {"id": stored.id, "lease_until": NOW + self._lease, "is_cancelled": False}
            await connection.execute(insert(RUNS).values(run))

    @uncut
    async def beat(self, said: Mapping[str, tuple[int, bytes]]) -> dict[str, bool]:
        """Renew the leases of the runs with these ids. Return those that are still ours: whether each is to be cancelled.

        `said`: the number of the first event that others cannot see yet, and the events; b"" where there are none.
        """
        ids, ours = list(said), dict[str, bool]()
        async with self.database.transaction(writes=True) as connection:
            for start in range(0, len(ids), AT_ONCE):
                some = RUNS.c.id.in_(ids[start : start + AT_ONCE])
                await connection.execute(update(RUNS).where(some).values(lease_until=NOW + self._lease))
                rows = (await connection.execute(select(RUNS.c.id, RUNS.c.is_cancelled).where(some))).all()
                ours |= {row.id: bool(row.is_cancelled) for row in rows}
            fresh = [_row(name, *said[name]) for name in ours if said[name][1]]
            if fresh:
                # A beat whose commit was not heard of is told again, with more.
                await connection.execute(_AGAIN, [{"run": one["run_id"], "first": one["number"]} for one in fresh])
                await connection.execute(insert(RUN_EVENTS), fresh)
        return ours

    @uncut
    async def end(self, stored: Stored, owner: str) -> bool:
        """Keep the ending of a run. Return whether it was ours: else another one was kept before, or it was deleted."""
        values = await _ending(stored.response, stored.events, self._store.until())
        async with self.database.transaction(writes=True) as connection:
            if not await _taken(connection, stored.id):
                return False
            await connection.execute(update(RESPONSES).where(RESPONSES.c.id == stored.id).values(values))
            if stored.response["status"] in CONTINUED:
                await add_outputs(connection, [(stored, owner)], self._store.until())
        return True

    @uncut
    async def cancel(self, response_id: str, owner: str) -> None:
        """Ask whoever makes a response to end it."""
        mine = select(RESPONSES.c.id).where(RESPONSES.c.id == key_of(response_id), RESPONSES.c.owner == owner)
        async with self.database.transaction(writes=True) as connection:
            await connection.execute(update(RUNS).where(RUNS.c.id.in_(mine)).values(is_cancelled=True))

    @uncut
    async def take_over(self, response_id: str, owner: str, *, cancelled: bool = False) -> None:
        """End a response whose lease is over as failed; `cancelled`: one that whoever makes it does not end.

        What it has said is kept, as far as others could see it.
        """
        async with self.database.transaction(writes=False) as connection:
            row = (await connection.execute(response_of(response_id, owner))).one_or_none()
            if row is None or row.alive is None or (row.alive and not cancelled):
                return
            said = b"".join((await connection.execute(_said(row.id, -1))).scalars().all())
        # Outside of a transaction: it takes its time where much was said, and nobody else could write meanwhile.
        final, events = await asyncio.to_thread(_closed, said, stored_in(row).response, cancelled=cancelled)
        values = await _ending(final, events, self._store.until())
        async with self.database.transaction(writes=True) as connection:
            if await _taken(connection, row.id, *(() if cancelled else (RUNS.c.lease_until <= NOW,))):
                await connection.execute(update(RESPONSES).where(RESPONSES.c.id == row.id).values(values))

    @uncut
    async def said(self, response_id: str, number: int) -> bytes | None:
        """Return the events that there are so far, packed, from some number on that is not after `number` + 1.

        None where the response is not made any more.
        """
        alive = select(RUNS.c.lease_until > NOW).where(RUNS.c.id == key_of(response_id))
        async with self.database.transaction(writes=False) as connection:
            if not (await connection.execute(alive)).scalar_one_or_none():
                return None
            return b"".join((await connection.execute(_said(key_of(response_id), number))).scalars().all())


def ended(events: Iterable[bytes], head: Json, why: str) -> Iterator[bytes]:
    """Yield events, and what ends their response as failed: what is open is closed first. `head`: where there are none."""
    held = [BYTES.read(event) for event in events]
    if not held:
        held = [{"type": "response.created", "sequence_number": 0, "response": head}]
    fault: Json = {"type": "error", "code": "server_error", "message": why, "param": None}
    return (BYTES.write(event) for event in repair([*held, fault]))


def _closed(said: bytes, head: Json, *, cancelled: bool) -> tuple[Json, bytes]:
    """Return the ending of a response that its maker does not end, and all its events, packed."""
    why = "the response was cancelled by a request" if cancelled else LOST
    events = list(ended(events_after(said, -1), head, why))
    final: Json = BYTES.read(events[-1])["response"]
    return with_status(final, "cancelled") if cancelled else final, packed_events(b"".join(events))


def with_status(response: Json, status: str) -> Json:
    """Return a failed response as one of another status, which is no error."""
    return {**response, "status": status, "error": None}


async def _ending(response: Json, events: bytes | None, until: int) -> dict[str, Any]:
    """Return what changes in the row of a response when it ends."""
    held = await packed_aside(response)
    return {"status": str(response["status"]), "response": held, "events": events, "expires_at": until}


async def _taken(connection: AsyncConnection, run_id: str, *conditions: ColumnElement[bool]) -> bool:
    """Delete the row of a run. Return whether it was there: whoever does this ends the response."""
    return (await connection.execute(delete(RUNS).where(RUNS.c.id == run_id, *conditions))).rowcount > 0


def _said(run_id: str, number: int) -> Any:
    c = RUN_EVENTS.c
    first = select(func.max(c.number)).where(c.run_id == run_id, c.number <= number + 1).scalar_subquery()
    return select(c.events).where(c.run_id == run_id, c.number >= func.coalesce(first, 0)).order_by(c.number)


def _row(run_id: str, number: int, events: bytes) -> dict[str, Any]:
    return {"run_id": run_id, "number": number, "events": events}
