"""What a request goes on from: a stored response, a conversation, items that it refers to by their ids."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import LONGEST_SHOWN, ApiError, invalid
from .store import Store
from .stored import Json

# type of an item -> how ids of such items begin; all others begin as messages do
_PREFIXES = {
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "reasoning": "rs_",
}
_REFERENCE = frozenset({"type", "id"})
CONTINUED = frozenset({"completed", "incomplete"})


@dataclass(frozen=True, slots=True)
class History:
    """The items of a request. `before`: those that it goes on from. `own`: its own, each with an id and a type."""

    own: list[Json]
    before: list[Json] = field(default_factory=list[Json])
    previous_id: str | None = None
    conversation_id: str | None = None


def new_id(prefix: str) -> str:
    """Return an id that begins with `prefix`, unique over all processes."""
    return prefix + os.urandom(24).hex()


async def history_of(params: Mapping[str, Any], store: Store | None, owner: str, most: int) -> History:
    """Return the items of a request. Raises ApiError where it goes on from what is not there, or has too many."""
    if isinstance(params.get("input"), list) and len(params["input"]) > most:
        raise invalid("input", f"'input' has {len(params['input'])} items, and at most {most} are allowed")
    own = normalized(params.get("input"))
    previous, conversation = params.get("previous_response_id"), _conversation_id(params.get("conversation"))
    if previous is not None and conversation is not None:
        raise invalid("previous_response_id", "'previous_response_id' and 'conversation' exclude each other")
    own = distinct(await resolved(own, store, owner, "input"), ())
    if previous is not None:
        return History(own, await _chained(previous, store, owner, most), previous_id=previous)
    if conversation is not None:
        before = await _conversed(conversation, store, owner, most)
        return History(distinct(own, (one.get("id") for one in before)), before, conversation_id=conversation)
    return History(own)


def normalized(given: Any) -> list[Json]:
    """Return input as items, each with a type and an id; references stay as they are."""
    if given is None:
        return []
    if isinstance(given, str):
        given = [{"role": "user", "content": [{"type": "input_text", "text": given}]}]
    return distinct([_identified(one) for one in given], ())


def distinct(items: Iterable[Json], taken: Iterable[Any]) -> list[Json]:
    """Return items with those ids replaced that are `taken`, or that an earlier one has: a list is paged by them."""
    seen, found = {one for one in taken if isinstance(one, str)}, list[Json]()
    for item in items:
        if isinstance(item.get("id"), str) and _reference(item) is None:
            item = _renamed(item) if item["id"] in seen else item
            seen.add(item["id"])
        found.append(item)
    return found


def _renamed(item: Json) -> Json:
    return {**item, "id": new_id(_PREFIXES.get(str(item.get("type")), "msg_"))}


def _identified(one: Json) -> Json:
    if _reference(one) is not None:
        return one
    kind = one.get("type") or ("message" if "role" in one else None)
    if kind is None:
        return one  # it is none, and is refused as it came
    made: Json = {**one, "type": kind}
    if not isinstance(made.get("id"), str) or not made["id"]:
        made["id"] = new_id(_PREFIXES.get(str(kind), "msg_"))
    return made


def _reference(one: Json) -> str | None:
    """Return the id that an item refers to. The type may be left out. Source: `ItemReference` of openai 3.57."""
    is_one = one.get("type") == "item_reference" or (one.get("type") is None and "id" in one and set(one) <= _REFERENCE)
    return str(one.get("id", "")) if is_one else None


async def resolved(items: list[Json], store: Store | None, owner: str, param: str) -> list[Json]:
    """Return items without references: what they refer to is in their place. Raises ApiError where that is not there."""
    wanted = {number: name for number, one in enumerate(items) if (name := _reference(one)) is not None}
    if not wanted:
        return items
    found = await store.items(wanted.values(), owner) if store is not None else {}
    for number, name in wanted.items():
        if name not in found:
            why = "is not stored here" if store is not None else "cannot be looked up: this gateway stores nothing"
            raise invalid(
                f"{param}[{number}]", f"the item_reference {name[:128]!r} {why}; send the item itself", "item_not_found"
            )
    return [found[wanted[number]] if number in wanted else one for number, one in enumerate(items)]


async def _chained(previous: str, store: Store | None, owner: str, most: int) -> list[Json]:
    chain = await store.chain(previous, owner, most) if store is not None else None
    if chain is None or any(one.response.get("status") not in CONTINUED for one in chain):
        why = "not found" if store is not None else "not found: this gateway stores nothing"
        raise ApiError(
            400,
            f"Previous response with id '{previous}' {why}.",
            code="previous_response_not_found",
            param="previous_response_id",
        )
    items: list[Json] = [item for one in chain for item in (*one.input, *one.response["output"])]
    return _bounded(items, most, "previous_response_id")


async def _conversed(conversation: str, store: Store | None, owner: str, most: int) -> list[Json]:
    items = await store.conversation_items(conversation, owner, most + 1) if store is not None else None
    if items is None:
        raise ApiError(
            404,
            f"Conversation with id '{conversation}' not found.",
            code="conversation_not_found",
            param="conversation",
        )
    return _bounded(items, most, "conversation")


def _bounded(items: list[Json], most: int, param: str) -> list[Json]:
    if len(items) > most:
        raise invalid(param, f"the history has more than {most} items: begin a new one, with what counts of it")
    return items


def _conversation_id(given: Any) -> str | None:
    if isinstance(given, Mapping):
        return str(given["id"])  # pyright: ignore[reportUnknownArgumentType]
    return None if given is None else str(given)


def page_of(items: Iterable[Json], *, limit: int, after: str | None, before: str | None, ascending: bool) -> Json:
    """Return a part of a list as the API pages it: at most `limit` items after the one with the id `after`, and before
    the one with the id `before`, which older clients send.

    Raises ApiError where there is no such item.
    """
    ordered = list(items) if ascending else list(items)[::-1]
    first = 0 if after is None else _place_of(after, ordered, "after") + 1
    end = len(ordered) if before is None else _place_of(before, ordered, "before")
    data = ordered[first:end][:limit]
    ends = {"first_id": data[0]["id"] if data else None, "last_id": data[-1]["id"] if data else None}
    return {"object": "list", "data": data, **ends, "has_more": end - first > limit}


def _place_of(name: str, ordered: list[Json], param: str) -> int:
    found = [number for number, one in enumerate(ordered) if one.get("id") == name]
    if not found:
        raise invalid(param, f"there is no item with id {name[:LONGEST_SHOWN]!r} here")
    return found[-1]  # should there be more, a client that pages comes to an end
