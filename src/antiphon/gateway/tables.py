"""The tables of the store, and the steps from one version of them to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    insert,
    inspect,
    select,
    text,
    update,
)

from .errors import StoreUnavailable

METADATA = MetaData()
_ROW_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows for INTEGER alone

# One finished response. Its JSON is packed with zstd: `response`, `input` (of this request alone), `events`.
RESPONSES = Table(
    "antiphon_responses",
    METADATA,
    Column("id", String(128), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("previous_id", String(128)),
    Column("conversation_id", String(128)),
    Column("status", String(16), nullable=False),
    Column("response", LargeBinary, nullable=False),
    Column("input", LargeBinary, nullable=False),
    Column("events", LargeBinary),
)
Index("antiphon_responses_by_age", RESPONSES.c.created_at)

CONVERSATIONS = Table(
    "antiphon_conversations",
    METADATA,
    Column("id", String(128), primary_key=True),
    Column("owner", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
    Column("metadata", LargeBinary, nullable=False),
)

# Items that can be referred to by their ids: those of a conversation, in order, and those of responses.
ITEMS = Table(
    "antiphon_items",
    METADATA,
    Column("number", _ROW_ID, primary_key=True, autoincrement=True),
    Column("id", String(128), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("conversation_id", String(128), ForeignKey(CONVERSATIONS.c.id, ondelete="CASCADE")),
    Column("response_id", String(128), ForeignKey(RESPONSES.c.id, ondelete="CASCADE")),
    Column("item", LargeBinary, nullable=False),
)
Index("antiphon_items_by_id", ITEMS.c.owner, ITEMS.c.id)
Index("antiphon_items_by_conversation", ITEMS.c.conversation_id, ITEMS.c.number)
Index("antiphon_items_by_response", ITEMS.c.response_id)

RUN_METADATA = MetaData()

# A response that is made in the background now. Whoever makes it renews the lease; without one it is lost.
RUNS = Table(
    "antiphon_runs",
    RUN_METADATA,
    Column("id", String(128), ForeignKey(RESPONSES.c.id, ondelete="CASCADE"), primary_key=True),
    Column("lease_until", BigInteger, nullable=False),  # seconds on the database's clock
    Column("is_cancelled", Boolean, nullable=False),  # it is asked to end
)

# What it has said so far, for those who follow it in other processes: events from the one with this number on.
RUN_EVENTS = Table(
    "antiphon_run_events",
    RUN_METADATA,
    Column("run_id", String(128), ForeignKey(RUNS.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("events", LargeBinary, nullable=False),
)

WISH_METADATA = MetaData()

# A stream that is to be cancelled, by whichever process makes it. Who wishes it deletes it with its answer.
WISHES = Table(
    "antiphon_wishes",
    WISH_METADATA,
    Column("id", String(64), primary_key=True),
    Column("response_id", String(128), nullable=False),
    Column("owner", String(64), nullable=False),
    Column("until", BigInteger, nullable=False),  # seconds on the database's clock
    Column("is_taken", Boolean, nullable=False),
    Column("answer", LargeBinary),
)

VERSION = Table("antiphon_schema", MetaData(), Column("version", Integer, nullable=False))

Step: TypeAlias = Callable[[Connection], object]

# What leads from each version to the next; the first makes the tables. A step is never changed once it was released.
STEPS: tuple[Step, ...] = (METADATA.create_all, RUN_METADATA.create_all, WISH_METADATA.create_all)
_LOCK = 7_264_531_901  # of PostgreSQL's advisory locks: processes that start together go one after the other


class SchemaTooNew(StoreUnavailable):
    """The database was made by a later version of antiphon."""


def is_current(connection: Connection) -> bool:
    """Return whether the tables are of this version; nothing is written. Raises SchemaTooNew where they are beyond it."""
    return inspect(connection).has_table(VERSION.name) and _version(connection) == len(STEPS)


def migrate(connection: Connection) -> None:
    """Bring the tables to this version. Raises SchemaTooNew where they are beyond it."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    if not inspect(connection).has_table(VERSION.name):
        VERSION.create(connection)
        connection.execute(insert(VERSION).values(version=0))
    for step in STEPS[_version(connection) :]:
        step(connection)
    connection.execute(update(VERSION).values(version=len(STEPS)))


def _version(connection: Connection) -> int:
    version = int(connection.execute(select(VERSION.c.version)).scalar_one())
    if version > len(STEPS):
        raise SchemaTooNew(
            f"the database has version {version} of the tables, and this is antiphon for version {len(STEPS)}: update it"
        )
    return version
