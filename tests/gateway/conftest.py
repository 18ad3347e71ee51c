"""A gateway over the scripted backend, for each test: the app inside the process, or a server on loopback."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `gateway` is not installed")
pytest.importorskip("sqlalchemy", reason="the extra `gateway` is not installed")

import uvicorn

from .scripted_backend import Scripted, serve_scripted

for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
    os.environ.pop(name, None)


@pytest.fixture
async def scripted() -> AsyncIterator[Scripted]:
    """The scripted backend; at the end, no request was refused by it that the test did not look at."""
    async with serve_scripted() as backend:
        yield backend
        assert backend.refused == []


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting comes from the machine that runs the tests."""
    for name in [name for name in os.environ if name.startswith("ANTIPHON_")]:
        monkeypatch.delenv(name)


@asynccontextmanager
async def listening(app: Any) -> AsyncIterator[str]:
    """Serve an ASGI app on loopback while the block lasts; gives its URL."""
    config = uvicorn.Config(app, log_level="error", access_log=False, timeout_graceful_shutdown=2, lifespan="on")
    server = uvicorn.Server(config)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        task = asyncio.create_task(server.serve([bound]))
        while not server.started:
            assert not task.done()
            await asyncio.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


def over(scripted: Scripted, **settings: Any) -> Mapping[str, Any]:
    """Return the configuration of a gateway over the scripted backend."""
    return {"backends": {"scripted": {"url": scripted.url}}, **settings}
