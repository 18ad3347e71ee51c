"""Reads a custom tool's input out of the arguments of the function that stands for it, as they stream."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any

from .arguments import INPUT

LOST = "\ufffd"  # half of a character, whose other half never came
_HEAD = re.compile(r'\s*\{\s*"' + INPUT + r'"\s*:\s*"')
_COMPACT = '{"' + INPUT + '":"'
# one thing after the other: plain text, a character as two halves, any other escape
_PAIR = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_PIECE = re.compile(r'[^"\\]+|' + _PAIR + r"|\\u[0-9a-fA-F]{4}|\\[^u]|\\u(?![0-9a-fA-F]{0,3}\Z)")
_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}
_CLOSE = re.compile(r'"\s*([^\s])?')


class Phase(Enum):
    """Where the reader is in the arguments."""

    HEAD = "before the text"
    TEXT = "in the text, which is handed out as it comes"
    WHOLE = "another form: it is read when it is whole"
    CLOSED = "after the text"


class InputReader:
    """Fragments of arguments in, pieces of the input out. The pieces joined are the input, however it is cut."""

    def __init__(self) -> None:
        self._phase = Phase.HEAD
        self._pending = ""  # what cannot be read yet
        self._pieces: list[str] = []  # of another form

    def feed(self, fragment: str) -> str:
        """Return the piece of the input that `fragment` completes; "" where there is none."""
        if self._phase is Phase.WHOLE:
            self._pieces.append(fragment)
        elif self._phase is not Phase.CLOSED:
            self._pending += fragment
        if self._phase is Phase.HEAD:
            self._enter()
        return self._read(end=False) if self._phase is Phase.TEXT else ""

    def finish(self) -> str:
        """Return the last piece. Called once, at the end of the arguments, also where they were cut."""
        if self._phase is Phase.TEXT:
            return self._read(end=True)
        return _input_of("".join(self._pieces)) if self._phase is Phase.WHOLE else ""

    def _enter(self) -> None:
        head = _HEAD.match(self._pending)
        if head is not None:
            self._phase, self._pending = Phase.TEXT, self._pending[head.end() :]
        elif not _COMPACT.startswith("".join(self._pending.split())):
            self._phase = Phase.WHOLE
            self._pieces.append(self._pending)

    def _read(self, *, end: bool) -> str:
        """Return what can be read. A quote closes the text where the object goes on or ends after it."""
        text, at, read = self._pending, 0, list[str]()
        while at < len(text):
            if text[at] == '"':
                close = _CLOSE.match(text, at)
                after = close.group(1) if close else None
                if after is None and not end:
                    break
                if after in (None, "}", ","):
                    self._phase, at = Phase.CLOSED, len(text)
                    break
                read.append('"')
                at += 1
                continue
            piece = None if not end and _HALF.match(text, at) else _PIECE.match(text, at)
            if piece is None:
                break
            read.append(_decoded(piece.group()))
            at = piece.end()
        self._pending = "" if end else text[at:]
        return "".join(read)


def input_of(arguments: str) -> str:
    """Return the input in whole arguments, as the reader gives it in pieces."""
    reader = InputReader()
    return reader.feed(arguments) + reader.finish()


def _decoded(piece: str) -> str:
    if piece[0] != "\\":
        return piece
    if len(piece) == 12:
        return (bytes.fromhex(piece[2:6]) + bytes.fromhex(piece[8:])).decode("utf-16-be")
    if piece[1] == "u":
        code = chr(int(piece[2:], 16)) if len(piece) == 6 else piece
        return LOST if "\ud800" <= code <= "\udfff" else code
    return _ESCAPES.get(piece[1], piece)


def _input_of(arguments: str) -> str:
    """Return the input in arguments of any other form: that of a model which did not do as it was told."""
    try:
        value: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if isinstance(value, dict):
        named = {INPUT: value[INPUT]} if INPUT in value else value  # pyright: ignore[reportUnknownVariableType]
        value = next(iter(named.values()), "") if len(named) < 2 else arguments  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType]
    if isinstance(value, str):
        return _whole(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
