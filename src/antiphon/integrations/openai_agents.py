"""Any backend under the Runner of the OpenAI Agents SDK: `AntiphonProvider` for a run, `AntiphonModel` for an agent.

The Runner gets canonical events. What fails before anything was handed out raises a ProviderError, so that the SDK's
own retry policies see it; later the Runner raises ModelBehaviorError at the `error` event, as for any model.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from antiphon.backend import Backend, load_backend, request_id_of
from antiphon.errors import AntiphonError, BadInput, ExtraMissing
from antiphon.models.call import ModelCall
from antiphon.models.chat import ChatCompletionsModel, choose_profile
from antiphon.models.defaults import get_default_model
from antiphon.models.exchange import Exchange
from antiphon.models.multi_provider import MultiProvider
from antiphon.models.retry import ModelRetrySettings, advise
from antiphon.models.settings import ModelSettings
from antiphon.models.usage import Usage
from antiphon.profile import Profile

try:
    from agents import GenerationSpanData, ModelBehaviorError, ModelResponse, Span
    from agents import Usage as AgentsUsage
    from agents.models.interface import Model, ModelProvider
    from agents.models.openai_responses import Converter
    from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest, ModelRetryNormalizedError
    from agents.tracing import generation_span
except ImportError as problem:
    raise ExtraMissing(
        f"this module needs the package 'agents' ({problem}): pip install 'antiphon[openai-agents]'",
        extra="openai-agents",
    ) from problem

from openai.types.responses import Response, ResponseCompletedEvent
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails

from .incomplete import Taker, may_be_taken, whole

Incomplete: TypeAlias = Literal["complete", "raise"]


class AntiphonModel(Model):
    """One model for an agent: `Agent(model=AntiphonModel("qwen3", base_url=…))`.

    Takes the name and the options of `ChatCompletionsModel`, or one that was made. `incomplete`: what becomes of an
    answer that was cut by its length or by a filter. "complete": with a text in it and no cut call, it is taken as it
    is; the response's `provider_data.incomplete_reason` says why. "raise": ModelBehaviorError. A cut call always raises.
    """

    def __init__(
        self, model: str | ChatCompletionsModel, *, incomplete: Incomplete = "complete", **options: Any
    ) -> None:
        if incomplete not in ("complete", "raise"):
            raise BadInput(f'incomplete is {incomplete!r}: it is "complete" or "raise"')
        if not isinstance(model, str) and options:
            raise BadInput(f"{', '.join(options)}: a model that was made already takes no options")
        self.chat = ChatCompletionsModel(model, **options) if isinstance(model, str) else model
        self._incomplete = incomplete

    async def get_response(self, *said: Any, **more: Any) -> ModelResponse:
        """Return the answer. Raises a ProviderError where it failed, ModelBehaviorError where it was cut."""
        call = called(*said, **more)
        with self._span(call) as span:
            response: Response = await self._exchange(call, stream=False).response()
            if response.status == "incomplete":
                if self._incomplete == "raise" or not may_be_taken(response):
                    raise ModelBehaviorError(f"the answer is incomplete: {response.incomplete_details}")
                response = whole(response)
            traced(span, response, call)
        return ModelResponse(
            output=response.output,
            usage=usage_of(response),
            response_id=response.id,
            request_id=request_id_of(response),
        )

    async def stream_response(self, *said: Any, **more: Any) -> AsyncIterator[Any]:
        """Yield the events of the answer. Raises a ProviderError where it fails before the first."""
        call = called(*said, **more)
        taker = Taker() if self._incomplete == "complete" else None
        with self._span(call) as span:
            async with aclosing(await self._exchange(call, stream=True).stream()) as events:
                async for event in events:
                    for one in taker.feed(event) if taker else (event,):
                        if isinstance(one, ResponseCompletedEvent):
                            traced(span, one.response, call)
                        yield one

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the provider's side says about trying again."""
        advice = advise(request.error)
        if advice is None:
            return None
        said = vars(advice.normalized) if advice.normalized else {}
        normalized = ModelRetryNormalizedError(**said)
        return ModelRetryAdvice(advice.suggested, advice.retry_after, reason=advice.reason, normalized=normalized)

    async def close(self) -> None:
        """Close the connections of the event loop that runs."""
        await self.chat.close()

    # --- inside ------------------------------------------------------------------------------------------------

    def _exchange(self, call: ModelCall, *, stream: bool) -> Exchange:
        """Return the request. The SDK's settings of retries are its Runner's: ours are those of the model alone."""
        settings = call.model_settings
        request = {**call.params(), "extra_query": settings.extra_query, "extra_headers": settings.extra_headers}
        raw = bool(settings.preserve_raw_usage)
        return self.chat.exchange(request, stream=stream, timeout=settings.timeout, preserve_raw_usage=raw)

    @contextmanager
    def _span(self, call: ModelCall) -> Generator[Span[GenerationSpanData]]:
        config, tracing = call.model_settings.to_traceable_dict(), call.tracing
        with generation_span(model=self.chat.model, model_config=config, disabled=tracing.is_disabled()) as span:
            if tracing.include_data():
                asked = [{"role": "user", "content": call.input}] if isinstance(call.input, str) else call.input
                system = [{"role": "system", "content": call.system_instructions}] if call.system_instructions else []
                span.span_data.input = [*system, *asked]
            try:
                yield span
            except (AntiphonError, ModelBehaviorError) as error:
                data = {"error": str(error) if tracing.include_data() else type(error).__name__}
                span.set_error({"message": "Error getting response", "data": data})
                raise


class AntiphonProvider(ModelProvider):
    """Models for a run: `RunConfig(model_provider=AntiphonProvider(base_url=…, api_key=…, profile=…))`.

    `backend` is as for `ChatCompletionsModel`; all models share its connections. With neither `backend` nor
    `base_url`, a model is found by its name as `MultiProvider` does: `litellm/…`, `http://host/v1#model`, …; one
    without prefix is OpenAI's, by chat completions. `model`: the one that is used where an agent names none.
    `options` are those of `ChatCompletionsModel`; what it does not know itself goes to the backend.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        profile: str | Profile | None = None,
        backend: str | Backend | None = None,
        model: str | None = None,
        incomplete: Incomplete = "complete",
        retry: ModelRetrySettings | None = None,
        reasoning: Literal["summary", "text"] = "summary",
        strict: bool = False,
        **options: Any,
    ) -> None:
        self._default = model
        self._incomplete: Incomplete = incomplete
        self._options: dict[str, Any] = {"retry": retry, "reasoning": reasoning, "strict": strict}
        self._made: dict[str, AntiphonModel] = {}
        self._profile, self._base_url = profile, base_url
        self._kind = backend or "http"
        self._backend: Backend | None = None
        self._by_name: MultiProvider | None = None
        if backend is None and base_url is None:
            self._by_name = self._naming(api_key, options)
        elif isinstance(self._kind, str):
            named = {"base_url": base_url, "api_key": api_key, **options}
            self._backend = load_backend(
                self._kind, **{key: value for key, value in named.items() if value is not None}
            )
        else:
            self._backend = self._kind

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of that name, always the same one; None is the default model."""
        name = model_name or self._default or get_default_model()
        if name not in self._made:
            self._made[name] = AntiphonModel(self._chat(name), incomplete=self._incomplete)
        return self._made[name]

    async def aclose(self) -> None:
        """Close the connections of the event loop that runs."""
        if self._backend is not None:
            await self._backend.aclose()
        if self._by_name is not None:
            await self._by_name.aclose()

    def _chat(self, name: str) -> ChatCompletionsModel:
        if self._by_name is not None:
            found = self._by_name.get_model(name)
            assert isinstance(found, ChatCompletionsModel)  # OpenAI's models are asked by chat completions
            return found
        assert self._backend is not None
        profile = choose_profile(self._profile, self._kind, self._base_url, name)
        return ChatCompletionsModel(name, backend=self._backend, profile=profile, **self._options)

    def _naming(self, api_key: str | None, options: Mapping[str, Any]) -> MultiProvider:
        if options:
            raise BadInput(f"{', '.join(options)}: give a backend or a base_url to which they belong")
        if self._profile is not None:
            self._options["profile"] = self._profile
        return MultiProvider(openai_api_key=api_key, openai_use_responses=False, **self._options)


def called(*said: Any, **more: Any) -> ModelCall:
    """Return what the SDK's Runner says to a model as a call of ours, with tools and handoffs as the Responses API has
    them."""
    call = ModelCall(*said, **more)
    offered = Converter.convert_tools([*call.tools], [*call.handoffs]).tools
    return replace(call, model_settings=ModelSettings.of(call.model_settings), tools=offered, handoffs=())


def usage_of(response: Response) -> AgentsUsage:
    """Return the usage of a response, with the requests that it took."""
    usage = Usage.of(response)
    details = usage.input_tokens_details
    return AgentsUsage(
        requests=usage.requests,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_details=InputTokensDetails(
            cached_tokens=details.cached_tokens, cache_write_tokens=details.cache_write_tokens
        ),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=usage.output_tokens_details.reasoning_tokens),
    )


def traced(span: Span[GenerationSpanData], response: Response, call: ModelCall) -> None:
    """Put the answer and its usage into the span."""
    usage = Usage.of(response)
    span.span_data.usage = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if call.tracing.include_data():
        span.span_data.output = [item.model_dump() for item in response.output]
