"""One broken stream for each rule, and the codes of all rules that it breaks.

A stream is broken by a change to a good one; what rules need beside the events is given with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from antiphon_conformance.read import listed, plain

from .building import (
    USAGE,
    Event,
    Events,
    call,
    chunk,
    custom_call,
    fragment,
    message,
    numbered,
    reasoning,
    searched,
    stream,
    text_part,
    usage_chunk,
)


def found(events: Events, kind: str, nth: int = 0) -> int:
    """Return the place of the nth event whose type ends in `kind`."""
    return [at for at, event in enumerate(events) if event["type"].endswith(kind)][nth]


def without(events: Events, kind: str, nth: int = 0) -> Events:
    at = found(events, kind, nth)
    return numbered([*events[:at], *events[at + 1 :]])


def twice(events: Events, kind: str, nth: int = 0) -> Events:
    at = found(events, kind, nth)
    return numbered([*events[: at + 1], *events[at:]])


def moved(events: Events, kind: str, to: str, nth: int = 0) -> Events:
    """Return the events with one put right before another."""
    event = events[found(events, kind, nth)]
    rest = [one for one in events if one is not event]
    at = found(rest, to)
    return numbered([*rest[:at], event, *rest[at:]])


def between(events: Events, kind: str, new: Event) -> Events:
    """Return the events with a new one put right before the first of a type."""
    at = found(events, kind)
    return numbered([*events[:at], new, *events[at:]])


def changed(events: Events, kind: str, path: str, value: Any, nth: int = 0) -> Events:
    """Return the events with `value` at `path` in one of them; KeyError as value takes the field away."""
    made: Events = json.loads(json.dumps(events))  # no value is shared with another event
    held: Any = made[found(made, kind, nth)]
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in way:
        held = held[step]
    if value is KeyError:
        del held[last]
    else:
        held[last] = value
    return made


def everywhere(events: Events, change: Callable[[Any], Any]) -> Events:
    """Return the events with every object in them changed."""

    def walk(value: Any) -> Any:
        if listed(value):
            return [walk(one) for one in listed(value)]
        held = plain(value)
        return value if held is None else change({key: walk(one) for key, one in held.items()})

    return [walk(event) for event in events]


def with_status(type: str, status: Any) -> Callable[[Any], Any]:
    return lambda held: {**held, "status": status} if held.get("type") == type and "id" in held else held


@dataclass(frozen=True)
class Broken:
    """A stream, and what breaks in it. `given` are further arguments of `check`."""

    code: str
    what: str
    events: Events
    also: tuple[str, ...] = ()
    given: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(sorted((self.code, *self.also)))


TEXT = stream(message("Hel", "lo"))
LOGS = stream(message("Hel", "lo", logs=True))
LINKS = stream(message("Hel", "lo", links=("a", "b")))
TWO = stream(message("a"), message("b"))
CALLS = stream(call("f", '{"a"', ":1}"), call("g", "{}"))
CUSTOM = stream(custom_call("sing", "la", "la"))
THOUGHT = stream(reasoning(("hm", "m"), ("so",)), message("Hi"))
RAW = stream(reasoning(raw=("hm", "m")), message("Hi"))
SEARCH = stream(searched("tunes"), message("Hi"))
CUT = stream(message("a"), message("b", status="incomplete"), ending="incomplete")
FAILED = stream(message("a", status="incomplete"), ending="failed")

SAYS_HELLO = (chunk(content="Hel"), chunk(content="lo"))
STOPS = (*SAYS_HELLO, chunk("stop"), usage_chunk())
HELLO: dict[str, Any] = {"chunks": STOPS}
CALLING = (
    fragment(0, "call_0", "f", '{"a"'),
    fragment(0, arguments=":1}"),
    fragment(1, "call_1", "g", "{}"),
    chunk("tool_calls"),
    usage_chunk(),
)
THINKING = (
    chunk(reasoning_content="hmm"),
    chunk(reasoning_content="so"),
    chunk(content="Hi"),
    chunk("stop"),
    usage_chunk(),
)


def _second_at_0(held: Any) -> Any:
    return {**held, "output_index": 0} if held.get("output_index") == 1 else held


def _one_id(held: Any) -> Any:
    return {key: "msg_0" if key in ("id", "item_id") and value == "msg_1" else value for key, value in held.items()}


def _crossed(events: Events) -> Events:
    at = found(events, "arguments.delta", 2)
    return [{**event, "item_id": "fc_0"} if n == at else event for n, event in enumerate(events)]


def _as_text(held: Any) -> Any:
    type = str(held.get("type"))
    if type == "reasoning_text":
        return text_part(held["text"])
    more: Event = {"logprobs": []} if "reasoning_text" in type else {}
    return {**held, **more, "type": type.replace("reasoning_text", "output_text")} if "type" in held else held


_SWAPPED = [message("Hi"), reasoning(("hmm",), ("so",))]

BROKEN = [
    Broken("STR001", "no created", without(TEXT, "response.created")),
    Broken("STR001", "no in_progress", without(TEXT, "response.in_progress")),
    Broken("STR001", "in_progress twice", twice(TEXT, "response.in_progress")),
    Broken("STR001", "in_progress before created", moved(TEXT, "response.in_progress", "response.created")),
    Broken("STR001", "in_progress after the first item", moved(TEXT, "response.in_progress", "content_part.added")),
    Broken("STR001", "text after the end", numbered([*TEXT, TEXT[4]]), also=("DLT001", "ITM004")),
    Broken("STR001", "completed after an error", between(TEXT, "response.completed", FAILED[-2])),
    Broken("STR002", "another id at the end", changed(TEXT, "response.completed", "response.id", "resp_2")),
    Broken("STR003", "no end", TEXT[:-1]),
    Broken("STR003", "two ends", twice(TEXT, "response.completed")),
    Broken("STR003", "nothing at all", []),
    Broken("STR004", "usage in the head", changed(TEXT, "response.created", "response.usage", USAGE)),
    Broken("STR005", "the head changes", changed(TEXT, "response.in_progress", "response.instructions", "Hum.")),
    Broken("STR006", "another model at the end", changed(TEXT, "response.completed", "response.model", "m-2")),
    Broken("STR007", "the echo changes", changed(TEXT, "response.completed", "response.top_p", 0.5)),
    Broken("STR008", "not what was asked", TEXT, given={"request": {"model": "m-1", "instructions": "Hum."}}),
    Broken(
        "SEQ001", "a number left out", [*TEXT[:3], *({**one, "sequence_number": 9} for one in TEXT[3:4]), *TEXT[4:]]
    ),
    Broken("SEQ001", "always 0", [{**event, "sequence_number": 0} for event in TEXT]),
    Broken("SEQ001", "resumed elsewhere", TEXT[4:], given={"starting_after": 2}),
    Broken("ITM001", "two items at one index", everywhere(TWO, _second_at_0)),
    Broken("ITM002", "one id for two items", everywhere(TWO, _one_id)),
    Broken(
        "ITM002",
        "one call_id for two calls",
        everywhere(CALLS, lambda held: {**held, "call_id": "call_0"} if "call_id" in held else held),
    ),
    Broken("ITM003", "announced twice", twice(TEXT, "output_item.added")),
    Broken("ITM003", "done twice", twice(TEXT, "output_item.done")),
    Broken("ITM004", "not announced", without(TEXT, "output_item.added")),
    Broken("ITM004", "announced late", moved(TEXT, "output_item.added", "output_text.delta")),
    Broken("ITM004", "a delta of another item", changed(TEXT, "output_text.delta", "item_id", "msg_9")),
    Broken("ITM005", "another id when done", changed(TEXT, "output_item.done", "item.id", "msg_9")),
    Broken("ITM006", "never done", without(TEXT, "output_item.done")),
    Broken("ITM006", "done after the end", moved(TEXT, "response.completed", "output_item.done")),
    Broken("ITM007", "the next begins before", moved(TWO, "output_item.added", "output_item.done", 1)),
    Broken(
        "ITM008",
        "something between the closing events",
        between(TEXT, "content_part.done", {"type": "response.humming"}),
        also=("SCH002",),
    ),
    Broken("ITM009", "announced with content", changed(TEXT, "output_item.added", "item.content", [text_part("")])),
    Broken("ITM010", "done in progress", everywhere(TEXT, with_status("message", "in_progress"))),
    Broken("ITM011", "searching before in_progress", moved(SEARCH, "call.searching", "call.in_progress")),
    Broken("PRT001", "no part added", without(TEXT, "content_part.added")),
    Broken("PRT001", "no text done", without(TEXT, "output_text.done")),
    Broken("PRT001", "no part done", without(TEXT, "content_part.done")),
    Broken("PRT001", "part done after its item", moved(TEXT, "output_item.done", "content_part.done")),
    Broken("PRT001", "summary part added twice", twice(THOUGHT, "summary_part.added")),
    Broken(
        "PRT002",
        "content_index goes on counting",
        everywhere(
            TWO, lambda held: {**held, "content_index": held.get("output_index")} if "content_index" in held else held
        ),
    ),
    Broken("PRT003", "the second part begins early", moved(THOUGHT, "summary_part.added", "summary_part.done", 1)),
    Broken("PRT004", "a part added with text", changed(TEXT, "content_part.added", "part.text", "Hel")),
    Broken("PRT005", "an annotation is not streamed", without(LINKS, "annotation.added")),
    Broken(
        "PRT005",
        "annotations when done only",
        changed(TEXT, "content_part.done", "part.annotations", [{"type": "x"}]),
        also=("SCH001",),
    ),
    Broken(
        "PRT006",
        "another type when done",
        changed(TEXT, "content_part.done", "part", {"type": "refusal", "refusal": "Hello"}),
    ),
    Broken("DLT001", "a delta is lost", without(TEXT, "output_text.delta")),
    Broken("DLT001", "a delta comes twice", twice(THOUGHT, "summary_text.delta")),
    Broken(
        "DLT001",
        "refusal done with another text",
        changed(stream(message(refusal=("n", "o"))), "refusal.done", "refusal", "yes"),
    ),
    Broken("DLT002", "an empty delta", between(TEXT, "output_text.done", {**TEXT[4], "delta": ""})),
    Broken("DLT003", "part done with another text", changed(TEXT, "content_part.done", "part.text", "Halo")),
    Broken("DLT003", "item done without its part", changed(THOUGHT, "output_item.done", "item.summary", [])),
    Broken("DLT004", "logprobs are lost", changed(LOGS, "output_text.delta", "logprobs", [])),
    Broken("CAL001", "no arguments done", without(CALLS, "arguments.done")),
    Broken("CAL001", "a delta of arguments is lost", without(CALLS, "arguments.delta")),
    Broken("CAL001", "no input done", without(CUSTOM, "input.done")),
    Broken("CAL001", "done with other arguments", changed(CALLS, "output_item.done", "item.arguments", "{}")),
    Broken("CAL002", "no name when announced", changed(CALLS, "output_item.added", "item.name", ""), also=("ITM005",)),
    Broken("CAL003", "a fragment names two calls", _crossed(CALLS)),
    Broken("CAL003", "two calls in one", stream(call("f", '{"a":1}', '{"b":2}'))),
    Broken("CAL004", "arguments are cut", stream(call("f", '{"a":'))),
    Broken("CAL005", "no arguments at all", stream(call("f"))),
    Broken(
        "CAL006",
        "input of a function call",
        between(
            CALLS,
            "arguments.delta",
            {"type": "response.custom_tool_call_input.delta", "item_id": "fc_0", "output_index": 0, "delta": "la"},
        ),
        also=("CAL001",),
    ),
    Broken(
        "RSN001",
        "text in a reasoning item",
        everywhere(RAW, _as_text),
        also=("SCH001",),
    ),
    Broken("RSN002", "reasoning after the answer", stream(*_SWAPPED), given={"chunks": THINKING}),
    Broken("RSN002", "reasoning last", stream(*_SWAPPED)),
    Broken("RSN003", "reasoning with a status", everywhere(THOUGHT, with_status("reasoning", "completed"))),
    Broken("RSN004", "summary is null", changed(RAW, "output_item.added", "item.summary", None)),
    Broken("END001", "length ends in completed", TEXT, given={"chunks": (*SAYS_HELLO, chunk("length"), usage_chunk())}),
    Broken(
        "END002",
        "the filter ends in length",
        CUT,
        given={"chunks": (chunk(content="ab"), chunk("content_filter"), usage_chunk())},
        also=("FTH005",),
    ),
    Broken(
        "END003",
        "an error ends in completed",
        TEXT,
        given={"chunks": (*SAYS_HELLO, usage_chunk(), {"error": {"message": "bad"}})},
    ),
    Broken("END003", "an error without a code", changed(FAILED, "response.failed", "response.error.code", "")),
    Broken("END004", "incomplete in a completed response", stream(message("a", status="incomplete"))),
    Broken(
        "END004",
        "completed after incomplete",
        stream(message("a", status="incomplete"), message("b"), ending="incomplete"),
    ),
    Broken(
        "END005",
        "the output lacks an item",
        changed(TWO, "response.completed", "response.output", TWO[-1]["response"]["output"][:1]),
    ),
    Broken(
        "END005",
        "the output has another text",
        changed(TEXT, "response.completed", "response.output.0.content.0.text", "Halo"),
    ),
    Broken("END006", "incomplete for no reason", stream(ending="incomplete", reason="")),
    Broken("END007", "failed without an error", without(FAILED, "error")),
    Broken("END007", "failed by another error", changed(FAILED, "response.failed", "response.error.message", "gone")),
    Broken("END008", "completed has failed", changed(TEXT, "response.completed", "response.status", "failed")),
    Broken("END009", "a cut stream ends in completed", TEXT, given={"chunks": (*SAYS_HELLO,)}, also=("USE004",)),
    Broken("END010", "the error is nested only", changed(FAILED, "error", "message", KeyError)),
    Broken("USE001", "usage is lost", stream(message("Hel", "lo"), usage=None), given=HELLO),
    Broken("USE001", "other counts", TEXT, given={"chunks": (*SAYS_HELLO, chunk("stop"), usage_chunk(7, 6))}),
    Broken("USE002", "the total is wrong", stream(message("a"), usage={**USAGE, "total_tokens": 13})),
    Broken("USE003", "no details", stream(message("a"), usage={**USAGE, "input_tokens_details": None})),
    Broken("USE004", "usage is made up", TEXT, given={"chunks": (*SAYS_HELLO, chunk("stop"))}),
    Broken("SCH001", "an index is a string", changed(TEXT, "output_text.delta", "content_index", "0")),
    Broken("SCH001", "no object", [*TEXT[:4], "delta", *TEXT[4:]]),  # type: ignore[list-item]
    Broken("SCH001", "no type", changed(TEXT, "output_text.delta", "type", None), also=("DLT001",)),
    Broken("SCH002", "a type that nobody knows", between(TEXT, "output_item.added", {"type": "response.humming"})),
    Broken(
        "SCH003", "a key is missing", everywhere(TEXT, lambda held: {k: v for k, v in held.items() if k != "store"})
    ),
    Broken("FTH001", "text is lost", stream(message("Hel")), given=HELLO),
    Broken("FTH001", "text comes twice", stream(message("Hel", "lo", "Hel", "lo")), given=HELLO),
    Broken("FTH002", "a call is lost", stream(call("f", '{"a":1}')), given={"chunks": CALLING}),
    Broken(
        "FTH002", "arguments of another call", stream(call("f", "{}"), call("g", '{"a":1}')), given={"chunks": CALLING}
    ),
    Broken("FTH002", "another name", stream(call("f", '{"a":1}'), call("h", "{}")), given={"chunks": CALLING}),
    Broken("FTH003", "reasoning is lost", stream(message("Hi")), given={"chunks": THINKING}),
    Broken("FTH004", "text is invented", stream(message("Hel", "lo", "!")), given=HELLO),
    Broken("FTH004", "a call is invented", stream(message("Hello"), call("f", "{}")), given=HELLO),
    Broken("FTH005", "a message for each chunk", stream(message("Hel"), message("lo")), given=HELLO),
]
