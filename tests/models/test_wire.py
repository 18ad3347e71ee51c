"""What a call says beside its body, and what the provider says beside its answer: queries, request ids, raw usage."""

from __future__ import annotations

import os
from typing import Any

import pytest

from antiphon.errors import BadInput
from antiphon.models import (
    ChatCompletionsModel,
    ModelCall,
    ModelResponse,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
)
from tests.providers.backends.kinds import KINDS, make
from tests.providers.backends.loopback import Act, Request, Script, answer, data, head, serve

from .scripted import USAGE, Scripted, text

TURN = text("Hello")
RAW = {**USAGE, "queue_time": 0.5}
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"


def numbered(request: Request) -> Script:
    """Answer as chat, with a request id, and usage in the provider's own words."""
    if not request.body.get("stream"):
        return answer({**TURN.whole, "created": 1, "usage": RAW}, x_request_id="req_7")
    said = [data({**one, "created": 1} | ({"usage": RAW} if one.get("usage") else {})) for one in TURN.chunks]
    return [head(content_type="text/event-stream", x_request_id="req_7"), *said, b"data: [DONE]\n\n", Act.CLOSE]


async def both(model: Any, settings: ModelSettings) -> tuple[ModelResponse, ModelResponse]:
    call = ModelCall(None, "hello", settings)
    streamed = [event async for event in model.events(call)]
    return await model.answer(call), ModelResponse.of(streamed[-1].response)


@pytest.mark.parametrize("kind", KINDS)
async def test_request_id_and_raw_usage(kind: str) -> None:
    async with serve(numbered) as server:
        made = make(kind, server.url)
        model = ChatCompletionsModel(made.model, backend=made.backend, profile="openai")
        asked, streamed = await both(model, ModelSettings(preserve_raw_usage=True))
        plain = await both(model, ModelSettings())
        await model.close()
    ids = {"any_llm": None}  # any-llm makes objects of its own, without the headers
    assert [one.request_id for one in (asked, streamed)] == [ids.get(kind, "req_7")] * 2
    assert [one.raw_usage is not None for one in (asked, streamed)] == [True] * 2
    assert [one.raw_usage for one in plain] == [None] * 2
    if kind == "http":
        assert [one.raw_usage for one in (asked, streamed)] == [RAW] * 2


async def test_the_stream_has_the_request_id_too() -> None:
    async with serve(numbered) as server:
        model = ChatCompletionsModel("tiny", base_url=server.url)
        stream = await model.create({"input": "hello"}, stream=True, events="sse")
        async for _ in stream:
            pass
        await model.close()
    assert (stream.request_id, stream.requests) == ("req_7", 1)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_query_for_one_call(kind: str) -> None:
    settings = ModelSettings(extra_query={"api-version": "2"})
    async with serve(numbered) as server:
        made = make(kind, server.url)
        model = ChatCompletionsModel(made.model, backend=made.backend, profile="openai")
        if kind == "litellm":
            with pytest.raises(BadInput, match="query"):
                await both(model, settings)
        else:
            await both(model, settings)
            await model.create({"input": "hello", "extra_query": {"a": "1"}})
        await model.close()
    targets = [request.target.partition("?")[2] for request in server.requests]
    assert targets == ([] if kind == "litellm" else ["api-version=2", "api-version=2", "a=1"])


async def test_a_backend_without_queries() -> None:
    model = ChatCompletionsModel("tiny", backend=Scripted([TURN]), profile="openai")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="extra_query"):
        await model.answer(ModelCall(None, "hello", ModelSettings(extra_query={"a": "1"})))


async def test_the_request_id_of_a_native_server() -> None:
    response = {"id": "resp_1", "object": "response", "status": "completed", "output": [], "model": "tiny"}
    event = data({"type": "response.completed", "response": response})

    def script(request: Request) -> Script:
        if not request.body.get("stream"):
            return answer(response, x_request_id="req_8")
        return [head(content_type="text/event-stream", x_request_id="req_8"), event, Act.CLOSE]

    async with serve(script) as server:
        for repair in (False, True):
            model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repair)
            asked, streamed = await both(model, ModelSettings())
            await model.close()
            assert (asked.request_id, streamed.request_id) == ("req_8", "req_8")


async def test_reasoning_goes_back_as_the_caller_says() -> None:
    def thought(text: str, model: str) -> dict[str, Any]:
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "id": "rs", "summary": summary, "provider_data": {"model": model}}

    said = [
        thought("keep", "mine"),
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "b"},
        thought("leave", "other"),
        {"role": "assistant", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    seen: list[Any] = []

    def mine(asked: Any) -> bool:
        seen.append((asked.model, asked.base_url))
        return bool(asked.reasoning.origin_model == "mine")

    async with serve(numbered) as server:
        url = f"{server.url}/v1"
        model = OpenAIChatCompletionsModel("tiny", base_url=url, api_key="k", should_replay_reasoning_content=mine)
        await model.answer(ModelCall(None, said, ModelSettings()))
        await model.close()
    messages = server.requests[0].body["messages"]
    assert [one.get("reasoning_content") for one in messages] == ["keep", None, None, None]
    assert seen == [("tiny", url)] * 2
