"""One request and its answer: attempts, until the head and what follows it can be handed out; then the rest.

    chat request -> backend -> handler -> restorer -> events | response

An attempt that fails before its first item is invisible and may be repeated. Afterwards nothing is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from antiphon.backend import Backend, Timeout, close, request_id_of
from antiphon.errors import BadAnswer
from antiphon.ids import IdsChoice
from antiphon.profile import Profile
from antiphon.request import ChatRequest, Restore
from antiphon.request.restore import TERMINALS
from antiphon.request.styles import OBJECTS, style_of
from antiphon.stream.accumulate import HEADS, is_json
from antiphon.stream.chunk import decode, fields, many
from antiphon.stream.emit import EventStyle, make_emitter
from antiphon.stream.handler import ChatCmplStreamHandler, of_body, of_chunks
from antiphon.stream.pull import Reader, apull

from .errors import failure
from .retrying import Retrying

# What is held until something else comes: the head, and the end of a response that failed before its first item.
HELD = frozenset({*HEADS, "error", "response.failed"})


class Attempt:
    """The events of one attempt, begun. `held`: those that are not handed out yet. `failure`: why there are no others."""

    def __init__(self, events: AsyncGenerator[Any, None], error: Callable[[], BaseException | None]) -> None:
        self.events, self.error = events, error
        self.held: list[Any] = []
        self.failure: BaseException | None = None

    async def begin(self) -> None:
        """Pull events until one comes that can be handed out, or the end."""
        async for event in self.events:
            self.held.append(event)
            if style_of(event).kind(event) not in HELD:
                return
        self.failure = self.error()


class EventStream:
    """The events of an answer, begun. Closing it, or cancelling who pulls it, closes the connection at once.

    `requests`: how many attempts were made. `request_id`: the provider's number of the last. `response`: the final response, a dict, once the last event was given.
    """

    def __init__(
        self,
        events: AsyncGenerator[Any, None],
        source: Any,
        requests: int,
        final: Callable[[], dict[str, Any] | None],
        request_id: str | None = None,
    ) -> None:
        self._events, self._source, self._final = events, source, final
        self.requests, self.request_id = requests, request_id

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
        told = self._told(attempt, raise_on_error)
        return EventStream(told, attempt.events, self.requests, self._final, request_id_of(self._answered))

    async def response(self, style: EventStyle = "openai", *, raise_on_error: bool = True) -> Any:
        """Return the response: an openai `Response`, or a dict. A failed one raises, or is returned as it is."""
        attempt = await self.retrying.run(lambda: self._attempt("dict", self._whole))
        async for _ in attempt.events:
            pass
        error = attempt.error()
        if error is not None and raise_on_error:
            raise error
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

    async def _told(self, attempt: Attempt, raise_on_error: bool) -> AsyncGenerator[Any, None]:
        renew = self._renewing()
        try:
            for event in attempt.held:
                for one in renew(event) if renew else (event,):
                    yield one
            async for event in attempt.events:
                if renew is None:
                    yield event
                    continue
                for one in renew(event):
                    yield one
        finally:
            await attempt.events.aclose()
        error = attempt.error()
        if error is not None and raise_on_error:
            raise error

    def _renewing(self) -> Callable[[Any], Iterable[Any]] | None:
        """Return what makes of an event what is handed out: it is restored, and in the last one the attempts are
        counted. None where all stay as they are."""
        feed = None if self.chat.restore.is_empty else self.chat.restore.start().feed
        if self.requests == 1 and request_id_of(self._answered) is None:
            return feed
        return lambda event: [self._noted(one) for one in (feed(event) if feed else (event,))]

    def _noted(self, event: Any) -> Any:
        """Return a terminal event with what is known of the requests; others as they are."""
        style = style_of(event)
        if style.kind(event) not in TERMINALS:
            return event
        if self.requests > 1:
            event = counted(event, self.requests)
        if style is OBJECTS:
            numbered(event.response, request_id_of(self._answered))
        return event

    def _final(self) -> dict[str, Any] | None:
        final = self._handler.final
        return None if final is None else with_requests(restored(final, self.chat.restore), self.requests)


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


def counted(event: Any, requests: int) -> Any:
    """Return a terminal event with the number of requests in its response's `provider_data`; others as they are."""
    style = style_of(event)
    if style.kind(event) not in TERMINALS:
        return event
    held = style.read(event)
    return style.write({**held, "response": with_requests(held["response"], requests)})


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


def restored(response: dict[str, Any], restore: Restore) -> dict[str, Any]:
    """Return the response with its items restored."""
    held: dict[str, Any] = restore.response(response)
    return held
