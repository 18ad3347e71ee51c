"""Responses that are made in the background: polled, followed, resumed and cancelled by the real client, over several
gateways on one database, and over the end of a process."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import AsyncOpenAI, BadRequestError, InternalServerError, NotFoundError
from openai.types.responses import Response
from sqlalchemy import create_engine

from antiphon.gateway import create_app
from antiphon.gateway.recorded import Recorded, events_after
from antiphon.gateway.tables import RUN_EVENTS, RUNS, STEPS
from antiphon.gateway.transport import AppTransport

from .asking import TOOL, Json, events_in, judged
from .conftest import over
from .scripted_backend import Scripted
from .test_serve import serving

BASE = "http://antiphon.test/v1"
QUICK: Json = {"beat": 0.1, "lease": 5}
ANNE, BOB = "sk-anne-123456789", "sk-bob-1234567890"


@asynccontextmanager
async def opened(config: Any, key: str = "unused") -> AsyncIterator[AsyncOpenAI]:
    """Give the OpenAI client of a new gateway, which ends with the block."""
    http = httpx2.AsyncClient(transport=AppTransport(create_app(config)), timeout=20)
    async with AsyncOpenAI(api_key=key, base_url=BASE, http_client=http, max_retries=0) as client:
        yield client


def quick(scripted: Scripted, url: str, **settings: Any) -> Json:
    """Return the configuration of a gateway that looks at its database often."""
    return {**over(scripted), **settings, "store": {"url": url, **QUICK, **settings.get("store", {})}}


Two = tuple[AsyncOpenAI, AsyncOpenAI]


@pytest.fixture
async def two(scripted: Scripted, url: str) -> AsyncIterator[Two]:
    """Clients of two gateways on one database."""
    async with opened(quick(scripted, url)) as one, opened(quick(scripted, url)) as other:
        yield one, other


async def begun(client: AsyncOpenAI, model: str, **params: Any) -> Response:
    return await client.responses.create(model=model, **{"input": "Hi", **params}, background=True)


async def polled(client: AsyncOpenAI, response_id: str) -> Response:
    """Return the response once it has ended."""
    async with asyncio.timeout(20):
        while True:
            response = await client.responses.retrieve(response_id)
            if response.status not in ("queued", "in_progress"):
                return response
            await asyncio.sleep(0.05)


async def events_of(client: AsyncOpenAI, response_id: str, after: int | None = None) -> list[Json]:
    """Return the events of a response, from the one after that number on, as they are on the wire."""
    place = "" if after is None else f"&starting_after={after}"
    answer = await client._client.get(f"{BASE}/responses/{response_id}?stream=true{place}")
    assert answer.status_code == 200, answer.text
    return events_in(answer.content)


async def read(client: AsyncOpenAI, response_id: str, after: int | None = None) -> list[Json]:
    """Return the same as the client reads it. Where the response fails the client raises."""
    place: Any = {} if after is None else {"starting_after": after}
    stream = await client.responses.retrieve(response_id, stream=True, **place)
    return [event.to_dict(mode="json") async for event in stream]


def said(response: Response) -> tuple[Any, ...]:
    return response.status, response.background, response.output_text, response.error and response.error.code


# --- polling -----------------------------------------------------------------------------------------------------------

# scenario -> status, text, code of the error
ENDINGS: dict[str, tuple[Any, ...]] = {
    "text": ("completed", True, "Hello there!", None),
    "length": ("incomplete", True, "This is cut", None),
    "error-400": ("failed", True, "", "invalid_prompt"),
    "error-context": ("failed", True, "", "context_length_exceeded"),
    "error-500-then-ok": ("completed", True, "Hello there!", None),
    "error-mid-stream": ("failed", True, "Half an answer", "server_error"),
    "disconnect": ("failed", True, "Half an answer", "server_error"),
}


@pytest.mark.parametrize("scenario", ENDINGS)
async def test_it_is_polled_in_another_gateway(scenario: str, two: Two) -> None:
    """However it ends: the ending is kept, and its events are those of a good stream."""
    one, other = two
    begin = await begun(one, scenario, metadata={"a": "b"})
    response = await polled(other, begin.id)
    events = judged(await events_of(other, begin.id))
    items = await other.responses.input_items.list(begin.id)
    assert (begin.status, begin.background, begin.output, begin.metadata) == ("in_progress", True, [], {"a": "b"})
    assert said(response) == ENDINGS[scenario]
    assert (response.id, response.created_at, response.model) == (begin.id, begin.created_at, scenario)
    assert events[-1]["response"] == response.to_dict(mode="json")
    assert [item.to_dict(mode="json")["role"] for item in items.data] == ["user"]


async def test_what_was_made_in_the_background_goes_on(two: Two, scripted: Scripted) -> None:
    one, other = two
    talk = await one.conversations.create()
    first = await polled(other, (await begun(one, "text", conversation=talk.id)).id)
    second = await polled(one, (await begun(other, "history", conversation=talk.id, input="Two")).id)
    third = await polled(one, (await begun(other, "history", previous_response_id=first.id, input="Other")).id)
    items = await other.conversations.items.list(talk.id, order="asc")
    assert second.output_text == "user,assistant,user | Two"
    assert third.output_text == "user,assistant,user | Other"
    assert [item.to_dict(mode="json")["role"] for item in items.data] == ["user", "assistant"] * 2


async def test_what_is_unfinished_or_failed_is_not_gone_on_from(two: Two) -> None:
    one, other = two
    names = [(await begun(one, "hang")).id, (await polled(one, (await begun(one, "error-400")).id)).id]
    for name in names:
        with pytest.raises(BadRequestError) as refused:
            await other.responses.create(model="text", input="Hi", previous_response_id=name)
        assert refused.value.code == "previous_response_not_found"


# --- following ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1])
async def test_a_stream_survives_its_client(place: int, two: Two, scripted: Scripted) -> None:
    """A client reads the beginning and leaves; what follows comes to whoever asks, in this gateway or another one."""
    stream = await two[0].responses.create(model="slow", input="Hi", background=True, stream=True)
    held: list[Json] = []
    async for event in stream:
        held.append(event.to_dict(mode="json"))
        if len(held) == 8:
            break
    await stream.close()
    response_id = held[0]["response"]["id"]
    following = asyncio.create_task(events_of(two[place], response_id, held[-1]["sequence_number"]))
    await asyncio.sleep(0.6)
    assert not following.done()
    cancelled = await two[1 - place].responses.cancel(response_id)
    events = judged([*held, *await following])
    assert cancelled.status == "cancelled"
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert await events_of(two[0], response_id) == await events_of(two[1], response_id) == events
    await scripted.server.until(lambda server: server.open == 0)


async def test_followers_see_the_same(two: Two) -> None:
    """Some follow from the beginning, some from the middle on, in both gateways, while it is made and after it."""
    begin = await begun(two[0], "reasoning-tool", tools=[TOOL])
    streams = await asyncio.gather(*(read(one, begin.id, after) for one in two for after in (None, 4, 10_000)))
    whole = judged(await events_of(two[1], begin.id))
    assert [*streams] == [whole, whole[5:], []] * 2


async def test_many_are_made_and_followed_at_once(url: str) -> None:
    """Each follower, at either gateway, from wherever on, hears its own response, whole and in order."""
    config: Json = {"store": {"url": url, **QUICK}}
    async with opened(config) as one, opened(config) as other:
        begun_all = await asyncio.gather(
            *(begun((one, other)[at % 2], "echo", input=f"number {at} " + "word " * (at * 7)) for at in range(40))
        )
        heard = await asyncio.gather(
            *(events_of((one, other)[at // 2 % 2], response.id, at % 9 - 1) for at, response in enumerate(begun_all))
        )
        whole = [judged(await events_of(one, response.id)) for response in begun_all]
        ended = [await polled(other, response.id) for response in begun_all]
    assert heard == [events[at % 9 :] for at, events in enumerate(whole)]
    assert [response.output_text.split()[:4] for response in ended] == [
        ["You", "said:", "number", str(at)] for at in range(40)
    ]


async def test_silence_is_filled_with_comments_in_both(scripted: Scripted, url: str) -> None:
    config = quick(scripted, url, limits={"keep_alive": 0.1})
    async with opened(config) as one, opened(config) as other:
        begin = await begun(one, "silent")
        bodies = [
            await client._client.get(f"{BASE}/responses/{begin.id}?stream=true&starting_after=1")
            for client in (other, one)
        ]
    assert b": keep-alive\n\n" in bodies[0].content
    assert bodies[0].content.replace(b": keep-alive\n\n", b"") == bodies[1].content.replace(b": keep-alive\n\n", b"")


@given(st.lists(st.integers(min_value=1, max_value=40_000), max_size=20), st.integers(min_value=0, max_value=25))
def test_what_is_kept_is_read_from_any_number_on(sizes: list[int], number: int) -> None:
    recorded = Recorded()
    events = [
        b'event: x\ndata: {"type":"x","sequence_number":%d,"delta":"%b"}\n\n' % (at, b"y" * size)
        for at, size in enumerate(sizes)
    ]
    for event in events:
        recorded.add(event)
    assert list(recorded.since(number)) == events[number:]
    assert list(events_after(recorded.packed(), number - 1)) == events[number:]
    assert list(recorded.since(number)) == events[number:]


# --- cancelling, deleting ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("scenario", ["hang", "silent", "slow"])
async def test_it_is_cancelled_from_any_gateway(scenario: str, place: int, two: Two, scripted: Scripted) -> None:
    begin = await begun(two[0], scenario)
    await scripted.until_asked(1)
    cancelled = await two[place].responses.cancel(begin.id)
    again = [await one.responses.cancel(begin.id) for one in two]
    stored = [await one.responses.retrieve(begin.id) for one in two]
    events = judged(await events_of(two[1], begin.id))
    assert (cancelled.status, cancelled.error, cancelled.id) == ("cancelled", None, begin.id)
    assert [*again, *stored] == [cancelled] * 4
    assert "cancelled by a request" in events[-1]["response"]["error"]["message"]
    assert events[-1]["response"]["output"] == cancelled.to_dict(mode="json")["output"]
    await scripted.server.until(lambda server: server.open == 0)


async def test_what_has_ended_stays_as_it_is(two: Two) -> None:
    one, other = two
    background = await polled(one, (await begun(one, "text")).id)
    foreground = await one.responses.create(model="text", input="Hi")
    assert await other.responses.cancel(background.id) == background
    with pytest.raises(BadRequestError, match="not made in the background"):
        await other.responses.cancel(foreground.id)
    with pytest.raises(NotFoundError):
        await other.responses.cancel("resp_none")


async def test_a_gateway_that_does_not_listen_is_not_waited_for(scripted: Scripted, url: str) -> None:
    """One that looks at its database too seldom: another one ends the response, and it stays as that ended it."""
    deaf = quick(scripted, url, store={"url": url, "beat": 60, "lease": 600})
    async with opened(deaf) as one, opened(quick(scripted, url)) as other:
        begin = await begun(one, "silent")
        cancelled = await other.responses.cancel(begin.id)
        await asyncio.sleep(1.3)  # it has its answer by now, and is told that it is too late
        later = [await client.responses.retrieve(begin.id) for client in (one, other)]
        events = judged(await events_of(other, begin.id))
    assert (cancelled.status, cancelled.output) == ("cancelled", [])
    assert later == [cancelled] * 2
    assert events[-1]["type"] == "response.failed"


@pytest.mark.parametrize("place", [0, 1])
async def test_what_is_deleted_is_not_made_on(place: int, two: Two, scripted: Scripted) -> None:
    begin = await begun(two[0], "hang")
    await scripted.until_asked(1)
    await two[place].responses.delete(begin.id)
    await scripted.server.until(lambda server: server.open == 0)
    for one in two:
        with pytest.raises(NotFoundError):
            await one.responses.retrieve(begin.id)


async def test_another_key_neither_sees_nor_ends_it(scripted: Scripted, url: str) -> None:
    config = quick(scripted, url, api_keys=[ANNE, BOB])
    async with opened(config, ANNE) as anne, opened(config, BOB) as bob:
        begin = await begun(anne, "slow")
        acts: list[Callable[[], Any]] = [
            lambda: bob.responses.retrieve(begin.id),
            lambda: bob.responses.retrieve(begin.id, stream=True),
            lambda: bob.responses.cancel(begin.id),
            lambda: bob.responses.delete(begin.id),
        ]
        for act in acts:
            with pytest.raises(NotFoundError):
                await act()
        still = await anne.responses.retrieve(begin.id)
    assert still.status == "in_progress"


# --- limits, and what is not possible ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("store", "params", "said"),
    [
        ("memory", {"store": False}, "'store' cannot be false"),
        ("none", {}, "stores nothing"),
        ("none", {"stream": True}, "stores nothing"),
    ],
)
async def test_it_needs_the_store(store: str, params: Json, said: str, scripted: Scripted) -> None:
    async with opened(over(scripted, store={"url": store})) as client:
        with pytest.raises(BadRequestError, match=said) as refused:
            await begun(client, "text", **params)
    assert refused.value.param == "background"
    assert scripted.asked == []


async def test_a_store_that_is_away_is_told_before_the_backend_is_asked(scripted: Scripted, tmp_path: Path) -> None:
    async with opened(over(scripted, store={"url": f"sqlite:///{tmp_path}/none/a.db"})) as client:
        with pytest.raises(InternalServerError) as refused:
            await begun(client, "text")
    assert (refused.value.status_code, refused.value.code) == (503, "store_unavailable")
    assert scripted.asked == []


async def test_there_are_only_so_many(scripted: Scripted) -> None:
    config = over(scripted, limits={"background": 2}, store={"url": "memory"})
    async with opened(config) as client:
        running = [await begun(client, "hang") for _ in range(2)]
        with pytest.raises(InternalServerError, match="2 responses are being made in the background"):
            await begun(client, "text")
        metrics = (await client._client.get(f"{BASE[:-3]}/metrics")).text
        foreground = await client.responses.create(model="text", input="Hi")
        await client.responses.cancel(running[0].id)
        again = await begun(client, "text")
    assert "antiphon_background_running 2" in metrics
    assert (foreground.status, again.status) == ("completed", "in_progress")


@pytest.mark.parametrize("url", ["memory", "sqlite"])
async def test_what_is_being_made_is_not_too_old(url: str, scripted: Scripted, tmp_path: Path) -> None:
    """Many others come after it, and the oldest go: it stays until it has ended."""
    store = {"url": url if url == "memory" else f"sqlite:///{tmp_path / 'a.db'}", "most_responses": 3}
    async with opened({**over(scripted), "store": {**store, **QUICK, "clean_every": 0.2}}) as client:
        begin = await begun(client, "hang")
        others = [(await client.responses.create(model="text", input="Hi")).id for _ in range(6)]
        await asyncio.sleep(0.6)
        still = await client.responses.retrieve(begin.id)
        with pytest.raises(NotFoundError):
            await client.responses.retrieve(others[0])
    assert still.status == "in_progress"


async def test_it_takes_only_so_long(scripted: Scripted) -> None:
    """Over all attempts, and whatever the backend is."""
    async with opened(over(scripted, limits={"total": 0.5}, store={"url": "memory"})) as client:
        response = await polled(client, (await begun(client, "slow")).id)
    assert response.status == "failed"
    assert response.error is not None
    assert "0.5 s" in response.error.message


# --- the end of a process ----------------------------------------------------------------------------------------------


async def test_a_gateway_that_ends_says_so_in_the_store(scripted: Scripted, url: str) -> None:
    async with opened(quick(scripted, url)) as other:
        async with opened(quick(scripted, url)) as one:
            begin = await begun(one, "hang")
            await scripted.until_asked(1)
        response = await other.responses.retrieve(begin.id)
        judged(await events_of(other, begin.id))
    assert (response.status, response.output_text) == ("failed", "Then nothing")
    assert response.error is not None
    assert "shut down" in response.error.message


async def test_a_gateway_that_drains_lets_them_finish(scripted: Scripted, url: str) -> None:
    app = create_app(quick(scripted, url, limits={"drain": 5}))
    async with opened(quick(scripted, url)) as other:
        async with httpx2.AsyncClient(transport=AppTransport(app), base_url="http://antiphon.test") as http:
            answer = await http.post("/v1/responses", json={"model": "silent", "input": "Hi", "background": True})
            app.state.gateway.drain()
        response = await other.responses.retrieve(answer.json()["id"])
    assert said(response) == ("completed", True, "At last.", None)


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_process_that_is_told_to_end_says_so_too(workers: str, scripted: Scripted, tmp_path: Path) -> None:
    """What finishes in the time that is given does, also where nobody is connected; the rest fails with the reason."""
    url = f"sqlite:///{tmp_path / 'a.db'}"
    options = ("--backend", scripted.url, "--store", url, "--workers", workers)
    async with (
        serving(tmp_path, *options, ANTIPHON_LIMITS__DRAIN="6") as served,
        httpx2.AsyncClient(base_url=served.url, headers={"Connection": "close"}, timeout=20) as http,
    ):
        asked = [{"model": model, "input": "Hi", "background": True} for model in ("silent", "hang", "silent", "hang")]
        names = [(await http.post("/v1/responses", json=one)).json()["id"] for one in asked]
        await scripted.until_asked(4)
        served.process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(served.process.wait(), 30)
    async with opened(quick(scripted, url)) as client:
        ended = [await client.responses.retrieve(name) for name in names]
    assert [response.status for response in ended] == ["completed", "failed"] * 2
    assert all("shut" in response.error.message for response in ended if response.error is not None)
    assert "Traceback" not in served.printed


KILLED = """
import asyncio, os, signal, sys
import httpx2
from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport

async def main():
    app = create_app({"backends": {"a": {"url": sys.argv[2]}}, "store": {"url": sys.argv[1], "beat": 0.1, "lease": 1}})
    async with httpx2.AsyncClient(transport=AppTransport(app), base_url="http://x") as client:
        answer = await client.post("/v1/responses", json={"model": "slow", "input": "Hi", "background": True})
        print(answer.json()["id"], flush=True)
        await asyncio.sleep(1.5)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def killed(*arguments: str) -> str:
    """Return the id of the response that a process was making when it was killed."""
    run = subprocess.run([sys.executable, "-c", KILLED, *arguments], capture_output=True, text=True, timeout=60)
    assert run.returncode == -signal.SIGKILL, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize("how", ["polled", "followed", "cancelled"])
async def test_a_killed_process_leaves_nothing_in_progress(how: str, scripted: Scripted, url: str) -> None:
    """What it had said by then, up to the last beat, is kept, and is closed as it should be."""
    response_id = await asyncio.to_thread(killed, url, scripted.url)
    async with opened(quick(scripted, url)) as client:
        if how == "followed":
            judged(await events_of(client, response_id))
        if how == "cancelled":
            await client.responses.cancel(response_id)
        response = await polled(client, response_id)
        events = judged(await events_of(client, response_id))
    assert response.status in ("failed", "cancelled")
    assert (response.error is None) == (response.status == "cancelled")
    assert response.error is None or "ended without finishing it" in response.error.message
    assert response.output_text.startswith("0 1 2")
    assert events[-1]["response"]["output"] == response.to_dict(mode="json")["output"]


async def test_what_was_taken_for_lost_stays_so(scripted: Scripted, tmp_path: Path) -> None:
    """A process that stood still for too long finds its response ended, and stops making it."""
    path = tmp_path / "a.db"
    config = quick(scripted, f"sqlite:///{path}", store={"beat": 0.5})
    async with opened(config) as one, opened(config) as other:
        begin = await begun(one, "slow")
        await scripted.until_asked(1)
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE antiphon_runs SET lease_until = 0")
        lost = await other.responses.retrieve(begin.id)
        await scripted.server.until(lambda server: server.open == 0)
        later = [await client.responses.retrieve(begin.id) for client in (one, other)]
    with sqlite3.connect(path) as connection:
        left = [
            connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in (RUNS.name, RUN_EVENTS.name)
        ]
    assert left == [0, 0]
    assert said(lost) == ("failed", True, lost.output_text, "server_error")
    assert later == [lost] * 2


async def test_a_database_that_was_away_has_the_ending_when_it_is_back(scripted: Scripted, tmp_path: Path) -> None:
    """The response ends while another process holds the database: it is kept as soon as that lets go."""
    path = tmp_path / "a.db"
    config = quick(scripted, f"sqlite:///{path}", store={"timeout": 0.2})
    async with opened(config) as client:
        begin = await begun(client, "silent")
        holder = sqlite3.connect(path)
        holder.execute("BEGIN IMMEDIATE")
        await asyncio.sleep(1.5)
        during = await client.responses.retrieve(begin.id)
        holder.rollback()
        holder.close()
        response = await polled(client, begin.id)
    assert (during.status, response.status) == ("in_progress", "completed")


async def test_tables_of_an_earlier_version_are_brought_to_this_one(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with create_engine(f"sqlite:///{path}").begin() as connection:
        STEPS[0](connection)
        connection.exec_driver_sql("CREATE TABLE antiphon_schema (version INTEGER NOT NULL)")
        connection.exec_driver_sql("INSERT INTO antiphon_schema VALUES (1)")
        connection.exec_driver_sql(
            "INSERT INTO antiphon_conversations VALUES ('conv_old', '', 1, ?, x'28b52ffd200211000000'||'')",
            (int(time.time()) + 1000,),
        )
    async with opened(quick(scripted, f"sqlite:///{path}")) as client:
        response = await polled(client, (await begun(client, "text")).id)
        deleted = await client.conversations.delete("conv_old")
    assert (response.status, deleted.deleted) == ("completed", True)
