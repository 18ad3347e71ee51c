"""`unfold`: a whole response as the events that it would have been streamed in. The other way is `accumulate`.

Each text goes out as one delta. Items of types that have no deltas are announced and done as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .accumulate import Json, plain
from .chunk import many
from .emit import Emitter, EventStyle, make_emitter

ENDINGS = {"incomplete": "response.incomplete", "failed": "response.failed"}  # others are completed

# item type -> (the key that holds its text, the events of that text)
TEXT_ITEMS: dict[str, tuple[str, str]] = {
    "function_call": ("arguments", "response.function_call_arguments"),
    "custom_tool_call": ("input", "response.custom_tool_call_input"),
    "mcp_call": ("arguments", "response.mcp_call_arguments"),
}
# part type -> (list in the item, key of its index, key of its text, events of the part, events of its text)
TEXT_PARTS: dict[str, tuple[str, str, str, str, str]] = {
    "output_text": ("content", "content_index", "text", "response.content_part", "response.output_text"),
    "refusal": ("content", "content_index", "refusal", "response.content_part", "response.refusal"),
    "reasoning_text": ("content", "content_index", "text", "response.content_part", "response.reasoning_text"),
    "summary_text": (
        "summary",
        "summary_index",
        "text",
        "response.reasoning_summary_part",
        "response.reasoning_summary_text",
    ),
}
# what an item is announced without, since it comes later
LATE: Json = {"content": [], "summary": [], "arguments": "", "input": ""}
LATE_ENTIRELY = ("encrypted_content", "provider_data")


def unfold(response: Any, events: EventStyle = "openai") -> list[Any]:
    """Return the events of `response`, a `Response` or a mapping: created and in_progress, its items, its ending."""
    held: Json = dict(plain(response))
    emitter = make_emitter(events)
    head: Json = {
        **held,
        "status": "in_progress",
        "output": [],
        "usage": None,
        "error": None,
        "incomplete_details": None,
    }
    head |= {"completed_at": None} if "completed_at" in held else {}
    emitter.emit("response.created", response=head)
    emitter.emit("response.in_progress", response=head)
    for output_index, item in enumerate(many(held.get("output"))):
        _unfold_item(emitter, output_index, dict(plain(item)))
    if held.get("status") == "failed":
        fault: Mapping[str, Any] = held.get("error") or {}
        flat = {"code": fault.get("code"), "message": str(fault.get("message") or ""), "param": None}
        emitter.emit("error", **flat, error={"type": str(fault.get("code") or ""), **flat})
    emitter.emit(ENDINGS.get(str(held.get("status")), "response.completed"), response=held)
    return emitter.take()


def _unfold_item(emitter: Emitter, output_index: int, item: Json) -> None:
    announced = {key: LATE.get(key, value) for key, value in item.items() if key not in LATE_ENTIRELY}
    if announced.get("status") is not None:
        announced["status"] = "in_progress"
    emitter.emit("response.output_item.added", output_index=output_index, item=announced)
    place = {"item_id": item.get("id"), "output_index": output_index}
    for name in ("summary", "content"):
        for index, part in enumerate(many(item.get(name))):
            _unfold_part(emitter, place, name, index, dict(plain(part)))
    if (words := TEXT_ITEMS.get(str(item.get("type")))) is not None:
        key, event = words
        if item.get(key):
            emitter.emit(f"{event}.delta", **place, delta=item[key])
        emitter.emit(f"{event}.done", **place, **{key: item.get(key) or ""})
    emitter.emit("response.output_item.done", output_index=output_index, item=item)


def _unfold_part(emitter: Emitter, item: Json, name: str, index: int, part: Json) -> None:
    words = TEXT_PARTS.get(str(part.get("type")))
    if words is None or words[0] != name:
        return
    _, index_key, key, part_event, text_event = words
    place = {**item, index_key: index}
    text = str(part.get(key) or "")
    of_text = part.get("type") == "output_text"
    logprobs = {"logprobs": many(part.get("logprobs"))} if of_text else {}
    unsaid: Json = {"annotations": [], "logprobs": []} if of_text else {}
    emitter.emit(f"{part_event}.added", **place, part={**part, key: "", **unsaid})
    if text:
        emitter.emit(f"{text_event}.delta", **place, delta=text, **logprobs)
    for at, annotation in enumerate(many(part.get("annotations"))):
        emitter.emit(f"{text_event}.annotation.added", **place, annotation_index=at, annotation=plain(annotation))
    emitter.emit(f"{text_event}.done", **place, **{key: text}, **logprobs)
    emitter.emit(f"{part_event}.done", **place, part={**part, **({"logprobs": []} if of_text else {})})
