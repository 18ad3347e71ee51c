"""`python -m tests.bench.gateway`: what the gateway costs a chunk, and what 500 streams at once cost in memory.

Three processes: a backend that writes prepared chunks, the subject, and this one, which reads and counts. The subjects
are the engine alone (the backend's bytes to events, through the same HTTP client, handed to nobody) and the gateway.
CPU is that of the subject's process, from its start-up on, by chunk; the sides take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
BODY = {"model": "m", "input": "Hi", "stream": True, "store": False}


@dataclass(frozen=True, slots=True)
class Load:
    """How much is streamed. `together`: chunks in one write of the backend; `pause`: seconds between its writes."""

    streams: int
    chunks: int
    together: int
    pause: float = 0.0


LOADS = {
    "one chunk a write": Load(20, 2000, 1),
    "10 chunks a write": Load(20, 2000, 10),
    "100 chunks a write": Load(20, 2000, 100),
}
CROWD = Load(500, 400, 1, 0.01)


# --- the backend -------------------------------------------------------------------------------------------------------


def chunk(number: int) -> bytes:
    choice = {"index": 0, "delta": {"content": f"w{number:03d} "}, "finish_reason": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


END = (
    b'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n\ndata: [DONE]\n\n'
)


async def backend(port: int, load: Load) -> None:
    """Answer each request with the chunks of `load`."""
    pieces = [chunk(number % 1000) for number in range(load.chunks)]
    writes = [b"".join(pieces[at : at + load.together]) for at in range(0, len(pieces), load.together)]
    framed = [b"%x\r\n%b\r\n" % (len(one), one) for one in (*writes, END)]

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
                await reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                for one in framed:
                    writer.write(one)
                    await writer.drain()
                    await asyncio.sleep(load.pause)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(connected, "127.0.0.1", port, backlog=1024) as server:
        print("ready", flush=True)
        await server.serve_forever()


# --- the subjects ------------------------------------------------------------------------------------------------------


async def engine(url: str, streams: int) -> None:
    """Convert streams of the backend, each time that a line comes, and say when it is done."""
    from antiphon import aconvert_sse
    from antiphon_providers.backends.http import HttpBackend

    http = HttpBackend(url)

    async def one() -> int:
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
        return sum([len(event) async for event in aconvert_sse(http.stream(body), events="sse")])

    print("ready", flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        await asyncio.gather(*(one() for _ in range(streams)))
        print("done", flush=True)


def gateway(url: str, port: int) -> None:
    """Serve the gateway over the backend."""
    import uvicorn

    from antiphon.gateway import create_app

    app = create_app({"backends": {"b": {"url": url}}, "store": {"url": "none"}})
    config = uvicorn.Config(app, port=port, log_level="error", access_log=False, backlog=2048)

    class Announced(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print("ready", flush=True)

    Announced(config).run()


# --- the reader --------------------------------------------------------------------------------------------------------


async def read_one(port: int, *, slow: bool = False) -> tuple[int, bool]:
    """Ask for one response. Return the number of its deltas, and whether all came, in order, and from one stream."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**14)
    body = json.dumps(BODY).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    held: list[bytes] = []
    while piece := await reader.read(2**14):
        held.append(piece)
        if slow:
            await asyncio.sleep(0.05)
    writer.close()
    events = [
        line for line in unchunked(b"".join(held).partition(b"\r\n\r\n")[2]).split(b"\n") if line.startswith(b"data: {")
    ]
    read = [json.loads(line[6:]) for line in events]
    deltas = [event for event in read if event["type"] == "response.output_text.delta"]
    said = [event["delta"] for event in deltas]
    whole = (
        [event.get("sequence_number") for event in read] == list(range(len(read)))
        and said == [f"w{number % 1000:03d} " for number in range(len(said))]
        and len({event.get("item_id") for event in deltas}) == 1
        and read[-1]["type"] == "response.completed"
    )
    return len(deltas), whole


def unchunked(body: bytes) -> bytes:
    held: list[bytes] = []
    at = 0
    while at < len(body):
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        held.append(body[end + 2 : end + 2 + size])
        at = end + size + 4
    return b"".join(held)


def cpu_of(pid: int) -> float:
    """Return the CPU seconds that a process took so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pid: int, field: str = "VmRSS") -> float:
    """Return the MiB of memory that a process holds."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


@asynccontextmanager
async def running(role: str, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run one of the roles in a process of its own while the block lasts."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.bench.gateway", "--role", role, *options),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def costs(load: Load, rounds: int) -> tuple[float, float]:
    """Return the CPU seconds a chunk of the engine and of the gateway: the medians of the rounds."""
    ports = [free_port(), free_port()]
    shape = ("--chunks", str(load.chunks), "--together", str(load.together), "--streams", str(load.streams))
    url = ("--url", f"http://127.0.0.1:{ports[0]}/v1")
    async with (
        running("backend", "--port", str(ports[0]), *shape),
        running("engine", *url, *shape) as alone,
        running("gateway", "--port", str(ports[1]), *url) as served,
    ):
        taken: dict[int, list[float]] = {alone.pid: [], served.pid: []}
        for number in range(rounds + 1):
            for one in (alone, served) if number % 2 else (served, alone):
                before = cpu_of(one.pid)
                await (_engine_round(one) if one is alone else _gateway_round(ports[1], load))
                taken[one.pid].append((cpu_of(one.pid) - before) / load.chunks / load.streams)
        return statistics.median(taken[alone.pid][1:]), statistics.median(taken[served.pid][1:])


async def _engine_round(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"\n")
    assert await process.stdout.readline() == b"done\n"


async def _gateway_round(port: int, load: Load) -> None:
    read = await asyncio.gather(*(read_one(port) for _ in range(load.streams)))
    assert read == [(load.chunks, True)] * load.streams


async def crowd(load: Load) -> dict[str, float]:
    """Return what many streams at once, a tenth of them with slow readers, cost the gateway."""
    ports = [free_port(), free_port()]
    shape = ("--chunks", str(load.chunks), "--together", str(load.together), "--pause", str(load.pause))
    async with (
        running("backend", "--port", str(ports[0]), *shape),
        running("gateway", "--port", str(ports[1]), "--url", f"http://127.0.0.1:{ports[0]}/v1") as served,
    ):
        await read_one(ports[1])
        before, cpu = memory_of(served.pid), cpu_of(served.pid)
        read = await asyncio.gather(*(read_one(ports[1], slow=at % 10 == 0) for at in range(load.streams)))
        whole = sum(1 for count, good in read if good and count == load.chunks)
        spent = cpu_of(served.pid) - cpu
        peak = memory_of(served.pid, "VmHWM")
        return {
            "streams": load.streams,
            "whole": whole,
            "cpu_us_a_chunk": spent / load.streams / load.chunks * 1e6,
            "mib_before": before,
            "mib_at_most": peak,
            "kib_a_stream": (peak - before) * 1024 / load.streams,
        }


def free_port() -> int:
    from tests.providers.backends.loopback import free_port

    return free_port()


PROXY = """model_list:
  - model_name: m
    litellm_params: {{model: deepseek/m, api_base: "{url}", api_key: none}}
"""


async def against(command: str, load: Load, rounds: int) -> tuple[float, float]:
    """Return the CPU seconds a chunk of LiteLLM's proxy, whose `command` is given, and of the gateway, in turn."""
    ports = [free_port(), free_port(), free_port()]
    url = f"http://127.0.0.1:{ports[0]}/v1"
    shape = ("--chunks", str(load.chunks), "--together", str(load.together))
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as settings:
        settings.write(PROXY.format(url=url))
        settings.flush()
        async with (
            running("backend", "--port", str(ports[0]), *shape),
            running("gateway", "--port", str(ports[1]), "--url", url) as served,
            proxy(command, settings.name, ports[2]) as other,
        ):
            taken: dict[int, list[float]] = {other.pid: [], served.pid: []}
            for _ in range(rounds + 1):
                for process, port in ((other, ports[2]), (served, ports[1])):
                    before = cpu_of(process.pid)
                    read = await asyncio.gather(*(read_one(port) for _ in range(load.streams)))
                    assert min(count for count, _ in read) > load.chunks * 0.9, read
                    taken[process.pid].append((cpu_of(process.pid) - before) / load.chunks / load.streams)
            return statistics.median(taken[other.pid][1:]), statistics.median(taken[served.pid][1:])


@asynccontextmanager
async def proxy(command: str, settings: str, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run LiteLLM's proxy while the block lasts."""
    environment = {
        **os.environ,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
    process = await asyncio.create_subprocess_exec(
        *(command, "--config", settings, "--port", str(port), "--host", "127.0.0.1"),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(600):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            except OSError:
                await asyncio.sleep(0.2)
        yield process
    finally:
        process.kill()
        await process.wait()


async def main(rounds: int, only: str, litellm: str) -> None:
    """Measure and print the tables."""
    if litellm:
        print(f"{'':24}{'LiteLLM':>10}{'gateway':>10}   (chunks a CPU second)")
        for together in (1, 10):
            other, served = await against(litellm, Load(10, 500, together), rounds)
            name = f"{together} chunks a write"
            print(f"{name:24}{1 / other:10.0f}{1 / served:10.0f}   ×{other / served:.1f}", flush=True)
    if only in ("", "cost"):
        print(f"{'':24}{'engine':>10}{'gateway':>10}   (CPU µs a chunk)")
        for name, load in LOADS.items():
            alone, served = await costs(load, rounds)
            print(f"{name:24}{alone * 1e6:10.1f}{served * 1e6:10.1f}   ×{served / alone:.2f}", flush=True)
    if only in ("", "crowd"):
        for name, value in (await crowd(CROWD)).items():
            print(f"{name:24}{value:10.1f}")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--role", default="")
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--url", default="")
    options.add_argument("--streams", type=int, default=1)
    options.add_argument("--chunks", type=int, default=1)
    options.add_argument("--together", type=int, default=1)
    options.add_argument("--pause", type=float, default=0.0)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--litellm", default="", metavar="COMMAND", help="LiteLLM's proxy, to be measured beside it")
    options.add_argument("--only", default="", choices=["", "cost", "crowd", "litellm"])
    given = options.parse_args()
    match given.role:
        case "backend":
            asyncio.run(backend(given.port, Load(0, given.chunks, given.together, given.pause)))
        case "engine":
            asyncio.run(engine(given.url, given.streams))
        case "gateway":
            gateway(given.url, given.port)
        case _:
            asyncio.run(main(given.rounds, given.only, given.litellm))
