"""Models by their names, and the providers behind them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from importlib.metadata import entry_points
from typing import Any

import pytest
from openai import AsyncOpenAI

from antiphon import BadInput
from antiphon.models import (
    AnyLLMModel,
    ChatCompletionsModel,
    LitellmModel,
    Model,
    ModelProvider,
    MultiProvider,
    OpenAIChatCompletionsModel,
    OpenAIProvider,
    OpenAIResponsesModel,
    Usage,
    get_default_model,
    retry_policies,
    set_default_openai_api,
    set_default_openai_client,
    set_default_openai_key,
)
from antiphon.models import ModelRetrySettings as Retry
from tests.providers.backends.loopback import Request, Script, answer, chunked, serve, text, whole

from .scripted import Scripted

INSTALLED = {point.name for point in entry_points(group="antiphon.backends")}
needs_backends = pytest.mark.skipif(
    not {"http", "openai_sdk", "replay"} <= INSTALLED, reason="the backends are not installed as entry points"
)


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    set_default_openai_api("responses")
    set_default_openai_client(None)
    set_default_openai_key(None)


class Own(ModelProvider):
    def __init__(self) -> None:
        self.asked: list[str | None] = []
        self.closed = 0

    def get_model(self, model_name: str | None) -> Model:
        self.asked.append(model_name)
        return ChatCompletionsModel(model_name or "", backend=Scripted([]))

    async def aclose(self) -> None:
        self.closed += 1


class Map:
    def __init__(self, **providers: ModelProvider) -> None:
        self._providers = providers

    def get_provider(self, prefix: str) -> ModelProvider | None:
        return self._providers.get(prefix)


def test_openai_has_what_has_no_prefix() -> None:
    provider = MultiProvider(openai_api_key="k")
    for name, model in [("gpt-5", "gpt-5"), ("openai/gpt-5", "gpt-5"), (None, get_default_model())]:
        found = provider.get_model(name)
        assert isinstance(found, OpenAIResponsesModel)
        assert found.model == model
    assert provider.get_model("gpt-5") is provider.get_model("openai/gpt-5")


@needs_backends
def test_openai_by_chat() -> None:
    found = MultiProvider(openai_api_key="k", openai_use_responses=False, reasoning="text").get_model("gpt-5")
    assert isinstance(found, OpenAIChatCompletionsModel)
    assert found.profile.name == "openai"
    set_default_openai_api("chat_completions")
    assert isinstance(OpenAIProvider(api_key="k").get_model("gpt-5"), ChatCompletionsModel)
    with pytest.raises(BadInput, match="the API is"):
        set_default_openai_api("grpc")  # type: ignore[arg-type]


def test_the_map_comes_first() -> None:
    own = Own()
    for provider_map in ({"litellm": own, "openai": own}, Map(litellm=own, openai=own)):
        provider = MultiProvider(provider_map=provider_map)
        provider.get_model("litellm/a/b")
        provider.get_model("openai/c")
    assert own.asked == ["a/b", "c"] * 2


def test_unknown_prefixes() -> None:
    with pytest.raises(BadInput, match="Unknown prefix: acme"):
        MultiProvider().get_model("acme/model")
    whole_name = MultiProvider(unknown_prefix_mode="model_id", openai_api_key="k").get_model("acme/model")
    assert isinstance(whole_name, OpenAIResponsesModel)
    assert whole_name.model == "acme/model"
    named = MultiProvider(openai_prefix_mode="model_id", openai_api_key="k").get_model("openai/gpt-5")
    assert isinstance(named, OpenAIResponsesModel)
    assert named.model == "openai/gpt-5"
    with pytest.raises(BadInput, match="unknown_prefix_mode"):
        MultiProvider(unknown_prefix_mode="maybe")  # type: ignore[arg-type]


@needs_backends
async def test_models_of_a_url_share_connections() -> None:
    def script(request: Request) -> Script:
        assert request.headers["authorization"] == "Bearer k"
        return chunked(text("Hello")) if request.body["stream"] else answer(whole("Hello"))

    async with serve(script) as server:
        provider = MultiProvider(http_options={"api_key": "k", "profile": "vllm"})
        for name in ("a", "b/c"):
            model = provider.get_model(f"{server.url}/v1#{name}")
            assert isinstance(model, ChatCompletionsModel)
            assert model.profile.name == "vllm"
            assert (await model.create({"input": "hello"})).output_text == "Hello"
        await provider.aclose()
    assert [request.body["model"] for request in server.requests] == ["a", "b/c"]
    assert server.connections == 1
    with pytest.raises(BadInput, match="names no model"):
        provider.get_model(f"{server.url}/v1")


@needs_backends
def test_the_profile_is_that_of_the_url() -> None:
    found = MultiProvider().get_model("https://api.deepseek.com/v1#x")
    assert isinstance(found, ChatCompletionsModel)
    assert found.profile.name == "deepseek"


@needs_backends
async def test_replay() -> None:
    model = MultiProvider().get_model("replay/text")
    assert isinstance(model, ChatCompletionsModel)
    assert (await model.create({"input": "hello"})).output_text


@pytest.mark.parametrize(("prefix", "kind"), [("litellm", LitellmModel), ("any-llm", AnyLLMModel)])
def test_sdks(prefix: str, kind: type[ChatCompletionsModel]) -> None:
    name = prefix.replace("-", "_")
    pytest.importorskip({"any_llm": "any_llm"}.get(name, name))
    if name not in INSTALLED:
        pytest.skip(f"the backend {name} is not installed as an entry point")
    found = MultiProvider(ids="counted").get_model(f"{prefix}/anthropic/claude")
    assert isinstance(found, kind)
    assert (found.model, found.profile.name) == ("anthropic/claude", name)


@needs_backends
async def test_a_client_of_ones_own() -> None:
    def script(request: Request) -> Script:
        return answer(whole("Hello"))

    async with serve(script) as server, AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as client:
        given = OpenAIProvider(openai_client=client, use_responses=False).get_model("tiny")
        set_default_openai_client(client)
        shared = OpenAIProvider(use_responses=False).get_model("tiny")
        for model in (given, shared, OpenAIChatCompletionsModel("tiny", client)):
            assert isinstance(model, OpenAIChatCompletionsModel)
            assert (await model.create({"input": "hello"})).output_text == "Hello"
    assert len(server.requests) == 3


async def test_closing_closes_all() -> None:
    own = Own()
    provider = MultiProvider(provider_map={"a": own, "b": own})
    await provider.aclose()
    assert own.closed == 1


@pytest.mark.parametrize("failing", [False, True])
async def test_closing_closes_the_models_of_any_llm(failing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("any_llm")
    closed: list[Model] = []

    async def close(model: Model) -> None:
        closed.append(model)

    class Broken(Own):
        async def aclose(self) -> None:
            raise OSError("it is gone")

    monkeypatch.setattr(AnyLLMModel, "close", close)
    provider = MultiProvider(provider_map={"a": Broken()} if failing else {})
    model = provider.get_model("any-llm/openai:tiny")
    assert provider.get_model("any-llm/openai:tiny") is model
    with pytest.raises(OSError, match="gone") if failing else nullcontext():
        await provider.aclose()
    assert closed == [model]


@needs_backends
def test_what_goes_to_all_models() -> None:
    retry = Retry(1, policy=retry_policies.network_error())
    provider = MultiProvider(openai_api_key="k", retry=retry)
    for name in ("gpt-5", "http://127.0.0.1:1/v1#x", "replay/text"):
        model: Any = provider.get_model(name)
        assert model.retry is retry


@needs_backends
def test_options_that_are_none() -> None:
    with pytest.raises(BadInput, match="api is 'realtime'"):
        AnyLLMModel("tiny", api="realtime")


@pytest.mark.parametrize("option", ["api_key", "base_url", "organization", "project"])
def test_a_client_of_ones_own_is_made_with_its_options(option: str) -> None:
    """What would be ignored is refused: a request would go out under another name than the caller's."""
    given: dict[str, Any] = {option: "mine"}
    of_multi: dict[str, Any] = {f"openai_{option}": "mine"}
    with pytest.raises(BadInput, match=f"{option}: a client that was made already"):
        OpenAIProvider(openai_client=AsyncOpenAI(api_key="k"), **given)
    with pytest.raises(BadInput, match=f"{option}: a client that was made already"):
        MultiProvider(openai_client=AsyncOpenAI(api_key="k"), **of_multi)


@pytest.mark.parametrize("kind", [MultiProvider, OpenAIProvider])
def test_an_option_that_no_model_has_is_refused(kind: type[Any]) -> None:
    with pytest.raises(BadInput, match="use_websockets: no model has that option; chat models have created_at, ids"):
        kind(use_websockets=True)


def test_programs_of_openai_agents_find_their_names() -> None:
    from antiphon.usage import Usage as FoundThere

    set_default_openai_key("k", use_for_tracing=False)
    set_default_openai_client(None, use_for_tracing=False)
    set_default_openai_key(None)
    assert FoundThere is Usage
