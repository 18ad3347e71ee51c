"""What is read as a request, and what is not: the same with httptools and with h11, whole or in pieces, one after another.

A case is what a client sends on one connection. A last request follows it, which ends the connection; where what came
before is refused, that one gets no answer.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from antiphon.gateway import create_app

from .asking import events_in, judged
from .conftest import listening, over
from .scripted_backend import Scripted

BODY = json.dumps({"model": "text", "input": "Hi"}).encode()
STREAM = json.dumps({"model": "text", "input": "Hi", "stream": True}).encode()


@pytest.fixture(params=["httptools", "h11"])
def reader(request: pytest.FixtureRequest) -> Any:
    """The class that reads HTTP."""
    if request.param == "h11":
        from antiphon.gateway.h11_connection import H11Connection

        return H11Connection
    pytest.importorskip("httptools")
    from antiphon.gateway.httptools_connection import HttptoolsConnection

    return HttptoolsConnection


# --- what is sent ------------------------------------------------------------------------------------------------------


def get(*headers: str, line: str = "GET /healthz HTTP/1.1", host: str | None = "Host: x") -> bytes:
    """Return a request without a body."""
    return "\r\n".join([line, *([host] if host is not None else []), *headers, "", ""]).encode()


def post(*headers: str, body: bytes = BODY, version: str = "1.1", path: str = "/v1/responses") -> bytes:
    """Return a request with a body of known length."""
    length = f"Content-Length: {len(body)}"
    line = f"POST {path} HTTP/{version}"
    return get("Content-Type: application/json", length, *headers, line=line) + body


def chunked(*headers: str, body: bytes = BODY, end: bytes = b"0\r\n\r\n", version: str = "1.1") -> bytes:
    """Return a request whose body comes in two chunks."""
    said = ("Content-Type: application/json", *(headers or ("Transfer-Encoding: chunked",)))
    pieces = (body[:9], body[9:])
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return get(*said, line=f"POST /v1/responses HTTP/{version}") + chunks + end


GET, LAST = get(), get("Connection: close")
JAVA = post("Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAEAAEAAAAIAAAABAAM", "Upgrade: h2c")
OK, REFUSED, TOO_LARGE = (200, "length"), (400, "length"), (431, "length")

# what is sent -> the status of each answer, and how its body is framed; the last is the one to `LAST`
READ: dict[str, tuple[bytes, list[tuple[int, str]]]] = {
    "nothing": (b"", [OK]),
    "twenty at once": (GET * 20, [OK] * 21),
    "lines before, between and after": (b"\r\n" + post() + b"\r\n" + GET + b"\r\n", [OK] * 3),
    "a whole URL": (get(line="GET http://127.0.0.1/healthz?a=b HTTP/1.1"), [OK] * 2),
    "chunks": (chunked() + GET, [OK] * 3),
    "chunks with trailers": (chunked(end=b"0\r\nX: y\r\n\r\n") + GET, [OK] * 3),
    "a body that nobody reads": (post(path="/nowhere", body=b"x" * 200_000) + GET, [(404, "length"), OK, OK]),
    "what Java's client sends": (JAVA + GET, [OK] * 3),
    "an upgrade in chunks": (chunked("Transfer-Encoding: chunked", "Upgrade: x", "Connection: upgrade"), [OK] * 2),
    "upgrades to nothing": (get("Upgrade: x", "Connection: upgrade") * 3, [OK] * 4),
    "an upgrade to a websocket": (get("Upgrade: websocket", "Connection: upgrade"), [OK] * 2),
    "a stream": (post(body=STREAM), [(200, "chunks"), OK]),
    "HTTP/1.0": (get(line="GET /healthz HTTP/1.0", host=None), [OK]),
    "a stream for HTTP/1.0": (post("Connection: keep-alive", body=STREAM, version="1.0"), [(200, "close")]),
    "an expectation": (post("Expect: 100-continue"), [(100, ""), OK, OK]),
    "an expectation of HTTP/1.0": (post("Expect: 100-continue", version="1.0"), [OK]),
    "an expectation that is not met": (
        post("Expect: 100-continue", path="/nowhere")[: -len(BODY)], [(404, "length")],
    ),
    "no host": (get(host=None), [REFUSED]),
    "two hosts": (get("Host: y"), [REFUSED]),
    "a host that is none": (get(host="Host: a b"), [REFUSED]),
    "a host with a user": (get(host="Host: a@b"), [REFUSED]),
    "HTTP/0.9": (b"GET /healthz\r\n\r\n", [REFUSED]),
    "HTTP/1.2": (get(line="GET /healthz HTTP/1.2"), [REFUSED]),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [REFUSED]),
    "two ends": (chunked("Transfer-Encoding: chunked", "Content-Length: 5"), [REFUSED]),
    "two ends, otherwise": (chunked("Content-Length: 5", "Transfer-Encoding: chunked"), [REFUSED]),
    "two lengths": (post("Content-Length: 5"), [REFUSED]),
    "the same length twice": (post(f"Content-Length: {len(BODY)}"), [REFUSED]),
    "a list of lengths": (get("Content-Length: 5, 5") + b"12345", [REFUSED]),
    "a length with a sign": (get("Content-Length: +5") + b"12345", [REFUSED]),
    "chunks of HTTP/1.0": (chunked(version="1.0"), [REFUSED]),
    "a coding before chunks": (chunked("Transfer-Encoding: gzip, chunked"), [REFUSED]),
    "chunks twice": (chunked("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), [REFUSED]),
    "a coding that is none": (chunked("Transfer-Encoding: xchunked"), [REFUSED]),
    "a space before the colon": (chunked("Transfer-Encoding : chunked"), [REFUSED]),
    "a length of a chunk that is none": (get("Transfer-Encoding: chunked", line="POST / HTTP/1.1") + b"ZZ\r\n", [REFUSED]),
    "a header that goes on": (get("X: a\r\n b"), [REFUSED]),
    "lines that end otherwise": (GET.replace(b"\r\n", b"\n"), [REFUSED]),
    "one line that does": (GET.replace(b"\r\n", b"\n", 1), [REFUSED]),
    "NUL": (get("X: a\0b"), [REFUSED]),
    "a control character": (get("X: a\x01b"), [REFUSED]),
    "a tunnel": (get(line="CONNECT 127.0.0.1:80 HTTP/1.1"), [REFUSED]),
    "a method that is none": (get(line="BREW /pot HTTP/1.1"), [REFUSED]),
    "a fragment": (get(line="GET /healthz#top HTTP/1.1"), [REFUSED]),
    "no path": (get(line="GET healthz HTTP/1.1"), [REFUSED]),
    "a large header": (get("X: " + "y" * 100_000), [TOO_LARGE]),
    "large headers": (get(*(f"X{number}: y" for number in range(10_000))), [TOO_LARGE]),
    "a large target": (get(line=f"GET /{'a' * 70_000} HTTP/1.1"), [TOO_LARGE]),
    "what is none after a stream": (post(body=STREAM) + b"NONSENSE\r\n\r\n", [(200, "chunks"), REFUSED]),
    "what is none after two": (GET + post() + get(host=None), [OK, OK, REFUSED]),
}  # fmt: skip


# --- what comes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer on the wire. `framed`: how its body ends."""

    status: int
    framed: str
    body: bytes


def answers_in(data: bytes) -> list[Answer]:
    """Return the answers that a connection gave, each of them whole."""
    found: list[Answer] = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        status = int(first.removeprefix("HTTP/1.1 ")[:3])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        framed, body = "" if status == 100 else "close", b""
        if headers.get("transfer-encoding") == "chunked":
            framed = "chunks"
            body, data = _unchunked(data)
        elif "content-length" in headers:
            framed = "length"
            body, data = data[: int(headers["content-length"])], data[int(headers["content-length"]) :]
            assert len(body) == int(headers["content-length"])
        elif status != 100:
            body, data = data, b""
        found.append(Answer(status, framed, body))
    return found


def _unchunked(data: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        if size == b"0":
            assert data[:2] == b"\r\n"
            return body, data[2:]
        body, data = body + data[: int(size, 16)], data[int(size, 16) + 2 :]


async def told(url: str, *pieces: bytes) -> bytes:
    """Return what comes on a connection on which `pieces` were sent, until the server ends it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.002 if len(pieces) > 1 else 0)
        async with asyncio.timeout(20):
            return await reader.read()
    finally:
        writer.close()


async def test_both_read_the_same_requests(reader: Any, scripted: Scripted) -> None:
    found: dict[str, list[tuple[int, str]]] = {}
    async with listening(create_app(over(scripted, store={"url": "none"})), reader) as url:
        for name, (sent, _) in READ.items():
            found[name] = [(one.status, one.framed) for one in answers_in(await told(url, sent + LAST))]
    assert found == {name: expected for name, (_, expected) in READ.items()}


# of which each place is tried
CUT = {
    name: READ[name] for name in ("lines before, between and after", "chunks with trailers", "what Java's client sends")
}


@pytest.mark.parametrize("name", CUT)
async def test_requests_may_be_cut_anywhere(name: str, reader: Any, scripted: Scripted) -> None:
    sent, expected = CUT[name]
    sent += LAST
    cuts = [*range(1, len(sent), 3), *range(2, len(sent), 50)]
    async with listening(create_app(over(scripted, store={"url": "none"})), reader) as url:
        came = await asyncio.gather(*(told(url, sent[:cut], sent[cut:]) for cut in cuts))
        slowly = await told(url, *(sent[at : at + 1] for at in range(len(sent))))
    wrong = {
        cut: data
        for cut, data in zip([*cuts, 0], [*came, slowly], strict=True)
        if [(one.status, one.framed) for one in answers_in(data)] != expected
    }
    assert wrong == {}


async def test_what_is_refused_gets_an_error_object(reader: Any, scripted: Scripted) -> None:
    async with listening(create_app(over(scripted)), reader) as url:
        answers = [answers_in(await told(url, sent)) for sent in (get("Host: y"), b"NONSENSE\r\n\r\n")]
        of_head = await told(url, get("Host: y", line="HEAD /healthz HTTP/1.1"))
    errors = [json.loads(one.body)["error"] for (one,) in answers]
    assert [(one["type"], one["code"], bool(one["message"])) for one in errors] == [
        ("invalid_request_error", "invalid_http", True)
    ] * 2
    assert of_head.endswith(b"\r\n\r\n")


async def test_who_is_refused_is_told_while_it_sends(reader: Any, scripted: Scripted) -> None:
    """A connection that is closed at once loses what was sent on it."""
    async with listening(create_app(over(scripted)), reader) as url:
        came = await told(url, get("Host: y"), *([b"x" * 50_000] * 20))
    assert [one.status for one in answers_in(came)] == [400]


async def test_trailers_are_no_headers(reader: Any, scripted: Scripted) -> None:
    """They could say what a proxy takes out of the head, or keep a key from it."""
    key = "sk-trailing-1234567"
    trailing = chunked(end=f"0\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
    async with listening(create_app(over(scripted, api_keys=[key])), reader) as url:
        came = answers_in(await told(url, trailing + LAST))
    assert [one.status for one in came] == [401, 200]


async def test_a_stream_is_the_same_for_an_old_client(reader: Any, scripted: Scripted) -> None:
    async with listening(create_app(over(scripted)), reader) as url:
        old, new = [
            answers_in(await told(url, post("Connection: close", body=STREAM, version=one))) for one in ("1.0", "1.1")
        ]
    assert [one.framed for one in (*old, *new)] == ["close", "chunks"]
    events = [judged(events_in(one.body)) for one in (old[0], new[0])]
    assert len(events[0]) == len(events[1])


IMPATIENT = {
    "nothing": [b""],
    "half a head": [GET[:20]],
    "a head that comes slowly": [GET[at : at + 1] for at in range(len(GET) - 2)],
    "a body that nobody waits for": [post(path="/nowhere")[: -len(BODY)], *[b"x"] * (len(BODY) - 1)],
}


@pytest.mark.parametrize("name", IMPATIENT)
async def test_who_sends_no_request_is_not_waited_for(name: str, reader: Any, scripted: Scripted) -> None:
    impatient = type("Impatient", (reader,), {"head_seconds": 0.3})

    async def slowly() -> None:
        for piece in (*IMPATIENT[name], *[b""] * 1000):
            writer.write(piece)
            await asyncio.sleep(0.02)

    async with listening(create_app(over(scripted)), impatient) as url:
        incoming, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
        sending = asyncio.create_task(slowly())
        try:
            async with asyncio.timeout(10):
                came = await incoming.read()
        except ConnectionError:  # it was sent something after its end
            came = b""
        sending.cancel()
        writer.close()
    assert [one.status for one in answers_in(came)] in ([], [404])


async def test_who_is_being_answered_is_waited_for(reader: Any, scripted: Scripted) -> None:
    impatient = type("Impatient", (reader,), {"head_seconds": 0.2})
    hanging = json.dumps({"model": "hang", "input": "Hi", "stream": True}).encode()
    async with listening(create_app(over(scripted, limits={"keep_alive": 0.1})), impatient) as url, asyncio.timeout(20):
        incoming, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
        writer.write(post(body=hanging))
        for _ in range(5):
            await incoming.readuntil(b": keep-alive")
        writer.close()


async def test_events_are_not_held_back(reader: Any, scripted: Scripted) -> None:
    """On a socket that the server did not make by itself, as with several workers."""
    found: list[int] = []

    def connection_made(self: Any, transport: asyncio.Transport) -> None:
        reader.connection_made(self, transport)
        found.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    noting = type("Noting", (reader,), {"connection_made": connection_made})
    async with listening(create_app(over(scripted)), noting) as url:
        await told(url, LAST)
    assert [bool(one) for one in found] == [True]
