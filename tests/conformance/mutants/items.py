"""Faults of items: where they stand, who they are, when they live."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from .ways import Change, Gone, edit, edit_done, has, insert, is_type, items, kind, places, replaced, swap
from .words import (
    ADDED,
    ANNOTATION,
    CALLS,
    DELTAS,
    DONE,
    DONES,
    OWN,
    PART_ADDED,
    PART_DONE,
    SUMMARY_ADDED,
    SUMMARY_DONE,
    Event,
    Events,
    longer,
    short,
    stray_delta,
    terminal,
)

# events, the places of an item's events, the number of the item -> the events
Pick: TypeAlias = Callable[[Events, list[int], int], Events | None]


def per_item(pick: Pick, needed: int = 1) -> Change:
    """Return the change that `pick` makes of one item."""

    def change(events: Events, rng: Random) -> Events | None:
        found = items(events)
        if len(found) < needed:
            return None
        at = rng.randrange(needed - 1, len(found))
        return pick(events, found[at], at)

    return change


def gap_before(events: Events, at: list[int], index: int) -> Events:
    """Leave out an `output_index`."""
    for event in events:
        if event.get("output_index", -1) >= index:
            event["output_index"] += 1
    return events


def same_index(events: Events, at: list[int], index: int) -> Events:
    """Give an item the `output_index` of the one before."""
    for place in at:
        events[place]["output_index"] = index - 1
    return events


def crossed_indices(events: Events, at: list[int], index: int) -> Events:
    """Announce an item and the one before in the wrong order of `output_index`."""
    for event in events:
        if event.get("output_index") in (index, index - 1):
            event["output_index"] = 2 * index - 1 - event["output_index"]
    return events


def same_id(events: Events, at: list[int], index: int) -> Events:
    """Give an item the id of the first one."""
    ids = [one["id"] for one in terminal(events)["output"]]
    same: Events = replaced(events, ids[index], ids[0])
    return same


def same_call_id(events: Events, rng: Random) -> Events | None:
    """Give the last call the call_id of the first."""
    calls = [one["call_id"] for one in terminal(events)["output"] if one["type"] in CALLS]
    same: Events = replaced(events, calls[-1], calls[0]) if len(calls) > 1 else events
    return same


def interleaved(events: Events, at: list[int], index: int) -> Events:
    """Deal the events of an item and the one before in turn."""
    before = items(events)[index - 1]
    dealt = [place for n in range(max(len(before), len(at))) for place in (*before[n : n + 1], *at[n : n + 1])]
    return [*events[: before[0]], *(events[place] for place in dealt), *events[at[-1] + 1 :]]


def left_open(events: Events, rng: Random) -> Events | None:
    """Never close the last item, nor put it into the output."""
    found = places(events, DONE)
    if not found:
        return None
    gone = events.pop(found[-1])["item"]["id"]
    terminal(events)["output"] = [one for one in terminal(events)["output"] if one["id"] != gone]
    return events


def never_announced(events: Events, at: list[int], index: int) -> Events:
    """Leave an item out, but not out of the terminal output."""
    return [event for place, event in enumerate(events) if place not in at]


def said_after_done(events: Events, at: list[int], index: int) -> Events | None:
    """Say one more delta when the item is done."""
    deltas = [place for place in at if events[place]["type"] in DELTAS]
    return [*events[: at[-1] + 1], events[deltas[-1]], *events[at[-1] + 1 :]] if deltas else None


def announced_full(events: Events, rng: Random) -> Events | None:
    """Announce an item with what it has when it is done."""
    done = {event["output_index"]: event["item"] for event in events if event["type"] == DONE}
    full = [
        at
        for at in places(events, ADDED)
        if emptied(done[events[at]["output_index"]]) != done[events[at]["output_index"]]
    ]
    if not full:
        return None
    event = events[rng.choice(full)]
    event["item"] = {**done[event["output_index"]], **({"status": "in_progress"} if "status" in event["item"] else {})}
    return events


def emptied(item: Event) -> Event:
    """Return `item` without its content; what is sealed stays."""
    return {
        key: type(one)() if key in ("content", "summary", "arguments", "input") else one for key, one in item.items()
    }


def as_reasoning(item: Event) -> Event:
    """Return an empty reasoning item with the id of `item`."""
    return {"id": item["id"], "type": "reasoning", "summary": []}


def other_id(types: str | tuple[str, ...]) -> Change:
    """Return the change that gives one event the id of another item."""
    return edit(types, "item_id", longer)


def other_index(types: str | tuple[str, ...]) -> Change:
    """Return the change that gives one event the place of another item."""
    return edit(types, "output_index", lambda old: old + 1)


def broken_off(events: Events, at: list[int], index: int) -> Events | None:
    """Leave out all that closes the last item, and the item out of the output."""
    if index + 1 < len(items(events)):
        return None
    closing = {place for place in at if events[place]["type"] in (*DONES, PART_DONE, SUMMARY_DONE, DONE)}
    terminal(events)["output"] = terminal(events)["output"][:-1]
    return [event for place, event in enumerate(events) if place not in closing]


def is_own(event: Event) -> bool:
    """Return whether an event's item is no hosted tool's."""
    return event["item"]["type"] in OWN


SEARCH = tuple(f"response.web_search_call.{role}" for role in ("in_progress", "searching", "completed"))


def about_message(events: Events, rng: Random) -> Events | None:
    """Say in a message that a search goes on."""
    found = places(events, PART_ADDED)
    if not places(events, SEARCH) or not found:
        return None
    where = {key: events[found[0]][key] for key in ("item_id", "output_index")}
    return [*events[: found[0]], {"type": SEARCH[1], **where}, *events[found[0] :]]


ITEM_KINDS = (
    kind("output_index skipped", "ITM", per_item(gap_before)),
    kind("output_index twice", "ITM", per_item(same_index, 2)),
    kind("output_index crossed", "ITM", per_item(crossed_indices, 2)),
    *(
        kind(f"output_index of {short(one)}", "ITM PRT CAL", other_index(one))
        for one in (ADDED, DONE, PART_ADDED, PART_DONE)
    ),
    kind("output_index of a delta", "ITM PRT CAL", other_index(DELTAS)),
    kind("output_index of a whole", "ITM PRT CAL", other_index(DONES)),
    kind("item_id of a part", "ITM PRT", other_id((PART_ADDED, SUMMARY_ADDED))),
    kind("item_id of a part's done", "ITM PRT", other_id((PART_DONE, SUMMARY_DONE))),
    kind("item_id of a delta", "ITM", other_id(DELTAS)),
    kind("item_id of a whole", "ITM", other_id(DONES)),
    kind("item_id of an annotation", "ITM PRT", other_id(ANNOTATION)),
    kind("id changed at item done", "ITM", edit_done("id", longer)),
    kind("two items with one id", "ITM", per_item(same_id, 2)),
    kind("two calls with one call_id", "ITM CAL", same_call_id),
    kind("call_id changed at item done", "ITM CAL", edit_done("call_id", longer)),
    kind("name changed at item done", "ITM CAL", edit_done("name", longer)),
    kind("role changed at item done", "ITM SCH", edit_done("role", "user")),
    kind("announced as another type", "ITM PRT", edit(ADDED, "item", as_reasoning, has("item.role"))),
    kind("items interleaved", "ITM", per_item(interleaved, 2)),
    kind("item never done", "ITM", left_open),
    kind("item broken off", "ITM", per_item(broken_off)),
    kind("item only in the terminal output", "END ITM", per_item(never_announced)),
    kind("delta after item done", "ITM PRT CAL", per_item(said_after_done)),
    kind("delta of an item not announced", "ITM", insert(stray_delta, 2)),
    kind("delta of an item not announced, late", "ITM STR", insert(stray_delta, -2)),
    kind("announced with its content", "ITM", announced_full),
    kind("message announced as completed", "ITM", edit(ADDED, "item.status", "completed", has("item.role")), "SHOULD"),
    kind("call announced as completed", "ITM", edit(ADDED, "item.status", "completed", has("item.call_id"))),
    kind("item announced as incomplete", "ITM", edit(ADDED, "item.status", "incomplete", is_own)),
    kind("item done as in_progress", "ITM END", edit_done("status", "in_progress", is_type(*OWN))),
    kind("call done without status", "ITM END", edit_done("status", Gone, is_type("function_call"))),
    kind("message done without status", "ITM END SCH", edit_done("status", Gone, is_type("message"))),
    kind("message announced without content", "ITM SCH", edit(ADDED, "item.content", Gone, has("item.role"))),
    kind("search goes on before it begins", "ITM", swap(SEARCH[0], SEARCH[1]), "SHOULD"),
    kind("search goes on after it ends", "ITM", swap(SEARCH[1], SEARCH[2]), "SHOULD"),
    kind("search goes on in a message", "ITM", about_message, "SHOULD"),
)
