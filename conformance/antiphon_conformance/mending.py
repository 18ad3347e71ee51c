"""Passes of `shrink` that know what an event stream is: an item, a part or a delta goes as a whole.

What depends on it follows: numbers close up, the terminal output loses the item, a whole text loses the delta. So what
is left is a stream that is good but for its fault, not a heap of events. Where a number or a text was wrong before, it
is left alone: it may be the fault.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from .events import FAMILIES, PLACES, TERMINALS
from .read import Json, listed, mapping, number, text
from .shrink import Breaks, Pass, Stream, minimise


def items(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out whole items."""
    return _grouped(stream, breaks, lambda event: _index(event))


def parts(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out whole parts of items."""
    return _grouped(stream, breaks, _part_of)


def deltas(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out deltas, and what they say from the whole texts."""
    return _grouped(stream, breaks, lambda event: _place(event), each=True)


def events(stream: Stream, breaks: Breaks) -> Stream:
    """Leave out any events."""
    kept = minimise(range(len(stream)), lambda some: breaks(mended(stream, some)))
    return mended(stream, kept)


EVENT_PASSES: tuple[Pass, ...] = (items, parts, deltas, events)


def _grouped(stream: Stream, breaks: Breaks, group: Callable[[Json], Hashable], *, each: bool = False) -> Stream:
    """Leave out the events of one group after another; where `each` is set, every event of a group by itself."""
    keys = [group(mapping(event)) for event in stream]
    atoms: list[Hashable] = list(
        dict.fromkeys((key, at if each else 0) for at, key in enumerate(keys) if key is not None)
    )

    def kept(some: Iterable[Hashable]) -> list[int]:
        wanted = set(some)
        return [at for at, key in enumerate(keys) if key is None or (key, at if each else 0) in wanted]

    return mended(stream, kept(minimise(atoms, lambda some: breaks(mended(stream, kept(some))))))


def mended(stream: Sequence[Any], kept: Sequence[int]) -> Stream:
    """Return the events at the places `kept`, with what depends on the others made to fit."""
    if len(kept) == len(stream):
        return list(stream)
    left = set(kept)
    whole = _texts(stream, range(len(stream)))
    rest = _texts(stream, kept)
    changed = {key: (text, rest.get(key, "")) for key, text in whole.items() if rest.get(key, "") != text}
    indexes = _closed_up(stream, kept)
    gone = _gone(stream, left)
    made = [_fitted(stream[at], changed, indexes, gone) for at in kept]
    first = _first_number(stream)
    return made if first is None else [{**mapping(event), "sequence_number": n} for n, event in enumerate(made, first)]


def _fitted(event: Any, changed: dict[Hashable, tuple[str, str]], indexes: dict[int, int], gone: set[int]) -> Any:
    if not isinstance(event, dict):
        return event
    fitted: Json = dict(event)  # pyright: ignore[reportUnknownArgumentType]
    index = number(fitted.get("output_index"))
    if text(fitted.get("type")) in TERMINALS:
        return {**fitted, "response": _fitted_response(mapping(fitted.get("response")), changed, gone)}
    if not _is_delta(fitted):
        texts = {old: new for (one, *_), (old, new) in _keyed(changed) if one == index and old}
        fitted = {key: _replaced(value, texts) for key, value in fitted.items()}
    if index in indexes:
        fitted["output_index"] = indexes[index]
    return fitted


def _fitted_response(response: Json, changed: dict[Hashable, tuple[str, str]], gone: set[int]) -> Json:
    output = listed(response.get("output"))
    fitted: list[Any] = []
    for index, item in enumerate(output):
        texts = {old: new for (one, *_), (old, new) in _keyed(changed) if one == index and old}
        if index not in gone:
            fitted.append(_replaced(item, texts))
    return {**response, "output": fitted} if output else response


def _keyed(changed: dict[Hashable, tuple[str, str]]) -> Iterable[tuple[Any, tuple[str, str]]]:
    return changed.items()


def _replaced(value: Any, texts: dict[str, str]) -> Any:
    """Return `value` with every text that is a key of `texts` as its value, however deep it is."""
    match value:
        case str():
            return texts.get(value, value)
        case dict():
            return {key: _replaced(one, texts) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list():
            return [_replaced(one, texts) for one in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value


def _texts(stream: Sequence[Any], places: Iterable[int]) -> dict[Hashable, str]:
    """Return what the deltas of each text add up to."""
    pieces: dict[Hashable, list[str]] = {}
    for at in places:
        event = mapping(stream[at])
        key = _place(event)
        if key is not None:
            pieces.setdefault(key, []).append(text(event.get("delta")))
    return {key: "".join(some) for key, some in pieces.items()}


def _place(event: Json) -> Hashable:
    """Return which text a delta belongs to, its item's index first; None for what is no delta."""
    if not _is_delta(event):
        return None
    family = PLACES[text(event.get("type"))].family
    return (_index(event), family, number(event.get(FAMILIES[family].numbered_by)))


def _is_delta(event: Json) -> bool:
    place = PLACES.get(text(event.get("type")))
    return place is not None and place.role == "delta" and place.family in FAMILIES


def _part_of(event: Json) -> Hashable:
    place = PLACES.get(text(event.get("type")))
    if place is None or place.about != "part" or not place.numbered_by:
        return None
    return (_index(event), place.numbered_by, number(event.get(place.numbered_by)))


def _index(event: Json) -> int | None:
    return number(event.get("output_index"))


def _gone(stream: Sequence[Any], left: set[int]) -> set[int]:
    """Return the indexes of items of which no event is left."""
    before = {_index(mapping(event)) for event in stream}
    after = {_index(mapping(event)) for at, event in enumerate(stream) if at in left}
    return {index for index in before - after if index is not None}


def _closed_up(stream: Sequence[Any], kept: Sequence[int]) -> dict[int, int]:
    """Return old index -> new index, where the old ones had no gap; else none changes."""
    before = sorted({index for event in stream if (index := _index(mapping(event))) is not None})
    after = sorted({index for at in kept if (index := _index(mapping(stream[at]))) is not None})
    return {index: n for n, index in enumerate(after)} if before == list(range(len(before))) else {}


def _first_number(stream: Sequence[Any]) -> int | None:
    """Return the first `sequence_number` of a stream that is numbered by 1, None of another."""
    numbers = [number(mapping(event).get("sequence_number")) for event in stream]
    first = numbers[0] if numbers else None
    return first if first is not None and numbers == list(range(first, first + len(numbers))) else None
