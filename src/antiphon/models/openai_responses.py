"""`OpenAIResponsesModel`: requests to a server that speaks the Responses API itself, passed through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import openai
from openai import AsyncOpenAI

from antiphon.errors import AntiphonError, BadInput, ServerFailed
from antiphon.stream.accumulate import TERMINALS, plain
from antiphon.stream.chunk import fields
from antiphon.stream.faults import redact

from .checks import check_events, suite
from .defaults import default_openai_key
from .errors import failure_of_code
from .exchange import Attempt, EventStream, counted, with_requests
from .interface import Model, ModelResponse, ModelTracing
from .params import create_params
from .retry import ModelRetrySettings
from .retrying import Retrying
from .sdk_errors import typed
from .settings import ModelSettings

NO_KEY = "none"  # the SDK wants a key, also for servers that want none
OURS = frozenset({"provider_data", "parsed_arguments"})  # keys of items that the API refuses
CHAT_ONLY = frozenset({"frequency_penalty", "presence_penalty", "stream_options"})


class OpenAIResponsesModel(Model):
    """One model of a server that speaks the Responses API: requests and events pass as they are.

    `client`: one's own, never closed here; else one is made of `base_url`, `api_key` and `options`, which are those of
    `AsyncOpenAI`. It does not retry by itself: `retry` does. `check`: the events of each stream are held to the rules,
    and EventsBroken is raised after the last one where they break a MUST.
    """

    def __init__(
        self,
        model: str,
        client: AsyncOpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        retry: ModelRetrySettings | None = None,
        check: bool = False,
        **options: Any,
    ) -> None:
        if client is not None and (base_url is not None or api_key is not None or options):
            raise BadInput("a client that was made already takes no base_url, api_key or options")
        if check:
            suite()
        self.model = model
        self.retry = retry
        self._check = check
        self._given = client
        self._made: AsyncOpenAI | None = None
        self._base_url, self._key = base_url, api_key
        self._options: dict[str, Any] = {"max_retries": 0, **options}

    async def create(
        self,
        request: Any,
        *,
        stream: bool | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
        retry: ModelRetrySettings | None = None,
    ) -> Any:
        """Return the response, or, streamed, an `EventStream` of openai objects. Raises as `ChatCompletionsModel`."""
        held = {name: value for name, value in fields(request).items() if value is not None}
        streamed = bool(held.get("stream")) if stream is None else stream
        held |= {"model": held.get("model") or self.model, "stream": streamed}
        if headers:
            held["extra_headers"] = {**(held.get("extra_headers") or {}), **headers}
        if timeout is not None:
            held["timeout"] = timeout
        stored = (held.get("previous_response_id"), held.get("conversation"))
        settings = self.retry.resolve(retry) if self.retry else retry
        how: Retrying[_Asked] = Retrying(settings, self.get_retry_advice, streamed, *stored)
        return await self._answer(held, how)

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: Sequence[Any],
        output_schema: Any,
        handoffs: Sequence[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> ModelResponse:
        """Return the answer. Raises a ProviderError where it failed."""
        said = (system_instructions, input, model_settings, tools, output_schema, handoffs)
        params = create_params(
            *said, previous_response_id=previous_response_id, conversation_id=conversation_id, prompt=prompt
        )
        return ModelResponse.of(await self.create(_native(params, model_settings), retry=model_settings.retry))

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: Sequence[Any],
        output_schema: Any,
        handoffs: Sequence[Any],
        tracing: ModelTracing,
        *,
        previous_response_id: str | None = None,
        conversation_id: str | None = None,
        prompt: Any = None,
    ) -> AsyncIterator[Any]:
        """Yield the events as the server sends them. Raises where the answer failed, after its last event."""
        said = (system_instructions, input, model_settings, tools, output_schema, handoffs)
        params = create_params(
            *said, previous_response_id=previous_response_id, conversation_id=conversation_id, prompt=prompt
        )
        stream = await self.create(_native(params, model_settings), stream=True, retry=model_settings.retry)
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Close the client, unless it was given."""
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    # --- inside ------------------------------------------------------------------------------------------------

    async def _answer(self, request: Mapping[str, Any], how: Retrying[_Asked]) -> Any:
        requests = 0

        async def attempt() -> _Asked:
            nonlocal requests
            requests += 1
            asked = _Asked(self._client(), request)
            await asked.begin()
            return asked

        asked = await how.run(attempt)
        if asked.failure is not None:
            raise asked.failure
        if request["stream"]:
            events = asked.attempt.events
            return EventStream(self._told(asked, requests), events, requests, lambda: plain(asked.response))
        if requests > 1:
            data = with_requests({"provider_data": fields(asked.response).get("provider_data")}, requests)
            asked.response.provider_data = data["provider_data"]
        return asked.response

    async def _told(self, asked: _Asked, requests: int) -> AsyncGenerator[Any, None]:
        told = list(asked.attempt.held)
        async with aclosing(asked.attempt.events) as rest:
            for event in asked.attempt.held:
                yield event
            async for event in rest:
                if self._check:
                    told.append(event)
                yield event if requests == 1 else counted(event, requests)
        if asked.error is not None:
            raise asked.error
        if self._check:
            check_events(told)

    def _client(self) -> AsyncOpenAI:
        if self._given is not None:
            return self._given
        if self._made is None:
            key = self._key or default_openai_key() or (NO_KEY if self._base_url else None)
            try:
                self._made = AsyncOpenAI(base_url=self._base_url, api_key=key, **self._options)
            except openai.OpenAIError as problem:
                raise BadInput(f"the OpenAI SDK: {problem}") from None
        return self._made


class _Asked:
    """One attempt: the client is asked once, and `response` is what it answered, at the end."""

    def __init__(self, client: AsyncOpenAI, request: Mapping[str, Any]) -> None:
        self._client, self._request = client, request
        self.response: Any = None
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
        create: Callable[..., Any] = self._client.responses.create  # its overloads know no request that is a mapping
        try:
            answer = await create(**self._request)
            if not self._request["stream"]:
                self._take(answer)
                return
            async with answer as stream:
                async for event in stream:
                    if event.type in TERMINALS:
                        self._take(event.response)
                    yield event
        except openai.OpenAIError as error:
            self.error = typed(error)
        if self.error is None and self.response is None:
            self.error = ServerFailed("the stream ended without a terminal event")

    def _take(self, response: Any) -> None:
        self.response = response
        if response.status == "failed":
            error = fields(response.error)
            self.error = failure_of_code(str(error.get("code")), redact(str(error.get("message"))))


def _native(params: Mapping[str, Any], settings: ModelSettings) -> dict[str, Any]:
    """Return create parameters as the SDK takes them: without what only chat has, items with the API's own keys."""
    held = {name: value for name, value in params.items() if name not in CHAT_ONLY}
    if not isinstance(held["input"], str):
        held["input"] = [{key: value for key, value in item.items() if key not in OURS} for item in held["input"]]
    transport = {
        "extra_headers": settings.extra_headers,
        "extra_query": settings.extra_query,
        "timeout": settings.timeout,
    }
    return held | {name: value for name, value in transport.items() if value is not None}
