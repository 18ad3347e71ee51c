"""The built-in chat streams: what providers send, oddities and framing included, and what must come of it.

Each file in `streams/` is one stream. Its first line says what it is and what must come of it; each other line is a
piece of the body: an object is sent as `data: <the line as it is>` and a blank line, a string as the text it is. The
contents are our own, the shapes those of recorded streams; but for `azure-filter` and `interleaved`, of which no recording
is known: these follow the vendor's description and public reports.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class DemoStream:
    """One stream. `title` is its oddity in a few words, `oddity` in a sentence; `chunks` are the objects in it.

    `ending`, `output` and `usage` (input and output tokens, None for no usage) are what must come of it.
    """

    name: str
    provider: str
    title: str
    oddity: str
    profile: str | None
    pieces: tuple[bytes, ...]
    chunks: tuple[Json, ...]
    ending: str
    output: tuple[Json, ...]
    usage: tuple[int, int] | None

    @property
    def body(self) -> bytes:
        """The body, whole."""
        return b"".join(self.pieces)

    @property
    def done(self) -> bool:
        """Whether `[DONE]` is sent."""
        return DONE in self.body


def demo_streams() -> list[DemoStream]:
    """Return the built-in streams, in the order in which they are played."""
    folder = files("antiphon_conformance") / "streams"
    found = sorted((one for one in folder.iterdir() if one.name.endswith(".jsonl")), key=lambda one: one.name)
    return [read_stream(one.read_bytes()) for one in found]


def read_stream(file: bytes) -> DemoStream:
    """Return the stream that a file describes. Lines end with a line feed only: contents may have other separators."""
    first, *lines = file.strip(b"\n").split(b"\n")
    head, expected = json.loads(first), json.loads(first)["expect"]
    end = head.get("line_end", "\n").encode()
    frames = [_frame(line, end) for line in lines]
    usage = expected["usage"]
    return DemoStream(
        head["name"],
        head["provider"],
        head["title"],
        head["oddity"],
        head.get("profile"),
        tuple(_cut(b"".join(frames), head["piece"]) if "piece" in head else frames),
        tuple(json.loads(line) for line in lines if line[:1] == b"{"),
        expected["ending"],
        tuple(expected["output"]),
        None if usage is None else (usage[0], usage[1]),
    )


def _frame(line: bytes, end: bytes) -> bytes:
    """Return what is sent for a line of the file."""
    if line[:1] == b"{":
        return b"data: " + line + end * 2
    text: str = json.loads(line)
    return text.encode().replace(b"\n", end)


def _cut(body: bytes, size: int) -> Iterator[bytes]:
    """Yield `body` in pieces of `size` bytes, as a network cuts it."""
    for start in range(0, len(body), size):
        yield body[start : start + size]
