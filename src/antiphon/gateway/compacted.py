"""Compaction items: what a conversation was, in one item that clients keep and send, and that this gateway opens again.

It is opaque to clients, as the API has it, but hides nothing: it is made of what the caller sent, for the caller.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from .history import new_id
from .stored import Json

MARK = "antiphon.compaction.1."  # how the content of an item begins that this gateway can open
INTRODUCTION = "What follows is a summary of the conversation up to here, which was compacted:\n\n"


def closed(summary: str) -> Json:
    """Return the item that holds a summary."""
    content = MARK + base64.b64encode(summary.encode()).decode()
    return {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": content}


def opened(item: Json) -> Json:
    """Return an item as a backend can read it: one that `closed` made as a message, all others as they are."""
    content: Any = item.get("encrypted_content")
    if item.get("type") != "compaction" or not isinstance(content, str) or not content.startswith(MARK):
        return item
    try:
        summary = base64.b64decode(content.removeprefix(MARK), validate=True).decode()
    except (binascii.Error, ValueError):
        return item
    said = {"type": "input_text", "text": INTRODUCTION + summary}
    return {"type": "message", "role": "user", "content": [said]}
