"""The checker between two fires: valid streams written from the grammar alone, and all that can be wrong in them.

Nothing is found in a valid stream. Every field of every event is altered in turn, and so is the order of the events:
each alteration is found, but for what no rule speaks of, and by few findings. Where in a stream it is, and how many
events the checker looks at in one go, makes no difference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import antiphon_conformance.trace as trace
from antiphon_conformance import check

from .grammar_streams import Event, Events, stream

bounded = settings(max_examples=150, deadline=None)
SEEDS = (1, 5, 23, 26, 35)  # every kind of item and text, and of ending; short, for each of their fields is altered


def found(events: Any, **more: Any) -> list[str]:
    return [str(one) for one in check(events, **more).findings]


def numbered(events: Events) -> Events:
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


# Valid streams


@bounded
@given(st.integers(0, 2**32))
def test_nothing_is_found_in_a_valid_stream(seed: int) -> None:
    assert found(stream(seed)) == []


@bounded
@given(st.integers(0, 2**32), st.integers(0, 200))
def test_nothing_is_found_in_the_rest_of_a_valid_stream(seed: int, at: int) -> None:
    events = stream(seed)
    rest = events[1 + at % (len(events) - 1) :]
    assert found(rest, starting_after=rest[0]["sequence_number"] - 1) == []


# Every field

FREE = (  # what no rule speaks of: (event, field) where None is any event; what begins so is free too
    (None, "obfuscation"),
    ("error", "error.type"),  # OpenAI's own; `code` is what clients look at
    ("error", "error.param"),
    (None, "response.metadata"),  # {} for {} is no change
    (None, "response.created_at"),  # 1.0 for 1 is no change
    (None, "response.tools.#.parameters"),
    (None, "response.completed_at"),  # another time, or none, in a completed response
    (None, "response.usage"),  # other counts that add up, or none: only chunks can tell
    (None, "part.logprobs"),  # recordings have [] and nothing
    ("response.output_item.added", "item.content"),  # of reasoning: recordings have [] and nothing
    (None, "item.encrypted_content"),  # another in each event of recordings
    (None, "response.output.#.encrypted_content"),
    (None, "logprobs.#.bytes"),
    (None, "logprobs.#.top_logprobs.#.bytes"),
)


class Gone:
    """As a new value: the field is taken away."""


def altered(old: Any) -> Iterator[Any]:
    """Yield other values in the place of one."""
    yield Gone
    if old is not None:
        yield None
    match old:
        case bool():
            yield from (not old, "true")
        case int() | float():
            yield from (old + 1, str(old), -5)
        case str():
            yield from (f"{old}x", "" if old else "y", 7, [old])
        case list():
            members: list[Any] = old
            yield from ([] if members else [{}], {})
            if members:
                yield from (members[:-1], [*members, members[-1]])
        case dict():
            yield from ({}, "x", [old])
        case _:
            yield from ("z", 7, {})


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each field in a value."""
    held: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in held:
        yield (*path, key)
        yield from places(one, (*path, key))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a value that has another field there."""
    copy = dict(value) if isinstance(value, dict) else list(value)
    inner = new if len(path) == 1 else changed(copy[path[0]], path[1:], new)
    if inner is Gone:
        del copy[path[0]]
    else:
        copy[path[0]] = inner
    return copy


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def free(kind: str, path: tuple[Any, ...]) -> bool:
    name = ".".join("#" if isinstance(key, int) else key for key in path)
    return any(one in (None, kind) and name.startswith(begin) for one, begin in FREE)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_altered_field_is_found_and_by_few_findings(seed: int) -> None:
    events, silent, counts = stream(seed, items=3), list[str](), Counter[int]()
    for n, event in enumerate(events):
        for path in places(event):
            for new in () if free(event["type"], path) else altered(at(event, path)):
                mutant = [*events[:n], changed(event, path, new), *events[n + 1 :]]
                findings = found(mutant)
                counts[len(findings)] += 1
                if not findings and mutant != events:
                    silent.append(f"{n} {event['type']} {path}: {new!r}")
    assert silent == []
    assert sum(count for few, count in counts.items() if few <= 2) >= 0.98 * counts.total(), counts


# The order


def dropped(events: Events, n: int) -> Events:
    return [*events[:n], *events[n + 1 :]]


def doubled(events: Events, n: int) -> Events:
    return [*events[: n + 1], *events[n:]]


def swapped(events: Events, n: int) -> Events:
    return [*events[:n], *reversed(events[n : n + 2]), *events[n + 2 :]]


def cut(events: Events, n: int) -> Events:
    return events[:n]


def late(events: Events, n: int) -> Events:
    return [*events, events[n]]


def repeated_at_the_start(events: Events, n: int) -> Events:
    return [*events[:2], events[n], *events[2:]]


# a change of the order -> how many findings one cause is, at most, in 95 of 100 cases
ORDERS: dict[Callable[[Events, int], Events], int] = {
    dropped: 1, doubled: 1, swapped: 1, cut: 1, late: 3, repeated_at_the_start: 7,
}  # fmt: skip


def bare(event: Event) -> Event:
    return {key: one for key, one in event.items() if key not in ("sequence_number", "logprobs")}


def alike(events: Events, n: int) -> bool:
    """Whether an event and the next may stand the other way round: two equal deltas; an annotation is where it wants."""
    one, *other = (bare(event) for event in events[n : n + 2])
    kinds = {one["type"], *(event["type"] for event in other)}
    return (
        not other or one == other[0] or kinds == {"response.output_text.delta", "response.output_text.annotation.added"}
    )


@pytest.mark.parametrize("change", ORDERS, ids=lambda change: change.__name__)
def test_every_change_of_the_order_is_found_and_by_few_findings(change: Callable[[Events, int], Events]) -> None:
    silent, counts = list[str](), Counter[int]()
    for seed in range(12):
        events = stream(seed)
        for n in range(2 if change is repeated_at_the_start else 0, len(events)):
            if change is swapped and alike(events, n):
                continue
            findings = found(numbered(change(events, n)))
            counts[len(findings)] += 1
            silent += [] if findings else [f"{seed}: {n} {events[n]['type']}"]
    assert silent == []
    assert sum(count for few, count in counts.items() if few <= ORDERS[change]) >= 0.95 * counts.total(), counts


# One fault in all places


def everywhere(old: str, key: str, new: Any) -> Callable[[Event], Event]:
    """Return the change of a field in all objects whose `type` or `object` is `old`."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(one) for one in value]
        if not isinstance(value, dict):
            return value
        copy = {name: change(one) for name, one in value.items()}
        return {**copy, key: new} if key in copy and old in (copy.get("type"), copy.get("object")) else copy

    return change


def of_events(key: str, new: Any) -> Callable[[Event], Event]:
    return lambda event: {**event, key: new} if key in event else event


def nameless_items(event: Event) -> Event:
    for kind in ("message", "function_call", "reasoning"):
        event = everywhere(kind, "id", "")(event)
    return of_events("item_id", "")(event)


def of_usage(**counts: Any) -> Callable[[Event], Event]:
    """Return the change of counts in the usage."""

    def change(event: Event) -> Event:
        response = event.get("response", {})
        usage = response.get("usage")
        return event if not usage else {**event, "response": {**response, "usage": {**usage, **counts}}}

    return change


def of_error(**fields: Any) -> Callable[[Event], Event]:
    return lambda event: {**event, **fields} if event["type"] == "error" else event


def terminal(**fields: Any) -> Callable[[Event], Event]:
    """Return the change of fields in the terminal event's response."""

    def change(event: Event) -> Event:
        response = event.get("response", {})
        ended = response.get("status") in ("completed", "incomplete", "failed")
        return {**event, "response": {**response, **fields}} if ended else event

    return change


DETAILS = {"input_tokens_details": {"cached_tokens": 100}, "output_tokens_details": {"reasoning_tokens": 100}}
# what is wrong in all places -> how the stream ends, the change, and what is found
CONSTANT: dict[str, tuple[str, Callable[[Event], Event], list[str]]] = {
    "no response has an id": ("completed", everywhere("response", "id", ""), ["STR002"]),
    "no item has an id": ("completed", nameless_items, ["ITM002"]),
    "no event names its item": ("completed", of_events("item_id", ""), ["ITM004"] * 3),
    "the head is completed": ("completed", everywhere("response", "completed_at", 1767225609), ["STR004", "STR004"]),
    "completed before it was created": ("completed", terminal(completed_at=1), ["STR006"]),
    "incomplete, and completed at": ("incomplete", terminal(completed_at=1767225609), ["END008"]),
    "failed, and completed at": ("failed", terminal(completed_at=1767225609), ["END008"]),
    "a failed one with usage that is none": ("failed", terminal(usage={"input_tokens": 3}), ["USE003"]),
    "a failed one with a text as usage": ("failed", terminal(usage="much"), ["USE003"]),
    "counts below 0": ("completed", of_usage(input_tokens=-5, output_tokens=5, total_tokens=0), ["USE003", "USE002"]),
    "more cached than put in": ("completed", of_usage(**DETAILS, input_tokens=1, output_tokens=100, total_tokens=101), ["USE002"]),
    "the error says another code": ("failed", of_error(code="rate_limit"), ["END010"]),
    "the error says another message": ("failed", of_error(message="Fine."), ["END010"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTANT)
def test_a_fault_in_all_places_is_found(name: str) -> None:
    how, change, codes = CONSTANT[name]
    events = with_usage(how)
    mutant = [change(event) for event in events]
    report = check(mutant)
    assert [str(one) for one in check(events).findings] == []
    assert sorted(report.codes) == sorted({*codes})
    assert len(report.findings) <= len(codes)


def with_usage(how: str) -> Events:
    """Return a stream that has usage, and three items about which there are events."""
    for seed in range(1000):
        events = stream(seed, items=3, how=how)
        named = {event["item_id"] for event in events if "item_id" in event}
        kinds = {event["item"]["type"] for event in events if "item" in event}
        if events[-1]["response"]["usage"] and len(named) == 3 and "custom_tool_call" not in kinds:
            return events
    raise AssertionError("no seed gives such a stream")


# Long streams, and blocks


@pytest.mark.parametrize("size", [1, 3, 255, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_the_size_of_a_block_makes_no_difference(seed: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events, rng = stream(seed, items=(60, 300, 130)[seed]), Random(seed)
    edges = [256 * block + off for block in range(1, len(events) // 256) for off in (-2, -1, 0, 1)]
    mutants: list[Any] = [events]
    for n in rng.sample(edges, min(4, len(edges))):
        index = events[n].get("output_index", 0)
        odd: tuple[Any, ...] = (None, {**events[n], "output_index": index + 1}, {**events[n], "type": "response.odd"})
        mutants += [numbered(change(events, n)) for change in (dropped, doubled, swapped)]
        mutants += [[*events[:n], one, *events[n + 1 :]] for one in odd]
    expected = [found(mutant) for mutant in mutants]
    assert expected[0] == []
    monkeypatch.setattr(trace, "AT_ONCE", size)
    assert [found(mutant) for mutant in mutants] == expected


@pytest.mark.parametrize("off", [-2, -1, 0, 1, 2])
def test_a_fault_at_the_edge_of_a_block_is_the_same_as_elsewhere(off: int) -> None:
    """The same item, as the 3rd and as the one at the edge of the 256 that are judged together."""
    events = stream(1, items=3, how="completed")
    head, body, end = events[:2], events[2:-1], events[-1]
    first = [event for event in body if event["output_index"] == 0]

    def copied(n: int) -> Events:
        text = json.dumps(first).replace(first[0]["item"]["id"], f"msg_{n}")
        call_id = first[0]["item"].get("call_id")
        text = text.replace(call_id, f"call_{n}") if call_id else text
        return [{**event, "output_index": n} for event in json.loads(text)]

    def faulty(at: int) -> tuple[str, ...]:
        items = [copied(n) for n in range(300)]
        output = [item[-1]["item"] for item in items]
        items[at][-1] = {**items[at][-1], "item": {**items[at][-1]["item"], "status": "done"}}
        last = {**end, "response": {**end["response"], "output": output}}
        return check(numbered([*head, *(event for item in items for event in item), last])).codes

    assert faulty(256 + off) == faulty(2) != ()
