"""Reads a body of server-sent events as the standard has it, and says what a tolerant reader would forgive.

Source: HTML standard, section 9.2 "Server-sent events".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

DONE = "[DONE]"
FIELDS = ("data", "event", "id", "retry")
_ENDS = re.compile(r"\r\n|\n|\r")


class Message(NamedTuple):
    """One message: its name, "" for none, its payload, and the line, from 1, on which it begins."""

    event: str
    data: str
    line: int


@dataclass(slots=True)
class Wire:
    """A body, read. `odd` are lines that are none of the format, `unfinished` is whether the last message has no blank
    line after it, which the standard says is dropped; it is among `messages` all the same. `garbled` is the first line,
    and what it holds, that is no UTF-8; that the body breaks off within a character is not meant."""

    messages: list[Message] = field(default_factory=list[Message])
    comments: int = 0
    odd: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    unfinished: bool = False
    garbled: tuple[int, bytes] | None = None


def read_wire(body: bytes) -> Wire:
    """Return what is in `body`."""
    wire = Wire(garbled=_garbled(body))
    event, data, begun = "", list[str](), 0
    lines = _ENDS.split(body.decode("utf-8", "replace").removeprefix("\ufeff"))
    for number, line in enumerate([*lines, ""], 1):
        name, colon, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            wire.unfinished |= bool(data) and number >= len(lines)
            if data:
                wire.messages.append(Message(event, "\n".join(data), begun))
            event, data = "", []
        elif not name and colon:
            wire.comments += 1
        elif name not in FIELDS:
            wire.odd.append((number, line[:80]))
        elif name == "data":
            begun = begun if data else number
            data.append(value)
        elif name == "event":
            event = value
    return wire


def _garbled(body: bytes) -> tuple[int, bytes] | None:
    """Return the first line that is no UTF-8, from 1, and the bytes around the place; None where all are."""
    try:
        body.decode()
    except UnicodeDecodeError as problem:
        at, broken_off = problem.start, problem.end == len(body) and problem.reason == "unexpected end of data"
        line = len(_ENDS.split(body[:at].decode()))
        return None if broken_off else (line, body[max(at - 20, 0) : at + 20])
    return None
