"""`SQLiteSession`: sessions in one SQLite file, for any number of threads and processes, or in memory.

Every operation is one transaction in a worker thread. The tables are those that the OpenAI Agents SDK's session of this
name makes (seen in openai-agents 0.24), so that a file can be taken over.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import weakref
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from antiphon.exceptions import UserError

from .session import Item, SessionABC, finished, read, written
from .settings import SessionSettings

T = TypeVar("T")

BUSY_SECONDS = 30.0  # how long a writer waits for the others of the same file
SCHEMA = """
CREATE TABLE IF NOT EXISTS {sessions} (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS {messages} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES {sessions} (session_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS {index} ON {messages} (session_id, id);
"""


class SQLiteSession(SessionABC):
    """A session in a SQLite file. Without a path it is in memory and lives as long as this object.

    Raises UserError where it is used after `close()`.
    """

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: SessionSettings | Mapping[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings.of(session_settings)
        self.db_path = db_path
        self.sessions_table, self.messages_table = sessions_table, messages_table
        self._sessions, self._messages = _quoted(sessions_table), _quoted(messages_table)
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the latest `limit` items, or all, in order. Rows that are spoilt are left out."""
        most = SessionSettings.of(self.session_settings).limited(limit)
        return await self._run(lambda connection: self._latest(connection, most), begin="BEGIN")

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, in one transaction."""
        texts = written(items)
        if texts:
            await self._run(lambda connection: self._add(connection, texts))

    async def pop_item(self) -> Any | None:
        """Remove and return the latest item; spoilt rows after it are removed too. None where there is none."""
        return await self._run(self._pop)

    async def clear_session(self) -> None:
        """Remove all items of this session, and the session's row."""
        await self._run(self._clear)

    async def replace_oldest(self, old: list[Any], new: list[Any]) -> bool:
        """Put `new` in the place of `old`. Returns False, and changes nothing, where they are not the oldest items."""
        return await self._run(lambda connection: self._replace(connection, written(old), written(new)))

    def close(self) -> None:
        """Close the file. A session in memory is gone then."""
        with self._lock:
            self._closed = True
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    # --- inside one transaction ------------------------------------------------------------------------------------

    def _latest(self, connection: sqlite3.Connection, most: int | None) -> list[Item]:
        with closing(self._rows(connection, "DESC")) as rows:  # read as far as is needed
            items = (item for _, text in rows if (item := read(text)) is not None)
            return list(islice(items, most))[::-1]

    def _add(self, connection: sqlite3.Connection, texts: list[str]) -> None:
        connection.execute(f"INSERT OR IGNORE INTO {self._sessions} (session_id) VALUES (?)", (self.session_id,))
        rows = [(self.session_id, text) for text in texts]
        connection.executemany(f"INSERT INTO {self._messages} (session_id, message_data) VALUES (?, ?)", rows)
        connection.execute(
            f"UPDATE {self._sessions} SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?", (self.session_id,)
        )

    def _pop(self, connection: sqlite3.Connection) -> Item | None:
        while (row := self._rows(connection, "DESC").fetchone()) is not None:
            connection.execute(f"DELETE FROM {self._messages} WHERE id = ?", (row[0],))
            item = read(row[1])
            if item is not None:
                return item
        return None

    def _clear(self, connection: sqlite3.Connection) -> None:
        for table in (self._messages, self._sessions):
            connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (self.session_id,))

    def _replace(self, connection: sqlite3.Connection, old: list[str], new: list[str]) -> bool:
        held = [raw.decode() for _, raw in self._rows(connection, "ASC") if read(raw) is not None]
        if [read(text) for text in held[: len(old)]] != [read(text) for text in old]:
            return False
        self._clear(connection)
        self._add(connection, [*new, *held[len(old) :]])
        return True

    def _rows(self, connection: sqlite3.Connection, order: str) -> sqlite3.Cursor:
        # bytes: a text that is no UTF-8 any more would make the whole query fail
        text = "CAST(message_data AS BLOB)"
        query = f"SELECT id, {text} FROM {self._messages} WHERE session_id = ? ORDER BY id {order}"
        return connection.execute(query, (self.session_id,))

    # --- transactions ----------------------------------------------------------------------------------------------

    async def _run(self, work: Callable[[sqlite3.Connection], T], begin: str = "BEGIN IMMEDIATE") -> T:
        """Return what `work` returns, done as a whole in a worker thread. IMMEDIATE: two writers wait, none fails."""

        def transaction() -> T:
            with self._lock, self._transaction(begin) as connection:
                return work(connection)

        return await finished(asyncio.to_thread(transaction))

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        connection = self._connected()
        connection.execute(begin)
        try:
            yield connection
        except BaseException:
            connection.rollback()
            raise
        connection.commit()

    def _connected(self) -> sqlite3.Connection:
        if self._closed:
            raise UserError(f"the session {self.session_id!r} is closed: make a new one for the same file")
        if self._connection is None:
            self._connection = self._open()
        return self._connection

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(
                self.db_path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
        except sqlite3.OperationalError as error:
            raise UserError(f"{error}: {self.db_path}; its folder must be there") from error
        try:
            self._prepare(connection)
        except BaseException as error:
            connection.close()
            if type(error) is sqlite3.DatabaseError:  # its children say what can pass, such as a lock
                raise UserError(f"{error}: {self.db_path}") from error
            raise
        weakref.finalize(self, connection.close)  # for a session that is dropped without close()
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        _write_ahead(connection)
        connection.execute("PRAGMA foreign_keys = ON")
        names = {"sessions": self._sessions, "messages": self._messages}
        index = _quoted(f"idx_{self.messages_table}_session_id")
        connection.execute("BEGIN IMMEDIATE")
        for statement in SCHEMA.format(index=index, **names).split(";\n"):
            connection.execute(statement)
        connection.commit()


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers go on while one writes; where the file is busy or cannot do that, the older way works too."""
    try:
        with closing(connection.execute("PRAGMA journal_mode = WAL")) as cursor:
            cursor.fetchall()
    except sqlite3.OperationalError:
        return


def _quoted(name: str) -> str:
    """Return a table's name as SQL has it. Raises UserError where it cannot be one."""
    if not name or "\x00" in name:
        raise UserError(f"the name of a table is {name!r}: a name is expected that is not empty")
    return '"' + name.replace('"', '""') + '"'
