"""Waiting: for values that may have to be awaited, as callers' functions are sync or async; for several things at once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from typing import Any, TypeAlias, TypeVar

from antiphon.exceptions import UserError

T = TypeVar("T")
MaybeAwaitable: TypeAlias = Awaitable[T] | T


async def settled(value: MaybeAwaitable[T]) -> T:
    """Return `value`, awaited if it must be."""
    given: Any = value
    result: T = await given if inspect.isawaitable(given) else given
    return result


async def returned(given: Any, kind: type[T], what: str) -> T:
    """Return what a caller's function returned, awaited if it must be. Raises UserError where it is no `kind`."""
    found: Any = await settled(given)
    if not isinstance(found, kind):
        raise UserError(f"{what} returned {type(found).__name__}: a {kind.__name__} is expected")
    return found


async def is_on(switch: Any, context: Any, agent: Any) -> bool:
    """Return what an `is_enabled` says, a bool or a sync or async callable of context and agent."""
    return bool(await settled(switch(context, agent)) if callable(switch) else switch)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread; None where none does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def being_cancelled() -> bool:
    """Return whether somebody cancels the task that runs; else a cancellation is of what it runs itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def together(jobs: Sequence[Awaitable[T]]) -> list[T]:
    """Return what `jobs` return, in their order, all of them running at once.

    Where one fails, or the caller is cancelled, the others are cancelled and awaited first. Of several failures the
    first in the order of the jobs is raised; one that cancelled itself is a UserError, since nobody stopped the caller.
    """
    tasks = [asyncio.ensure_future(job) for job in jobs]
    failed: list[asyncio.Future[T]] = []
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks if task.done() and (task.cancelled() or task.exception() is not None)]
    finally:
        await _stopped(tasks)
    for task in failed:
        if task.cancelled():
            raise UserError("a tool, a guardrail or a hook of the run cancelled itself: it has to return or to raise")
        task.result()
    return [task.result() for task in tasks]


async def _stopped(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel what still runs, and wait for it, however often the caller is cancelled meanwhile."""
    running: list[asyncio.Future[Any]] = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while running:
        try:
            await asyncio.wait(running)
        except asyncio.CancelledError as error:
            cancelled = error
        running = [task for task in running if not task.done()]
    for task in tasks:
        if not task.cancelled():
            task.exception()  # marks it as seen: the first failure is raised, the others are not logged
    if cancelled is not None:
        raise cancelled
