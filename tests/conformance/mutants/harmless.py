"""Changes that break nothing."""

from __future__ import annotations

from random import Random

from .fields import SNAPSHOT, keyless
from .ways import Gone, Kind, edit, edit_final, ends_with, has, insert, kind, only, swap
from .words import (
    ADDED,
    ANNOTATION,
    DELTAS,
    FAILED,
    TERMINALS,
    TEXT_DELTA,
    Event,
    Events,
    longer,
    terminal,
    unknown,
)

# Changes that break nothing


def finer(events: Events, rng: Random) -> Events | None:
    """Say every delta one character at a time."""
    return [piece for event in events for piece in (_characters(event) if event["type"] in DELTAS else [event])]


def _characters(event: Event) -> Events:
    quiet = {**event, "logprobs": []} if "logprobs" in event else event
    return [{**(quiet if n else event), "delta": one} for n, one in enumerate(event["delta"])]


def coarser(events: Events, rng: Random) -> Events | None:
    """Say neighbouring deltas of one part or call in one."""
    said: Events = []
    for event in events:
        before = said[-1] if said else event
        if event["type"] in DELTAS and event["type"] == before["type"] and event["item_id"] == before["item_id"]:
            before["delta"] += event["delta"]
            if "logprobs" in event:
                before["logprobs"] = [*before["logprobs"], *event["logprobs"]]
        else:
            said.append(event)
    return said


def with_extras(events: Events, rng: Random) -> Events | None:
    """Let responses, items and deltas say what the published types do not know."""
    for event in events:
        for one in (event.get("response"), event.get("item"), *event.get("response", {}).get("output", ())):
            if one is not None:
                one["provider_data"] = {"id": "chatcmpl-1"}
        if event["type"] in DELTAS:
            event["obfuscation"] = "Xy3"
    return events


def late_usage(events: Events, rng: Random) -> Events | None:
    """Let a failed response tell what was used."""
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    terminal(events)["usage"] = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, **details}
    return events


def unnumbered(events: Events, rng: Random) -> Events | None:
    """Number nothing, as the API did before May 2025."""
    return [{key: one for key, one in event.items() if key != "sequence_number"} for event in events]


def other_code(events: Events, rng: Random) -> Events | None:
    """Fail with a code that the published types do not list."""
    code = rng.choice(["insufficient_quota", "context_length_exceeded"])
    error, failed = events[-2:]
    error["code"] = error["error"]["code"] = failed["response"]["error"]["code"] = code
    return events


def nested_error(events: Events, rng: Random) -> Events | None:
    """Say the error in its nested form only, as all recordings do."""
    for key in ("code", "message", "param"):
        events[-2].pop(key, None)
    return events


HARMLESS: tuple[Kind, ...] = (
    kind("deltas cut into characters", "", finer),
    kind("deltas joined", "", coarser),
    kind("fields that the types do not know", "", with_extras),
    kind("keepalive", "", insert(lambda events: {"type": "keepalive"}, 2)),
    kind("event of an unknown type", "", insert(unknown, -2)),
    kind("no numbers", "", unnumbered, numbered=False),
    kind("another service_tier at the end", "", edit(TERMINALS, "response.service_tier", "flex")),
    kind("another encrypted_content at the end", "", edit_final("encrypted_content", longer)),
    kind(
        "usage without cache_write_tokens",
        "",
        edit(TERMINALS, "response.usage.input_tokens_details.cache_write_tokens", Gone),
    ),
    kind("no usage", "", edit(TERMINALS, "response.usage", None)),
    kind("usage in a failed response", "", only(ends_with(FAILED), late_usage)),
    kind("code outside the list", "", only(ends_with(FAILED), other_code)),
    kind("nested error alone", "", only(ends_with(FAILED), nested_error)),
    kind("message announced as completed", "", edit(ADDED, "item.status", "completed", has("item.role"))),
    kind("annotation between deltas", "", swap(TEXT_DELTA, ANNOTATION)),
    kind("snapshots without a key", "", keyless(*SNAPSHOT)),
)
