"""What a tool is given of a run."""

from __future__ import annotations

from .run.context import ToolContext

__all__ = [
    "ToolContext",
]
