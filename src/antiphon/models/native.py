"""One attempt at a server that speaks the Responses API: its events as they are, or repaired."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, TypeAlias

import httpx2
import openai
from openai import AsyncStream
from openai.types.responses import Response
from pydantic import ValidationError

from antiphon.backend import close, request_id_of
from antiphon.concealing import Hide, concealed
from antiphon.errors import AntiphonError, BadAnswer, ConnectionFailed, ServerFailed, TimedOut
from antiphon.stream.accumulate import HEADS, TERMINALS
from antiphon.stream.chunk import fields, is_object, plain, word
from antiphon.stream.native import Repairer
from antiphon.stream.objects import CLASSES

from .begun import Begun, begins_events
from .errors import failure_of_code
from .exchange import Attempt, numbered
from .sdk_errors import typed

Secrets: TypeAlias = Callable[[], Iterable[str | None]]
Ask: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]  # gives events if `stream` is set, else a response

# what the SDK raises: its own errors, and of a stream that has begun those of its HTTP client and of its JSON reader
RAISED = (
    *(AntiphonError, openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError),
    *(OSError, ValueError, RecursionError),
)
EXCERPT = 300  # characters of a body that an error tells of
# Events that say what the model said; all others may report an error.
SPOKEN = CLASSES.keys() - {"error", *HEADS, *TERMINALS}
CUT = "the stream ended without a terminal event"


class Asked:
    """One attempt: the client is asked once, and `response` is what it answered, at the end. `request_id`: its number.

    `secrets`: gives what no error and no event may say, once the client was asked.
    """

    def __init__(self, ask: Ask, request: Mapping[str, Any], repair: bool, secrets: Secrets) -> None:
        self._ask, self._request, self._repair, self._secrets = ask, request, repair, secrets
        self.response: Any = None
        self.request_id: str | None = None
        self.error: AntiphonError | None = None
        self.attempt = Attempt(self._events(), lambda: self.error)

    @property
    def failure(self) -> BaseException | None:
        """Why nothing was handed out."""
        return self.attempt.failure

    async def begin(self) -> None:
        """Ask; of a stream, pull what can be handed out, of a response all."""
        await self.attempt.begin()

    @cached_property
    def _hide(self) -> Hide:
        return Hide(self._secrets())

    async def _events(self) -> AsyncGenerator[Any, None]:
        try:
            answer: Any = await self._ask(self._request)
        except RAISED as error:
            self.error = typed_raised(error, self._hide)
            return
        if not self._request["stream"]:
            self._take_whole(answer)
            return
        if isinstance(answer, AsyncStream):
            self.request_id = answer.response.headers.get("x-request-id")
            self.error = await self._no_stream(answer)  # pyright: ignore[reportUnknownArgumentType]
            if self.error is not None:
                return
        pulled = self._repaired(answer) if self._repair else self._passed(answer)
        try:
            async for event in pulled:
                if event.type in TERMINALS:
                    self._take(event.response)
                yield event
        finally:
            await pulled.aclose()
            await close(answer)
        if self.error is None and self.response is None:
            self.error = ServerFailed(CUT)

    async def _no_stream(self, answer: Any) -> AntiphonError | None:
        """Return the error for an answer whose body is no stream; what was read of a stream is put back."""
        http = answer.response
        kind = http.headers.get("content-type", "").lower()
        body = Begun(http)
        try:
            begun = await body.beginning()
            if begins_events(begun) or (not begun.strip() and "event-stream" in kind):
                answer.response = body.response()
                return None
            whole = await body.read()
        except RAISED as error:
            return typed_raised(error, self._hide)
        said = self._hide(whole.decode("utf-8", "replace").strip())[:EXCERPT]
        came = kind or "no content type"
        return BadAnswer(f"the server sent {came} and no stream: {said!r}", status_code=http.status_code)

    async def _passed(self, answer: Any) -> AsyncGenerator[Any, None]:
        try:
            async for event in answer:
                if not isinstance(getattr(event, "type", None), str):
                    said = self._hide(str(event))[:60]
                    raise BadAnswer(f"the server sent an event without a type: {said!r}")
                yield self._concealed(event)
        except RAISED as error:
            self.error = typed_raised(error, self._hide)

    async def _repaired(self, answer: Any) -> AsyncGenerator[Any, None]:
        repairer = Repairer(request=self._request)
        try:
            async for event in answer:
                for one in repairer.feed(self._concealed(event)):
                    yield as_object(one)
        except RAISED as error:
            self.error = typed_raised(error, self._hide)
            for one in repairer.fail(self.error):
                yield as_object(one)
            return
        for one in repairer.finish():
            yield as_object(one)

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
        self.error = BadAnswer(f"the server sent no response, but {came!r}: is the base URL right?")

    def _take(self, response: Any) -> None:
        self.response = numbered(response, self.request_id)
        if response.status == "failed" and self.error is None:
            error = fields(response.error)
            self.error = failure_of_code(self._hide(str(error.get("code"))), self._hide(str(error.get("message"))))

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
    model = CLASSES.get(word(event.get("type")), openai.BaseModel)
    try:
        return model.model_validate(event)
    except ValidationError:  # a word that openai does not list, such as an error code: kept as it is
        return model.construct(**event)


def typed_raised(error: Exception, hide: Hide) -> AntiphonError:
    """Return what the SDK raised as one of ours."""
    if isinstance(error, AntiphonError):
        error.args = tuple(hide.known(one) if isinstance(one, str) else one for one in error.args)
        return error
    if isinstance(error, openai.OpenAIError):
        return typed(error, hide)
    said = hide(f"{type(error).__name__}: {error}")
    if isinstance(error, httpx2.TimeoutException):
        return TimedOut(f"the stream was silent too long ({said})", stage="idle")
    if isinstance(error, ValueError | RecursionError):
        return BadAnswer(f"the server sent what cannot be read: {said}")
    return ConnectionFailed(f"the connection to the server failed: {said}")
