"""What is done to a response, or to what it goes on from, while it is being made or read."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.gateway import create_app
from antiphon.gateway.config import StoreConfig
from antiphon.gateway.history import normalized
from antiphon.gateway.recorded import BLOCK, batched, packed_events
from antiphon.gateway.runs import Runs
from antiphon.gateway.store import Conversation, Store
from antiphon.gateway.stored import Stored
from antiphon.gateway.transport import AppTransport
from tests.providers.backends import loopback

from .asking import Json, asked, asking, events_in, judged
from .conftest import listening, over
from .scripted_backend import Scripted

QUICK: Json = {"beat": 0.1, "lease": 3}
CREATED = int(1.7e9)


async def ended(client: httpx2.AsyncClient, response_id: str) -> Json:
    """Return a response once it has ended."""
    for _ in range(500):
        found: Json = (await client.get(f"/v1/responses/{response_id}")).json()
        if found.get("status") != "in_progress":
            return found
        await asyncio.sleep(0.02)
    raise TimeoutError("it is still in progress")


# --- conversations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [{}, {"stream": True}, {"background": True}], ids=["whole", "streamed", "background"])
async def test_a_conversation_is_deleted_while_it_is_gone_on_with(how: Json, url: str, scripted: Scripted) -> None:
    """The response is kept for itself, at once, and can be gone on from."""
    async with asking(over(scripted, store={"url": url, **QUICK})) as client:
        conversation = (await client.post("/v1/conversations", json={})).json()["id"]
        task = asyncio.ensure_future(asked(client, "silent", conversation=conversation, **how))
        await scripted.until_asked(1)
        deleted = await client.delete(f"/v1/conversations/{conversation}")
        answer = await task
        made = judged(events_in(answer.content))[-1]["response"] if "stream" in how else answer.json()
        kept = await ended(client, made["id"])
        after = await asked(client, "history", previous_response_id=made["id"])
        item = await asked(client, "history", input=[{"type": "item_reference", "id": kept["output"][0]["id"]}])
        ready = (await client.get("/readyz")).json()
    assert (deleted.status_code, kept["status"], kept["store"]) == (200, "completed", True)
    assert [after.status_code, item.status_code] == [200, 200]
    assert ready == {"status": "ready", "store": "ok"}


async def test_a_conversation_is_deleted_while_it_is_added_to(url: str) -> None:
    item = {"id": "msg_1", "type": "message", "role": "user", "content": "x"}
    store = Store(StoreConfig(url=url))
    try:
        await store.begin_conversation(Conversation("conv_1", CREATED, {}), [], "anne")
        before = await store.extend_conversation("conv_1", [item], "anne")
        others = await store.extend_conversation("conv_1", [item], "bob")
        await store.delete_conversation("conv_1", "anne")
        after = await store.extend_conversation("conv_1", [item], "anne")
    finally:
        await store.aclose()
    assert (before, others, after) == (True, False, False)


# --- readers -----------------------------------------------------------------------------------------------------------


async def test_what_has_ended_is_ended_for_all_although_one_reads_slowly() -> None:
    """A reader that has not taken all of a response yet keeps nobody from what is in the store."""
    pieces = [loopback.chunk({"content": "x" * 30_000})] * 400
    chunks = [*pieces, loopback.chunk(finish="stop")]
    script = loopback.chunked([*map(loopback.data, chunks), loopback.data("[DONE]")])
    limits = {"buffer_bytes": 100_000_000}
    async with loopback.serve(script) as backend:
        app = create_app({"backends": {"b": {"url": backend.url}}, "limits": limits})
        async with (
            listening(app) as url,
            httpx2.AsyncClient(base_url=url, timeout=20) as client,
            client.stream("POST", "/v1/responses", json={"model": "m", "input": "Hi", "stream": True}) as answer,
        ):
            body = answer.aiter_raw()
            head = (await anext(body)).split(b"\n\n")[0] + b"\n\n"
            response_id = events_in(head)[0]["response"]["id"]
            path = f"/v1/responses/{response_id}"
            got = await ended(client, response_id)
            again = await client.get(f"{path}?stream=true&starting_after=403")
            cancelled = await client.post(f"{path}/cancel")
            deleted = await client.delete(path)
            gone = await client.get(path)
    assert got["status"] == "completed"
    assert events_in(again.content)[-1]["response"] == got
    assert (cancelled.status_code, cancelled.json()["error"]["code"]) == (400, "response_not_cancellable")
    assert (deleted.status_code, gone.status_code) == (200, 404)


async def test_what_is_about_to_end_is_not_cancelled(scripted: Scripted, tmp_path: Path) -> None:
    """Its last event waits for the database: whoever cancels it meanwhile is told how it ended, as its reader is."""
    path = tmp_path / "a.db"
    async with asking(over(scripted, store={"url": f"sqlite:///{path}"})) as client:
        await asked(client, "text")  # the tables are made
        holder = sqlite3.connect(path)
        holder.execute("BEGIN IMMEDIATE")
        async with client.stream(
            "POST", "/v1/responses", json={"model": "text", "input": "Hi", "stream": True}
        ) as answer:
            held, body = b"", answer.aiter_raw()
            while b"output_item.done" not in held:
                held += await anext(body)
            response_id = events_in(held[: held.index(b"\n\n") + 2])[0]["response"]["id"]
            cancelling = asyncio.ensure_future(client.post(f"/v1/responses/{response_id}/cancel"))
            await asyncio.sleep(0.2)
            holder.rollback()
            holder.close()
            cancelled = await cancelling
            held += b"".join([piece async for piece in body])
    assert judged(events_in(held))[-1]["type"] == "response.completed"
    assert (cancelled.status_code, cancelled.json()["error"]["code"]) == (400, "response_not_cancellable")


@given(st.lists(st.integers(0, 3 * BLOCK), max_size=12))
def test_events_are_read_in_pieces_of_a_limited_size(sizes: list[int]) -> None:
    events = [
        b'event: x\ndata: {"type":"x","sequence_number":%d,"text":"%b"}\n\n' % (at, b"x" * size)
        for at, size in enumerate(sizes)
    ]
    pieces = list(batched(events))
    assert b"".join(data for data, _ in pieces) == b"".join(events)
    assert [last for _, last in pieces][-1:] == [len(events) - 1][: len(events)]
    assert all(len(data) < BLOCK + max(map(len, events)) for data, _ in pieces)


# --- in the background -------------------------------------------------------------------------------------------------


async def test_a_beat_that_was_not_heard_of_is_told_again(url: str) -> None:
    """The commit came through, and its answer did not: the same events come again, with more."""
    store = Store(StoreConfig(url=url))
    runs = Runs(store, lease=30)
    said = [b'event: x\ndata: {"type":"x","sequence_number":%d}\n\n' % at for at in range(5)]
    name = f"resp_{uuid4().hex}"  # the database may hold what other tests left
    head: Json = {"id": name, "created_at": CREATED, "status": "in_progress", "output": []}
    try:
        await runs.begin(Stored(head, []), "anne")
        await runs.beat({name: (0, packed_events(b"".join(said[:2])))})
        await runs.beat({name: (0, packed_events(b"".join(said[:4])))})
        await runs.beat({name: (4, packed_events(said[4]))})
        found = await runs.said(name, -1)
        deleted = await store.delete(name, "anne")
    finally:
        await store.aclose()
    assert found == packed_events(b"".join(said[:4])) + packed_events(said[4])
    assert deleted


async def test_a_lease_that_was_renewed_late_ends_no_stream(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows in another process finds the lease over, and then the response in progress: it follows on."""
    found, true = 0, Runs.said

    async def late(self: Runs, response_id: str, number: int) -> Any:
        nonlocal found
        found += 1
        return None if found in (1, 3) else await true(self, response_id, number)

    config = over(scripted, store={"url": f"sqlite:///{tmp_path / 'a.db'}", **QUICK})
    async with asking(config) as one, asking(config) as other:
        begun = (await asked(one, "silent", background=True)).json()
        monkeypatch.setattr(Runs, "said", late)
        events = judged(events_in((await other.get(f"/v1/responses/{begun['id']}?stream=true")).content))
    assert found > 3
    assert events[-1]["type"] == "response.completed"


# --- where it is wrong -------------------------------------------------------------------------------------------------

USER: Json = {"role": "user", "content": "x"}
ORPHAN: Json = {"type": "function_call_output", "call_id": "call_9", "output": "x"}
BEFORE: list[tuple[str, list[Json], tuple[int, Any], str]] = [
    ("none", [USER, {"role": "nobody", "content": "x"}], (400, "input[1].role"), ""),
    ("previous_response_id", [USER, {"role": "nobody", "content": "x"}], (400, "input[1].role"), ""),
    ("conversation", [USER, {"role": "nobody", "content": "x"}], (400, "input[1].role"), ""),
    ("previous_response_id", [USER, ORPHAN], (200, None), "input[1]: dropped"),
    ("conversation", [ORPHAN, USER], (200, None), "input[0]: dropped"),
    ("odd", [USER], (200, None), "conversation: dropped"),
    ("wrong", [USER], (400, "conversation"), ""),
]


ODD: dict[str, list[Json]] = {"odd": [USER, ORPHAN], "wrong": [USER, {**USER, "role": "nobody"}]}


@pytest.mark.parametrize(("goes_on", "items", "expected", "warned"), BEFORE, ids=range(len(BEFORE)))
async def test_places_are_those_of_the_request(
    goes_on: str, items: list[Json], expected: tuple[int, Any], warned: str, scripted: Scripted
) -> None:
    """What a request goes on from is not in its input: numbers of items are counted as the caller sees them."""
    app = create_app(over(scripted))
    async with httpx2.AsyncClient(transport=AppTransport(app), base_url="http://antiphon.test", timeout=20) as client:
        first = (await asked(client, "text", input=[USER, USER])).json()["id"]
        conversation = "conv_1"  # of an earlier version, maybe: no item is taken that cannot be converted
        items_of_it = normalized(ODD.get(goes_on, [USER, USER]))
        store: Store = app.state.gateway.store
        await store.begin_conversation(Conversation(conversation, 1, {}), items_of_it, "")
        name = "conversation" if goes_on in ODD else goes_on
        more = {"previous_response_id": first, "conversation": conversation}
        goes = {name: more[name]} if name in more else {}
        answer = await asked(client, "text", input=items, **goes)
    error: Json = answer.json().get("error") or {}
    assert (answer.status_code, error.get("param")) == expected
    assert warned in answer.headers.get("warning", "")
    assert bool(warned) == ("warning" in answer.headers)
