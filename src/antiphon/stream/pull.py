"""Pulls a source through a handler: the loops of the shells, and how a source is closed.

What the source raises ends the response; what our side or the consumer raises passes. The source is closed however the
loop is left.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from antiphon.errors import BadInput

from .emit import DictWriter
from .usual import Read, nothing

T = TypeVar("T")


class Route(NamedTuple):
    """Where usual chunks may go for now: what `read` finds in one, to `write`, which returns its event.

    Both return None for a chunk that has to go the long way.
    """

    read: Read
    write: Callable[[Any], Any]


NOWHERE = Route(nothing, nothing)
NO_PARTS: Any = (nothing, None, None, False)


class Handler(Protocol):
    """What a loop asks of a handler."""

    ended: bool
    error: BaseException | None

    def fail(self, error: BaseException) -> list[Any]: ...

    def finish(self) -> list[Any]: ...

    @property
    def final(self) -> dict[str, Any] | None: ...


class Reader(NamedTuple):
    """One way into a handler: `feed` takes any piece of the source, `route` the usual ones, until the next `feed`."""

    feed: Callable[[Any], list[Any]]
    route: Callable[[], Route] | None  # None: no piece is a usual chunk


def pull(handler: Handler, reader: Reader, source: Iterable[T], raise_on_error: bool = False) -> Iterator[Any]:
    """Yield the events of `source`, each before the next piece is pulled."""
    pieces = _iterator(source)
    ours: BaseException | None = None
    feed, route = reader.feed, reader.route
    read, write = NOWHERE if route is None else route()
    keep, blank, emitter, has_logprobs = _parts(write)
    try:
        try:
            for one in pieces:
                try:
                    said = read(one)
                    if said is not None:
                        if blank is None:
                            event = write(said)
                        else:  # as the writer does, without the call, which is a tenth of what such a chunk costs
                            keep(said)
                            event = blank()
                            event["sequence_number"] = number = emitter.number
                            event["delta"] = said
                            if has_logprobs:
                                event["logprobs"] = []
                            emitter.number = number + 1
                        if event is not None:
                            yield event
                            continue
                    yield from feed(one)
                    if handler.ended:
                        break
                    if route is not None:
                        read, write = route()
                        keep, blank, emitter, has_logprobs = _parts(write)
                except BaseException as error:
                    ours = error
                    raise
        except Exception as error:
            if error is ours:
                raise
            yield from handler.fail(error)  # whatever the source raises ends the response
        yield from handler.finish()
    finally:
        _close(source, pieces)
    if raise_on_error:
        raise_failure(handler)


def _parts(write: Callable[[Any], Any]) -> Any:
    """Return the parts of what writes dicts, and none of any other writer."""
    return write.parts if isinstance(write, DictWriter) else NO_PARTS


async def apull(
    handler: Handler, reader: Reader, source: AsyncIterable[T] | Iterable[T], raise_on_error: bool = False
) -> AsyncGenerator[Any, None]:
    """Yield the events of an async source (or a plain one). As `pull` in all else."""
    if not isinstance(source, AsyncIterable):
        for event in pull(handler, reader, source, raise_on_error):
            yield event
        return
    pieces = source.__aiter__()
    ours: BaseException | None = None
    feed, route = reader.feed, reader.route
    read, write = NOWHERE if route is None else route()
    try:
        try:
            async for one in pieces:
                try:
                    said = read(one)
                    if said is not None:
                        event = write(said)
                        if event is not None:
                            yield event
                            continue
                    for event in feed(one):
                        yield event
                    if handler.ended:
                        break
                    if route is not None:
                        read, write = route()
                except BaseException as error:
                    ours = error
                    raise
        except Exception as error:
            if error is ours:
                raise
            for event in handler.fail(error):  # whatever the source raises ends the response
                yield event
        for event in handler.finish():
            yield event
    finally:
        await _aclose(source, pieces)
    if raise_on_error:
        raise_failure(handler)


def raise_failure(handler: Handler) -> None:
    """Raise what made the response fail, if it did."""
    if handler.error is not None and (handler.final or {}).get("status") == "failed":
        raise handler.error


def _close(source: Any, pieces: Any) -> None:
    """Close a source. That it cannot be closed is no fault of the response, and is only logged."""
    close = getattr(source, "close", None) or getattr(pieces, "close", None)
    if callable(close):
        try:
            close()
        except Exception:  # noqa: BLE001 -- of others, and too late to matter
            _log_unclosed()


def _log_unclosed() -> None:
    import logging

    logging.getLogger("antiphon").warning("the source of chunks could not be closed", exc_info=True)


async def _aclose(source: Any, pieces: Any) -> None:
    """Close an async source by the first way it has: `aclose` (generators), `close` (openai's streams)."""
    for holder, name in ((source, "aclose"), (source, "close"), (pieces, "aclose"), (pieces, "close")):
        close = getattr(holder, name, None)
        if callable(close):
            try:
                waiting = close()
                if isinstance(waiting, Awaitable):
                    await waiting
            except Exception:  # noqa: BLE001 -- of others, and too late to matter
                _log_unclosed()
            return


def _iterator(source: Iterable[T]) -> Iterator[T]:
    try:
        return iter(source)
    except TypeError:
        came = type(source).__name__
        raise BadInput(
            f"the source is of type {came}: it must be an iterable, or an async one for the async shells"
        ) from None
