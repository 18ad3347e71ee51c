"""Filters for handoffs: what the next agent is given of what went before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.run.handoffs import HandoffInputData
from antiphon.run.history import default_handoff_history_mapper, nest_handoff_history
from antiphon.run.items import CompactionItem, InputItem, MessageOutputItem, RunItem
from antiphon.stream.chunk import fields

__all__ = ["default_handoff_history_mapper", "nest_handoff_history", "remove_all_tools"]

# types of input items that belong to tools or to thinking, beside those whose names say it by their ends
TOOLS = frozenset(
    {
        *("additional_tools", "hosted_tool_call", "mcp_approval_request", "mcp_approval_response", "mcp_list_tools"),
        *("program", "program_output", "reasoning", "tool_search_output"),
    }
)
ENDS = ("_call", "_call_output")
SPOKEN = (MessageOutputItem, CompactionItem, InputItem)


def remove_all_tools(handoff_input_data: HandoffInputData) -> HandoffInputData:
    """Return `handoff_input_data` with what was said alone: no calls, outputs, handoffs, approvals or reasoning."""
    history, items = handoff_input_data.input_history, handoff_input_data.input_items
    return handoff_input_data.clone(
        input_history=history if isinstance(history, str) else tuple(one for one in history if not _is_tool(one)),
        pre_handoff_items=_said(handoff_input_data.pre_handoff_items),
        new_items=_said(handoff_input_data.new_items),
        input_items=None if items is None else _said(items),
    )


def _said(items: Iterable[RunItem]) -> tuple[RunItem, ...]:
    return tuple(one for one in items if isinstance(one, SPOKEN))


def _is_tool(item: Any) -> bool:
    held = fields(item)
    kind = str(held.get("type") or "message")
    if kind == "item_reference":  # ids of messages begin with msg; what else it may point to is gone
        return not str(held.get("id") or "").startswith("msg")
    return kind in TOOLS or kind.endswith(ENDS)
