"""Faults of the response: its head, its life, its numbers."""

from __future__ import annotations

from random import Random
from typing import Any

from .ways import Change, Gone, duplicate, edit, insert, kind, only, places, put
from .words import ADDED, DONE, HEADS, TERMINALS, Event, Events, error, longer, message, stray_delta, unknown


def queued(events: Events) -> Event:
    """Return the `response.queued` that belongs to a background response."""
    return {"type": "response.queued", "response": {**events[0]["response"], "status": "queued"}}


def second_ending(events: Events, rng: Random) -> Events | None:
    """Say after the terminal event that it ended in another way."""
    other = rng.choice([one for one in TERMINALS if one != events[-1]["type"]])
    return [*events, {**events[-1], "type": other}]


def cut(events: Events, rng: Random) -> Events | None:
    """Break off somewhere after the head."""
    return events[: rng.randrange(2, len(events))]


def late_in_progress(events: Events, rng: Random) -> Events | None:
    """Say in_progress only after the first item."""
    done = places(events, DONE)
    if not done:
        return None
    return [events[0], *events[2 : done[0] + 1], events[1], *events[done[0] + 1 :]]


def early_ending(events: Events, rng: Random) -> Events | None:
    """End before the last item."""
    added = places(events, ADDED)
    return [*events[: added[-1]], events[-1], *events[added[-1] : -1]] if added else None


def is_foreground(events: Events) -> bool:
    """Return whether the response is not a background one."""
    return not events[0]["response"].get("background")


def both_heads(key: str, new: Any) -> Change:
    """Return the change that puts `new` into every snapshot of the head."""

    def change(events: Events, rng: Random) -> Events | None:
        for at in places(events, HEADS):
            put(events[at], f"response.{key}", new)
        return events

    return change


def again(events: Events, rng: Random) -> Events | None:
    """Say in_progress again before the last item."""
    added = places(events, ADDED)
    return [*events[: added[-1]], events[1], *events[added[-1] :]] if added else None


USED = {
    "input_tokens": 3,
    "output_tokens": 2,
    "total_tokens": 5,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
HEAD_KINDS = (
    kind("no events", "STR", lambda events, rng: []),
    kind("no head", "STR", lambda events, rng: events[2:]),
    kind("no terminal event", "STR", lambda events, rng: events[:-1]),
    kind("cut off", "STR ITM", cut),
    kind("in_progress after the first item", "STR", late_in_progress),
    kind("queued in the foreground", "STR", only(is_foreground, insert(queued, 1))),
    kind("terminal event twice", "STR", duplicate(TERMINALS)),
    kind("a second terminal event of another type", "STR", second_ending),
    kind("terminal event before the last item", "STR ITM", early_ending),
    kind("delta after the terminal event", "STR ITM", lambda events, rng: [*events, stray_delta(events)]),
    kind("error after the terminal event", "STR END", insert(error, -1)),
    kind("created again at the end", "STR", lambda events, rng: [*events[:-1], events[0], events[-1]]),
    kind("created with output", "STR", edit("response.created", "response.output", [message("early")])),
    kind("in_progress with output", "STR", edit("response.in_progress", "response.output", [message("early")])),
    kind(
        "created with error",
        "STR",
        edit("response.created", "response.error", {"code": "server_error", "message": "x"}),
    ),
    kind("head with output", "STR", both_heads("output", [message("early")])),
    kind("head with usage", "STR", both_heads("usage", USED)),
    kind("head with error", "STR", both_heads("error", {"code": "server_error", "message": "x"})),
    kind("head as completed", "STR", both_heads("status", "completed")),
    kind("head without a status", "STR", both_heads("status", Gone)),
    kind("head with another background", "STR", edit(HEADS[1], "response.background", lambda old: not old)),
    kind("in_progress again before the last item", "STR", again),
    kind("queued twice", "STR", duplicate("response.queued")),
    kind("unknown event before the head", "STR", insert(unknown, 0)),
    kind("unknown event after the terminal event", "STR", insert(unknown, -1)),
    kind("created as completed", "STR", edit("response.created", "response.status", "completed")),
    kind("in_progress as completed", "STR", edit("response.in_progress", "response.status", "completed")),
    kind("in_progress as incomplete", "STR", edit("response.in_progress", "response.status", "incomplete")),
    kind("head with another temperature", "STR", edit("response.in_progress", "response.temperature", 0.125)),
    kind("head with other instructions", "STR", edit("response.in_progress", "response.instructions", "Hum instead.")),
    kind("head with other metadata", "STR", edit("response.in_progress", "response.metadata", {"other": "1"})),
    kind("head with another tool_choice", "STR", edit("response.in_progress", "response.tool_choice", "required")),
    kind("another temperature at the end", "STR", edit(TERMINALS, "response.temperature", 0.125), "SHOULD"),
    kind("another tool_choice at the end", "STR", edit(TERMINALS, "response.tool_choice", "required"), "SHOULD"),
    kind("id changed in the head", "STR", edit("response.in_progress", "response.id", longer)),
    kind("id changed at the end", "STR", edit(TERMINALS, "response.id", longer)),
    kind(
        "created_at changed in the head",
        "STR",
        edit("response.in_progress", "response.created_at", lambda old: old + 1),
    ),
    kind("created_at changed at the end", "STR", edit(TERMINALS, "response.created_at", lambda old: old + 1)),
    kind("model changed in the head", "STR", edit("response.in_progress", "response.model", longer)),
    kind("model changed at the end", "STR", edit(TERMINALS, "response.model", longer)),
)


# Numbers


def shifted(events: Events, first: int, by: int) -> Events:
    """Return `events` with the numbers from place `first` on moved by `by`."""
    for event in events[first:]:
        event["sequence_number"] += by
    return events


def all_numbers(make: Any) -> Change:
    """Return the change that numbers by what `make` returns for a place."""

    def change(events: Events, rng: Random) -> Events | None:
        return [{**event, "sequence_number": make(at)} for at, event in enumerate(events)]

    return only(lambda events: "sequence_number" in events[0], change)


def one_number(new: Any, first: int = 1) -> Change:
    """Return the change that puts `new` as one event's number."""

    def change(events: Events, rng: Random) -> Events | None:
        put(events[rng.randrange(first, len(events))], "sequence_number", new)
        return events

    return only(lambda events: "sequence_number" in events[0], change)


def moved_numbers(by: int) -> Change:
    """Return the change that moves the numbers from somewhere on."""
    return only(
        lambda events: "sequence_number" in events[0],
        lambda events, rng: shifted(events, rng.randrange(1, len(events)), by),
    )


NUMBER_KINDS = tuple(
    kind(name, "SEQ SCH", change, numbered=False)
    for name, change in (
        ("numbers from 1", all_numbers(lambda at: at + 1)),
        ("numbers all 0", all_numbers(lambda at: 0)),
        ("numbers by 2", all_numbers(lambda at: at * 2)),
        ("numbers downwards", all_numbers(lambda at: -at)),
        ("number skipped", moved_numbers(1)),
        ("number repeated", moved_numbers(-1)),
        ("number wrong once", one_number(lambda old: old + 7)),
        ("number missing once", one_number(Gone)),
        ("number null once", one_number(None)),
        ("number as text", one_number(str)),
    )
)
