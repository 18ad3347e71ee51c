"""Responses request in, Chat Completions request out.

    request -> items -> Entry -> turns -> messages
            -> tools, tool_choice, parameters -> body

`to_chat_request` gives the body, a report of all that is not in it as it came, and what restores the answer.
"""

from __future__ import annotations

from .convert import ChatRequest, to_chat_request
from .names import Tool
from .report import BadRequest, Change, ChangeKind
from .restore import Restore, Restorer

__all__ = ["BadRequest", "Change", "ChangeKind", "ChatRequest", "Restore", "Restorer", "Tool", "to_chat_request"]
