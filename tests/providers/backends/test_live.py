"""Every backend against llama.cpp's own server with a scripted model, where both are on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon import errors, to_response
from antiphon.backend import begin

from .kinds import KINDS, Made, events_of, made, text_of
from .llamacpp import llamacpp, needs_llamacpp

pytestmark = [pytest.mark.live, needs_llamacpp, pytest.mark.parametrize("kind", KINDS)]

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 12}, "unit": {"type": "string", "enum": ["c", "f"]}},
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers",
        "parameters": {
            "type": "object",
            "properties": {name: {"type": "integer", "minimum": 0, "maximum": 99} for name in "ab"},
            "required": ["a", "b"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Run the server while this module's tests run."""
    with llamacpp() as at:
        yield at


def body(one: Made, said: str, **more: Any) -> dict[str, Any]:
    return {"model": one.model, "messages": [{"role": "user", "content": said}], "seed": 7, "max_tokens": 200, **more}


async def test_text(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        request = body(one, "Hello", temperature=0)
        usage = {"stream_options": {"include_usage": True}}
        streamed = (await events_of(one, {**request, **usage}))[-1]["response"]
        whole = to_response(await one.backend.complete(request), events="dict")
        assert streamed["status"] == whole["status"] == "completed"
        assert text_of(streamed) == text_of(whole) != ""
        assert streamed["usage"]["output_tokens"] == whole["usage"]["output_tokens"] > 0


async def test_thoughts(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        response = (await events_of(one, body(one, "Think about it")))[-1]["response"]
        assert [item["type"] for item in response["output"]][:1] == ["reasoning"]


async def test_tools_streamed_and_not(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        request = body(one, "What is the weather in Oslo?", tools=[WEATHER, ADD], temperature=0.7)
        streamed = (await events_of(one, request))[-1]["response"]
        whole = to_response(await one.backend.complete(request), events="dict")
    found = [calls(response) for response in (streamed, whole)]
    assert found[0] == found[1] != []
    assert {name for name, _ in found[0]} <= {"get_weather", "add"}
    if streamed["status"] == "completed":
        assert all(json.loads(arguments) for _, arguments in found[0])


def calls(response: Any) -> list[tuple[str, str]]:
    return [(one["name"], one["arguments"]) for one in response["output"] if one["type"] == "function_call"]


async def test_a_tool_output_goes_back(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
        messages = [
            {"role": "user", "content": "Add one and two"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "3"},
        ]
        events = await events_of(one, {**body(one, ""), "messages": messages, "tools": [ADD]})
        assert events[-1]["type"] in ("response.completed", "response.incomplete")


async def test_a_json_schema(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        schema = {
            "type": "object",
            "properties": {"city": {"enum": ["Paris", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        }
        format = {"type": "json_schema", "json_schema": {"name": "place", "schema": schema, "strict": True}}
        response = (await events_of(one, body(one, "Where?", response_format=format)))[-1]["response"]
        assert json.loads(text_of(response))["city"] in ("Paris", "Rome")


async def test_log_probabilities(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        request = body(one, "Hello", logprobs=True, top_logprobs=2)
        if kind == "litellm":
            request["allowed_openai_params"] = ["logprobs", "top_logprobs"]
        events = await events_of(one, request)
        found = [one for event in events if event["type"] == "response.output_text.delta" for one in event["logprobs"]]
        assert found
        assert all(len(one["top_logprobs"]) == 2 for one in found)


async def test_the_token_limit(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        request = {**body(one, "long"), "max_tokens": 5}
        streamed = (await events_of(one, request))[-1]["response"]
        whole = to_response(await one.backend.complete(request), events="dict")
        for response in (streamed, whole):
            assert response["incomplete_details"] == {"reason": "max_output_tokens"}


async def test_a_request_that_is_too_long(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        with pytest.raises(errors.ContextLengthExceeded) as caught:
            await begin(one.backend.stream(body(one, "word " * 5000)))
        assert caught.value.status_code == 400


async def test_a_bad_request(kind: str, url: str) -> None:
    async with made(kind, url) as one:
        format = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}
        with pytest.raises((errors.BadRequest, errors.ServerFailed)):
            await begin(one.backend.stream(body(one, "Hello", response_format=format)))


async def test_who_leaves_frees_the_server(kind: str, url: str) -> None:
    """The server has two slots: were they kept busy by clients that left, nobody else would be served."""
    async with made(kind, url) as one:
        for _ in range(4):
            stream = await begin(one.backend.stream({**body(one, "long"), "max_tokens": -1}))
            await stream.aclose()
        async with asyncio.timeout(60):
            assert (await events_of(one, body(one, "Hello")))[-1]["type"] == "response.completed"


async def test_models(kind: str, url: str) -> None:
    if kind in ("litellm", "any_llm"):
        pytest.skip("LiteLLM lists nothing; any-llm lists the models of a provider that is given")
    async with made(kind, url) as one:
        assert "tiny" in [model["id"] for model in await one.backend.models()]
