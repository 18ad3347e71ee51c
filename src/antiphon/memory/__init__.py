"""Sessions: what is kept of a conversation from one run to the next. Names are loaded when first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .session import Session, SessionABC
from .settings import SessionSettings

if TYPE_CHECKING:
    from .compaction import CompactionSession
    from .openai_compaction import OpenAIResponsesCompactionSession
    from .sqlalchemy_session import SQLAlchemySession
    from .sqlite_session import SQLiteSession

_HOMES = {
    "CompactionSession": ".compaction",
    "OpenAIResponsesCompactionSession": ".openai_compaction",
    "SQLAlchemySession": ".sqlalchemy_session",
    "SQLiteSession": ".sqlite_session",
}

__all__ = [
    "CompactionSession",
    "OpenAIResponsesCompactionSession",
    "SQLAlchemySession",
    "SQLiteSession",
    "Session",
    "SessionABC",
    "SessionSettings",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value
