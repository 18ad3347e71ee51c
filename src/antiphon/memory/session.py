"""`Session`: where a run reads what was said before and keeps what it adds."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from antiphon.exceptions import UserError
from antiphon.run.reading import is_dict
from antiphon.stream.chunk import plain

from .settings import SessionSettings

T = TypeVar("T")
Item: TypeAlias = dict[str, Any]


@runtime_checkable
class Session(Protocol):
    """What a run needs of a session. Items are input items of the Responses API, oldest first."""

    session_id: str
    session_settings: SessionSettings | None = None

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the latest `limit` items, or all, in order."""
        ...

    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, all or none."""
        ...

    async def pop_item(self) -> Any | None:
        """Remove and return the latest item; None where there is none."""
        ...

    async def clear_session(self) -> None:
        """Remove all items."""
        ...


class SessionABC(ABC):
    """The base of antiphon's own sessions; others may just have the methods of `Session`."""

    session_id: str
    session_settings: SessionSettings | None = None

    @abstractmethod
    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the latest `limit` items, or all, in order."""

    @abstractmethod
    async def add_items(self, items: list[Any]) -> None:
        """Add items at the end, all or none."""

    @abstractmethod
    async def pop_item(self) -> Any | None:
        """Remove and return the latest item; None where there is none."""

    @abstractmethod
    async def clear_session(self) -> None:
        """Remove all items."""


@runtime_checkable
class Replaces(Protocol):
    """A session whose oldest items can be replaced in one step, as compaction does."""

    async def replace_oldest(self, old: list[Any], new: list[Any]) -> bool:
        """Put `new` in the place of `old`. Returns False, and changes nothing, where they are not the oldest items."""
        ...


def written(items: Iterable[Any]) -> list[str]:
    """Return items as JSON texts. ASCII alone: half a character would be refused by a database.

    Raises UserError where one is no item: it could not be read again.
    """
    kind: type[Any] = type(items)
    if issubclass(kind, str | bytes | dict):
        raise UserError(f"a session is given {kind.__name__}: a list of items is expected")
    return [_written(item, place) for place, item in enumerate(items)]


def _written(item: Any, place: int) -> str:
    held = plain(item)
    if not is_dict(held):
        raise UserError(
            f"items[{place}] of a session is {type(item).__name__}: an item is a mapping, such as "
            '{"role": "user", "content": "…"}'
        )
    return json.dumps(held, separators=(",", ":"))


def read(text: Any) -> Item | None:
    """Return the item in a JSON text, or in its UTF-8; None where there is none, because it was spoilt."""
    try:
        found: Any = json.loads(text.decode() if isinstance(text, bytes) else text)
    except (TypeError, ValueError, RecursionError):
        return None
    return found if is_dict(found) else None


async def finished(work: Awaitable[T]) -> T:
    """Return what `work` returns. Who awaits it may be cancelled: that is raised once the work has ended.

    So nothing is written behind the back of what comes next.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait({task})
        raise
