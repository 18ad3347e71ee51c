"""One attempt at a server that speaks the Responses API: its events as they are, or repaired."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import httpx2
import openai
from openai import AsyncStream
from openai.types.responses import Response
from pydantic import ValidationError

from antiphon.backend import close, request_id_of
from antiphon.errors import AntiphonError, BadAnswer, ConnectionFailed, ServerFailed, TimedOut
from antiphon.stream.accumulate import TERMINALS
from antiphon.stream.chunk import fields, is_object, plain, word
from antiphon.stream.faults import redact
from antiphon.stream.native import Repairer
from antiphon.stream.objects import CLASSES

from .errors import failure_of_code
from .exchange import Attempt, numbered
from .sdk_errors import typed

Ask: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Any]]  # gives events if `stream` is set, else a response

# what the SDK raises: its own errors, and of a stream that has begun those of its HTTP client and of its JSON reader
RAISED = (
    *(AntiphonError, openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError),
    *(OSError, ValueError, RecursionError),
)
EXCERPT = 300  # bytes of a body that an error tells of
CUT = "the stream ended without a terminal event"


class Asked:
    """One attempt: the client is asked once, and `response` is what it answered, at the end. `request_id`: its number."""

    def __init__(self, ask: Ask, request: Mapping[str, Any], repair: bool) -> None:
        self._ask, self._request, self._repair = ask, request, repair
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

    async def _events(self) -> AsyncGenerator[Any, None]:
        try:
            answer: Any = await self._ask(self._request)
        except RAISED as error:
            self.error = typed_raised(error)
            return
        if not self._request["stream"]:
            self._take_whole(answer)
            return
        http = _http_answer(answer)
        if http is not None:
            self.request_id = http.headers.get("x-request-id")
            self.error = await _no_stream(http)
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

    async def _passed(self, answer: Any) -> AsyncGenerator[Any, None]:
        try:
            async for event in answer:
                if not isinstance(getattr(event, "type", None), str):
                    raise BadAnswer(redact(f"the server sent an event without a type: {str(event)[:60]!r}"))
                yield event
        except RAISED as error:
            self.error = typed_raised(error)

    async def _repaired(self, answer: Any) -> AsyncGenerator[Any, None]:
        repairer = Repairer(request=self._request)
        try:
            async for event in answer:
                for one in repairer.feed(event):
                    yield as_object(one)
        except RAISED as error:
            self.error = typed_raised(error)
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
            self._take(repaired(held, self._request) if self._repair else answer)
            return
        came = str(held.get("error") or answer)[:EXCERPT]
        self.error = BadAnswer(redact(f"the server sent no response, but {came!r}: is the base URL right?"))

    def _take(self, response: Any) -> None:
        self.response = numbered(response, self.request_id)
        if response.status == "failed" and self.error is None:
            error = fields(response.error)
            self.error = failure_of_code(str(error.get("code")), redact(str(error.get("message"))))


def _http_answer(answer: Any) -> httpx2.Response | None:
    """Return the HTTP answer under a stream of the OpenAI SDK; None for the streams of others."""
    return answer.response if isinstance(answer, AsyncStream) else None


async def _no_stream(http: httpx2.Response) -> AntiphonError | None:
    """Return the error for an answer whose content type says that it is no stream; the SDK would find no event in it."""
    kind = http.headers.get("content-type", "").lower()
    if "html" not in kind and "json" not in kind:
        return None
    try:
        body = await http.aread()
    except RAISED as error:
        return typed_raised(error)
    finally:
        await http.aclose()
    said = redact(body[:EXCERPT].decode("utf-8", "replace").strip())
    return BadAnswer(f"the server sent {kind} and no stream: {said!r}", status_code=http.status_code)


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
    model = CLASSES.get(event["type"], openai.BaseModel)
    try:
        return model.model_validate(event)
    except ValidationError:  # a word that openai does not list, such as an error code: kept as it is
        return model.construct(**event)


def typed_raised(error: Exception) -> AntiphonError:
    """Return what the SDK raised as one of ours."""
    if isinstance(error, AntiphonError):
        return error
    if isinstance(error, openai.OpenAIError):
        return typed(error)
    said = redact(f"{type(error).__name__}: {error}")
    if isinstance(error, httpx2.TimeoutException):
        return TimedOut(f"the stream was silent too long ({said})", stage="idle")
    if isinstance(error, ValueError | RecursionError):
        return BadAnswer(f"the server sent what cannot be read: {said}")
    return ConnectionFailed(f"the connection to the server failed: {said}")
