"""RSN: reasoning."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.evidence import CHAT_REASONING, GROK, MIXTURE, RAW_REASONING, REASONING, SUMMARIES
from antiphon_conformance.read import listed, mapping, quoted
from antiphon_conformance.rule import Found, Level, rule
from antiphon_conformance.trace import Trace
from antiphon_conformance.walk import Item

from .parts import REASONING_FAMILIES, misplaced, parts_of


@rule(
    "RSN001", "reasoning-in-parts-of-its-kind", Level.MUST, since="1.0", sources=(REASONING, SUMMARIES, RAW_REASONING)
)
def reasoning_in_parts_of_its_kind(trace: Trace) -> Iterator[Found]:
    """Summary text is in summary parts, reasoning text in content parts of type `reasoning_text`, both in reasoning
    items only, and nothing else is in these."""
    for item, part in parts_of(trace):
        if part.family in REASONING_FAMILIES or item.type == "reasoning":
            yield from misplaced(item, part)


@rule(
    "RSN002", "reasoning-before-what-it-led-to", Level.MUST, since="1.0", sources=(REASONING, MIXTURE, CHAT_REASONING)
)
def reasoning_before_what_it_led_to(trace: Trace) -> Iterator[Found]:
    """A reasoning item comes before the message or call it led to: the first one before all else where the chunks
    begin with reasoning (without chunks it is only odd that a completed response ends with reasoning)."""
    told = [item for item in trace.items if item.type != "reasoning" or _has_text(item)]
    first = next((item for item in told if item.type == "reasoning"), None)
    if first is None or first is told[0]:
        return
    if trace.said is None:
        if told[-1].type == "reasoning" and trace.terminal is not None and trace.terminal.type == "response.completed":
            yield Found(told[-1].first_at, f"{told[-1].label()} is the last item", Level.SHOULD)
    elif not trace.said.quirks and _begins_with_reasoning(trace):
        yield Found(first.first_at, f"{first.label()} comes after {told[0].label()}, in the chunks it comes first")


def _has_text(item: Item) -> bool:
    return any(part.joined or part.done_text for part in item.parts.values())


def _begins_with_reasoning(trace: Trace) -> bool:
    visible = [piece for piece in trace.said.pieces if piece.visible and piece.kind != "sealed"] if trace.said else []
    return bool(visible) and visible[0].kind == "reasoning"


@rule("RSN003", "reasoning-has-no-status", Level.MUST, since="1.0", sources=(REASONING, MIXTURE), broken_by=(GROK,))
def reasoning_has_no_status(trace: Trace) -> Iterator[Found]:
    """Reasoning items carry no `status`."""
    for item in trace.items:
        status = mapping(item.added).get("status") or mapping(item.done).get("status")
        if item.type == "reasoning" and status is not None:
            yield Found(item.first_at, f"{item.label()} has status {quoted(status)}")


@rule("RSN004", "summary-is-a-list", Level.MUST, since="1.0", sources=(REASONING, SUMMARIES))
def summary_is_a_list(trace: Trace) -> Iterator[Found]:
    """`summary` of a reasoning item is always a list, an empty one where there is no summary."""
    for item in trace.items:
        for at, told in ((item.added_at, item.added), (item.done_at, item.done)):
            if item.type == "reasoning" and told is not None and listed(told.get("summary")) != told.get("summary"):
                yield Found(at, f"{item.label()} has summary {quoted(told.get('summary'))}")
                break
