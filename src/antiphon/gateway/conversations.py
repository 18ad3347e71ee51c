"""The routes of conversations: histories that are kept under a name, and that any gateway on the database goes on with."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from antiphon.request import BadRequest, to_chat_request

from .bodies import read_body
from .compacted import opened
from .errors import invalid, missing
from .gateway import Gateway
from .history import distinct, new_id, normalized, resolved
from .keys import Caller
from .routes import paged
from .schema import CONVERSATION, check
from .serving import JsonResponse
from .store import Conversation
from .stored import Json


class Conversations:
    """What each route does for a caller. They raise; `served` makes errors of that."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def create(self, request: Request, caller: Caller) -> Response:
        """Begin a conversation, with items or without."""
        store = self._gateway.needed_store()
        body = await self._body(request)
        made = Conversation(new_id("conv_"), int(time.time()), body.get("metadata") or {})
        await store.begin_conversation(made, await self._given(body, caller), caller.owner)
        return JsonResponse(_shown(made))

    async def retrieve(self, request: Request, caller: Caller) -> Response:
        """Return a conversation."""
        return JsonResponse(_shown(await self._found(request, caller)))

    async def change(self, request: Request, caller: Caller) -> Response:
        """Replace the metadata."""
        body = await self._body(request)
        found = await self._found(request, caller)
        metadata: Json = body.get("metadata") or {}
        await self._gateway.needed_store().change_conversation(found.id, metadata, caller.owner)
        return JsonResponse(_shown(Conversation(found.id, found.created_at, metadata)))

    async def delete(self, request: Request, caller: Caller) -> Response:
        """Delete a conversation and its items."""
        name = _id(request)
        if not await self._gateway.needed_store().delete_conversation(name, caller.owner):
            raise missing("Conversation", name)
        return JsonResponse({"id": name, "object": "conversation.deleted", "deleted": True})

    async def items(self, request: Request, caller: Caller) -> Response:
        """Return the items."""
        return JsonResponse(paged(request, await self._items(request, caller)))

    async def extend(self, request: Request, caller: Caller) -> Response:
        """Add items, and return them."""
        body = await self._body(request)
        found = await self._found(request, caller)
        added = distinct(await self._given(body, caller), (one.get("id") for one in await self._items(request, caller)))
        if not await self._gateway.needed_store().extend_conversation(found.id, added, caller.owner):
            raise missing("Conversation", found.id)
        ends = (
            {"first_id": added[0]["id"], "last_id": added[-1]["id"]} if added else {"first_id": None, "last_id": None}
        )
        return JsonResponse({"object": "list", "data": added, **ends, "has_more": False})

    async def item(self, request: Request, caller: Caller) -> Response:
        """Return one item."""
        name = request.path_params["item_id"]
        found = next((one for one in await self._items(request, caller) if one.get("id") == name), None)
        if found is None:
            raise missing("Item", name)
        return JsonResponse(found)

    async def delete_item(self, request: Request, caller: Caller) -> Response:
        """Delete one item, and return the conversation."""
        found, name = await self._found(request, caller), request.path_params["item_id"]
        if not await self._gateway.needed_store().delete_item(found.id, name, caller.owner):
            raise missing("Item", name)
        return JsonResponse(_shown(found))

    # --- inside ------------------------------------------------------------------------------------------------

    async def _body(self, request: Request) -> dict[str, Any]:
        body = await read_body(_some(request), request.headers, self._gateway.config.limits)
        check(body.held, CONVERSATION)
        return body.held

    async def _given(self, body: Json, caller: Caller) -> list[Json]:
        """Return the items in a body, and for references what they refer to: it may be deleted before they are used.

        Raises ApiError and BadRequest for what no request could go on from.
        """
        items = distinct(await resolved(normalized(body.get("items")), self._gateway.store, caller.owner, "items"), ())
        for number, one in enumerate(items):
            if not isinstance(one.get("type"), str):
                raise invalid(f"items[{number}].type", "the type of an item is expected", "invalid_type")
        await asyncio.to_thread(_check_items, items)
        return items

    async def _found(self, request: Request, caller: Caller) -> Conversation:
        found = await self._gateway.needed_store().conversation(_id(request), caller.owner)
        if found is None:
            raise missing("Conversation", _id(request))
        return found

    async def _items(self, request: Request, caller: Caller) -> list[Json]:
        most = self._gateway.config.limits.history_items
        items = await self._gateway.needed_store().conversation_items(_id(request), caller.owner, most)
        if items is None:
            raise missing("Conversation", _id(request))
        return items


async def _some(request: Request) -> AsyncGenerator[bytes]:
    """Yield the body; one that is empty says nothing, which is allowed here."""
    empty = True
    async for piece in request.stream():
        empty = empty and not piece
        yield piece
    if empty:
        yield b"{}"


def _id(request: Request) -> str:
    return str(request.path_params["conversation_id"])


def _check_items(items: Sequence[Json]) -> None:
    """Raise BadRequest for an item that cannot be converted: it would be the fault of each request that came later."""
    try:
        to_chat_request({"model": "any", "input": [*map(opened, items), *normalized("Hi")]})
    except BadRequest as problem:
        raise BadRequest(re.sub(r"^input\b", "items", problem.param), problem.message) from None


def _shown(one: Conversation) -> Json:
    return {"id": one.id, "object": "conversation", "created_at": one.created_at, "metadata": one.metadata}
