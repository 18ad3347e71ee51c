"""Sessions: what is kept of a conversation from one run to the next. Names are loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

from .session import Session, SessionABC
from .settings import SessionSettings

if TYPE_CHECKING:
    from antiphon.run.config import SessionInputCallback

    from .compaction import CompactionSession
    from .openai_compaction import OpenAIResponsesCompactionSession
    from .sqlalchemy_session import SQLAlchemySession
    from .sqlite_session import SQLiteSession

# module -> its public names
_NAMES: dict[str, tuple[str, ...]] = {
    "antiphon.run.config": ("SessionInputCallback",),
    ".compaction": ("CompactionSession",),
    ".openai_compaction": ("OpenAIResponsesCompactionSession",),
    ".sqlalchemy_session": ("SQLAlchemySession",),
    ".sqlite_session": ("SQLiteSession",),
}

__all__ = [
    "CompactionSession",
    "OpenAIResponsesCompactionSession",
    "SQLAlchemySession",
    "SQLiteSession",
    "Session",
    "SessionABC",
    "SessionInputCallback",
    "SessionSettings",
]

__getattr__, __dir__ = lazily(__name__, _NAMES)
