"""`NativeReader`: native events to facts. The only place that copes with what servers leave out or number wrongly.

What ties the events of an item together differs: llama.cpp gives no indexes, GitHub Copilot another id in each event.
So an id that is known counts first, then the index, then what was spoken of last. Sources: recordings wire/llamacpp,
responses/github-copilot, responses/openrouter (items overlap, and the last output has other ids).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from antiphon.stream.accumulate import HEADS, PARTS, TERMINALS, TEXTS, Place
from antiphon.stream.chunk import entries, fields, many, plain, text_of, whole_number, word
from antiphon.stream.endings import Terminal
from antiphon.stream.faults import SERVER_ERROR, Fault, fault_of, redact

from .facts import (
    ITSELF,
    Added,
    Annotated,
    Aside,
    Began,
    Broke,
    Done,
    Ended,
    Fact,
    Json,
    Odd,
    Said,
    Spot,
    Whole,
)

# what the item is -> the texts that it can hold
FAMILIES: dict[str, tuple[str, ...]] = {
    "message": ("response.output_text", "response.refusal"),
    "reasoning": ("response.reasoning_text", "response.reasoning_summary_text"),
    "function_call": ("response.function_call_arguments",),
    "custom_tool_call": ("response.custom_tool_call_input",),
}
FAMILY_OF = {text: family for family, texts in FAMILIES.items() for text in texts}
CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
# list of an item -> the type of a part -> the part that it is
PART_TYPES: dict[tuple[str, str], dict[str, str]] = {
    ("message", "content"): {"output_text": "output_text", "text": "output_text", "refusal": "refusal"},
    ("reasoning", "content"): {"reasoning_text": "reasoning_text", "text": "reasoning_text"},
    ("reasoning", "summary"): {"summary_text": "summary_text", "text": "summary_text"},
}
KINDS = {kind: family for (family, _), kinds in PART_TYPES.items() for kind in kinds.values()}
# the status of a response -> how it ends; any other word is as the event says
ENDS: dict[str, Terminal] = {
    "completed": "completed",
    "incomplete": "incomplete",
    "failed": "failed",
    "cancelled": "failed",
}
GRAVITY: tuple[Terminal, ...] = ("completed", "incomplete", "failed")  # vLLM sends `completed` of what is incomplete


@dataclass(slots=True, eq=False)
class _Known:
    """An item that was spoken of."""

    number: int
    family: str
    id: str = ""
    call_id: str = ""
    done: bool = False
    texts: list[str] = field(default_factory=list[str])
    last: dict[str, Spot] = field(default_factory=dict[str, Spot])  # list of parts -> the spot spoken of last


class NativeReader:
    """Events in, in order; facts out. Nothing that an event holds makes it raise."""

    def __init__(self) -> None:
        self._items: list[_Known] = []
        self._by_id: dict[str, _Known] = {}
        self._by_index: dict[int, _Known] = {}

    def feed(self, event: Any) -> Iterator[Fact]:
        """Yield what `event`, a mapping or an object, says."""
        held: Json = dict(plain(fields(event)))
        kind = word(held.get("type"))
        name, _, step = kind.rpartition(".")
        if kind in HEADS:
            yield Began(kind, _object(held.get("response")))  # type: ignore[arg-type]  # `in` does not narrow
        elif kind in TERMINALS:
            yield from self._end(step, _object(held.get("response")))
        elif name == "response.output_item" and step in ("added", "done"):
            yield from self._item(step, held)
        elif name in PARTS:
            yield from self._part(PARTS[name], step, held)
        elif name in FAMILY_OF and step in ("delta", "done"):
            yield from self._text(name, step, held)
        elif kind == "response.output_text.annotation.added":
            item = self._spoken_of("message", held)
            yield from self._new(item)
            yield Annotated(
                item.number, self._spot(item, TEXTS["response.output_text"], held), _json(held, "annotation")
            )
        elif kind == "error" or (not kind and held.get("error")):
            yield Broke(fault_in(held))
        else:
            yield self._aside(kind, held)

    # --- items -------------------------------------------------------------------------------------------------

    def _item(self, step: str, held: Json) -> Iterator[Fact]:
        value = _object(held.get("item"))
        family, id = word(value.get("type")) or "message", word(value.get("id"))
        known = self._announced(family, id, held, value) if step == "done" else self._twice(family, id)
        if known is None:
            known = self._remember(family, id, held)
            yield Added(known.number, {**value, "type": family})
        known.call_id = known.call_id or word(value.get("call_id"))
        if step == "done":
            yield from self._done(known, value)

    def _twice(self, family: str, id: str) -> _Known | None:
        """Return the item that is announced a second time."""
        known = self._by_id.get(id)
        return known if known is not None and known.family == family and not known.done else None

    def _announced(self, family: str, id: str, held: Json, value: Json) -> _Known | None:
        """Return the item that is done now; None where it was not announced."""
        known = self._by_id.get(id)
        if known is not None and known.family == family:
            return known
        call_id = word(value.get("call_id"))
        open_ = [one for one in self._items if one.family == family and not one.done]
        for one in open_:
            if call_id and one.call_id == call_id:
                return one
        index = whole_number(held.get("output_index"))
        known = self._by_index.get(-1 if index is None else index)
        if known in open_:
            return known
        return open_[0] if index is None and len(open_) == 1 and not (id and open_[0].id) else None

    def _done(self, known: _Known, value: Json) -> Iterator[Fact]:
        known.done = True
        yield Done(known.number, value)

    def _remember(self, family: str, id: str, held: Json) -> _Known:
        known = _Known(len(self._items), family, id)
        self._items.append(known)
        if id:
            self._by_id[id] = known
        index = whole_number(held.get("output_index"))
        if index is not None:
            self._by_index[index] = known
        return known

    def _spoken_of(self, family: str, held: Json) -> _Known:
        """Return the item that a text belongs to, which is made if none fits. `_new` announces it then."""
        index = whole_number(held.get("output_index"))
        id = word(held.get("item_id"))
        for known in (self._by_id.get(id), self._by_index.get(-1 if index is None else index)):
            if known is not None and known.family == family:
                return known
        if index is None:
            for known in reversed(self._items):
                if known.family == family and not known.done:
                    return known
        made = self._remember(family, id, held)
        made.last["new"] = ITSELF
        return made

    def _new(self, item: _Known) -> Iterator[Fact]:
        """Yield the announcement of an item that had none."""
        if item.last.pop("new", None) is not None:
            yield Added(item.number, {"type": item.family, **({"id": item.id} if item.id else {})})

    # --- what is in them ---------------------------------------------------------------------------------------

    def _part(self, place: tuple[str, str], step: str, held: Json) -> Iterator[Fact]:
        parts, index = place
        part = _object(held.get("part"))
        kind = word(part.get("type"))
        family = KINDS.get(kind)
        if family is None:
            return  # it comes again in the item
        item = self._spoken_of(family, held)
        yield from self._new(item)
        if step == "added":
            last = item.last.get(parts)
            given = whole_number(held.get(index))
            item.last[parts] = Spot(
                _list(parts), (0 if last is None else last.number + 1) if given is None else given, kind
            )
            return
        spot = self._spot(item, Place("", parts, index, kind), held)
        yield from whole_part(item.number, spot, part)

    def _text(self, name: str, step: str, held: Json) -> Iterator[Fact]:
        place = TEXTS[name]
        item = self._spoken_of(FAMILY_OF[name], held)
        yield from self._new(item)
        spot = self._spot(item, place, held) if place.parts else ITSELF
        text = _text(held.get("delta" if step == "delta" else place.key))
        logprobs = entries(held.get("logprobs"))
        if step == "done":
            yield Whole(item.number, spot, text)
        elif text:
            item.texts.append(text)
            yield Said(item.number, spot, text, logprobs)

    def _spot(self, item: _Known, place: Place, held: Json) -> Spot:
        """Return where in the item the event speaks: where it does not say, it is where the item spoke last."""
        last = item.last.get(place.parts)
        index = whole_number(held.get(place.index))
        if index is None:
            index = 0 if last is None else last.number + (last.kind != place.part_type)
        spot = Spot(_list(place.parts), index, place.part_type)
        item.last[place.parts] = spot
        return spot

    def _aside(self, kind: str, held: Json) -> Fact:
        index = whole_number(held.get("output_index"))
        item = self._by_id.get(word(held.get("item_id"))) or self._by_index.get(-1 if index is None else index)
        if item is None or not kind.startswith("response."):
            return Odd(f"event {kind or 'without a type'!r} is about no item of the response")
        return Aside(item.number, held)

    # --- the end -----------------------------------------------------------------------------------------------

    def _end(self, step: str, response: Json) -> Iterator[Fact]:
        output = [_object(value) for value in many(response.get("output"))]
        for value, known in self._matched(output):
            if known is None:
                family = word(value.get("type")) or "message"
                known = self._remember(family, word(value.get("id")), {})
                yield Added(known.number, {**value, "type": family})
            if not known.done:
                yield from self._done(known, value)
        said = ENDS.get(word(response.get("status")), "completed")
        yield Ended(GRAVITY[max(GRAVITY.index(ENDS[step]), GRAVITY.index(said))], response)

    def _matched(self, output: list[Json]) -> list[tuple[Json, _Known | None]]:
        """Return the items of the last output, each with the one that was spoken of: by its id, by what it says, or by
        its order among those of its kind."""
        left = list(self._items)
        found: dict[int, _Known] = {}

        def take(place: int, fitting: Iterable[_Known]) -> None:
            for known in fitting:
                if known in left:
                    left.remove(known)
                    found[place] = known
                    return

        for place, value in enumerate(output):
            take(place, (one for one in left if one.id and one.id == value.get("id")))
        for place, value in enumerate(output):
            if place not in found:
                take(place, (one for one in left if _says_the_same(one, value)))
        for place, value in enumerate(output):
            if place not in found:
                take(place, (one for one in left if one.family == (word(value.get("type")) or "message")))
        return [(value, found.get(place)) for place, value in enumerate(output)]


def whole_part(item: int, spot: Spot, part: Json) -> Iterator[Annotated | Whole]:
    """Yield what a part says as it is at its end: its annotations before the whole of its text."""
    text = _text(part.get("refusal" if spot.kind == "refusal" else "text"))
    for annotation in many(part.get("annotations")):
        yield Annotated(item, spot, _object(annotation))
    yield Whole(item, spot, text)


def parts_of(family: str, value: Json) -> Iterator[tuple[Spot, Json]]:
    """Yield the parts of an item, each with its place; those that are none of the canonical ones are left out."""
    for parts in ("summary", "content"):
        kinds = PART_TYPES.get((family, parts), {})
        for index, part in enumerate(many(value.get(parts))):
            held = _object(part) if not isinstance(part, str) else {"type": "text", "text": part}
            kind = kinds.get(word(held.get("type")))
            if kind is not None:
                yield Spot(_list(parts), index, kind), held


def fault_in(held: Json) -> Fault:
    """Return the error that an `error` event, or a failed response, tells of: its own code where it is a word."""
    nested = held.get("error")
    told = _object(nested) if isinstance(nested, dict) else held if nested is None else {"message": text_of(nested)}
    code = told.get("code")
    if isinstance(code, str) and code and not code.isdecimal():
        return Fault(code, redact(text_of(told.get("message")) or code))
    if not any(told.get(key) for key in ("code", "message", "status")):
        return Fault(SERVER_ERROR, "the server reported an error without saying which")
    return fault_of({key: value for key, value in told.items() if not (key == "type" and value == "error")})


def _says_the_same(known: _Known, value: Json) -> bool:
    if known.family != value.get("type"):
        return False
    if known.family in CALLS:
        return bool(known.call_id) and known.call_id == value.get("call_id")
    said = "".join(known.texts)
    return bool(said) and said == "".join(
        _text(part.get("text") or part.get("refusal")) for _, part in parts_of(known.family, value)
    )


def _list(parts: str) -> Any:
    return parts


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _json(held: Json, key: str) -> Json:
    return _object(held.get(key))


def _text(value: Any) -> str:
    """Return text as it is; a value that should have been JSON text, as that."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)
