"""Usual chunks take a short way. It must come to the same end as the long one, for whole streams and for broken ones.

A profile with a quirk that is never idle sends every chunk the long way: that is what the short way is held against.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionChunk

from antiphon import ChatCmplStreamHandler, Profile, aconvert, aconvert_sse, convert, convert_sse
from antiphon.stream.deltas import Delta

from .cases.build import DONE, Json, calls, chunk, counted, end, frag, role, sse, text, think, tokens
from .strategies import Conversation, Manner, conversations, manners, render
from .test_properties import SAME_EVERY_TIME, bounded

Told: TypeAlias = tuple[list[Any], list[tuple[str, int, str]], str]


class _Watching:
    """Passes everything on, and never says that it is done."""

    def feed(self, one: Delta) -> Sequence[Delta]:
        return (one,)

    def finish(self) -> Sequence[Delta]:
        return ()


class Watching:
    def start(self) -> _Watching:
        return _Watching()


LONG_WAY = Profile(quirks=(Watching(),))


def told(chunks: Sequence[Any], way: str, profile: Profile | None) -> Told:
    """Return the events of `chunks`, the warnings, and the error, read in one of `WAYS`."""
    handler = ChatCmplStreamHandler(profile, events="dict", **SAME_EVERY_TIME)
    match way:
        case "mappings":
            events = [event for one in chunks for event in handler.feed(one)]
        case "objects":
            made = [ChatCompletionChunk.construct(**copy.deepcopy(one)) for one in chunks]
            events = [event for one in made for event in handler.feed(one)]
        case "bytes":
            events = [event for one in chunks for event in handler.feed(json.dumps(one).encode())]
        case "body":
            events = handler.feed_sse(sse(*chunks))
        case _:
            events = [event for piece in pieces(chunks, way) for event in handler.feed_sse(piece)]
    events += handler.finish()
    return events, handler.warnings, repr(handler.error)


def pieces(chunks: Sequence[Any], way: str) -> Iterator[bytes]:
    for one in chunks:
        piece = sse(one)
        yield piece.replace(b"\n", b"\r\n") if way == "pieces, CRLF" else piece


WAYS = ("mappings", "objects", "bytes", "body", "pieces", "pieces, CRLF")


def shell(chunks: Sequence[Any], way: str) -> list[Any]:
    """Return what the shell for that way of reading yields."""
    options: dict[str, Any] = {"events": "dict", **SAME_EVERY_TIME}
    match way:
        case "mappings":
            return list(convert(chunks, **options))
        case "objects":
            return list(convert([ChatCompletionChunk.construct(**copy.deepcopy(one)) for one in chunks], **options))
        case "bytes":
            return list(convert([json.dumps(one).encode() for one in chunks], **options))
        case "body":
            return list(convert_sse(sse(*chunks), **options))
        case _:
            return list(convert_sse(pieces(chunks, way), **options))


def assert_same(chunks: Sequence[Any], way: str) -> None:
    expected = told(chunks, way, LONG_WAY)
    assert told(chunks, way, None) == expected
    assert shell(chunks, way) == expected[0]


@bounded(300)
@given(conversations(), manners(), st.sampled_from(WAYS))
def test_whole_streams(talk: Conversation, manner: Manner, way: str) -> None:
    assert_same(render(talk, manner), way)


# A stream in which something goes on and on, but for one thing in one chunk.


def entry(token: str) -> Json:
    return {"token": token, "logprob": -0.5, "bytes": [*token.encode()], "top_logprobs": []}


def likely(token: str) -> Json:
    return chunk({"content": token}, choice={"logprobs": {"content": [entry(token)], "refusal": None}})


CALL = calls(frag(0, "call_a", "f", '{"a": "'))
LONG: dict[str, list[Json]] = {
    "text": [text(f"word{n} ") for n in range(7)],
    "text, all keys": [
        chunk({"content": f"word{n}", "role": None, "refusal": None, "tool_calls": None, "function_call": None})
        for n in range(7)
    ],
    "text with logprobs": [likely(f"w{n}") for n in range(7)],
    "reasoning": [think(f"thought{n} ") for n in range(7)],
    "reasoning under its other name": [think(f"thought{n} ", field="reasoning") for n in range(7)],
    "arguments": [CALL, *(calls(frag(0, args=f"part{n} ")) for n in range(6)), calls(frag(0, args='"}'))],
    "two calls": [
        *(calls(frag(n, f"call_{n}", "f", '{"a": "')) for n in range(1)),
        *(calls(frag(0, args=f"p{n}")) for n in range(3)),
        calls(frag(0, args='"}')),
        calls(frag(1, "call_b", "g", '{"b": "')),
        *(calls(frag(1, args=f"q{n}")) for n in range(3)),
        calls(frag(1, args='"}')),
    ],
}
ODD: tuple[Any, ...] = (
    *(None, "", " ", 0, 0.0, 1, 2.5, True, False, [], {}, "x", "stop", "error", "caf\u00e9", "\ud83d", "\ude00", ["x"]),
    *({"a": 1}, {"text": "t"}, [{"type": "text", "text": "t"}], {"message": "broken"}, {"content": []}),
    *({"total_tokens": 3}, {"usage": {"total_tokens": 3}}, [{"url": "https://example.org"}], {"name": "g"}),
    *([{"index": 0, "function": {"arguments": "more"}}], [{"index": 1, "id": "c", "function": {"name": "h"}}]),
    *({"content": [{"token": "t", "logprob": None, "bytes": [300], "top_logprobs": None}]}, {"audio": {"data": "x"}}),
)
KEYS = (
    *("object", "id", "model", "error", "usage", "x_groq", "citations", "choices", "provider", "obfuscation"),
    *("index", "delta", "finish_reason", "native_finish_reason", "logprobs", "message", "text", "type", "custom"),
    *("role", "content", "reasoning_content", "reasoning", "reasoning_text", "reasoning_details", "thinking_blocks"),
    *("refusal", "tool_calls", "function_call", "annotations", "audio", "images", "image", "provider_specific_fields"),
    *("function", "name", "arguments", "extra_content", "thought_signature", "token", "logprob", "bytes"),
    *("top_logprobs", "unknown"),
)


@dataclass(frozen=True)
class Break:
    """One thing that is changed in one chunk: a key at a level gets a value, or goes."""

    chunk: int
    level: int  # 0: the chunk, 1: its choice, 2: the delta, or what is beside it, …
    key: str
    value: Any
    gone: bool = False

    def of(self, chunks: Sequence[Json]) -> list[Json]:
        broken = copy.deepcopy(list(chunks))
        levels = list(_levels(broken[self.chunk % len(broken)]))
        place = levels[self.level % len(levels)]
        if self.gone:
            place.pop(self.key, None)
        else:
            place[self.key] = copy.deepcopy(self.value)
        return broken


def _levels(held: Any) -> Iterator[Json]:
    if isinstance(held, dict):
        yield held
    for one in held.values() if isinstance(held, dict) else held:
        if isinstance(one, dict | list):
            yield from _levels(one)


breaks = st.builds(
    Break,
    st.integers(0, 9),
    st.integers(0, 5),
    st.sampled_from(KEYS),
    st.sampled_from(ODD),
    st.integers(0, 9).map(bool),
)


@bounded(3000)
@given(st.sampled_from(sorted(LONG)), st.lists(breaks, min_size=1, max_size=3), st.sampled_from(WAYS))
@example("text", [Break(4, 0, "object", "error")], "objects")
def test_streams_with_something_odd_in_a_chunk(name: str, odd: list[Break], way: str) -> None:
    chunks = [role(), *LONG[name]]
    for one in odd:
        chunks = one.of(chunks)
    assert_same([*chunks, end("stop"), counted(tokens(1, 2))], way)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", LONG)
def test_long_runs(name: str, way: str) -> None:
    assert_same([role(), *LONG[name], end("stop"), counted(tokens(1, 2))], way)


@pytest.mark.parametrize("way", WAYS)
def test_one_run_after_the_other(way: str) -> None:
    assert_same([role(), *(one for run in LONG.values() for one in run), end("stop")], way)


# What stands where nothing reads it: a usual chunk is one all the same.
UNREAD = (b'"\\ud83d"', b'"x\xff"', b'"\xe2\x82"', b'"arguments"', b"null", b"[]", b'{"content":"\\ude00"}')
RUNS = (b'"content":"w%d"', b'"reasoning":"w%d"', b'"tool_calls":[{"index":0,"function":{"arguments":"w%d"}}]')


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("unread", UNREAD)
@pytest.mark.parametrize("level", ["delta", "choice", "chunk"])
def test_a_broken_string_where_nothing_reads_it(run: bytes, unread: bytes, level: str) -> None:
    beside = b',"arguments":' + unread
    delta, choice, top = (beside if one == level else b"" for one in ("delta", "choice", "chunk"))
    lines = [
        b'data: {"choices":[{"index":0,"delta":{%b%b}%b}]%b}\n\n' % (run % n, delta, choice, top) for n in range(9)
    ]
    pieces = [sse(CALL) if b"tool_calls" in run else sse(role()), *lines, sse(end("stop"))]
    options: dict[str, Any] = {"events": "dict", **SAME_EVERY_TIME}
    at_once = list(convert_sse(b"".join(pieces), **options))
    assert list(convert_sse(pieces, **options)) == at_once
    assert list(convert_sse(pieces, profile=LONG_WAY, **options)) == at_once
    assert at_once[-1]["type"] == "response.completed"
    assert [event["delta"] for event in at_once if event["type"].endswith(".delta")][-9:] == [f"w{n}" for n in range(9)]


def test_a_chunk_over_several_data_lines_is_the_form_of_no_piece() -> None:
    lines = [b'data: {"choices":[{\ndata: "index":0,"delta":{"content":"w%d"}}]}\n\n' % n for n in range(5)]
    torn = [*lines, *(line.replace(b"\ndata: ", b"\n") for line in lines), sse(end("stop"))]  # not in the way of SSE
    options: dict[str, Any] = {"events": "dict", **SAME_EVERY_TIME}
    events = list(convert_sse(torn, **options))
    assert events == list(convert_sse(b"".join(torn), **options))
    assert events[-1]["type"] == "response.failed"


@pytest.mark.parametrize("index", [False, True, 0.0, "0", None])
@pytest.mark.parametrize("way", WAYS)
def test_an_index_of_another_type(index: Any, way: str) -> None:
    chunks = [CALL, calls(frag(0, args='b"}')), calls(frag(index, args='{"c": 1}')), calls(frag(0, args=" "))]
    assert_same([*chunks, end("stop")], way)


@pytest.mark.parametrize("odd", [{}, [], [{}], [None], "", 0, "x", [entry("t")]])
@pytest.mark.parametrize("key", ["content", "refusal", "reasoning"])
@pytest.mark.parametrize("way", WAYS)
def test_log_probabilities_of_another_type(key: str, odd: Any, way: str) -> None:
    chunks = [role(), *copy.deepcopy(LONG["text with logprobs"])]
    chunks[4]["choices"][0]["logprobs"][key] = odd
    assert_same([*chunks, end("stop")], way)


def test_a_warning_names_its_chunk_and_its_line() -> None:
    body = sse(role(), *LONG["text"]) + b"data: {broken\n\n" + sse(text("more"))
    handler = ChatCmplStreamHandler(events="dict")
    for piece in body.split(b"\n\n")[:-1]:
        handler.feed_sse(piece + b"\n\n")
    assert [(code, place) for code, place, _ in handler.warnings] == [("line-unreadable", 8)]
    assert "line 17 " in handler.warnings[0][2]


@pytest.mark.parametrize("ending", [b"\n\n", b"\r\n\r\n"])
def test_a_line_is_counted_that_a_shell_gave_past_the_decoder(ending: bytes, caplog: pytest.LogCaptureFixture) -> None:
    lines = [sse(one).removesuffix(b"\n\n") for one in (role(), *LONG["text"])]
    list(convert_sse([line + ending for line in [*lines, b"data: {broken"]], events="dict"))
    assert [record.message for record in caplog.records if "line 17 " in record.message]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_piece_that_goes_on_with_the_last_one_is_none_of_its_own(cut: int) -> None:
    whole = [sse(one) for one in (role(), *LONG["text"])]
    shifted = [b"".join(whole)[: len(whole[0]) + cut], b"".join(whole)[len(whole[0]) + cut :]]
    split = [*whole[:6], whole[6][:cut], whole[6][cut:], *whole[7:]]
    torn = [*whole[:6], whole[6][:cut], *whole[7:]]  # the rest of a message is lost: the next one is none
    options: dict[str, Any] = {"events": "dict", **SAME_EVERY_TIME}
    assert (
        list(convert_sse(split, **options))
        == list(convert_sse(shifted, **options))
        == list(convert_sse(whole, **options))
    )
    assert list(convert_sse(torn, **options)) == list(convert_sse(b"".join(torn), **options))


async def test_async_shells_say_the_same() -> None:
    chunks = [role(), *(one for run in LONG.values() for one in run), end("stop")]
    options: dict[str, Any] = {"events": "dict", **SAME_EVERY_TIME}

    async def arriving(items: Sequence[Any]) -> Any:
        for item in items:
            yield item

    body = [sse(one) for one in (*chunks, DONE)]
    assert [one async for one in aconvert(arriving(chunks), **options)] == list(convert(chunks, **options))
    assert [one async for one in aconvert_sse(arriving(body), **options)] == list(convert_sse(body, **options))
