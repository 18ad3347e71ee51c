"""How an answer goes out: JSON, errors in OpenAI's shape, events as they come, until the client has them or leaves."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from typing import Any, TypeVar

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from antiphon.near import nearest

from .answer import DONE_MARKER, Answer
from .bodies import Body, read_body
from .errors import ApiError, error_of, label_of
from .gateway import Gateway, where
from .keys import Caller
from .making import Making
from .page import caller_headers
from .running import StreamCut

log = logging.getLogger("antiphon.gateway")
T = TypeVar("T")
Act = Callable[[Request, Caller], Awaitable[Response]]

EVENT_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx would hold events back
)
CHAT = "/chat/completions"  # which is there to say that it is not
LEFT = 499  # what nginx logs for a client that went away; nobody gets it


class ClientLeft(Exception):
    """The client went away before its answer began."""


class Leaving:
    """Watches whether the client goes away. Made once the request's body was read; to be stopped at the end."""

    def __init__(self, receive: Receive) -> None:
        self._task = asyncio.create_task(_gone(receive))

    def then(self, act: Callable[[], object]) -> None:
        """Call `act` when the client goes away."""
        self._task.add_done_callback(lambda task: None if task.cancelled() else act())

    async def unless(self, awaited: Awaitable[T]) -> T:
        """Return what `awaited` gives. Where the client goes away before, it is cancelled, and this raises ClientLeft."""
        task = asyncio.ensure_future(awaited)
        try:
            await asyncio.wait((task, self._task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait((task,))
        if task.cancelled():
            raise ClientLeft
        return task.result()

    def stop(self) -> None:
        """Watch no longer."""
        self._task.cancel()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class JsonResponse(Response):
    """A JSON body, written by msgspec."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return msgspec.json.encode(content)


class EventsResponse(Response):
    """The events of an answer that has begun. Each goes out whole, with all that came at the same time in one write."""

    def __init__(
        self, gateway: Gateway, answer: Answer, making: Making, leaving: Leaving, headers: Iterable[tuple[bytes, bytes]]
    ) -> None:
        super().__init__()
        self.raw_headers = [*EVENT_HEADERS, *headers]
        self._gateway, self._answer, self._making, self._leaving = gateway, answer, making, leaving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer
        self._leaving.then(answer.leave)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for data in answer.batches():
                await send({"type": "http.response.body", "body": data, "more_body": True})
            if answer.ended or answer.left:  # else it broke, and an end would make it look whole
                last = DONE_MARKER if self._gateway.config.done_marker else b""
                await send({"type": "http.response.body", "body": last, "more_body": False})
        finally:
            self._leaving.stop()
            self._gateway.answers.give_back()
            await self._gateway.let_go(answer, self._making)


async def attended(gateway: Gateway, request: Request, act: Callable[[Body], Awaitable[T]]) -> T:
    """Return what `act` makes of the request's body, in one of the places for responses. A client that leaves ends it."""
    async with gateway.place():
        body = await read_body(request.stream(), request.headers, gateway.config.limits)
        leaving = Leaving(request.receive)
        try:
            return await leaving.unless(act(body))
        finally:
            leaving.stop()


class FollowedEvents(Response):
    """Events of a response that is made in the background, as they come. A client that leaves follows no more, and that
    is all. It has a place for responses, which it gives back at its end."""

    def __init__(self, gateway: Gateway, batches: AsyncGenerator[bytes]) -> None:
        super().__init__()
        self.raw_headers = list(EVENT_HEADERS)
        self._gateway, self._batches = gateway, batches

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        leaving = Leaving(receive)
        try:
            await leaving.unless(self._sent(send))
        except ClientLeft:
            return
        finally:
            leaving.stop()
            self._gateway.answers.give_back()

    async def _sent(self, send: Send) -> None:
        async with aclosing(self._batches) as batches:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                async for data in batches:
                    await send({"type": "http.response.body", "body": data, "more_body": True})
            except StreamCut:
                return  # without an end, so that it is taken for what it is
            last = DONE_MARKER if self._gateway.config.done_marker else b""
            await send({"type": "http.response.body", "body": last, "more_body": False})


class StoredEvents(Response):
    """Events that are there already."""

    def __init__(self, gateway: Gateway, events: Iterable[bytes]) -> None:
        super().__init__()
        self.raw_headers = list(EVENT_HEADERS)
        self._events = events
        self._last = [DONE_MARKER] if gateway.config.done_marker else []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        held: list[bytes] = []
        for event in self._events:
            held.append(event)
            if len(held) == 100:
                await send({"type": "http.response.body", "body": b"".join(held), "more_body": True})
                held.clear()
        await send({"type": "http.response.body", "body": b"".join(held + self._last), "more_body": False})


def served(
    gateway: Gateway, name: str, act: Act, *, open_to_all: bool = False, by_browser: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for `act`: the caller's key is looked at, what it raises becomes an error, and it is counted.

    `by_browser`: a browser asks its user for the key. No route that does something may be so, since pages of others
    can make a browser send it.
    """

    async def endpoint(request: Request) -> Response:
        try:
            headers = caller_headers(request.headers) if by_browser else request.headers
            caller = Caller("") if open_to_all else gateway.keys.caller(headers)
            response = await act(request, caller)
        except (ClientLeft, ClientDisconnect):
            response = Response(status_code=LEFT)
        except Exception as problem:  # noqa: BLE001 -- whatever it is, the client gets an error object
            response = failed(gateway, problem)
            if by_browser and response.status_code == 401:
                response.headers["www-authenticate"] = 'Basic realm="antiphon: any name, and a key as the password"'
        return counted(gateway, name, response)

    return endpoint


def counted(gateway: Gateway, name: str, response: Response) -> Response:
    """Return an answer with an id of its own. `name`: of the route that it is counted for."""
    gateway.metrics.requests.add(route=name, status=str(response.status_code))
    response.raw_headers.append((b"x-request-id", b"req_" + os.urandom(16).hex().encode()))
    return response


def failed(gateway: Gateway, problem: Exception) -> Response:
    """Return the error object for what went wrong. A fault of our own is logged, without what the caller sent."""
    error = error_of(problem)
    if error is None:
        log.error("a fault of the gateway: %s", where(problem))
        error = ApiError(500, "the gateway failed; its log says where", code="internal_error")
    gateway.metrics.refusals.add(code=label_of(problem, error))
    return JsonResponse(error.body(), error.status, error.headers)


async def not_served(request: Request, problem: Exception) -> Response:
    """Return the error object for a path or method that there is not."""
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    methods = allowed(request) if status == 405 else []
    said = {
        404: f"there is no such path{meant_path(request)} GET /openapi.json lists all",
        405: f"{request.method[:20]} is not possible here, but {', '.join(methods)}",
    }.get(status, "bad request")
    code = {404: "unknown_url", 405: "method_not_allowed"}.get(status)
    gateway: Gateway = request.app.state.gateway
    response = failed(
        gateway, ApiError(status, said, code=code, headers={"Allow": ", ".join(methods)} if methods else {})
    )
    return counted(gateway, "none", response)


def meant_path(request: Request) -> str:
    """Return what a message says more of a path that there is not: the one that is spelt nearly so."""
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    routes = (one.path for one in request.app.routes if isinstance(one, Route))
    known = (one for one in routes if "{" not in one and not one.endswith(CHAT))
    close = nearest(path, known, 0.8)
    return "." if close is None else f": did you mean {close}?"


def allowed(request: Request) -> list[str]:
    """Return the methods that some route has for the path of a request. Source: RFC 9110, section 15.5.6."""
    routes = (one for one in request.app.routes if isinstance(one, Route))
    return sorted(
        {name for one in routes if one.matches(request.scope)[0] is not Match.NONE for name in one.methods or ()}
    )
