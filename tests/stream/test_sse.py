"""Server-sent events: every framing that servers use, cut anywhere, gives the same messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import BadInput
from antiphon.stream.sse import (
    Message,
    SSEDecoder,
    SSEMessage,
    detect_format,
    encode_event,
    escape_separators,
    open_format,
    read_events,
)

WIRE = Path(__file__).parents[3] / "shared" / "corpus" / "wire"
A, B, C = b'{"a":1}', b'{"b":"x"}', b'{"c":[]}'


def read(pieces: Iterable[bytes]) -> list[Message]:
    decoder = SSEDecoder()
    messages = [message for piece in pieces for message in decoder.feed(piece)]
    return messages + decoder.finish()


def one_by_one(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


FRAMINGS: dict[str, tuple[bytes, list[Message]]] = {
    "nothing": (b"", []),
    "no events": (b"[section]\nkey = 1\n", []),
    "only blank lines": (b"\n\r\n\r\r", []),
    "plain": (b'data: {"a":1}\n\ndata: {"b":"x"}\n\n', [A, B]),
    "CRLF": (b'data: {"a":1}\r\n\r\ndata: {"b":"x"}\r\n\r\n', [A, B]),
    "lone CR": (b'data: {"a":1}\r\rdata: {"b":"x"}\r\r', [A, B]),
    "mixed endings": (b'data: {"a":1}\r\n\ndata: {"b":"x"}\r\ndata: {"c":[]}\n\r', [A, B, C]),
    "CR then an empty LF line": (b'data: {"a":1}\r\n\n\rdata: {"b":"x"}\n\r\n', [A, B]),
    "byte order mark": (b'\xef\xbb\xbfdata: {"a":1}\n\n', [A]),
    "only a byte order mark": (b"\xef\xbb\xbf", []),
    "a part of a byte order mark": (b"\xef\xbb", []),
    "comments": (b': hello\n\ndata: {"a":1}\n\n: keep-alive\ndata: {"b":"x"}\n:\n\n', [A, B]),
    "blank lines between": (b'\n\n\ndata: {"a":1}\n\n\n\n\n\ndata: {"b":"x"}\n\n\n', [A, B]),
    "no space": (b'data:{"a":1}\n\ndata:{"b":"x"}\n\n', [A, B]),
    "two spaces": (b"data:  x\n\n", [b" x"]),
    "id and retry": (b'id: 7\nretry: 10\ndata: {"a":1}\nid\n\n', [A]),
    "unknown fields": (b'foo: bar\ndata: {"a":1}\nbaz\nDATA: no\n\n', [A]),
    "named": (b'event: error\ndata: {"a":1}\n\ndata: {"b":"x"}\n\n', [SSEMessage("error", A, 2), B]),
    "named after the data": (b'data: {"a":1}\nevent: x\n\n', [SSEMessage("x", A, 1)]),
    "the standard's own name": (b'event: message\ndata: {"a":1}\n\nevent:\ndata: {"b":"x"}\n\n', [A, B]),
    "a name and no data": (b'event: ping\n\ndata: {"a":1}\n\n', [A]),
    "a name that is not UTF-8": (b'event: \xff\ndata: {"a":1}\n\n', [SSEMessage("�", A, 2)]),
    "empty data": (b'data:\n\ndata: \n\ndata\n\ndata: {"a":1}\n\n', [A]),
    "done": (b'data: {"a":1}\n\ndata: [DONE]\n\n', [A, b"[DONE]"]),
    "done, unmarked": (b'data: {"a":1}\n\n[DONE]\n', [A, b"[DONE]"]),
    "no last blank line": (b'data: {"a":1}\n\ndata: {"b":"x"}\n', [A, B]),
    "no last line end": (b'data: {"a":1}\n\ndata: {"b":"x"}', [A, B]),
    "cut in a line": (b'data: {"a":1}\n\ndata: {"b":', [A, b'{"b":']),
    "many lines of one JSON text": (b'data: {\ndata: "a":1\ndata: }\n\n', [b'{\n"a":1\n}']),
    "an object alone on one of the lines": (b'data: [\ndata: {"a":1}\ndata: ]\n\n', [b'[\n{"a":1}\n]']),
    "text on many lines": (b"data: one\ndata: two\n\n", [b"one\ntwo"]),
    "no blank lines": (b'data: {"a":1}\ndata: {"b":"x"}\ndata: {"c":[]}\ndata: [DONE]\n', [A, B, C, b"[DONE]"]),
    "no blank lines, one broken": (b'data: {"a":1}\ndata: {"b\ndata: {"c":[]}\n', [A, b'{"b', C]),
    "no blank lines, the first broken": (b'data: {"a\ndata: {"b":"x"}\ndata: {"c":[]}\n', [b'{"a', B, C]),
    "no blank lines, named": (
        b'data: {"a":1}\ndata: {"b":"x"}\nevent: error\ndata: {"c":[]}\n',
        [A, B, SSEMessage("error", C, 4)],
    ),
    "JSON lines": (b'{"a":1}\n{"b":"x"}\n{"c":[]}\n', [A, B, C]),
    "JSON lines, one broken": (b'{"a":1}\n{"b\n{"c":[]}\n', [A, b'{"b', C]),
    "JSON lines, one no JSON": (b'{"a":1}\r\nno JSON\r\n \n{"c":[]}\n[DONE]', [A, b"no JSON", C, b"[DONE]"]),
    "JSON lines after a message": (b'data: {"a":1}\n{"b":"x"}\n', [A, B]),
    "JSON lines after what is no JSON": (b'data: no\n{"b":"x"}\n', [b"no", B]),
    "JSON lines and blank lines": (b'{"a":1}\n\n\n{"b":"x"}\n\n', [A, B]),
    "a JSON body": (b'{\n  "a": [\n    1\n  ]\n}\n', [b'{\n  "a": [\n    1\n  ]\n}']),
    "a JSON list": (b'[{"a":1}]', [b'[{"a":1}]']),
    "separators of Unicode end no line": (
        'data: {"a":"\u2028\u2029\u0085\v\f\x1c"}\n\n'.encode(),
        ['{"a":"\u2028\u2029\u0085\v\f\x1c"}'.encode()],
    ),
    # The examples of the HTML standard, 9.2.6; there too, the last message has no blank line.
    "standard 1": (b"data: YHOO\ndata: +2\ndata: 10\n\n", [b"YHOO\n+2\n10"]),
    "standard 2": (
        b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
        [b"first event", b"second event", b" third event"],
    ),
    "standard 3": (b"data\n\ndata\ndata\n\ndata:\n", [b"\n"]),
    "standard 4": (b"data:test\n\ndata: test\n\n", [b"test", b"test"]),
}


@pytest.mark.parametrize("name", FRAMINGS)
def test_framing(name: str) -> None:
    body, expected = FRAMINGS[name]
    assert read([body]) == expected
    assert read(one_by_one(body)) == expected
    for at in range(len(body)):
        assert read([body[:at], b"", body[at:]]) == expected


PAYLOADS = st.one_of(
    st.dictionaries(st.text(max_size=3), st.text(max_size=8), max_size=3).map(
        lambda value: json.dumps(value, ensure_ascii=False).encode()
    ),
    st.just(b"[DONE]"),
)
NOISE = st.sampled_from(["", ": keep-alive\n\n", ":\n", "id: 3\n", "retry: 5\n", "\n", "event: ping\n\n"])


@st.composite
def framed_streams(draw: st.DrawFn) -> tuple[list[Message], list[bytes]]:
    """Return messages, and the pieces of a body that says them."""
    messages: list[Message] = []
    body = b""
    prefix = draw(st.sampled_from([b"data: ", b"data:"]))
    for payload in draw(st.lists(PAYLOADS, max_size=8)):
        name = draw(st.sampled_from(["", "", "", "error", "é"]))
        body += draw(NOISE).encode() + (f"event: {name}\n".encode() if name else b"")
        messages.append(SSEMessage(name, payload, body.count(b"\n") + 1) if name else payload)
        body += prefix + payload + b"\n\n"
    body = body.replace(b"\n", draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    cuts = sorted(draw(st.lists(st.integers(0, len(body)), max_size=12)))
    return messages, [body[start:end] for start, end in pairwise([0, *cuts, len(body)])]


@given(framed_streams())
def test_any_framing_cut_anywhere(stream: tuple[list[Message], list[bytes]]) -> None:
    messages, pieces = stream
    assert read(pieces) == messages


@given(framed_streams())
def test_the_line_of_a_message_is_where_its_data_begins(stream: tuple[list[Message], list[bytes]]) -> None:
    pieces = stream[1]
    lines = b"".join(pieces).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    decoder = SSEDecoder()
    for piece in (*pieces, None):
        for position, message in enumerate(decoder.finish() if piece is None else decoder.feed(piece)):
            payload = message.data if isinstance(message, SSEMessage) else message
            assert payload in lines[decoder.line_of(position) - 1]


def test_a_message_is_out_as_soon_as_it_has_ended() -> None:
    decoder = SSEDecoder()
    assert decoder.feed(b"data: 1\n\n") == [b"1"]
    assert decoder.feed(b"data: 2\n") == []
    assert decoder.feed(b"\n") == [b"2"]
    assert decoder.feed(b"data: 3\r\n\r") == [b"3"]
    assert decoder.feed(b"\ndata: 4\r\r") == [b"4"]


def test_without_blank_lines_only_the_first_message_waits() -> None:
    decoder = SSEDecoder()
    assert [decoder.feed(b"data: " + payload + b"\n") for payload in (A, B, C)] == [[], [A, B], [C]]
    decoder = SSEDecoder()
    assert [decoder.feed(payload + b"\n") for payload in (A, B)] == [[A], [B]]


def test_a_large_message_in_small_pieces() -> None:
    body = b'data: "' + b"x" * 300_000 + b'"\n\n'
    assert read(body[at : at + 10] for at in range(0, len(body), 10)) == [body[6:-2]]


@pytest.mark.skipif(not WIRE.exists(), reason="the recorded bodies are not beside this checkout")
def test_recorded_bodies_cut_anywhere() -> None:
    bodies = [path.read_bytes() for path in sorted(WIRE.rglob("chat_*.sse"))]
    for body in bodies:
        whole = read([body])
        assert whole
        assert read(one_by_one(body)) == whole
        assert read(body[at : at + 97] for at in range(0, len(body), 97)) == whole


def test_encode_event() -> None:
    assert encode_event("response.created", A) == b'event: response.created\ndata: {"a":1}\n\n'
    assert read([encode_event("response.created", A)]) == [SSEMessage("response.created", A, 2)]


@given(st.text(st.sampled_from('a\u2028\u2029\u0085—…é\\"\n😀')))
def test_escaped_separators_say_the_same(text: str) -> None:
    payload = escape_separators(json.dumps({"text": text}, ensure_ascii=False).encode())
    assert json.loads(payload) == {"text": text}
    assert len(payload.decode().splitlines()) == 1


CHUNK = b'{"object":"chat.completion.chunk","choices":[]}'
BODY = b'{"id": "x", "object": "chat.completion", "choices": []}'
FORMATS: dict[bytes, str] = {
    b"": "sse",
    b" \n\n": "sse",
    b"data: {}\n\n": "sse",
    b"\xef\xbb\xbfdata: {}\n\n": "sse",
    b": keep-alive\n": "sse",
    b"event: response.created\n": "sse",
    b"id\ndata: 1\n": "sse",
    b"\n\nretry: 3\n": "sse",
    b"what is this\ndata: {}\n": "sse",
    CHUNK + b"\n" + CHUNK + b"\n": "jsonl",
    CHUNK: "jsonl",
    CHUNK[:20]: "jsonl",
    b'{"id":"cut\n' + CHUNK: "jsonl",
    b"what is this\n" + CHUNK: "jsonl",
    b"[DONE]\n": "jsonl",
    b'\n\n{"error":{"message":"no"}}\n': "jsonl",
    BODY: "json",
    BODY[:40]: "json",
    b'{\n  "id": 1\n': "json",
    b"{\n": "json",
    b"[\n" + CHUNK: "json",
    b"[" + CHUNK + b"]": "json",
    b'{"object":"response","output":[]}': "json",
}


@pytest.mark.parametrize("first", FORMATS)
def test_detect_format(first: bytes) -> None:
    assert detect_format(first) == FORMATS[first]


@pytest.mark.parametrize("first", [b"hello\n", b"<html>", b"[section]\nkey = 1\n", b"\x89PNG\r\n\x1a\n\x00\xff", b"3"])
def test_what_is_no_stream_is_refused(first: bytes) -> None:
    with pytest.raises(BadInput, match="neither server-sent events"):
        detect_format(first)


def test_open_format_reads_no_more_than_the_first_line() -> None:
    pieces = iter([b"\n", b"da", b"ta: {}\n", b"\n", b"data: {}\n\n"])
    format, whole = open_format(pieces)
    assert (format, next(pieces)) == ("sse", b"\n")
    assert list(whole) == [b"\ndata: {}\n", b"data: {}\n\n"]


def test_open_format_gives_up_on_what_is_no_stream() -> None:
    pieces = iter([b"what is this\n" * 1000] * 1000)
    with pytest.raises(BadInput, match="neither server-sent events"):
        open_format(pieces)
    assert len(list(pieces)) > 900


def test_open_format_gives_json_lines_as_the_decoder_reads_them() -> None:
    format, whole = open_format([b"\nno", b" JSON\n", A + b"\nno\n", B])
    assert (format, read(whole)) == ("jsonl", [b"no JSON", A, b"no", B])


def test_a_cut_line_is_known() -> None:
    for body, cut in ((b"data: 1\n\n", False), (b"data: 1\n", False), (b"data: 1", True)):
        decoder = SSEDecoder()
        decoder.feed(body)
        decoder.finish()
        assert decoder.cut is cut


EVENTS = [{"type": "response.created", "sequence_number": 0}, {"type": "error", "message": "line\u2028sep"}]
LINES = [json.dumps(event).encode() for event in EVENTS]
EVENT_FILES: dict[str, bytes] = {
    "sse": b"".join(encode_event("x", line) for line in LINES) + b"data: [DONE]\n\n",
    "sse without names": b"".join(b"data: " + line + b"\r\n\r\n" for line in LINES),
    "jsonl": b"\n".join(LINES),
    "jsonl with blank lines": b"\xef\xbb\xbf" + b"\r\n\r\n".join(LINES) + b"\r\n\r\n",
    "json": json.dumps(EVENTS, indent=1).encode(),
}


@pytest.mark.parametrize("name", EVENT_FILES)
def test_read_events(name: str) -> None:
    body = EVENT_FILES[name]
    assert list(read_events(body)) == EVENTS
    assert list(read_events(one_by_one(body))) == EVENTS


UNREADABLE: dict[bytes, str] = {
    b'data: {"a":1}\n\ndata: {"b\n\n': "line 3: '{\"b' is not a JSON object",
    b'{"a":1}\n\n7\n': "line 3: '7' is not a JSON object",
    b"nothing": "neither server-sent events",
    b"[\n1]": "no list of events",
    b'{\n"object":"response"\n}': "no list of events",
}


@pytest.mark.parametrize("body", UNREADABLE)
def test_unreadable_events_are_named(body: bytes) -> None:
    with pytest.raises(BadInput, match=UNREADABLE[body].replace("{", r"\{")):
        list(read_events(body))
