"""The routes of responses and models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from antiphon.stream.unfold import unfold

from .bodies import Body, read_body
from .errors import ApiError, StoreUnavailable, invalid, missing
from .gateway import Gateway
from .history import page_of
from .keys import Caller
from .making import Making, warning_headers
from .metrics import CONTENT_TYPE
from .recorded import after, events_after
from .serving import EventsResponse, FollowedEvents, JsonResponse, Leaving, StoredEvents
from .stored import Stored

PAGE, LARGEST_PAGE = 20, 100


class Routes:
    """What each route does for a caller. They raise; `served` makes errors of that."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    # --- responses ---------------------------------------------------------------------------------------------

    async def create(self, request: Request, caller: Caller) -> Response:
        """Make a response: whole, or as events."""
        gateway = self._gateway
        gateway.take_place()  # before the body is read: it may be large, and slow to come
        leaving: Leaving | None = None
        response: Response | None = None
        try:
            body = await read_body(request.stream(), request.headers, gateway.config.limits)
            leaving = Leaving(request.receive)
            response = await leaving.unless(self._created(body, caller, leaving))
            return response
        finally:
            if not isinstance(
                response, EventsResponse | FollowedEvents
            ):  # what streams gives its place back at its end
                gateway.answers.give_back()
            if leaving is not None and not isinstance(response, EventsResponse):
                leaving.stop()

    async def _created(self, body: Body, caller: Caller, leaving: Leaving) -> Response:
        gateway = self._gateway
        making = await gateway.maker.make(body, caller)
        headers = warning_headers(making.notes)
        if making.background:
            return await self._begun(making, caller, headers)
        if not making.streams:
            response = JsonResponse(await gateway.whole(making, caller))
            response.raw_headers += headers
            return response
        answer = gateway.answer(making, caller)
        try:
            await answer.begin()
        except BaseException:
            await gateway.let_go(answer, making)
            raise
        took = asyncio.get_running_loop().time() - answer.began
        gateway.metrics.first_event.observe(took, backend=making.named.name)
        return EventsResponse(gateway, answer, making, leaving, headers)

    async def _begun(self, making: Making, caller: Caller, headers: list[tuple[bytes, bytes]]) -> Response:
        """Begin a background response. Return it as it is now, or its events as they come."""
        run = await self._gateway.begin_background(making, caller)
        response: Response = JsonResponse(run.head)
        if making.streams:
            response = FollowedEvents(self._gateway, self._gateway.needed_background().follow(run.id, caller, -1))
        response.raw_headers += headers
        return response

    async def retrieve(self, request: Request, caller: Caller) -> Response:
        """Return a response, or its events again; those that it would have had, where it was not streamed."""
        response_id = request.path_params["response_id"]
        streams = _flag(request, "stream")
        number = _number(request, "starting_after", -1, -1, 2**53)
        running = self._gateway.answers.find(response_id, caller)
        if running is not None:
            if streams:
                raise ApiError(
                    400,
                    "the response is still being made, for the client that asked for it",
                    code="response_in_progress",
                )
            return JsonResponse(running.head)
        stored = await self._stored(response_id, caller)
        if not streams:
            return JsonResponse(stored.response)
        if stored.alive:
            self._gateway.take_place()
            return FollowedEvents(self._gateway, self._gateway.needed_background().follow(response_id, caller, number))
        if stored.events is not None:
            return StoredEvents(self._gateway, events_after(stored.events, number))
        unfolded: Iterable[bytes] = await asyncio.to_thread(unfold, stored.response, "sse")
        return StoredEvents(self._gateway, after(unfolded, number))

    async def delete(self, request: Request, caller: Caller) -> Response:
        """Delete a stored response."""
        response_id = request.path_params["response_id"]
        if not await self._gateway.needed_store().delete(response_id, caller.owner):
            raise missing("Response", response_id)
        self._gateway.needed_background().forget(response_id, caller)
        return JsonResponse({"id": response_id, "object": "response", "deleted": True})

    async def cancel(self, request: Request, caller: Caller) -> Response:
        """Cancel a response that is made in the background, or streamed, whichever process makes it.

        One that has ended stays as it is. Source: the API's guide to background mode (cancelling twice does no harm).
        """
        response_id = request.path_params["response_id"]
        cancelling = self._gateway.cancelling
        cancelled = await cancelling.cancel(response_id, caller)
        if cancelled is None and await self._found(response_id, caller) is None:
            cancelled = await cancelling.cancel_elsewhere(response_id, caller)
        if cancelled is None:
            cancelled = (await self._cancelled(response_id, caller)).response
        return JsonResponse(cancelled)

    async def _cancelled(self, response_id: str, caller: Caller) -> Stored:
        """Return a stored response once it has ended. Raises ApiError for one that was not made in the background."""
        stored = await self._stored(response_id, caller)
        if not stored.response.get("background"):
            raise ApiError(
                400,
                f"the response cannot be cancelled: it is {stored.response['status']}, and was not made in the background",
                code="response_not_cancellable",
            )
        ended = await self._gateway.needed_background().cancel(response_id, caller) if stored.alive else stored
        if ended is None:
            raise missing("Response", response_id)
        return ended

    async def input_items(self, request: Request, caller: Caller) -> Response:
        """Return the items of the request that a response answers."""
        stored = await self._stored(request.path_params["response_id"], caller)
        return JsonResponse(paged(request, stored.input))

    async def _found(self, response_id: str, caller: Caller) -> Stored | None:
        background = self._gateway.background
        return None if background is None else await background.stored(response_id, caller.owner)

    async def _stored(self, response_id: str, caller: Caller) -> Stored:
        stored = await self._found(response_id, caller)
        if stored is None:
            raise missing("Response", response_id)
        return stored

    async def unknown(self, request: Request, caller: Caller) -> Response:
        """Say that it is not there: a POST to a response does nothing."""
        name = request.path_params["name"]
        raise ApiError(404, f"there is no such path: /responses/{name[:100]}", code="unknown_url")

    async def chat(self, request: Request, caller: Caller) -> Response:
        """Say where chat requests go."""
        raise ApiError(
            404,
            "this gateway speaks the Responses API, POST /v1/responses; Chat Completions is what its backends speak: ask "
            "them where that is wanted",
            code="unknown_url",
        )

    # --- models ------------------------------------------------------------------------------------------------

    async def models(self, request: Request, caller: Caller) -> Response:
        """Return the models of all backends."""
        return JsonResponse({"object": "list", "data": await self._gateway.router.models()})

    async def model(self, request: Request, caller: Caller) -> Response:
        """Return one model."""
        name = request.path_params["model"]
        found = next((one for one in await self._gateway.router.models() if one["id"] == name), None)
        if found is None:
            raise ApiError(404, f"The model '{name[:200]}' does not exist.", code="model_not_found", param="model")
        return JsonResponse(found)

    # --- the process -------------------------------------------------------------------------------------------

    async def health(self, request: Request, caller: Caller) -> Response:
        """Say that the process runs."""
        return JsonResponse({"status": "ok"})

    async def ready(self, request: Request, caller: Caller) -> Response:
        """Say whether requests should come here: not while it ends. Without its store it still serves most of them."""
        gateway = self._gateway
        state = "none"
        if gateway.store is not None:
            try:
                await gateway.store.ready()
                state = "ok"
            except StoreUnavailable:
                state = "unavailable"
        if gateway.draining:
            return JsonResponse({"status": "draining", "store": state}, 503)
        return JsonResponse({"status": "ready" if state != "unavailable" else "degraded", "store": state})

    async def metrics(self, request: Request, caller: Caller) -> Response:
        """Return what this process counted, and those beside it."""
        return Response(await self._gateway.counted(), headers={"content-type": CONTENT_TYPE})


def paged(request: Request, items: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the page of `items` that the query asks for."""
    order = request.query_params.get("order", "desc")
    if order not in ("asc", "desc"):
        raise invalid("order", f"order is {order[:20]!r}: it is 'asc' or 'desc'")
    limit = _number(request, "limit", PAGE, 1, LARGEST_PAGE)
    ends = {name: request.query_params.get(name) for name in ("after", "before")}
    return page_of(items, limit=limit, ascending=order == "asc", **ends)


def _flag(request: Request, name: str) -> bool:
    given = request.query_params.get(name, "false").lower()
    if given not in ("true", "false", "1", "0", ""):
        raise invalid(name, f"{name} is {given[:20]!r}: it is 'true' or 'false'")
    return given in ("true", "1")


def _number(request: Request, name: str, usual: int, least: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return usual
    try:
        number = int(given[:20])
    except ValueError:
        raise invalid(name, f"{name} is {given[:20]!r}: it is an integer") from None
    if not least <= number <= most:
        raise invalid(name, f"{name} is {number}: it is from {least} to {most}")
    return number
