"""How a stream is broken in one place: what a `Kind` of mutant is, and the general ways of making one.

A change is given its own copy of the stream and returns it, broken, or None where it does not apply. Afterwards
the events are numbered anew, so that a dropped or repeated event is the only fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, TypeAlias

from .words import ADDED, DONE, Event, Events, terminal

Change: TypeAlias = Callable[[Events, Random], Events | None]
Test: TypeAlias = Callable[[Event], bool]


class Gone:
    """As a new value: the field is taken away."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One way of breaking a stream, the areas of the rules that may say so, and how loudly they must."""

    name: str
    areas: tuple[str, ...]
    change: Change
    level: Literal["MUST", "SHOULD"] = "MUST"
    numbered: bool = True  # whether the events are numbered anew afterwards

    def mutate(self, events: Events, seed: int) -> Events | None:
        """Return `events` with one fault, or None where that cannot be made of them. `events` stay as they are."""
        mutant = self.change(deepcopy(events), Random(f"{self.name}/{seed}"))
        if mutant is not None and self.numbered:
            mutant = numbered(mutant, events[0].get("sequence_number"))
        return None if mutant == events else mutant


def kind(
    name: str, areas: str, change: Change, level: Literal["MUST", "SHOULD"] = "MUST", numbered: bool = True
) -> Kind:
    """Return a `Kind`; `areas` are written in one string."""
    return Kind(name, tuple(areas.split()), change, level, numbered)


def numbered(events: Events, first: Any) -> Events:
    """Return `events`, each a value of its own, with `sequence_number` from `first` by 1; None leaves them as they are."""
    if first is None:
        return events
    return [{**deepcopy(event), "sequence_number": first + n} for n, event in enumerate(events)]


# Looking into a stream


def always(event: Event) -> bool:
    """Return True."""
    return True


def places(events: Events, types: str | Iterable[str], where: Test = always) -> list[int]:
    """Return the places of the events of these types for which `where` holds."""
    wanted = {types} if isinstance(types, str) else set(types)
    return [at for at, event in enumerate(events) if event["type"] in wanted and where(event)]


def steps(path: str) -> list[str | int]:
    """Return the keys and places that `path` names: `response.output.-1.id`."""
    return [int(step) if step.lstrip("-").isdigit() else step for step in path.split(".")]


def has(path: str) -> Test:
    """Return a test whether an event has something at `path`."""

    def test(event: Any) -> bool:
        for step in steps(path):
            if not (step in event if isinstance(step, str) and isinstance(event, dict) else _listed(event, step)):
                return False
            event = event[step]
        return True

    return test


def _listed(value: Any, step: str | int) -> bool:
    return isinstance(value, list) and isinstance(step, int) and -len(value) <= step < len(value)


def put(event: Any, path: str, new: Any) -> None:
    """Put `new` at `path` in `event`: a value, what a function makes of the old value, or `Gone`."""
    *way, last = steps(path)
    for step in way:
        event = event[step]
    if new is Gone:
        del event[last]
    else:
        event[last] = new(event[last]) if callable(new) else deepcopy(new)


def replaced(value: Any, old: str, new: str) -> Any:
    """Return `value` with the string `old` replaced by `new` wherever it stands alone."""
    if isinstance(value, dict):
        return {key: replaced(one, old, new) for key, one in value.items()}
    if isinstance(value, list):
        return [replaced(one, old, new) for one in value]
    return new if value == old else value


def items(events: Events) -> list[list[int]]:
    """Return for each item the places of its events, in order of `output_index`."""
    by_index: dict[int, list[int]] = {}
    for at, event in enumerate(events):
        if "output_index" in event:
            by_index.setdefault(event["output_index"], []).append(at)
    return [by_index[index] for index in sorted(by_index)]


def parts(events: Events, key: str = "content_index") -> list[list[int]]:
    """Return for each part the places of its events, in order; `key` says which sort of part."""
    by_index: dict[tuple[int, int], list[int]] = {}
    for at, event in enumerate(events):
        if key in event:
            by_index.setdefault((event["output_index"], event[key]), []).append(at)
    return [by_index[index] for index in sorted(by_index)]


# Ways of breaking it


def drop(types: str | Iterable[str], where: Test = always) -> Change:
    """Return the change that leaves out one event."""

    def change(events: Events, rng: Random) -> Events | None:
        found = places(events, types, where)
        if not found:
            return None
        del events[rng.choice(found)]
        return events

    return change


def duplicate(types: str | Iterable[str]) -> Change:
    """Return the change that says one event twice."""

    def change(events: Events, rng: Random) -> Events | None:
        found = places(events, types)
        if not found:
            return None
        at = rng.choice(found)
        return events[: at + 1] + events[at:]

    return change


def swap(first: str | Iterable[str], second: str | Iterable[str], where: Test = always) -> Change:
    """Return the change that puts the second of two neighbours first; `where` tests the first."""

    def change(events: Events, rng: Random) -> Events | None:
        after = set(places(events, second))
        found = [at for at in places(events, first, where) if at + 1 in after]
        if not found:
            return None
        at = rng.choice(found)
        events[at], events[at + 1] = events[at + 1], events[at]
        return events

    return change


def insert(make: Callable[[Events], Event], at: int) -> Change:
    """Return the change that adds the event that `make` returns, at a place counted as in a slice."""

    def change(events: Events, rng: Random) -> Events | None:
        place = at if at >= 0 else len(events) + at + 1
        return [*events[:place], make(events), *events[place:]]

    return change


def edit(types: str | Iterable[str], path: str, new: Any, where: Test = always) -> Change:
    """Return the change that puts `new` at `path` in one event that has something there."""

    def change(events: Events, rng: Random) -> Events | None:
        found = [at for at in places(events, types, has(path)) if where(events[at])]
        if not found:
            return None
        put(events[rng.choice(found)], path, new)
        return events

    return change


def edit_done(path: str, new: Any, where: Test = always) -> Change:
    """Return the change that edits a done item, and the same item in the terminal output; `where` tests the item."""

    def change(events: Events, rng: Random) -> Events | None:
        found = [at for at in places(events, "response.output_item.done") if has(path)(events[at]["item"])]
        found = [at for at in found if where(events[at]["item"])]
        if not found:
            return None
        item = events[rng.choice(found)]["item"]
        before = deepcopy(item)
        copies = [at for at, one in enumerate(terminal(events)["output"]) if one["id"] == item["id"]]
        put(item, path, new)
        if item == before:
            return None
        for at in copies:
            terminal(events)["output"][at] = deepcopy(item)
        return events

    return change


def where_all(*tests: Test) -> Test:
    """Return a test that holds where all of `tests` do."""
    return lambda event: all(test(event) for test in tests)


def is_type(*types: str) -> Test:
    """Return a test for the type of an item or part."""
    return lambda one: one["type"] in types


def only(test: Callable[[Events], bool], change: Change) -> Change:
    """Return `change`, kept to the streams for which `test` holds."""
    return lambda events, rng: change(events, rng) if test(events) else None


def ends_with(*types: str) -> Any:
    """Return a test for the terminal event of a stream."""
    return lambda events: events[-1]["type"] in types


def edit_final(path: str, new: Any) -> Change:
    """Return the change that edits an item of the terminal output alone."""

    def change(events: Events, rng: Random) -> Events | None:
        found = [one for one in terminal(events)["output"] if has(path)(one)]
        if not found:
            return None
        put(rng.choice(found), path, new)
        return events

    return change


def everywhere(type: str, path: str, new: Any) -> Change:
    """Return the change that edits one item of `type` in added, done and the terminal output."""

    def change(events: Events, rng: Random) -> Events | None:
        found = [one["id"] for one in terminal(events)["output"] if one["type"] == type]
        if not found:
            return None
        id = rng.choice(found)
        said = [event["item"] for event in events if event["type"] in (ADDED, DONE)]
        for item in [*said, *terminal(events)["output"]]:
            if item["id"] == id and (has(path)(item) or new is not Gone):
                put(item, path, new)
        return events

    return change
