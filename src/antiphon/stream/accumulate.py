"""`accumulate`: the way back. Responses events in, one `Response` out; also where the stream was cut.

Works on any native event stream, not only on ours: items may overlap, `.done` events may be missing, ids may change
from event to event (github-copilot does so: only `output_index` ties its events together), and the terminal response
may leave out the items (the newer chatgpt-codex backend sends `output: []`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, overload, runtime_checkable

from antiphon.errors import BadInput

if TYPE_CHECKING:
    from openai.types.responses import Response, ResponseStreamEvent
    from pydantic import BaseModel

Json: TypeAlias = dict[str, Any]
T = TypeVar("T")

HEADS = ("response.created", "response.queued", "response.in_progress")
TERMINALS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(frozen=True, slots=True)
class Place:
    """Where in an item a text event writes: `key` of the part at `index` of `parts`, or of the item itself."""

    key: str
    parts: str = ""
    index: str = ""
    part_type: str = ""


# "<this>.delta" adds to the text there, "<this>.done" has all of it under the same key.
TEXTS: dict[str, Place] = {
    "response.output_text": Place("text", "content", "content_index", "output_text"),
    "response.refusal": Place("refusal", "content", "content_index", "refusal"),
    "response.reasoning_text": Place("text", "content", "content_index", "reasoning_text"),
    "response.reasoning_summary_text": Place("text", "summary", "summary_index", "summary_text"),
    "response.function_call_arguments": Place("arguments"),
    "response.custom_tool_call_input": Place("input"),
    "response.mcp_call_arguments": Place("arguments"),
    "response.code_interpreter_call_code": Place("code"),
}
# "<this>.added" and "<this>.done" have a whole part: list in the item -> key of its index. `reasoning_part` is
# bedrock-mantle's name for the content part of a reasoning item.
PARTS: dict[str, tuple[str, str]] = {
    "response.content_part": ("content", "content_index"),
    "response.reasoning_part": ("content", "content_index"),
    "response.reasoning_summary_part": ("summary", "summary_index"),
}


@runtime_checkable
class ModelObject(Protocol):
    """What is asked of an openai-python object, so that neither openai nor pydantic is imported for dicts."""

    @property
    def model_extra(self) -> Json | None: ...

    def to_dict(self, *, mode: Literal["json", "python"], warnings: bool) -> dict[str, object]: ...


def is_json(value: object) -> TypeGuard[Json]:
    """Return whether `value` is a JSON object."""
    return isinstance(value, dict)


def fields_of(value: object) -> Json:
    """Return the fields of an event or a response, whichever style it has; what is inside them keeps its style.

    Raises BadInput for what has none.
    """
    if is_json(value):
        return value
    if isinstance(value, ModelObject):
        return {**vars(value), **(value.model_extra or {})}
    raise BadInput(f"an event is a dict or an openai object, and here is {value!r:.80}")


def plain(value: Any) -> Any:
    """Return `value` as dicts and lists, if it is a model object."""
    return value.to_dict(mode="json", warnings=False) if isinstance(value, ModelObject) else value


@dataclass(slots=True)
class _Part:
    """A part of an item, or an item's own text, as far as it has come."""

    value: Json
    key: str = ""
    pieces: list[str] = field(default_factory=list[str])  # joined once, in `close`
    annotations: list[Any] = field(default_factory=list[Any])
    logprobs: list[Any] = field(default_factory=list[Any])

    def replace(self, value: Json) -> None:
        """Take the part as its done event has it. There `logprobs` are empty also where some came: they are kept."""
        self.value, self.pieces = value, []

    def close(self) -> Json:
        value = dict(self.value)
        if self.pieces:
            value[self.key] = "".join(self.pieces)
        for name, values in (("annotations", self.annotations), ("logprobs", self.logprobs)):
            if values and not value.get(name):
                value[name] = list(values)
        return value


@dataclass(slots=True)
class _Item:
    """An item, as announced or as done, and what came between."""

    own: _Part
    parts: dict[tuple[str, int], _Part] = field(default_factory=dict[tuple[str, int], _Part])

    def part(self, parts: str, index: int, part_type: str) -> _Part:
        """Return the part at `index`, which is made if it was not announced."""
        if (parts, index) not in self.parts:
            self.parts[parts, index] = _Part({"type": part_type})
        return self.parts[parts, index]

    def replace(self, value: Json) -> None:
        """Take the item as its done event has it."""
        self.own, self.parts = _Part(value), {}

    def close(self) -> Json:
        value = self.own.close()
        for name in {parts for parts, _ in self.parts}:
            indexes = sorted(index for parts, index in self.parts if parts == name)
            value[name] = [self.parts[name, index].close() for index in indexes]
        return value


class Accumulator:
    """Events in, in order; `response()` at any time. Time and memory grow with the text alone."""

    def __init__(self) -> None:
        self._style: type[Response] | None = None  # what `response()` gives, where events are model objects
        self._created = False
        self._count = 0
        self._first = ""
        self._head: Any = None  # the latest snapshot
        self._terminal = False  # it is the final one
        self._error: Json | None = None
        self._items: dict[int, _Item] = {}

    def feed(self, event: object) -> None:
        """Take the next event. Raises BadInput where it cannot be read, or is about an item that was not announced."""
        fields = fields_of(event)
        if not isinstance(event, dict) and self._style is None:
            self._style = _response_class()
        kind = fields.get("type")
        if not isinstance(kind, str):
            raise BadInput(f"event {self._count} has no `type`: {event!r:.80}")
        self._first = self._first or kind
        self._take(kind, fields)
        self._count += 1

    def response(self) -> Any:
        """Return the response so far, in the style of the events: the terminal one where it came.

        Before it, `status` is as the latest snapshot says (`in_progress`), but `failed` after an `error` event.
        Raises BadInput where there was no `response.created`.
        """
        if not self._created:
            came = f"{self._count} events, the first is {self._first}" if self._count else "no events"
            raise BadInput(f"a stream begins with response.created, and none came: {came}")
        output = [self._items[index].close() for index in sorted(self._items)]
        if self._terminal and not (output and not fields_of(self._head).get("output")):
            return self._head
        response = {**plain(self._head), "output": output}
        if self._error is not None and not self._terminal:
            response |= {"status": "failed", "error": self._error}
        return self._style.construct(None, **response) if self._style else response

    def _take(self, kind: str, fields: Json) -> None:
        name, _, step = kind.rpartition(".")
        if kind in HEADS or kind in TERMINALS:
            self._created = self._created or kind == "response.created"
            self._head, self._terminal = fields.get("response"), kind in TERMINALS
        elif name == "response.output_item":
            self._take_item(step, fields)
        elif name in PARTS:
            self._take_part(PARTS[name], step, fields)
        elif name in TEXTS:
            self._take_text(TEXTS[name], step, fields)
        elif kind == "response.output_text.annotation.added":
            part = self._item(fields).part("content", self._get(fields, "content_index", int), "output_text")
            part.annotations.append(self._json(fields, "annotation"))
        elif kind == "error":
            self._error = _error(fields)

    def _take_item(self, step: str, fields: Json) -> None:
        value = self._json(fields, "item")
        item = self._items.setdefault(self._get(fields, "output_index", int), _Item(_Part(value)))
        if step == "done":
            item.replace(value)

    def _take_part(self, place: tuple[str, str], step: str, fields: Json) -> None:
        parts, index = place
        value = self._json(fields, "part")
        part = self._item(fields).part(parts, self._get(fields, index, int), "")
        if step == "done":
            part.replace(value)
        else:
            part.value = value

    def _take_text(self, place: Place, step: str, fields: Json) -> None:
        part = self._item(fields).own if not place.parts else self._part(place, fields)
        part.key = place.key
        if step == "delta":
            part.pieces.append(self._get(fields, "delta", str))
            part.logprobs += map(plain, fields.get("logprobs") or ())
        elif step == "done":
            part.pieces = [self._get(fields, place.key, str)]
            part.logprobs = [*map(plain, fields.get("logprobs") or ())] or part.logprobs

    def _part(self, place: Place, fields: Json) -> _Part:
        return self._item(fields).part(place.parts, self._get(fields, place.index, int), place.part_type)

    def _item(self, fields: Json) -> _Item:
        index = self._get(fields, "output_index", int)
        if index not in self._items:
            raise BadInput(f"event {self._count} ({fields['type']}) is about item {index}, which was not announced")
        return self._items[index]

    def _json(self, fields: Json, key: str) -> Json:
        value = plain(fields.get(key))
        if is_json(value):
            return value
        raise self._unfit(fields, key, "an object", value)

    def _get(self, fields: Json, key: str, kind: type[T]) -> T:
        value = fields.get(key)
        if isinstance(value, kind):
            return value
        raise self._unfit(fields, key, f"of type {kind.__name__}", value)

    def _unfit(self, fields: Json, key: str, allowed: str, value: object) -> BadInput:
        return BadInput(f"event {self._count} ({fields['type']}): `{key}` is {allowed}, and here is {value!r:.60}")


def _error(fields: Json) -> Json:
    """Return `response.error` for an `error` event, which is nested in all recordings and flat in the types."""
    nested = plain(fields.get("error"))
    source = nested if is_json(nested) else fields
    return {"code": source.get("code") or "server_error", "message": source.get("message") or ""}


def _response_class() -> type[Response]:
    from openai.types.responses import Response

    return Response


@overload
def accumulate(events: Iterable[Json]) -> Json: ...
@overload
def accumulate(events: Iterable[ResponseStreamEvent]) -> Response: ...
@overload
def accumulate(events: Iterable[BaseModel]) -> Response: ...
def accumulate(events: Iterable[Any]) -> Any:
    """Return the one response that `events` tell of: a dict for dicts, an openai `Response` for openai objects.

    It is the terminal event's response where that came, with the items of the stream where it has none. Where the
    stream was cut, it is the response so far: items rebuilt from what was announced, the deltas and what was done, and
    `status` "in_progress" ("failed" if an `error` event was the last word). Raises BadInput where there is no
    `response.created`, where an event cannot be read, and where one is about an item that was not announced.
    """
    accumulator = Accumulator()
    for event in events:
        accumulator.feed(event)
    return accumulator.response()
