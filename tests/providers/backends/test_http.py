"""What only plain HTTP can do: URLs, keys, proxies, content types, connections."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from antiphon import BadInput, errors, to_response
from antiphon.backend import Timeouts, begin
from antiphon_providers.backends import HttpBackend

from .kinds import KEY, USER, Made, drained, events_of, made, make, sockets, text_of
from .loopback import Act, Pause, Script, answer, chunked, free_port, head, serve, text

BODY = {"model": "tiny", "messages": USER}


# --- where and how the request goes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("", "/v1"),
        ("/", "/v1"),
        ("/v1", "/v1"),
        ("/v1/", "/v1"),
        ("/openai/v1", "/openai/v1"),
        ("/v1beta/openai/", "/v1beta/openai"),
        ("/chat/completions", ""),
        ("/v1/chat/completions/", "/v1"),
    ],
)
async def test_base_url(path: str, target: str) -> None:
    async with serve(chunked(text("ok"))) as server, made("http", server.url + path) as one:
        await drained(one)
    assert server.requests[0].target == f"{target}/chat/completions"


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://example.org", "http://", "not a url", "/v1"])
def test_a_base_url_that_is_none(url: str) -> None:
    with pytest.raises(BadInput, match="base_url"):
        HttpBackend(url)


async def test_the_models_are_where_the_completions_are() -> None:
    listed = {"object": "list", "data": [{"id": "tiny", "object": "model"}, {"id": "big"}, "odd"]}
    async with serve(answer(listed)) as server, made("http", f"{server.url}/v1/chat/completions") as one:
        models = await one.backend.models()
    assert [model["id"] for model in models] == ["tiny", "big"]
    assert (server.requests[0].method, server.requests[0].target) == ("GET", "/v1/models")


async def test_no_key_no_header() -> None:
    async with serve(chunked(text("ok"))) as server, made("http", server.url, api_key=None) as one:
        await drained(one)
    assert "authorization" not in server.requests[0].headers


async def test_a_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHOIR_KEY", KEY)
    named = {"api_key": None, "api_key_env": "CHOIR_KEY"}
    async with serve(chunked(text("ok"))) as server, made("http", server.url, **named) as one:
        await drained(one)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.delenv("CHOIR_KEY")
    with pytest.raises(BadInput, match="CHOIR_KEY"):
        HttpBackend("http://localhost", api_key_env="CHOIR_KEY")


async def test_credentials_in_the_url_go_out_as_a_header_and_are_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with serve(answer({"error": "bad"}, "400 Bad Request")) as server:
        url = server.url.replace("http://", "http://singer:verysecret@") + "/v1?version=2"
        async with made("http", url, api_key=None, query={"key": KEY}) as one:
            with pytest.raises(errors.BadRequest) as caught:
                await drained(one)
    request = server.requests[0]
    assert request.headers["authorization"] == "Basic c2luZ2VyOnZlcnlzZWNyZXQ="
    assert request.target == f"/v1/chat/completions?version=2&key={KEY}"
    shown = repr(one.backend) + repr(caught.value) + caplog.text
    assert "verysecret" not in shown
    assert "c2luZ2VyOnZlcnlzZWNyZXQ" not in shown


async def test_headers_and_body_that_all_requests_have() -> None:
    more: dict[str, Any] = {"headers": {"api-key": KEY, "X-Team": "a"}, "body": {"top_k": 1, "seed": 2}}
    async with serve(chunked(text("ok"))) as server, made("http", server.url, api_key=None, **more) as one:
        await drained(one, headers={"x-team": "b"})
        async for _ in one.backend.stream({**BODY, "seed": 3}):
            pass
    first, second = server.requests
    assert (first.headers["api-key"], first.headers["x-team"], second.headers["x-team"]) == (KEY, "b", "a")
    assert (first.body["top_k"], first.body["seed"], second.body["seed"]) == (1, 2, 3)


async def test_a_request_that_is_no_json() -> None:
    async with made("http", "http://127.0.0.1:9") as one:
        with pytest.raises(BadInput, match="no JSON"):
            await begin(one.backend.stream({**BODY, "metadata": object()}))


async def test_a_proxy_is_asked_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serve(chunked(text("ok"))) as proxy:
        async with made("http", "http://model.example/v1", proxy=proxy.url) as one:
            await drained(one)
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        async with made("http", "http://model.example/v1") as one:
            await drained(one)
    assert [request.target for request in proxy.requests] == ["http://model.example/v1/chat/completions"] * 2


async def test_the_environment_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with serve(chunked(text("ok"))) as server, made("http", server.url, trust_env=False) as one:
        assert (await events_of(one))[-1]["type"] == "response.completed"


def test_certificates(tmp_path: Path) -> None:
    HttpBackend("https://localhost", verify=False)
    HttpBackend("https://localhost", verify=str(tmp_path))
    HttpBackend("https://localhost", verify=ssl.create_default_context())
    with pytest.raises(BadInput, match="no such file"):
        HttpBackend("https://localhost", verify=str(tmp_path / "none.pem"))


async def test_ones_own_client_is_used_and_not_closed() -> None:
    async with serve(chunked(text("ok"))) as server, httpx2.AsyncClient(headers={"x-own": "1"}) as client:
        async with made("http", server.url, client=client) as one:
            await drained(one)
        assert not client.is_closed
    assert server.requests[0].headers["x-own"] == "1"


# --- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (answer("", content_type="application/json"), "an empty body"),
        (answer("", "308 Permanent Redirect", location="https://else.where/v1"), "https://else.where/v1"),
    ],
    ids=["nothing", "a redirection"],
)
@pytest.mark.parametrize("way", ["stream", "complete"])
async def test_an_answer_that_is_none(script: Script, says: str, way: str) -> None:
    async with serve(script) as server, made("http", server.url) as one:
        with pytest.raises(errors.BadAnswer) as caught:
            await (begin(one.backend.stream(BODY)) if way == "stream" else one.backend.complete(BODY))
    assert says in str(caught.value)
    assert not caught.value.transient


@pytest.mark.parametrize("way", ["stream", "complete"])
@pytest.mark.parametrize(
    ("code", "error"),
    [(429, errors.RateLimited), (401, errors.AuthenticationFailed), (404, errors.NotFound), (500, errors.ServerFailed)],
)
async def test_an_error_with_a_good_status(way: str, code: int, error: type[errors.ProviderError]) -> None:
    async with serve(answer({"error": {"message": "no", "code": code}})) as server, made("http", server.url) as one:
        with pytest.raises(error):
            await (begin(one.backend.stream(BODY)) if way == "stream" else one.backend.complete(BODY))


async def test_a_server_that_always_streams() -> None:
    async with serve(chunked(text("Hello", " there"))) as server, made("http", server.url) as one:
        completion = await one.backend.complete(BODY)
    assert completion["choices"][0]["message"] == {"role": "assistant", "content": "Hello there"}
    response = to_response(completion, events="dict")
    assert (response["status"], response["usage"]["total_tokens"]) == ("completed", 5)


async def test_an_error_of_which_only_half_comes() -> None:
    script: Script = [
        head("429 Too Many Requests", content_length="100", retry_after_ms="1500"),
        b'{"error": "slow',
        Act.CLOSE,
    ]
    async with serve(script) as server, made("http", server.url) as one:
        with pytest.raises(errors.RateLimited) as caught:
            await drained(one)
    assert caught.value.retry_after == 1.5


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [("3", 3, 3), ("0.5", 0.5, 0.5), ("-1", 0, 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0), ("soon", None, None)],
)
async def test_retry_after(value: str, least: float | None, most: float | None) -> None:
    script = answer({"error": "later"}, "503 Service Unavailable", retry_after=value)
    async with serve(script) as server, made("http", server.url) as one:
        with pytest.raises(errors.ServerFailed) as caught:
            await drained(one)
    found = caught.value.retry_after
    assert found is None if least is None or most is None else found is not None and least <= found <= most


# --- connections -----------------------------------------------------------------------------------------------------


async def test_a_connection_that_nobody_gives() -> None:
    times = Timeouts(connect=0.3)
    script = chunked([*text("Hello")[:2], Act.HANG])
    async with serve(script) as server, made("http", server.url, timeout=times, max_connections=1) as one:
        first = await begin(one.backend.stream(BODY))
        with pytest.raises(errors.TimedOut) as caught:
            await drained(one)
        await first.aclose()
    assert caught.value.stage == "connect"


async def test_what_comes_after_done_is_read_and_a_server_that_never_ends_is_left() -> None:
    script = chunked([*text("Hello"), Act.HANG])
    async with serve(script) as server, made("http", server.url) as one:
        assert (await events_of(one))[-1]["type"] == "response.completed"
        await server.until(lambda it: it.left == 1)


async def test_many_streams_share_the_backend() -> None:
    script = chunked([piece for one in text(*"abcdef") for piece in (one, Pause(0.01))])
    async with serve(script) as server, made("http", server.url) as one:
        found = await asyncio.gather(*(events_of(one) for _ in range(20)))
    assert {text_of(events[-1]["response"]) for events in found} == {"abcdef"}
    assert server.connections == 20


async def test_closing_the_backend_breaks_what_runs_and_it_can_be_used_again() -> None:
    before = sockets()
    async with serve(chunked([*text("Hello")[:2], Act.HANG])) as server:
        one = Made(HttpBackend(server.url), "tiny")
        stream = await begin(one.backend.stream(BODY))
        await one.backend.aclose()
        await server.until(lambda it: it.open == 0)
        with pytest.raises(errors.ProviderError):
            await exhausted(stream)
        await begin(one.backend.stream(BODY))
        await one.backend.aclose()
    await asyncio.sleep(0)
    assert sockets() <= before


async def exhausted(stream: AsyncIterator[bytes]) -> None:
    async for _ in stream:
        pass


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["http", "openai_sdk"])  # the other SDKs keep clients of their own
def test_each_event_loop_has_its_own_connections(kind: str) -> None:
    port = free_port()
    one = make(kind, f"http://127.0.0.1:{port}")
    wrong: list[dict[str, Any]] = []

    async def ask(close: bool) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: wrong.append(context))
        async with serve(chunked(text("ok")), port):
            assert (await events_of(one))[-1]["type"] == "response.completed"
            gc.collect()
            await asyncio.sleep(0)
            if close:
                await one.backend.aclose()

    for close in (False, False, True):  # as programs do that call `asyncio.run` again and again
        asyncio.run(ask(close))
    gc.collect()
    assert wrong == []
