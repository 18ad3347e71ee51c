"""Two gateways behind nginx, configured as the example in docs/deploy says, on one database."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from antiphon.gateway import create_app
from tests.providers.backends.loopback import free_port

from .asking import Json, asked, events_in, judged, shape
from .conftest import listening, over
from .scripted_backend import Scripted

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
EXAMPLE = Path(__file__).parents[2] / "docs" / "deploy" / "nginx.conf"

pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples of docs/deploy are not beside the tests"),
]


def configuration(folder: Path, port: int, *gateways: str) -> str:
    """Return the example with other addresses, and without TLS, as a whole configuration that writes into `folder`."""
    example = EXAMPLE.read_text()
    servers = re.findall(r"10\.0\.0\.\d+:8080", example)
    assert len(servers) == len(gateways)
    for server, gateway in zip(servers, gateways, strict=True):
        example = example.replace(server, gateway.removeprefix("http://"))
    example = re.sub(r" *ssl_certificate.*\n", "", example).replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    head = f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
    return f"{head}http {{\naccess_log off;\n{paths}\n{example}\n}}\n"


@asynccontextmanager
async def nginx(folder: Path, *gateways: str) -> AsyncIterator[str]:
    """Run nginx while the block lasts; gives its URL."""
    port = free_port()
    (folder / "nginx.conf").write_text(configuration(folder, port, *gateways))
    process = await asyncio.create_subprocess_exec(str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"))
    try:
        await until_it_listens(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def until_it_listens(process: asyncio.subprocess.Process, port: int) -> None:
    async with asyncio.timeout(20):
        while process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            writer.close()
            return
    pytest.fail(f"nginx ended with {process.returncode}")


@asynccontextmanager
async def balanced(folder: Path, one: Any, other: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of nginx in front of two gateways."""
    async with (
        listening(one) as first,
        listening(other) as second,
        nginx(folder, first, second) as url,
        httpx2.AsyncClient(base_url=url, timeout=20) as client,
    ):
        yield client


def two_apps(scripted: Scripted, url: str, **settings: Any) -> tuple[Any, Any]:
    config = over(scripted, **settings, store={"url": url, "beat": 0.1, "lease": 5})
    return create_app(config), create_app(config)


async def test_all_of_it_goes_through(scripted: Scripted, url: str, tmp_path: Path) -> None:
    """Turns of one conversation, background responses and their cancelling, at whichever gateway."""
    one, other = two_apps(scripted, url)
    async with balanced(tmp_path, one, other) as client:
        previous: Json = {}
        for number in range(6):
            answer = await asked(client, "history", input=f"number {number}", **previous)
            previous = {"previous_response_id": answer.json()["id"]}
        openai = AsyncOpenAI(api_key="x", base_url=f"{client.base_url}/v1", http_client=client, max_retries=0)
        begun = [await openai.responses.create(model="slow", input="Hi", background=True) for _ in range(4)]
        ended = [await openai.responses.cancel(one.id) for one in begun]
        streams = await asyncio.gather(*(asked(client, "text", stream=True) for _ in range(20)))
        large = await asked(client, "text", input="x" * 3_000_000)
        hidden = await client.get("/metrics")
        counts = [app.state.gateway.metrics.responses.values for app in (one, other)]
    assert shape(answer.json())["output"][0][1].endswith("| number 5")
    assert [one.status for one in ended] == ["cancelled"] * 4
    assert all(judged(events_in(one.content))[-1]["type"] == "response.completed" for one in streams)
    assert (large.status_code, hidden.status_code) == (200, 403)
    assert all(counts)


async def test_events_come_as_they_are_made(scripted: Scripted, url: str, tmp_path: Path) -> None:
    """The first is there while the backend still speaks, and a client that leaves stops it."""
    async with balanced(tmp_path, *two_apps(scripted, url)) as client:
        async with client.stream("POST", "/v1/responses", json={"model": "slow", "input": "x", "stream": True}) as got:
            first = await anext(got.aiter_raw())
            assert scripted.server.open == 1
        await scripted.server.until(lambda server: server.open == 0)
    assert first.startswith(b"event: response.created")


async def test_a_gateway_that_ends_is_left_out(scripted: Scripted, url: str, tmp_path: Path) -> None:
    """One of them is about to end: no client sees it, and each request reaches the backend once."""
    one, other = two_apps(scripted, url)
    async with balanced(tmp_path, one, other) as client:
        one.state.gateway.drain()
        answers = [await asked(client, "text", input=f"number {at}") for at in range(8)]
    assert [answer.status_code for answer in answers] == [200] * 8
    assert len(scripted.asked) == 8


async def test_a_slow_answer_is_waited_for(scripted: Scripted, url: str, tmp_path: Path) -> None:
    async with balanced(tmp_path, *two_apps(scripted, url)) as client:
        answer = await asked(client, "silent")
    assert shape(answer.json())["output"] == [["message", "At last."]]
    assert len(scripted.asked) == 1
