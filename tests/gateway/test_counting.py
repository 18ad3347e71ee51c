"""Counting the tokens of a request: by the servers' own counters, by asking, or not; never by a guess."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from openai import APIStatusError, AsyncOpenAI

from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport
from tests.providers.backends import loopback
from tests.providers.backends.llamacpp import llamacpp, needs_llamacpp

from .asking import TOOL, Json
from .conftest import over
from .scripted_backend import Scripted


def client_of(config: Any) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=AppTransport(create_app(config)), timeout=20)
    return AsyncOpenAI(api_key="sk-caller-12345", base_url="http://antiphon.test/v1", http_client=http, max_retries=0)


def counter(answer: Any, status: str = "200 OK") -> Any:
    """Return a server that answers so to whatever it is asked."""
    return loopback.serve(lambda request: loopback.answer(answer, status))


ASKED: Json = {"input": "How is it?", "instructions": "Be brief.", "tools": [TOOL]}
# profile -> where its servers are asked, what they answer, and which keys they are sent
SERVERS: dict[str, tuple[str, Json, set[str]]] = {
    "vllm": ("/tokenize", {"count": 42, "max_model_len": 100, "tokens": []}, {"model", "messages", "tools"}),
    "llamacpp": ("/v1/chat/completions/input_tokens", {"input_tokens": 42}, {"model", "messages", "tools"}),
}


@pytest.mark.parametrize("suffix", ["/v1", "", "/v1/chat/completions"])
@pytest.mark.parametrize("profile", SERVERS)
async def test_the_servers_own_counter_is_asked(profile: str, suffix: str) -> None:
    path, answer, keys = SERVERS[profile]
    async with counter(answer) as server:
        backend = {"url": server.url + suffix, "profile": profile, "pass_caller_key": True}
        async with client_of({"backends": {"a": backend}}) as client:
            counted = await client.responses.input_tokens.count(model="m", **ASKED)
        [request] = server.requests
    assert (counted.input_tokens, counted.object) == (42, "response.input_tokens")
    assert (request.method, request.target) == ("POST", path)
    assert keys <= set(request.body)
    assert request.headers["authorization"] == "Bearer sk-caller-12345"
    assert [one["role"] for one in request.body["messages"]][-1] == "user"


# what a server answers -> status and code
ODD: dict[str, tuple[Any, str, int, str]] = {
    "nothing there": ({"error": {"message": "Not Found"}}, "404 Not Found", 404, "model_not_found"),
    "no count": ({"tokens": []}, "200 OK", 502, "backend_answer_unreadable"),
    "a count that is none": ({"count": "42"}, "200 OK", 502, "backend_answer_unreadable"),
    "a flag": ({"count": True}, "200 OK", 502, "backend_answer_unreadable"),
    "below zero": ({"count": -1}, "200 OK", 502, "backend_answer_unreadable"),
    "no object": (b"[1]", "200 OK", 502, "backend_answer_unreadable"),
    "down": ({"error": {"message": "no"}}, "500 Internal Server Error", 500, "server_error"),
}


@pytest.mark.parametrize("name", ODD)
async def test_answers_that_are_no_count(name: str) -> None:
    answer, status, expected, code = ODD[name]
    async with counter(answer, status) as server:
        client = client_of({"backends": {"a": {"url": server.url, "profile": "vllm"}}})
        with pytest.raises(APIStatusError) as refused:
            await client.responses.input_tokens.count(model="m", input="Hi")
        await client.close()
    assert (refused.value.status_code, refused.value.code) == (expected, code)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"profile": "deepseek"},
        {"profile": "vllm", "count_tokens": "none"},
    ],
)
async def test_where_there_is_no_counter_that_is_said(settings: Json, scripted: Scripted) -> None:
    async with client_of({"backends": {"a": {"url": scripted.url, **settings}}}) as client:
        with pytest.raises(APIStatusError, match=r'backends\.a\.count_tokens = "ask"') as refused:
            await client.responses.input_tokens.count(model="text", input="Hi")
    assert (refused.value.status_code, refused.value.code) == (501, "input_tokens_not_supported")
    assert scripted.asked == []


async def test_a_backend_is_asked_where_that_is_configured(scripted: Scripted) -> None:
    """The count is the one that it reports; a backend that reports none is not taken for zero."""
    config = over(scripted)
    config["backends"]["scripted"]["count_tokens"] = "ask"
    async with client_of(config) as client:
        counted = await client.responses.input_tokens.count(model="text", **ASKED)
        first = await client.responses.create(model="text", input="One")
        longer = await client.responses.input_tokens.count(model="text", previous_response_id=first.id)
        with pytest.raises(APIStatusError, match="gave none"):
            await client.responses.input_tokens.count(model="usage-none", input="Hi")
    assert (counted.input_tokens, longer.input_tokens) == (11, 11)
    assert scripted.asked[0]["max_completion_tokens"] == 16
    assert [one["role"] for one in scripted.asked[2]["messages"]] == ["user", "assistant"]


async def test_the_replay_backend_counts() -> None:
    async with client_of({}) as client:
        counted = await client.responses.input_tokens.count(model="echo", input="Hello")
        answer = await client.responses.create(model="echo", input="Hello", max_output_tokens=16)
    assert answer.usage is not None
    assert counted.input_tokens == answer.usage.input_tokens


@pytest.mark.live
@needs_llamacpp
async def test_llamacpp_counts_as_it_reports() -> None:
    said: Json = {"input": "How is it?", "instructions": "Be brief."}
    with llamacpp() as url:
        async with client_of({"backends": {"a": {"url": f"{url}/v1", "profile": "llamacpp"}}}) as client:
            counted = await client.responses.input_tokens.count(model="m", **said)
            answer = await client.responses.create(model="m", max_output_tokens=16, **said)
    assert answer.usage is not None
    assert counted.input_tokens == answer.usage.input_tokens
