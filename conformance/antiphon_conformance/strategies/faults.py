"""Event streams with one fault each. A fault has a name, and the code of the rule that must find it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from hypothesis import assume
from hypothesis import strategies as st

from .events import Json, event_streams

Events: TypeAlias = list[Json]
# events of one's own, to change as one likes -> the broken ones, or None where they have nothing to break
Change: TypeAlias = Callable[[Events, Random], Events | None]


class Fault(NamedTuple):
    """A way to break a stream. `numbered`: whether the events are numbered anew afterwards."""

    code: str
    change: Change
    numbered: bool = True


@dataclass(frozen=True, slots=True)
class BrokenEvents:
    """An event stream with a fault: its name, and the code of the rule that finds it."""

    events: Events
    fault: str
    code: str


def _at(events: Events, *kinds: str) -> list[int]:
    return [n for n, event in enumerate(events) if event["type"].removeprefix("response.") in kinds]


def _without(*kinds: str) -> Change:
    """Return the change that leaves out one event of these types."""

    def change(events: Events, dice: Random) -> Events | None:
        found = _at(events, *kinds)
        if not found:
            return None
        del events[dice.choice(found)]
        return events

    return change


def _twice(*kinds: str) -> Change:
    """Return the change that says one event of these types again."""

    def change(events: Events, dice: Random) -> Events | None:
        found = _at(events, *kinds)
        if not found:
            return None
        at = dice.choice(found)
        return [*events[: at + 1], deepcopy(events[at]), *events[at + 1 :]]

    return change


def _set(path: str, value: Any, *kinds: str) -> Change:
    """Return the change that puts `value` at a path in one event of these types, where something else is there."""

    def change(events: Events, dice: Random) -> Events | None:
        *way, last = path.split(".")
        held = [_down(events[at], way) for at in _at(events, *kinds)]
        found = [one for one in held if one is not None and last in one and one[last] != value]
        if not found:
            return None
        dice.choice(found)[last] = value
        return events

    return change


def _in_item(kind: str, *, having: str, **fields: Any) -> Change:
    """Return the change that puts fields in an item that has the key `having`, in one event of this type."""

    def change(events: Events, dice: Random) -> Events | None:
        found = [events[at]["item"] for at in _at(events, kind) if having in events[at]["item"]]
        if not found:
            return None
        dice.choice(found).update(fields)
        return events

    return change


def _down(value: Json, way: list[str]) -> Json | None:
    """Return the object at a path, None where there is none."""
    for step in way:
        if type(value.get(step)) is not dict:
            return None
        value = value[step]
    return value


def _renumbered(events: Events, dice: Random) -> Events | None:
    events[dice.randrange(len(events))]["sequence_number"] += dice.choice((-1, 1, 7))
    return events


def _indexes_from_1(events: Events, dice: Random) -> Events | None:
    indexed = [event for event in events if "output_index" in event]
    for event in indexed:
        event["output_index"] += 1
    return events if indexed else None


def _one_id(events: Events, dice: Random) -> Events | None:
    """Give the second item the id of the first, everywhere."""
    ids = [events[at]["item"]["id"] for at in _at(events, "output_item.added")]
    if len(ids) < 2:
        return None
    for event in events:
        for held in (event, event.get("item"), *(event.get("response", {}).get("output", []))):
            for key in ("id", "item_id"):
                if held and held.get(key) == ids[1]:
                    held[key] = ids[0]
    return events


def _lost_delta(events: Events, dice: Random) -> Events | None:
    found = [at for at in range(len(events)) if events[at]["type"].endswith((".output_text.delta", ".refusal.delta"))]
    if not found:
        return None
    del events[dice.choice(found)]
    return events


def _open_at_the_end(events: Events, dice: Random) -> Events | None:
    """Move the last done event behind the terminal one."""
    done = _at(events, "output_item.done")
    if not done or done[-1] != len(events) - 2:
        return None
    return [*events[:-2], events[-1]]


def _swapped(first: str, second: str) -> Change:
    """Return the change that says two neighbours in the wrong order."""

    def change(events: Events, dice: Random) -> Events | None:
        found = [at for at in _at(events, first) if at + 1 in _at(events, second)]
        if not found:
            return None
        at = dice.choice(found)
        events[at], events[at + 1] = events[at + 1], events[at]
        return events

    return change


def _no_output(events: Events, dice: Random) -> Events | None:
    response = events[-1]["response"]
    if not response["output"]:
        return None
    response["output"] = []
    return events


def _total(events: Events, dice: Random) -> Events | None:
    usage = events[-1]["response"]["usage"]
    if usage is None:
        return None
    usage["total_tokens"] += 1
    return events


_ITEM = ("output_item.added",)
_DELTAS = ("output_text.delta", "refusal.delta", "reasoning_summary_text.delta")
_TERMINAL = ("completed", "incomplete")

# name -> the fault
FAULTS: Mapping[str, Fault] = MappingProxyType(
    {
        "no in_progress": Fault("STR001", _without("in_progress")),
        "created twice": Fault("STR001", _twice("created")),
        "another response id at the end": Fault("STR002", _set("response.id", "resp_2", *_TERMINAL)),
        "no terminal event": Fault("STR003", _without(*_TERMINAL)),
        "two terminal events": Fault("STR003", _twice(*_TERMINAL)),
        "another model at the end": Fault("STR006", _set("response.model", "m-2", *_TERMINAL)),
        "a wrong number": Fault("SEQ001", _renumbered, numbered=False),
        "indexes from 1": Fault("ITM001", _indexes_from_1),
        "one id for two items": Fault("ITM002", _one_id),
        "an item announced twice": Fault("ITM003", _twice(*_ITEM)),
        "an item done twice": Fault("ITM003", _twice("output_item.done")),
        "an item never done": Fault("ITM006", _open_at_the_end),
        "an added message that has content": Fault("ITM009", _set("item.content", [{"type": "output_text"}], *_ITEM)),
        "an added call that is completed": Fault("ITM010", _in_item(*_ITEM, having="call_id", status="completed")),
        "no part added": Fault("PRT001", _without("content_part.added", "reasoning_summary_part.added")),
        "no text done": Fault("PRT001", _without("output_text.done", "refusal.done", "reasoning_summary_text.done")),
        "no part done": Fault("PRT001", _without("content_part.done", "reasoning_summary_part.done")),
        "parts from 1": Fault("PRT002", _set("content_index", 1, "content_part.added")),
        "a delta lost": Fault("DLT001", _lost_delta),
        "a delta twice": Fault("DLT001", _twice(*_DELTAS)),
        "an empty delta": Fault("DLT002", _set("delta", "", *_DELTAS)),
        "another text in the part": Fault("DLT003", _set("part.text", "else", "content_part.done")),
        "no arguments done": Fault("CAL001", _without("function_call_arguments.done", "custom_tool_call_input.done")),
        "a call without a name": Fault("CAL002", _set("item.name", "", *_ITEM)),
        "a status of reasoning": Fault("RSN003", _in_item("output_item.done", having="summary", status="completed")),
        "an incomplete response that is completed": Fault("END008", _set("response.status", "completed", "incomplete")),
        "an empty output at the end": Fault("END005", _no_output),
        "a total that is none": Fault("USE002", _total),
        "text done after part done": Fault("PRT001", _swapped("output_text.done", "content_part.done")),
        "an event without a type": Fault("SCH001", _set("type", 7, *_DELTAS)),
    }
)


@st.composite
def broken_event_streams(
    draw: st.DrawFn, streams: st.SearchStrategy[Events] | None = None, *, faults: Collection[str] = tuple(FAULTS)
) -> BrokenEvents:
    """Draw an event stream with one of these faults (names of `FAULTS`); `streams` are good ones to break."""
    name = draw(st.sampled_from([name for name in FAULTS if name in faults]))
    events: Events = deepcopy(draw(event_streams() if streams is None else streams))
    fault = FAULTS[name]
    broken = fault.change(events, Random(draw(st.integers(0, 2**16))))
    assume(broken is not None)
    made = broken or []
    return BrokenEvents(
        [{**one, "sequence_number": n} for n, one in enumerate(made)] if fault.numbered else made, name, fault.code
    )
