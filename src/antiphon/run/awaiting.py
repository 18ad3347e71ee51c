"""Values that may have to be awaited: what callers' functions return, be they sync or async."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")
MaybeAwaitable: TypeAlias = Awaitable[T] | T


async def settled(value: MaybeAwaitable[T]) -> T:
    """Return `value`, awaited if it must be."""
    given: Any = value
    result: T = await given if inspect.isawaitable(given) else given
    return result


async def is_on(switch: Any, context: Any, agent: Any) -> bool:
    """Return what an `is_enabled` says, a bool or a sync or async callable of context and agent."""
    return bool(await settled(switch(context, agent)) if callable(switch) else switch)
