"""The way back: what the chat side had to name or form otherwise, in the items and events of the answer.

`Restore` is the table of it, `Restorer` applies it to one stream of events. Only the events of calls that are to come
back otherwise are touched; of all others at most the `sequence_number` changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

from antiphon.stream.accumulate import TERMINALS

from .freeform import InputReader, input_of
from .names import Tool, ToolKind
from .read import Json
from .replay import FAMILY, sealed_for
from .styles import Style, response_fields, response_like, style_of

Item: TypeAlias = dict[str, Any]
Event: TypeAlias = dict[str, Any]

NOTHING: Mapping[str, Any] = MappingProxyType({})
# Events that carry a whole item, or the response; all others are touched only inside a call that comes back otherwise.
BEARERS = frozenset({"response.output_item.added", "response.output_item.done", *TERMINALS})
ARGUMENTS = "response.function_call_arguments"
INPUT = "response.custom_tool_call_input"


@dataclass(frozen=True, slots=True)
class Restore:
    """What is to be undone in the answer to one request.

    `tools`: chat name -> the tool that is meant, where a call of it comes back otherwise. `call_ids`: id on the chat
    side -> the client's. `family`: whose reasoning the answer holds; it is written into the `provider_data` of
    reasoning items and signed calls (and, with all that is signed or encrypted, into `encrypted_content`, which strict
    clients keep), so that it comes back whole and goes to no other family. "": it is not written.
    """

    tools: Mapping[str, Tool] = field(default_factory=lambda: NOTHING)
    call_ids: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    family: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be undone: the answer can be passed on as it is."""
        return not (self.tools or self.call_ids or self.family)

    def start(self) -> Restorer:
        """Return what restores the events of one answer."""
        return Restorer(self)

    def events(self, events: Iterable[Any]) -> Iterator[Any]:
        """Yield the events of one answer, restored, in the style in which they came."""
        restorer = self.start()
        for event in events:
            yield from restorer.feed(event)

    def response(self, response: Any) -> Any:
        """Return a response with its items restored, in the style in which it came: a dict, or an openai object."""
        if self.is_empty:
            return response
        held = response_fields(response)
        output = [self.item(item) for item in held.get("output") or ()]
        return response_like(response, {**held, "output": output})

    def item(self, item: Json) -> Item:
        """Return one item of an answer, whole, restored."""
        if item.get("type") == "reasoning":
            return self._with_family(item)
        if item.get("type") not in ("function_call", "custom_tool_call"):
            return dict(item)
        held = self._with_family(item) if item.get("provider_data") else dict(item)
        held["call_id"] = self.call_ids.get(str(held.get("call_id")), held.get("call_id"))
        tool = self.tools.get(str(held.get("name"))) if item.get("type") == "function_call" else None
        if tool is None:
            return held
        arguments = str(held.get("arguments") or "")
        if tool.kind == "function":
            return _named_call(held, tool)
        if tool.kind == "custom":
            return _custom_call(held, tool, input_of(arguments))
        return _own_call(held, tool, arguments) or held

    def _with_family(self, item: Json) -> Item:
        """Write whose it is into the item; what is signed or encrypted, for clients that keep one field alone, too."""
        if not self.family:
            return dict(item)
        data: Item = {**(item.get("provider_data") or NOTHING), FAMILY: self.family}
        sealed: Item = {}
        if item.get("encrypted_content") and data.get("reasoning_details"):
            sealed = {"encrypted_content": sealed_for(self.family, data["reasoning_details"])}
        return {**item, **sealed, "provider_data": data}


class Restorer:
    """Events of one answer in, restored events out, numbered anew. Dicts, openai objects or SSE bytes, one a time."""

    def __init__(self, restore: Restore) -> None:
        self._restore = restore
        self._shift = 0  # how many more events went out than came in
        self._open: dict[int, _Custom | _Own] = {}  # by output_index

    def feed(self, event: Any) -> list[Any]:
        """Return what `event` becomes, in order: nothing, itself, or several events."""
        if self._restore.is_empty:
            return [event]
        style = style_of(event)
        kind = style.kind(event)
        if kind not in BEARERS and not (self._open and kind.startswith(ARGUMENTS)):
            return [style.renumber(event, self._shift)] if self._shift else [event]
        held = style.read(event)
        return self._numbered(held["sequence_number"], self._become(kind, held), style)

    def _numbered(self, number: int, events: list[Event], style: Style) -> list[Any]:
        first = number + self._shift
        self._shift += len(events) - 1
        return [style.write({**event, "sequence_number": first + place}) for place, event in enumerate(events)]

    def _become(self, kind: str, event: Event) -> list[Event]:
        if kind in TERMINALS:
            return [{**event, "response": self._restore.response(event["response"])}]
        place = event["output_index"]
        if kind == "response.output_item.added":
            return self._begin(place, event)
        opened = self._open.get(place)
        if opened is None:
            return [{**event, "item": self._restore.item(event["item"])} if "item" in event else event]
        if kind == "response.output_item.done":
            del self._open[place]
            return opened.close(event, self._restore)
        return opened.extend(kind, event)

    def _begin(self, place: int, event: Event) -> list[Event]:
        item = event["item"]
        tool = self._restore.tools.get(item.get("name")) if item.get("type") == "function_call" else None
        if tool is None or tool.kind == "function":
            added = item if item.get("type") == "reasoning" else self._restore.item(item)
            return [{**event, "item": added}]
        opened = self._open[place] = _Custom() if tool.kind == "custom" else _Own()
        return opened.begin(event, self._restore)


class _Custom:
    """A call of a custom tool: its input streams, as its arguments do."""

    def __init__(self) -> None:
        self._reader = InputReader()
        self._pieces: list[str] = []

    def begin(self, event: Event, restore: Restore) -> list[Event]:
        return [{**event, "item": restore.item({**event["item"], "arguments": ""})}]

    def extend(self, kind: str, event: Event) -> list[Event]:
        """Return the delta of the input in a delta of the arguments; at their end, the last one and `.done`."""
        done = kind == f"{ARGUMENTS}.done"
        text = self._reader.finish() if done else self._reader.feed(event["delta"])
        self._pieces.append(text)
        place = {"item_id": _custom_id(event["item_id"]), "output_index": event["output_index"]}
        events: list[Event] = [{"type": f"{INPUT}.delta", **place, "delta": text}] if text else []
        if done:
            events.append({"type": f"{INPUT}.done", **place, "input": "".join(self._pieces)})
        return events

    def close(self, event: Event, restore: Restore) -> list[Event]:
        return [{**event, "item": {**restore.item(event["item"]), "input": "".join(self._pieces)}}]


class _Own:
    """A call of one of the API's own tools: it is known what it is once it is whole."""

    def __init__(self) -> None:
        self._kept: list[Event] = []

    def begin(self, event: Event, restore: Restore) -> list[Event]:
        self._kept.append(event)
        return []

    def extend(self, kind: str, event: Event) -> list[Event]:
        self._kept.append(event)
        return []

    def close(self, event: Event, restore: Restore) -> list[Event]:
        """Return the call as an item that is added and done; as a function call where it does not fit its tool."""
        item = restore.item(event["item"])
        if item["type"] == "function_call":
            return [*self._kept, {**event, "item": item}]
        added = {**self._kept[0], "item": {**item, "status": "in_progress"}}
        return [added, {**event, "item": item}]


# --- items ---------------------------------------------------------------------------------------------------------


def _named_call(held: Item, tool: Tool) -> Item:
    """Return a function call under the name, and in the namespace, that the client knows."""
    return {**held, "name": tool.name, **_namespace(tool)}


def _custom_call(held: Item, tool: Tool, text: str) -> Item:
    """Return a function call as a custom tool call with this input."""
    head = {"id": _custom_id(held.get("id")), "type": "custom_tool_call", "call_id": held["call_id"], "name": tool.name}
    return {**head, **_namespace(tool), "input": text, **_kept(held)}


def _custom_id(item_id: Any) -> Any:
    """Return the id of a custom tool call for that of a function call."""
    return f"ctc_{item_id.removeprefix('fc_')}" if isinstance(item_id, str) else item_id


def _own_call(held: Item, tool: Tool, arguments: str) -> Item | None:
    """Return a function call as a call of one of the API's own tools; None where the arguments do not fit it."""
    try:
        given: Any = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    prefix, make = OWN[tool.kind]
    fields = make(given) if isinstance(given, dict) else None  # pyright: ignore[reportUnknownArgumentType]
    if fields is None:
        return None
    item_id = held.get("id")
    made_id = f"{prefix}{item_id.removeprefix('fc_')}" if isinstance(item_id, str) else item_id
    head = {"id": made_id, "type": f"{tool.kind}_call", "call_id": held["call_id"]}
    return {**head, **fields, **_kept(held)}


def _kept(held: Item) -> Item:
    return {key: value for key, value in held.items() if key in ("status", "provider_data")}


def _namespace(tool: Tool) -> Item:
    return {"namespace": tool.namespace} if tool.namespace else {}


def _search(given: Json) -> Item:
    return {"execution": "client", "arguments": given}


def _local_shell(given: Json) -> Item | None:
    command = given.get("command")
    return {"action": {"type": "exec", "env": {}, **given}} if _are_words(command) else None


def _shell(given: Json) -> Item | None:
    return {"action": given} if _are_words(given.get("commands")) else None


def _patch(given: Json) -> Item | None:
    known = given.get("type") in ("create_file", "update_file", "delete_file") and isinstance(given.get("path"), str)
    return {"operation": given} if known else None


def _are_words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)  # pyright: ignore[reportUnknownVariableType]


# kind -> how ids of its calls begin, and what becomes of the arguments
OWN: dict[ToolKind, tuple[str, Callable[[Json], Item | None]]] = {
    "tool_search": ("tsc_", _search),
    "local_shell": ("lsh_", _local_shell),
    "shell": ("sh_", _shell),
    "apply_patch": ("apc_", _patch),
}
