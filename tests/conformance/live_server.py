"""A chat server on loopback that answers every probe as OpenAI's own would, and ways to break what it says.

`serve(faulty)` runs it; `faulty` may change the chunks of an answer, or write the answer itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from antiphon_conformance.examples.chunks import MODEL, Chunks, Json, chunks_for, event, whole_of


@dataclass(slots=True)
class Answering:
    """What the server is asked to do with one connection."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.writer.write(data)
        await self.writer.drain()

    async def begin(self, content_type: str = "text/event-stream", status: str = "200 OK", **more: str) -> None:
        """Write a head after which the body goes on until the connection is closed."""
        lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", "server: scripted", "connection: close"]
        await self.send("\r\n".join([*lines, *(f"{name}: {value}" for name, value in more.items()), "", ""]).encode())

    async def error(self, status: str, message: str, code: str | None, kind: str = "invalid_request_error") -> None:
        """Write an error as OpenAI does."""
        await self.begin("application/json", status)
        await self.send(json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode())


Faulty: TypeAlias = Callable[[Chunks, Json], Chunks]  # chunks and the request -> what is sent instead
Whole: TypeAlias = Callable[[Answering], Any]  # writes the whole answer


@dataclass(slots=True)
class Scripted:
    """The running server."""

    url: str
    requests: list[Any] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    count: int = 0


async def refuse(one: Answering) -> bool:
    """Refuse what OpenAI refuses; returns whether it did."""
    body = one.body
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        await one.error("400 Bad Request", "'messages' must be a list", None)
    elif body.get("model") != MODEL:
        await one.error("404 Not Found", f"the model {body.get('model')!r} does not exist", "model_not_found")
    elif len(json.dumps(body["messages"])) > 100_000:
        await one.error("400 Bad Request", "maximum context length is 20000 tokens", "context_length_exceeded")
    elif "nonsense" in json.dumps(body.get("response_format", "")):
        await one.error("400 Bad Request", "Invalid schema for response_format", None)
    else:
        return False
    return True


@contextlib.asynccontextmanager
async def serve(faulty: Faulty | None = None, whole: Whole | None = None) -> AsyncIterator[Scripted]:
    """Run the server while the block lasts. `faulty` changes chunks, `whole` answers instead of it."""
    server = Scripted("")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            one = await read(reader, writer)
            server.requests.append(one.body)
            server.headers.append(one.headers)
            server.count += 1
            await (whole(one) if whole is not None else answer(one, faulty, server.count))
        writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0, limit=2**22)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    try:
        yield server
    finally:
        listening.close()


async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Answering:
    """Return a request."""
    begun = await reader.readexactly(1)
    if not begun.isalpha():
        raise ConnectionError("that is no HTTP")
    first, *lines = (begun + await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Answering(method, path, headers, json.loads(raw) if raw else None, writer)


async def answer(one: Answering, faulty: Faulty | None, number: int) -> None:
    """Answer as a chat server."""
    if one.method == "GET":
        await one.begin("application/json")
        await one.send(json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())
        return
    if await refuse(one):
        return
    chunks = chunks_for(one.body, number)
    if not one.body.get("stream"):
        await one.begin("application/json")
        await one.send(json.dumps(whole_of(chunks)).encode())
        return
    await one.begin()
    for chunk in faulty(chunks, one.body) if faulty is not None else chunks:
        await one.send(event(chunk))
        await asyncio.sleep(0)
    await one.send(b"data: [DONE]\n\n")


__all__ = ["MODEL", "Answering", "Chunks", "Faulty", "Json", "Scripted", "answer", "event", "serve"]
