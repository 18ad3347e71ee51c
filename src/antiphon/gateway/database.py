"""The database under the store: its URL, its engine, and how JSON lies in it."""

from __future__ import annotations

import asyncio
import os
import re
from typing import Any

import msgspec
import zstandard
from sqlalchemy import Connection, event, make_url
from sqlalchemy.exc import NoSuchModuleError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import AsyncAdaptedQueuePool

from antiphon.errors import BadInput
from antiphon.stream.faults import redact

from .config import MEMORY

_DRIVERS = {
    "sqlite": "sqlite+aiosqlite",
    "postgresql": "postgresql+asyncpg",
    "postgres": "postgresql+asyncpg",
}
_KNOWN = 'the store may be sqlite:///antiphon.db, postgresql://host/name, "memory" or "none"'
_FILE = re.compile(r"[\\/]|\.(db|sqlite3?)$")  # what looks like a path
LARGE = 256 * 1024  # bytes of JSON: packed within a millisecond or two


def engine_url(url: str) -> str:
    """Return the SQLAlchemy URL for `url`, which may leave out the driver. Raises BadInput for what is no such URL."""
    if url == MEMORY:
        return "sqlite+aiosqlite:///:memory:"
    scheme, colon, rest = url.partition("://")
    if not colon or not re.fullmatch(r"[a-z0-9+]+", scheme):
        meant = f"did you mean sqlite:///{url}? The" if not colon and _FILE.search(url) else "the"
        raise BadInput(f"store.url is no database URL; {meant}{_KNOWN.removeprefix('the')}")
    return f"{_DRIVERS.get(scheme, scheme)}://{rest}"


def packed(value: Any) -> bytes:
    """Return JSON data, packed."""
    return _compressed(msgspec.json.encode(value))


async def packed_aside(value: Any) -> bytes:
    """Return JSON data, packed; what is large in a thread, so that the event loop goes on."""
    data = msgspec.json.encode(value)
    if len(data) < LARGE:
        return _compressed(data)
    return await asyncio.to_thread(_compressed, data)


def _compressed(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3).compress(data)


def unpacked(data: bytes) -> Any:
    """Return the JSON data in what `packed` gave."""
    return msgspec.json.decode(zstandard.ZstdDecompressor().decompress(data))


def file_of(url: str) -> str | None:
    """Return the path of an SQLite file by its SQLAlchemy URL; None where the database is no file."""
    if not url.startswith("sqlite"):
        return None
    try:
        name = make_url(url).database
    except SQLAlchemyError:
        return None
    return None if not name or ":memory:" in name or name.startswith("file:") else name


def identity_of(path: str | None) -> tuple[int, int] | None:
    """Return which file is at `path` now: another one after it was deleted, or replaced. None where none is."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_engine(url: str, timeout: float) -> AsyncEngine:
    """Return an engine for an SQLAlchemy URL. Raises BadInput where its driver is not there."""
    try:
        if not url.startswith("sqlite"):
            return create_async_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=10, pool_recycle=1800)
        # A database in memory is that of its one connection: those who want it wait for each other.
        single = {"pool_size": 1, "max_overflow": 0, "poolclass": AsyncAdaptedQueuePool} if ":memory:" in url else {}
        engine = create_async_engine(url, connect_args={"timeout": timeout}, **single)
    except ImportError as problem:
        raise BadInput(_without_driver(url, problem.name or "")) from None
    except NoSuchModuleError:
        raise BadInput(f"store.url: no database is called {url.partition('://')[0]!r}; {_KNOWN}") from None
    except SQLAlchemyError as problem:
        raise BadInput(f"store.url: {redact(str(problem))}") from None
    event.listen(engine.sync_engine, "connect", _sqlite_settings)
    event.listen(engine.sync_engine, "begin", _sqlite_begin)
    return engine


def _without_driver(url: str, package: str) -> str:
    """Return what to install for a database whose driver is not there."""
    scheme = url.partition("://")[0]
    if scheme in _DRIVERS.values():
        return f"store.url: {scheme} needs the package {package}, which is not installed: pip install {package}"
    return f"store.url: {scheme} is read by the package {package}, which is not installed; {_KNOWN}"


def _sqlite_settings(connection: Any, record: Any) -> None:
    """Let readers and a writer of several processes work together, and keep what was committed over a crash."""
    connection.isolation_level = None  # the driver begins no transactions of its own, so that `BEGIN IMMEDIATE` can
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _sqlite_begin(connection: Connection) -> None:
    """Take the lock of a writer at once: one that is asked for later is refused instead of waited for."""
    writes = connection.get_execution_options().get("antiphon_writes", True)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
