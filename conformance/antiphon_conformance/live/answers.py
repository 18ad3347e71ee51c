"""What our adapter makes of a chat answer, and what a Responses server itself says: events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from antiphon import convert_sse
from antiphon.profile import Profile
from antiphon.stream.sse import SSEDecoder, SSEMessage
from antiphon_conformance.exchange import Exchange
from antiphon_conformance.read import Json, mapping

DONE = b"[DONE]"


@dataclass(slots=True)
class Payloads:
    """The payloads of a body, read as tolerantly as the adapter reads it: JSON values, or the text of what is none."""

    values: list[Any] = field(default_factory=list[Any])
    done: bool = False


def payloads_of(body: bytes) -> Payloads:
    """Return the payloads of a body, up to `[DONE]`."""
    decoder = SSEDecoder()
    found = Payloads()
    for message in [*decoder.feed(body), *decoder.finish()]:
        payload = message.data if isinstance(message, SSEMessage) else message
        if payload.strip() == DONE:
            found.done = True
            break
        found.values.append(_value(payload))
    return found


def events_of(exchange: Exchange, profile: Profile, request: Mapping[str, Any]) -> list[Json]:
    """Return the events: those of the server itself, or those that our adapter makes of its chunks."""
    if exchange.api == "responses":
        return [mapping(value) for value in payloads_of(exchange.body).values]
    return list(
        convert_sse(_pieces(exchange), profile=profile, request=request, events="dict", ids="counted", created_at=0)
    )


def _pieces(exchange: Exchange) -> Iterator[bytes]:
    """Yield the body, and break as it broke."""
    for piece in exchange.pieces:
        yield piece.data
    if exchange.failure:
        raise ConnectionError(exchange.message)


def _value(payload: bytes) -> Any:
    text = payload.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
