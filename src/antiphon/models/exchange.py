"""One request and its answer: attempts, until the head and what follows it can be handed out; then the rest.

    chat request -> backend -> handler -> restorer -> events | response

An attempt that fails before its first item is invisible and may be repeated. Afterwards nothing is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from antiphon.backend import Backend, Timeout, close, request_id_of
from antiphon.backend.failed import failure
from antiphon.errors import BadAnswer
from antiphon.ids import IdsChoice
from antiphon.profile import Profile
from antiphon.request import ChatRequest
from antiphon.request.styles import OBJECTS, style_of
from antiphon.stream.accumulate import HEADS, TERMINALS, is_json
from antiphon.stream.chunk import decode, fields, many
from antiphon.stream.emit import EventStyle, make_emitter
from antiphon.stream.handler import ChatCmplStreamHandler, of_body, of_chunks
from antiphon.stream.pull import Reader, apull

from .retrying import Retrying

# What is held until something else comes: the head, and the end of a response that failed before its first item.
HELD = frozenset({*HEADS, "error", "response.failed"})

Renew: TypeAlias = Callable[[Any], Iterable[Any]]  # what is handed out of an event


class Attempt:
    """The events of one attempt. `held`: those that came by `begin`. `failure`: why there are no others.

    `error`: gives what the response failed with, once its events have ended.
    """

    def __init__(self, events: AsyncGenerator[Any, None], error: Callable[[], BaseException | None]) -> None:
        self.events, self.error = events, error
        self.held: list[Any] = []
        self.failure: BaseException | None = None

    async def begin(self) -> None:
        """Pull events until one comes that can be handed out, or the end."""
        if not await begins(self.events, self.held):
            self.failure = self.error()

    async def told(self, renew: Renew | None = None, raise_on_error: bool = True) -> AsyncGenerator[Any, None]:
        """Yield all events, or what `renew` makes of each, then raise what the response failed with.

        They are closed however that ends.
        """
        async with aclosing(self.events) as rest:
            for event in self.held:
                for one in renew(event) if renew else (event,):
                    yield one
            async for event in rest:
                if renew is None:
                    yield event
                    continue
                for one in renew(event):
                    yield one
        error = self.error()
        if error is not None and raise_on_error:
            raise error


async def begins(events: AsyncIterator[Any], held: list[Any]) -> bool:
    """Pull events into `held`; return whether one of them can be handed out, or else all have come."""
    async for event in events:
        held.append(event)
        if style_of(event).kind(event) not in HELD:
            return True
    return False


@dataclass(eq=False, repr=False)
class EventStream:
    """The events of an answer, begun. Closing it, or cancelling who pulls it, closes the connection at once.

    `requests`: how many attempts were made. `request_id`: the provider's number of the last. `response`: the final
    response, a dict, once the last event was given.
    """

    _events: AsyncGenerator[Any, None]
    _source: Any
    requests: int
    _final: Callable[[], dict[str, Any] | None]
    request_id: str | None = None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._events

    async def __anext__(self) -> Any:
        return await anext(self._events)

    @property
    def response(self) -> dict[str, Any] | None:
        return self._final()

    async def aclose(self) -> None:
        """Close the connection. What was not pulled yet is lost."""
        await self._events.aclose()
        await close(self._source)


@dataclass(slots=True)
class Exchange:
    """One request to one backend. It may be sent once, by `stream` or by `response`.

    `chat`: the request as it is sent, with the report of what is not in it. `echo`: the Responses request, which the
    snapshots repeat. `requests`: how many attempts were made so far. The rest is as for `ChatCompletionsModel`.
    """

    backend: Backend
    chat: ChatRequest
    echo: Mapping[str, Any]
    profile: Profile
    retrying: Retrying[Attempt]
    headers: Mapping[str, str] | None = None
    timeout: Timeout | None = None
    ids: IdsChoice = "random"
    created_at: int | None = None
    reasoning: Literal["summary", "text"] = "summary"
    strict: bool = False
    query: Mapping[str, Any] | None = None
    preserve_raw_usage: bool = False
    requests: int = field(default=0, init=False)
    _handler: ChatCmplStreamHandler = field(init=False, repr=False)
    _answered: Any = field(default=None, init=False, repr=False)  # the stream, or the completion

    async def stream(self, events: EventStyle = "openai", *, raise_on_error: bool = True) -> EventStream:
        """Return the events of the answer, once the first of them can be handed out.

        What fails before that raises here; what fails later, after `response.failed`. With `raise_on_error` False
        nothing of that raises: it is in the events alone.
        """
        attempt = await self.retrying.run(lambda: self._attempt(events, self._begun))
        if attempt.failure is not None and raise_on_error:
            raise attempt.failure
        told, request_id = attempt.told(self._renewing(), raise_on_error), request_id_of(self._answered)
        return EventStream(told, attempt.events, self.requests, self._final, request_id)

    async def response(self, style: EventStyle = "openai", *, raise_on_error: bool = True) -> Any:
        """Return the response: an openai `Response`, or a dict. A failed one raises, or is returned as it is."""
        attempt = await self.retrying.run(lambda: self._attempt("dict", self._whole))
        async for _ in attempt.told(raise_on_error=raise_on_error):
            pass
        return numbered(make_emitter(style).response(self._final() or {}), request_id_of(self._answered))

    # --- inside ------------------------------------------------------------------------------------------------

    async def _attempt(
        self, style: EventStyle, ask: Callable[[ChatCmplStreamHandler], AsyncGenerator[Any, None]]
    ) -> Attempt:
        self.requests += 1
        handler = self._handler = ChatCmplStreamHandler(
            self.profile,
            request=self.echo,
            ids=self.ids,
            created_at=self.created_at,
            events=style,
            reasoning=self.reasoning,
            strict=self.strict,
            preserve_raw_usage=self.preserve_raw_usage,
        )
        attempt = Attempt(ask(handler), lambda: failed_by(handler))
        await attempt.begin()
        return attempt

    def _begun(self, handler: ChatCmplStreamHandler) -> AsyncGenerator[Any, None]:
        pieces = self._answered = self.backend.stream(self.chat.body, **self._transport())
        return apull(handler, of_body(handler) if self.backend.form == "sse" else of_chunks(handler), pieces)

    def _whole(self, handler: ChatCmplStreamHandler) -> AsyncGenerator[Any, None]:
        async def completion() -> AsyncIterator[Any]:
            self._answered = await self.backend.complete(self.chat.body, **self._transport())
            yield self._answered

        return apull(handler, Reader(_completing(handler), None), completion())

    def _transport(self) -> dict[str, Any]:
        said = {"headers": self.headers, "timeout": self.timeout}
        return said if self.query is None else {**said, "query": self.query}

    def _renewing(self) -> Renew | None:
        """Return what makes of an event what is handed out: it is restored, and the last one tells of the requests.
        None where all stay as they are."""
        feed = None if self.chat.restore.is_empty else self.chat.restore.start().feed
        requests, request_id = self.requests, request_id_of(self._answered)
        if requests == 1 and request_id is None:
            return feed
        if feed is None:
            return lambda event: (noted(event, requests, request_id),)
        return lambda event: [noted(one, requests, request_id) for one in feed(event)]

    def _final(self) -> dict[str, Any] | None:
        final = self._handler.final
        return None if final is None else with_requests(self.chat.restore.response(final), self.requests)


def _completing(handler: ChatCmplStreamHandler) -> Callable[[Any], list[Any]]:
    """Return what takes one whole completion, which ends the response."""

    def feed(completion: Any) -> list[Any]:
        held = decode(completion) if isinstance(completion, str | bytes) else completion
        events = handler.feed(held)
        if many(fields(held).get("choices")) or handler.error is not None:
            return events + handler.finish(done=True)
        came = ", ".join(sorted(str(key) for key, value in fields(held).items() if value)) or "nothing"
        return events + handler.fail(BadAnswer(f"the answer has no choices: it has {came}"))

    return feed


def failed_by(handler: ChatCmplStreamHandler) -> BaseException | None:
    """Return what made the response fail; None where it did not fail, or has not ended."""
    if handler.error is None or (handler.final or {}).get("status") != "failed":
        return None
    return failure(handler.error)


def noted(event: Any, requests: int, request_id: str | None = None) -> Any:
    """Return a terminal event whose response says how many requests it took, and, as an openai object, the provider's
    number of the last; others as they are."""
    style = style_of(event)
    if style.kind(event) not in TERMINALS:
        return event
    if style is OBJECTS:
        request_id = request_id or request_id_of(event.response)
    if requests > 1:
        held = style.read(event)
        event = style.write({**held, "response": with_requests(held["response"], requests)})
    if style is OBJECTS:
        numbered(event.response, request_id)
    return event


def numbered(response: Any, request_id: str | None) -> Any:
    """Return the response; an openai object gets the provider's number of the request, as the SDK has it."""
    if request_id is not None and not is_json(response):
        response._request_id = request_id
    return response


def with_requests(response: dict[str, Any], requests: int) -> dict[str, Any]:
    """Return a response that says how many requests it took, if that is more than one."""
    if requests == 1:
        return response
    return {**response, "provider_data": {**(response.get("provider_data") or {}), "requests": requests}}
