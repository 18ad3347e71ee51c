"""Run items, by the names that users of the OpenAI Agents SDK know. They live in `antiphon.run.items`."""

from __future__ import annotations

from typing import Any, TypeAlias

from .models.interface import ModelResponse
from .run.items import (
    CompactionItem,
    HandoffCallItem,
    HandoffOutputItem,
    InputItem,
    ItemHelpers,
    MCPApprovalRequestItem,
    MCPApprovalResponseItem,
    MCPListToolsItem,
    MessageOutputItem,
    ReasoningItem,
    RunItem,
    RunItemBase,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolSearchCallItem,
    ToolSearchOutputItem,
)

TResponseInputItem: TypeAlias = Any  # openai's ResponseInputItemParam; not imported, since openai's types are slow to
TResponseOutputItem: TypeAlias = Any  # openai's ResponseOutputItem
TResponseStreamEvent: TypeAlias = Any  # openai's ResponseStreamEvent

__all__ = [
    "CompactionItem",
    "HandoffCallItem",
    "HandoffOutputItem",
    "InputItem",
    "ItemHelpers",
    "MCPApprovalRequestItem",
    "MCPApprovalResponseItem",
    "MCPListToolsItem",
    "MessageOutputItem",
    "ModelResponse",
    "ReasoningItem",
    "RunItem",
    "RunItemBase",
    "TResponseInputItem",
    "TResponseOutputItem",
    "TResponseStreamEvent",
    "ToolApprovalItem",
    "ToolCallItem",
    "ToolCallOutputItem",
    "ToolSearchCallItem",
    "ToolSearchOutputItem",
]
