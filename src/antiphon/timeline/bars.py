"""`Timeline`: the items and parts of a stream as bars over its events, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon.stream.accumulate import PARTS, TERMINALS, TEXTS, Json, fields_of, is_json, plain

EXCERPT = 120  # characters of a text that are kept
PART_KINDS = {"content": "output_text", "summary": "summary_text"}  # of a part that was not announced


@dataclass(frozen=True, slots=True)
class Row:
    """A bar: an item (`part_index` is None), or a part of one. `first` and `last` count events from 0."""

    kind: str
    output_index: int
    part_index: int | None
    first: int
    last: int
    status: str
    label: str

    @property
    def place(self) -> str:
        """The item's index, or the item's and the part's."""
        return str(self.output_index) if self.part_index is None else f"{self.output_index}.{self.part_index}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How the response ended: its status, and why, where it says so."""

    status: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status}: {self.reason}" if self.reason else self.status


@dataclass(slots=True)
class _Bar:
    kind: str
    output_index: int
    part_index: int | None
    first: int
    last: int
    status: str = "in_progress"
    title: str = ""  # what a call calls
    text: str = ""  # the beginning
    length: int = 0

    def extend(self, text: str) -> None:
        self.text += text[: EXCERPT - len(self.text)]
        self.length += len(text)

    def close(self, status: str, text: str) -> None:
        self.status = status
        if not self.length:
            self.extend(text)

    def row(self) -> Row:
        more = "…" if self.length > len(self.text) else ""
        text = escaped(self.text) + more
        label = f"{escaped(self.title)}({text})" if self.title else text
        kind, status = escaped(self.kind), escaped(self.status)
        return Row(kind, self.output_index, self.part_index, self.first, self.last, status, label)


_Key: TypeAlias = tuple[int, str, int]  # output_index, list in the item ("" for the item itself), index in the list


class Timeline:
    """The picture of the events so far. It has one bar for each item and part, whatever the length of the stream."""

    def __init__(self, events: Iterable[object] = ()) -> None:
        self.events = 0
        self.response_id = ""
        self.model = ""
        self.ending: Ending | None = None
        self.warnings: list[str] = []
        self._bars: dict[_Key, _Bar] = {}
        for event in events:
            self.feed(event)

    @property
    def rows(self) -> tuple[Row, ...]:
        """The bars: items by their index, each followed by its parts in the order in which they came."""
        bars = sorted(self._bars.values(), key=lambda bar: (bar.output_index, bar.part_index is not None, bar.first))
        return tuple(bar.row() for bar in bars)

    def warn(self, message: str) -> None:
        """Add a warning, which is shown under the bars."""
        self.warnings.append(message)

    def feed(self, event: object) -> None:
        """Take the next event, a dict or an openai object. Raises BadInput for what is neither."""
        fields = fields_of(event)
        kind = _text(fields, "type")
        name, _, step = kind.rpartition(".")
        if is_json(response := plain(fields.get("response"))):
            self._take_response(kind, response)
        elif kind == "error":
            self.ending = Ending("failed", _fault(plain(fields.get("error")) or fields))
        elif name == "response.output_item":
            self._take_item(step, fields)
        elif name in PARTS:
            parts, index = PARTS[name]
            self._take_part(step, fields, parts, _index(fields, index))
        elif name in TEXTS:
            self._take_text(name, step, fields)
        elif "output_index" in fields:
            self._bar(_index(fields, "output_index"))
        self.events += 1

    def _take_response(self, kind: str, response: Json) -> None:
        self.response_id = _text(response, "id") or self.response_id
        self.model = _text(response, "model") or self.model
        if kind in TERMINALS:
            fault, details = response.get("error"), response.get("incomplete_details")
            reason = _fault(fault) if fault else escaped(_text(details, "reason")) if is_json(details) else ""
            self.ending = Ending(kind.removeprefix("response."), reason)

    def _take_item(self, step: str, fields: Json) -> None:
        item = plain(fields.get("item"))
        bar = self._bar(_index(fields, "output_index"))
        if not is_json(item):
            return
        bar.kind = _text(item, "type") or bar.kind
        bar.title = _text(item, "name") or bar.title
        if step == "done":
            bar.close(_text(item, "status") or "completed", _text(item, "arguments") or _text(item, "input"))

    def _take_part(self, step: str, fields: Json, parts: str, index: int) -> None:
        part = plain(fields.get("part"))
        bar = self._bar(_index(fields, "output_index"), parts, index)
        if not is_json(part):
            return
        bar.kind = _text(part, "type") or bar.kind
        if step == "done":
            bar.close("completed", _text(part, "text") or _text(part, "refusal"))

    def _take_text(self, name: str, step: str, fields: Json) -> None:
        place = TEXTS[name]
        index = _index(fields, place.index) if place.parts else 0
        bar = self._bar(_index(fields, "output_index"), place.parts, index, place.part_type)
        if step == "delta":
            bar.extend(_text(fields, "delta"))
        elif not bar.length:
            bar.extend(_text(fields, place.key))

    def _bar(self, output_index: int, parts: str = "", index: int = 0, kind: str = "") -> _Bar:
        """Return the bar at that place, which now goes up to this event; that of its item does too."""
        if parts:
            self._bar(output_index)
        key = (output_index, parts, index)
        if key not in self._bars:
            kind = kind or PART_KINDS.get(parts, "not announced")
            self._bars[key] = _Bar(kind, output_index, index if parts else None, self.events, self.events)
        self._bars[key].last = self.events
        return self._bars[key]


def _text(fields: Json, key: str) -> str:
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def _index(fields: Json, key: str) -> int:
    value = fields.get(key)
    return value if isinstance(value, int) else 0


def _fault(error: Any) -> str:
    """Return what an error object says, in one line."""
    if not is_json(error):
        return escaped(str(error))
    return escaped(": ".join(filter(None, (_text(error, "code"), _text(error, "message")))))


def escaped(text: str) -> str:
    """Return `text` with all that is not printable as escapes: it can neither move a cursor nor reorder a line."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


@dataclass(frozen=True, slots=True)
class Colour:
    """The colour of a kind: its name in a terminal, and in a page on a light and on a dark ground."""

    terminal: str
    light: str
    dark: str


GREY = Colour("bright_black", "#6e7781", "#8b949e")
# An item and its parts are of one colour.
COLOURS: dict[str, Colour] = {
    **dict.fromkeys(("message", "output_text"), Colour("green", "#1a7f37", "#3fb950")),
    "refusal": Colour("red", "#cf222e", "#f85149"),
    **dict.fromkeys(("reasoning", "summary_text", "reasoning_text"), Colour("magenta", "#8250df", "#a371f7")),
    "function_call": Colour("blue", "#0969da", "#58a6ff"),
    "custom_tool_call": Colour("cyan", "#1b7c83", "#39c5cf"),
}
# status -> its sign and colour in a terminal
SIGNS: dict[str, tuple[str, str]] = {
    "completed": ("✓", "green"),
    "incomplete": ("◐", "yellow"),
    "failed": ("✗", "red"),
}


def heading(timeline: Timeline) -> str:
    """Return what the stream is, in one line."""
    count = f"{timeline.events:,} event{'' if timeline.events == 1 else 's'}"
    return " · ".join(escaped(one) for one in (timeline.model, count, timeline.response_id) if one)


def ending(timeline: Timeline) -> str:
    """Return how the stream ended, in one line."""
    return str(timeline.ending) if timeline.ending else "not ended"


def describe(row: Row) -> str:
    """Return all that a row shows, in words."""
    what = f"item {row.place}" if row.part_index is None else f"part {row.place}"
    told = f": {row.label}" if row.label else ""
    return f"{what}, {row.kind}, events {row.first} to {row.last}, {row.status}{told}"
