"""A server that speaks the Responses API: requests and events pass, errors are typed, streams are held to the rules."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI

from antiphon import BadInput, convert
from antiphon.errors import (
    AuthenticationFailed,
    BadRequest,
    ConnectionFailed,
    ContextLengthExceeded,
    NotFound,
    ProviderError,
    RateLimited,
    ServerFailed,
    TimedOut,
)
from antiphon.models import (
    EventsBroken,
    ModelResponse,
    ModelRetrySettings,
    ModelSettings,
    ModelTracing,
    OpenAIResponsesModel,
    Usage,
    retry_policies,
)
from tests.providers.backends.loopback import Act, Request, Script, answer, chunked, data, serve

from .scripted import calls, collect, reasoning, text

REQUEST = {"input": "hello"}
RETRY = ModelRetrySettings(2, {"initial_delay": 0}, retry_policies.provider_suggested())


def events_of(chunks: Any) -> list[dict[str, Any]]:
    return list(convert(chunks, events="dict", ids="counted", created_at=0, request={"model": "tiny"}))


def told(events: list[dict[str, Any]]) -> Script:
    return chunked([b"event: %b\n%b" % (event["type"].encode(), data(event)) for event in events])


def server_of(events: list[dict[str, Any]]) -> Any:
    """Return the script of a server that gives these events, or the response at their end."""

    def script(request: Request) -> Script:
        return told(events) if request.body.get("stream") else answer(events[-1]["response"])

    return script


async def ask(model: OpenAIResponsesModel, settings: ModelSettings | None = None) -> ModelResponse:
    said = ("be good", "hello", settings or ModelSettings(), [], None, [], ModelTracing.DISABLED)
    return await model.get_response(*said)


async def listen(model: OpenAIResponsesModel, settings: ModelSettings | None = None) -> list[Any]:
    said = ("be good", "hello", settings or ModelSettings(), [], None, [], ModelTracing.DISABLED)
    return [event async for event in model.stream_response(*said)]


@pytest.mark.parametrize("turn", [text("Hel", "lo"), reasoning("think", calls(("call_1", "f", "{}")))])
async def test_both_ways_give_the_same(turn: Any) -> None:
    events = events_of(turn.chunks)
    async with serve(server_of(events)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", check=True)
        asked, heard = await ask(model), await listen(model)
        await model.close()
    assert [event.to_dict() for event in heard] == events
    assert [item.to_dict() for item in asked.output] == events[-1]["response"]["output"]
    assert asked.usage == Usage.of(heard[-1].response)
    assert server.requests[0].body == {"model": "tiny", "input": "hello", "instructions": "be good", "stream": False}


async def test_what_the_server_is_sent() -> None:
    async with (
        serve(server_of(events_of(text("Hello").chunks))) as server,
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k") as client,
    ):
        model = OpenAIResponsesModel("tiny", client)
        settings = ModelSettings(
            extra_headers={"x-a": "1"}, extra_query={"q": "2"}, extra_args={"seed": 3}, frequency_penalty=1.0
        )
        item = {"role": "user", "content": "hello", "provider_data": {"a": 1}}
        await model.get_response(None, [item], settings, [], None, [], ModelTracing.DISABLED)
        await model.create(REQUEST, headers={"x-b": "1"}, timeout=5)
    first, second = server.requests
    assert (first.target, first.headers["x-a"]) == ("/v1/responses?q=2", "1")
    assert first.body == {
        "model": "tiny",
        "input": [{"role": "user", "content": "hello"}],
        "seed": 3,
        "stream": False,
    }
    assert second.headers["x-b"] == "1"


STATUSES: list[tuple[str, dict[str, Any], type[ProviderError]]] = [
    ("400 Bad Request", {"message": "no", "param": "input"}, BadRequest),
    ("400 Bad Request", {"message": "too long", "code": "context_length_exceeded"}, ContextLengthExceeded),
    ("401 Unauthorized", {"message": "Incorrect API key provided: sk-abcdefghijklmnop"}, AuthenticationFailed),
    ("404 Not Found", {"message": "no such model"}, NotFound),
    ("429 Too Many Requests", {"message": "slow down"}, RateLimited),
    ("503 Service Unavailable", {"message": "away"}, ServerFailed),
]


@pytest.mark.parametrize(("status", "error", "kind"), STATUSES)
async def test_errors_are_typed(status: str, error: dict[str, Any], kind: type[ProviderError]) -> None:
    async with serve(answer({"error": error}, status, retry_after="3")) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(kind) as caught:
            await model.create(REQUEST)
        with pytest.raises(kind):
            await model.create(REQUEST, stream=True)
        await model.close()
    assert type(caught.value) is kind
    assert (caught.value.status_code, caught.value.retry_after) == (int(status[:3]), 3.0)
    assert caught.value.param == error.get("param")
    assert "abcdefghij" not in str(caught.value)


async def test_no_connection() -> None:
    model = OpenAIResponsesModel("tiny", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ConnectionFailed):
        await model.create(REQUEST)
    await model.close()


async def test_too_slow() -> None:
    async with serve([Act.HANG]) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(TimedOut):
            await model.create(REQUEST, timeout=0.05)
        await model.close()


async def test_a_failed_response_raises() -> None:
    late = events_of([*text("Hel").chunks[:2], {"error": {"code": 429, "message": "slow down"}}])
    async with serve(server_of(late)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        heard: list[Any] = []
        stream = await model.create(REQUEST, stream=True)
        with pytest.raises(ProviderError):
            await collect(stream, heard)
        with pytest.raises(RateLimited):
            await model.create(REQUEST)
        await model.close()
    assert heard


async def test_a_stream_without_an_end() -> None:
    events = events_of(text("Hello").chunks)[:-1]
    async with serve(told(events)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        with pytest.raises(ServerFailed, match="without a terminal event"):
            await listen(model)
        await model.close()


@pytest.mark.parametrize("stream", [False, True])
async def test_what_showed_nothing_is_tried_again(stream: bool) -> None:
    events = events_of(text("Hello").chunks)
    refusal = answer({"error": {"message": "away"}}, "503 Service Unavailable", retry_after="0")
    scripts = iter([refusal, told(events) if stream else answer(events[-1]["response"])])
    async with serve(lambda request: next(scripts)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", retry=RETRY)
        answered = await model.create(REQUEST, stream=stream)
        response = [event async for event in answered][-1].response if stream else answered
        await model.close()
    assert Usage.of(response).requests == 2


async def test_checked_streams_raise_for_what_they_break() -> None:
    events = events_of(text("Hello").chunks)
    broken = [event for event in events if event["type"] != "response.output_text.done"]
    async with serve(told(broken)) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", check=True)
        heard: list[Any] = []
        stream = await model.create(REQUEST, stream=True)
        with pytest.raises(EventsBroken) as caught:
            await collect(stream, heard)
        await model.close()
    assert len(heard) == len(broken)
    assert caught.value.findings
    assert "the stream breaks" in str(caught.value)


async def test_closing_the_events_closes_the_connection() -> None:
    events = events_of(text("Hello").chunks)
    async with serve([*told(events[:5])[:-1], Act.HANG]) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1")
        stream = await model.create(REQUEST, stream=True)
        await anext(stream)
        await stream.aclose()
        await server.until(lambda now: now.open == 0)
        await model.close()


def test_options_that_are_none() -> None:
    with pytest.raises(BadInput, match="made already"):
        OpenAIResponsesModel("tiny", AsyncOpenAI(api_key="k"), base_url="http://127.0.0.1")


async def test_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(BadInput, match="OpenAI SDK"):
        await OpenAIResponsesModel("tiny").create(REQUEST)
