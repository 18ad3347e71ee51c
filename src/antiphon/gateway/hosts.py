"""By which names the gateway may be called: a web page that reaches it by a name of its own is turned away."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from .errors import ApiError
from .serving import JsonResponse


class Hosts:
    """ASGI middleware. `names`: in lower case; `*.example.com` stands for all names below it."""

    def __init__(self, app: ASGIApp, names: Sequence[str]) -> None:
        self._app, self._names = app, names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or self._is_ours(Headers(scope=scope).getlist("host")):
            await self._app(scope, receive, send)
            return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close"})  # which servers answer with 403
            return
        error = ApiError(
            400,
            "the Host header names none of the hosts that this gateway answers to: `hosts` in its configuration has them",
            code="invalid_host",
        )
        await JsonResponse(error.body(), error.status)(scope, receive, send)

    def _is_ours(self, given: Sequence[str]) -> bool:
        if len(given) != 1:
            return False
        host = host_in(given[0])
        return any(host == name or (name[:2] == "*." and host.endswith(name[1:])) for name in self._names)


def host_in(header: str) -> str:
    """Return the name in a Host header, without the port and the dot of the root. Source: RFC 9110, section 7.2."""
    name, colon, port = header.strip().lower().rpartition(":")
    if not colon or not port.isdecimal():
        name = header.strip().lower()
    return name.removesuffix(".")
