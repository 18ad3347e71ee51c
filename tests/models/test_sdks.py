"""Models through the SDKs, against a server on loopback."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.models import AnyLLMModel, ChatCompletionsModel, LitellmModel, ModelResponse, ModelSettings, ModelTracing
from antiphon_conformance import check
from tests.providers.backends.loopback import Request, Script, answer, chunked, data, serve

from .scripted import calls, reasoning, text

TURNS = {
    "text": text("Hel", "lo"),
    "reasoning and a call": reasoning("thinking", calls(("call_1", "f", '{"a": 1}'))),
    "cut": text("Hel", finish="length"),
}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}


def backend_of(kind: str, url: str) -> Any:
    """Return the backend, and how it calls the model `tiny` of that server."""
    if kind == "openai_sdk":
        from antiphon_providers.backends import OpenAISDKBackend

        return OpenAISDKBackend(url, "k"), "tiny"
    if kind == "litellm":
        pytest.importorskip("litellm")
        from antiphon_providers.backends import LiteLLMBackend

        return LiteLLMBackend(url, "k"), "openai/tiny"
    pytest.importorskip("any_llm")
    from antiphon_providers.backends import AnyLLMBackend

    return AnyLLMBackend(url, "k"), "openai:tiny"


@pytest.mark.filterwarnings("ignore")  # LiteLLM warns of its own, and pydantic of it
@pytest.mark.parametrize("kind", ["openai_sdk", "litellm", "any_llm"])
@pytest.mark.parametrize("name", TURNS)
async def test_both_ways_give_the_same(kind: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks the network when it is imported
    turn = TURNS[name]

    def script(request: Request) -> Script:
        said = [data({**one, "created": 1}) for one in turn.chunks]
        whole = {**turn.whole, "created": 1}
        return chunked([*said, data("[DONE]")]) if request.body.get("stream") else answer(whole)

    async with serve(script) as server:
        backend, model_name = backend_of(kind, f"{server.url}/v1")
        profile = None if kind == "openai_sdk" else kind
        model = ChatCompletionsModel(model_name, backend=backend, profile=profile, ids="counted", created_at=0)
        said = (None, "hello", ModelSettings(), [TOOL], None, [], ModelTracing.DISABLED)
        asked = await model.get_response(*said)
        events = [event async for event in model.stream_response(*said)]
        await model.close()
    heard = ModelResponse.of(events[-1].response)
    assert check(events).ok
    assert [item.type for item in asked.output] == [item.type for item in heard.output]
    assert (asked.status, asked.incomplete_reason, asked.usage.total_tokens) == (
        heard.status,
        heard.incomplete_reason,
        12,
    )


# the model, how it is named, whether the caller asks for its reasoning to go back, whether it does
REPLAYED: list[tuple[str, str, bool, bool]] = [
    ("litellm", "deepseek/deepseek-reasoner", False, True),
    ("litellm", "openai/tiny", False, False),
    ("litellm", "openai/tiny", True, True),
    ("any_llm", "deepseek:deepseek-reasoner", False, True),
    ("any_llm", "openai:tiny", False, False),
    ("any_llm", "openai:tiny", True, True),
    ("http", "tiny", False, False),
    ("http", "tiny", True, True),
]


@pytest.mark.filterwarnings("ignore")  # as above
@pytest.mark.parametrize(("kind", "name", "asks", "goes_back"), REPLAYED)
async def test_reasoning_goes_back_through_an_sdk(
    kind: str, name: str, asks: bool, goes_back: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    pytest.importorskip(kind if kind != "http" else "antiphon")
    turns = [TURNS["reasoning and a call"], TURNS["text"]]
    made = {"litellm": LitellmModel, "any_llm": AnyLLMModel, "http": ChatCompletionsModel}[kind]
    asked: list[Any] = []

    def should(about: Any) -> bool:
        asked.append((about.model, about.base_url))
        return True

    async with serve(lambda request: answer({**turns.pop(0).whole, "created": 1})) as server:
        url = f"{server.url}/v1"
        hook: Any = should if asks else None
        model = made(name, base_url=url, api_key="k", should_replay_reasoning_content=hook)
        first = await model.get_response(None, "hello", ModelSettings(), [TOOL], None, [], ModelTracing.DISABLED)
        output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
        said = [{"role": "user", "content": "hello"}, *first.to_input_items(), output]
        await model.get_response(None, said, ModelSettings(), [TOOL], None, [], ModelTracing.DISABLED)
        await model.close()
    (message,) = [one for one in server.requests[1].body["messages"] if one["role"] == "assistant"]
    assert message.get("reasoning_content") == ("thinking" if goes_back else None)
    assert asked == ([(name, url)] if asks else [])
