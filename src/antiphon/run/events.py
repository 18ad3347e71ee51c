"""What a run's stream is made of. The names of its items are those of their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .agent import Agent
from .items import ItemEventName, RunItem


@dataclass(slots=True)
class RawResponsesStreamEvent:
    """An event of the model's own stream, as it came."""

    data: Any
    type: Literal["raw_response_event"] = "raw_response_event"


@dataclass(slots=True)
class RunItemStreamEvent:
    """A new item of the run."""

    name: ItemEventName
    item: RunItem
    type: Literal["run_item_stream_event"] = "run_item_stream_event"


@dataclass(slots=True)
class AgentUpdatedStreamEvent:
    """Another agent has taken over, or the first one begins."""

    new_agent: Agent[Any]
    type: Literal["agent_updated_stream_event"] = "agent_updated_stream_event"


@dataclass(slots=True)
class ToolProgressStreamEvent:
    """What a tool said by `ctx.report(...)` while it ran: `data` is what it gave."""

    data: Any
    tool_name: str
    tool_call_id: str
    agent: Agent[Any] | None = None
    type: Literal["tool_progress_stream_event"] = "tool_progress_stream_event"


StreamEvent: TypeAlias = (
    RawResponsesStreamEvent | RunItemStreamEvent | AgentUpdatedStreamEvent | ToolProgressStreamEvent
)


def item_event(item: RunItem) -> RunItemStreamEvent | None:
    """Return the event of a new item; None for what is not streamed: approvals, compactions, added input."""
    return None if item.event is None else RunItemStreamEvent(item.event, item)
