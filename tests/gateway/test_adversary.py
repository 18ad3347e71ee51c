"""What hostile or unlucky callers, backends and machines do to a gateway, and that it holds: each kind is a table."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.errors import BadInput
from antiphon.gateway import Limits, StoreConfig, create_app
from antiphon.gateway.bodies import read_body
from antiphon.gateway.process import check_workers, served_config
from antiphon.gateway.store import Conversation, Store
from antiphon.gateway.stored import Stored
from tests.providers.backends import loopback
from tests.providers.backends.loopback import Act, Script

from .asking import TOOL, Json, asked, asking, events_in, judged, shape, streamed
from .conftest import listening, over
from .scripted_backend import Scripted
from .test_serve import Served, serving

CONTENT = "what-nobody-shall-read"
KEY = "sk-adversary-0123456789"
JSON = {"content-type": "application/json"}


def told(answer: httpx2.Response) -> tuple[int, Any, Any]:
    """Return the status of an answer, and the code and the parameter of its error."""
    error: Json = answer.json().get("error") or {}
    return answer.status_code, error.get("code"), error.get("param")


def response(name: str, **more: Any) -> Json:
    return {"id": name, "created_at": int(time.time()), "status": "completed", "output": [], **more}


# --- the store: callers that leave, limits, files that go ----------------------------------------------------------------

OPERATIONS: dict[str, Callable[[Store], Any]] = {
    "ready": lambda store: store.ready(),
    "get": lambda store: store.get("resp_0", ""),
    "chain": lambda store: store.chain("resp_0", "", 10),
    "put": lambda store: store.put(Stored(response("resp_1"), []), ""),
    "items": lambda store: store.items(["a"], ""),
    "conversation": lambda store: store.begin_conversation(Conversation("conv_1", 1, {}), [], ""),
    "delete": lambda store: store.delete("resp_2", ""),
    "clean": lambda store: store.clean(),
}


@pytest.mark.parametrize("name", OPERATIONS)
async def test_a_caller_that_leaves_takes_nothing_with_it(name: str) -> None:
    """Wherever an operation is cut off, what the database in memory holds stays, and it goes on working."""
    for steps in range(40):
        store = Store(StoreConfig(url="memory"))
        await store.put(Stored(response("resp_0"), []), "")
        task = asyncio.ensure_future(OPERATIONS[name](store))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
        kept = await store.get("resp_0", "")
        await store.put(Stored(response("resp_3"), []), "")
        await store.aclose()
        assert kept is not None, steps


async def test_memory_never_holds_more_than_its_limit() -> None:
    """The latest stay, in whichever second they came, and what a later one builds on stays with it."""
    store = Store(StoreConfig(url="memory", most_responses=10))
    for number in range(15):
        await store.put(Stored(response(f"resp_{number}"), []), "")
    held = [number for number in range(15) if await store.get(f"resp_{number}", "")]
    await store.aclose()
    assert held == list(range(5, 15))


async def test_what_is_built_upon_outlives_what_is_not(tmp_path: Path) -> None:
    """By age alone the first response of each long talk would go, and the whole talk with it."""
    path = tmp_path / "a.db"
    store = Store(StoreConfig(url=f"sqlite:///{path}", most_responses=3))
    for number in range(4):
        await store.put(Stored(response(f"resp_{number}"), []), "")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE antiphon_responses SET expires_at = expires_at - 10")
    await store.put(Stored(response("resp_next"), [], previous_id="resp_0"), "")
    await store.clean()
    chain = await store.chain("resp_next", "", 10)
    await store.aclose()
    assert [one.id for one in chain or ()] == ["resp_0", "resp_next"]


async def test_a_shorter_time_shortens_nothing_that_is_kept(tmp_path: Path) -> None:
    """Two responses build on one: that of a process with a shorter time does not take it from the other one."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    long, short = Store(StoreConfig(url=url)), Store(StoreConfig(url=url, keep_seconds=1))
    await long.put(Stored(response("resp_0"), []), "")
    await long.put(Stored(response("resp_long"), [], previous_id="resp_0"), "")
    await short.put(Stored(response("resp_short"), [], previous_id="resp_0"), "")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE antiphon_responses SET expires_at = expires_at - 60")
    gone = await long.clean()
    chains = [await long.chain(name, "", 10) for name in ("resp_long", "resp_short")]
    for store in (long, short):
        await store.aclose()
    assert gone == 1
    assert [None if chain is None else [one.id for one in chain] for chain in chains] == [["resp_0", "resp_long"], None]


async def test_what_expired_is_not_gone_on_from(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with asking({"store": {"url": f"sqlite:///{path}"}}) as client:
        name = (await asked(client, "echo")).json()["id"]
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE antiphon_responses SET expires_at = 1")
        after = await asked(client, "echo", previous_response_id=name)
    assert told(after) == (400, "previous_response_not_found", "previous_response_id")


def removed(path: Path) -> None:
    for one in path.parent.glob("a.db*"):
        one.unlink()


def replaced(path: Path) -> None:
    removed(path)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE other (x)")


@pytest.mark.parametrize("lose", [removed, replaced])
async def test_a_file_that_is_lost_is_made_again(lose: Callable[[Path], None], tmp_path: Path) -> None:
    """What is acknowledged afterwards is in the file that is there, and not in one that nobody can open again."""
    path = tmp_path / "a.db"
    config = {"store": {"url": f"sqlite:///{path}"}}
    async with asking(config) as client:
        before = (await asked(client, "echo")).json()["id"]
        lose(path)
        gone = await client.get(f"/v1/responses/{before}")
        after = (await asked(client, "echo", store=True)).json()
    async with asking(config) as another:
        found = await another.get(f"/v1/responses/{after['id']}")
    assert (gone.status_code, after["store"], found.status_code) == (404, True, 200)


async def test_a_database_that_another_process_holds(tmp_path: Path, scripted: Scripted) -> None:
    """Reading goes on; what must be written waits for its time, and is handed out unstored. Then all is as before."""
    path = tmp_path / "a.db"
    async with asking(over(scripted, store={"url": f"sqlite:///{path}", "timeout": 0.3})) as client:
        first = (await asked(client, "text")).json()["id"]
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        held = [
            await client.get(f"/v1/responses/{first}"),
            await asked(client, "text", previous_response_id=first),
            await client.post("/v1/conversations", json={}),
        ]
        other.execute("ROLLBACK")
        other.close()
        later = (await asked(client, "text", previous_response_id=first)).json()
    assert [one.status_code for one in held] == [200, 200, 503]
    assert (held[1].json()["store"], later["store"]) == (False, True)


async def test_a_long_chain_with_branches(tmp_path: Path) -> None:
    """Two hundred responses that build on each other, two that build on the same one, and one taken out of the middle."""
    async with asking({"store": {"url": f"sqlite:///{tmp_path / 'a.db'}"}}) as client:
        names: list[str] = []
        for number in range(200):
            previous = {"previous_response_id": names[-1]} if names else {}
            answer = await asked(client, "echo", input=f"number {number}", **previous)
            assert answer.status_code == 200, answer.text
            names.append(answer.json()["id"])
        branches = [await asked(client, "echo", input=str(at), previous_response_id=names[99]) for at in range(2)]
        await client.delete(f"/v1/responses/{names[150]}")
        after = [await asked(client, "echo", previous_response_id=names[at]) for at in (149, 150, 151, 199)]
    assert [one.json()["previous_response_id"] for one in branches] == [names[99]] * 2
    assert [one.status_code for one in after] == [200, 400, 400, 400]


# --- events again ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["text", "reasoning-tool", "refusal", "length", "parallel"])
@pytest.mark.parametrize("stream", [True, False])
async def test_events_come_again_from_every_number_on(stream: bool, model: str, scripted: Scripted) -> None:
    """Also of a response that was not streamed: those that it would have had. What is in it cannot mislead the numbers."""
    tool = {**TOOL, "parameters": {**TOOL["parameters"], "sequence_number": 10**6}}
    async with asking(over(scripted)) as client:
        answer = await asked(client, model, stream=stream, tools=[tool], metadata={"sequence_number": "7"})
        final = events_in(answer.content)[-1]["response"] if stream else answer.json()
        path = f"/v1/responses/{final['id']}?stream=true"
        again = judged(events_in((await client.get(path)).content))
        parts = [(await client.get(f"{path}&starting_after={at}")).content for at in range(-1, len(again) + 1)]
    assert again[-1]["response"] == final
    assert [one["sequence_number"] for one in again] == list(range(len(again)))
    assert [events_in(part) for part in parts] == [again[at:] for at in range(len(again) + 1)] + [[]]


@pytest.mark.parametrize("query", ["starting_after=-2", "starting_after=x", "starting_after=9" + "9" * 30, "stream=2"])
async def test_numbers_that_are_none(query: str) -> None:
    async with asking() as client:
        name = (await asked(client, "echo")).json()["id"]
        answer = await client.get(f"/v1/responses/{name}?stream=true&{query}")
    assert told(answer)[0] == 400


async def test_what_is_done_to_a_response_in_each_phase(scripted: Scripted) -> None:
    """A response that runs is nobody's to delete or to go on from, can be cancelled, and is gone afterwards."""
    async with listening(create_app(over(scripted))) as url, httpx2.AsyncClient(base_url=url, timeout=20) as client:
        done = (await asked(client, "text")).json()["id"]
        body = {"model": "hang", "input": "Hi", "stream": True}
        async with client.stream("POST", "/v1/responses", json=body) as answer:
            pieces = answer.aiter_raw()
            held = await anext(pieces)
            name = events_in(held)[0]["response"]["id"]
            path = f"/v1/responses/{name}"
            running = [
                await client.delete(path),
                await asked(client, "text", previous_response_id=name),
                await client.get(f"{path}/input_items"),
                await client.post(f"{path}/cancel"),
            ]
            async for piece in pieces:
                held += piece
        ended = [await client.post(f"{path}/cancel"), await client.post(f"/v1/responses/{done}/cancel")]
    assert [one.status_code for one in running] == [404, 400, 404, 200]
    assert judged(events_in(held))[-1]["type"] == "response.failed"
    assert [told(one)[:2] for one in ended] == [(404, "not_found"), (400, "response_not_cancellable")]


# --- requests -------------------------------------------------------------------------------------------------------------

# what is sent to begin a conversation -> the error; None: there is none
CONVERSATIONS: list[tuple[Json, tuple[str, str] | None]] = [
    ({"items": [{"type": "item_reference"}]}, ("item_not_found", "items[0]")),
    ({"items": [{"role": "user", "content": "x"}, {"id": "msg_unknown"}]}, ("item_not_found", "items[1]")),
    ({"items": [{}]}, ("invalid_type", "items[0].type")),
    ({"items": [{"type": {"a": 1}, "role": "user"}]}, ("invalid_type", "items[0].type")),
    ({"items": [{"content": "x"}]}, ("invalid_type", "items[0].type")),
    ({"items": "x"}, ("invalid_type", "items")),
    (
        {"items": [{"role": "user", "content": "x"}, {"role": "wizard", "content": "x"}]},
        ("invalid_value", "items[1].role"),
    ),
    ({"items": [{"type": "function_call", "call_id": "c", "name": 5}]}, ("invalid_value", "items[0].name")),
    ({"items": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, None),
    ({"items": [{"type": "compaction", "encrypted_content": "x"}, {"type": "unheard_of"}]}, None),
    ({"items": [{"role": "user", "content": "x", "id": "a\0" + "b" * 300}]}, None),
    ({"items": None, "metadata": None}, None),
]


@pytest.mark.parametrize(("body", "error"), CONVERSATIONS)
@pytest.mark.parametrize("later", [False, True])
async def test_items_of_conversations(body: Json, error: tuple[str, str] | None, later: bool) -> None:
    """At the beginning or later: what could not be used is not taken, since all requests of the conversation would fail."""
    async with asking() as client:
        path = "/v1/conversations"
        if later:
            path = f"{path}/{(await client.post(path, json={})).json()['id']}/items"
        answer = await client.post(path, json=body)
    assert told(answer) == ((200, None, None) if error is None else (400, *error))


async def paged(client: httpx2.AsyncClient, path: str, order: str) -> list[Json]:
    """Return all items of a list, one a page, as clients page through them."""
    items: list[Json] = []
    after = ""
    for _ in range(50):
        page = (await client.get(f"{path}?limit=1&order={order}{after}")).json()
        items += page["data"]
        if not page["has_more"]:
            return items
        after = f"&after={page['last_id']}"
    raise AssertionError(f"the pages of {path} come to no end")


async def test_items_that_say_they_are_the_same_are_not() -> None:
    """Whoever sends an id twice gets all items back, each once; by its id each can be found, and deleted."""
    given: list[Json] = [{"id": "msg_same", "role": "user", "content": content} for content in ("a", "b", "c")]
    async with asking() as client:
        talk = (await client.post("/v1/conversations", json={"items": given})).json()["id"]
        path = f"/v1/conversations/{talk}/items"
        added = (await client.post(path, json={"items": given})).json()["data"]
        reference = {"type": "item_reference", "id": added[0]["id"]}
        await client.post(path, json={"items": [reference, reference]})
        made = (await asked(client, "echo", conversation=talk, input=[*given, reference])).json()
        lists = {
            one: [await paged(client, one, order) for order in ("asc", "desc")]
            for one in (path, f"/v1/responses/{made['id']}/input_items")
        }
        found = [(await client.get(f"{path}/{one['id']}")).json() for one in lists[path][0]]
    for forwards, backwards in lists.values():
        assert forwards == backwards[::-1]
        assert len({one["id"] for one in forwards}) == len(forwards)
    said = [one["content"] for one in lists[path][0][:-1]]
    assert said == ["a", "b", "c", "a", "b", "c", "a", "a", "a", "b", "c", "a"]
    assert found == lists[path][0]


async def test_what_failed_says_that_it_is_not_stored(scripted: Scripted) -> None:
    """A response that says `store` can be retrieved, whatever became of it, and no other one."""
    async with asking(over(scripted)) as client:
        for model in ("text", "length", "error-mid-stream", "disconnect", "error-first-line"):
            for params in ({}, {"background": True}, {"store": False}):
                answer = await asked(client, model, stream=True, **params)
                if answer.status_code == 200:
                    final = events_in(answer.content)[-1]["response"]
                    found = (await client.get(f"/v1/responses/{final['id']}")).status_code
                    assert (model, params, final["store"]) == (model, params, found == 200)


async def test_a_reference_in_a_conversation_is_what_it_refers_to() -> None:
    async with asking() as client:
        first = (await asked(client, "echo", input="one")).json()
        item = first["output"][0]
        reference = {"type": "item_reference", "id": item["id"]}
        talk = (await client.post("/v1/conversations", json={"items": [reference]})).json()["id"]
        await client.delete(f"/v1/responses/{first['id']}")
        items = (await client.get(f"/v1/conversations/{talk}/items")).json()["data"]
        found = (await client.get(f"/v1/conversations/{talk}/items/{item['id']}")).json()
        used = await asked(client, "echo", conversation=talk)
    assert items == [found] == [item]
    assert used.status_code == 200


# parameters beside model and input -> what comes
PARAMETERS: list[tuple[Json, tuple[int, Any, Any]]] = [
    ({"input": [{"role": "user", "content": "x"}] * 10_001}, (400, "invalid_value", "input")),
    ({"input": [{}]}, (400, "invalid_value", "input[0]")),
    (
        {"input": [{"type": "item_reference", "id": str(at)} for at in range(9_000)]},
        (400, "item_not_found", "input[0]"),
    ),
    ({f"x{at}": 1 for at in range(300)}, (400, None, None)),
    ({"metadata": [[]] * 600_000}, (413, "request_too_large", None)),
    ({"metadata": [[]] * 100_000}, (400, "invalid_type", "metadata")),
    ({"metadata": [0] * 5_100_000}, (413, "request_too_large", None)),
    ({"input": [{"role": "user", "content": "," * 4_000_000}]}, (200, None, None)),
    ({"previous_response_id": "\0"}, (400, "previous_response_not_found", "previous_response_id")),
    ({"conversation": "\0"}, (404, "conversation_not_found", "conversation")),
    ({"input": [{"role": "user", "content": "[{" * 100_000}]}, (200, None, None)),
]


@pytest.mark.parametrize(("given", "expected"), PARAMETERS, ids=range(len(PARAMETERS)))
async def test_requests_that_ask_for_much(given: Json, expected: tuple[int, Any, Any]) -> None:
    async with asking() as client:
        assert told(await asked(client, "replay/text", **given)) == expected


async def test_many_references_are_looked_up(tmp_path: Path) -> None:
    """More than a statement may have values, in whichever database."""
    async with asking({"store": {"url": f"sqlite:///{tmp_path / 'a.db'}"}}) as client:
        items = [{"role": "user", "content": "x", "id": f"msg_{at}"} for at in range(900)]
        await client.post("/v1/conversations", json={"items": items})
        given = [{"type": "item_reference", "id": f"msg_{at}"} for at in range(900)]
        answer = await asked(client, "replay/text", input=given)
    assert answer.status_code == 200


LARGE: list[Json] = [
    {"input": [{"role": "user", "content": "x"}] * 60_000},
    {"input": "x", "metadata": [[]] * 300_000},
    {"input": "x", "tools": [TOOL] * 5_000},
]


@pytest.mark.parametrize("given", LARGE, ids=range(len(LARGE)))
async def test_a_large_request_leaves_the_others_their_turn(given: Json) -> None:
    """While it is read and converted, the event loop goes round: work on the loop itself would stop all streams."""
    data = json.dumps({"model": "replay/text", "store": False, **given}).encode()
    rounds = 0
    async with asking({"limits": {"history_items": 100_000}}) as client:
        await asked(client, "replay/text")  # what is imported once
        task = asyncio.ensure_future(client.post("/v1/responses", content=data, headers=JSON))
        while not task.done():
            await asyncio.sleep(0.001)
            rounds += 1
        answer = await task
    assert answer.status_code in (200, 400)
    assert rounds > 5


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 200),
        ({"content-type": "Application/JSON; charset=utf-8"}, 200),
        ({"content-type": "application/vnd.api+json"}, 200),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "text/plain,application/json"}, 415),
        ({"content-type": "text/plain,+json"}, 415),
        ({"content-type": "xapplication/json"}, 415),
        ({}, 415),
    ],
)
async def test_what_a_page_could_send_unasked_is_not_read(headers: dict[str, str], status: int) -> None:
    async with asking() as client:
        body = b'{"model":"echo","input":"x"}'
        answer = await client.post("/v1/responses", content=body, headers=headers)
        empty = await client.post("/v1/conversations", headers={"origin": "http://evil.test"})
        own = await client.post("/v1/conversations")
    assert answer.status_code == status
    assert (empty.status_code, own.status_code) == (415, 200)


def zstd(data: bytes) -> bytes:
    import zstandard

    return zstandard.compress(data)


ASK = b'{"model":"echo","input":"x"}'
BODIES: list[tuple[str, bytes, tuple[int, Any]]] = [
    ("gzip", gzip.compress(ASK), (200, None)),
    ("zstd", zstd(ASK), (200, None)),
    ("gzip", gzip.compress(b" " * 3_000_000), (413, "request_too_large")),
    ("zstd", zstd(b" " * 3_000_000), (413, "request_too_large")),
    ("gzip", ASK, (400, "invalid_encoding")),
    ("zstd", ASK, (400, "invalid_encoding")),
    ("gzip", gzip.compress(ASK)[:-12], (400, "invalid_encoding")),
    ("gzip", gzip.compress(ASK)[:-4], (400, "invalid_encoding")),
    ("zstd", zstd(ASK)[:-3], (400, "invalid_encoding")),
    ("gzip", b"", (400, "invalid_encoding")),
    ("gzip", gzip.compress(ASK[:9]) + gzip.compress(ASK[9:]), (200, None)),
    ("zstd", zstd(ASK[:9]) + zstd(ASK[9:]), (200, None)),
    ("zstd", b"\x50\x2a\x4d\x18\x04\0\0\0skip" + zstd(ASK), (200, None)),
    ("gzip", gzip.compress(ASK) + b"\0" * 2000, (200, None)),
    ("gzip", gzip.compress(ASK) + b"behind it", (400, "invalid_encoding")),
    ("gzip", gzip.compress(b"") * 20_000 + gzip.compress(ASK), (400, "invalid_encoding")),
    ("gzip", gzip.compress(b"") * 60_000, (413, "request_too_large")),
    ("br", ASK, (415, "unsupported_encoding")),
    ("gzip, gzip", gzip.compress(gzip.compress(ASK)), (415, "unsupported_encoding")),
    ("identity", b"\xef\xbb\xbf" + ASK, (200, None)),
    ("gzip", gzip.compress(b"\xef\xbb\xbf" + ASK), (200, None)),
    ("identity", ASK.decode().encode("utf-16"), (400, "invalid_json")),
    ("identity", b'{"model":"echo","input":"\\ud800"}', (200, None)),
    ("identity", b'{"model":"echo","input":"\\ud800}', (400, "invalid_json")),
    ("identity", b'{"model":"\\udc00","input":"x"}', (200, None)),
    ("identity", b'{"model":"echo","input":"x","temperature":1e999}', (400, "invalid_json")),
    ("identity", b"", (400, "invalid_json")),
    ("identity", b" " * (1_000_000 - len(ASK)) + ASK, (200, None)),
    ("identity", b" " * (1_000_001 - len(ASK)) + ASK, (413, "request_too_large")),
]


@pytest.mark.parametrize(("coding", "body", "expected"), BODIES, ids=range(len(BODIES)))
async def test_bodies(coding: str, body: bytes, expected: tuple[int, Any]) -> None:
    async with asking({"limits": {"body_bytes": 1_000_000}}) as client:
        answer = await client.post("/v1/responses", content=body, headers={**JSON, "content-encoding": coding})
    assert told(answer)[:2] == expected


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_halves_of_characters_are_replaced(said: str) -> None:
    """As `JSON.stringify` writes them; backslashes, whole characters and all else stay."""
    escaped = json.dumps({"model": "echo", "input": said + "\ud83d"}).encode()

    async def pieces() -> AsyncGenerator[bytes]:
        yield escaped

    body = asyncio.run(read_body(pieces(), {"content-type": "application/json"}, Limits()))
    paired = (said + "\ud83d").encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert body.held["input"] == paired
    assert body.notes == ("body: halves of characters were replaced",)


async def test_a_text_that_was_cut_within_a_character_is_told(scripted: Scripted) -> None:
    body = b'{"model":"history","input":"cut \\ud83d","store":false}'
    async with asking(over(scripted)) as client:
        answer = await client.post("/v1/responses", content=body, headers=JSON)
    assert "halves of characters" in answer.headers["warning"]
    assert answer.json()["output"][0]["content"][0]["text"] == "user | cut \ufffd"


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/conversations"])
async def test_a_body_that_trickles_is_not_waited_for(path: str) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
    async with listening(create_app({"limits": {"body_seconds": 0.2}})) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
        writer.write(head.encode())
        async with asyncio.timeout(10):
            line = await reader.readline()
        writer.close()
    assert b" 408 " in line


# --- names, keys, labels, logs ----------------------------------------------------------------------------------------------

HOSTS: list[tuple[list[str], int]] = [
    (["localhost"], 200),
    (["LocalHost:8080"], 200),
    (["localhost."], 200),
    (["[::1]:8080"], 200),
    (["[::1]"], 200),
    (["a.example.com"], 200),
    (["example.com"], 400),
    (["evil.test"], 400),
    (["localhost.evil.test"], 400),
    (["localhost@evil.test"], 400),
    (["localhost:evil"], 400),
    (["evilexample.com"], 400),
    (["127.1"], 400),
    ([""], 400),
    (["localhost", "evil.test"], 400),
]


@pytest.mark.parametrize(("names", "status"), HOSTS)
async def test_host_names(names: list[str], status: int) -> None:
    async with asking({"hosts": ["localhost", "127.0.0.1", "[::1]", "*.example.com"]}) as client:
        answer = await client.get("/healthz", headers=[("host", name) for name in names])
    assert answer.status_code == status
    if status == 400:
        assert told(answer)[1] == "invalid_host"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Bearer " + KEY.encode(), 200),
        (b"bearer  " + KEY.encode(), 200),
        (b"Bearer " + KEY.upper().encode(), 401),
        (b"Bearer " + KEY.encode() + "é".encode(), 401),
        (b"Bearer \xff\xfe", 401),
        (b"Basic " + KEY.encode(), 401),
    ],
)
@pytest.mark.parametrize("passed", [False, True])
async def test_keys_of_any_bytes(header: bytes, status: int, passed: bool, scripted: Scripted) -> None:
    """Also where keys are passed on and none is checked: a key that no header can carry is no fault of the gateway."""
    backend = {"url": scripted.url, "pass_caller_key": passed}
    async with asking({"backends": {"b": backend}, "api_keys": [KEY]}) as client:
        answer = await client.post(
            "/v1/responses", json={"model": "text", "input": "x"}, headers=[(b"authorization", header)]
        )
        query = await client.get(f"/v1/models?api_key={KEY}")
    async with asking({"backends": {"b": backend}}) as client:
        unchecked = await client.post(
            "/v1/responses", json={"model": "text", "input": "x"}, headers=[(b"authorization", header)]
        )
    assert (answer.status_code, query.status_code) == (status, 401)
    assert unchecked.status_code == (401 if passed and not header.isascii() else 200)


async def test_codes_of_backends_are_no_labels() -> None:
    """Each refusal has a code of its own; metrics that grew with them would fill the memory, and tell content."""
    seen = 0

    def script(request: loopback.Request) -> Script:
        nonlocal seen
        seen += 1
        return loopback.answer({"error": {"message": "no", "code": f"{CONTENT}-{seen}"}}, "400 Bad Request")

    async with (
        loopback.serve(script) as server,
        asking({"backends": {"b": {"url": server.url}}}) as client,
    ):
        answers = [await asked(client, f"model-{at}") for at in range(5)]
        metrics = (await client.get("/metrics")).text
    assert [told(one)[1] for one in answers] == [f"{CONTENT}-{at}" for at in range(1, 6)]
    assert 'antiphon_refusals_total{code="invalid_prompt"} 5' in metrics
    assert CONTENT not in metrics
    assert "model-" not in metrics


async def test_a_process_logs_no_key_and_no_content(tmp_path: Path) -> None:
    """Not those that a caller puts into the query by mistake, nor what a backend says that cannot be read."""
    script: Script = loopback.answer(
        f'data: {{"x": "{CONTENT}\n\ndata: {CONTENT}\n\n', content_type="text/event-stream"
    )
    listed = loopback.answer({"data": [{"id": "m"}]})
    async with loopback.serve(lambda request: listed if request.method == "GET" else script) as server:
        options = ("--backend", server.url, "--access-log", "--store", "memory")
        async with serving(tmp_path, *options) as served, httpx2.AsyncClient(base_url=served.url) as client:
            headers = {"Authorization": f"Bearer {KEY}"}
            await client.get(f"/v1/models?api_key={KEY}&x={CONTENT}", headers=headers)
            answer = await client.post(
                f"/v1/responses?key={KEY}",
                headers=headers,
                json={
                    "model": "m",
                    "input": CONTENT,
                    "stream": True,
                    "unknown": CONTENT,
                    "metadata": {CONTENT: CONTENT},
                    "tools": [{"type": "web_search", "filters": CONTENT}],
                },
            )
    assert answer.status_code == 502
    assert "GET /v1/models HTTP" in served.printed
    assert "line-unreadable" in served.printed
    assert (KEY in served.printed, CONTENT in served.printed, "Traceback" in served.printed) == (False,) * 3


# --- the page -----------------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """The elements of a page, and their attributes that run something."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found += [tag, *(name for name, _ in attrs if name.startswith("on"))]


HOSTILE = "</text></svg><script>alert(1)</script><img src=x onerror=alert(1)>\"'&]]>"


async def test_the_page_runs_nothing_that_it_shows() -> None:
    script: Script = loopback.answer(
        b"".join(
            loopback.data({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
            for delta in (
                {"reasoning_content": HOSTILE},
                {"content": HOSTILE},
                {"tool_calls": [{"index": 0, "id": HOSTILE, "function": {"name": HOSTILE, "arguments": HOSTILE}}]},
            )
        )
        + loopback.data({"error": {"message": HOSTILE, "code": HOSTILE}}),
        content_type="text/event-stream",
    )
    page = {"enabled": True, "content": True}
    async with (
        loopback.serve(lambda request: script) as server,
        asking({"backends": {HOSTILE: {"url": server.url}}, "page": page}) as client,
    ):
        await asked(client, HOSTILE, stream=True, instructions=HOSTILE)
        text = (await client.get("/")).text
    found = Tags(text).found
    assert found.count("script") == 1
    assert not [tag for tag in found if tag == "img" or tag.startswith("on")]
    assert "alert(1)" in text


async def test_looking_at_the_page_stops_no_stream() -> None:
    """Pictures of long streams are drawn beside the event loop, and not again for each look."""
    async with asking({"page": {"enabled": True, "content": True}}) as client:
        for _ in range(3):
            await asked(client, "echo", input="a word " * 3000, stream=True)
        looks = [asyncio.ensure_future(client.get("/streams")) for _ in range(5)]
        rounds = 0
        while not all(one.done() for one in looks):
            await asyncio.sleep(0.001)
            rounds += 1
        first = {one.result().text for one in looks}
        again = asyncio.ensure_future(client.get("/streams"))
        few = 0
        while not again.done():
            await asyncio.sleep(0.001)
            few += 1
    assert first == {again.result().text}
    assert few < rounds


# --- backends -----------------------------------------------------------------------------------------------------------------


def sse(*chunks: Json) -> bytes:
    return b"".join(loopback.data(one) for one in chunks) + b"data: [DONE]\n\n"


def chunk(delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


GOOD = sse(chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop"))
WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
}
HELLO = ("completed", [["message", "Hello"]])


def raw(status: str, body: bytes = b"", **headers: str) -> Script:
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "Connection: close", "", ""])
    return [head.encode() + body, Act.CLOSE]


def events(body: bytes, **headers: str) -> Script:
    return raw("200 OK", body, content_type="text/event-stream", **headers)


# what a backend sends -> what comes: an error's status and code, or a response
BACKENDS: dict[str, tuple[Script, Any]] = {
    "redirect": (raw("307 Temporary Redirect", location="http://127.0.0.1:9/"), (502, "backend_answer_unreadable")),
    "page": (raw("200 OK", b"<html>log in</html>", content_type="text/html"), (502, "backend_answer_unreadable")),
    "page-502": (raw("502 Bad", b"<html>bad</html>", content_type="text/html"), (502, "server_error")),
    "gzip": (events(gzip.compress(GOOD), content_encoding="gzip"), HELLO),
    "no-gzip": (events(b"nope", content_encoding="gzip"), (502, "backend_answer_unreadable")),
    "hints": ([b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", *events(GOOD)], HELLO),
    "other-type": (raw("200 OK", GOOD, content_type="application/octet-stream"), HELLO),
    "json": (raw("200 OK", json.dumps(WHOLE).encode(), content_type="application/json"), HELLO),
    "bom": (events(b"\xef\xbb\xbf" + GOOD), HELLO),
    "cr": (events(GOOD.replace(b"\n", b"\r")), HELLO),
    "crlf": (events(GOOD.replace(b"\n", b"\r\n")), HELLO),
    "nothing": (events(b""), (502, "server_error")),
    "204": (raw("204 No Content"), (502, "backend_answer_unreadable")),
    "304": (raw("304 Not Modified"), (502, "server_error")),
    "999": (raw("999 Odd", b"oops"), (502, "server_error")),
    "endless-line": (events(b"data: " + b"x" * 5_000_000), (502, "server_error")),
    "long-line": (
        events(sse(chunk({"content": "y" * 5_000_000}), chunk({}, "stop"))),
        ("completed", [["message", "y" * 5_000_000]]),
    ),
    "lists": (events(b"data: [1]\n\ndata: 5\n\ndata: null\n\n"), (502, "server_error")),
    "odd-error": (raw("400 Bad", b'{"error":{"message":{"a":1},"code":17,"param":{},"type":5}}'), (400, "17")),
    "wait-inf": (raw("429 Slow", b"{}", retry_after="inf"), (429, "rate_limit_exceeded")),
    "wait-huge": (raw("429 Slow", b"{}", retry_after="1e400"), (429, "rate_limit_exceeded")),
    "wait-past": (raw("429 Slow", b"{}", retry_after="-5"), (429, "rate_limit_exceeded")),
    "key": (raw("401 No", f'{{"error":{{"message":"wrong key {KEY}"}}}}'.encode()), (401, "backend_refused_key")),
    "no-http": ([b"SSH-2.0-OpenSSH\r\n", Act.RESET], (502, "backend_unreachable")),
    "long-head": ([b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n", Act.RESET], (502, "backend_unreachable")),
    "head-only": ([b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", Act.HANG], (504, "backend_timeout")),
}


@pytest.mark.parametrize("name", BACKENDS)
@pytest.mark.parametrize("stream", [True, False])
async def test_backends_of_any_kind(stream: bool, name: str, caplog: pytest.LogCaptureFixture) -> None:
    script, expected = BACKENDS[name]
    async with (
        loopback.serve(lambda request: script) as server,
        asking(
            {
                "backends": {"b": {"url": server.url, "api_key": KEY}},
                "retry": {"attempts": 0},
                "limits": {"first_byte": 1, "idle": 1},
            }
        ) as client,
    ):
        answer = await asked(client, "m", stream=stream)
    if answer.status_code != 200:
        found: Any = told(answer)[:2]
        wait = answer.headers.get("retry-after")
        assert wait is None or wait.isdecimal()
    else:
        final = judged(events_in(answer.content))[-1]["response"] if stream else answer.json()
        found = final["status"], shape(final)["output"]
    assert found == expected
    assert KEY not in answer.text
    assert KEY not in caplog.text
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.mark.parametrize("name", BACKENDS)
async def test_backends_of_any_kind_in_the_background(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """What would be an error's status is a failed response, and its events are those of a good stream."""
    script, expected = BACKENDS[name]
    settings: Json = {"retry": {"attempts": 0}, "limits": {"first_byte": 1, "idle": 1}}
    async with (
        loopback.serve(lambda request: script) as server,
        asking({"backends": {"b": {"url": server.url, "api_key": KEY}}, **settings}) as client,
    ):
        begun = (await asked(client, "m", background=True)).json()
        followed = await client.get(f"/v1/responses/{begun['id']}?stream=true")
        stored = (await client.get(f"/v1/responses/{begun['id']}")).json()
    events = judged(events_in(followed.content))
    assert events[0]["response"] == begun
    assert events[-1]["response"] == stored
    assert (stored["status"], shape(stored)["output"]) == (expected if expected[0] == "completed" else ("failed", []))
    assert KEY not in followed.text
    assert KEY not in caplog.text
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


async def test_strict_refuses_what_is_not_done_as_it_was_asked() -> None:
    async with asking({"strict": True, "store": {"url": "none"}}) as client:
        found = [told(await asked(client, "echo", **{name: True})) for name in ("background", "store")]
    assert found == [(400, "invalid_value", "background"), (400, "invalid_value", "store")]


# names that are the same once they are flattened, or too long for a backend
COLLIDING: list[Json] = [
    {
        "type": "namespace",
        "description": "d",
        "name": "a__b",
        "tools": [{"type": "function", "name": "c", "parameters": {}}],
    },
    {
        "type": "namespace",
        "description": "d",
        "name": "a",
        "tools": [{"type": "function", "name": "b__c", "parameters": {}}],
    },
    {"type": "function", "name": "a__b__c", "parameters": {}},
    {
        "type": "namespace",
        "description": "d",
        "name": "n" * 60,
        "tools": [{"type": "function", "name": "a" * 60, "parameters": {}}],
    },
    {
        "type": "namespace",
        "description": "d",
        "name": "n" * 60,
        "tools": [{"type": "function", "name": "a" * 60 + "b", "parameters": {}}],
    },
    {"type": "custom", "name": "é patch/" + "n" * 60},
]


@pytest.mark.parametrize("first", range(len(COLLIDING)))
async def test_names_of_tools_come_back_as_they_were(first: int, scripted: Scripted) -> None:
    tool = COLLIDING[first]
    async with asking(over(scripted)) as client:
        final = (await streamed(client, "tool", tools=[tool, *COLLIDING[:first], *COLLIDING[first + 1 :]]))[-1]
        call = final["response"]["output"][0]
        output = {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": "done"}
        after = await asked(
            client, "history", tools=COLLIDING, previous_response_id=final["response"]["id"], input=[output]
        )
    inner = tool["tools"][0] if tool["type"] == "namespace" else tool
    namespace = tool["name"] if tool["type"] == "namespace" else None
    assert (call.get("namespace"), call["name"]) == (namespace, inner["name"])
    assert after.status_code == 200
    sent = [one["function"]["name"] for one in scripted.asked[0]["tools"]]
    assert len(set(sent)) == len(COLLIDING)
    assert max(map(len, sent)) <= 64


@pytest.mark.parametrize("given", ["", "!!!", "AAAA", "x" * 100_000, "eyJhIjoxfQ==", "\0", "antiphon"])
async def test_reasoning_that_was_tampered_with_is_left_out(given: str, scripted: Scripted) -> None:
    item: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": given}
    history: list[Json] = [
        {"role": "user", "content": "Hi"},
        item,
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
    ]
    async with asking(over(scripted)) as client:
        answer = await asked(client, "text", input=history)
    assert answer.status_code == 200
    assert [one["role"] for one in scripted.asked[0]["messages"]] == ["user", "assistant", "tool"]


# --- processes ------------------------------------------------------------------------------------------------------------------


def test_workers_share_no_memory() -> None:
    config = served_config(None, {"store": {"url": "memory"}}, "127.0.0.1", insecure=False)
    with pytest.raises(BadInput, match="--store"):
        check_workers(config, 2)
    check_workers(config, 1)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    if not found.exists():
        pytest.skip("this system does not tell the children of a process")
    return [int(one) for one in found.read_text().split()]


def workers(pid: int) -> list[int]:
    """Return those children that serve: not what Python keeps beside them."""
    return [one for one in children(pid) if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]


def runs(pid: int) -> bool:
    """Return whether a process does; one that ended, and that nobody waited for, does not."""
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def until_two_serve(pid: int, *gone: int) -> list[int]:
    """Wait until a process has two workers, none of them among `gone`. Return them."""
    for _ in range(300):
        found = workers(pid)
        if len(found) == 2 and not set(found) & set(gone):
            return found
        await asyncio.sleep(0.1)
    raise TimeoutError(f"the workers of {pid} are {workers(pid)}")


async def acknowledged(served: Served, stream: bool, over: asyncio.Event) -> list[str]:
    """Ask again and again, until a process is gone, or it is over: a client that asked nothing just then never hears of it.

    Return the ids of what was said to have ended, and to be stored.
    """
    held: list[str] = []
    async with httpx2.AsyncClient(base_url=served.url, timeout=20) as client:
        while not over.is_set():
            try:
                answer = await asked(client, "echo", stream=stream)
            except httpx2.TransportError:
                return held
            made = events_in(answer.content)[-1]["response"] if stream else answer.json()
            assert (made["status"], made["store"]) == ("completed", True)
            held.append(made["id"])
    return held


async def test_a_worker_that_is_killed_is_replaced(tmp_path: Path) -> None:
    """While it streams and stores: what it acknowledged is there, the others go on, and no process is left at the end."""
    async with serving(tmp_path, "--workers", "2") as served:
        first = await until_two_serve(served.process.pid)
        over = asyncio.Event()
        asking_all = [asyncio.create_task(acknowledged(served, bool(at % 2), over)) for at in range(8)]
        await asyncio.sleep(1)
        os.kill(first[0], signal.SIGKILL)
        await until_two_serve(served.process.pid, first[0])
        os.kill(first[1], signal.SIGKILL)
        await until_two_serve(served.process.pid, *first)
        over.set()
        names = [name for some in await asyncio.gather(*asking_all) for name in some]
        async with httpx2.AsyncClient(base_url=served.url, timeout=20) as client:
            found = [(await client.get(f"/v1/responses/{name}")).status_code for name in names]
        last = workers(served.process.pid)
    with sqlite3.connect(tmp_path / "antiphon" / "gateway.db") as connection:
        [[whole]] = connection.execute("PRAGMA integrity_check")
    assert len(names) > 8
    assert found == [200] * len(names)
    assert whole == "ok"
    assert [runs(one) for one in last] == [False, False]


async def test_workers_end_with_the_process_that_started_them(scripted: Scripted, tmp_path: Path) -> None:
    """Nobody else would end them, and they would keep the port: what they stream ends as when they are told to."""
    options = ("--backend", scripted.url, "--workers", "2")
    async with serving(tmp_path, *options, ANTIPHON_LIMITS__DRAIN="2") as served:
        pids = await until_two_serve(served.process.pid)
        async with httpx2.AsyncClient(base_url=served.url, timeout=20) as client:
            streaming = asyncio.create_task(asked(client, "hang", stream=True))
            await scripted.until_asked(1)
            await asyncio.sleep(0.5)  # until it has begun: what has not is refused
            served.process.kill()
            final = judged(events_in((await streaming).content))[-1]["response"]
        for _ in range(200):
            if not any(map(runs, pids)):
                break
            await asyncio.sleep(0.1)
        still = [runs(pid) for pid in pids]
        for pid in [pid for pid, one in zip(pids, still, strict=True) if one]:
            os.kill(pid, signal.SIGKILL)
    assert still == [False, False]
    assert (final["status"], "shutting down" in final["error"]["message"]) == ("failed", True)
    assert "Traceback" not in served.printed


@asynccontextmanager
async def command(*arguments: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from antiphon.cli import main; main()", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_gateway_is_clean_under_the_conformance_suite(scripted: Scripted) -> None:
    async with (
        listening(create_app(over(scripted))) as url,
        command("check", "--url", f"{url}/v1", "--api", "responses", "-m", "tool", "-q", "--strict") as process,
        asyncio.timeout(120),
    ):
        printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    assert "the event stream is canonical" in printed


async def test_that_it_speaks_no_chat_is_said() -> None:
    """The suite's other API is that of the backends; a client that asks for it is told where to go."""
    async with asking() as client:
        answer = await client.post("/v1/chat/completions", json={"model": "m", "messages": []})
    assert told(answer)[:2] == (404, "unknown_url")
    assert "POST /v1/responses" in answer.json()["error"]["message"]
