"""Faults of parts and of what is in them: text, annotations, logprobs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import TypeAlias

from .ways import Change, edit, edit_done, has, is_type, kind, parts, places, where_all
from .words import (
    ANNOTATION,
    DELTAS,
    DONES,
    PART_ADDED,
    PART_DONE,
    PARTED,
    SUMMARY_ADDED,
    SUMMARY_DELTA,
    SUMMARY_DONE,
    TEXT_DELTA,
    TEXT_DONE,
    WHOLE,
    Event,
    Events,
    all_but_last,
    longer,
    message,
    short,
)

# Parts and what is in them


# events, the places of a part's events, what numbers it -> the events
Pick: TypeAlias = Callable[[Events, list[int], str], Events | None]


def per_part(pick: Pick, key: str, needed: int = 0) -> Change:
    """Return the change that `pick` makes of one part that has at least `needed` before it in its item."""

    def change(events: Events, rng: Random) -> Events | None:
        found = [at for at in parts(events, key) if events[at[0]][key] >= needed]
        return pick(events, rng.choice(found), key) if found else None

    return change


def part_gap(events: Events, at: list[int], key: str) -> Events:
    """Leave out an index before a part."""
    part = events[at[0]]
    for event in events:
        if event.get("output_index") == part["output_index"] and event.get(key, -1) >= part[key] and event is not part:
            event[key] += 1
    part[key] += 1
    return events


def part_twice(events: Events, at: list[int], key: str) -> Events:
    """Give a part the index of the one before."""
    for place in at:
        events[place][key] -= 1
    return events


def two_open(events: Events, at: list[int], key: str) -> Events:
    """Announce a part before the one before it is closed."""
    return [*events[: at[0] - 2], events[at[0]], *events[at[0] - 2 : at[0]], *events[at[0] + 1 :]]


def reopened(events: Events, at: list[int], key: str) -> Events | None:
    """Say one more delta when the part is done."""
    deltas = [place for place in at if events[place]["type"] in DELTAS]
    return [*events[: at[-1] + 1], events[deltas[-1]], *events[at[-1] + 1 :]]


def unsaid(events: Events, at: list[int], key: str) -> Events:
    """Leave out all events of a part, but not the part of the item."""
    return [event for place, event in enumerate(events) if place not in at]


def undelivered(events: Events, at: list[int], key: str) -> Events:
    """Leave out all deltas of a part."""
    return [event for place, event in enumerate(events) if place not in at or event["type"] not in DELTAS]


def swapped_deltas(events: Events, rng: Random) -> Events | None:
    """Say two neighbouring deltas in the wrong order, where that makes another text."""
    found = [
        at
        for at, (one, two) in enumerate(pairwise(events))
        if one["type"] in DELTAS
        and one["type"] == two["type"]
        and one["item_id"] == two["item_id"]
        and one["delta"] + two["delta"] != two["delta"] + one["delta"]
    ]
    if not found:
        return None
    at = rng.choice(found)
    events[at], events[at + 1] = events[at + 1], events[at]
    return events


def empty_delta(types: tuple[str, ...]) -> Change:
    """Return the change that adds a delta that says nothing."""

    def change(events: Events, rng: Random) -> Events | None:
        found = places(events, types)
        if not found:
            return None
        at = rng.choice(found)
        nothing = {**events[at], "delta": "", **({"logprobs": []} if "logprobs" in events[at] else {})}
        return [*events[: at + 1], nothing, *events[at + 1 :]]

    return change


def as_refusal(events: Events, rng: Random) -> Events | None:
    """Say a piece of a text part as refusal."""
    found = places(events, TEXT_DELTA)
    if not found:
        return None
    delta = events[rng.choice(found)]
    delta["type"] = "response.refusal.delta"
    del delta["logprobs"]
    return events


def as_raw_text(events: Events, rng: Random) -> Events | None:
    """Say a piece of a summary part as raw reasoning text."""
    found = places(events, SUMMARY_DELTA)
    if not found:
        return None
    delta = events[rng.choice(found)]
    delta["type"] = "response.reasoning_text.delta"
    delta["content_index"] = delta.pop("summary_index")
    return events


def wrong_part(types: str, part: Event) -> Change:
    """Return the change that gives an event a part of another kind."""
    return edit(types, "part", part, lambda event: event["part"]["type"] != part["type"])


PART_NAMES = {"content_index": (PART_ADDED, PART_DONE), "summary_index": (SUMMARY_ADDED, SUMMARY_DONE)}
PART_KINDS = (
    *(kind(f"{key} skipped", "PRT", per_part(part_gap, key)) for key in PART_NAMES),
    *(kind(f"{key} twice", "PRT", per_part(part_twice, key, 1)) for key in PART_NAMES),
    *(kind(f"{key} of a delta", "PRT", edit(PARTED, key, lambda old: old + 1)) for key in PART_NAMES),
    *(kind(f"{key} of a whole", "PRT", edit(DONES, key, lambda old: old + 1)) for key in PART_NAMES),
    *(
        kind(f"{key} of {short(done)}", "PRT", edit(done, key, lambda old: old + 1))
        for key, (_, done) in PART_NAMES.items()
    ),
    *(kind(f"two parts open by {key}", "PRT", per_part(two_open, key, 1)) for key in PART_NAMES),
    *(kind(f"delta after part done by {key}", "PRT", per_part(reopened, key)) for key in PART_NAMES),
    *(kind(f"part only in the item by {key}", "PRT DLT RSN", per_part(unsaid, key)) for key in PART_NAMES),
    *(kind(f"part without deltas by {key}", "DLT", per_part(undelivered, key)) for key in PART_NAMES),
    kind("part announced as refusal", "PRT RSN", wrong_part(PART_ADDED, {"type": "refusal", "refusal": ""})),
    kind("part done as text", "PRT RSN DLT", wrong_part(PART_DONE, message("")["content"][0])),
    kind("refusal in a text part", "PRT", as_refusal),
    kind("reasoning text in a summary part", "RSN PRT", as_raw_text),
    kind(
        "raw reasoning announced as output text",
        "RSN PRT",
        edit(PART_ADDED, "part", message("")["content"][0], lambda e: e["part"]["type"] == "reasoning_text"),
    ),
    kind("text part announced with text", "PRT", edit(PART_ADDED, "part.text", "early")),
    kind("refusal part announced with text", "PRT", edit(PART_ADDED, "part.refusal", "early")),
    kind("summary part announced with text", "PRT", edit(SUMMARY_ADDED, "part.text", "early")),
    kind("deltas in the wrong order", "DLT CAL", swapped_deltas),
    *(kind(f"{short(one)} says nothing", "DLT", empty_delta((one,))) for one in DELTAS),
    *(kind(f"{short(one)} altered", "DLT CAL", edit(one, "delta", longer)) for one in DELTAS),
    *(kind(f"{short(one)} altered", "DLT CAL", edit(one, field, longer)) for one, field in WHOLE.values()),
    *(
        kind(f"part done with another text, {short(one)}", "DLT", edit(one, "part.text", longer))
        for one in (PART_DONE, SUMMARY_DONE)
    ),
    kind("part done with another refusal", "DLT", edit(PART_DONE, "part.refusal", longer)),
    kind("item done with another text", "DLT", edit_done("content.0.text", longer)),
    kind("item done with another refusal", "DLT", edit_done("content.-1.refusal", longer)),
    kind("item done with another summary", "DLT RSN", edit_done("summary.0.text", longer)),
    kind("item done without its parts", "DLT PRT", edit_done("content", [], lambda one: one["content"])),
    kind("item done without its summary", "DLT PRT RSN", edit_done("summary", [], lambda one: one["summary"])),
    kind(
        "item done with a part more",
        "DLT PRT",
        edit_done("content", lambda old: [*old, *message("more")["content"]], is_type("message")),
    ),
    kind("item done with its parts reversed", "DLT PRT", edit_done("content", lambda old: old[::-1])),
)


# What hangs on text


def invented(old: list[Event]) -> list[Event]:
    """Return `old` and an annotation that no event has announced."""
    return [
        *old,
        {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "none", "url": "https://example.org/none"},
    ]


TEXT_PART = where_all(has("part.annotations.0"))
WITH_ANNOTATIONS = where_all(is_type("message"), has("content.-1.annotations.0"))
EXTRA_KINDS = (
    kind("annotation lost at part done", "PRT DLT", edit(PART_DONE, "part.annotations", all_but_last, TEXT_PART)),
    kind(
        "annotation lost at item done",
        "PRT DLT",
        edit_done("content.-1.annotations", all_but_last, WITH_ANNOTATIONS),
    ),
    kind("annotation changed at part done", "PRT DLT", edit(PART_DONE, "part.annotations.0.url", longer)),
    kind("annotation changed at item done", "PRT DLT", edit_done("content.-1.annotations.0.url", longer)),
    kind("annotations reversed at part done", "PRT DLT", edit(PART_DONE, "part.annotations", lambda old: old[::-1])),
    kind("annotation_index wrong", "PRT DLT", edit(ANNOTATION, "annotation_index", lambda old: old + 1)),
    kind(
        "annotation_index always 0",
        "PRT DLT",
        edit(ANNOTATION, "annotation_index", 0, lambda e: e["annotation_index"] > 0),
    ),
    kind("annotation of a part not announced", "PRT DLT", edit(ANNOTATION, "content_index", lambda old: old + 5)),
    kind("annotation invented at part done", "PRT DLT", edit(PART_DONE, "part.annotations", invented)),
    kind("logprobs lost at text done", "DLT PRT", edit(TEXT_DONE, "logprobs", [])),
    kind("logprob lost at text done", "DLT PRT", edit(TEXT_DONE, "logprobs", lambda old: old[:-1])),
    kind(
        "logprobs lost at item done",
        "DLT PRT",
        edit_done("content.0.logprobs", [], where_all(has("content.0.logprobs.0"))),
    ),
    kind("logprobs changed at text done", "DLT PRT", edit(TEXT_DONE, "logprobs.0.logprob", lambda old: old - 1)),
    kind("logprobs changed at item done", "DLT PRT", edit_done("content.0.logprobs.0.token", longer)),
    kind("logprobs lost in a delta", "DLT PRT", edit(TEXT_DELTA, "logprobs", [])),
)
