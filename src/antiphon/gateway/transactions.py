"""The database that several gateways share: opened when it is needed, one transaction for each operation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from .aside import Aside
from .config import StoreConfig
from .database import engine_url, file_of, identity_of, make_engine
from .errors import StoreUnavailable
from .tables import is_current, migrate

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("antiphon.gateway")

# What PostgreSQL ends one of two transactions with that stand in each other's way. Source: its manual, appendix A.
COLLISIONS = frozenset({"40P01", "40001"})
MOST_TRIES = 4
# SQLite has one writer at a time, and those who wait for it try again and again, whoever is lucky: in a crowd some wait
# too long. So those of one process wait for each other, in order: one writes, and one is ready to.
WRITERS = 2


class Collided(Exception):
    """The database undid a transaction for the sake of another one: it may be tried again as it was."""


class UsesDatabase(Protocol):
    """What has operations."""

    @property
    def database(self) -> Database:
        """Where they are done."""
        ...


S = TypeVar("S", bound=UsesDatabase)


def uncut(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return an operation that runs beside the streams, and goes on to its end where its caller is cancelled, such as by
    a client that leaves.

    A connection that is cut in the middle of a statement is thrown away, and with it a database in memory. What
    collides with another transaction is tried again, and raises StoreUnavailable where that does not help.
    """

    @wraps(method)
    async def whole(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        async def tried() -> T:
            for _ in range(MOST_TRIES):
                try:
                    return await method(self, *args, **kwargs)
                except Collided:
                    continue
            log.warning("the store cannot be used: %d transactions collided", MOST_TRIES)
            raise StoreUnavailable("the store cannot be used now (too many collisions)")

        return await self.database.aside.run(tried())

    return whole


class Database:
    """The database at the configured URL. Its tables are made, and brought to this version, by the first transaction.

    `aside`: where its operations run, also those whose callers are gone. `in_memory`: it ends with the process. `is_unwritable`: the
    last one that would have changed something failed, as all do where a disk is full. `opened`: called each time that
    it was opened. Raises BadInput for a URL that is none, or whose driver is not there.
    """

    def __init__(self, config: StoreConfig, opened: Callable[[], None]) -> None:
        url = engine_url(config.url)
        self._engine = make_engine(url, config.timeout)
        self._file = file_of(url)
        self.in_memory = url.startswith("sqlite") and (":memory:" in url or "mode=memory" in url)
        self.aside = Aside()
        self._timeout, self._opened = config.timeout, opened
        self._identity: tuple[int, int] | None = None  # of the file that was opened
        self._is_open = False
        self.is_unwritable = False
        self._opening = asyncio.Lock()
        self._turn = asyncio.Semaphore(WRITERS)

    @asynccontextmanager
    async def transaction(self, *, writes: bool) -> AsyncGenerator[AsyncConnection]:
        """Give a connection for one transaction. Raises StoreUnavailable, or Collided, where nothing of it was done."""
        try:
            # A database in memory waits for nothing but itself, and would be lost with a connection that is cut.
            async with asyncio.timeout(None if self.in_memory else self._timeout):
                if not self._is_open or identity_of(self._file) != self._identity:
                    await self._open()
                async with (
                    self._turn if writes and self._file is not None else nullcontext(),
                    self._engine.execution_options(antiphon_writes=writes).begin() as connection,
                ):
                    yield connection
        except (SQLAlchemyError, OSError, TimeoutError) as problem:
            if _code_of(problem) in COLLISIONS:
                raise Collided from None
            self.is_unwritable = self.is_unwritable or writes
            kind = _kind_of(problem)
            log.warning("the store cannot be used: %s", kind)
            is_late = isinstance(problem, TimeoutError)
            raise StoreUnavailable(f"the store cannot be used now ({kind})", is_late=is_late) from None
        self.is_unwritable = self.is_unwritable and not writes

    async def aclose(self) -> None:
        """Close all connections, once the operations are done."""
        if self.aside.has_begun:
            await self.aside.run(self._close())
            await self.aside.aclose()

    async def _close(self) -> None:
        others = self.aside.running - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        await self._engine.dispose()
        self._is_open = False

    async def _open(self) -> None:
        """Bring the tables to this version, once. Where that fails the next operation tries again.

        A file that was deleted, or replaced, is opened anew: what is written to the old one is lost with the process.
        """
        async with self._opening:
            if self._is_open and identity_of(self._file) == self._identity:
                return
            if self._is_open:
                self._is_open = False
                log.warning("the store's file is another one, or gone: it is opened anew")
                await self._engine.dispose()
            async with self._engine.execution_options(antiphon_writes=False).begin() as connection:
                current = await connection.run_sync(is_current)
            if not current:
                async with self._engine.begin() as connection:
                    await connection.run_sync(migrate)
            self._is_open, self._identity = True, identity_of(self._file)
            self._opened()


def _kind_of(problem: BaseException) -> str:
    """Return what is told of an error: its kind and its code. Its words may hold content."""
    if isinstance(problem, TimeoutError):
        return "TimeoutError"  # whatever it cut is its cause
    return f"{type(problem.__cause__ or problem).__name__} {_code_of(problem)}".strip()


def _code_of(problem: BaseException) -> str:
    """Return what the database calls an error: an SQLSTATE, SQLITE_FULL; "" where the driver has none."""
    origin = getattr(problem, "orig", None)
    return str(getattr(origin, "sqlstate", "") or getattr(origin, "sqlite_errorname", ""))
