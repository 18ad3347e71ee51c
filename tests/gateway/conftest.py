"""A gateway over the scripted backend, for each test: the app inside the process, or a server on loopback."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
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
async def listening(app: Any, http: Any = "auto") -> AsyncIterator[str]:
    """Serve an ASGI app on loopback while the block lasts; gives its URL. `http`: what reads HTTP."""
    config = uvicorn.Config(
        app, log_level="error", access_log=False, timeout_graceful_shutdown=2, lifespan="on", http=http
    )
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


# --- databases ---------------------------------------------------------------------------------------------------------


def binary(name: str) -> str:
    """Return the path of one of PostgreSQL's programs, which some systems keep off the path."""
    found = shutil.which(name) or next((str(one) for one in Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)
    if found is None:
        pytest.skip(f"PostgreSQL's {name} is not installed")
    return found


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL of its own, in a new folder; as another user where this is root, which it refuses."""
    pytest.importorskip("asyncpg", reason="the PostgreSQL driver asyncpg is not installed")
    folder = Path("/tmp") / f"antiphon-pg-{os.getpid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    as_user: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            pytest.skip("PostgreSQL does not run as root, and there is no runuser")
        shutil.chown(folder, "nobody")
        as_user = ["runuser", "-u", "nobody", "--"]
    data = folder / "data"
    made = subprocess.run(
        [*as_user, binary("initdb"), "-D", str(data), "-U", "antiphon", "--auth=trust", "-N"],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"initdb failed: {made.stderr[-300:]}")
    server = subprocess.Popen(
        [*as_user, binary("postgres"), "-D", str(data), "-k", str(folder), "-c", "listen_addresses=", "-F"],
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    _until_it_answers(folder)
    yield f"postgresql://antiphon@/postgres?host={folder}"
    server.send_signal(signal.SIGINT)
    if as_user:  # runuser passes no signals on
        pid = int((data / "postmaster.pid").read_text().split()[0]) if (data / "postmaster.pid").exists() else 0
        if pid:
            os.kill(pid, signal.SIGINT)
    server.wait(20)
    shutil.rmtree(folder, ignore_errors=True)


def _until_it_answers(folder: Path) -> None:
    """Its socket is there before it takes connections: what came in between would be refused."""
    asking = [binary("pg_isready"), "-q", "-h", str(folder)]
    for _ in range(600):
        if subprocess.run(asking, check=False).returncode == 0:
            return
        time.sleep(0.05)
    pytest.fail("PostgreSQL does not answer")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that several gateways may share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'gateway.db'}"
    return str(request.getfixturevalue("postgres"))
