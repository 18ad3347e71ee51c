"""The three styles of events, for what changes a few of them: dicts, openai objects, SSE bytes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

import msgspec

from antiphon.stream.accumulate import plain
from antiphon.stream.sse import encode_event, escape_separators

_NUMBER = re.compile(rb'"sequence_number":\s*(\d+)')


class Style(ABC):
    """How an event is looked at, read as a dict, and made from one."""

    @abstractmethod
    def kind(self, event: Any) -> str:
        """Return the type of the event; called for each event of a stream."""

    @abstractmethod
    def renumber(self, event: Any, shift: int) -> Any:
        """Return the event with a `sequence_number` that is larger by `shift`."""

    @abstractmethod
    def read(self, event: Any) -> dict[str, Any]:
        """Return the event as a dict, dicts and lists at all depths."""

    @abstractmethod
    def write(self, event: dict[str, Any]) -> Any:
        """Return an event of this style."""


class _Dicts(Style):
    def kind(self, event: Any) -> str:
        return str(event["type"])

    def renumber(self, event: Any, shift: int) -> Any:
        return {**event, "sequence_number": event["sequence_number"] + shift}

    def read(self, event: Any) -> dict[str, Any]:
        return dict(event)

    def write(self, event: dict[str, Any]) -> Any:
        return event


class _Objects(Style):
    def kind(self, event: Any) -> str:
        return str(event.type)

    def renumber(self, event: Any, shift: int) -> Any:
        return event.model_copy(update={"sequence_number": event.sequence_number + shift})

    def read(self, event: Any) -> dict[str, Any]:
        return dict(plain(event))

    def write(self, event: dict[str, Any]) -> Any:
        from antiphon.stream.objects import CLASSES  # it brings openai, which is there where its objects are

        return CLASSES[event["type"]].construct(**event)


class _Bytes(Style):
    """Each event in one piece, as `SSEEmitter` makes it. Its number comes before anything that the model said.

    What is no event, such as a comment, has no kind and no number.
    """

    def kind(self, event: Any) -> str:
        return str(event.partition(b"\n")[0][7:], "ascii", "replace")  # after "event: "

    def renumber(self, event: Any, shift: int) -> Any:
        return _NUMBER.sub(lambda found: b'"sequence_number":%d' % (int(found.group(1)) + shift), event, count=1)

    def read(self, event: Any) -> dict[str, Any]:
        return msgspec.json.decode(event[event.index(b"\ndata: ") + 7 :], type=dict[str, Any])

    def write(self, event: dict[str, Any]) -> Any:
        return encode_event(event["type"], escape_separators(msgspec.json.encode(event)))


DICTS, OBJECTS, BYTES = _Dicts(), _Objects(), _Bytes()


def style_of(event: Any) -> Style:
    """Return the style that `event` has."""
    if isinstance(event, bytes):
        return BYTES
    return DICTS if isinstance(event, dict) else OBJECTS


def response_fields(response: Any) -> dict[str, Any]:
    """Return a response as a dict."""
    return dict(plain(response))


def response_like(response: Any, held: dict[str, Any]) -> Any:
    """Return the response `held` in the style of `response`."""
    if isinstance(response, dict):
        return held
    from openai.types.responses import Response

    return Response.construct(**held)
