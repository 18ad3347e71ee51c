"""`Backend`: how chat chunks are got from a provider, and where backends come from.

A backend takes a Chat Completions request as a mapping and gives the answer: in pieces of an SSE body ("sse", which go
to `aconvert_sse`), as chunks ("chunks", which go to `aconvert`), or whole (which goes to `to_response`).

Beside it stands what all that reaches a server shares, backends and native models: clients for each event loop, connections
that are kept, what a body is by how it begins, and which error an SDK's becomes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from antiphon.errors import BackendNotFound, BadInput
from antiphon.near import listing

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "antiphon.backends"

Form: TypeAlias = Literal["sse", "chunks"]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds that a request may take; None is without limit.

    `connect`: to get a connection, from the pool or a new one. `first_byte`: from the call to the first byte of the
    answer's body. `idle`: between two pieces of the body; the time that the consumer takes does not count. `total`:
    from the call to the end. A backend on top of an SDK sees chunks, not bytes: it counts to the next chunk.
    """

    connect: float | None = 10.0
    first_byte: float | None = 600.0
    idle: float | None = 300.0
    total: float | None = None


# What a call takes: the settings, or the total alone.
Timeout: TypeAlias = Timeouts | float


class Stream(Protocol):
    """An answer in pieces, as async generators have it: it is pulled, and closed however that ends."""

    def __aiter__(self) -> AsyncIterator[Any]: ...

    async def __anext__(self) -> Any: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Backend(Protocol):
    """How to get chunks. `body` is the request as the Chat Completions API has it; `stream` in it is set by the call.

    What fails raises a `ProviderError` that holds no key: before the first piece, or in the middle of a stream.
    Cancelling the task that pulls a stream, or closing it (`aclose`), closes the connection at once.

    More may be there, and is used where it is: `stream` and `complete` that take `query`, parameters of the URL for one
    call; `request_id`, the provider's number of the request, on the stream and on the completion.
    """

    @property
    def form(self) -> Form:
        """What `stream` gives: pieces of an SSE body, cut anywhere, or chunks."""
        ...

    def stream(
        self, body: Mapping[str, Any], *, headers: Mapping[str, str] | None = None, timeout: Timeout | None = None
    ) -> Stream:
        """Return the answer in pieces. Nothing is sent before the first is asked for."""
        ...

    async def complete(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
    ) -> Any:
        """Return the whole answer, not streamed: a chat completion as an SDK's object, a dict, or its JSON text."""
        ...

    async def models(self) -> list[dict[str, Any]]:
        """Return the model objects that the provider lists, each with at least `id`; none if it cannot list any."""
        ...

    async def aclose(self) -> None:
        """Close what is kept open between requests, for the event loop that runs."""
        ...


def load_backend(name: str, **options: Any) -> Backend:
    """Return a new backend of the kind called `name`, from the entry-point group `antiphon.backends`.

    `options` are what it is made with: `base_url`, `api_key`, … Only this kind's module is imported. Raises
    BackendNotFound, which lists the known names, BadInput for an option that it does not have, ExtraMissing where its
    SDK is not installed.
    """
    kind = _kind(name)
    try:
        signature(kind).bind(**options)
    except TypeError as problem:
        raise BadInput(f"backend {name!r}: {problem}{_taken(kind, options)}") from None
    return kind(**options)


def takes_option(name: str, option: str) -> bool:
    """Return whether a backend of the kind called `name` can be made with `option`. Raises as `load_backend`."""
    parameters = signature(_kind(name)).parameters.values()
    return any(one.name == option or one.kind is one.VAR_KEYWORD for one in parameters)


class Answered(dict[str, Any]):
    """A whole completion, with the provider's number of the request; "" where it gives none."""

    __slots__ = ("request_id",)  # and no `__dict__`, which would be taken for an object's fields

    def __init__(self, completion: Mapping[str, Any], request_id: str | None) -> None:
        super().__init__(completion)
        self.request_id = request_id or ""


class Pieces:
    """A stream of pieces that has the provider's number of its request, once its first piece has come.

    Whoever pulls it with `async for` pulls the generator itself.
    """

    def __init__(self, pieces: AsyncGenerator[Any, None], request_id: Callable[[], str | None]) -> None:
        self._pieces, self._request_id = pieces, request_id

    @property
    def request_id(self) -> str | None:
        return self._request_id()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._pieces

    async def __anext__(self) -> Any:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        """Close the stream, and with it the connection."""
        await self._pieces.aclose()


def request_id_of(answered: Any) -> str | None:
    """Return the provider's number of the request that a stream or a completion answers, where it is known.

    A backend says it as `request_id` of what it gives; the OpenAI SDK has it as `_request_id` of a completion.
    """
    for name in ("request_id", "_request_id"):
        found = getattr(answered, name, None)
        if isinstance(found, str) and found:
            return found
    return None


def takes_query(backend: Backend) -> bool:
    """Return whether one call of the backend may have a query of its own, `query=…` of `stream` and `complete`."""
    return "query" in signature(backend.stream).parameters


async def begin(pieces: Stream) -> Stream:
    """Return the same stream once its first piece has come, so that what fails before that raises here.

    A stream that was begun must be pulled to its end, or closed.
    """
    try:
        first = [await anext(pieces)]
    except StopAsyncIteration:
        first = []
    return _Begun(first, pieces)


class _Begun:
    """A stream whose first piece was taken off it. No generator: one that was never pulled would close nothing."""

    def __init__(self, first: list[Any], rest: Stream) -> None:
        self._first, self._rest = first, rest

    def __aiter__(self) -> _Begun:
        return self

    async def __anext__(self) -> Any:
        return self._first.pop() if self._first else await anext(self._rest)

    async def aclose(self) -> None:
        await self._rest.aclose()


async def close(stream: Any) -> None:
    """Close a stream by the first way it has: `aclose` (generators), `close` (SDKs, with or without `await`)."""
    for name in ("aclose", "close"):
        way = getattr(stream, name, None)
        if callable(way):
            waiting = way()
            if isinstance(waiting, Awaitable):
                await waiting
            return


def _kind(name: str) -> Callable[..., Backend]:
    points = _points()
    if name not in points:
        known = listing(name, sorted(points))
        raise BackendNotFound(f"no backend is called {name!r}{known}", "Give a `Backend` to use your own")
    kind: Callable[..., Backend] = points[name].load()
    return kind


def _taken(kind: Callable[..., Backend], given: Mapping[str, Any]) -> str:
    """Return how a message about options goes on: what a kind takes, and which of it is meant."""
    known = list(signature(kind).parameters)
    unknown = [one for one in given if one not in known]
    return listing(unknown[0] if unknown else "", known or ["no options"], "it takes")


@cache
def _points() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # costs 27 ms, and most conversions need no backend

    return {point.name: point for point in entry_points(group=GROUP)}
