"""The real OpenAI client over a backend, inside the process and over a connection: unmodified, in each of its ways."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from antiphon import client, sync_client
from antiphon.errors import BadInput
from antiphon.gateway import create_app
from antiphon_providers.backends.replay import ReplayBackend

from .conftest import listening, over
from .scripted_backend import Scripted

TOOL: openai.types.responses.FunctionToolParam = {
    "type": "function",
    "name": "weather",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


class Place(BaseModel):
    city: str


async def each_way(one: AsyncOpenAI) -> None:
    """Ask in each way that the client has."""
    whole = await one.responses.create(model="text", input="Hi")
    events = [event async for event in await one.responses.create(model="reasoning", input="Hi", stream=True)]
    async with one.responses.stream(model="tool", input="Hi", tools=[TOOL]) as stream:
        kinds = [event.type async for event in stream]
        called = await stream.get_final_response()
    parsed = await one.responses.parse(model="structured", input="Hi", text_format=Place)
    second = await one.responses.create(
        model="tool",
        previous_response_id=called.id,
        tools=[TOOL],
        input=[{"type": "function_call_output", "call_id": called.output[0].call_id, "output": "sun"}],  # type: ignore[union-attr]  # it is a call
    )
    got = await one.responses.retrieve(whole.id)
    items = await one.responses.input_items.list(whole.id)
    again = [event async for event in await one.responses.retrieve(called.id, stream=True, starting_after=2)]
    talk = await one.conversations.create(metadata={"a": "b"})
    await one.responses.create(model="text", input="Hi", conversation=talk.id)
    kept = [item.type async for item in one.conversations.items.list(talk.id)]
    models = [model.id async for model in one.models.list()]
    await one.responses.delete(whole.id)
    assert whole.output_text == "Hello there!"
    assert events[-1].type == "response.completed"
    assert kinds[-1] == "response.completed"
    assert parsed.output_parsed == Place(city="Paris")
    assert second.output_text == "The tool said: sun"
    assert got.id == whole.id
    assert [item.type for item in items.data] == ["message"]
    assert [event.sequence_number for event in again] == list(range(3, len(again) + 3))
    assert kept == ["message", "message"]
    assert "text" in models
    with pytest.raises(openai.NotFoundError):
        await one.responses.retrieve(whole.id)
    with pytest.raises(openai.BadRequestError, match="max_tokens is too large"):
        await one.responses.create(model="error-400", input="Hi", stream=True)
    with pytest.raises(openai.RateLimitError):
        await one.responses.create(model="error-429", input="Hi")
    with pytest.raises(openai.APIError, match="the engine died"):
        async for _ in await one.responses.create(model="error-mid-stream", input="Hi", stream=True):
            pass


async def test_inside_the_process(scripted: Scripted) -> None:
    one = client(scripted.url)
    await each_way(one)
    await one.close()


async def test_over_a_connection(scripted: Scripted) -> None:
    async with listening(create_app(over(scripted))) as url:
        one = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        await each_way(one)
        await one.close()


async def test_events_come_while_they_are_made(scripted: Scripted) -> None:
    one = client(scripted.url)
    stream = await one.responses.create(model="slow", input="Hi", stream=True)
    async for event in stream:
        if event.type == "response.output_text.delta":
            break
    await stream.close()
    await scripted.server.until(lambda server: server.open == 0)
    await one.close()


async def patience(one: AsyncOpenAI) -> list[str]:
    """Return what is raised where the answer does not come in time: whole, its beginning, and what follows that."""
    raised: list[str] = []
    for model, stream in (("hang", False), ("silent", True), ("hang", True)):
        try:
            given = await one.responses.create(model=model, input="Hi", stream=stream, timeout=0.3)
            if not isinstance(given, openai.types.responses.Response):
                async for _ in given:
                    pass
        except Exception as problem:  # noqa: BLE001 -- whatever the client raises
            raised.append(f"{type(problem).__module__}.{type(problem).__name__}")
    return raised


async def test_a_clients_patience_ends_inside_the_process_too(scripted: Scripted) -> None:
    """With the same errors as over a connection; and the backend's connections are closed."""
    async with listening(create_app(over(scripted))) as url:
        connected = AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        expected = await patience(connected)
        await connected.close()
        await scripted.server.until(lambda server: server.open == 0)
    one = client(scripted.url)
    found = await patience(one)
    await scripted.server.until(lambda server: server.open == 0)
    await one.close()
    without_loop = sync_client(scripted.url)
    with pytest.raises(openai.APITimeoutError):
        await asyncio.to_thread(without_loop.responses.create, model="hang", input="Hi", timeout=0.3)
    without_loop.close()
    assert len(expected) == 3
    assert found == expected


def test_without_an_event_loop() -> None:
    one = sync_client()
    whole = one.responses.create(model="echo", input="Hi")
    kinds = [event.type for event in one.responses.create(model="replay/reasoning", input="Hi", stream=True)]
    with one.responses.stream(model="echo", input="Hi") as stream:
        final = stream.get_final_response()
    for _ in one.responses.create(model="echo", input="Hi", stream=True):
        break
    with pytest.raises(openai.BadRequestError, match="temperature"):
        one.responses.create(model="echo", input="Hi", temperature=9)
    one.close()
    assert (whole.output_text, final.output_text) == ("You said: Hi", "You said: Hi")
    assert kinds[-1] == "response.completed"


def test_a_stream_that_was_dropped_is_closed_in_whatever_thread_that_is_seen() -> None:
    """Garbage is collected in any thread, also in that of the client's own event loop, which must not wait for itself."""

    class Collecting(ReplayBackend):
        async def complete(self, body: Any, *, headers: Any = None, timeout: Any = None) -> Any:  # noqa: ASYNC109
            gc.collect()
            return await super().complete(body, headers=headers, timeout=timeout)

    one = sync_client(Collecting())
    gc.disable()
    try:
        for _ in range(3):
            stream = one.responses.create(model="echo", input="Hi", stream=True)
            dropped: list[Any] = [stream, iter(stream)]
            next(dropped[1])
            dropped.append(dropped)  # a cycle, which the collector alone takes apart
            del stream, dropped
            assert one.responses.create(model="echo", input="Hi").output_text == "You said: Hi"
    finally:
        gc.enable()
    one.close()


async def test_a_backend_of_ones_own_and_a_profile() -> None:
    one = client(ReplayBackend(), profile="vllm")
    answers = await asyncio.gather(*(one.responses.create(model="echo", input=f"number {at}") for at in range(20)))
    await one.close()
    assert [answer.output_text for answer in answers] == [f"You said: number {at}" for at in range(20)]


def test_settings_that_are_wrong() -> None:
    with pytest.raises(BadInput, match="nobody"):
        client(profile="nobody")
    with pytest.raises(BadInput, match="telepathy"):
        sync_client("telepathy")


LEAN = """
import asyncio, sys
import httpx2
from antiphon.gateway import create_app
from antiphon.gateway.transport import AppTransport

async def main():
    async with httpx2.AsyncClient(transport=AppTransport(create_app()), base_url="http://x") as client:
        body = {"model": "replay/tools", "input": "Hi", "tools": [{"type": "function", "name": "f"}]}
        for stream in (True, False):
            answer = await client.post("/v1/responses", json={**body, "stream": stream})
            assert answer.status_code == 200, answer.text

asyncio.run(main())
print("openai" in sys.modules)
"""


def test_no_openai_objects_on_the_way() -> None:
    run = subprocess.run([sys.executable, "-c", LEAN], capture_output=True, text=True, timeout=60)
    assert (run.stdout.strip(), run.stderr) == ("False", "")


INSTALLED = """
from antiphon import BadInput, sync_client
from antiphon_providers.backends import ReplayBackend


class Plain:
    form = "chunks"

    def __init__(self):
        held = ReplayBackend()
        self.stream, self.complete, self.models, self.aclose = held.stream, held.complete, held.models, held.aclose


if __name__ == "__main__":
    with sync_client("plain") as one:
        print(one.responses.create(model="echo", input="Hi").output_text)
    try:
        sync_client("plain", options={"colour": "red"})
    except BadInput as problem:
        print(problem)
"""


def test_an_installed_kind_without_options(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(INSTALLED, encoding="utf-8")
    about = tmp_path / "plain-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plain\nVersion: 1\n", encoding="utf-8")
    (about / "entry_points.txt").write_text("[antiphon.backends]\nplain = plain:Plain\n", encoding="utf-8")
    run = subprocess.run(
        [sys.executable, str(tmp_path / "plain.py")], capture_output=True, text=True, cwd=tmp_path, timeout=60
    )
    assert run.stderr == ""
    said, refused = run.stdout.splitlines()
    assert said == "You said: Hi"
    assert (
        refused == "backends.backend: backend 'plain': got an unexpected keyword argument 'colour'; it takes no options"
    )
