"""Plays a built-in stream: converts its body, checks the events, and compares what came with what must come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from antiphon import convert_sse, load_profile
from antiphon.cli.convert import warnings_to
from antiphon.errors import ProfileNotFound
from antiphon.timeline import Timeline
from antiphon_conformance import check

from .demo_streams import DemoStream, Json
from .report import Report

# item type -> what an item has where the expectation says nothing
USUAL: dict[str, Json] = {
    "message": {"text": "", "refusal": "", "citations": 0, "status": "completed"},
    "reasoning": {"sealed": False},
    "function_call": {"status": "completed"},
}


@dataclass(frozen=True, slots=True)
class Played:
    """A stream, its picture, and what is wrong with what came of it: in words of ours, and by the rules."""

    stream: DemoStream
    timeline: Timeline
    report: Report
    differences: list[str]

    @property
    def clean(self) -> bool:
        """Whether all came out as it must, and no MUST is broken."""
        return self.report.ok and not self.differences

    @property
    def items(self) -> int:
        """How many items came of it."""
        return sum(row.part_index is None for row in self.timeline.rows)

    @property
    def found(self) -> str:
        """The findings, counted by level."""
        levels = [finding.level.value for finding in self.report.findings]
        return ", ".join(f"{levels.count(level)} {level}" for level in dict.fromkeys(levels)) or "none"


@dataclass(frozen=True, slots=True)
class NotPlayed:
    """A stream that needs what is not installed, and why."""

    stream: DemoStream
    reason: str


Outcome: TypeAlias = Played | NotPlayed
Tell: TypeAlias = Callable[[Timeline, bytes], None]  # what is told of each piece, when its events are in the picture


def silent(timeline: Timeline, piece: bytes) -> None:
    """Tell nobody."""


def play(stream: DemoStream, seconds: float, tell: Tell) -> Outcome:
    """Return what became of a stream that is played in `seconds`. `tell` is called after each piece of its body."""
    try:
        profile = load_profile(stream.profile) if stream.profile else None
    except ProfileNotFound:
        return NotPlayed(stream, f"the profile {stream.profile} is not installed")
    timeline, events = Timeline(), list[dict[str, Any]]()
    pieces = _paced(stream.pieces, seconds, lambda piece: tell(timeline, piece))
    with warnings_to(timeline.warn):
        for event in convert_sse(pieces, events="dict", ids="counted", created_at=0, profile=profile):
            events.append(event)
            timeline.feed(event)
    report = check(events, chunks=stream.chunks, done=stream.done, profile=profile)
    return Played(stream, timeline, report, differences(stream, events))


def _paced(pieces: Sequence[bytes], seconds: float, tell: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield the pieces, the last one `seconds` after the first, or as soon as the work on them allows."""
    start = time.monotonic()
    for number, piece in enumerate(pieces, 1):
        yield piece
        tell(piece)
        time.sleep(max(0.0, start + seconds * number / len(pieces) - time.monotonic()))


# --- what came of it, and what must ---------------------------------------------------------------------------------


def differences(stream: DemoStream, events: Sequence[Json]) -> list[str]:
    """Return, in words, where the terminal event differs from what must come of the stream."""
    response = response_of(events)
    output = [compact(item) for item in response.get("output", ())]
    found = _unlike("the ending", ending_of(response), stream.ending)
    found += _unlike("the usage", usage_of(response), stream.usage)
    found += _unlike("the number of items", len(output), len(stream.output))
    for place, (got, wanted) in enumerate(zip(output, stream.output, strict=False)):
        whole = {**USUAL[wanted["type"]], **wanted}
        found += _unlike(f"item {place}", {key: got.get(key) for key in whole}, whole)
    return found


def _unlike(what: str, got: object, wanted: object) -> list[str]:
    return [] if got == wanted else [f"{what} is {got}, not {wanted}"]


def response_of(events: Sequence[Json]) -> Json:
    """Return the response that the last event has, an empty one where it has none."""
    empty: Json = {}
    return events[-1].get("response", empty) if events else empty


def ending_of(response: Json) -> str:
    """Return how a response ended: its status, and why it is incomplete or with which code it failed."""
    status = response.get("status", "no response")
    match response:
        case {"incomplete_details": {"reason": why}} | {"error": {"code": why}}:
            return f"{status}: {why}"
        case _:
            return str(status)


def usage_of(response: Json) -> tuple[int, int] | None:
    """Return input and output tokens, None where there is no usage."""
    usage = response.get("usage")
    return (usage["input_tokens"], usage["output_tokens"]) if usage else None


def compact(item: Json) -> Json:
    """Return what an item says, without ids of our own."""
    match item:
        case {"type": "message", "content": content}:
            said = {kind: "".join(part[kind] for part in content if kind in part) for kind in ("text", "refusal")}
            citations = sum(len(part.get("annotations", ())) for part in content)
            return {"type": "message", **said, "citations": citations, "status": item["status"]}
        case {"type": "reasoning", "summary": summary}:
            sealed = bool(item.get("encrypted_content"))
            return {"type": "reasoning", "text": "".join(part["text"] for part in summary), "sealed": sealed}
        case _:
            return item
