"""Long streams: what one more chunk costs does not grow with what came before it.

Work is counted in calls of functions, room in bytes: no clock is asked.
"""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import convert, convert_sse
from antiphon.stream.scan import Scanner

from .cases.build import Json, call, calls, chunk, custom, detail, details, end, frag, refuse, sse, text, think
from .test_properties import SAME_EVERY_TIME, bounded

OPEN, CLOSE = '{"a": "', '"}'
LONG: dict[str, Callable[[int], list[Json]]] = {
    "text": lambda n: [text("a ") for _ in range(n)],
    "text and refusal in turn": lambda n: [one for _ in range(n) for one in (text("a"), refuse("b"))],
    "text and reasoning in turn": lambda n: [one for _ in range(n) for one in (text("a"), think("b"))],
    "pieces of one reasoning detail": lambda n: [details(detail("text", text="a")) for _ in range(n)],
    "signed reasoning details": lambda n: [details(detail("text", text="a", signature="s", index=i)) for i in range(n)],
    "signatures under text": lambda n: [
        text("a"),
        *(details(detail("text", signature="s", index=i)) for i in range(n)),
    ],
    "encrypted reasoning details": lambda n: [details(detail("encrypted", data="d", id=f"r{i}")) for i in range(n)],
    "calls of one id": lambda n: [call(i, "call_a", "f", "{}") for i in range(n)],
    "calls of one id without index": lambda n: [call(id="call_a", name="f", args=f'{{"n": {i}}}') for i in range(n)],
    "calls on one index": lambda n: [call(0, f"call_{i}", "f", "{}") for i in range(n)],
    "heads first": lambda n: [*(call(i, f"call_{i}", "f") for i in range(n)), *(call(i, args="{}") for i in range(n))],
    "heads first, in one chunk": lambda n: [
        calls(*(frag(i, f"call_{i}", "f") for i in range(n)), *(frag(i, args="{}") for i in range(n)))
    ],
    "calls that interleave": lambda n: [
        *(call(i, f"call_{i}", "f", OPEN) for i in range(2)),
        *(call(i % 2, args="a") for i in range(n)),
    ],
    "text that a call holds back": lambda n: [
        call(0, "call_a", "f", OPEN),
        *(one for _ in range(n) for one in (text("b"), call(0, args="c"))),
    ],
    "fragments of a closed call": lambda n: [
        call(0, "call_a", "f", "{}"),
        text("b"),
        *(call(0, args="c") for _ in range(n)),
    ],
    "a custom tool": lambda n: [calls(custom(0, "call_a", "f", "a")) for _ in range(n)],
    "chunks that are none": lambda n: [7 for _ in range(n)],  # type: ignore[misc]  # that is the case
}


def calls_made(chunks: list[Json]) -> int:
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        list(convert(chunks, events="dict", **SAME_EVERY_TIME))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", LONG)
def test_work_grows_as_the_stream_does(name: str) -> None:
    of = LONG[name]
    assert calls_made([*of(400), end("stop")]) < 9 * calls_made([*of(50), end("stop")])


@pytest.mark.parametrize("piece", ["plain words ", 'a "quoted"\n', "\u00e9\u2028", "\x00"])
@pytest.mark.parametrize("key", ["content", "reasoning_content"])
def test_a_long_text_in_one_chunk_takes_little_room(key: str, piece: str) -> None:
    body = sse(*(chunk({key: piece * 20_000}) for _ in range(3)), end("stop"))
    tracemalloc.start()
    try:
        last = list(convert_sse([body], events="sse", **SAME_EVERY_TIME))[-1]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert b'"status":"completed"' in last
    assert peak < 16 * len(body)


MARKS = st.sampled_from(
    ['{"a":', "1", "}", "{}", "[", "]", '"', "\\", '\\"', " ", "\n", "{", "x", "1]", '"a"', '{"a":1}', ",", "\u00a0"]
)


@bounded(1500)
@given(st.lists(st.tuples(MARKS, st.booleans()), max_size=12))
def test_arguments_are_complete_where_they_are_json(marks: list[tuple[str, bool]]) -> None:
    """Whenever it is asked, and however often: after each piece, or after some."""
    pieces: list[str] = []
    asked, once = Scanner(pieces), Scanner(pieces)
    for piece, asks in marks:
        pieces.append(piece)
        if asks:
            assert asked.is_complete() == _is_complete("".join(pieces))
    assert once.is_complete() == asked.is_complete() == _is_complete("".join(pieces))


def _is_complete(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict | list | str)
    except ValueError:
        return False
