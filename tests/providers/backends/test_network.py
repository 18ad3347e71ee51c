"""Every backend that reaches a server, against one that is scripted: what comes out, and how each failure is called."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from antiphon import aconvert, aconvert_sse, errors, to_response
from antiphon.backend import Timeouts, begin

from .kinds import KEY, KINDS, Made, drained, events_of, made, text_of
from .loopback import Act, Pause, Script, Step, answer, chunk, chunked, data, gzipped, serve, text, whole

pytestmark = pytest.mark.parametrize("kind", KINDS)


def error_body(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@dataclass(frozen=True)
class Refusal:
    """An answer that is none, the error that it is, and what that error says."""

    name: str
    script: Script
    error: type[errors.ProviderError]
    says: str
    has: Mapping[str, Any] = field(default_factory=dict)


REFUSALS = [
    Refusal(
        "rate-limit",
        answer(
            error_body("Rate limit reached", type="requests", code="rate_limit_exceeded"),
            "429 Too Many Requests",
            retry_after="7",
            x_request_id="req_9",
        ),
        errors.RateLimited,
        "Rate limit reached",
        {"status_code": 429, "code": "rate_limit_exceeded", "retry_after": 7.0, "request_id": "req_9"},
    ),
    Refusal(
        "too-long",
        answer(error_body("maximum context length is 10 tokens", code="context_length_exceeded"), "400 Bad Request"),
        errors.ContextLengthExceeded,
        "maximum context length",
        {"status_code": 400, "code": "context_length_exceeded"},
    ),
    Refusal(
        "too-long-numeric",
        answer(
            error_body("the request exceeds the available context size", type="exceed_context_size_error", code=400),
            "400 Bad Request",
        ),
        errors.ContextLengthExceeded,
        "available context size",
        {"status_code": 400, "code": "400"},
    ),
    Refusal(
        "bad-parameter",
        answer(
            error_body("temperature is too high", param="temperature", type="invalid_request_error"), "400 Bad Request"
        ),
        errors.BadRequest,
        "temperature is too high",
        {"status_code": 400, "param": "temperature"},
    ),
    Refusal(
        "key-echoed",
        answer(error_body(f"Incorrect API key provided: {KEY}. {KEY}"), "401 Unauthorized"),
        errors.AuthenticationFailed,
        "Incorrect API key provided: ***",
        {"status_code": 401},
    ),
    Refusal(
        "forbidden", answer(error_body("quota of this key"), "403 Forbidden"), errors.AuthenticationFailed, "quota"
    ),
    Refusal(
        "detail", answer({"detail": "Not Found"}, "404 Not Found"), errors.NotFound, "Not Found", {"status_code": 404}
    ),
    Refusal(
        "detail-list",
        answer({"detail": [{"loc": ["body", "n"], "msg": "must be positive"}]}, "422 Unprocessable Entity"),
        errors.BadRequest,
        "must be positive (body.n)",
        {"status_code": 422},
    ),
    Refusal(
        "errors-list",
        answer({"success": False, "errors": [{"code": 7003, "message": "no route for that URI"}]}, "400 Bad Request"),
        errors.BadRequest,
        "no route for that URI",
        {"status_code": 400, "code": "7003"},
    ),
    Refusal(
        "error-null",
        answer({"error": None, "message": "not this way"}, "400 Bad Request"),
        errors.BadRequest,
        "not this way",
        {"status_code": 400},
    ),
    Refusal(
        "plain-text",
        answer("Internal Server Error", "500 Internal Server Error", content_type="text/plain"),
        errors.ServerFailed,
        "Internal Server Error",
        {"status_code": 500, "body": "Internal Server Error"},
    ),
    Refusal(
        "web-page",
        answer("<html><title>502 Bad Gateway</title>", "502 Bad Gateway", content_type="text/html"),
        errors.ServerFailed,
        'a web page, "502 Bad Gateway"',
        {"status_code": 502},
    ),
    Refusal("empty-body", answer("", "503 Service Unavailable"), errors.ServerFailed, "503", {"status_code": 503}),
    Refusal(
        "long-body",
        answer("x" * 1_000_000, "500 Internal Server Error", content_type="text/plain"),
        errors.ServerFailed,
        "xxx",
        {"body": "x" * 500},
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda one: one.name)
@pytest.mark.parametrize("way", ["stream", "complete"])
async def test_a_refused_request_raises_before_anything_comes(
    kind: str, refusal: Refusal, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with serve(refusal.script) as server, made(kind, server.url) as one:
        with pytest.raises(errors.ProviderError) as caught:
            await (begin(one.backend.stream(one.body())) if way == "stream" else one.backend.complete(one.body()))
    error = caught.value
    assert type(error) is refusal.error
    assert refusal.says in str(error)
    assert {name: getattr(error, name) for name in refusal.has} == refusal.has
    shown = "".join(traceback.format_exception(error))
    assert KEY not in "".join((shown, repr(vars(error)), repr(one.backend), caplog.text))
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("refusal", REFUSALS[:3], ids=lambda one: one.name)
async def test_converted_it_is_a_failed_response(kind: str, refusal: Refusal) -> None:
    async with serve(refusal.script) as server, made(kind, server.url) as one:
        (*_, error, last) = await events_of(one)
    assert (error["type"], last["type"]) == ("error", "response.failed")
    assert last["response"]["error"]["code"] in ("rate_limit_exceeded", "context_length_exceeded")


@pytest.mark.parametrize(
    ("pieces", "more"),
    [
        pytest.param(text("Hello", " there"), {}, id="plain"),
        pytest.param(gzipped(text("Hello", " there")), {"content_encoding": "gzip"}, id="gzip"),
        pytest.param([b"".join(text("Hello", " there"))], {}, id="at once"),
        pytest.param([bytes([byte]) for byte in b"".join(text("Hello", " there"))], {}, id="byte by byte"),
        pytest.param([b": waiting\n\n", Pause(0.01), *text("Hello", " there")], {}, id="comments"),
        pytest.param([one.replace(b"\n", b"\r\n") for one in text("Hello", " there")], {}, id="CRLF"),
        pytest.param(text("Hello", " there", done=False), {}, id="no [DONE]"),
    ],
)
async def test_a_stream_comes_through(kind: str, pieces: list[Any], more: dict[str, str]) -> None:
    async with serve(chunked(pieces, **more)) as server, made(kind, server.url) as one:
        response = (await events_of(one))[-1]["response"]
    assert response["status"] == "completed"
    assert text_of(response) == "Hello there"
    assert server.requests[0].target == "/v1/chat/completions"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.requests[0].body["stream"] is True


async def test_a_whole_answer_is_the_same(kind: str) -> None:
    async with serve(answer(whole("Hello there"))) as server, made(kind, server.url) as one:
        completion = await one.backend.complete(one.body(stream=True, stream_options={"include_usage": True}))
    response = to_response(completion, events="dict")
    assert (response["status"], text_of(response), response["usage"]["total_tokens"]) == ("completed", "Hello there", 5)
    assert server.requests[0].body.get("stream") in (None, False)
    assert "stream_options" not in server.requests[0].body


async def test_what_the_api_does_not_know_goes_out_too(kind: str) -> None:
    async with serve(chunked(text("ok"))) as server, made(kind, server.url, headers={"x-team": "choir"}) as one:
        async for _ in one.backend.stream(one.body(top_k=7, temperature=0.5), headers={"x-call": "1"}):
            pass
    request = server.requests[0]
    assert (request.body["top_k"], request.body["temperature"]) == (7, 0.5)
    assert (request.headers["x-team"], request.headers["x-call"]) == ("choir", "1")


async def test_an_error_object_in_the_stream_fails_the_response(kind: str) -> None:
    pieces = [*text("Hello")[:2], data(error_body("the model stopped", code=500))]
    async with serve(chunked(pieces)) as server, made(kind, server.url) as one:
        response = (await events_of(one))[-1]["response"]
    assert (response["status"], text_of(response)) == ("failed", "Hello")
    assert "the model stopped" in response["error"]["message"]


@pytest.mark.parametrize("act", [Act.RESET, Act.CLOSE], ids=lambda one: one.value)
async def test_a_broken_connection_is_the_error_of_the_stream(kind: str, act: Act) -> None:
    async with serve(chunked([*text("Hello")[:2], Pause(0.05), act])) as server, made(kind, server.url) as one:
        response = (await events_of(one))[-1]["response"]
        with pytest.raises(errors.ConnectionFailed):
            await drained(one)
    assert (response["status"], text_of(response)) == ("failed", "Hello")
    assert response["error"]["message"].startswith("ConnectionFailed: the connection to the provider failed")


async def test_after_the_finish_a_broken_connection_does_no_harm(kind: str) -> None:
    pieces: list[Step] = [*text("Hello")[:-1], Pause(0.05), Act.RESET]
    async with serve(chunked(pieces)) as server, made(kind, server.url) as one:
        assert (await events_of(one))[-1]["type"] == "response.completed"


async def test_a_line_that_is_no_json_fails_the_response(kind: str) -> None:
    pieces = [*text("Hello")[:2], b'data: {"id": "chatc\n\n', *text(" there")[1:]]
    async with serve(chunked(pieces)) as server, made(kind, server.url) as one:
        assert (await events_of(one))[-1]["type"] == "response.failed"


@pytest.mark.parametrize(
    ("script", "times", "stage"),
    [
        pytest.param([Act.HANG], Timeouts(first_byte=0.3), "first_byte", id="no head"),
        pytest.param(chunked([Act.HANG]), Timeouts(first_byte=0.3), "first_byte", id="no body"),
        pytest.param(chunked([*text("Hello")[:2], Act.HANG]), Timeouts(idle=0.3), "idle", id="silence"),
        pytest.param(
            chunked([data(chunk({"content": "a"})), Pause(0.1)] * 50), Timeouts(total=0.6), "total", id="drip"
        ),
    ],
)
async def test_time_runs_out(kind: str, script: Script, times: Timeouts, stage: str) -> None:
    async with serve(chunked(text("warm"))) as server, made(kind, server.url) as one:
        await events_of(one)  # SDKs load themselves at their first request
    async with serve(script) as server, made(kind, server.url, timeout=times) as one:
        with pytest.raises(errors.TimedOut) as caught:
            await drained(one)
        await server.until(lambda it: it.open == 0)
    assert caught.value.stage == stage
    assert str(caught.value).endswith(f"(timeout: {stage})")


async def test_a_call_may_have_times_of_its_own(kind: str) -> None:
    async with serve(chunked([*text("Hello")[:2], Act.HANG])) as server, made(kind, server.url) as one:
        with pytest.raises(errors.TimedOut) as caught:
            await drained(one, timeout=0.6)
    assert caught.value.stage == "total"


async def test_the_time_of_a_slow_consumer_does_not_count(kind: str) -> None:
    times = Timeouts(idle=0.5)
    pieces = [piece for one in text("a", "b") for piece in (one, Pause(0.01))]
    async with serve(chunked(pieces)) as server, made(kind, server.url, timeout=times) as one:
        seen = 0
        async for _ in one.backend.stream(one.body()):
            seen += 1
            if seen == 2:
                await asyncio.sleep(1.0)
    assert seen >= 2


async def test_nobody_there(kind: str) -> None:
    async with serve([]) as server:
        url = server.url
    async with made(kind, url) as one:
        with pytest.raises(errors.ConnectionFailed) as caught:
            await begin(one.backend.stream(one.body()))
    assert caught.value.transient


@pytest.mark.parametrize("way", ["aclose", "cancel", "break", "scope"])
async def test_who_leaves_closes_the_connection(kind: str, way: str) -> None:
    async with serve(chunked([*text("Hello")[:2], Act.HANG])) as server, made(kind, server.url) as one:
        await LEAVING[way](one)
        await server.until(lambda it: it.left == 1 and it.open == 0)


async def leave_by_aclose(one: Made) -> None:
    stream = await begin(one.backend.stream(one.body()))
    await stream.aclose()


async def leave_by_cancelling(one: Made) -> None:
    came = asyncio.Event()

    async def pull() -> None:
        async for _ in one.backend.stream(one.body()):
            came.set()

    task = asyncio.create_task(pull())
    await came.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def leave_the_conversion(one: Made) -> None:
    convert = aconvert_sse if one.backend.form == "sse" else aconvert
    events = convert(one.backend.stream(one.body()), events="dict")
    async for event in events:
        if event["type"] == "response.output_text.delta":
            break
    await events.aclose()


async def leave_by_a_cancelled_scope(one: Made) -> None:
    anyio = pytest.importorskip("anyio")
    with anyio.CancelScope() as scope:
        async for _ in one.backend.stream(one.body()):
            scope.cancel()
    assert scope.cancelled_caught


LEAVING = {
    "aclose": leave_by_aclose,
    "cancel": leave_by_cancelling,
    "break": leave_the_conversion,
    "scope": leave_by_a_cancelled_scope,
}


async def test_a_stream_that_was_never_pulled_sends_nothing(kind: str) -> None:
    async with serve(chunked(text("Hello"))) as server, made(kind, server.url) as one:
        stream = one.backend.stream(one.body())
        await stream.aclose()
        assert server.requests == []


async def test_one_connection_serves_many_requests(kind: str) -> None:
    async with serve(chunked(text("Hello"))) as server, made(kind, server.url) as one:
        for _ in range(5):
            await events_of(one)
        assert (len(server.requests), server.connections) == (5, 1)
