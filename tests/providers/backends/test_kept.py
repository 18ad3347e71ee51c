"""Connections kept for the next request: servers close them when they like, which is nobody's error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from antiphon import errors, to_response
from antiphon.backend.kept import KeptConnections

from .kinds import Made, events_of, made, text_of
from .loopback import Act, Loopback, Pause, Request, Script, answer, chunked, head, serve, text, whole

# what a server does to a request on a connection on which it answered before
GONE: dict[str, Script] = {
    "closes it": [Act.CLOSE],
    "resets it": [Act.RESET],
    "closes it after a while": [Pause(0.05), Act.CLOSE],
}
# what comes of an answer before the connection ends
BEGINNINGS: dict[str, bytes] = {
    "a letter": b"H",
    "a blank line": b"\r\n",
    "half a status line": b"HTTP/1.1 20",
    "a status line": b"HTTP/1.1 200 OK\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Ty",
    "that it may go on": b"HTTP/1.1 100 Continue\r\n\r\n",
    "hints": b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
    "what is no HTTP": b"nonsense\r\n\r\n",
    "a head": head(content_type="application/json", content_length="100"),
    "half a body": head(content_type="application/json", content_length="100") + b'{"choices": [',
    "half a chunk": head(content_type="text/event-stream", transfer_encoding="chunked") + b"1f\r\ndata: {",
}
ENDS = pytest.mark.parametrize("end", [Act.CLOSE, Act.RESET], ids=["closed", "reset"])
DIRECT = pytest.mark.parametrize("kind", ["http", "openai_sdk"])  # the other SDKs have connections of their own


def served(server: Loopback, *instead: Script) -> Script:
    """Return the answer to the last request: its place in `instead`, or a good answer where that is empty or over."""
    script: Script = instead[len(server.requests) - 1] if len(server.requests) <= len(instead) else []
    if script:
        return script
    streams = server.requests[-1].body.get("stream")
    return chunked(text("Hello")) if streams else answer(whole("Hello"))


async def asked(one: Made, streamed: bool) -> str:
    if streamed:
        return text_of((await events_of(one))[-1]["response"])
    return text_of(to_response(await one.backend.complete(one.body()), events="dict"))


@DIRECT
@pytest.mark.parametrize("first", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("second", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
async def test_a_kept_connection_that_is_gone_is_made_again(kind: str, gone: Script, first: bool, second: bool) -> None:
    async with serve(lambda _: served(server, [], gone)) as server, made(kind, server.url) as one:
        texts = [await asked(one, first), await asked(one, second), await asked(one, first)]
        assert texts == ["Hello"] * 3
        assert (len(server.requests), server.connections) == (4, 2)


@DIRECT
@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_request_is_sent_once_more_and_not_oftener(kind: str, gone: Script, streamed: bool) -> None:
    async with serve(lambda _: served(server, [], gone, gone)) as server, made(kind, server.url) as one:
        await asked(one, streamed)
        with pytest.raises(errors.ConnectionFailed):
            await asked_raw(one, streamed)
        assert len(server.requests) == 3


@DIRECT
@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_request_on_a_new_connection_is_not_sent_again(kind: str, gone: Script, streamed: bool) -> None:
    async with serve(lambda _: served(server, gone)) as server, made(kind, server.url) as one:
        with pytest.raises(errors.ConnectionFailed):
            await asked_raw(one, streamed)
        assert len(server.requests) == 1


@DIRECT
@ENDS
@pytest.mark.parametrize("begun", BEGINNINGS.values(), ids=BEGINNINGS)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_an_answer_that_began_is_not_asked_for_again(kind: str, begun: bytes, end: Act, streamed: bool) -> None:
    """Whatever came of it, and if it is a byte: who has it took the request."""
    script = [begun, Pause(0.02), end]
    async with serve(lambda _: served(server, [], script)) as server, made(kind, server.url) as one:
        await asked(one, streamed)
        with pytest.raises(errors.ConnectionFailed):
            await asked_raw(one, streamed)
        assert len(server.requests) == 2
        assert await asked(one, streamed) == "Hello"
    await server.until(lambda server: server.open == 0)


async def asked_raw(one: Made, streamed: bool) -> None:
    """Ask, and raise what the backend raises."""
    if not streamed:
        await one.backend.complete(one.body())
        return
    async for _ in one.backend.stream(one.body()):
        pass


@DIRECT
@ENDS
@pytest.mark.parametrize("again", [1, 4, 12])
async def test_what_lost_its_connection_goes_out_on_a_new_one(kind: str, end: Act, again: int) -> None:
    """A server that knows none of the eight connections any more, and does not tell before, loses no request."""
    many, old = 8, 0

    def script(_: Request) -> Script:
        if len(server.requests) <= many:
            return [Pause(0.05), *chunked(text("Hello"))]  # so that each has a connection of its own
        return [end] if server.requests[-1].connection <= old else chunked(text("Hello"))

    async with serve(script) as server, made(kind, server.url) as one:
        await asyncio.gather(*(asked(one, True) for _ in range(many)))
        old = server.connections
        texts = await asyncio.gather(*(asked(one, True) for _ in range(again)))
    assert (old, texts) == (many, ["Hello"] * again)
    assert len(server.requests) <= many + again + min(again, many)


async def _read() -> AsyncIterator[bytes]:
    yield b"{}"


@pytest.mark.parametrize("content", [b"{}", _read()], ids=["held", "read"])
async def test_a_body_that_was_read_is_not_sent_again(content: bytes | AsyncIterator[bytes]) -> None:
    async with serve(lambda _: served(server, [], [Act.CLOSE])) as server, KeptConnections() as client:
        asking = (("POST", f"{server.url}/v1/chat/completions"), {"content-length": "2"})
        for body in (b"{}", content):
            try:
                await client.request(*asking[0], content=body, headers=asking[1])
            except httpx2.ReadError:
                assert content != b"{}"
        assert len(server.requests) == (3 if content == b"{}" else 2)


async def test_what_a_redirection_led_to_is_not_begun_anew() -> None:
    """The server that redirected has taken the request."""
    moved = answer("", "307 Temporary Redirect", location="/elsewhere")
    async with (
        serve(lambda _: served(server, [], moved, [Act.CLOSE])) as server,
        KeptConnections(follow_redirects=True) as client,
    ):
        await client.post(f"{server.url}/v1", json={})
        with pytest.raises(httpx2.ReadError):
            await client.post(f"{server.url}/v1", json={})
        assert [one.target for one in server.requests] == ["/v1", "/v1", "/elsewhere"]


@DIRECT
async def test_a_client_that_is_closed_sends_nothing_again(kind: str) -> None:
    async with serve(lambda _: served(server, [], [Act.HANG])) as server, made(kind, server.url) as one:
        await asked(one, True)
        asking = asyncio.create_task(asked_raw(one, True))
        await server.until(lambda server: len(server.requests) == 2)
        await one.backend.aclose()
        with pytest.raises(errors.ConnectionFailed, match="ClosedResourceError"):
            await asking
        await server.until(lambda server: server.open == 0)
        assert (len(server.requests), server.connections) == (2, 1)


@DIRECT
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_what_came_before_a_request_is_not_its_answer(kind: str, streamed: bool) -> None:
    """A server that answers once too often gives no caller the answer of another one."""

    def script(_: Request) -> Script:
        said = answer(whole(f"Hello {len(server.requests)}"))
        more = answer(whole("not yours")) if len(server.requests) == 1 else ()
        return [b"".join(step for step in (*said, *more) if isinstance(step, bytes))]

    async with serve(script) as server, made(kind, server.url) as one:
        first = await asked(one, streamed)
        with pytest.raises(errors.ConnectionFailed, match="more than the answer before"):
            await asked_raw(one, streamed)
        assert (first, await asked(one, streamed), server.connections) == ("Hello 1", "Hello 3", 2)
