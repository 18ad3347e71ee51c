"""A session that is a list."""

from __future__ import annotations

import copy
from typing import Any


class ListSession:
    """Keeps items in memory, as copies; `saves` are the batches in which they came."""

    session_settings = None

    def __init__(self, items: list[Any] | None = None) -> None:
        self.session_id = "list"
        self.items: list[Any] = list(items or ())
        self.saves: list[int] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        kept = self.items if limit is None else self.items[len(self.items) - min(limit, len(self.items)) :]
        return copy.deepcopy(kept)

    async def add_items(self, items: list[Any]) -> None:
        self.items.extend(copy.deepcopy(items))
        self.saves.append(len(items))

    async def pop_item(self) -> Any:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()
