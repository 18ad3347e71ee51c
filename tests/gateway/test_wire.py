"""What clients do to connections of `antiphon serve`, and how what is open ends with it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon.gateway.tables import RESPONSES
from tests.providers.backends import loopback
from tests.providers.backends.loopback import Act, Request, Script

from .asking import asked, events_in, judged
from .scripted_backend import Scripted
from .test_serve import Served, command, serving


@pytest.fixture(params=["httptools", "h11"])
def reader_of_http(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the command reads HTTP so."""
    if request.param == "httptools":
        pytest.importorskip("httptools")
        return {}
    (folder := tmp_path / "without").mkdir()
    (folder / "sitecustomize.py").write_text("import sys\nsys.modules['httptools'] = None\n")
    return {"PYTHONPATH": str(folder)}


@asynccontextmanager
async def connected(served: Served) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Give a connection whose client takes little at once."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one.connect(("127.0.0.1", int(served.url.rpartition(":")[2])))
    reader, writer = await asyncio.open_connection(sock=one, limit=4096)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def post(model: str, **params: Any) -> bytes:
    """Return a request for a stream, as it is on the wire."""
    body = json.dumps({"model": model, "input": "Hi", "stream": True, **params}).encode()
    head = "POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def running(client: httpx2.AsyncClient) -> int:
    """Return how many responses are being made."""
    lines = (await client.get("/metrics")).text.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("antiphon_responses_running "))


async def left(client: httpx2.AsyncClient) -> int:
    """Return how many responses are still being made, after five seconds or once there is none."""
    for _ in range(100):
        if await running(client) == 0:
            return 0
        await asyncio.sleep(0.05)
    return await running(client)


# what never becomes a request: what is sent first, and again and again
ENDLESS = {
    "target": (b"GET /", b"a" * 1000),
    "header": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", b"a" * 1000),
    "headers": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X: y\r\n" * 200),
    "trailers": (
        b"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"X: y\r\n" * 200,
    ),
    "requests": (b"", post("hang") * 3),
}


async def refused(served: Served, first: bytes, more: bytes) -> bool:
    """Return whether the connection is ended before much of it was taken."""
    async with connected(served) as (reader, writer):
        try:
            writer.write(first)
            for _ in range(2000):
                writer.write(more)
                await asyncio.wait_for(writer.drain(), 10)
            await asyncio.wait_for(reader.read(), 5)
        except ConnectionError:
            return True
        except TimeoutError:
            return False
    return True


async def test_what_never_becomes_a_request_is_not_kept(
    reader_of_http: dict[str, str], scripted: Scripted, tmp_path: Path
) -> None:
    """Nobody needs a key for that, and it would fill the memory."""
    async with serving(tmp_path, "--backend", scripted.url, **reader_of_http) as served:
        ended = {name: await refused(served, *given) for name, given in ENDLESS.items()}
        async with httpx2.AsyncClient(base_url=served.url, timeout=20) as client:
            assert (await client.get("/healthz")).status_code == 200
    assert ended == dict.fromkeys(ENDLESS, True)
    assert "Traceback" not in served.printed


@pytest.mark.parametrize("waiting", [0, 1, 3])
async def test_a_client_is_seen_to_leave_whatever_it_asked_for_next(
    waiting: int, reader_of_http: dict[str, str], scripted: Scripted, tmp_path: Path
) -> None:
    """Requests that wait for their turn on the same connection do not hide it, and are not begun."""
    async with (
        serving(tmp_path, "--backend", scripted.url, **reader_of_http) as served,
        httpx2.AsyncClient(base_url=served.url, timeout=20) as client,
    ):
        async with connected(served) as (reader, writer):
            writer.write(post("hang"))
            await reader.readuntil(b"response.created")
            for _ in range(waiting):
                writer.write(post("hang"))
            await asyncio.sleep(0.3)
        assert (await left(client), len(scripted.asked)) == (0, 1)
    assert "Traceback" not in served.printed


def endless(request: Request) -> Script:
    """Answer with much, or with a beginning, and then with nothing."""
    said = {"choices": [{"index": 0, "delta": {"content": "y" * 5000}, "finish_reason": None}]}
    event = b"data: " + json.dumps(said).encode() + b"\n\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    return [head, *[event * 20] * (200 if request.body["model"] == "much" else 1), Act.HANG]


async def test_what_nobody_reads_is_cut_in_silence(tmp_path: Path) -> None:
    """A client that takes nothing of a stream, and one that follows what another process makes, which goes on there."""
    store = f"sqlite:///{tmp_path / 'a.db'}"
    async with (
        loopback.serve(endless) as backend,
        serving(tmp_path, *(options := ("--backend", backend.url, "--store", store))) as other,
        serving(tmp_path, *options, ANTIPHON_LIMITS__DRAIN="0.5") as served,
        httpx2.AsyncClient(base_url=other.url, timeout=20) as client,
        httpx2.AsyncClient(base_url=served.url, timeout=20) as follower,
        connected(served) as (_, writer),
    ):
        begun = (await asked(client, "little", background=True)).json()
        writer.write(post("much"))
        following = asyncio.create_task(follower.get(f"/v1/responses/{begun['id']}?stream=true"))
        await asyncio.sleep(1.5)
        served.process.send_signal(signal.SIGTERM)
        with pytest.raises(httpx2.RemoteProtocolError):
            await following
        await asyncio.wait_for(served.process.wait(), 20)
        still = (await client.get(f"/v1/responses/{begun['id']}")).json()
        await client.post(f"/v1/responses/{begun['id']}/cancel")
    assert still["status"] == "in_progress"
    assert "Traceback" not in served.printed


async def test_interrupted_twice_all_ends_at_once(scripted: Scripted, tmp_path: Path) -> None:
    """Long before its time is over: streams as failed, and what is made in the background in the store, too."""
    async with (
        serving(tmp_path, "--backend", scripted.url, ANTIPHON_LIMITS__DRAIN="60") as served,
        httpx2.AsyncClient(base_url=served.url, timeout=20) as client,
    ):
        begun = (await asked(client, "hang", background=True)).json()
        streaming = asyncio.create_task(asked(client, "hang", stream=True))
        await scripted.until_asked(2)
        await asyncio.sleep(0.5)
        served.process.send_signal(signal.SIGINT)
        await asyncio.sleep(0.5)
        served.process.send_signal(signal.SIGINT)
        final = judged(events_in((await streaming).content))[-1]["response"]
        await asyncio.wait_for(served.process.wait(), 15)
    with sqlite3.connect(tmp_path / "antiphon" / "gateway.db") as connection:
        kept = connection.execute(f"SELECT status FROM {RESPONSES.name} WHERE id = ?", (begun["id"],)).fetchall()
    assert (final["status"], kept) == ("failed", [("failed",)])
    assert "shutting down" in final["error"]["message"]
    assert "Traceback" not in served.printed


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("where", ["taken", "unknown", "foreign", "folder", "file", "long"])
async def test_where_nothing_can_listen_is_one_message(where: str, workers: str, tmp_path: Path) -> None:
    """And not taken for a configuration that is no good: an address may be free again, or be there later."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        file = tmp_path / "file"
        file.write_text("mine")
        options = {
            "taken": ("--port", str(taken.getsockname()[1])),
            "unknown": ("--host", "no-such-name.invalid", "--insecure"),
            "foreign": ("--host", "192.0.2.1", "--insecure", "--port", "0"),
            "folder": ("--host", f"unix:{tmp_path / 'no' / 'socket'}"),
            "file": ("--host", f"unix:{file}"),
            "long": ("--host", f"unix:{tmp_path / ('s' * 200)}"),
        }[where]
        process = await command("--store", "none", "--workers", workers, *options)
        async with asyncio.timeout(60):
            printed, errors = await process.communicate()
    assert (process.returncode, printed) == (1, b"")
    assert errors.decode().startswith(f"antiphon: {options[0]} {options[1]}") or where == "taken"
    assert "nothing can listen there" in errors.decode()
    assert len(errors.splitlines()) == 1
    assert file.read_text() == "mine"


CHUNKED = (
    b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
# what is no HTTP, at the beginning, within a body, after a request, and while one is answered
BROKEN = {
    "no request": b"\x00\x01\r\n\r\n" * 50,
    "no length of a chunk": CHUNKED + b"ZZ\r\n" * 50,
    "more than its length": CHUNKED + b"5\r\nabcdeXX",
    "after a request": post("text") + b"NONSENSE \x00\r\n\r\n" * 50,
    "while it is answered": post("hang") + b"NONSENSE \x00\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_what_is_no_http_ends_the_connection_in_silence(
    name: str, reader_of_http: dict[str, str], scripted: Scripted, tmp_path: Path
) -> None:
    async with (
        serving(tmp_path, "--backend", scripted.url, **reader_of_http) as served,
        httpx2.AsyncClient(base_url=served.url, timeout=20) as client,
    ):
        async with connected(served) as (reader, writer):
            writer.write(BROKEN[name])
            if name == "while it is answered":  # what comes then may wait for its turn
                await asyncio.sleep(0.3)
            else:
                with suppress(ConnectionError):
                    await asyncio.wait_for(reader.read(), 10)
        assert await left(client) == 0
    assert "Traceback" not in served.printed
