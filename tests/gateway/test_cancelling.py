"""Cancelling streams that are not in the background: at another gateway on the database, in another process, by another
key, while they end, and where nobody streams them any more."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlalchemy import Executable, func, insert, select
from sqlalchemy.ext.asyncio import create_async_engine

from antiphon.gateway.config import StoreConfig
from antiphon.gateway.database import engine_url
from antiphon.gateway.ids import OwnIds
from antiphon.gateway.store import Store
from antiphon.gateway.tables import WISHES
from antiphon.gateway.wishes import Answered, Wish, Wishes, new_wish
from antiphon.ids import RandomIds, is_made

from .asking import Json, asked, asking, events_in, judged
from .conftest import over
from .scripted_backend import Scripted
from .test_adversary import told, until_two_serve, workers
from .test_serve import Served, serving

ANNE, BOB = "sk-anne-123456789", "sk-bob-1234567890"
SECRET = "what-the-request-says"
ASKED: Json = {"model": "slow", "input": "Hi", "stream": True, "instructions": SECRET, "metadata": {"a": SECRET}}


@dataclass
class Reading:
    """A stream that is read to its end beside everything else. `body`: what came so far."""

    body: bytearray = field(default_factory=bytearray)
    is_cut: bool = False
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def id(self) -> str:
        return str(events_in(bytes(self.body).partition(b"\n\n")[0] + b"\n\n")[0]["response"]["id"])

    async def read(self, client: httpx2.AsyncClient, **params: object) -> None:
        try:
            async with client.stream("POST", "/v1/responses", json={**ASKED, **params}) as answer:
                async for piece in answer.aiter_raw():
                    self.body += piece
                    self.begun.set()
        except httpx2.TransportError:
            self.is_cut = True


@asynccontextmanager
async def reading(client: httpx2.AsyncClient, **params: object) -> AsyncGenerator[Reading]:
    """Give a stream that has begun; it was read to its end when the block ends."""
    one = Reading()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(one.read(client, **params))
        await one.begun.wait()
        yield one


async def cancelled(client: httpx2.AsyncClient, name: str, key: str | None = None) -> httpx2.Response:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return await client.post(f"/v1/responses/{name}/cancel", headers=headers)


async def executed(url: str, *statements: Executable) -> Any:
    """Return what the last of these statements gives, in a connection of its own."""
    engine = create_async_engine(engine_url(url))
    try:
        async with engine.begin() as connection:
            results = [await connection.execute(one) for one in statements]
            return results[-1].scalar_one() if results[-1].returns_rows else None
    finally:
        await engine.dispose()


async def left(url: str) -> int:
    """Return how many wishes are in the database."""
    return int(await executed(url, select(func.count()).select_from(WISHES)))


# --- two gateways --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("store", [True, False])
async def test_a_stream_is_cancelled_at_another_gateway(store: bool, scripted: Scripted, url: str) -> None:
    """By its own key alone. What the request of a response says that is not to be stored does not go over the store."""
    config = over(scripted, api_keys=[ANNE, BOB], store={"url": url, "beat": 0.2})
    async with asking(config) as one, asking(config) as other:
        one.headers["Authorization"] = f"Bearer {ANNE}"
        async with reading(one, store=store) as stream:
            others = [await cancelled(client, stream.id, BOB) for client in (one, other)]
            none = await cancelled(other, "resp_" + "0" * 48, ANNE)
            before = len(scripted.asked), scripted.server.open
            mine = await cancelled(other, stream.id, ANNE)
        after = [await cancelled(client, stream.id, ANNE) for client in (one, other)]
    events = judged(events_in(bytes(stream.body)))
    head = events[0]["response"]
    error = events[-1]["response"]["error"]
    kept = {} if store else {"instructions": None, "metadata": {}}
    assert [told(one)[:2] for one in (*others, none, *after)] == [(404, "not_found")] * 5
    assert before == (1, 1)
    assert (mine.status_code, mine.json()) == (200, {**head, "status": "cancelled", **kept})
    assert head["instructions"] == SECRET
    assert [one["type"] for one in events[-2:]] == ["error", "response.failed"]
    assert "cancelled by a request" in error["message"]
    assert await left(url) == 0
    await scripted.server.until(lambda server: server.open == 0)


async def test_many_streams_are_cancelled_at_once(scripted: Scripted, url: str) -> None:
    """Each of those that were meant, and no other; whoever asks twice at the same time is told the same, or that it is gone."""
    config = over(scripted, store={"url": url, "beat": 0.2})
    async with asking(config) as one, asking(config) as other, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(reading((one, other)[at % 2])) for at in range(8)]
        names = [stream.id for stream in streams]
        answers = await asyncio.gather(*(cancelled((other, one)[at % 2], name) for at, name in enumerate(names[:6])))
        still = [b"response.failed" in stream.body for stream in streams[6:]]
        twice = await asyncio.gather(*(cancelled((one, other)[at], name) for at in (0, 1) for name in names[6:]))
    statuses = [judged(events_in(bytes(stream.body)))[-1]["type"] for stream in streams]
    assert [(one.status_code, one.json()["id"], one.json()["status"]) for one in answers] == [
        (200, name, "cancelled") for name in names[:6]
    ]
    assert still == [False, False]
    assert statuses == ["response.failed"] * 8
    for pair in (twice[::2], twice[1::2]):
        assert {one.status_code for one in pair} in ({200}, {200, 404})


async def test_what_ends_meanwhile_is_not_cancelled(scripted: Scripted, url: str) -> None:
    """Whoever wished it finds it in the store, as it ended."""
    quick, seldom = (over(scripted, store={"url": url, "beat": beat, "lease": 3600}) for beat in (1, 60))
    async with asking(seldom) as one, asking(quick) as other:
        async with reading(one, model="text") as stream:
            name = stream.id
        gone = await cancelled(other, name)
        async with reading(one) as running:
            deaf = await cancelled(other, running.id)
            ended = await cancelled(one, running.id)
    assert told(gone)[:2] == (400, "response_not_cancellable")
    assert told(deaf)[:2] == (404, "not_found")
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    assert await left(url) == 0


async def test_without_the_database_nobody_is_asked(scripted: Scripted, tmp_path: Path) -> None:
    """Streams go on, those of this process are cancelled, and what another one may stream is 503, until it is back."""
    config = over(scripted, store={"url": f"sqlite:///{tmp_path / 'none' / 'a.db'}", "beat": 0.1})
    async with asking(config) as client, reading(client) as stream:
        await asyncio.sleep(0.5)
        elsewhere = await cancelled(client, "resp_" + "0" * 48)
        (tmp_path / "none").mkdir()
        later = await cancelled(client, "resp_" + "0" * 48)
        mine = await cancelled(client, stream.id)
    assert [told(one)[:2] for one in (elsewhere, later)] == [(503, "store_unavailable"), (404, "not_found")]
    assert (mine.status_code, mine.json()["status"]) == (200, "cancelled")


async def test_those_who_ask_for_what_is_not_there_are_limited(scripted: Scripted, url: str) -> None:
    """They keep nobody from being answered, and leave nothing behind."""
    async with asking(over(scripted, store={"url": url, "beat": 0.5})) as client:
        names = [RandomIds().make("resp_") for _ in range(110)]
        task = asyncio.gather(*(cancelled(client, name) for name in names))
        plain = await asked(client, "text")
        found = [told(one)[:2] for one in await task]
    assert plain.status_code == 200
    assert (found.count((404, "not_found")), found.count((503, "server_overloaded"))) == (100, 10)
    assert await left(url) == 0


# --- wishes --------------------------------------------------------------------------------------------------------------


async def test_a_wish_is_taken_once_or_withdrawn(url: str) -> None:
    store = Store(StoreConfig(url=url))
    wishes = Wishes(store)
    try:
        one, other = (new_wish(f"resp_{at}", "anne") for at in (1, 2))
        for wish in (one, other):
            await wishes.make(wish, 5)
        untaken = await wishes.untaken()
        taken = [await wishes.take([one.id]), await wishes.take([one.id])]
        late = [await wishes.withdraw(one), await wishes.answered([one.id, other.id])]
        await wishes.answer(one, {"id": "resp_1"})
        answered = await wishes.answered([one.id, other.id])
        await wishes.answer(one, None)
        ended = await wishes.answered([one.id])
        await wishes.drop(one)
        withdrawn = [await wishes.withdraw(other), await wishes.take([other.id])]
    finally:
        await store.aclose()
    assert {wish.id: wish for wish in untaken} == {one.id: one, other.id: other}
    assert (taken, late, withdrawn) == ([{one.id}, set()], [False, {}], [True, set()])
    assert (answered, ended) == ({one.id: Answered({"id": "resp_1"})}, {one.id: Answered(None)})
    assert await left(url) == 0


async def test_what_was_wished_by_a_process_that_is_gone_is_forgotten(url: str) -> None:
    """Nobody takes it after its time, and it is deleted with what has expired."""
    store = Store(StoreConfig(url=url))
    wishes = Wishes(store)
    row = {"response_id": "resp_1", "owner": "anne", "is_taken": False}
    try:
        fresh = new_wish("resp_2", "anne")
        await wishes.make(fresh, 5)
        times = {"late": 5, "old": 7200}
        await executed(
            url,
            *(
                insert(WISHES).values({**row, "id": name, "until": int(time.time()) - ago})
                for name, ago in times.items()
            ),
        )
        untaken = await wishes.untaken()
        await store.clean()
        kept = await left(url)
        for wish in (fresh, Wish("late", "resp_1", "anne")):
            await wishes.drop(wish)
    finally:
        await store.aclose()
    assert untaken == [fresh]
    assert kept == 2


def test_an_id_tells_whether_others_may_know_it() -> None:
    here, there = OwnIds(), OwnIds()
    given = [here.make("resp_") for _ in range(100)]
    assert len({*given, there.make("resp_")}) == 101
    assert not any(map(here.are_elsewhere, given))
    assert all(map(there.are_elsewhere, given))
    assert here.are_elsewhere(RandomIds().make("resp_"))  # of a version before this one
    assert not any(map(here.are_elsewhere, ("resp_", "resp_none", given[0] + "0", given[0].upper(), "msg_" + "0" * 48)))
    assert not any(map(is_made, given))


# --- processes -----------------------------------------------------------------------------------------------------------


async def begun(served: Served, stack: AsyncExitStack, **params: object) -> Reading:
    """Return a stream that has begun in whichever process took its connection."""
    client = await stack.enter_async_context(httpx2.AsyncClient(base_url=served.url, timeout=30))
    return await stack.enter_async_context(reading(client, **params))


async def anywhere(served: Served, name: str) -> httpx2.Response:
    """Cancel a stream in whichever process takes the connection."""
    async with httpx2.AsyncClient(base_url=served.url, timeout=30) as client:
        return await cancelled(client, name)


async def test_any_worker_cancels_what_another_one_streams(scripted: Scripted, tmp_path: Path) -> None:
    async with serving(tmp_path, "--backend", f"scripted={scripted.url}", "--workers", "2") as served:
        await until_two_serve(served.process.pid)
        async with AsyncExitStack() as stack:
            streams = [await begun(served, stack, store=bool(at % 2)) for at in range(8)]
            answers = [await anywhere(served, stream.id) for stream in streams]
        again = await anywhere(served, streams[0].id)
    finals = [judged(events_in(bytes(stream.body)))[-1] for stream in streams]
    assert [(one.status_code, one.json().get("status")) for one in answers] == [(200, "cancelled")] * 8
    assert [one["type"] for one in finals] == ["response.failed"] * 8
    assert told(again)[:2] == (404, "not_found")
    assert "Traceback" not in served.printed
    await scripted.server.until(lambda server: server.open == 0)


async def test_what_a_killed_worker_streamed_is_gone(scripted: Scripted, tmp_path: Path) -> None:
    """Its reader sees that it was cut, the backend's connection is closed, and nobody is told that it was cancelled."""
    async with serving(tmp_path, "--backend", f"scripted={scripted.url}", "--workers", "2") as served:
        await until_two_serve(served.process.pid)
        async with AsyncExitStack() as stack:
            streams = [await begun(served, stack) for _ in range(4)]
            killed = workers(served.process.pid)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            await until_two_serve(served.process.pid, *killed)
        answer = await anywhere(served, streams[0].id)
        async with httpx2.AsyncClient(base_url=served.url, timeout=30) as client:
            later = await asked(client, "text")
    assert [stream.is_cut for stream in streams] == [True] * 4
    assert not any(b"response.failed" in stream.body for stream in streams)
    assert told(answer)[:2] == (404, "not_found")
    assert (later.status_code, later.json()["store"]) == (200, True)
    await scripted.server.until(lambda server: server.open == 0)
