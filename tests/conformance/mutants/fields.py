"""Faults of fields: missing, of the wrong type, unknown; and usage."""

from __future__ import annotations

from random import Random

from .ways import Change, Gone, edit, edit_done, insert, is_type, kind, only
from .words import (
    ADDED,
    ANNOTATION,
    CALL_DELTA,
    CALL_DONE,
    DELTAS,
    DONE,
    DONES,
    FAILED,
    HEADS,
    PART_ADDED,
    PART_DONE,
    SUMMARY_ADDED,
    SUMMARY_DELTA,
    TERMINALS,
    TEXT_DELTA,
    TEXT_DONE,
    Event,
    Events,
    short,
    terminal,
    unknown,
)

# event type -> its fields without which it says nothing
REQUIRED: dict[str | tuple[str, ...], tuple[str, ...]] = {
    (*HEADS, *TERMINALS): ("response",),
    ADDED: ("item", "output_index"),
    DONE: ("item", "output_index"),
    PART_ADDED: ("part", "item_id", "output_index", "content_index"),
    PART_DONE: ("part", "item_id", "output_index", "content_index"),
    TEXT_DELTA: ("delta", "item_id", "output_index", "content_index", "logprobs"),
    TEXT_DONE: ("text", "item_id", "output_index", "content_index", "logprobs"),
    ANNOTATION: ("annotation_index", "item_id", "content_index"),
    SUMMARY_DELTA: ("delta", "item_id", "summary_index"),
    SUMMARY_ADDED: ("part", "summary_index"),
    CALL_DELTA: ("delta", "item_id", "output_index"),
    CALL_DONE: ("arguments", "item_id", "output_index"),
}
USAGE_FIELDS = (
    "input_tokens",
    "input_tokens_details",
    "input_tokens_details.cached_tokens",
    "output_tokens",
    "output_tokens_details",
    "output_tokens_details.reasoning_tokens",
    "total_tokens",
)


# Usage and schema


def usage_off(events: Events, rng: Random) -> Events | None:
    """Let the total be one too many."""
    usage = terminal(events)["usage"]
    if not usage or events[-1]["type"] == FAILED:
        return None
    usage["total_tokens"] += 1
    return events


def keyless(*keys: str) -> Change:
    """Return the change that leaves one of these required keys out of all snapshots, where none lacks any."""

    def change(events: Events, rng: Random) -> Events | None:
        snapshots = [event["response"] for event in events if "response" in event]
        if not all(key in snapshot for snapshot in snapshots for key in (*SNAPSHOT, *keys)):
            return None
        gone = rng.choice(keys)
        for snapshot in snapshots:
            del snapshot[gone]
        return events

    return change


# What the Open Responses schema requires of a response, but for what MUST rules read.
SNAPSHOT = [
    "background",
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "object",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt_cache_key",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "completed_at",
]


def head_usage(events: Events, rng: Random) -> Events | None:
    """Put the final usage in the head."""
    events[rng.randrange(2)]["response"]["usage"] = terminal(events)["usage"]
    return events


FIELD_KINDS = (
    kind("total is not the sum", "USE", usage_off),
    *(
        kind(f"usage without {path}", "USE SCH", edit(TERMINALS, f"response.usage.{path}", Gone))
        for path in USAGE_FIELDS
    ),
    kind("tokens as text", "USE SCH", edit(TERMINALS, "response.usage.input_tokens", str)),
    kind("usage in the head", "STR", head_usage),
    kind("snapshots without a key", "SCH", keyless(*SNAPSHOT), "SHOULD"),
    kind("snapshots without the key usage", "SCH USE", keyless("usage"), "SHOULD"),
    kind(
        "snapshots without the key error",
        "SCH END",
        only(lambda e: e[-1]["type"] != FAILED, keyless("error")),
        "SHOULD",
    ),
    kind("event of an unknown type", "SCH", insert(unknown, 2), "SHOULD"),
    kind("event without a type", "SCH STR", edit((ADDED, *DELTAS, *DONES, PART_DONE), "type", Gone)),
    kind("event with a null type", "SCH STR", edit((ADDED, *DELTAS, *DONES, PART_DONE), "type", None)),
    *(
        kind(f"{short(types)} without {field}", "SCH PRT ITM CAL DLT STR END", edit(types, field, Gone))
        for types, fields in REQUIRED.items()
        for field in fields
    ),
    kind("delta is a number", "SCH DLT", edit(DELTAS, "delta", 7)),
    kind("delta is null", "SCH DLT", edit(DELTAS, "delta", None)),
    kind("whole is a list", "SCH DLT", edit(TEXT_DONE, "text", lambda old: [old])),
    kind("arguments are an object", "SCH CAL", edit(CALL_DONE, "arguments", {"city": "Oslo"})),
    kind("output_index as text", "SCH ITM", edit(DELTAS, "output_index", str)),
    kind("content_index is null", "SCH PRT", edit((*DELTAS, PART_DONE), "content_index", None)),
    kind("item_id is null", "SCH ITM", edit((*DELTAS, *DONES), "item_id", None)),
    kind("item is a string", "SCH ITM", edit((ADDED, DONE), "item", "message")),
    kind("response is a list", "SCH STR", edit((*HEADS, *TERMINALS), "response", [])),
    kind("part is null", "SCH PRT", edit((PART_ADDED, PART_DONE), "part", None)),
    kind("annotations are null", "SCH PRT DLT", edit(PART_DONE, "part.annotations", None)),
    kind("content is null", "SCH ITM DLT", edit_done("content", None, is_type("message"))),
    kind("created_at as text", "SCH STR", lambda events, rng: [_with_text(e, "created_at") for e in events]),
    kind("temperature as text", "SCH", lambda events, rng: [_with_text(e, "temperature") for e in events]),
    kind("object is something else", "SCH STR", edit(TERMINALS, "response.object", "chat.completion")),
)


def _with_text(event: Event, key: str) -> Event:
    if "response" not in event:
        return event
    return {**event, "response": {**event["response"], key: f"about {event['response'][key]}"}}
