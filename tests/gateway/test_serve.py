"""`antiphon serve` as a process: what it prints, what it refuses, how it ends, and several workers on one store."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.providers.backends.loopback import free_port

from .asking import asked, events_in, judged, shape
from .scripted_backend import Scripted

KEY = "sk-served-1234567"


@dataclass
class Served:
    """A running `antiphon serve`."""

    process: asyncio.subprocess.Process
    url: str
    printed: str = ""


@asynccontextmanager
async def serving(folder: Path, *options: str, **environment: str) -> AsyncIterator[Served]:
    """Run the command while the block lasts, with its state in `folder`."""
    port = free_port()
    command = [sys.executable, "-m", "antiphon", "serve", "--port", str(port), *options]
    if not (Path(sys.modules["antiphon"].__path__[0]) / "__main__.py").exists():
        command[1:3] = ["-c", "from antiphon.cli import main; main()"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")}
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**env, "XDG_STATE_HOME": str(folder), **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    served = Served(process, f"http://127.0.0.1:{port}")
    try:
        await _until_ready(served)
        yield served
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        served.printed, _ = [(one or b"").decode() for one in await process.communicate()]


async def _until_ready(served: Served) -> None:
    async with httpx2.AsyncClient(base_url=served.url) as client, asyncio.timeout(60):
        while served.process.returncode is None:
            try:
                if (await client.get("/readyz")).status_code == 200:
                    return
            except httpx2.TransportError:
                await asyncio.sleep(0.1)
    assert served.process.returncode is None, (await served.process.communicate())[0]


async def command(*options: str, **environment: str) -> asyncio.subprocess.Process:
    """Return `antiphon serve`, as it begins to run."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from antiphon.cli import main; main()", "serve", *options),
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_alone_it_serves_the_replay_backend_and_prints_a_request(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, httpx2.AsyncClient(base_url=served.url) as client:
        answer = await asked(client, "replay/reasoning", stream=True)
        response_id = judged(events_in(answer.content))[-1]["response"]["id"]
    async with serving(tmp_path) as again, httpx2.AsyncClient(base_url=again.url) as client:
        kept = await client.get(f"/v1/responses/{response_id}")
    lines = [line for line in served.printed.splitlines() if line]
    assert len(lines) == 3
    assert lines[1].startswith(f"  curl -N {served.url}/v1/responses")
    assert (tmp_path / "antiphon" / "gateway.db").exists()
    assert kept.status_code == 200


async def test_a_backend_by_its_url_with_keys(scripted: Scripted, tmp_path: Path) -> None:
    options = ("--backend", scripted.url, "--model", "gpt-5=text", "--store", "none", "--profile", "vllm")
    async with (
        serving(tmp_path, *options, ANTIPHON_API_KEY=KEY) as served,
        httpx2.AsyncClient(base_url=served.url) as client,
    ):
        without = await asked(client, "gpt-5")
        client.headers["Authorization"] = f"Bearer {KEY}"
        answer = await asked(client, "gpt-5")
    assert without.status_code == 401
    assert shape(answer.json())["output"] == [["message", "Hello there!"]]
    assert (answer.json()["model"], scripted.asked[0]["model"]) == ("gpt-5", "text")
    assert KEY not in served.printed
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--host", "0.0.0.0"), "--api-key"),
        (("--backend", "telepathy"), "no backend is called 'telepathy'"),
        (("--backend", "http://127.0.0.1:1", "--backend", "http://127.0.0.1:2"), "NAME="),
        (("--profile", "vllm"), "--backend"),
        (("--model", "x"), "NAME=MODEL"),
        (("--config", "/no/such.toml"), "/no/such.toml"),
        (("--store", "nonsense"), "store.url"),
        (("--api-key", "short"), "API key"),
    ],
)
async def test_bad_use_is_one_message(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    process = await command("--port", "0", *options, XDG_STATE_HOME=str(tmp_path))
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert (process.returncode, said in errors.decode(), "Traceback" in errors.decode()) == (2, True, False), errors


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
async def test_told_to_end_streams_finish_or_fail(
    signum: signal.Signals, workers: str, scripted: Scripted, tmp_path: Path
) -> None:
    """One stream ends within the time that is given; another one never would, and fails with a reason."""
    options = ("--backend", scripted.url, "--workers", workers)
    async with (
        serving(tmp_path, *options, ANTIPHON_LIMITS__DRAIN="2.5") as served,
        httpx2.AsyncClient(base_url=served.url, timeout=30) as client,
    ):
        hanging, finishing = (asyncio.create_task(asked(client, model, stream=True)) for model in ("hang", "silent"))
        await scripted.until_asked(2)
        await asyncio.sleep(1.2)  # until both have begun: what has not is refused
        served.process.send_signal(signum)
        failed, finished = [
            judged(events_in(one.content))[-1]["response"] for one in await asyncio.gather(hanging, finishing)
        ]
        await asyncio.wait_for(served.process.wait(), 20)
    assert (failed["status"], finished["status"]) == ("failed", "completed")
    assert "shutting down" in failed["error"]["message"]
    assert "Traceback" not in served.printed


async def test_workers_share_the_store(scripted: Scripted, tmp_path: Path) -> None:
    config = tmp_path / "a.toml"
    config.write_text(f'[backends.scripted]\nurl = "{scripted.url}"\n')
    async with serving(tmp_path, "--config", str(config), "--workers", "2", "--api-key", KEY) as served:
        previous: dict[str, Any] = {}
        for number in range(12):
            headers = {"Authorization": f"Bearer {KEY}", "Connection": "close"}
            async with httpx2.AsyncClient(base_url=served.url, headers=headers, timeout=20) as client:
                answer = await asked(client, "history", input=f"number {number}", **previous)
                assert answer.status_code == 200, answer.text
                previous = {"previous_response_id": answer.json()["id"]}
    roles = ["user", "assistant"] * 11 + ["user"]
    assert shape(answer.json())["output"] == [["message", f"{','.join(roles)} | number 11"]]
    assert "2 processes" in served.printed
