"""The rules, one module an area. Importing this registers them all."""

from . import (
    calls,
    deltas,
    endings,
    faithfulness,
    items,
    numbering,
    parts,
    reasoning,
    response,
    schema,
    usage,
)

__all__ = [
    "calls",
    "deltas",
    "endings",
    "faithfulness",
    "items",
    "numbering",
    "parts",
    "reasoning",
    "response",
    "schema",
    "usage",
]
