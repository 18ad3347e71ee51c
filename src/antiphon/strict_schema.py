"""JSON schemas in the API's strict mode."""

from __future__ import annotations

from .tools.strict import ensure_strict_json_schema

__all__ = [
    "ensure_strict_json_schema",
]
