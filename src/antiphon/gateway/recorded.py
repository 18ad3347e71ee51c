"""The events of one response, kept packed, and read again from any number on."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain

import zstandard

BLOCK = 64 * 1024  # bytes that are packed together
_NUMBER = re.compile(rb'"sequence_number":(\d+)')
_LENGTH = struct.Struct(">I")


class Recorded:
    """Takes events as they are sent. What is kept of a stream is a twentieth of it, or less."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._starts: list[int] = []  # the number of the first event of each block
        self._fresh = bytearray()
        self._fresh_start = 0
        self.events = 0

    def add(self, event: bytes) -> None:
        """Keep one event; called for each event of a stream."""
        self._fresh += event
        self.events += 1
        if len(self._fresh) >= BLOCK:
            self._pack()

    def kept(self) -> Iterator[bytes]:
        """Return all events that there are now, to be read whenever, in any thread."""
        return self.since(0)

    def since(self, number: int) -> Iterator[bytes]:
        """Return the events that there are now from this number on, counted from 0; whenever, in any thread."""
        first = bisect_right(self._starts, number) - 1
        blocks = self._blocks[max(first, 0) :] if number < self._fresh_start else []
        return chain(events_after(b"".join(blocks), number - 1), after(_cut(bytes(self._fresh)), number - 1))

    def packed(self) -> bytes:
        """Return all that was kept."""
        if self._fresh:
            self._pack()
        return b"".join(self._blocks)

    def _pack(self) -> None:
        self._blocks.append(packed_events(bytes(self._fresh)))
        self._starts.append(self._fresh_start)
        self._fresh.clear()
        self._fresh_start = self.events


def packed_events(events: bytes) -> bytes:
    """Return events as one block. What follows one block may be another."""
    block = zstandard.ZstdCompressor(level=1).compress(events)
    return _LENGTH.pack(len(block)) + block


def events_after(packed: bytes, number: int) -> Iterator[bytes]:
    """Yield the events whose `sequence_number` is larger than `number`, a block's at once in memory."""
    at = 0
    reader = zstandard.ZstdDecompressor()
    while at < len(packed):
        (length,) = _LENGTH.unpack_from(packed, at)
        at += _LENGTH.size
        block = reader.decompress(packed[at : at + length])
        at += length
        yield from after(_cut(block), number)


def after(events: Iterable[bytes], number: int) -> Iterator[bytes]:
    """Yield the events whose `sequence_number` is larger than `number`."""
    for event in events:
        if number_of(event) > number:
            yield event


def batched(events: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield events as some `BLOCK` bytes at once, and the number of the last one: who reads slowly holds no more."""
    held, number = bytearray(), -1
    for event in events:
        held += event
        number = number_of(event)
        if len(held) >= BLOCK:
            yield bytes(held), number
            held.clear()
    if held:
        yield bytes(held), number


def number_of(event: bytes) -> int:
    """Return the `sequence_number` of an event; -1 where it has none."""
    found = _NUMBER.search(event)
    return -1 if found is None else int(found.group(1))


def _cut(events: bytes) -> Iterator[bytes]:
    return (event + b"\n\n" for event in events.split(b"\n\n")[:-1])
