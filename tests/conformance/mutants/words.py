"""The words of the event stream, and the few events that a change adds."""

from __future__ import annotations

from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Events: TypeAlias = list[Event]

TERMINALS = ("response.completed", "response.incomplete", "response.failed")
# delta -> the event that ends the deltas, and the field of it that has them all
WHOLE = {
    "response.output_text.delta": ("response.output_text.done", "text"),
    "response.refusal.delta": ("response.refusal.done", "refusal"),
    "response.reasoning_text.delta": ("response.reasoning_text.done", "text"),
    "response.reasoning_summary_text.delta": ("response.reasoning_summary_text.done", "text"),
    "response.function_call_arguments.delta": ("response.function_call_arguments.done", "arguments"),
    "response.custom_tool_call_input.delta": ("response.custom_tool_call_input.done", "input"),
}
DELTAS = tuple(WHOLE)
DONES = tuple(done for done, _ in WHOLE.values())


ADDED, DONE = "response.output_item.added", "response.output_item.done"
PART_ADDED, PART_DONE = "response.content_part.added", "response.content_part.done"
SUMMARY_ADDED, SUMMARY_DONE = "response.reasoning_summary_part.added", "response.reasoning_summary_part.done"
SUMMARY_DELTA = "response.reasoning_summary_text.delta"
TEXT_DELTA, TEXT_DONE = "response.output_text.delta", "response.output_text.done"
CALL_DELTA, CALL_DONE = "response.function_call_arguments.delta", "response.function_call_arguments.done"
ANNOTATION = "response.output_text.annotation.added"
HEADS = ("response.created", "response.in_progress")
PARTED = tuple(delta for delta in DELTAS if "call" not in delta)
OWN = ("message", "reasoning", "function_call", "custom_tool_call")  # items that are no hosted tool's
CALLS = ("function_call", "custom_tool_call")
COMPLETED, INCOMPLETE, FAILED = TERMINALS
FOREIGN = "msg_of_another_response"


def short(types: str | tuple[str, ...]) -> str:
    """Return a name for one type, or the first and the number of several."""
    if isinstance(types, str):
        return types.removeprefix("response.").replace("reasoning_", "").replace("function_", "")
    return f"{short(types[0])} or {len(types) - 1} more"


def longer(old: str) -> str:
    """Return `old` with something at its end."""
    return old + "~"


def message(text: str, id: str = FOREIGN) -> Event:
    """Return a done message item."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def stray_delta(events: Events) -> Event:
    """Return a text delta about an item that was never announced."""
    where = {"item_id": FOREIGN, "output_index": len(terminal(events)["output"]), "content_index": 0}
    return {"type": TEXT_DELTA, **where, "delta": "stray", "logprobs": []}


def error(events: Events) -> Event:
    """Return an `error` event in both its forms."""
    fault = {"code": "server_error", "message": "a fault", "param": None}
    return {"type": "error", **fault, "error": {"type": "server_error", **fault}}


def unknown(events: Events) -> Event:
    """Return an event of a type that nobody has published."""
    return {"type": "response.humming.delta", "delta": "mmm"}


def terminal(events: Events) -> Event:
    """Return the response in the terminal event."""
    response: Event = events[-1]["response"]
    return response


def all_but_last(old: list[Event]) -> list[Event]:
    """Return `old` without the last."""
    return old[:-1]
