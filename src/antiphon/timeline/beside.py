"""Which chunk an event stands at: the two sides of a stream, laid beside each other by what they say."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from antiphon.stream.accumulate import Json

from .told import calls_of, choice_of, delta_of, fields_or_empty, function_of, text_of

_Key: TypeAlias = tuple[str, int]  # kind of text, and the number of the call where it is one's

# "<this>.delta" says the same as this kind of text in a chunk
_HEARD: dict[str, str] = {
    "response.output_text": "text",
    "response.refusal": "refusal",
    "response.reasoning_text": "reasoning",
    "response.reasoning_summary_text": "reasoning",
    "response.function_call_arguments": "call",
    "response.custom_tool_call_input": "call",
}
_SPOKEN: tuple[tuple[str, str], ...] = (
    ("content", "text"),
    ("refusal", "refusal"),
    ("reasoning_content", "reasoning"),
    ("reasoning", "reasoning"),
)


def beside(chunks: Sequence[object], events: Sequence[object]) -> list[int]:
    """Return for each event the chunk that it stands at, -1 without chunks. The numbers never fall.

    A delta stands at the chunk that has its first character; what has no text stands where the next delta does.
    """
    if not chunks:
        return [-1] * len(events)
    found = _found(_spoken(chunks), events)
    last = _finish(chunks)
    for at in range(len(events) - 1, -1, -1):
        known = found[at]
        if known is None:
            found[at] = last
        else:
            last = known
    for at, event in enumerate(events[:3]):
        if text_of(fields_or_empty(event), "type") in ("response.created", "response.queued", "response.in_progress"):
            found[at] = 0
    return list(accumulate((one or 0 for one in found), max))


def _finish(chunks: Sequence[object]) -> int:
    """Return the last chunk with a finish_reason, else the last."""
    finished = (at for at in range(len(chunks) - 1, -1, -1) if choice_of(chunks[at]).get("finish_reason"))
    return next(finished, len(chunks) - 1)


def _found(spoken: Mapping[_Key, tuple[list[int], list[int]]], events: Sequence[object]) -> list[int | None]:
    heard: dict[_Key, int] = {}
    calls: dict[Any, int] = {}
    found: list[int | None] = []
    for event in events:
        fields = fields_or_empty(event)
        name, _, step = text_of(fields, "type").rpartition(".")
        kind = _HEARD.get(name, "") if step == "delta" else ""
        if not kind:
            found.append(None)
            continue
        number = calls.setdefault(repr(fields.get("output_index")), len(calls)) if kind == "call" else 0
        begin = heard.get((kind, number), 0)
        heard[kind, number] = begin + len(text_of(fields, "delta"))
        starts, places = spoken.get((kind, number), ([], []))
        at = bisect_right(starts, begin) - 1
        found.append(places[at] if at >= 0 else None)
    return found


def _spoken(chunks: Sequence[object]) -> dict[_Key, tuple[list[int], list[int]]]:
    """Return for each text the number of characters before each piece, and the chunk that has the piece."""
    found: dict[_Key, tuple[list[int], list[int]]] = {}
    totals: dict[_Key, int] = {}
    calls: dict[str, int] = {}
    for at, chunk in enumerate(chunks):
        for key, text in _pieces(delta_of(chunk), calls):
            starts, places = found.setdefault(key, ([], []))
            starts.append(totals.get(key, 0))
            places.append(at)
            totals[key] = totals.get(key, 0) + len(text)
    return found


def _pieces(delta: Json, calls: dict[str, int]) -> Iterator[tuple[_Key, str]]:
    seen: set[str] = set()
    for field_name, kind in _SPOKEN:
        text = text_of(delta, field_name)
        if text and kind not in seen:
            seen.add(kind)
            yield (kind, 0), text
    for call in calls_of(delta):
        number = calls.setdefault(repr(call.get("index", call.get("id"))), len(calls))
        text = text_of(function_of(call), "arguments") or text_of(function_of(call), "input")
        if text:
            yield ("call", number), text
