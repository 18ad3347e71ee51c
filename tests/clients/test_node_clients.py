"""Real Node clients of the Responses API, unmodified, over the gateway and a strict scripted chat backend."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import asdict
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `gateway` is not installed")

from antiphon.gateway import create_app
from tests.gateway.conftest import listening, over
from tests.gateway.scripted_backend import serve_scripted

from .codex import HERE, INSTALLED, needs_node
from .jobs import PIXEL, TOOLS, Outcome
from .scenarios import WANTED, wanted

pytestmark = [
    needs_node,
    pytest.mark.skipif(
        not (INSTALLED / "node_modules").is_dir(),
        reason="the Node clients are not installed: npm install in a copy of tests/clients/node, ANTIPHON_NODE_CLIENTS names it",
    ),
]

# what the tests call a client -> its name and way in drive.mjs
CLIENTS: dict[str, tuple[str, str]] = {
    "openai-node create": ("openai", "create"),
    "openai-node stream": ("openai", "stream"),
    "openai-node .stream()": ("openai", "helper"),
    "openai-node parse": ("openai", "parse"),
    "openai-node background": ("openai", "background"),
    "openai-node resumed": ("openai", "resumed"),
    "aisdk whole": ("aisdk", "whole"),
    "aisdk streamed": ("aisdk", "stream"),
}


def job_of(name: str, url: str, client: str, mode: str) -> dict[str, Any]:
    """Return the job of a scenario as drive.mjs takes it."""
    job = asdict(WANTED[name][0])
    job |= {"tool": TOOLS.get(job["tool"] or ""), "image": PIXEL if job["image"] else None}
    return {"id": name, "client": client, "mode": mode, "url": f"{url}/v1", "key": "k", **job}


def outcome_of(said: dict[str, Any], *, is_schema: bool) -> Outcome:
    """Return the outcome that drive.mjs wrote. What went wrong is its HTTP status, or 0."""
    if said["error"] is not None:
        return Outcome(status=None, error=said["error"]["status"] or 0)
    found = said["object"] or (json.loads(said["text"]) if is_schema and said["status"] == "completed" else None)
    return Outcome(
        text="" if is_schema else said["text"],
        refusal=said["refusal"],
        reasoning=said["reasoning"],
        calls=tuple((name, json.loads(arguments)) for name, arguments in said["calls"]),
        status=said["status"],
        reason=said["reason"],
        usage=tuple(said["usage"]) if said["usage"] else None,
        object=found,
    )


async def driven(jobs: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what drive.mjs says of each job, by its id."""
    script = INSTALLED / "drive.mjs"
    if INSTALLED != HERE:
        shutil.copy(HERE / "drive.mjs", script)
    process = await asyncio.create_subprocess_exec(
        "node",
        str(script),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        given = "".join(json.dumps(job) + "\n" for job in jobs).encode()
        out, err = await asyncio.wait_for(process.communicate(given), 120)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return {one["job"]: one for one in map(json.loads, out.decode().splitlines())}


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_client_shows_what_the_model_said(client: str) -> None:
    async with serve_scripted() as scripted, listening(create_app(over(scripted))) as url:
        told = await driven([job_of(name, url, *CLIENTS[client]) for name in WANTED])
        assert scripted.refused == []
    shown = {name: outcome_of(told[name], is_schema=WANTED[name][0].schema) for name in WANTED}
    assert shown == {name: wanted(client, name) for name in WANTED}
