"""RSN: reasoning."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.evidence import CHAT_REASONING, GROK, MIXTURE, RAW_REASONING, REASONING, SUMMARIES
from antiphon_conformance.read import mapping, quoted
from antiphon_conformance.rule import Found, Level, rule
from antiphon_conformance.said import Said
from antiphon_conformance.trace import Items, Trace
from antiphon_conformance.walk import Item

from .parts import REASONING_FAMILIES, misplaced


@rule(
    "RSN001",
    "reasoning-in-parts-of-its-kind",
    Level.MUST,
    since="1.0",
    sources=(REASONING, SUMMARIES, RAW_REASONING),
    alone=True,
)
def reasoning_in_parts_of_its_kind(block: Items) -> Iterator[Found]:
    """Summary text is in summary parts, reasoning text in content parts of type `reasoning_text`, both in reasoning
    items only, and nothing else is in these."""
    for item, part in block.numbered_parts:
        if part.family in REASONING_FAMILIES or item.type == "reasoning":
            yield from misplaced(item, part)


@rule(
    "RSN002", "reasoning-before-what-it-led-to", Level.MUST, since="1.0", sources=(REASONING, MIXTURE, CHAT_REASONING)
)
def reasoning_before_what_it_led_to(trace: Trace) -> Iterator[Found]:
    """A reasoning item comes before the message or call it led to: the first one before all else where the chunks
    begin with reasoning (without chunks it is only odd that a completed response ends with reasoning)."""
    begin = next(filter(_tells, trace.items), None)
    first = next((item for item in trace.items if item.type == "reasoning" and _tells(item)), None)
    if begin is None or first is None or first is begin:
        return
    if trace.said is None:
        last = next(filter(_tells, reversed(trace.items)), begin)
        if last.type == "reasoning" and trace.terminal is not None and trace.terminal.type == "response.completed":
            yield Found(last.first_at, f"{last.label()} is the last item", Level.SHOULD)
    elif not trace.said.quirks and _begins_with_reasoning(trace.said):
        yield Found(first.first_at, f"{first.label()} comes after {begin.label()}, in the chunks it comes first")


def _tells(item: Item) -> bool:
    """Whether an item counts: reasoning without a text does not."""
    return item.type != "reasoning" or any(part.joined or part.done_text for part in item.parts.values())


def _begins_with_reasoning(said: Said) -> bool:
    kinds = (kind for _, kind, _, visible in said.pieces if visible and kind != "sealed")
    return next(kinds, "") == "reasoning"


@rule(
    "RSN003",
    "reasoning-has-no-status",
    Level.MUST,
    since="1.0",
    sources=(REASONING, MIXTURE),
    broken_by=(GROK,),
    alone=True,
)
def reasoning_has_no_status(block: Items) -> Iterator[Found]:
    """Reasoning items carry no `status`."""
    for item in block.reasoning:
        status = mapping(item.added).get("status") or mapping(item.done).get("status")
        if status is not None:
            yield Found(item.first_at, f"{item.label()} has status {quoted(status)}")


@rule("RSN004", "summary-is-a-list", Level.MUST, since="1.0", sources=(REASONING, SUMMARIES), alone=True)
def summary_is_a_list(block: Items) -> Iterator[Found]:
    """`summary` of a reasoning item is always a list, an empty one where there is no summary."""
    for item in block.reasoning:
        for at, told in ((item.added_at, item.added), (item.done_at, item.done)):
            if told is not None and not isinstance(told.get("summary"), list):
                yield Found(at, f"{item.label()} has summary {quoted(told.get('summary'))}")
                break
