"""`SQLAlchemySession`: sessions in any database that SQLAlchemy reaches asynchronously.

A SQLite file serves one machine; PostgreSQL (`postgresql+asyncpg://…` or `postgresql+psycopg://…`) serves many. Writers
of one session wait for each other on its row, so that the order of items is the order in which they were committed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from antiphon.errors import ExtraMissing
from antiphon.exceptions import UserError

from .session import Item, SessionABC, finished, read, written
from .settings import SessionSettings

try:
    import sqlalchemy as sa
    from sqlalchemy.dialects import mysql
    from sqlalchemy.exc import IntegrityError, InvalidRequestError
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
    from sqlalchemy.schema import CreateIndex, CreateTable
except ImportError as error:
    raise ExtraMissing(
        "SQLAlchemySession needs the packages of the extra `sessions`: pip install 'antiphon[sessions]'",
        extra="sessions",
    ) from error

if TYPE_CHECKING:
    from sqlalchemy.sql.elements import ColumnElement

DEFAULT_URL = "sqlite+aiosqlite:///antiphon_sessions.db"
ASYNC_DRIVERS = {"sqlite": "aiosqlite", "postgresql": "asyncpg", "mysql": "asyncmy", "mariadb": "asyncmy"}
BUSY_SECONDS = 30  # how long a writer of a SQLite file waits for the others
SETUP_LOCK = 0x616E7469  # PostgreSQL's advisory lock under which the tables are made, "anti" in ASCII


class SQLAlchemySession(SessionABC):
    """A session in a database: by `url`, or in an `engine` that its owner closes. Without either, a SQLite file.

    With an engine of its own it raises UserError where it is used after `close()`, and no error holds what is kept.

    The tables are made when they are first needed, unless `create_tables` is False. `engine_kwargs` go to the engine
    that is made for `url`.
    """

    def __init__(
        self,
        session_id: str,
        *,
        url: str | None = None,
        engine: AsyncEngine | None = None,
        create_tables: bool = True,
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
        engine_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        if url is not None and engine is not None:
            raise UserError("a session has a url or an engine, not both")
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings.of(session_settings)
        self._owned, self._closed = engine is None, False
        self._engine = _engine(url or DEFAULT_URL, engine_kwargs) if engine is None else engine
        self._ready = not create_tables
        self._sessions, self._messages = _tables(sessions_table, messages_table)

    @classmethod
    def from_url(
        cls, session_id: str, *, url: str, engine_kwargs: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> SQLAlchemySession:
        """Return the session in the database that `url` names."""
        return cls(session_id, url=url, engine_kwargs=engine_kwargs, **kwargs)

    @property
    def engine(self) -> AsyncEngine:
        """Return the engine by which the database is reached."""
        return self._engine

    async def close(self) -> None:
        """Close the connections, unless the engine was given: then they are its owner's."""
        if self._owned:
            self._closed = True
            await self._engine.dispose()

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the latest `limit` items, or all, in order. Rows that are spoilt are left out."""
        most = SessionSettings.of(self.session_settings).limited(limit)
        found: list[Item] = []
        async with self._transaction() as connection, connection.stream(self._query(newest_first=True)) as rows:
            async for _, text in rows:  # read as far as is needed
                if most is not None and len(found) >= most:
                    break
                item = read(text)
                found.extend([] if item is None else [item])
        return found[::-1]

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, in one transaction."""
        texts = written(items)
        if texts:
            await finished(self._add_items(texts))

    async def pop_item(self) -> Any | None:
        """Remove and return the latest item; spoilt rows after it are removed too. None where there is none."""
        return await finished(self._pop_item())

    async def clear_session(self) -> None:
        """Remove all items of this session, and the session's row."""
        await finished(self._clear_session())

    async def replace_oldest(self, old: list[Any], new: list[Any]) -> bool:
        """Put `new` in the place of `old`. Returns False, and changes nothing, where they are not the oldest items."""
        return await finished(self._replace_oldest(written(old), written(new)))

    # --- one transaction each --------------------------------------------------------------------------------------

    async def _add_items(self, texts: list[str]) -> None:
        async with self._transaction() as connection:
            await self._hold(connection)
            await self._insert(connection, texts)

    async def _pop_item(self) -> Item | None:
        async with self._transaction() as connection:
            await self._hold(connection, make=False)
            newest = self._query(newest_first=True).limit(1)
            while (row := (await connection.execute(newest)).first()) is not None:
                await connection.execute(self._messages.delete().where(self._messages.c.id == row[0]))
                item = read(row[1])
                if item is not None:
                    return item
        return None

    async def _clear_session(self) -> None:
        async with self._transaction() as connection:
            await self._hold(connection, make=False)
            await connection.execute(self._messages.delete().where(self._own(self._messages)))
            await connection.execute(self._sessions.delete().where(self._own(self._sessions)))

    async def _replace_oldest(self, old: list[str], new: list[str]) -> bool:
        async with self._transaction() as connection:
            await self._hold(connection, make=False)
            rows = (await connection.execute(self._query(newest_first=False))).all()
            held = [raw.decode() if isinstance(raw, bytes) else raw for _, raw in rows if read(raw) is not None]
            if [read(text) for text in held[: len(old)]] != [read(text) for text in old]:
                return False
            await connection.execute(self._messages.delete().where(self._own(self._messages)))
            await self._insert(connection, [*new, *held[len(old) :]])
        return True

    # --- statements ------------------------------------------------------------------------------------------------

    async def _hold(self, connection: AsyncConnection, *, make: bool = True) -> None:
        """Take the session's row, so that other writers of the session wait; make it where it is not there yet."""
        touch = self._sessions.update().where(self._own(self._sessions)).values(updated_at=sa.func.now())
        if (await connection.execute(touch)).rowcount or not make:
            return
        try:
            async with connection.begin_nested():
                await connection.execute(self._sessions.insert().values(session_id=self.session_id))
        except IntegrityError:  # another writer made it meanwhile
            await connection.execute(touch)

    async def _insert(self, connection: AsyncConnection, texts: list[str]) -> None:
        rows = [{"session_id": self.session_id, "message_data": text} for text in texts]
        if rows:
            await connection.execute(self._messages.insert(), rows)

    def _query(self, *, newest_first: bool) -> sa.Select[int, Any]:
        number: sa.ColumnElement[int] = self._messages.c.id
        text: sa.ColumnElement[Any] = self._messages.c.message_data
        if self._engine.dialect.name == "sqlite":  # a text that is no UTF-8 any more would make the whole query fail
            text = sa.cast(text, sa.LargeBinary)
        query = sa.select(number, text).where(self._own(self._messages))
        return query.order_by(number.desc() if newest_first else number)

    def _own(self, table: sa.Table) -> ColumnElement[bool]:
        return table.c.session_id == self.session_id

    @asynccontextmanager
    async def _transaction(self) -> AsyncGenerator[AsyncConnection]:
        if self._closed:
            raise UserError(f"the session {self.session_id!r} is closed: make a new one for the same database")
        if not self._ready:
            await finished(self._create_tables())
        async with self._engine.begin() as connection:
            yield connection

    async def _create_tables(self) -> None:
        async with self._engine.begin() as connection:
            if connection.dialect.name == "postgresql":  # IF NOT EXISTS alone loses a race there
                await connection.execute(sa.select(sa.func.pg_advisory_xact_lock(SETUP_LOCK)))
            for table in (self._sessions, self._messages):
                await connection.execute(CreateTable(table, if_not_exists=True))
                for index in table.indexes:
                    await connection.execute(CreateIndex(index, if_not_exists=True))
        self._ready = True


def _engine(url: str, engine_kwargs: Mapping[str, Any] | None) -> AsyncEngine:
    given: dict[str, Any] = {"hide_parameters": True, **(engine_kwargs or {})}
    if sa.make_url(url).get_backend_name() == "sqlite":
        given["connect_args"] = {"timeout": BUSY_SECONDS, **given.get("connect_args", {})}
    try:
        return create_async_engine(url, **given)
    except InvalidRequestError as error:
        named = sa.make_url(url)
        fitting = ASYNC_DRIVERS.get(named.get_backend_name(), "<an async driver>")
        raise UserError(
            f"the url begins with {named.drivername}://, and its driver does not work with asyncio: "
            f"write {named.get_backend_name()}+{fitting}://"
        ) from error


def _tables(sessions_table: str, messages_table: str) -> tuple[sa.Table, sa.Table]:
    metadata = sa.MetaData()
    now, text = sa.func.now(), sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
    sessions = sa.Table(
        sessions_table,
        metadata,
        sa.Column("session_id", sa.String(255), primary_key=True),
        sa.Column("created_at", sa.DateTime, server_default=now, nullable=False),
        sa.Column("updated_at", sa.DateTime, server_default=now, nullable=False),
    )
    own_session: sa.ForeignKey = sa.ForeignKey(f"{sessions_table}.session_id", ondelete="CASCADE")
    messages = sa.Table(
        messages_table,
        metadata,
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("session_id", sa.String(255), own_session, nullable=False),
        sa.Column("message_data", text, nullable=False),
        sa.Column("created_at", sa.DateTime, server_default=now, nullable=False),
        sa.Index(f"idx_{messages_table}_session_id", "session_id", "id"),
    )
    return sessions, messages
