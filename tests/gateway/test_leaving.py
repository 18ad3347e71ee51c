"""Clients that go away, backends that fall silent or die, responses that are cancelled, limits: over real connections."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx2
import pytest

from antiphon.backend import Form, Pieces
from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport

from .asking import Json, asked, asking, events_in, judged, shape
from .conftest import listening, over
from .scripted_backend import Scripted

ASK: Json = {"input": "Hi", "stream": True}


async def first_piece(answer: httpx2.Response) -> bytes:
    return await anext(answer.aiter_raw())


def count_of(text: str, **labels: str) -> float:
    """Return what the metrics say of responses with these labels."""
    wanted = "{" + ",".join(f'{name}="{value}"' for name, value in sorted(labels.items())) + "}"
    lines = [line for line in text.splitlines() if line.startswith(f"antiphon_responses_total{wanted} ")]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


@pytest.mark.parametrize("scenario", ["slow", "hang"])
async def test_a_client_that_leaves_a_stream_stops_the_backend(scenario: str, scripted: Scripted) -> None:
    async with listening(create_app(over(scripted))) as url, httpx2.AsyncClient(base_url=url) as client:
        async with client.stream("POST", "/v1/responses", json={"model": scenario, **ASK}) as answer:
            assert b"event: response.created" in await first_piece(answer)
        await scripted.server.until(lambda server: server.open == 0)
        metrics = (await client.get("/metrics")).text
    assert count_of(metrics, backend="scripted", outcome="left") == 1
    assert "antiphon_responses_running 0" in metrics


async def test_a_client_that_leaves_before_the_answer_stops_the_backend(scripted: Scripted) -> None:
    async with listening(create_app(over(scripted))) as url, httpx2.AsyncClient(base_url=url) as client:
        asking_slowly = asyncio.create_task(client.post("/v1/responses", json={"model": "hang", "input": "Hi"}))
        await scripted.until_asked(1)
        asking_slowly.cancel()
        await asyncio.wait((asking_slowly,))
        await scripted.server.until(lambda server: server.open == 0)
        metrics = (await client.get("/metrics")).text
    assert count_of(metrics, backend="scripted", outcome="left") == 1


async def test_silence_is_filled_with_comments(scripted: Scripted) -> None:
    config = over(scripted, limits={"keep_alive": 0.1})
    async with listening(create_app(config)) as url, httpx2.AsyncClient(base_url=url, timeout=20) as client:
        answer = await client.post("/v1/responses", json={"model": "silent", **ASK})
    assert answer.content.startswith(b": keep-alive\n\n")
    assert shape(judged(events_in(answer.content))[-1]["response"])["output"] == [["message", "At last."]]


async def test_a_failure_after_a_long_silence_is_a_failed_response(scripted: Scripted) -> None:
    config = over(scripted, limits={"keep_alive": 0.05, "first_byte": 0.3}, retry={"attempts": 0})
    async with asking(config) as client:
        answer = await client.post("/v1/responses", json={"model": "silent", **ASK})
    events = judged(events_in(answer.content))
    assert [event["type"] for event in events] == [
        "response.created",
        "response.in_progress",
        "error",
        "response.failed",
    ]


async def test_a_backend_that_is_too_slow_is_a_gateway_timeout(scripted: Scripted) -> None:
    config = over(scripted, limits={"first_byte": 0.2}, retry={"attempts": 0})
    async with asking(config) as client:
        answers = [await asked(client, "silent", stream=stream) for stream in (True, False)]
    assert [(one.status_code, one.json()["error"]["code"]) for one in answers] == [(504, "backend_timeout")] * 2


async def test_a_backend_that_falls_silent_ends_the_stream(scripted: Scripted) -> None:
    async with asking(over(scripted, limits={"idle": 0.2})) as client:
        answer = await client.post("/v1/responses", json={"model": "hang", **ASK})
    final = judged(events_in(answer.content))[-1]
    assert final["type"] == "response.failed"
    assert "silent" in final["response"]["error"]["message"]


async def test_a_response_is_cancelled(scripted: Scripted) -> None:
    async with listening(create_app(over(scripted))) as url, httpx2.AsyncClient(base_url=url, timeout=20) as client:
        async with client.stream("POST", "/v1/responses", json={"model": "slow", **ASK}) as answer:
            body = answer.aiter_raw()
            held = await anext(body)
            response_id = events_in(held)[0]["response"]["id"]
            running = (await client.get(f"/v1/responses/{response_id}")).json()
            again = await client.get(f"/v1/responses/{response_id}?stream=true")
            cancelled = (await client.post(f"/v1/responses/{response_id}/cancel")).json()
            async for piece in body:
                held += piece
        gone = await client.get(f"/v1/responses/{response_id}")
        unknown = await client.post("/v1/responses/resp_unknown/cancel")
    assert (running["status"], cancelled["status"], cancelled["id"]) == ("in_progress", "cancelled", response_id)
    assert (again.status_code, again.json()["error"]["code"]) == (400, "response_in_progress")
    final = judged(events_in(held))[-1]["response"]
    assert final["status"] == "failed"
    assert "cancelled by a request" in final["error"]["message"]
    assert (gone.status_code, unknown.status_code) == (404, 404)
    await scripted.server.until(lambda server: server.open == 0)


async def test_more_responses_than_places_are_refused(scripted: Scripted) -> None:
    app = create_app(over(scripted, limits={"streams": 1}))
    async with listening(app) as url, httpx2.AsyncClient(base_url=url, timeout=20) as client:
        async with client.stream("POST", "/v1/responses", json={"model": "hang", **ASK}) as answer:
            body = answer.aiter_raw()  # held: to drop it is to leave
            await anext(body)
            refused = await asked(client, "text")
        await scripted.server.until(lambda server: server.open == 0)
        taken = await asked(client, "text")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_overloaded")
    assert refused.headers["retry-after"] == "1"
    assert taken.status_code == 200


async def test_too_many_events_end_the_stream_as_failed(scripted: Scripted) -> None:
    async with asking(over(scripted, limits={"events": 10})) as client:
        answer = await client.post("/v1/responses", json={"model": "slow", **ASK})
    events = judged(events_in(answer.content))
    assert events[-1]["type"] == "response.failed"
    assert "more than 10 events" in events[-1]["response"]["error"]["message"]


async def test_a_slow_reader_slows_the_backend() -> None:
    """What is ahead of a reader that takes nothing stays within the limit, and comes whole and in order later."""
    backend = Endless(pieces=8_000)
    app = create_app({"limits": {"buffer_bytes": 8_000}}, backends={"endless": backend})
    async with listening(app) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port, limit=2**12)
        body = b'{"model":"m","input":"Hi","stream":true,"store":false}'
        head = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
        writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        await backend.stalled()
        given_before = backend.given
        received = await reader.read()
        writer.close()
    assert given_before < 8_000
    events = judged(events_in(_unchunked(received.partition(b"\r\n\r\n")[2])))
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert deltas == [f"{number} " + "x" * 1000 for number in range(8_000)]


def _unchunked(body: bytes) -> bytes:
    held: list[bytes] = []
    at = 0
    while at < len(body):
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        held.append(body[end + 2 : end + 2 + size])
        at = end + size + 4
    return b"".join(held)


class Endless:
    """A backend that gives large pieces as fast as they are taken."""

    form = "sse"

    def __init__(self, pieces: int) -> None:
        self._pieces, self.given = pieces, 0

    async def stalled(self) -> None:
        """Return once some were taken, and no more are."""
        before = -1
        while self.given < 10 or before != self.given:
            before = self.given
            await asyncio.sleep(0.3)

    async def stream(self, body: Any, *, headers: Any = None, timeout: Any = None) -> Any:  # noqa: ASYNC109
        for number in range(self._pieces):
            self.given += 1
            delta = {"content": f"{number} " + "x" * 1000}
            yield b"data: %b\n\n" % json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode()
        yield b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    async def complete(self, body: Any, *, headers: Any = None, timeout: Any = None) -> Any:  # noqa: ASYNC109
        raise NotImplementedError

    async def models(self) -> list[dict[str, Any]]:
        return []

    async def aclose(self) -> None:
        pass


async def test_a_gateway_that_ends_ends_its_streams_as_failed(scripted: Scripted) -> None:
    app = create_app(over(scripted, limits={"drain": 0.3}))
    async with (
        listening(app) as url,
        httpx2.AsyncClient(base_url=url, timeout=20) as client,
        client.stream("POST", "/v1/responses", json={"model": "hang", **ASK}) as answer,
    ):
        body = answer.aiter_raw()
        held = await anext(body)
        app.state.gateway.drain()
        refused, ready = await asked(client, "text"), await client.get("/readyz")
        async for piece in body:
            held += piece
    final = judged(events_in(held))[-1]["response"]
    assert "shutting down" in final["error"]["message"]
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "server_shutting_down")
    assert (ready.status_code, ready.json()["status"]) == (503, "draining")


async def test_a_body_that_does_not_come(scripted: Scripted) -> None:
    """A client that promises a body and leaves, and one that stays: both get no place for long, and no fault is logged."""
    head = b"POST /v1/responses HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    app = create_app(over(scripted, limits={"body_seconds": 0.3, "streams": 2}))
    async with listening(app) as url:
        port = httpx2.URL(url).port
        _, leaves = await asyncio.open_connection("127.0.0.1", port)
        stays_reader, stays = await asyncio.open_connection("127.0.0.1", port)
        for writer in (leaves, stays):
            writer.write(head)
        await leaves.drain()
        leaves.close()
        answer = await stays_reader.readuntil(b"\r\n")
        stays.close()
        async with httpx2.AsyncClient(base_url=url) as client:
            after = await asked(client, "text")
            metrics = (await client.get("/metrics")).text
    assert b" 408 " in answer
    assert after.status_code == 200
    assert 'status="500"' not in metrics


class Held:
    """A backend that says a word, and then nothing. `open`: how many of its answers were begun and not closed."""

    form: Form = "chunks"

    def __init__(self) -> None:
        self.open = 0

    def stream(self, body: Any, *, headers: Any = None, timeout: Any = None) -> Pieces:
        return Pieces(self._said(), lambda: None)

    async def _said(self) -> AsyncGenerator[Any, None]:
        self.open += 1
        try:
            await asyncio.sleep(0)
            yield {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": None}]}
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.open -= 1

    async def complete(self, body: Any, *, headers: Any = None, timeout: Any = None) -> Any:  # noqa: ASYNC109
        async for _ in self._said():
            pass

    async def models(self) -> list[dict[str, Any]]:
        return []

    async def aclose(self) -> None:
        pass


@pytest.mark.parametrize("how", [{"stream": True}, {"stream": False}])
async def test_a_client_leaves_at_any_moment(how: dict[str, bool]) -> None:
    """After any number of turns of the event loop: when the request is over, nothing of the backend's answer is open."""
    backend = Held()
    app = create_app({"backends": {"held": {"kind": "held"}}, "store": {"url": "none"}}, backends={"held": backend})
    transport = AppTransport(app)
    left: dict[int, int] = {}
    async with httpx2.AsyncClient(transport=transport, base_url="http://antiphon.test") as client:
        for turns in range(60):
            asking_it = asyncio.create_task(asked(client, "m", **how))
            for _ in range(turns):
                await asyncio.sleep(0)
            asking_it.cancel()
            await asyncio.wait((asking_it,))
            if backend.open:
                left[turns] = backend.open
            backend.open = 0
    assert left == {}
    assert app.state.gateway.gauges()["antiphon_responses_running"] == 0
