"""Connections kept for the next request: servers close them when they like, which is nobody's error."""

from __future__ import annotations

import pytest

from antiphon import errors, to_response

from .kinds import Made, events_of, made, text_of
from .loopback import Act, Loopback, Pause, Script, answer, chunked, head, serve, text, whole

# what a server does to a request on a connection on which it answered before
GONE: dict[str, Script] = {
    "closes it": [Act.CLOSE],
    "resets it": [Act.RESET],
    "closes it after a while": [Pause(0.05), Act.CLOSE],
}
BEGUN: dict[str, Script] = {
    "after the head": [head(content_type="application/json", content_length="100"), Act.CLOSE],
    "in the body": [head(content_type="application/json", content_length="100"), b'{"choices": [', Act.CLOSE],
}

pytestmark = pytest.mark.parametrize("kind", ["http", "openai_sdk"])  # the other SDKs have connections of their own


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


@pytest.mark.parametrize("first", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("second", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
async def test_a_kept_connection_that_is_gone_is_made_again(kind: str, gone: Script, first: bool, second: bool) -> None:
    async with serve(lambda _: served(server, [], gone)) as server, made(kind, server.url) as one:
        texts = [await asked(one, first), await asked(one, second), await asked(one, first)]
        assert texts == ["Hello"] * 3
        assert (len(server.requests), server.connections) == (4, 2)


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_request_is_sent_once_more_and_not_oftener(kind: str, gone: Script, streamed: bool) -> None:
    async with serve(lambda _: served(server, [], gone, gone)) as server, made(kind, server.url) as one:
        await asked(one, streamed)
        with pytest.raises(errors.ConnectionFailed):
            await asked_raw(one, streamed)
        assert len(server.requests) == 3


@pytest.mark.parametrize("gone", GONE.values(), ids=GONE)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_request_on_a_new_connection_is_not_sent_again(kind: str, gone: Script, streamed: bool) -> None:
    async with serve(lambda _: served(server, gone)) as server, made(kind, server.url) as one:
        with pytest.raises(errors.ConnectionFailed):
            await asked_raw(one, streamed)
        assert len(server.requests) == 1


@pytest.mark.parametrize("begun", BEGUN.values(), ids=BEGUN)
@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_an_answer_that_began_is_not_asked_for_again(kind: str, begun: Script, streamed: bool) -> None:
    async with serve(lambda _: served(server, [], begun)) as server, made(kind, server.url) as one:
        await asked(one, streamed)
        with pytest.raises(errors.ProviderError):
            await asked_raw(one, streamed)
        assert len(server.requests) == 2


async def asked_raw(one: Made, streamed: bool) -> None:
    """Ask, and raise what the backend raises."""
    if not streamed:
        await one.backend.complete(one.body())
        return
    async for _ in one.backend.stream(one.body()):
        pass
