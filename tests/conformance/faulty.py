"""Adapters with one fault each, for what is tried on adapters by their dotted path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from antiphon import convert


def no_arguments_done(chunks: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield the events without one that the grammar wants."""
    events = convert(chunks, events="dict")
    return (event for event in events if event["type"] != "response.function_call_arguments.done")


def raises_on_refusal(chunks: Iterable[dict[str, Any]]) -> Iterator[Any]:
    """Yield the events, and raise where a chunk has a refusal."""
    for chunk in chunks:
        for choice in chunk.get("choices", []):
            if choice.get("delta", {}).get("refusal"):
                raise KeyError("refusal")
    return convert(chunks, events="dict")
