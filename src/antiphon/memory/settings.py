"""`SessionSettings`: how much of a session a run reads."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from antiphon.exceptions import UserError


@dataclass
class SessionSettings:
    """`limit`: only the latest so many items are read; None reads all."""

    limit: int | None = None

    def __post_init__(self) -> None:
        limit: Any = self.limit
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 0):
            raise UserError(f"the limit of a session is {limit!r}: a number of items, 0 or more, or None for all")

    def resolve(self, override: SessionSettings | Mapping[str, Any] | None) -> SessionSettings:
        """Return these settings with what `override` says over them."""
        told = SessionSettings.of(override)
        changes = {one.name: value for one in fields(told) if (value := getattr(told, one.name)) is not None}
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as JSON data."""
        return asdict(self)

    @classmethod
    def of(cls, settings: SessionSettings | Mapping[str, Any] | None) -> SessionSettings:
        """Return settings that may be given as a mapping; None has none. Raises UserError for an unknown key."""
        if settings is None or isinstance(settings, SessionSettings):
            return settings or cls()
        names = {one.name for one in fields(cls)}
        unknown = sorted(set(settings) - names)
        if unknown:
            raise UserError(f"session settings have no {', '.join(unknown)}; they have: {', '.join(sorted(names))}")
        return cls(**settings)

    def limited(self, limit: int | None) -> int | None:
        """Return `limit`, checked, or these settings' where there is none; at most as many as there can be."""
        most = self.limit if limit is None else SessionSettings(limit).limit
        return most if most is None else min(most, sys.maxsize)
