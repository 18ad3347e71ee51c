"""Adapters that do to the suite what no adapter should: what is tried on them by their dotted path."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from antiphon import convert

HOSTILE = "\ud800\x00\x1b[31m ]]> </script> | ` * \u202e"  # no encoding, no XML, no page, no table takes it as it is
Chunks = Iterable[dict[str, Any]]


class Mute:
    """A value that raises where it is shown."""

    def __repr__(self) -> str:
        raise RuntimeError("nobody shows me")

    __str__ = __repr__


class Mutes(Exception):
    """An exception whose message raises."""

    def __str__(self) -> str:
        raise RuntimeError("nobody reads me")


def clean(chunks: Chunks) -> Iterator[Any]:
    """Yield good events."""
    return convert(chunks, events="dict")


def prints(chunks: Chunks) -> Iterator[Any]:
    """Yield good events, and print by all ways there are."""
    print("printed")
    sys.stdout.flush()
    os.write(1, b"written\n")
    return clean(chunks)


def one_dict(chunks: Chunks) -> Iterator[Any]:
    """Yield good events, always in the same dict."""
    held: dict[str, Any] = {}
    for event in clean(chunks):
        held.clear()
        held.update(event)
        yield held


def takes_the_request_apart(chunks: Chunks, *, request: Any) -> Iterator[Any]:
    """Yield good events, and spoil the request and the chunks."""
    kept = list(chunks)
    events = list(convert(kept, request=request, events="dict"))
    for chunk in kept:
        chunk.clear()
    if request is not None:
        request.clear()
    return iter(events)


def forks(chunks: Chunks) -> Iterator[Any]:
    """Yield good events, in two processes."""
    os.fork()
    return clean(chunks)


def exits(chunks: Chunks) -> Iterator[Any]:
    """Leave."""
    sys.exit(0)


def says_nothing_of_its_error(chunks: Chunks) -> Iterator[Any]:
    """Raise what cannot be read."""
    raise Mutes


def hostile_error(chunks: Chunks) -> Iterator[Any]:
    """Raise what cannot be written."""
    raise ValueError(HOSTILE)


def junk(chunks: Chunks) -> Iterator[Any]:
    """Yield what are no events."""
    yield from [None, 1, float("nan"), object(), Mute(), {1: 2}, [], {"type": {}}, {"type": "response.created"}]


def mute_fields(chunks: Chunks) -> Iterator[Any]:
    """Yield events whose fields cannot be shown."""
    for event in clean(chunks):
        yield {**event, "type": Mute(), "sequence_number": Mute(), "output_index": Mute(), "delta": Mute()}


def hostile_fields(chunks: Chunks) -> Iterator[Any]:
    """Yield events whose texts no report takes as they are."""
    for event in clean(chunks):
        yield {**event, "type": HOSTILE + event["type"], "delta": HOSTILE, "item_id": HOSTILE}


def huge_numbers(chunks: Chunks) -> Iterator[Any]:
    """Yield events with numbers that Python does not write."""
    for event in clean(chunks):
        yield {**event, "sequence_number": 10**6000, "output_index": -(10**6000)}


def in_themselves(chunks: Chunks) -> Iterator[Any]:
    """Yield events that hold themselves, by two ways."""
    for event in clean(chunks):
        held: dict[str, Any] = {**event}
        held["left"] = held["right"] = held["response"] = [held, held]
        yield held


def deep(chunks: Chunks) -> Iterator[Any]:
    """Yield events that are very deep."""
    inner: dict[str, Any] = {}
    for _ in range(50_000):
        inner = {"a": inner}
    for event in clean(chunks):
        yield {**event, "item": inner, "response": inner}


def floods(chunks: Chunks) -> Iterator[Any]:
    """Yield big events without end."""
    while True:
        yield {"type": "x", "delta": "y" * 4_000_000}


def floods_bytes(chunks: Chunks) -> Iterator[Any]:
    """Yield a line without end."""
    while True:
        yield b"y" * 4_000_000


def hangs(chunks: Chunks) -> Iterator[Any]:
    """Yield nothing, for long."""
    time.sleep(60)
    yield


def not_events(chunks: Chunks) -> Any:
    """Return what is no iterable."""
    return 5


def a_whole_body(chunks: Chunks) -> str:
    """Return the whole body as one text."""
    return b"".join(convert(chunks, events="sse")).decode()
