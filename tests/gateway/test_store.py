"""What is kept: over two gateways on one database, over the end of a process, for as long as it is configured."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.errors import BadInput
from antiphon.gateway import StoreConfig, create_app
from antiphon.gateway.database import engine_url
from antiphon.gateway.store import Store
from antiphon.gateway.stored import Stored

from .asking import TOOL, Json, asked, asking, events_in, judged, shape, streamed, whole
from .conftest import over
from .scripted_backend import Scripted


@pytest.fixture
async def two(scripted: Scripted, url: str) -> AsyncIterator[tuple[httpx2.AsyncClient, httpx2.AsyncClient]]:
    """Clients of two gateways on one database."""
    config = over(scripted, store={"url": url})
    async with asking(config) as one, asking(config) as other:
        yield one, other


Two = tuple[httpx2.AsyncClient, httpx2.AsyncClient]


async def test_a_response_goes_on_in_another_gateway(two: Two, scripted: Scripted) -> None:
    one, other = two
    first = (await streamed(one, "tool", tools=[TOOL], input="How is it?"))[-1]["response"]
    call = first["output"][0]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"}
    second = (await streamed(other, "tool", tools=[TOOL], previous_response_id=first["id"], input=[output]))[-1][
        "response"
    ]
    third = whole((await asked(one, "history", previous_response_id=second["id"], input="And now?")).json())
    assert shape(second)["output"] == [["message", "The tool said: sun"]]
    assert second["previous_response_id"] == first["id"]
    assert shape(third)["output"] == [["message", "user,assistant,tool,assistant,user | And now?"]]
    assert [message["role"] for message in scripted.asked[1]["messages"]] == ["user", "assistant", "tool"]


async def test_what_was_stored_is_what_was_streamed(two: Two) -> None:
    one, other = two
    answer = await asked(one, "reasoning-tool", tools=[TOOL], stream=True, metadata={"a": "b"})
    events = judged(events_in(answer.content))
    response_id = events[-1]["response"]["id"]
    stored = (await other.get(f"/v1/responses/{response_id}")).json()
    again = await other.get(f"/v1/responses/{response_id}?stream=true")
    parts = [
        await other.get(f"/v1/responses/{response_id}?stream=true&starting_after={at}")
        for at in (-1, 3, len(events) - 1, 10_000)
    ]
    assert stored == events[-1]["response"]
    assert stored["store"] is True
    assert again.content == answer.content
    assert [events_in(part.content) for part in parts] == [events, events[4:], [], []]


async def test_long_streams_come_again(tmp_path: Path, scripted: Scripted) -> None:
    """Events are packed block by block; what comes back is the same over the blocks' borders."""
    store = {"url": f"sqlite:///{tmp_path / 'a.db'}"}
    async with asking({"store": store}) as client:
        answer = await asked(client, "echo", input="a word " * 3000, stream=True)
        response_id = judged(events_in(answer.content))[-1]["response"]["id"]
        again = await client.get(f"/v1/responses/{response_id}?stream=true")
        tail = await client.get(f"/v1/responses/{response_id}?stream=true&starting_after=2000")
    assert again.content == answer.content
    assert events_in(tail.content) == events_in(answer.content)[2001:]
    assert await asyncio.to_thread(os.path.getsize, tmp_path / "a.db") < len(answer.content)


async def test_input_items(two: Two) -> None:
    one, other = two
    given = [{"role": "user", "content": f"number {at}"} for at in range(5)]
    response_id = (await asked(one, "text", input=given)).json()["id"]
    path = f"/v1/responses/{response_id}/input_items"
    whole_list = (await other.get(f"{path}?order=asc")).json()
    latest = (await other.get(f"{path}?limit=2")).json()
    rest = (await other.get(f"{path}?limit=2&after={latest['last_id']}")).json()
    earlier = (await other.get(f"{path}?limit=2&before={rest['data'][1]['id']}")).json()
    between = (await other.get(f"{path}?order=asc&after={rest['last_id']}&before={latest['first_id']}")).json()
    crossed = (await other.get(f"{path}?after={rest['last_id']}&before={latest['first_id']}")).json()
    queries = ("limit=0", "limit=x", "order=up", "after=none", "before=none")
    wrong = [await other.get(f"{path}?{query}") for query in queries]
    assert [item["content"] for item in whole_list["data"]] == [item["content"] for item in given]
    assert all(item["type"] == "message" and item["id"].startswith("msg_") for item in whole_list["data"])
    assert [item["content"] for item in (*latest["data"], *rest["data"])] == [
        "number 4",
        "number 3",
        "number 2",
        "number 1",
    ]
    assert (whole_list["has_more"], latest["has_more"], latest["first_id"]) == (False, True, latest["data"][0]["id"])
    assert [item["content"] for item in earlier["data"]] == ["number 4", "number 3"]
    assert [item["content"] for item in between["data"]] == ["number 2", "number 3"]
    assert ((earlier["has_more"], between["has_more"]), crossed["data"]) == ((True, False), [])
    assert [one.status_code for one in wrong] == [400] * 5


async def test_item_references(two: Two) -> None:
    one, other = two
    first = (await asked(one, "tool", tools=[TOOL])).json()
    call = first["output"][0]
    given = [
        {"role": "user", "content": "Hi"},
        {"type": "item_reference", "id": call["id"]},
        {"type": "function_call_output", "call_id": call["call_id"], "output": "sun"},
    ]
    second = (await asked(other, "tool", tools=[TOOL], input=given)).json()
    assert shape(second)["output"] == [["message", "The tool said: sun"]]


async def test_a_conversation_goes_on_in_another_gateway(two: Two) -> None:
    one, other = two
    made = (
        await one.post(
            "/v1/conversations", json={"items": [{"role": "user", "content": "Zero"}], "metadata": {"a": "b"}}
        )
    ).json()
    path = f"/v1/conversations/{made['id']}"
    await asked(one, "text", conversation=made["id"], input="One")
    second = (await streamed(other, "history", conversation={"id": made["id"]}, input="Two"))[-1]["response"]
    changed = (await other.post(path, json={"metadata": {"c": "d"}})).json()
    added = (await one.post(f"{path}/items", json={"items": [{"role": "user", "content": "Late"}]})).json()
    items = (await other.get(f"{path}/items?order=asc")).json()["data"]
    single = (await one.get(f"{path}/items/{items[0]['id']}")).json()
    shorter = await other.delete(f"{path}/items/{items[0]['id']}")
    left = (await one.get(f"{path}/items?limit=100")).json()["data"]
    gone = [(await client.delete(path)).status_code for client in (one, other)]
    unknown = await asked(one, "text", conversation=made["id"])
    assert second["conversation"] == {"id": made["id"]}
    assert shape(second)["output"] == [["message", "user,user,assistant,user | Two"]]
    assert (changed["metadata"], changed["created_at"]) == ({"c": "d"}, made["created_at"])
    assert [item["role"] for item in items] == ["user", "user", "assistant", "user", "assistant", "user"]
    assert items[-1] == added["data"][0]
    assert (single, shorter.status_code, len(left)) == (items[0], 200, 5)
    assert gone == [200, 404]
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "conversation_not_found")


@pytest.mark.parametrize("scenario", ["error-mid-stream", "disconnect", "cut"])
async def test_what_failed_is_not_stored(scenario: str, two: Two) -> None:
    one, other = two
    failed = (await streamed(one, scenario))[-1]["response"]
    got = await other.get(f"/v1/responses/{failed['id']}")
    next_one = await asked(other, "text", previous_response_id=failed["id"])
    assert got.status_code == 404
    assert (next_one.status_code, next_one.json()["error"]["code"]) == (400, "previous_response_not_found")


async def test_what_is_incomplete_is_stored(two: Two) -> None:
    one, other = two
    first = (await streamed(one, "length"))[-1]["response"]
    second = await asked(other, "history", previous_response_id=first["id"], input="Go on")
    assert shape(second.json())["output"] == [["message", "user,assistant,user | Go on"]]


async def test_what_is_not_to_be_stored_is_not(two: Two) -> None:
    one, other = two
    response = (await asked(one, "text", store=False)).json()
    assert response["store"] is False
    assert (await other.get(f"/v1/responses/{response['id']}")).status_code == 404


async def test_what_is_deleted_is_gone(two: Two) -> None:
    one, other = two
    first = (await asked(one, "text")).json()
    second = (await asked(one, "text", previous_response_id=first["id"])).json()
    deleted = await other.delete(f"/v1/responses/{first['id']}")
    again = await one.delete(f"/v1/responses/{first['id']}")
    after = await asked(one, "text", previous_response_id=second["id"])
    assert deleted.json() == {"id": first["id"], "object": "response", "deleted": True}
    assert again.status_code == 404
    assert (after.status_code, after.json()["error"]["code"]) == (400, "previous_response_not_found")


async def test_many_at_once(two: Two) -> None:
    """Two gateways write at the same time, also to one conversation: nothing is lost, nothing fails."""
    talk = (await two[0].post("/v1/conversations", json={})).json()["id"]
    answers = await asyncio.gather(
        *(asked(two[at % 2], "text", conversation=talk, input=f"number {at}") for at in range(20))
    )
    items = (await two[0].get(f"/v1/conversations/{talk}/items?limit=100&order=asc")).json()["data"]
    assert [one.status_code for one in answers] == [200] * 20
    assert all(one.json()["store"] for one in answers)
    assert sorted(item["content"][0]["text"] for item in items if item["role"] == "user") == sorted(
        f"number {at}" for at in range(20)
    )
    assert [item["role"] for item in items] == ["user", "assistant"] * 20


async def collide(postgres: str, store: Store, response_id: str) -> bool:
    """Let storing a response and a transaction of another wait for each other; return whether that of the store is ended."""
    import asyncpg

    aged = "UPDATE antiphon_responses SET expires_at = expires_at - 10 WHERE id = 'resp_before'"
    same = "INSERT INTO antiphon_responses (id, owner, created_at, expires_at, status, response, input)"
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    other = await asyncpg.connect(postgres)
    try:
        await other.execute(aged)
        transaction = other.transaction()
        await transaction.start()
        await other.execute(aged)  # holds the row that the response builds on
        after = Stored(response(response_id), [], previous_id="resp_before")
        putting = asyncio.create_task(store.put(after, "anne"))
        for _ in range(1000):
            if await other.fetchval(waiting):
                break
            await asyncio.sleep(0.02)
        try:  # waits for the other one
            await other.execute(f"{same} VALUES ('{response_id}', 'bob', 1, 1, 'completed', '', '')")
        except asyncpg.DeadlockDetectedError:
            return False
        finally:
            await transaction.rollback()
            await putting
        return True
    finally:
        await other.close()


async def test_transactions_that_collide_are_tried_again(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL ends one of two that wait for each other: what is to be stored is stored all the same."""
    store = Store(StoreConfig(url=postgres, timeout=20))
    await store.put(Stored(response("resp_before"), []), "anne")
    names = (f"resp_after_{number}" for number in range(5))
    kept = None
    for name in names:  # on a busy machine it may be the other one that is ended
        ended = await collide(postgres, store, name)
        kept = await store.get(name, "anne")
        if ended or kept is None:
            break
    await store.aclose()
    assert ended
    assert kept is not None
    assert caplog.records == []


# --- what is too old, too much, or too new -----------------------------------------------------------------------------


async def test_a_chain_is_kept_as_long_as_its_last_response(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with asking(over(scripted, store={"url": f"sqlite:///{path}"})) as client:
        first = (await asked(client, "text")).json()["id"]
        alone = (await asked(client, "text")).json()["id"]
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE antiphon_responses SET expires_at = ?", (int(time.time()) + 2,))
        second = (await asked(client, "text", previous_response_id=first)).json()["id"]
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE antiphon_responses SET expires_at = expires_at - 10")
        store: Store = client._transport._app.state.gateway.store  # type: ignore[attr-defined]  # the cleaning runs every ten minutes
        hidden = (await client.get(f"/v1/responses/{alone}")).status_code
        cleaned = await store.clean()
        found = [(await client.get(f"/v1/responses/{one}")).status_code for one in (first, second, alone)]
    assert (hidden, cleaned, found) == (404, 1, [200, 200, 404])


def response(name: str) -> Json:
    return {"id": name, "created_at": int(time.time()), "status": "completed", "output": []}


async def test_the_oldest_go_where_there_are_too_many(tmp_path: Path) -> None:
    store = Store(StoreConfig(url=f"sqlite:///{tmp_path / 'a.db'}", most_responses=2))
    for number in range(5):
        response: Json = {"id": f"resp_{number}", "created_at": number, "status": "completed", "output": []}
        await store.put(Stored(response, []), "anne")
    gone = await store.clean()
    left = [number for number in range(5) if await store.get(f"resp_{number}", "anne")]
    await store.aclose()
    assert (gone, left) == (3, [3, 4])


async def test_a_database_of_a_later_version_is_not_touched(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE antiphon_schema (version INTEGER NOT NULL)")
        connection.execute("INSERT INTO antiphon_schema VALUES (99)")
    from antiphon.gateway.tables import SchemaTooNew

    store = Store(StoreConfig(url=f"sqlite:///{path}"))
    with pytest.raises(SchemaTooNew, match="version 99"):
        await store.ready()
    await store.aclose()


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("memory", "sqlite+aiosqlite:///:memory:"),
        ("sqlite:///a.db", "sqlite+aiosqlite:///a.db"),
        ("sqlite+aiosqlite:////b/a.db", "sqlite+aiosqlite:////b/a.db"),
        ("postgresql://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgres://u:p@h/d", "postgresql+asyncpg://u:p@h/d"),
        ("postgresql+psycopg://u@h/d", "postgresql+psycopg://u@h/d"),
    ],
)
def test_urls(given: str, made: str) -> None:
    assert engine_url(given) == made


@pytest.mark.parametrize(
    "given",
    ["", "antiphon.db", "/tmp/a.db", "sqlite:a.db", "what ever://x", "nosuch://host/name", "sqlite+nosuch:///a.db"],
)
def test_urls_that_are_none(given: str) -> None:
    with pytest.raises(BadInput, match=r"store\.url"):
        create_app({"store": {"url": given}})


# --- faults ------------------------------------------------------------------------------------------------------------


async def test_without_its_database_the_rest_works(scripted: Scripted, tmp_path: Path) -> None:
    """A folder that is not there: no connection is possible. What needs the store says so, all else works."""
    config = over(scripted, store={"url": f"sqlite:///{tmp_path / 'none' / 'a.db'}"})
    async with asking(config) as client:
        plain = [await asked(client, "text", stream=stream) for stream in (True, False)]
        without = await asked(client, "text", store=False)
        needing: list[Any] = [
            await asked(client, "text", store=True),
            await asked(client, "text", previous_response_id="resp_1"),
            await client.get("/v1/responses/resp_1"),
            await client.post("/v1/conversations", json={}),
        ]
        ready = await client.get("/readyz")
        (tmp_path / "none").mkdir()
        later = await asked(client, "text", store=True)
    assert [one.status_code for one in (*plain, without)] == [200, 200, 200]
    assert ["store: dropped: the store cannot be used now" in one.headers["warning"] for one in plain] == [True, True]
    assert judged(events_in(plain[0].content))[-1]["response"]["store"] is False
    assert [(one.status_code, one.json()["error"]["code"]) for one in needing] == [(503, "store_unavailable")] * 4
    assert (ready.status_code, ready.json()) == (200, {"status": "degraded", "store": "unavailable"})
    assert (later.status_code, later.json()["store"]) == (200, True)


async def test_a_database_that_goes_away_in_the_middle(scripted: Scripted, tmp_path: Path) -> None:
    """The response was made and paid for: it is handed out, and says that it was not stored."""
    path = tmp_path / "a.db"
    async with asking(over(scripted, store={"url": f"sqlite:///{path}"})) as client:
        await asked(client, "text")
        with sqlite3.connect(path) as connection:
            connection.execute("ALTER TABLE antiphon_responses RENAME TO elsewhere")
        answers = [await asked(client, "text", stream=stream) for stream in (True, False)]
        metrics = (await client.get("/metrics")).text
    final = judged(events_in(answers[0].content))[-1]["response"]
    assert (final["status"], final["store"], answers[1].json()["store"]) == ("completed", False, False)
    assert "antiphon_store_failures_total 2" in metrics


KILLED = """
import asyncio, os, signal, sys
import httpx2
from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport

async def main():
    app = create_app({"store": {"url": sys.argv[1]}})
    async with httpx2.AsyncClient(transport=AppTransport(app), base_url="http://x") as client:
        for number in range(3):
            answer = await client.post("/v1/responses", json={"model": "echo", "input": f"number {number}", "stream": True})
            assert b"event: response.completed" in answer.content
            print(answer.content.split(b'"id":"')[1].split(b'"')[0].decode(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def killed(url: str) -> list[str]:
    """Return the ids of responses that a process handed out before it was killed."""
    run = subprocess.run([sys.executable, "-c", KILLED, url], capture_output=True, text=True, timeout=60)
    assert run.returncode == -signal.SIGKILL, run.stderr
    return run.stdout.split()


async def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    names = await asyncio.to_thread(killed, url)
    async with asking({"store": {"url": url}}) as client:
        found = [(await client.get(f"/v1/responses/{name}")).json()["status"] for name in names]
    assert found == ["completed"] * 3
