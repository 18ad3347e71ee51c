"""What the backends on top of an SDK have in common: chunks in time, whatever is raised typed, the stream closed."""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import anyio

from antiphon.backend import Form, Pieces, Timeout, Timeouts, close
from antiphon.errors import AntiphonError, Stage
from antiphon.stream.chunk import fields, plain

from .completion import completion_of_stream, is_stream
from .concealing import Hide, secret_values
from .failures import (
    failure_of_answer,
    failure_of_error,
    failure_of_page,
    reports_error,
    request_id_in,
)
from .pace import Pace, settled
from .shared import key_of, without_credentials

T = TypeVar("T")


class SDKBackend(ABC):
    """A backend on top of an SDK; the child says how that is asked.

    `api_key`, or the environment variable that `api_key_env` names; what the SDK finds by itself if neither is given.
    `headers` and `body` go out with each request that has no such header or key itself. Of the times, `connect` is
    left to the SDK where nothing else is said, and `idle` runs from chunk to chunk.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        api_key_env: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        timeout: Timeout | None = None,
    ) -> None:
        self._base_url, self._shown = base_url, without_credentials(base_url)
        self._key = key_of(api_key, api_key_env)
        self._headers, self._body = dict(headers or {}), dict(body or {})
        self._timeouts = settled(Timeouts(), timeout)
        self._secrets: tuple[str | None, ...] = (self._key, *secret_values(headers))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown!r})"

    @property
    def form(self) -> Form:
        """Chunk objects of the SDK."""
        return "chunks"

    def stream(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> Pieces:
        """Return the SDK's chunks. Where it gives a whole completion instead, that is the only one."""
        answered: list[Any] = []
        pieces = self._pieces({**body, "stream": True}, headers, timeout, query, answered)
        return Pieces(pieces, lambda: request_id_in_sdk(answered[0]) if answered else None)

    async def complete(
        self,
        body: Mapping[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        timeout: Timeout | None = None,  # noqa: ASYNC109
        query: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the SDK's completion object."""
        call = self._call(headers, timeout, query)
        asked = {key: value for key, value in {**self._body, **body}.items() if key not in ("stream", "stream_options")}
        try:
            completion = await call.wait(self._ask(with_query(asked, query), self._with(headers), call.times))
        finally:
            call.pace.stop()
        return numbered(call.checked(completion))

    async def models(self) -> list[dict[str, Any]]:
        """Return the model objects that the provider lists."""
        call = Call(self._secrets, self._timeouts)
        try:
            return [dict(fields(one)) for one in await call.wait(self._list())]
        finally:
            call.pace.stop()

    async def _pieces(
        self,
        body: Mapping[str, Any],
        headers: Mapping[str, str] | None,
        timeout: Timeout | None,  # noqa: ASYNC109
        query: Mapping[str, Any] | None,
        answered: list[Any],
    ) -> AsyncGenerator[Any, None]:
        call = self._call(headers, timeout, query)
        try:
            asked = with_query({**self._body, **body}, query)
            stream = await call.wait(self._ask(asked, self._with(headers), call.times))
            answered.append(stream)
            if not hasattr(stream, "__aiter__"):
                yield call.checked(stream)
                return
            async with aclosing(self._pulled(call, stream)) as chunks:
                async for chunk in chunks:
                    yield chunk
        finally:
            call.pace.stop()

    async def _pulled(self, call: Call, stream: Any) -> AsyncGenerator[Any, None]:
        """Yield what an SDK's stream gives, in time, and close it."""
        try:
            pieces, ended = aiter(stream), object()
            while (one := await call.wait(anext(pieces, ended))) is not ended:
                call.stage = "idle"
                yield one if getattr(one, "choices", None) else call.concealed(one)
        finally:
            call.pace.stop()
            with anyio.CancelScope(shield=True):
                await close(stream)

    def _call(
        self, headers: Mapping[str, str] | None, timeout: Timeout | None, query: Mapping[str, Any] | None
    ) -> Call:
        secrets = (*self._secrets, *secret_values(headers), *secret_values(query))
        return Call(secrets, settled(self._timeouts, timeout))

    def _with(self, headers: Mapping[str, str] | None) -> dict[str, str]:
        return {**self._headers, **(headers or {})}

    @abstractmethod
    async def _ask(self, body: dict[str, Any], headers: dict[str, str], times: Timeouts) -> Any:
        """Return what the SDK answers: its stream if the body has `stream`, else a completion.

        `extra_query` in the body are parameters of the URL.
        """

    @abstractmethod
    async def _list(self) -> list[Any]:
        """Return the SDK's model objects."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what the SDK keeps open, for the event loop that runs."""


class Call:
    """One call of an SDK: its clock, what is waited for, and what must not be said."""

    def __init__(self, secrets: tuple[str | None, ...], times: Timeouts) -> None:
        self.times = times
        self.pace = Pace(times)
        self.stage: Stage = "first_byte"
        self._hide = Hide(secrets)

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Return what the SDK answers, in time. Whatever it raises becomes a `ProviderError`."""
        outer = sys.exception()
        wait = self.pace.first if self.stage == "first_byte" else self.pace.next
        try:
            return await wait(awaited)
        except AntiphonError:
            raise
        except Exception as error:  # noqa: BLE001  # SDKs raise what they like, also for what the provider sent
            failure = failure_of_error(error, self._hide, self.stage, outer)
        raise failure

    def concealed(self, chunk: Any) -> Any:
        """Return a chunk without choices, which may report an error; as plain data without secrets, if it holds any."""
        if not self._hide.secrets:
            return chunk
        try:
            said = json.dumps(plain(chunk), ensure_ascii=False, default=str)
        except (ValueError, RecursionError):  # no JSON: the handler says what is wrong with it
            return chunk
        hidden = self._hide.known(said)
        return chunk if hidden == said else json.loads(hidden)

    def checked(self, completion: Any) -> Any:
        """Return a whole answer. One that came as a stream all the same, which SDKs give as text, is put together.

        Raises what the answer says where it is none: SDKs take web pages and error objects for completions.
        """
        if isinstance(completion, str):
            return self._of_text(completion.encode())
        held = fields(completion)
        if held.get("choices"):
            return completion
        said = {key: plain(value) for key, value in held.items() if value not in (None, [])}
        if reports_error(said):
            raise failure_of_answer(200, {}, {"error": said["error"]} if "error" in said else said, self._hide)
        raise failure_of_page(200, {}, json.dumps(said, default=str).encode(), self._hide, "application/json")

    def _of_text(self, body: bytes) -> Any:
        if not is_stream(body):
            raise failure_of_page(200, {}, body, self._hide, "text")
        return completion_of_stream(body, self._hide)


def with_query(body: dict[str, Any], query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the body with the query under the name that the SDKs have for it."""
    return {**body, "extra_query": dict(query)} if query else body


def request_id_in_sdk(answer: Any) -> str | None:
    """Return the provider's number of the request, where an SDK has it: with the answer's headers, or by name."""
    for holder in (answer, getattr(answer, "response", None), getattr(answer, "_stream", None)):
        named = getattr(holder, "_request_id", None)
        if isinstance(named, str) and named:
            return named
        for headers in (getattr(holder, "headers", None), getattr(holder, "_response_headers", None)):
            if isinstance(headers, Mapping):
                held: Mapping[str, str] = {str(name).lower(): str(one) for name, one in headers.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
                if found := request_id_in(held):
                    return found
    return None


def numbered(completion: Any) -> Any:
    """Return the completion with the provider's number of the request where it is looked for."""
    found = request_id_in_sdk(completion)
    if found and getattr(completion, "_request_id", None) != found:
        with suppress(AttributeError, ValueError):  # an SDK's object that takes no further field
            completion._request_id = found
    return completion
