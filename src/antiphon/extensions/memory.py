"""Sessions that need an extra: `SQLAlchemySession`."""

from __future__ import annotations

from antiphon.memory.sqlalchemy_session import SQLAlchemySession

__all__ = ["SQLAlchemySession"]
