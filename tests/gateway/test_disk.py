"""Databases that cannot be written: what needs them gets 503 before a backend is asked, all else goes on, and says so."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .asking import Json, asked, asking, events_in, judged
from .conftest import over
from .scripted_backend import Scripted

# A process that may write no file beyond some size, as on a disk that is full, until the limit is lifted again.
FULL = """
import asyncio, json, logging, os, resource, sys
import httpx2
from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport

SMALL, LARGE = "Hi", os.urandom(40_000).hex()

async def main():
    # Time plays no part: an operation that took too long would end with its connection, and the last connection that
    # is closed empties the write-ahead log, so that there would be room again.
    app = create_app({"store": {"url": sys.argv[1], "timeout": 100}})
    async with httpx2.AsyncClient(transport=AppTransport(app), base_url="http://x", timeout=100) as client:
        async def ask(**params):
            return await client.post("/v1/responses", json={"model": "echo", "input": SMALL, **params})

        def tell(name, answer):
            error = answer.json().get("error") or {}
            print(json.dumps([name, answer.status_code, error.get("code"), answer.json().get("store")]), flush=True)

        first = await ask()
        tell("first", first)
        name = first.json()["id"]
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, most))
        for size in (LARGE, SMALL):
            for number in range(200):
                answer = await ask(input=size)
                if not answer.json()["store"]:
                    break
            tell("filled", answer)
        streamed = await ask(input=LARGE, stream=True)
        last = json.loads(streamed.content.rpartition(b"data: ")[2])
        print(json.dumps(["streamed", 200, last["type"], last["response"]["store"]]), flush=True)
        for number in range(20):  # each looks whether it can be written again, and the last pages go to that
            answer = await ask(store=True)
            if answer.status_code != 200:
                break
            assert answer.json()["store"] is False
        tell("to be stored", answer)
        tell("background", await ask(background=True))
        tell("conversation", await client.post("/v1/conversations", json={}))
        tell("delete", await client.delete(f"/v1/responses/{name}"))
        tell("read", await client.get(f"/v1/responses/{name}"))
        tell("gone on from", await ask(previous_response_id=name))
        print(json.dumps(["ready", *(await client.get("/readyz")).json().values(), None]), flush=True)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        tell("later", await ask(store=True))
        print(json.dumps(["ready", *(await client.get("/readyz")).json().values(), None]), flush=True)

asyncio.run(main())
"""
# what is asked for -> status, code, whether it is stored
TOLD: list[Any] = [
    ["first", 200, None, True],
    ["filled", 200, None, False],
    ["filled", 200, None, False],
    ["streamed", 200, "response.completed", False],
    ["to be stored", 503, "store_unavailable", None],
    ["background", 503, "store_unavailable", None],
    ["conversation", 503, "store_unavailable", None],
    ["delete", 503, "store_unavailable", None],
    ["read", 200, None, True],
    ["gone on from", 200, None, False],
    ["ready", "degraded", "unavailable", None],
    ["later", 200, None, True],
    ["ready", "ready", "ok", None],
]


def filled(path: Path) -> tuple[list[Json], str]:
    """Return what a process was told that ran into its limit, and what it logged."""
    run = subprocess.run(
        [sys.executable, "-c", FULL, f"sqlite:///{path}"], capture_output=True, text=True, timeout=300, check=True
    )
    return [json.loads(line) for line in run.stdout.splitlines()], run.stderr


async def test_a_full_disk(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="this system has no limits of processes")
    told, logged = await asyncio.to_thread(filled, tmp_path / "a.db")
    with sqlite3.connect(tmp_path / "a.db") as connection:
        [[whole]] = connection.execute("PRAGMA integrity_check")
        [[half]] = connection.execute(
            "SELECT count(*) FROM antiphon_responses WHERE id NOT IN (SELECT response_id FROM antiphon_items)"
        )
    assert "Timeout" not in logged  # else the machine was too slow to tell anything
    assert told == TOLD
    assert (whole, half) == ("ok", 0)
    assert "Traceback" not in logged
    assert "the store cannot be used" in logged


async def test_a_database_that_may_only_be_read(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with asking(over(scripted, store={"url": f"sqlite:///{path}"})) as client:
        name = (await asked(client, "text")).json()["id"]
    keeper = sqlite3.connect(path)  # SQLite reads beside others alone what it may not write
    keeper.execute("SELECT version FROM antiphon_schema").fetchone()
    url = f"sqlite+aiosqlite:///file:{path}?mode=ro&uri=true"
    async with asking(over(scripted, store={"url": url})) as client:
        read = await client.get(f"/v1/responses/{name}")
        implied = [await asked(client, "text", stream=stream) for stream in (True, False)]
        before = len(scripted.asked)
        needing = [
            await asked(client, "text", store=True),
            await asked(client, "text", background=True),
            await client.post("/v1/conversations", json={}),
        ]
        ready = (await client.get("/readyz")).json()
    keeper.close()
    assert (read.status_code, read.json()["id"]) == (200, name)
    assert judged(events_in(implied[0].content))[-1]["response"]["store"] is False
    assert implied[1].json()["store"] is False
    assert [(one.status_code, one.json()["error"]["code"]) for one in needing] == [(503, "store_unavailable")] * 3
    assert (len(scripted.asked), ready["status"]) == (before, "degraded")
