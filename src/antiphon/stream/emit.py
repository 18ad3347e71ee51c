"""How an event is made: openai model objects, plain dicts, or SSE bytes. One assembler, three emitters.

An emitter numbers the events. Most are made from their fields by `emit`; the deltas of an open part, nearly all events
of a stream, by a `Writer` that was prepared when the part opened.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from antiphon.errors import BadInput

from .sse import encode_event, escape_separators

EventStyle: TypeAlias = Literal["openai", "dict", "sse"]
Writer: TypeAlias = Callable[[str], Any]  # makes one delta event from its text

_encode = msgspec.json.Encoder().encode


class Emitter(Protocol):
    """Makes events, in order, and keeps them until they are taken."""

    def emit(self, type: str, **fields: Any) -> None:
        """Make one event. The values in `fields` are the event's own: nobody else holds them."""
        ...

    def writer(self, type: str, **fields: Any) -> Writer:
        """Return a writer of delta events of that type; `fields` are the same in each.

        What it returns is numbered, and must be handed out before any other event is made, or kept by `keep`.
        """
        ...

    def keep(self, event: Any) -> None:
        """Keep an event that a writer made until it is taken."""
        ...

    def take(self) -> list[Any]:
        """Return the events made since the last call."""
        ...

    def response(self, snapshot: dict[str, Any]) -> Any:
        """Return a response in this style's form."""
        ...


class DictEmitter:
    """Events as plain dicts, each with lists and dicts of its own."""

    def __init__(self) -> None:
        self._next = 0
        self._events: list[dict[str, Any]] = []

    def emit(self, type: str, **fields: Any) -> None:
        self._events.append({"type": type, "sequence_number": self._next, **fields})
        self._next += 1

    def writer(self, type: str, **fields: Any) -> Writer:
        base = {"type": type, "sequence_number": 0, **fields, "delta": ""}
        with_logprobs = "logprobs" in fields

        def write(text: str) -> dict[str, Any]:
            event = base.copy()
            event["sequence_number"] = number = self._next
            event["delta"] = text
            if with_logprobs:
                event["logprobs"] = []
            self._next = number + 1
            return event

        return write

    def keep(self, event: dict[str, Any]) -> None:
        self._events.append(event)

    def take(self) -> list[dict[str, Any]]:
        events = self._events
        self._events = []
        return events

    def response(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        return snapshot


class SSEEmitter:
    """Events as server-sent events, each in one piece. Only the delta of a delta event is encoded anew."""

    def __init__(self) -> None:
        self._next = 0
        self._events: list[bytes] = []

    def emit(self, type: str, **fields: Any) -> None:
        payload = _encode({"type": type, "sequence_number": self._next, **fields})
        self._next += 1
        self._events.append(encode_event(type, escape_separators(payload)))

    def writer(self, type: str, **fields: Any) -> Writer:
        head = encode_event(type, _encode({"type": type, **fields}))[:-3] + b',"sequence_number":'
        form = head.replace(b"%", b"%%") + b'%d,"delta":%b}\n\n'

        def write(text: str) -> bytes:
            number = self._next
            self._next = number + 1
            delta = _encode(text)
            return form % (number, delta if text.isascii() else escape_separators(delta))

        return write

    def keep(self, event: bytes) -> None:
        self._events.append(event)

    def take(self) -> list[bytes]:
        events = self._events
        self._events = []
        return events

    def response(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        return snapshot


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
