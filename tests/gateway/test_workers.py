"""Several processes behind one port: what they count is told together, and what one makes another one cancels."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.gateway.beside import Beside
from antiphon.gateway.folders import held, shared_folder
from antiphon.gateway.gallery import Gallery, Picture
from antiphon.gateway.metrics import Metrics

from .asking import Json
from .scripted_backend import Scripted
from .test_adversary import until_two_serve, workers
from .test_serve import Served, serving

WORD = st.sampled_from(["a", 'b"', "c\\\n"])


async def fresh(served: Served) -> AsyncIterator[httpx2.AsyncClient]:
    """Give clients without end, each with a connection of its own: whichever process takes it answers."""
    while True:
        async with httpx2.AsyncClient(base_url=served.url, headers={"Connection": "close"}, timeout=20) as client:
            yield client


async def counted(served: Served) -> dict[str, float]:
    """Return what the metrics say."""
    async with httpx2.AsyncClient(base_url=served.url, headers={"Connection": "close"}) as client:
        lines = (await client.get("/metrics")).text.splitlines()
    values = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in values}


DONE = 'antiphon_responses_total{backend="scripted",outcome="completed"}'
RUNNING, PROCESSES = "antiphon_background_running", "antiphon_processes"


async def until(served: Served, **wanted: float) -> dict[str, float]:
    """Return what the metrics say once it is this, whichever process answers: each writes its numbers every second."""
    names = {"done": DONE, "running": RUNNING, "processes": PROCESSES}
    in_a_row = 0
    async with asyncio.timeout(30):
        while True:
            found = await counted(served)
            fits = all(found.get(names[name], 0) == value for name, value in wanted.items())
            in_a_row = in_a_row + 1 if fits else 0
            if in_a_row == 12:
                return found
            await asyncio.sleep(0 if fits else 0.1)


async def test_processes_count_together_and_cancel_for_each_other(scripted: Scripted, tmp_path: Path) -> None:
    options = ("--backend", f"scripted={scripted.url}", "--workers", "2")
    async with serving(tmp_path, *options) as served:
        await until(served, processes=2)
        begun: list[Json] = []
        async for client in fresh(served):
            if len(begun) < 6:
                answer = await client.post("/v1/responses", json={"model": "hang", "input": "Hi", "background": True})
                begun.append(answer.json())
                assert (await client.post("/v1/responses", json={"model": "text", "input": "Hi"})).status_code == 200
                continue
            break
        before = await until(served, running=6, done=6)
        statuses: list[str] = []
        async for client in fresh(served):
            if len(statuses) == len(begun):
                break
            answer = await client.post(f"/v1/responses/{begun[len(statuses)]['id']}/cancel")
            statuses.append(answer.json()["status"])
        after = await until(served, running=0)
    assert statuses == ["cancelled"] * 6
    assert before['antiphon_response_seconds_count{backend="scripted"}'] == 6
    assert after['antiphon_responses_total{backend="scripted",outcome="failed"}'] == 6
    await scripted.server.until(lambda server: server.open == 0)


async def shown(served: Served, enough: int) -> str:
    """Return the page once it shows so many streams, whichever process answers: each draws when somebody looks."""
    in_a_row = 0
    async with asyncio.timeout(30):
        while True:
            async with httpx2.AsyncClient(base_url=served.url, headers={"Connection": "close"}) as client:
                page = (await client.get("/")).text
            in_a_row = in_a_row + 1 if page.count("<section>") == enough else 0
            if in_a_row == 8:
                return page
            await asyncio.sleep(0.1)


async def test_the_page_shows_what_all_processes_stream(scripted: Scripted, tmp_path: Path) -> None:
    """Of those that run, as they are now, and no more of them than one page has; what a process streamed goes with it."""
    options = ("--backend", f"scripted={scripted.url}", "--workers", "2")
    async with serving(tmp_path, *options, ANTIPHON_PAGE__STREAMS="4") as served:
        await until(served, processes=2)
        nothing = await shown(served, 0)
        async with AsyncExitStack() as stack:
            # Connections that stay open are spread over the processes.
            clients = [
                await stack.enter_async_context(httpx2.AsyncClient(base_url=served.url, timeout=20)) for _ in range(8)
            ]
            asked = {"model": "text", "input": "Hi", "stream": True}
            for client in clients[:2]:
                assert (await client.post("/v1/responses", json=asked)).status_code == 200
            two = await shown(served, 2)
            for client in clients:
                assert (await client.post("/v1/responses", json=asked)).status_code == 200
            four = await shown(served, 4)
        for pid in workers(served.process.pid):
            os.kill(pid, signal.SIGKILL)
        await until(served, processes=2)
        after = await shown(served, 0)
    assert "None yet" in nothing
    assert "None yet" in after
    assert "Hello there!" not in two + four
    assert (two.count("<svg"), four.count("<svg")) == (2, 4)


def picture(owner: str, began: float) -> Picture:
    return Picture(owner, "b", began, f"<svg>{began}</svg>")


def spoil(folder: Path) -> None:
    """Put pictures beside the others that were cut, that are none, and that are of a process that is long gone."""
    (folder / "half.page").write_bytes(b'[{"owner":')
    (folder / "none.page").write_bytes(b'{"owner":"anne"}')
    (folder / "gone.page").write_bytes(msgspec.json.encode([picture("anne", 3)]))
    os.utime(folder / "gone.page", (1, 1))


async def test_pictures_are_drawn_while_somebody_looks(tmp_path: Path) -> None:
    """Nothing is in the folder before, what was cut or is late is not shown, and a process takes its own with it."""

    async def none() -> list[Picture]:
        return []

    async def two() -> list[Picture]:
        return [picture("anne", 1), picture("bob", 2)]

    looking, drawing = Gallery(tmp_path, none), Gallery(tmp_path, two)
    found: list[Picture] = []
    async with drawing.drawing(), asyncio.timeout(20):
        await asyncio.sleep(1.5)
        before = os.listdir(tmp_path)
        await asyncio.to_thread(spoil, tmp_path)
        for _ in range(100):
            found = found or await looking.others()
            await asyncio.sleep(0 if found else 0.1)
        own = await drawing.others()
    after = await looking.others()
    assert (before, found, own, after) == ([], await two(), [], [])


def grow_old(folder: Path) -> None:
    """Make the files those of processes that are long gone, and put one beside them that was cut."""
    for path in folder.glob("*.json"):
        os.utime(path, (1, 1))
    (folder / "half.json").write_bytes(b'{"metrics":')


async def test_what_a_killed_process_counted_stays(tmp_path: Path) -> None:
    """In the sums, but not in what there is now."""
    metrics = [Metrics(), Metrics()]
    gauges = [{"antiphon_responses_running": 1}, {"antiphon_responses_running": 2}]
    both = [Beside(tmp_path, one, lambda now=now: now) for one, now in zip(metrics, gauges, strict=True)]
    for one in metrics:
        one.events.add(3, backend="a")
    async with AsyncExitStack() as stack:
        for one in both:
            await stack.enter_async_context(one.writing())
        live, now = await both[0].joined()
        while now["antiphon_responses_running"] < 3:  # until the other one has written
            live, now = await both[0].joined()
        await asyncio.to_thread(grow_old, tmp_path)
        late, then = await both[0].joined()
    assert [one.events.values for one in (live, late)] == [{(("backend", "a"),): 6.0}] * 2
    assert (now["antiphon_responses_running"], then["antiphon_responses_running"]) == (3, 1)


@given(st.lists(st.tuples(st.integers(0, 2), WORD, st.floats(0, 1000)), max_size=20))
def test_parts_joined_are_the_whole(seen: list[tuple[int, str, float]]) -> None:
    whole, parts, joined = Metrics(), [Metrics() for _ in range(3)], Metrics()
    for at, name, seconds in seen:
        for one in (whole, parts[at]):
            one.retries.add(2, backend=name)
            one.requests.add(route=name, status="200")
            one.duration.observe(seconds, backend=name)
    for one in parts:
        joined.join(one.held())
    sums = re.compile(r"(_sum\{.*\}) .*")  # floats, which differ by the order in which they are added
    assert sums.sub(r"\1", joined.text({})) == sums.sub(r"\1", whole.text({}))


async def test_a_worker_that_is_killed_keeps_what_it_counted(scripted: Scripted, tmp_path: Path) -> None:
    async with serving(tmp_path, "--backend", f"scripted={scripted.url}", "--workers", "2") as served:
        await until(served, processes=2)
        async for client in fresh(served):
            if (await client.post("/v1/responses", json={"model": "text", "input": "Hi"})).status_code == 200:
                break
        await until(served, done=1)
        await asyncio.sleep(2.5)  # the one that counted it may have answered all the time, before it wrote it
        killed = workers(served.process.pid)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        await until_two_serve(served.process.pid, *killed)
        found = await _again(served)
    assert found[DONE] == 1


async def _again(served: Served) -> dict[str, float]:
    async with asyncio.timeout(60):
        while True:
            try:
                return await counted(served)
            except httpx2.TransportError:
                await asyncio.sleep(0.1)


def shared(among: Path) -> set[Path]:
    """Return the folders that processes share, after another one was made and removed."""
    with shared_folder() as fresh:
        return {*among.glob("antiphon-*")} - {fresh}


async def test_what_killed_processes_left_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them at once, so that nobody was there to remove it; not what others still hold, nor what is none of them."""
    (foreign := tmp_path / "antiphon-of-somebody").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with shared_folder() as beside:
        async with serving(tmp_path / "state", "--workers", "2", TMPDIR=str(tmp_path)) as served:
            await until(served, processes=2)
            serves = shared(tmp_path)
            (its,) = serves - {foreign, beside}
            for pid in (served.process.pid, *workers(served.process.pid)):
                os.kill(pid, signal.SIGKILL)
            await served.process.wait()
        left = its.exists()
        with held(its):
            is_held = shared(tmp_path)
        after = shared(tmp_path)
    assert (left, is_held) == (True, serves)
    assert (after, shared(tmp_path)) == ({foreign, beside}, {foreign})
