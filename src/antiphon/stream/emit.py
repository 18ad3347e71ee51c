"""How an event is made: openai model objects, plain dicts, or SSE bytes. One assembler, three emitters.

An emitter numbers the events. Most are made from their fields by `emit`; the deltas of an open part, nearly all events
of a stream, by a `Writer` that was prepared when the part opened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec

from antiphon.errors import BadInput

from .chunk import copied
from .sse import escape_separators

EventStyle: TypeAlias = Literal["openai", "dict", "sse"]
Keep: TypeAlias = Callable[[str], Any]  # is given the text of each delta event
Writer: TypeAlias = Callable[[str], Any]  # makes one delta event of its text, without log probabilities

_encode = msgspec.json.Encoder().encode
# what keeps the text, what makes an event without number and text, where the number is, whether `logprobs` are in it
DictParts: TypeAlias = "tuple[Keep, Callable[[], dict[str, Any]], Emitter, bool]"


class Emitter(ABC):
    """Makes events, in order, and keeps them until they are taken."""

    def __init__(self) -> None:
        self.number = 0  # the `sequence_number` of the next event
        self._kept = 0
        self._events: list[Any] = []

    def emit(self, type: str, **fields: Any) -> None:
        """Make one event, and keep it until it is taken. It shares nothing with what is in `fields`."""
        self._events.append(self._event(type, self.number, fields))
        self.number += 1
        self._kept += 1

    def emit_each(self, types: Sequence[str], **fields: Any) -> None:
        """Make an event of each type, all with the same fields, and keep them until they are taken."""
        for type in types:
            self.emit(type, **fields)

    def make(self, type: str, **fields: Any) -> Any:
        """Return one event, numbered, as `emit` makes it: hand it out before another is made, or `keep` it."""
        self.number += 1
        return self._event(type, self.number - 1, fields)

    def keep(self, event: Any) -> None:
        """Keep an event that was made, until it is taken."""
        self._events.append(event)
        self._kept += 1

    @property
    def flown(self) -> int:
        """How many events were handed out as soon as they were made: as many chunks needed nothing else."""
        return self.number - self._kept

    def take(self) -> list[Any]:
        """Return the events made since the last call."""
        events = self._events
        self._events = []
        return events

    @abstractmethod
    def writer(self, type: str, keep: Keep, **fields: Any) -> Writer:
        """Return a writer of delta events of that type; `fields` are the same in each, and `logprobs` is empty.

        What the writer returns is numbered, as from `make`. Called for most chunks, so each emitter does here all it
        can do before the text is known.
        """

    @abstractmethod
    def response(self, snapshot: dict[str, Any]) -> Any:
        """Return a response in this style's form."""

    @abstractmethod
    def _event(self, type: str, number: int, fields: dict[str, Any]) -> Any:
        """Return one event."""


class DictEmitter(Emitter):
    """Events as plain dicts, each with lists and dicts of its own."""

    def writer(self, type: str, keep: Keep, **fields: Any) -> DictWriter:
        return DictWriter(self, keep, {"type": type, "sequence_number": 0, **fields, "delta": ""})

    def response(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        return snapshot

    def _event(self, type: str, number: int, fields: dict[str, Any]) -> dict[str, Any]:
        return {"type": type, "sequence_number": number, **copied(fields)}


class DictWriter:
    """Makes delta events as dicts. A loop that pulls many chunks does the same with its `parts`, without the call."""

    def __init__(self, emitter: Emitter, keep: Keep, event: dict[str, Any]) -> None:
        self.parts: DictParts = keep, event.copy, emitter, "logprobs" in event

    def __call__(self, text: str) -> dict[str, Any]:
        keep, blank, emitter, has_logprobs = self.parts
        keep(text)
        event = blank()
        event["sequence_number"] = number = emitter.number
        event["delta"] = text
        if has_logprobs:
            event["logprobs"] = []
        emitter.number = number + 1
        return event


class SSEEmitter(Emitter):
    """Events as server-sent events, each in one piece. Only the delta of a delta event is encoded anew."""

    def writer(self, type: str, keep: Keep, **fields: Any) -> Writer:
        form = (
            _head(type).replace(b"%", b"%%") + b"%d," + _encode(fields)[1:-1].replace(b"%", b"%%") + b',"delta":%b}\n\n'
        )

        def write(text: str) -> bytes:
            keep(text)
            number = self.number
            self.number = number + 1
            delta = _encode(text)
            return form % (number, delta if text.isascii() else escape_separators(delta))

        return write

    def response(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        return snapshot

    def emit_each(self, types: Sequence[str], **fields: Any) -> None:
        rest = escape_separators(_encode(fields))[1:]
        for type in types:
            self.keep(b"%b%d,%b\n\n" % (_head(type), self.number, rest))
            self.number += 1

    def _event(self, type: str, number: int, fields: dict[str, Any]) -> bytes:
        return b"%b%d,%b\n\n" % (_head(type), number, escape_separators(_encode(fields))[1:])


@cache
def _head(type: str) -> bytes:
    """Return what stands before the `sequence_number` of an event of that type."""
    return b'event: %b\ndata: {"type":"%b","sequence_number":' % (type.encode(), type.encode())


def make_emitter(style: EventStyle) -> Emitter:
    """Return the emitter for `style`. Raises BadInput for any other word."""
    if style == "openai":
        from .objects import ObjectEmitter  # openai costs 0.7 s and 50 MiB: imported when its objects are asked for

        return ObjectEmitter()
    if style == "dict":
        return DictEmitter()
    if style == "sse":
        return SSEEmitter()
    raise BadInput(f'events={style!r}: it is "openai", "dict" or "sse"')
