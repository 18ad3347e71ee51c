"""One model over one backend: both ways of asking give the same, and what fails fails the same."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import BadInput, Profile
from antiphon.errors import ConnectionFailed, ProviderError, RateLimited, ServerFailed, StrictError
from antiphon.models import ChatCompletionsModel, ModelResponse, ModelSettings, ModelTracing
from antiphon.request import BadRequest
from antiphon_conformance import check
from antiphon_providers.backends import HttpBackend, ReplayBackend
from tests.providers.backends.loopback import Act, Request, Script, answer, chunked, data, serve
from tests.providers.backends.loopback import text as wire_text
from tests.providers.backends.loopback import whole as wire_whole

from .scripted import HANG, MANNERS, Scripted, Turn, calls, chunk, collect, failing, reasoning, refusal, text, whole

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
REQUEST = {"input": "hello", "instructions": "be good"}


def over(*turns: Turn, **options: Any) -> ChatCompletionsModel:
    return ChatCompletionsModel("tiny", backend=Scripted(turns), ids="counted", created_at=0, **options)


async def ask(model: ChatCompletionsModel, settings: ModelSettings | None = None) -> ModelResponse:
    said = ("be good", "hello", settings or ModelSettings(), [TOOL], None, [], ModelTracing.DISABLED)
    return await model.get_response(*said)


async def listen(model: ChatCompletionsModel, settings: ModelSettings | None = None) -> list[Any]:
    said = ("be good", "hello", settings or ModelSettings(), [TOOL], None, [], ModelTracing.DISABLED)
    return [event async for event in model.stream_response(*said)]


ANSWERS = {
    "text": text("Hel", "lo"),
    "refusal": refusal("I ", "cannot"),
    "reasoning": reasoning("thinking", text("Hello")),
    "reasoning and a call": reasoning("thinking", calls(("call_1", "f", '{"a": 1}'))),
    "no arguments": calls(("call_1", "f", "")),
    "cut": text("Hel", finish="length"),
    "filtered": text("Hel", finish="content_filter"),
    **{manner: calls(("call_1", "f", '{"a": 1}'), ("call_2", "g", '{"b": 2}'), manner=manner) for manner in MANNERS},
}


@pytest.mark.parametrize("name", ANSWERS)
async def test_both_ways_give_the_same(name: str) -> None:
    asked = await ask(over(ANSWERS[name]))
    events = await listen(over(ANSWERS[name]))
    assert check(events).findings == ()
    assert ModelResponse.of(events[-1].response) == asked
    assert asked.usage.requests == 1
    assert asked.usage.total_tokens == 12


async def test_what_an_answer_is_can_be_told() -> None:
    cut, refused = await ask(over(ANSWERS["cut"])), await ask(over(ANSWERS["refusal"]))
    assert (cut.status, cut.incomplete_reason, cut.refusal) == ("incomplete", "max_output_tokens", None)
    assert (refused.status, refused.incomplete_reason, refused.refusal) == ("completed", None, "I cannot")


async def test_the_output_is_input_of_the_next_request() -> None:
    backend = Scripted([ANSWERS["reasoning and a call"], text("done")])
    model = ChatCompletionsModel("tiny", backend=backend, profile=Profile("p", reasoning_replay="reasoning_content"))
    first = await ask(model)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "3"}
    await model.create({"input": [{"role": "user", "content": "hello"}, *first.to_input_items(), output]})
    _, said, told = backend.bodies[1]["messages"]
    assert said["reasoning_content"] == "thinking"
    assert said["tool_calls"][0]["id"] == told["tool_call_id"] == "call_1"


# --- create ----------------------------------------------------------------------------------------------------------


async def test_create_echoes_the_request_and_asks_its_own_model() -> None:
    backend = Scripted([text("Hello")])
    model = ChatCompletionsModel("tiny", backend=backend)
    request = {**REQUEST, "model": "alias", "temperature": 0.5, "metadata": {"a": "b"}}
    response = await model.create(request)
    assert (response.model, response.temperature, response.metadata) == ("alias", 0.5, {"a": "b"})
    assert response.output_text == "Hello"
    assert (backend.bodies[0]["model"], backend.bodies[0]["temperature"]) == ("tiny", 0.5)
    assert "stream" not in backend.bodies[0]


@pytest.mark.parametrize("style", ["openai", "dict", "sse"])
async def test_create_streams_in_each_style(style: Any) -> None:
    stream = await over(text("Hello")).create({**REQUEST, "stream": True}, events=style)
    events = [event async for event in stream]
    kind = {"dict": dict, "sse": bytes}.get(style)
    assert kind is None or all(isinstance(event, kind) for event in events)
    assert stream.response is not None
    assert stream.response["output"][0]["content"][0]["text"] == "Hello"


async def test_create_restores_what_had_to_be_renamed() -> None:
    tool = {"type": "custom", "name": "patch"}
    turn = calls(("call_1", "patch", '{"input": "*** Begin"}'))
    stream = await over(turn).create({**REQUEST, "tools": [tool]}, stream=True)
    events = [event async for event in stream]
    response = await over(turn).create({**REQUEST, "tools": [tool]})
    assert check(events).ok
    (item,) = events[-1].response.output
    assert (item.type, item.name, item.input) == ("custom_tool_call", "patch", "*** Begin")
    assert [one.to_dict() for one in response.output] == [one.to_dict() for one in events[-1].response.output]


async def test_what_the_transport_is_told() -> None:
    backend = Scripted([text("Hello")])
    model = ChatCompletionsModel("tiny", backend=backend)
    settings = ModelSettings(extra_headers={"x-a": "1"}, timeout=9, extra_args={"seed": 4}, extra_body={"top_k": 2})
    await ask(model, settings)
    await model.create({**REQUEST, "extra_headers": {"x-b": "2"}, "timeout": 3})
    assert backend.headers == [{"x-a": "1"}, {"x-b": "2"}]
    assert backend.timeouts == [9, 3]
    assert (backend.bodies[0]["seed"], backend.bodies[0]["top_k"]) == (4, 2)


async def test_what_cannot_be_carried_is_logged_once_or_refused(caplog: pytest.LogCaptureFixture) -> None:
    model = over(text("Hello"))
    with caplog.at_level(logging.WARNING, "antiphon"):
        for _ in range(3):
            await model.create({**REQUEST, "previous_response_id": "resp_1"})
    assert len([one for one in caplog.messages if "previous_response_id" in one]) == 1
    with pytest.raises(BadRequest, match="previous_response_id"):
        await over(text("Hello"), strict=True).create({**REQUEST, "previous_response_id": "resp_1"})
    with pytest.raises(BadInput, match="extra_query"):
        await ask(model, ModelSettings(extra_query={"a": "b"}))


async def test_strict_fails_what_has_no_place_in_the_events() -> None:
    turn = Turn([chunk({"content": "a", "audio": {"id": "x"}}), chunk(finish="stop")], None)
    with pytest.raises(StrictError):
        await listen(over(turn, strict=True))


# --- failures --------------------------------------------------------------------------------------------------------


BROKEN = ConnectionFailed("the connection broke")
LATE = {
    "the source breaks": (failing(BROKEN, chunk({"content": "Hel"})), ConnectionFailed),
    "an error object": (
        Turn([chunk({"content": "Hel"}), {"error": {"code": 429, "message": "slow down"}}], None),
        RateLimited,
    ),
    "the finish says error": (Turn([chunk({"content": "Hel"}), chunk(finish="error")], None), ServerFailed),
}


@pytest.mark.parametrize("name", LATE)
async def test_what_fails_late_raises_after_its_events(name: str) -> None:
    turn, kind = LATE[name]
    events: list[Any] = []
    stream = await over(turn).create(REQUEST, stream=True)
    with pytest.raises(kind):
        await collect(stream, events)
    assert [event.type for event in events[-2:]] == ["error", "response.failed"]
    assert check(events).ok
    calm = await over(turn).create(REQUEST, stream=True, raise_on_error=False)
    assert [event.type async for event in calm] == [event.type for event in events]


EARLY = {
    "refused": failing(RateLimited("slow down", status_code=429, retry_after=0.0)),
    "an error object first": Turn([{"error": {"code": 429, "message": "slow down"}}], {"error": {"code": 429}}),
    "an error after an empty chunk": Turn(
        [chunk({"role": "assistant"}), {"error": {"code": 429, "message": "x"}}], {"error": {"code": 429}}
    ),
}


@pytest.mark.parametrize("name", EARLY)
async def test_what_fails_early_raises_at_once(name: str) -> None:
    with pytest.raises(RateLimited):
        await over(EARLY[name]).create(REQUEST, stream=True)
    with pytest.raises(RateLimited):
        await over(EARLY[name]).create(REQUEST)
    calm = await over(EARLY[name]).create(REQUEST, stream=True, raise_on_error=False)
    events = [event async for event in calm]
    assert check(events).ok
    assert [event.type for event in events] == ["response.created", "response.in_progress", "error", "response.failed"]
    response = await over(EARLY[name]).create(REQUEST, raise_on_error=False)
    assert (response.status, response.error.code) == ("failed", "rate_limit_exceeded")


@pytest.mark.parametrize("body", [None, "no json", b"[]", {}, {"choices": []}])
async def test_a_completion_that_is_none_fails(body: Any) -> None:
    with pytest.raises(ProviderError):
        await over(Turn([], body)).create(REQUEST)


async def test_what_any_source_raises_passes() -> None:
    with pytest.raises(ZeroDivisionError):
        await over(failing(ZeroDivisionError())).create(REQUEST, stream=True)
    with pytest.raises(ZeroDivisionError):
        await over(failing(ZeroDivisionError())).create(REQUEST)


# --- leaving ---------------------------------------------------------------------------------------------------------


async def test_closing_the_events_closes_the_source() -> None:
    backend = Scripted([Turn([chunk({"content": "a"}), HANG], None)])
    model = ChatCompletionsModel("tiny", backend=backend)
    untouched = await model.create(REQUEST, stream=True)
    await untouched.aclose()
    assert backend.closed == 1
    async with aclosing(await model.create(REQUEST, stream=True)) as events:
        await anext(events)
    assert backend.closed == 2


@pytest.mark.parametrize("chunks", [[HANG], [chunk({"content": "a"}), HANG]], ids=["before", "in the middle"])
async def test_cancelling_closes_the_source(chunks: list[Any]) -> None:
    backend = Scripted([Turn(chunks, None)])
    task = asyncio.create_task(listen(ChatCompletionsModel("tiny", backend=backend)))
    await backend.asked.wait()
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert backend.closed == 1


async def test_a_server_sees_that_the_reader_left() -> None:
    async with serve(chunked([*wire_text("a", "b")[:2], Act.HANG])) as server:
        model = ChatCompletionsModel("tiny", backend=HttpBackend(server.url))
        stream = await model.create(REQUEST, stream=True, events="sse")
        await anext(stream)
        await stream.aclose()
        await server.until(lambda now: now.open == 0)
        await model.close()


# --- over the wire ---------------------------------------------------------------------------------------------------


async def test_over_http_both_ways_give_the_same() -> None:
    def script(request: Request) -> Script:
        return chunked(wire_text("He", "llo")) if request.body["stream"] else answer(wire_whole("Hello"))

    async with serve(script) as server:
        backend = HttpBackend(server.url, api_key="k")
        model = ChatCompletionsModel("tiny", backend=backend, ids="counted", created_at=0)
        asked, events = await ask(model), await listen(model)
        await model.close()
    assert check(events).findings == ()
    assert ModelResponse.of(events[-1].response) == asked
    assert server.requests[1].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("scenario", ["tools", "parallel", "whole-calls", "late-name", "no-arguments", "interleaved"])
async def test_scenarios_both_ways(scenario: str) -> None:
    model = ChatCompletionsModel(f"replay/{scenario}", backend=ReplayBackend(), ids="counted", created_at=0)
    asked, events = await ask(model), await listen(model)
    assert check(events).ok
    assert [item.type for item in asked.output] == [item.type for item in events[-1].response.output]
    assert all(item.type == "function_call" for item in asked.output)


async def test_the_wire_goes_through_as_bytes() -> None:
    async with serve(chunked([data(chunk({"content": "Hi"})), data(chunk(finish="stop")), data("[DONE]")])) as server:
        model = ChatCompletionsModel("tiny", backend=HttpBackend(server.url))
        stream = await model.create(REQUEST, stream=True, events="sse")
        body = b"".join([event async for event in stream])
        await model.close()
    assert body.startswith(b"event: response.created\ndata: {")
    assert b'"delta":"Hi"' in body


# --- properties ------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    pieces=st.lists(st.text(min_size=1, max_size=5), max_size=6),
    thought=st.text(max_size=8),
    finish=st.sampled_from(["stop", "length", "content_filter"]),
)
def test_whatever_is_said_both_ways_are_one(pieces: list[str], thought: str, finish: str) -> None:
    turn = text(*pieces, finish=finish)
    turn = reasoning(thought, turn) if thought else turn

    async def both() -> tuple[ModelResponse, list[Any]]:
        return await ask(over(turn)), await listen(over(turn))

    asked, events = asyncio.run(both())
    assert check(events).ok
    assert ModelResponse.of(events[-1].response) == asked


# --- making one ------------------------------------------------------------------------------------------------------


def test_options_that_are_none() -> None:
    with pytest.raises(BadInput, match="base_url"):
        ChatCompletionsModel("tiny", backend=Scripted([]), base_url="http://localhost")
    with pytest.raises(BadInput, match="backend is int"):
        ChatCompletionsModel("tiny", backend=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "options", "name"),
    [
        ("deepseek-chat", {}, "deepseek"),
        ("some-model", {}, "default"),
        ("some-model", {"profile": "vllm"}, "vllm"),
        ("some-model", {"profile": Profile("mine")}, "mine"),
    ],
)
def test_the_profile_is_found(model: str, options: dict[str, Any], name: str) -> None:
    assert ChatCompletionsModel(model, backend=Scripted([]), **options).profile.name == name


async def test_a_whole_completion_in_text() -> None:
    response = await over(Turn([], json.dumps(whole({"content": "Hello"})))).create(REQUEST)
    assert response.output_text == "Hello"


def test_the_history_is_shared_with_what_is_sent() -> None:
    items = [{"role": "user", "content": f"{number} " * 100} for number in range(5)]
    model = ChatCompletionsModel("echo", backend="replay")
    for sent in (model.exchange({"input": items}), model.exchange({"input": tuple(items)})):
        messages = sent.chat.body["messages"]
        assert all(made["content"] is item["content"] for made, item in zip(messages, items, strict=True))


def test_half_a_character_is_sent_as_a_sign_for_it() -> None:
    request = {"input": [{"role": "user", "content": "cut \ud83d"}]}
    assert ChatCompletionsModel("echo", backend="replay").exchange(request).chat.body["messages"] == [
        {"role": "user", "content": "cut \ufffd"}
    ]
