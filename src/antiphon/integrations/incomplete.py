"""An incomplete answer taken for a complete one, for runners that know no incomplete ones.

It is taken if it has a message and no call was cut: a cut call must never be run.
"""

from __future__ import annotations

from typing import Any

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseIncompleteEvent,
    ResponseOutputItemDoneEvent,
)

CALLS = frozenset({"function_call", "custom_tool_call"})


def may_be_taken(response: Response) -> bool:
    """Return whether an incomplete response may be taken for a complete one."""
    kinds = [item.type for item in response.output]
    return "message" in kinds and not any(item.type in CALLS and is_cut(item) for item in response.output)


def is_cut(item: Any) -> bool:
    """Return whether an item is incomplete."""
    return getattr(item, "status", None) == "incomplete"


def whole_item(item: Any) -> Any:
    """Return an item as a completed one."""
    return item.model_copy(update={"status": "completed"}) if is_cut(item) else item


def whole(response: Response) -> Response:
    """Return the response as a completed one. Why it is none is in `provider_data.incomplete_reason`."""
    details = response.incomplete_details
    extra: dict[str, Any] = response.model_extra or {}
    data: dict[str, Any] = {**(extra.get("provider_data") or {}), "incomplete_reason": details and details.reason}
    output = [whole_item(item) for item in response.output]
    return response.model_copy(
        update={"status": "completed", "output": output, "incomplete_details": None, "provider_data": data}
    )


class Taker:
    """Events in, events out: an incomplete stream that may be taken ends as a completed one.

    From the first incomplete item on, all that comes is held to the end, which is no wait: it is told at the finish.
    """

    def __init__(self) -> None:
        self._held: list[Any] = []

    def feed(self, event: Any) -> list[Any]:
        """Return what can be handed out, in order."""
        if isinstance(event, ResponseIncompleteEvent):
            return self._end(event)
        if isinstance(event, ResponseOutputItemDoneEvent) and is_cut(event.item):
            self._held.append(event)
            return []
        if self._held and event.type not in ("error", "response.failed"):
            self._held.append(event)
            return []
        held, self._held = self._held, []
        return [*held, event]

    def _end(self, event: ResponseIncompleteEvent) -> list[Any]:
        if not may_be_taken(event.response):
            return [*self._held, event]
        number = event.sequence_number
        last = ResponseCompletedEvent(response=whole(event.response), sequence_number=number, type="response.completed")
        return [*map(_whole_event, self._held), last]


def _whole_event(event: Any) -> Any:
    if not isinstance(event, ResponseOutputItemDoneEvent):
        return event
    return event.model_copy(update={"item": whole_item(event.item)})
