"""What a run's stream is made of, and the one table of the names of its items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .items import (
    HandoffCallItem,
    HandoffOutputItem,
    MCPApprovalRequestItem,
    MCPApprovalResponseItem,
    MCPListToolsItem,
    MessageOutputItem,
    ReasoningItem,
    RunItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)

if TYPE_CHECKING:
    from .agent import Agent

ItemEventName: TypeAlias = Literal[
    "message_output_created",
    "handoff_requested",
    "handoff_occured",
    "tool_called",
    "tool_search_called",
    "tool_search_output_created",
    "tool_output",
    "reasoning_item_created",
    "mcp_approval_requested",
    "mcp_approval_response",
    "mcp_list_tools",
]

# class of an item -> the name under which it is streamed; the classes that are not here are not streamed
NAMES: dict[type[Any], ItemEventName] = {
    MessageOutputItem: "message_output_created",
    HandoffCallItem: "handoff_requested",
    HandoffOutputItem: "handoff_occured",
    ToolCallItem: "tool_called",
    ToolSearchCallItem: "tool_search_called",
    ToolSearchOutputItem: "tool_search_output_created",
    ToolCallOutputItem: "tool_output",
    ReasoningItem: "reasoning_item_created",
    MCPApprovalRequestItem: "mcp_approval_requested",
    MCPApprovalResponseItem: "mcp_approval_response",
    MCPListToolsItem: "mcp_list_tools",
}


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
    name = NAMES.get(type(item))
    return None if name is None else RunItemStreamEvent(name, item)
