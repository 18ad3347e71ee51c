"""One attempt at a server that speaks the Responses API: its events as they are, or repaired."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from openai import AsyncStream, BaseModel
from openai.types.responses import Response
from pydantic import ValidationError

from antiphon.backend import close, request_id_of
from antiphon.backend.begun import Begun, begins_events
from antiphon.backend.sdk_errors import EXCERPT, RAISED, reported, typed
from antiphon.concealing import Hide, concealed
from antiphon.errors import AntiphonError, BadAnswer, ServerFailed, TimedOut
from antiphon.stream.accumulate import HEADS, TERMINALS
from antiphon.stream.chunk import fields, is_object, plain, word
from antiphon.stream.native import Repairer
from antiphon.stream.objects import CLASSES

from .exchange import Attempt, numbered

T = TypeVar("T")

Secrets: TypeAlias = Callable[[], Iterable[str | None]]
Ask: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]  # gives events if `stream` is set, else a response

# Events that say what the model said; all others may report an error.
SPOKEN = CLASSES.keys() - {"error", *HEADS, *TERMINALS}


class Asked(Attempt):
    """One attempt: the client is asked once, and `response` is what it answered, at the end. `request_id`: its number.

    `secrets`: gives what no error and no event may say, once the client was asked.
    """

    def __init__(self, ask: Ask, request: Mapping[str, Any], repair: bool, secrets: Secrets) -> None:
        super().__init__(self._events(), lambda: self._error)
        self._ask, self._request, self._repair, self._secrets = ask, request, repair, secrets
        self.response: Any = None
        self.request_id: str | None = None
        self._error: AntiphonError | None = None
        self._limit: Any = request.get("timeout")  # seconds, or an object of the SDK's HTTP client, which sees to it
        self._deadline: float | None = None

    @cached_property
    def _hide(self) -> Hide:
        return Hide(self._secrets())

    async def _events(self) -> AsyncGenerator[Any, None]:
        if isinstance(self._limit, int | float):
            self._deadline = asyncio.get_running_loop().time() + self._limit
        try:
            answer: Any = await self._in_time(self._ask(self._request))
            if isinstance(answer, AsyncStream):
                await self._look_at(answer)  # pyright: ignore[reportUnknownArgumentType]
        except RAISED as error:
            self._error = typed(error, self._hide)
            return
        if not self._request["stream"]:
            self._take_whole(answer)
            return
        cut: AntiphonError = ServerFailed("the stream ended without a terminal event")
        try:
            async with aclosing(self._read(answer)) as pulled:
                async for event in pulled:
                    if event.type in TERMINALS:
                        self._take(event.response)
                    elif event.type == "error":  # many servers say nothing more
                        cut = reported(plain(event), self._hide)
                    yield event
        finally:
            await close(answer)
        if self._error is None and self.response is None:
            self._error = cut

    async def _look_at(self, answer: Any) -> None:
        """Look at the body of a stream; what was read of it is put back. Raises BadAnswer for a body that is none."""
        http = answer.response
        self.request_id = http.headers.get("x-request-id")
        kind = http.headers.get("content-type", "").lower()
        body = Begun(http)
        begun = await self._in_time(body.beginning())
        if begins_events(begun) or (not begun.strip() and "event-stream" in kind):
            answer.response = body.response()
            return
        whole = await self._in_time(body.read())
        said = self._hide(whole.decode("utf-8", "replace").strip())[:EXCERPT]
        came = kind or "no content type"
        raise BadAnswer(f"the server sent {came} and no stream: {said!r}", status_code=http.status_code)

    async def _read(self, answer: Any) -> AsyncGenerator[Any, None]:
        """Yield the events of a stream, repaired where that is wanted."""
        repairer = Repairer(request=self._request) if self._repair else None
        broken: AntiphonError | None = None
        try:
            async for event in answer if self._deadline is None else self._timed(answer):
                if repairer is None:
                    yield self._concealed(self._typed(event))
                    continue
                for one in repairer.feed(self._concealed(event)):
                    yield as_object(one)
        except RAISED as error:
            self._error = broken = typed(error, self._hide)
        if repairer is not None:
            for one in repairer.finish() if broken is None else repairer.fail(broken):
                yield as_object(one)

    async def _timed(self, answer: Any) -> AsyncGenerator[Any, None]:
        """Yield the same events. Raises TimedOut while one is waited for."""
        events, end = aiter(answer), object()
        while (event := await self._in_time(anext(events, end))) is not end:
            yield event

    async def _in_time(self, waiting: Awaitable[T]) -> T:
        """Return what is waited for. Raises TimedOut where the attempt takes longer than it may, from its beginning."""
        clock = asyncio.timeout_at(self._deadline)
        try:
            async with clock:
                return await waiting
        except TimeoutError:
            if not clock.expired():
                raise
        raise TimedOut(f"the answer was not complete within {self._limit:g} s (timeout: total)", stage="total")

    def _typed(self, event: Any) -> Any:
        """Return the event. Raises BadAnswer where it has no type."""
        if isinstance(getattr(event, "type", None), str):
            return event
        raise BadAnswer(f"the server sent an event without a type: {self._hide(str(event))[:60]!r}")

    def _take_whole(self, answer: Any) -> None:
        """Take a response that was not streamed; a server that does not know the API answers something else."""
        held: dict[str, Any] = plain(answer) if is_object(answer) else {}
        if isinstance(held.get("output"), list):
            self.request_id = request_id_of(answer)
            error = concealed(held.get("error"), self._hide)
            if error != held.get("error"):
                held = {**held, "error": error}
                answer = Response.construct(**held)
            self._take(repaired(held, self._request) if self._repair else answer)
            return
        came = self._hide(str(held.get("error") or answer))[:EXCERPT]
        self._error = BadAnswer(f"the server sent no response, but {came!r}: is the base URL right?")

    def _take(self, response: Any) -> None:
        self.response = numbered(response, self.request_id)
        if response.status == "failed" and self._error is None:
            self._error = reported(plain(response), self._hide)

    def _concealed(self, event: Any) -> Any:
        """Return the event without secrets in the error that it reports, and of an unknown type in all that it says.

        What the model said stays as it is: a key may be a plain word, as some servers want it.
        """
        if word(getattr(event, "type", None)) in SPOKEN or not is_object(event):
            return event
        held: dict[str, Any] = plain(event)
        if held.get("type") not in CLASSES:
            told = concealed(held, self._hide.known)
        elif held["type"] == "error":
            told = concealed(held, self._hide)
        else:
            response = fields(held.get("response"))
            error = concealed(response.get("error"), self._hide)
            told = {**held, "response": {**response, "error": error}} if error else held
        return event if told == held else as_object(told)


def repaired(response: dict[str, Any], request: Mapping[str, Any]) -> Response:
    """Return a response that was not streamed, whole: as the same answer, streamed and repaired, would end."""
    status = word(response.get("status"))
    terminal = f"response.{status}" if f"response.{status}" in TERMINALS else "response.completed"
    repairer = Repairer(request=request)
    repairer.feed({"type": "response.created", "response": response})
    made: Response = as_object(repairer.feed({"type": terminal, "response": response})[-1]).response
    return made


def as_object(event: dict[str, Any]) -> Any:
    """Return an event as openai's object; one of a type that openai does not know as an object of the same fields."""
    model = CLASSES.get(word(event.get("type")), BaseModel)
    try:
        return model.model_validate(event)
    except ValidationError:  # a word that openai does not list, such as an error code: kept as it is
        return model.construct(**event)
