"""Reads a stream from a file or standard input, for the commands: server-sent events, JSON lines, or a JSON list."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from antiphon.errors import BadInput
from antiphon.stream.sse import SSEDecoder, SSEMessage, open_format
from antiphon_conformance.read import mapping, quoted

STDIN = "-"
DONE = b"[DONE]"
MOST_BYTES = 512 * 1024 * 1024  # of an input: /dev/zero has no end


@dataclass(slots=True)
class Reading:
    """What was in the input: the values in order, a payload that is no JSON as its text; whether `[DONE]` came; and
    whether the values are server-sent events."""

    values: list[Any] = field(default_factory=list[Any])
    done: bool = False
    framed: bool = False

    def take(self, payload: bytes) -> None:
        """Take one payload."""
        if payload.strip() == DONE:
            self.done = True
            return
        try:
            self.values.append(json.loads(payload.decode()))
        except (ValueError, RecursionError):  # neither is what is no UTF-8: clients decode strictly
            self.values.append(payload.decode("utf-8", "replace"))


def read(file: str) -> Reading:
    """Return what is in `file`; - is standard input. Raises BadInput where it cannot be read, or is none of the three
    formats."""
    format, pieces = open_format((read_bytes(file),))
    reading = Reading(framed=format == "sse")
    if format == "json":
        reading.values = _document(file, b"".join(pieces))
        return reading
    decoder = SSEDecoder()
    messages = [message for piece in pieces for message in decoder.feed(piece)]
    for message in [*messages, *decoder.finish()]:
        reading.take(message.data if isinstance(message, SSEMessage) else message)
    return reading


def no_stream(reading: Reading) -> str:
    """Return what an input is, as a message says it, where it is one JSON object that is neither event nor chunk; ""
    where it may be a stream. Servers give such bodies in the place of one."""
    held = mapping(reading.values[0]) if len(reading.values) == 1 and not reading.framed else {}
    if not held or "choices" in held or isinstance(held.get("type"), str):
        return ""
    if held.get("object") == "response":
        return "a whole Responses answer, not its events: `antiphon.unfold` makes events of it"
    said = next((held[key] for key in ("error", "detail", "message") if held.get(key)), None)
    if said is not None:
        return f"no stream, but what a server says in its place: {quoted(said, 200)}"
    return f"no stream, but one JSON object without `type` or `choices`: {quoted(held, 200)}"


def called(file: str) -> str:
    """Return how a message calls an input."""
    return "standard input" if file == STDIN else file


def read_bytes(file: str) -> bytes:
    """Return the bytes in `file`; - is standard input. Raises BadInput."""
    try:
        if file == STDIN:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise BadInput(
            f"{file} is a folder: give a file, or - for standard input; `antiphon check --recordings {file}` judges the "
            "streams of events in it"
        ) from None
    except (OSError, ValueError) as problem:
        said = problem.strerror if isinstance(problem, OSError) else problem
        raise BadInput(f"cannot read {called(file)}: {said}; give a file, or - for standard input") from None
    if len(data) > MOST_BYTES:
        raise BadInput(f"{called(file)} has more than {MOST_BYTES} bytes, of which at most so many are read")
    return data


def _document(file: str, text: bytes) -> list[Any]:
    """Return the values in a JSON document: those of a list, or the one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"{called(file)} is no JSON document: {problem}") from None
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
