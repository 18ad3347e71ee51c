"""Hostile servers and hasty callers, against the models: nothing hangs, nothing leaks, all that is raised is typed."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest

from antiphon.errors import AntiphonError, BadAnswer, RateLimited
from antiphon.models import ChatCompletionsModel, OpenAIResponsesModel
from tests.providers.backends.kinds import KINDS, make, sockets
from tests.providers.backends.loopback import Act, Script, answer, chunked, data, head, serve

from .native_streams import HELLO, added, begin, end, text
from .scripted import text as said

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
REQUEST = {"input": "hello"}
CHAT = [data({**one, "created": 1}) for one in said("Hel", "lo").chunks]
NATIVE = [data(event) for event in [*begin(), added(HELLO, output_index=0), text("Hello", output_index=0)]]
STREAMS = int(os.environ.get("ANTIPHON_LEAK_STREAMS", "100"))
EVENT_STREAM = head(content_type="text/event-stream", connection="close")
BIG = 2**20
PAGE = b"<html><title>502 Bad Gateway</title></html>"

# what a server sends; the models give an answer, or raise one of antiphon's errors
ATTACKS: dict[str, Script] = {
    "nothing": [Act.CLOSE],
    "a reset": [Act.RESET],
    "half a head": [b"HTTP/1.1 200 O", Act.CLOSE],
    "no HTTP": [b"SSH-2.0-OpenSSH\r\n", Act.CLOSE],
    "an empty stream": [EVENT_STREAM, Act.CLOSE],
    "half an event": [EVENT_STREAM, CHAT[0], CHAT[1][:20], Act.CLOSE],
    "half a native event": [EVENT_STREAM, *NATIVE, b'data: {"type": "resp', Act.CLOSE],
    "bytes that are no text": [EVENT_STREAM, b"data: \xff\xfe\xfd\n\n", Act.CLOSE],
    "JSON that is no object": [EVENT_STREAM, b"data: [1]\n\ndata: null\n\ndata: 3\n\n", Act.CLOSE],
    "objects that say nothing": [EVENT_STREAM, b'data: {}\n\ndata: {"type": 3}\n\n', Act.CLOSE],
    "deep JSON": [EVENT_STREAM, b"data: " + b"[" * 100_000 + b"\n\n", Act.CLOSE],
    "a page": answer(PAGE, content_type="text/html"),
    "a page with an error": answer(PAGE, "502 Bad Gateway", content_type="text/html"),
    "a page that says it is a stream": [EVENT_STREAM, PAGE, Act.CLOSE],
    "a stream that says it is a page": answer(b"".join(CHAT), content_type="text/html"),
    "a stream that says it is JSON": answer(b"".join(CHAT), content_type="application/json"),
    "a redirection": answer(b"", "302 Found", location="http://127.0.0.1:9/elsewhere"),
    "an error in a list": answer(b'[{"error": {"code": 400, "message": "no"}}]', "400 Bad Request"),
    "an error of another kind": answer(b'{"error": ["no"]}', "400 Bad Request", content_type="application/json"),
    "a chunk too long": [
        head(transfer_encoding="chunked", content_type="text/event-stream"),
        b"ffffffff\r\n",
        Act.CLOSE,
    ],
    "a wrong length": [head(content_type="application/json", content_length="999999"), b"{}", Act.CLOSE],
    "wrong compression": [head(content_type="application/json", content_encoding="gzip"), b"not gzip", Act.CLOSE],
}


async def drained(model: Any, stream: bool) -> None:
    """Ask, and pull all that comes."""
    answered = await model.create(REQUEST, stream=stream)
    if stream:
        async for _ in answered:
            pass


async def attacked(model: Any, stream: bool) -> None:
    """Ask; what comes is an answer, or a typed error, in time."""
    async with asyncio.timeout(20):
        with suppress(AntiphonError):
            await drained(model, stream)
        await model.close()


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", [*KINDS, "native", "repaired"])
async def test_whatever_a_server_sends_is_typed(kind: Any, stream: bool) -> None:
    for script in ATTACKS.values():
        async with serve(script) as server:
            if kind in ("native", "repaired"):
                model: Any = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=kind == "repaired")
            else:
                made = make(kind, server.url)
                model = ChatCompletionsModel(made.model, backend=made.backend, profile="openai")
            await attacked(model, stream)


@pytest.mark.parametrize(
    "value", ["", "-5", "soon", "1e400", "nan", "Thu, 01 Jan 1970 00:00:00 GMT", "9" * 400, "3, 4"]
)
async def test_odd_values_of_retry_after(value: str) -> None:
    refusal = answer({"error": {"message": "slow down"}}, "429 Too Many Requests", retry_after=value)
    async with serve(refusal) as server:
        for model in (
            ChatCompletionsModel("tiny", base_url=server.url),
            OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1"),
        ):
            with pytest.raises(RateLimited) as caught:
                await model.create(REQUEST)
            await model.close()
            wait = caught.value.retry_after
            assert wait is None or 0 <= wait < 1e9


async def test_a_body_without_end_is_left() -> None:
    """A whole answer is read up to a limit, whatever its server goes on sending."""
    pieces = [b" " * BIG] * 100
    script: Script = [head(content_type="application/json", connection="close"), *pieces, Act.CLOSE]
    async with serve(script) as server:
        model = ChatCompletionsModel("tiny", base_url=server.url)
        for stream in (True, False):
            with pytest.raises(BadAnswer):
                await drained(model, stream)
        await server.until(lambda now: now.open == 0)
        await model.close()


@pytest.mark.parametrize("repair", [False, True])
async def test_cancelled_native_streams_leave_nothing_behind(repair: bool) -> None:
    before = sockets()
    async with serve([*chunked(NATIVE)[:-1], Act.HANG]) as server:
        model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repair)

        async def cancelled() -> None:
            spoke = asyncio.Event()

            async def pull() -> None:
                async for event in await model.create(REQUEST, stream=True):
                    if event.type == "response.output_text.delta":
                        spoke.set()

            task = asyncio.create_task(pull())
            await spoke.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        for _ in range(10):
            await cancelled()
        tasks = len(asyncio.all_tasks())
        gc.collect()
        tracemalloc.start()
        start = tracemalloc.get_traced_memory()[0]
        for _ in range(STREAMS // 10):
            await asyncio.gather(*(cancelled() for _ in range(10)))
            server.requests.clear()
        await server.until(lambda now: now.open == 0)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
        tracemalloc.stop()
        await model.close()
        assert grown < 2000 * STREAMS
        assert len(asyncio.all_tasks()) <= tasks
    await asyncio.sleep(0.1)
    assert sockets() <= before


@pytest.mark.parametrize("native", [False, True])
async def test_cancelled_at_each_step(native: bool) -> None:
    """Whenever the caller is cancelled, the connection is closed, and CancelledError comes out."""
    body = [*NATIVE, data(end(HELLO))] if native else [*CHAT, b"data: [DONE]\n\n"]
    async with serve(chunked(body)) as server:
        for steps in range(60):
            model: Any = ChatCompletionsModel("tiny", base_url=server.url)
            if native:
                model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=True)

            async def pull(model: Any = model) -> None:
                async for _ in await model.create(REQUEST, stream=True):
                    await asyncio.sleep(0)

            task = asyncio.create_task(pull())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            assert outcome is None or isinstance(outcome, asyncio.CancelledError)
            await model.close()
        await server.until(lambda now: now.open == 0)


async def test_one_model_in_many_threads() -> None:
    """A model may be used in several event loops at once: each has its own connections."""
    async with serve(chunked([*CHAT, b"data: [DONE]\n\n"])) as server:
        model = ChatCompletionsModel("tiny", base_url=server.url)
        answers: list[Any] = []

        async def ask() -> None:
            answers.append((await model.create(REQUEST, stream=False)).output_text)
            await model.close()

        threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(8)]
        for thread in threads:
            thread.start()
        await asyncio.to_thread(lambda: [thread.join(20) for thread in threads])
    assert answers == ["Hello"] * 8


async def test_a_native_stream_without_end_is_live() -> None:
    """Each event is out before the next comes, repaired or not."""
    async with serve([*chunked(NATIVE)[:-1], Act.HANG]) as server:
        for repair in (False, True):
            model = OpenAIResponsesModel("tiny", base_url=f"{server.url}/v1", repair=repair)
            stream = await model.create(REQUEST, stream=True)
            async for event in stream:
                if event.type == "response.output_text.delta":
                    break
            await stream.aclose()
            await model.close()
        await server.until(lambda now: now.open == 0)
