"""Good statuses with bodies in another dress than their type says, and with bodies that are no chat answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from openai import AsyncOpenAI

from antiphon import aconvert, errors
from antiphon.backend import Timeouts, begin, close
from antiphon_providers.backends import OpenAISDKBackend

from .kinds import KEY, USER, drained, events_of, made, text_of
from .loopback import Act, Script, answer, chunk, chunked, head, serve, text, whole

BODY = {"model": "tiny", "messages": USER}
DIRECT = pytest.mark.parametrize("kind", ["http", "openai_sdk"])

PRETTY = json.dumps(whole("Hello there"), indent=2)
CHUNKS = [chunk({"role": "assistant", "content": "Hello"}), chunk({"content": " there"}), chunk(finish="stop")]
LINES = "".join(json.dumps(one) + "\n" for one in CHUNKS)
SSE = b"".join(text("Hello", " there")).decode()

READABLE: Mapping[str, Script] = {
    "a completion": answer(whole("Hello there")),
    "a printed completion": answer(PRETTY, content_type="application/json; charset=utf-8"),
    "a completion without a content type": answer(PRETTY),
    "a completion as an event stream": answer(PRETTY, content_type="text/event-stream"),
    "a completion as plain text": answer(json.dumps(whole("Hello there")), content_type="text/plain"),
    "events as JSON": answer(SSE, content_type="application/json"),
    "events as plain text": answer(SSE, content_type="text/plain"),
    "events as bytes": answer(SSE, content_type="application/octet-stream"),
    "events without a content type": answer(SSE),
    "events after comments": answer(f": hello\n\n{SSE}", content_type="text/plain"),
    "JSON lines": answer(LINES, content_type="application/x-ndjson"),
    "JSON lines as JSON": answer(LINES, content_type="application/json"),
    "a list of chunks": answer(json.dumps(CHUNKS), content_type="application/json"),
    "compressed events as plain text": answer(
        gzip.compress(SSE.encode()), content_type="text/plain", content_encoding="gzip"
    ),
    "events in tiny pieces": chunked(
        [SSE[:1].encode(), SSE[1:9].encode(), SSE[9:].encode()], content_type="text/plain"
    ),
}


@pytest.mark.parametrize("script", READABLE.values(), ids=READABLE)
@DIRECT
async def test_a_stream_in_another_dress(kind: str, script: Script) -> None:
    async with serve(script) as server, made(kind, server.url) as one:
        response = (await events_of(one))[-1]["response"]
    assert (response["status"], text_of(response)) == ("completed", "Hello there")


UNREADABLE: Mapping[str, tuple[Script, str]] = {
    "a web page": (answer("<!doctype html><title>Sign in</title>", content_type="text/html"), 'a web page, "Sign in"'),
    "a page without a type": (answer("\n <html></html>"), "a web page"),
    "words": (answer("It works!", content_type="text/plain"), "It works!"),
    "words as a page": (answer("It works!", content_type="text/html"), "It works!"),
    "words without a type": (answer("It works!"), "It works!"),
    "a long text": (answer("It works! " * 100_000, content_type="text/plain"), "It works!"),
    "a cut completion as text": (answer(PRETTY[:-30], content_type="text/plain"), "no chat answer"),
    "nothing": (answer("", content_type="text/plain"), "an empty body"),
    "no body": ([head("204 No Content")], "an empty body"),
}


@pytest.mark.parametrize(("script", "says"), UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("way", ["stream", "complete"])
@DIRECT
async def test_an_answer_that_is_none(kind: str, script: Script, says: str, way: str) -> None:
    async with serve(script) as server, made(kind, server.url) as one:
        with pytest.raises(errors.BadAnswer) as caught:
            await (begin(one.backend.stream(one.body())) if way == "stream" else one.backend.complete(one.body()))
    assert says in str(caught.value)
    assert not caught.value.transient


DRESSES = pytest.mark.parametrize("dress", ["text/plain", "text/html", "application/json"])


@DRESSES
@DIRECT
async def test_events_in_another_dress_come_as_they_are_sent(kind: str, dress: str) -> None:
    """Also where the rest never comes; leaving closes the connection."""
    script = chunked([*text("Hello")[:2], Act.HANG], content_type=dress)
    async with serve(script) as server, made(kind, server.url) as one:
        stream = one.backend.stream(one.body())
        assert await anext(aiter(stream)) is not None
        await close(stream)
        await server.until(lambda now: now.open == 0)


@DRESSES
@DIRECT
async def test_a_beginning_that_never_comes(kind: str, dress: str) -> None:
    script = chunked([b"da", Act.HANG], content_type=dress)
    async with serve(script) as server, made(kind, server.url, timeout=Timeouts(first_byte=0.3, idle=0.3)) as one:
        with pytest.raises(errors.TimedOut):
            await drained(one)
        await server.until(lambda now: now.open == 0)


@pytest.mark.parametrize("text", [f"{'y' * 45} {KEY}", f"{'y' * 490}{KEY}", f"<title>{KEY}</title>"])
@pytest.mark.parametrize("dress", ["text/plain", "text/html", "text/event-stream"])
async def test_what_is_no_answer_says_no_key(dress: str, text: str) -> None:
    async with serve(answer(text, content_type=dress)) as server, made("openai_sdk", server.url) as one:
        with pytest.raises(errors.BadAnswer) as caught:
            await drained(one)
    assert KEY[:8] not in f"{caught.value}{vars(caught.value)}"


class Wrapped:
    """A stream as instrumented clients give it: the SDK's own is behind it, and read past it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for one in self._stream:
            yield one


@DRESSES
@pytest.mark.parametrize("body", [SSE, PRETTY], ids=["events", "a completion"])
async def test_a_wrapped_stream_loses_nothing(body: str, dress: str) -> None:
    async with serve(answer(body, content_type=dress)) as server, AsyncOpenAI(base_url=server.url, api_key=KEY) as own:
        create = own.chat.completions.create

        async def wrapping(**request: Any) -> Any:
            return Wrapped(await create(**request))

        own.chat.completions.create = wrapping  # type: ignore[method-assign]  # as instrumentation does it
        backend = OpenAISDKBackend(client=own)
        events = [event async for event in aconvert(backend.stream(BODY), events="dict")]
    failed = body is PRETTY and dress == "text/plain"  # of a type that says nothing: the wrapper reads it alone
    assert events[-1]["type"] == ("response.failed" if failed else "response.completed")
    assert failed or text_of(events[-1]["response"]) == "Hello there"
