"""The type of a final output."""

from __future__ import annotations

from .run.output_schema import AgentOutputSchema, AgentOutputSchemaBase

__all__ = [
    "AgentOutputSchema",
    "AgentOutputSchemaBase",
]
