"""Puts a probe to a server: builds its requests, sends them in its shape, and gives the exchanges."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from antiphon.profile import Profile
from antiphon.request import BadRequest, to_chat_request
from antiphon_conformance.exchange import Api, Exchange
from antiphon_conformance.read import Json, listed, mapping, mappings, text

from .answers import events_of
from .asking import Server
from .probe import LIMIT, OVERLONG, Probe, Shape

LEAVERS = 3  # clients that leave before one stays: a server with few slots has none left by then
LEAVE_AFTER = 3  # pieces
MOST_SAID = 120  # characters of what a server says
LEAD = 0.1  # seconds between a request and the whole second that its answer is to go over
OUTPUT = '{"degrees": 12}'  # what every tool gives


@dataclass(frozen=True, slots=True)
class Taken:
    """What a probe gave: the exchanges in order, or why there are none."""

    probe: Probe
    exchanges: tuple[Exchange, ...] = ()
    left_out: str = ""

    @property
    def first(self) -> Exchange | None:
        """The first exchange, None without any."""
        return self.exchanges[0] if self.exchanges else None

    @property
    def served(self) -> bool:
        """Whether the first request was answered with something."""
        return self.first is not None and self.first.answered and bool(self.first.body)

    @property
    def refused(self) -> bool:
        """Whether the first request was answered with the status of an error."""
        return self.first is not None and self.first.status is not None and self.first.status >= 400


@dataclass(frozen=True, slots=True)
class Asked:
    """How the requests of a run are built."""

    api: Api
    model: str
    profile: Profile

    def request(self, probe: Probe) -> Json:
        """Return the probe's request as Responses create parameters."""
        request: Json = {"model": self.model, **probe.ask, "stream": True}
        if probe.refusal == "length":
            request["input"] = "word " * OVERLONG
        return request if probe.bare else {"max_output_tokens": LIMIT, **request}

    def second(self, probe: Probe, first: Exchange) -> Json | None:
        """Return the request of the second turn: what came, and the outputs of what was called. None where nothing
        came that could go back."""
        request = self.request(probe)
        events = events_of(first, self.profile, request)
        output = mappings(mapping(events[-1].get("response")).get("output")) if events else []
        answers = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": OUTPUT}
            for item in output
            if item.get("type") == "function_call"
        ]
        if not output or (probe.needs and not answers):
            return None
        more: list[Json] = [] if answers else [{"role": "user", "content": "Are you sure?"}]
        asked = request["input"]
        begun = [{"role": "user", "content": asked}] if isinstance(asked, str) else listed(asked)
        return {**request, "input": [*begun, *output, *answers, *more]}

    def body(self, probe: Probe, request: Mapping[str, Any]) -> Json:
        """Return the body that is sent for `request`."""
        if self.api == "responses":
            return {**request, **probe.native}
        body = to_chat_request(request, profile=self.profile, stream=True).body
        if probe.bare:
            body.pop("stream_options", None)
        body = {**body, **probe.chat, "stream": True}
        return {key: value for key, value in body.items() if value is not None}


async def take(probe: Probe, server: Server, asked: Asked) -> Taken:
    """Return what a probe gives."""
    if probe.chat_only and server.api != "chat":
        return Taken(probe, left_out="only the chat API can be asked that")
    body = asked.body(probe, asked.request(probe))
    if probe.over_a_second:
        await asyncio.sleep(max(0.0, 1 - time.time() % 1 - LEAD))
    match probe.shape:
        case Shape.ONE:
            return Taken(probe, (replace(await server.ask(body), refusal=probe.refusal),))
        case Shape.TWIN:
            first = await server.ask(body)
            whole = {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
            return Taken(probe, (replace(first, twin=await server.ask(whole)),))
        case Shape.BESIDE:
            first, other = await asyncio.gather(server.ask(body), server.ask(body))
            return Taken(probe, (replace(first, beside=other),))
        case Shape.LEAVE:
            return Taken(probe, (await _leave(server, body),))
        case Shape.LOOP:
            return Taken(probe, await _loop(probe, server, asked, body))


async def _leave(server: Server, body: Json) -> Exchange:
    """Return the exchange of a client that left, with the one that came after the last of them: a request that is to
    be served, or the first that was not."""
    left = await server.ask(body, leave_after=LEAVE_AFTER)
    for _ in range(LEAVERS - 1):
        if not left.left:
            return left
        another = await server.ask(body, leave_after=LEAVE_AFTER)
        if not another.left:
            return replace(left, after=another)
        left = another
    key = "max_output_tokens" if server.api == "responses" else ""
    limits = {name: 16 for name in ("max_completion_tokens", "max_tokens", key) if name in body}
    return replace(left, after=await server.ask({**body, **limits}))


async def _loop(probe: Probe, server: Server, asked: Asked, body: Json) -> tuple[Exchange, ...]:
    first = await server.ask(body)
    if not first.answered:
        return (first,)
    request = asked.second(probe, first)
    if request is None:
        return (first,)
    try:
        again = asked.body(probe, request)
    except BadRequest:
        return (first,)  # what came cannot go back: its own findings say why
    return first, await server.ask(again)


def refusal_said(exchange: Exchange) -> str:
    """Return what a server says where it refuses a request, in a few words."""
    import json

    try:
        held = mapping(json.loads(exchange.body))
    except (ValueError, RecursionError):
        held = {}
    said = text(mapping(held.get("error")).get("message")) or text(held.get("detail"))
    words = " ".join(said.split())
    words = words if len(words) <= MOST_SAID else f"{words[:MOST_SAID]}…"
    return f"status {exchange.status}: {words}" if said else f"status {exchange.status}"
