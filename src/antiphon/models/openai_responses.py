"""`OpenAIResponsesModel`: requests to a server that speaks the Responses API itself, passed through."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from openai import AsyncOpenAI

from antiphon.backend.per_loop import PerLoop
from antiphon.backend.sdk_client import sdk_client
from antiphon.concealing import secret_values
from antiphon.errors import BadInput, BadRequest
from antiphon.request import Change
from antiphon.request.report import REFUSED
from antiphon.stream.accumulate import plain
from antiphon.stream.chunk import fields

from .call import CallModel, ModelCall
from .checks import check_events, suite
from .defaults import default_openai_key
from .exchange import EventStream, noted, with_requests
from .interface import ModelResponse
from .native import Asked
from .native_input import may_open, native_input, refuses_seals
from .retry import ModelRetrySettings
from .retrying import Retrying
from .settings import ModelSettings

CHAT_ONLY = frozenset({"frequency_penalty", "presence_penalty", "stream_options"})


class OpenAIResponsesModel(CallModel):
    """One model of a server that speaks the Responses API: requests and events pass as they are.

    `client`: one's own, never closed here; else one is made of `base_url`, `api_key` and `options`, which are those of
    `AsyncOpenAI`. It does not retry by itself: `retry` does. `check`: the events of each stream are held to the rules,
    and EventsBroken is raised after the last one where they break a MUST. `repair`: streams and responses of servers
    that deviate come in the canonical form, with all that the server says; `check` then looks at what comes out.

    A history of a chat backend goes without the ids that no server gave, and without its reasoning: what is left out
    is logged on "antiphon", and `native_input` tells it beforehand. Reasoning that antiphon's gateway sealed goes to
    servers other than OpenAI's, once more without it to one that refuses it, and from then on never.
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
        repair: bool = False,
        **options: Any,
    ) -> None:
        if client is not None and (base_url is not None or api_key is not None or options):
            raise BadInput("a client that was made already takes no base_url, api_key or options")
        if check:
            suite()
        self.model = model
        self.retry = retry
        self._check, self._repair = check, repair
        self._opens: bool | None = None  # whether the server may open what antiphon sealed
        self._given = client
        self._made: AsyncOpenAI | None = None  # the last of `_clients`
        self._clients = PerLoop(self._connect, lambda client: client.close())
        self._base_url, self._key = base_url, api_key
        self._options = options

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
        if self._opens is None:
            self._opens = may_open(self._server())
        held["input"], report = native_input(held.get("input", ""), opens=self._opens)
        self._tell(report)
        if headers:
            held["extra_headers"] = {**(held.get("extra_headers") or {}), **headers}
        if timeout is not None:
            held["timeout"] = timeout
        stored = (held.get("previous_response_id"), held.get("conversation"))
        settings = self.retry.resolve(retry) if self.retry else retry
        how: Retrying[Asked] = Retrying(settings, self.get_retry_advice, streamed, *stored)
        try:
            return await self._answer(held, how)
        except BadRequest as refusal:
            unsealed, report = native_input(held["input"], opens=False)
            if not report or not refuses_seals(refusal):
                raise
        self._opens = False
        self._tell(report)
        return await self._answer({**held, "input": unsealed}, how, before=1)

    async def answer(self, call: ModelCall) -> ModelResponse:
        """Return the answer to a call. Raises a ProviderError where it failed."""
        settings = call.model_settings
        return ModelResponse.of(await self.create(_native(call.params(), settings), retry=settings.retry))

    async def events(self, call: ModelCall) -> AsyncGenerator[Any, None]:
        """Yield the events as the server sends them. Raises where the answer failed, after its last event."""
        settings = call.model_settings
        stream = await self.create(_native(call.params(), settings), stream=True, retry=settings.retry)
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Close the client of the event loop that runs, unless it was given. The next request makes a new one."""
        await self._clients.close()

    # --- inside ------------------------------------------------------------------------------------------------

    def _tell(self, report: Iterable[Change]) -> None:
        """Log what the server is not sent: a loss loudly, all else for those who look closely."""
        for change in report:
            level = logging.WARNING if change.kind in REFUSED else logging.DEBUG
            logging.getLogger("antiphon").log(level, "model %s: %s", self.model, change)

    async def _answer(self, request: Mapping[str, Any], how: Retrying[Asked], before: int = 0) -> Any:
        """Return the answer. `before`: how many requests were made already."""
        requests = before

        async def attempt() -> Asked:
            nonlocal requests
            requests += 1
            asked = Asked(self._ask, request, self._repair, lambda: self._secrets(request))
            await asked.begin()
            return asked

        asked = await how.run(attempt)
        if asked.failure is not None:
            raise asked.failure
        if request["stream"]:
            told = asked.told((lambda event: (noted(event, requests),)) if requests > 1 else None)
            told = _checked(told) if self._check else told
            return EventStream(told, asked.events, requests, lambda: plain(asked.response), asked.request_id)
        if requests > 1:
            data = with_requests({"provider_data": fields(asked.response).get("provider_data")}, requests)
            asked.response.provider_data = data["provider_data"]
        return asked.response

    async def _ask(self, request: Mapping[str, Any]) -> Any:
        create: Any = self._client().responses.create  # its overloads know no request that is a mapping
        return await create(**request)

    def _secrets(self, request: Mapping[str, Any]) -> Iterator[str | None]:
        """Yield what goes out with a request and may not come back: keys, and headers and parameters that are secret."""
        yield self._key
        for named in (request.get("extra_headers"), request.get("extra_query")):
            yield from secret_values(named)
        client = self._given or self._made
        if client is not None:
            yield client.api_key
            for named in (client.default_headers, client.default_query):
                yield from secret_values(named)

    def _server(self) -> str:
        """Return the URL of the server, "" where it is not known."""
        return str(self._client().base_url)

    def _client(self) -> AsyncOpenAI:
        return self._given or self._clients.get()

    def _connect(self) -> AsyncOpenAI:
        self._made = sdk_client(self._base_url, self._key or default_openai_key(), self._options)
        return self._made


async def _checked(events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    """Yield the events, then raise EventsBroken where they break the rules."""
    told: list[Any] = []
    async with aclosing(events):
        async for event in events:
            told.append(event)
            yield event
    check_events(told)


def _native(params: Mapping[str, Any], settings: ModelSettings) -> dict[str, Any]:
    """Return create parameters as the SDK takes them: without what only chat has."""
    held = {name: value for name, value in params.items() if name not in CHAT_ONLY}
    transport = {name: getattr(settings, name) for name in ("extra_headers", "extra_query", "timeout")}
    return held | {name: value for name, value in transport.items() if value is not None}
