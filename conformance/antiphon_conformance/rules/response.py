"""STR: the response's life."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from antiphon_conformance.events import HEAD, PLACES, SILENT, TERMINALS
from antiphon_conformance.evidence import COPILOT, ERROR, QUEUED, TEXT, sdk, types
from antiphon_conformance.read import Json, mappings, quoted
from antiphon_conformance.rule import Found, Level, Need, folded, rule
from antiphon_conformance.trace import Snapshot, Trace

# What STR002, STR004, STR006 and the endings look at; the rest of a snapshot is the request's echo.
_LIFE = (
    "completed_at",
    "created_at",
    "error",
    "id",
    "incomplete_details",
    "model",
    "object",
    "output",
    "status",
    "usage",
)
# Fields that differ between head and terminal in unedited recordings, or that only the terminal can know.
_LATE = (*_LIFE, "content_filters", "provider_data", "service_tier")
# Fields of a request that the response repeats as they are.
_ECHOED = (
    "instructions",
    "max_output_tokens",
    "metadata",
    "parallel_tool_calls",
    "previous_response_id",
    "temperature",
    "tool_choice",
    "top_p",
    "truncation",
)


@rule(
    "STR001",
    "created-then-in-progress",
    Level.MUST,
    since="1.0",
    sources=(TEXT, QUEUED, sdk("raises where `response.created` is not first")),
)
def created_then_in_progress(trace: Trace) -> Iterator[Found]:
    """The events are `response.created`, `response.queued` in the background only, `response.in_progress`, those of
    the items, at most one `error`, the terminal event, and nothing after it."""
    for breach in chain.from_iterable(trace.illegal("STR001")):
        yield Found(breach.at, breach.message)
    for snapshot in trace.head:
        if snapshot.type == "response.queued" and snapshot.response.get("background") is False:
            yield Found(snapshot.at, "`response.queued` comes in the foreground")
    yield from folded(Found(at, f"`{trace.types[at]}` {where}") for at, where in _outside(trace))


def _outside(trace: Trace) -> Iterator[tuple[int, str]]:
    """Yield where an event of unknown type comes before the head or after the end; of known ones the table speaks."""
    begin = min((trace.kinds[kind][0] for kind in HEAD if kind in trace.kinds), default=0)
    end = trace.terminal.at if trace.terminal is not None else len(trace.types)
    strange = [kind for kind in trace.kinds if kind and kind not in PLACES and kind not in SILENT]
    for at in sorted(at for kind in strange for at in trace.kinds[kind]):
        if not begin <= at <= end:
            yield at, "comes before the response is created" if at < begin else "comes after the response has ended"


@rule(
    "STR002",
    "one-response-id",
    Level.MUST,
    since="1.0",
    sources=(TEXT, sdk('raises "Lifecycle response identity changed."')),
    broken_by=(COPILOT,),
)
def one_response_id(trace: Trace) -> Iterator[Found]:
    """The response has an `id`, which is the same in every snapshot."""
    nameless = [one for one in trace.snapshots if one.response.get("id") == ""]
    if len(nameless) == len(trace.snapshots):
        yield from folded(Found(one.at, f"the response in `{one.type}` has an empty id") for one in nameless)
    yield from folded(_changed(trace, "id"))


@rule(
    "STR003",
    "one-terminal-event",
    Level.MUST,
    since="1.0",
    sources=(TEXT, ERROR),
)
def one_terminal_event(trace: Trace) -> Iterator[Found]:
    """There is exactly one of `response.completed`, `response.incomplete` and `response.failed`, also where the
    source breaks off."""
    found = list(trace.of(*TERMINALS))
    if not found:
        yield Found(trace.end, "the stream ends without a terminal event")
    yield from folded(Found(at, f"a second terminal event, `{trace.types[at]}`") for at, _ in found[1:])


@rule("STR004", "head-is-empty", Level.MUST, since="1.0", sources=(TEXT, QUEUED))
def head_is_empty(trace: Trace) -> Iterator[Found]:
    """The response in `created`, `queued` and `in_progress` has `output: []`, no usage, no error, no `completed_at`,
    and status `in_progress` (or `queued`, in the background)."""
    for snapshot in trace.head:
        wrong = [f"{key} {quoted(value)}" for key, value in _filled(trace, snapshot)]
        if wrong:
            yield Found(snapshot.at, f"the response in `{snapshot.type}` already has {', '.join(wrong)}")


def _filled(trace: Trace, snapshot: Snapshot) -> Iterator[tuple[str, Any]]:
    """Yield what a head may not have."""
    queued = snapshot.type == "response.queued" or any(True for _ in trace.of("response.queued"))
    allowed = ("in_progress", "queued") if queued else ("in_progress",)
    if not snapshot.response:
        return  # it is no object, as SCH001 says
    for key in ("output", "usage", "error", "incomplete_details", "completed_at"):
        value = snapshot.response.get(key)
        if value is not None and value != []:
            yield key, value
    if snapshot.response.get("status") not in allowed:
        yield "status", snapshot.response.get("status")


@rule("STR005", "head-snapshots-equal", Level.MUST, since="1.0", sources=(TEXT, QUEUED))
def head_snapshots_equal(trace: Trace) -> Iterator[Found]:
    """What the request said (instructions, tools, tool_choice, text, reasoning, metadata, …) is the same in
    `created`, `queued` and `in_progress`."""
    yield from folded(_unequal(trace))


def _unequal(trace: Trace) -> Iterator[Found]:
    """Yield the heads that are not as the first one; one that is no object is SCH001's."""
    for snapshot in trace.head[1:]:
        differing = ", ".join(_differing(trace.head[0].response, snapshot.response, _LIFE))
        if differing and snapshot.response and trace.head[0].response:
            yield Found(snapshot.at, f"{differing} is not as in `{trace.head[0].type}`")


@rule("STR006", "created-at-and-model-kept", Level.MUST, since="1.0", sources=(TEXT, QUEUED))
def created_at_and_model_kept(trace: Trace) -> Iterator[Found]:
    """`created_at` and `model` are the same in every snapshot, and `completed_at` is not before `created_at`."""
    for key in ("created_at", "model"):
        yield from folded(_changed(trace, key))
    for snapshot in trace.snapshots:
        begun, ended = (snapshot.response.get(key) for key in ("created_at", "completed_at"))
        if isinstance(begun, int | float) and isinstance(ended, int | float) and ended < begun:
            yield Found(snapshot.at, f"completed_at is {ended}, before created_at, {begun}", Level.SHOULD)


@rule("STR007", "echo-kept", Level.SHOULD, since="1.0", sources=(TEXT, ERROR))
def echo_kept(trace: Trace) -> Iterator[Found]:
    """What the request said is in the terminal response as it was in the head."""
    terminal = trace.terminal
    if terminal is not None and terminal.response and trace.head:
        kept = [_differing(snapshot.response, terminal.response, _LATE) for snapshot in trace.head]
        differing = ", ".join(key for key in kept[0] if all(key in others for others in kept[1:]))
        if differing:
            yield Found(terminal.at, f"{differing} is not as in the head")


@rule(
    "STR008",
    "request-echoed",
    Level.SHOULD,
    since="1.0",
    sources=(types("Response"),),
    needs=(Need.REQUEST,),
)
def request_echoed(trace: Trace) -> Iterator[Found]:
    """The head repeats what the request said: instructions, metadata, sampling, tool_choice, and tools by name."""
    request = trace.request or {}
    for snapshot in trace.head[:1]:
        asked = {key: request[key] for key in _ECHOED if request.get(key) is not None}
        wrong = [key for key, value in asked.items() if snapshot.response.get(key) != value]
        if request.get("tools") and _tools(request) != _tools(snapshot.response):
            wrong.append("tools")
        if wrong:
            yield Found(snapshot.at, f"{', '.join(wrong)} is not as in the request")


def _tools(holder: Json) -> list[Any]:
    """Return type and name of each tool."""
    return [(tool.get("type"), tool.get("name")) for tool in mappings(holder.get("tools"))]


def _changed(trace: Trace, key: str) -> Iterator[Found]:
    """Yield the snapshots whose `key` is not that of the first one."""
    told = [one for one in trace.snapshots if key in one.response]
    for snapshot in told[1:]:
        if snapshot.response[key] != told[0].response[key]:
            was, now = quoted(told[0].response[key]), quoted(snapshot.response[key])
            yield Found(snapshot.at, f"{key} was {was} in `{told[0].type}` and is {now}")


def _differing(first: Json, second: Json, without: tuple[str, ...]) -> list[str]:
    """Return the keys in which two responses differ."""
    return [key for key in sorted({*first, *second}) if key not in without and first.get(key) != second.get(key)]
