"""A scripted HTTP server on loopback: raw control of status, headers and the pieces of the body, and of how it breaks.

It counts what a client does: requests, connections that were made, those that are open, clients that left early.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import random
import socket
import struct
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias


class Act(Enum):
    """What the server does instead of sending bytes."""

    HANG = "hang"  # sends nothing more until the client leaves
    RESET = "reset"  # breaks the connection with a TCP reset
    CLOSE = "close"  # closes the connection


@dataclass(frozen=True, slots=True)
class Pause:
    """Silence for so many seconds."""

    seconds: float


Step: TypeAlias = bytes | Act | Pause


@dataclass(frozen=True, slots=True)
class Request:
    """What the client sent. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    raw: bytes
    connection: int = 0  # which of the server's it came on, from 1

    @property
    def body(self) -> Any:
        """The JSON body."""
        return json.loads(self.raw)


Script: TypeAlias = Sequence[Step]


@dataclass(slots=True)
class Loopback:
    """The running server."""

    url: str
    requests: list[Request] = field(default_factory=list)
    connections: int = 0  # made so far
    open: int = 0  # now
    left: int = 0  # clients that left while the server hung
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, holds: Callable[[Loopback], bool]) -> None:
        """Wait until `holds`; fails after ten seconds."""
        async with asyncio.timeout(10), self.changed:
            await self.changed.wait_for(lambda: holds(self))


# --- what a server says ----------------------------------------------------------------------------------------------


def head(status: str = "200 OK", **headers: str) -> bytes:
    """Return a response head; `content_type` is `Content-Type`, and so on."""
    lines = [f"HTTP/1.1 {status}", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def answer(body: bytes | str | Mapping[str, Any], status: str = "200 OK", **headers: str) -> Script:
    """Return a whole answer: JSON for a mapping."""
    if isinstance(body, Mapping):
        headers = {"content_type": "application/json", **headers}
        body = json.dumps(body)
    data = body.encode() if isinstance(body, str) else body
    return [head(status, content_length=str(len(data)), **headers) + data]


def chunked(pieces: Iterable[Step], status: str = "200 OK", **headers: str) -> Script:
    """Return an answer in HTTP chunks, one for each piece; it is whole unless a step breaks it."""
    headers = {"content_type": "text/event-stream", **headers}
    steps: list[Step] = [head(status, transfer_encoding="chunked", **headers)]
    steps += [b"%x\r\n%b\r\n" % (len(piece), piece) if isinstance(piece, bytes) else piece for piece in pieces]
    return [*steps, b"0\r\n\r\n"]


def data(payload: Mapping[str, Any] | str) -> bytes:
    """Return one server-sent event."""
    return f"data: {payload if isinstance(payload, str) else json.dumps(payload)}\n\n".encode()


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a chat completion chunk."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny", "choices": [choice]}
    return {**base, **more}


def text(*pieces: str, done: bool = True) -> list[bytes]:
    """Return the events of a chat answer that says `pieces`."""
    said = [data(chunk({"role": "assistant", "content": ""})), *(data(chunk({"content": piece})) for piece in pieces)]
    usage = {"prompt_tokens": 3, "completion_tokens": len(pieces), "total_tokens": 3 + len(pieces)}
    ending = [data(chunk(finish="stop")), data(chunk(choices=[], usage=usage))]
    return [*said, *ending, *([data("[DONE]")] if done else [])]


def whole(said: str) -> dict[str, Any]:
    """Return a whole chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    base = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "tiny"}
    return {**base, "choices": [choice], "usage": usage}


def gzipped(pieces: Iterable[bytes]) -> list[Step]:
    """Return `pieces` compressed, cut in three places that are no borders of anything."""
    packed = gzip.compress(b"".join(pieces))
    third = len(packed) // 3
    return [packed[:third], packed[third : 2 * third], packed[2 * third :]]


# --- the server ------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def serve(script: Script | Callable[[Request], Script], port: int = 0) -> AsyncIterator[Loopback]:
    """Run the server while the block lasts. A script is what each request gets, or what finds that."""
    server = Loopback("")
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await _note(server, connections=1, open=1)
        number = server.connections
        try:
            while (request := await _request(reader, number)) is not None:
                server.requests.append(request)
                await _note(server)
                steps = script(request) if callable(script) else script
                if not await _play(server, steps, reader, writer):
                    break
        except ConnectionError:
            await _note(server, left=1)
        except asyncio.CancelledError:
            pass  # the block was left: asyncio reports a connection's task that ends as cancelled
        finally:
            writer.close()
            await _note(server, open=-1)

    listening = await asyncio.start_server(connected, "127.0.0.1", port)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def free_port() -> int:
    """Return a port on which nobody listens, for a server that is begun in a moment.

    It is below those that systems give out by themselves (from 32768 on Linux), so that no connection gets it first.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)  # no seed: tests run side by side
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


async def _note(server: Loopback, **more: int) -> None:
    async with server.changed:
        for name, count in more.items():
            setattr(server, name, getattr(server, name) + count)
        server.changed.notify_all()


async def _request(reader: asyncio.StreamReader, connection: int) -> Request | None:
    """Return what comes next, None where the client leaves before it is whole."""
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = lines[0].split(" ")
        named = (line.partition(": ") for line in lines[1:] if line)
        headers = {name.lower(): value for name, _, value in named}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return Request(method, target, headers, raw, connection)


async def _play(server: Loopback, steps: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Send one answer; returns whether the connection is still good."""
    for step in steps:
        match step:
            case bytes():
                writer.write(step)
                await writer.drain()
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Act.HANG:
                with contextlib.suppress(ConnectionError):
                    await reader.read(1)
                await _note(server, left=1)
                return False
            case Act.RESET:
                held: socket.socket = writer.get_extra_info("socket")
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                writer.transport.abort()
                return False
            case Act.CLOSE:
                return False
    return True
