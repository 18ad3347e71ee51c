"""The events of one response, kept packed, and read again from any number on."""

from __future__ import annotations

import re
import struct
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
        self._fresh = bytearray()
        self.events = 0

    def add(self, event: bytes) -> None:
        """Keep one event; called for each event of a stream."""
        self._fresh += event
        self.events += 1
        if len(self._fresh) >= BLOCK:
            self._pack()

    def kept(self) -> Iterator[bytes]:
        """Return all events that there are now, to be read whenever, in any thread."""
        return chain(events_after(b"".join(self._blocks), -1), _cut(bytes(self._fresh)))

    def packed(self) -> bytes:
        """Return all that was kept."""
        if self._fresh:
            self._pack()
        return b"".join(self._blocks)

    def _pack(self) -> None:
        block = zstandard.ZstdCompressor(level=1).compress(bytes(self._fresh))
        self._blocks.append(_LENGTH.pack(len(block)) + block)
        self._fresh.clear()


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
        found = _NUMBER.search(event)
        if found is not None and int(found.group(1)) > number:
            yield event


def _cut(events: bytes) -> Iterator[bytes]:
    return (event + b"\n\n" for event in events.split(b"\n\n")[:-1])
