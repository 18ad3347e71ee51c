"""Good statuses with bodies that are no chat answer, in one piece or as a stream: typed errors, the same both ways."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon import errors
from antiphon.models import ChatCompletionsModel

from .kinds import NOISY, make
from .loopback import Script, answer, chunk, chunked, data, serve, text, whole

REQUEST = {"input": "hello"}
WAYS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
DIRECT = pytest.mark.parametrize("kind", ["http", "openai_sdk"])
LINES = b"\n".join(json.dumps(one).encode() for one in (chunk({"content": "Hello"}), chunk({}, "stop")))


@dataclass(frozen=True)
class NoAnswer:
    """A body that came with the status 200, the error that it is, and what that says."""

    name: str
    body: Any
    error: type[errors.ProviderError]
    says: str
    code: str | None = None


BODIES = [
    NoAnswer(
        "error", {"error": {"message": "slow", "code": "rate_limit_exceeded"}}, errors.RateLimited, "slow",
        "rate_limit_exceeded",
    ),
    NoAnswer(
        "error beside null", {"error": {"message": "it broke", "code": 503}, "choices": None}, errors.ServerFailed,
        "it broke", "503",
    ),
    NoAnswer("detail", {"detail": "the model is not loaded"}, errors.ServerFailed, "the model is not loaded"),
    NoAnswer("message", {"message": "the quota is used up", "code": 429}, errors.RateLimited, "used up", "429"),
    NoAnswer(
        "errors", {"success": False, "errors": [{"code": 7003, "message": "no route"}]}, errors.ServerFailed,
        "no route", "7003",
    ),
    NoAnswer(
        "object", {"object": "error", "message": "not so", "type": "BadRequestError", "code": 400}, errors.BadRequest,
        "not so", "400",
    ),
    NoAnswer("nothing in it", {}, errors.BadAnswer, "no chat answer"),
    NoAnswer("no choices", {"id": "c", "object": "chat.completion", "choices": []}, errors.BadAnswer, "no chat answer"),
]  # fmt: skip


async def asked(kind: str, script: Script, *, stream: bool, profile: str = "openai") -> Any:
    """Return the response of a model at a server with this script."""
    async with serve(script) as server:
        made = make(kind, server.url)
        model = ChatCompletionsModel(made.model, backend=made.backend, profile=profile)
        try:
            answered = await model.create(REQUEST, stream=stream, events="dict")
            return [event async for event in answered][-1]["response"] if stream else answered
        finally:
            await model.close()


@WAYS
@DIRECT
@pytest.mark.parametrize("one", BODIES, ids=lambda one: one.name)
async def test_what_is_no_answer_says_what_it_is(kind: str, one: NoAnswer, stream: bool) -> None:
    with pytest.raises(errors.ProviderError, match=one.says) as caught:
        await asked(kind, answer(one.body), stream=stream)
    error = caught.value
    assert (type(error), error.status_code, error.code) == (one.error, 200, one.code)
    assert error.body


@WAYS
async def test_a_completion_that_was_cut(stream: bool) -> None:
    cut = json.dumps(whole("Hello")).encode()[:-30]
    with pytest.raises(errors.BadAnswer, match="no chat answer"):
        await asked("http", answer(cut, content_type="application/json"), stream=stream)


@WAYS
async def test_json_lines_are_read_both_ways(stream: bool) -> None:
    response = await asked("http", answer(LINES, content_type="application/x-ndjson"), stream=stream)
    assert (response["status"], response["output"][0]["content"][0]["text"]) == ("completed", "Hello")


@WAYS
async def test_a_list_of_chunks_is_read_both_ways(stream: bool) -> None:
    listed = [chunk({"content": "Hello"}), chunk({}, "stop")]
    response = await asked("http", answer(json.dumps(listed), content_type="application/json"), stream=stream)
    assert (response["status"], response["output"][0]["content"][0]["text"]) == ("completed", "Hello")


@WAYS
@DIRECT
async def test_a_server_that_streams_unasked(kind: str, stream: bool) -> None:
    response = await asked(kind, chunked(text("Hello", " there")), stream=stream)
    assert (response["status"], response["output"][0]["content"][0]["text"]) == ("completed", "Hello there")


@WAYS
async def test_a_server_that_streams_unasked_loses_no_signature(stream: bool) -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    pieces = [data(chunk({"tool_calls": [{**call, "extra_content": signed}]})), data(chunk({}, "tool_calls"))]
    response = await asked("http", chunked([*pieces, b"data: [DONE]\n\n"]), stream=stream, profile="gemini")
    assert response["output"][0]["provider_data"]["extra_content"] == signed


@WAYS
@DIRECT
async def test_a_stream_that_refuses_the_request(kind: str, stream: bool) -> None:
    refusal = chunked([data({"error": {"message": "no such tool", "code": 400}})])
    with pytest.raises(errors.BadRequest, match="no such tool"):
        await asked(kind, refusal, stream=stream)


@WAYS
@DIRECT
@pytest.mark.parametrize("script", [
    pytest.param(answer("not gzip", content_encoding="gzip"), id="not compressed as it says"),
    pytest.param(answer("", "307 Temporary Redirect", location="/v1/chat/completions"), id="a circle"),
])  # fmt: skip
async def test_what_asking_again_does_not_mend(kind: str, script: Script, stream: bool) -> None:
    with pytest.raises(errors.BadAnswer) as caught:
        await asked(kind, script, stream=stream)
    assert not caught.value.transient


@NOISY
async def test_litellm_keeps_the_words_of_an_error_with_a_good_status() -> None:
    with pytest.raises(errors.RateLimited, match="slow") as caught:
        await asked("litellm", answer(BODIES[0].body), stream=False)
    assert caught.value.code == "rate_limit_exceeded"
