"""The gateway as a process of its own: where it may listen, how its workers get their configuration, how it ends."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from antiphon.errors import BadInput

from .app import create_app
from .beside import Beside
from .config import MEMORY, NO_STORE, GatewayConfig, load_config
from .database import engine_url, file_of
from .folders import held, shared_folder
from .gallery import Gallery
from .gateway import Gateway
from .logs import be_quiet

SPEC = "ANTIPHON_SERVE_SPEC"  # the environment variable by which workers are told what to serve
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]", "::1")
_HURRYING: set[asyncio.Task[None]] = set()  # which nobody else would hold
AFTER_DRAINING = 5  # seconds in which the last events of ended responses go out


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on `host` is reached from this machine alone."""
    if host.startswith("unix:"):
        return True
    try:
        found = {str(one[4][0]) for one in socket.getaddrinfo(host or "0.0.0.0", None)}
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in found)


def check_binding(config: GatewayConfig, host: str, *, insecure: bool) -> None:
    """Raise BadInput where everybody who reaches `host` could use the backends."""
    guarded = bool(config.api_keys) or config.api_key_file is not None
    if guarded or insecure or is_loopback(host):
        return
    raise BadInput(
        f"--host {host}: others could use the backends. Give --api-key or --api-key-file, or --insecure if "
        "something else keeps them out"
    )


def check_workers(config: GatewayConfig, workers: int) -> None:
    """Raise BadInput where several processes would each have a store of their own."""
    if workers > 1 and config.store.url == MEMORY:
        raise BadInput(
            f"--workers {workers}: each process would keep responses for itself in memory, and the others would not "
            "find them. Name a database with --store, or none with --store none"
        )


def check_store(config: GatewayConfig) -> None:
    """Raise BadInput for an SQLite file in a folder that there is not: it could never be made."""
    path = file_of(engine_url(config.store.url)) if config.store.url != NO_STORE else None
    if path is not None and not Path(path).resolve().parent.is_dir():
        raise BadInput(
            f"store.url: the folder {Path(path).resolve().parent} is not there: make it, or name another database; "
            "sqlite:///antiphon.db is in the folder where the command runs, sqlite:////srv/antiphon.db in /srv"
        )


def state_store() -> str:
    """Return the URL of the embedded database: a file in the user's folder of program state, which is made."""
    base = (
        os.environ.get("STATE_DIRECTORY") or os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    )
    folder = Path(base.partition(":")[0])
    folder = folder if os.environ.get("STATE_DIRECTORY") else folder / "antiphon"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise BadInput(
            f"the store's folder {folder} cannot be made ({problem.strerror}): name a database with --store, or none with --store none"
        ) from None
    return f"sqlite+aiosqlite:///{folder / 'gateway.db'}"


def served_config(path: Path | None, options: Mapping[str, Any], host: str, *, insecure: bool) -> GatewayConfig:
    """Return the configuration of a process: with the embedded database where no store was named, and guarded; on
    loopback with the page, unless it is switched off.

    Without keys, on loopback, it answers to this machine's own names alone: a web page that the user looks at could
    reach it by a name of its own otherwise.
    """
    config = load_config(path, options)
    check_binding(config, host, insecure=insecure)
    changes: dict[str, Any] = {}
    if "url" not in config.store.model_fields_set:
        changes["store"] = config.store.model_copy(update={"url": state_store()})
    if "enabled" not in config.page.model_fields_set and is_loopback(host):
        changes["page"] = config.page.model_copy(update={"enabled": True})
    if "hosts" not in config.model_fields_set and not config.api_keys and config.api_key_file is None and not insecure:
        changes["hosts"] = LOOPBACK_HOSTS
    return config.model_copy(update=changes)


def served_app(config: GatewayConfig, folder: Path | None = None) -> Starlette:
    """Return the app of a process: told to end, it takes no more requests, and lets streams finish for a while.

    `folder`: where processes behind the same port tell each other what they count, and show what they stream.
    """
    app = create_app(config)
    app.add_middleware(Cut, gateway=app.state.gateway)
    inner = app.router.lifespan_context
    gateway: Gateway = app.state.gateway

    @asynccontextmanager
    async def lifespan(one: Starlette) -> AsyncGenerator[Any]:
        be_quiet()
        async with AsyncExitStack() as stack:
            if folder is not None:
                stack.enter_context(held(folder))
                gateway.beside = Beside(folder, gateway.metrics, gateway.gauges)
                await stack.enter_async_context(gateway.beside.writing())
            if folder is not None and gateway.page is not None:
                gateway.page.gallery = Gallery(folder, gateway.page.pictures)
                await stack.enter_async_context(gateway.page.gallery.drawing())
            state = await stack.enter_async_context(inner(one))
            with_signals(gateway)
            end_with_parent()
            yield state

    app.router.lifespan_context = lifespan
    return app


def http_protocol() -> Any:
    """Return what the server is to read HTTP with: httptools where it is installed, which costs less, else h11."""
    if find_spec("httptools") is None:
        from .h11_connection import H11Connection

        return H11Connection
    from .httptools_connection import HttptoolsConnection

    return HttptoolsConnection


def worker_app() -> Starlette:
    """Return the app of one worker, as the environment says."""
    held = json.loads(os.environ[SPEC])
    path = Path(held["path"]) if held["path"] else None
    config = served_config(path, held["options"], held["host"], insecure=held["insecure"])
    return served_app(config, Path(held["folder"]))


@contextmanager
def workers(path: Path | None, options: Mapping[str, Any], host: str, *, insecure: bool) -> Generator[None]:
    """Tell the workers that are started in the block what to serve; they share a folder meanwhile."""
    with shared_folder() as folder:
        spec = {"path": str(path.resolve()) if path else None, "options": options, "host": host, "insecure": insecure}
        os.environ[SPEC] = json.dumps({**spec, "folder": str(folder)})
        yield


def end_with_parent() -> None:
    """Let a worker end, as if it was told to, when the process that started it is gone: nobody else would tell it, and
    it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is None or sys.platform == "win32":  # whose loops watch no such handles
        return
    loop, sentinel = asyncio.get_running_loop(), parent.sentinel

    def gone() -> None:
        loop.remove_reader(sentinel)
        os.kill(os.getpid(), signal.SIGTERM)

    loop.add_reader(sentinel, gone)


class Cut:
    """ASGI middleware: what the server cancels at its end is cut, in silence: there is nobody left to be told."""

    def __init__(self, app: ASGIApp, gateway: Gateway) -> None:
        self._app, self._gateway = app, gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, self._quiet(send) if scope["type"] == "lifespan" else send)
        except asyncio.CancelledError:
            if not self._gateway.draining:
                raise

    def _quiet(self, send: Send) -> Send:
        async def told(message: Message) -> None:
            if message["type"] == "lifespan.shutdown.failed" and self._gateway.draining:
                message["message"] = ""  # a traceback of where it was cancelled
            await send(message)

        return told


def with_signals(gateway: Gateway) -> None:
    """Let the gateway know of signals to end, before the server does what it does about them.

    The second SIGINT is of somebody who does not want to wait: what is still being made ends at once, and the server
    after it. Other signals may come twice: service managers send them to each process, and servers to their workers.
    """
    if threading.current_thread() is not threading.main_thread():
        return  # Python tells no other thread
    loop = asyncio.get_running_loop()
    interrupts = 0
    for number in (signal.SIGTERM, signal.SIGINT):
        before = signal.getsignal(number)

        def told(signum: int, frame: FrameType | None, before: Any = before) -> None:
            nonlocal interrupts
            interrupts += signum == signal.SIGINT

            def passed() -> None:
                if callable(before):
                    before(signum, frame)

            if interrupts == 2 and signum == signal.SIGINT:
                loop.call_soon_threadsafe(_hurry, gateway, passed)
                return
            loop.call_soon_threadsafe(gateway.drain)
            passed()

        signal.signal(number, told)


def _hurry(gateway: Gateway, then: Callable[[], None]) -> None:
    task = asyncio.get_running_loop().create_task(gateway.hurry())
    _HURRYING.add(task)
    task.add_done_callback(_HURRYING.discard)
    task.add_done_callback(lambda done: then())
