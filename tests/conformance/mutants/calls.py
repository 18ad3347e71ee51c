"""Faults of calls and of reasoning items."""

from __future__ import annotations

from random import Random
from typing import Any

from .ways import Change, Gone, edit, edit_done, everywhere, has, kind, places
from .words import (
    ADDED,
    CALL_DELTA,
    CALL_DONE,
    CALLS,
    COMPLETED,
    DELTAS,
    DONE,
    PART_ADDED,
    TEXT_DELTA,
    Events,
    longer,
    message,
    terminal,
)


def arguments_everywhere(new: Any) -> Change:
    """Return the change that gives one call other arguments in all its events, in one delta or none."""

    def change(events: Events, rng: Random) -> Events | None:
        found = places(events, CALL_DONE, lambda event: event["arguments"] != "")
        if not found or events[-1]["type"] != COMPLETED:
            return None
        whole = events[rng.choice(found)]
        text, id = new(whole["arguments"]), whole["item_id"]
        delta = next(event for event in events if event["type"] == CALL_DELTA and event["item_id"] == id)
        whole["arguments"] = delta["delta"] = text
        for item in [*(e["item"] for e in events if e["type"] == DONE), *terminal(events)["output"]]:
            if item["id"] == id:
                item["arguments"] = text
        mine = [event for event in events if event["type"] == CALL_DELTA and event["item_id"] == id]
        return [event for event in events if event not in mine or (event is delta and text)]

    return change


def silent_call(events: Events, rng: Random) -> Events | None:
    """Leave out all deltas of a call."""
    ids = [events[at]["item_id"] for at in places(events, [one for one in DELTAS if "call" in one])]
    if not ids:
        return None
    id = rng.choice(ids)
    return [event for event in events if event["type"] not in DELTAS or event["item_id"] != id]


def lent_delta(events: Events, rng: Random) -> Events | None:
    """Say a fragment of one call with the id of another."""
    ids = [one["id"] for one in terminal(events)["output"] if one["type"] == "function_call"]
    found = places(events, CALL_DELTA, lambda event: event["item_id"] in ids)
    if len(ids) < 2 or not found:
        return None
    event = events[rng.choice(found)]
    event["item_id"] = rng.choice([id for id in ids if id != event["item_id"]])
    return events


def as_arguments(events: Events, rng: Random) -> Events | None:
    """Say the input of a custom tool call as arguments of a function call."""
    mine = places(events, INPUTS)
    for at in mine:
        event = events[at]
        event["type"] = event["type"].replace("custom_tool_call_input", "function_call_arguments")
        if "input" in event:
            event["arguments"] = event.pop("input")
    return events if mine else None


def as_text(events: Events, rng: Random) -> Events | None:
    """Say a fragment of arguments as text."""
    found = places(events, CALL_DELTA)
    if not found:
        return None
    events[rng.choice(found)].update({"type": TEXT_DELTA, "content_index": 0, "logprobs": []})
    return events


def part_in_call(events: Events, rng: Random) -> Events | None:
    """Announce a text part in a call."""
    found = places(events, ADDED, has("item.call_id"))
    if not found:
        return None
    at = rng.choice(found)
    where = {"item_id": events[at]["item"]["id"], "output_index": events[at]["output_index"], "content_index": 0}
    return [*events[: at + 1], {"type": PART_ADDED, **where, "part": message("")["content"][0]}, *events[at + 1 :]]


INPUTS = ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done")
CALL_KINDS = (
    kind("item done with other arguments", "CAL DLT", edit_done("arguments", longer)),
    kind("item done with other input", "CAL DLT", edit_done("input", longer)),
    kind("call without deltas", "CAL DLT", silent_call),
    *(
        kind(f"{type} without {key}", "CAL SCH ITM", everywhere(type, key, Gone))
        for type in CALLS
        for key in ("name", "call_id")
    ),
    *(
        kind(f"{type} with an empty {key}", "CAL ITM", everywhere(type, key, ""))
        for type in CALLS
        for key in ("name", "call_id")
    ),
    kind("id comes late", "CAL ITM", edit(ADDED, "item.id", Gone, has("item.call_id"))),
    kind("call announced with an empty id", "CAL ITM", edit(ADDED, "item.id", "", has("item.call_id"))),
    kind("name comes late", "CAL ITM", edit(ADDED, "item.name", "")),
    kind("call_id comes late", "CAL ITM", edit(ADDED, "item.call_id", "")),
    kind("fragment of another call", "CAL ITM", lent_delta),
    kind("arguments of two calls in one", "CAL", arguments_everywhere(lambda old: old + old), "SHOULD"),
    kind("custom input told as arguments", "CAL", as_arguments),
    kind("arguments told as text", "CAL PRT", as_text),
    kind("text part in a call", "CAL PRT", part_in_call),
    kind("arguments that are no JSON", "CAL", arguments_everywhere(lambda old: old[:-1]), "SHOULD"),
    kind("no arguments as an empty string", "CAL", arguments_everywhere(lambda old: ""), "SHOULD"),
    kind("reasoning with a status", "RSN ITM END", everywhere("reasoning", "status", "completed")),
    kind("summary is null", "RSN SCH ITM", everywhere("reasoning", "summary", None)),
    kind("summary is missing", "RSN SCH ITM", everywhere("reasoning", "summary", Gone)),
    kind("summary is missing when announced", "RSN SCH ITM", edit(ADDED, "item.summary", Gone)),
)
