"""The page at `/`: recent streams as pictures, live while they run. What was said is in it only where that is wanted."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from antiphon.timeline import Timeline, render_svg

from .config import PageConfig
from .gallery import Gallery, Picture
from .keys import Caller
from .recorded import Recorded

_STYLE = (
    ":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}"
    "svg{max-width:100%;height:auto}section{border-top:1px solid #8884;padding:.5rem 0}h1{font-size:1.25rem}"
)
_SCRIPT = """
const main = document.querySelector("main");
async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch("streams", {cache: "no-store"});
      if (answer.ok) main.innerHTML = await answer.text();
    } catch (problem) { /* the gateway is away: what was there stays, and the next look may find it */ }
  }
  setTimeout(look, 1000);
}
setTimeout(look, 1000);
"""
# fields that are kept of an event where its content is not to be seen
_PLACES = ("type", "output_index", "content_index", "summary_index", "item_id")
_KEPT: dict[str, tuple[str, ...]] = {
    "response": ("id", "model", "status"),
    "item": ("type", "status"),
    "part": ("type",),
}


@dataclass(slots=True)
class Shown:
    """A stream on the page. `drawn`: how many events the picture shows, and the picture. The rest is as in `Picture`."""

    owner: str
    backend: str
    recorded: Recorded
    began: float = field(default_factory=time.time)
    drawn: tuple[int, str] = field(default=(-1, ""), repr=False)


class Page:
    """The recent streams of this process, and those in `gallery`: of the processes behind the same port."""

    def __init__(self, config: PageConfig) -> None:
        self.gallery: Gallery | None = None
        self._config = config
        self._recent: deque[Shown] = deque(maxlen=config.streams)
        self._drawing = asyncio.Lock()  # one at a time, however many look

    def show(self, caller: Caller, backend: str, recorded: Recorded) -> None:
        """Put a stream on the page; the oldest leaves it."""
        self._recent.appendleft(Shown(caller.owner, backend, recorded))

    async def whole(self, request: Request, caller: Caller) -> Response:
        """Return the page."""
        nonce = base64.b64encode(os.urandom(18)).decode()
        policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; frame-ancestors 'none'"
        text = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>antiphon</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
            f"<h1>Recent streams</h1><main>{await self._streams(caller)}</main>"
            f'<script nonce="{nonce}">{_SCRIPT}</script></body></html>'
        )
        return _html(text, {"content-security-policy": policy})

    async def streams(self, request: Request, caller: Caller) -> Response:
        """Return what changes of it."""
        return _html(await self._streams(caller), {})

    async def pictures(self, owner: str | None = None) -> list[Picture]:
        """Return the pictures of this process, the latest first; those of one owner, or all."""
        async with self._drawing:
            return [await self._drawn(one) for one in tuple(self._recent) if owner in (None, one.owner)]

    async def _streams(self, caller: Caller) -> str:
        mine = await self.pictures(caller.owner)
        theirs = [] if self.gallery is None else await self.gallery.others()
        found = [*mine, *(one for one in theirs if one.owner == caller.owner)]
        latest = sorted(found, key=lambda one: one.began, reverse=True)[: self._config.streams]
        shown = "".join(f"<section><p>{escape(one.backend)}</p>{one.svg}</section>" for one in latest)
        return shown or "<p>None yet. What is asked with your key shows here.</p>"

    async def _drawn(self, shown: Shown) -> Picture:
        """Return the picture of a stream, drawn in a thread, and not again until there is more to see."""
        count = shown.recorded.events
        if shown.drawn[0] != count:
            picture = await asyncio.to_thread(_picture, shown.recorded.kept(), content=self._config.content)
            shown.drawn = count, picture
        return Picture(shown.owner, shown.backend, shown.began, shown.drawn[1])


def caller_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    """Return headers with the key that a browser asked its user for (the password of Basic) as a bearer's."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return headers
    try:
        _, _, password = base64.b64decode(given, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return {}
    return {"authorization": f"Bearer {password}"}


def _html(text: str, headers: dict[str, str]) -> Response:
    fixed = {"cache-control": "no-store", "x-content-type-options": "nosniff", "referrer-policy": "no-referrer"}
    return Response(text, headers={**fixed, **headers}, media_type="text/html")


def _picture(events: Iterable[bytes], *, content: bool) -> str:
    return render_svg(Timeline(_fields(events, content=content)))


def _fields(events: Iterable[bytes], *, content: bool) -> Iterator[dict[str, Any]]:
    for event in events:
        fields: dict[str, Any] = msgspec.json.decode(event[event.index(b"\ndata: ") + 7 :])
        yield fields if content else _without_content(fields)


def _without_content(fields: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {name: fields[name] for name in _PLACES if name in fields}
    for name, keys in _KEPT.items():
        held = fields.get(name)
        if isinstance(held, dict):
            made[name] = {key: held[key] for key in keys if key in held}  # pyright: ignore[reportUnknownVariableType]
    error = fields.get("error")
    if isinstance(error, dict):
        made["error"] = {"code": error.get("code"), "message": ""}  # pyright: ignore[reportUnknownMemberType]
    return made
