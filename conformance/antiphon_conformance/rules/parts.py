"""PRT: content parts and summary parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import cast

from antiphon_conformance.events import FAMILIES, PLACES
from antiphon_conformance.evidence import (
    ANNOTATIONS,
    MANTLE,
    REASONING,
    REFUSAL,
    SUMMARIES,
    TEXT,
    sdk,
    types,
)
from antiphon_conformance.read import Json, listed, mapping, quoted, text
from antiphon_conformance.rule import Found, Level, as_found, folded, folded_by_item, rule
from antiphon_conformance.trace import Items, Trace
from antiphon_conformance.walk import Item, Part

# what numbers a part -> the list of its item that holds it
LISTS = {"content_index": "content", "summary_index": "summary"}
# What a part may have when it is done, and not when it is added.
FILLED = ("text", "refusal", "annotations", "logprobs")
REASONING_FAMILIES = ("reasoning_text", "reasoning_summary_text")


@rule(
    "PRT001",
    "part-added-text-done-part-done",
    Level.MUST,
    since="1.0",
    sources=(TEXT, REASONING, sdk("raises IndexError where text comes before `content_part.added`")),
    broken_by=(MANTLE,),
)
def part_added_text_done_part_done(trace: Trace) -> Iterator[Found]:
    """The events about a part come in this order: it is added, any number of deltas, its text is done, it is done; then
    its item is done. None but the deltas may be missing or come twice."""
    for breaches in trace.illegal("PRT001"):
        yield from as_found(breaches)


@rule(
    "PRT002",
    "parts-count-from-0",
    Level.MUST,
    since="1.0",
    sources=(TEXT, SUMMARIES, sdk("raises IndexError where a content_index leaves a gap")),
    broken_by=(MANTLE,),
    alone=True,
)
def parts_count_from_0(block: Items) -> Iterator[Found]:
    """`content_index` and `summary_index` count from 0 in each item, without a gap."""
    for item in _several(block):
        for space in LISTS:
            known = [part for part in item.in_space(space) if part.whole and (part.added is not None or part.done)]
            yield from folded(
                Found(part.first_at, f"part {n} of {item.label()} has {space} {part.key[1]}")
                for n, part in enumerate(known)
                if part.key[1] != n
            )


def _several(block: Items) -> Sequence[Item]:
    """Return the items that have more than one part, or a part with another number than 0."""
    return list({id(item): item for item, part in block.numbered_parts if part.key[1] or len(item.parts) > 1}.values())


@rule("PRT003", "one-part-open", Level.MUST, since="1.0", sources=(SUMMARIES, REASONING, TEXT), alone=True)
def one_part_open(block: Items) -> Iterator[Found]:
    """At most one part of an item is open."""
    for item in _several(block):
        known = [part for part in item.parts.values() if part.has_parts and part.added is not None]
        yield from folded(
            Found(later.first_at, f"{later.key[0]} {later.key[1]} of {item.label()} begins before the last is done")
            for earlier, later in pairwise(known)
            # What comes before its part was added, PRT001 says.
            if earlier.done_at is not None and later.first_at < earlier.done_at and _opens(block, later)
        )


def _opens(block: Items, part: Part) -> bool:
    """Whether the first event about a part adds it."""
    return PLACES[block.trace.types[part.first_at]].role == "added"


@rule("PRT004", "part-added-empty", Level.MUST, since="1.0", sources=(TEXT, REFUSAL, REASONING), alone=True)
def part_added_empty(block: Items) -> Iterator[Found]:
    """A part is added without text, refusal, annotations or logprobs."""
    for item, part in block.numbered_parts:
        if part.added and any(map(part.added.get, FILLED)):
            full = [key for key in FILLED if part.added.get(key)]
            yield Found(part.first_at, f"{part.key[0]} {part.key[1]} of {item.label()} is added with {', '.join(full)}")


@rule("PRT005", "annotations-are-streamed", Level.MUST, since="1.0", sources=(ANNOTATIONS,), alone=True)
def annotations_are_streamed(block: Items) -> Iterator[Found]:
    """`annotation_index` counts from 0 in its part, and the annotations of the part, when it and its item are done,
    are those that came as events."""
    own = (told for told in block.numbered_parts if told[1].family == "output_text" and told[1].whole)
    yield from folded_by_item((item, found) for item, part in own if (found := _wrong_annotations(item, part)))


def _wrong_annotations(item: Item, part: Part) -> Found | None:
    """Return where the annotations are numbered wrongly, or are others when done."""
    for n, (at, event) in enumerate(part.annotations):
        if event.get("annotation_index") != n:
            return Found(at, f"annotation {n} has annotation_index {quoted(event.get('annotation_index'))}")
    due = came(part) if part.annotations else []
    for place, holder in ((part.done_at, part.done), (item.done_at, in_item(item.done, part))):
        if holder is not None and listed(holder.get("annotations")) != due:
            has = len(listed(holder.get("annotations")))
            counts = f"{has} annotations, which are not the {len(due)} that came as events"
            return Found(place, f"{item.label()} has {counts}")
    return None


@rule(
    "PRT006",
    "part-of-one-type",
    Level.MUST,
    since="1.0",
    sources=(TEXT, REFUSAL, types("ResponseOutputMessage")),
    alone=True,
)
def part_of_one_type(block: Items) -> Iterator[Found]:
    """A part's events are those of its type, which is the same in added and done: `output_text.*` for output_text,
    `refusal.*` for refusal, and both are in messages."""
    for item, part in block.numbered_parts:
        if part.family not in REASONING_FAMILIES and item.type != "reasoning":
            yield from misplaced(item, part)


def misplaced(item: Item, part: Part) -> Iterator[Found]:
    """Yield where the item, the events or the type of a part do not go together, at most once."""
    if not part.family:
        return
    family, where = FAMILIES[part.family], f"{part.key[0]} {part.key[1]} of {item.label()}"
    done_type = mapping(part.done).get("type")
    if part.foreign is not None and FAMILIES[part.foreign[1]].items[0] in (item.type, family.items[0], "reasoning"):
        yield Found(part.foreign[0], f"{part.foreign[1]} comes in {where}, a part of type {family.part}")
    elif item.type and item.type not in family.items:
        yield Found(part.first_at, f"{part.family} comes in {where}, which is no {family.items[0]}")
    elif part.key[0] != family.numbered_by:
        yield Found(part.first_at, f"{part.family} comes in {where}, which is not numbered by {family.numbered_by}")
    elif done_type is not None and done_type != family.part:
        yield Found(part.done_at, f"{where} is {family.part}, and {quoted(done_type)} when done")


def in_item(held: Json | None, part: Part) -> Json | None:
    """Return the part as a snapshot of its item has it, None where that has no such part."""
    space, n = part.key
    parts = listed(held.get(LISTS.get(space, ""))) if held else []
    found = parts[n] if 0 <= n < len(parts) else None
    return cast("Json", found) if isinstance(found, dict) else None


def text_of(part: Json | None) -> str | None:
    """Return the text of a part as a snapshot has it, None where there is none."""
    if part is None:
        return None
    value = part.get("refusal") if part.get("type") == "refusal" else part.get("text")
    return text(value) if isinstance(value, str) else None


def came(part: Part) -> list[object]:
    """Return the annotations that came as events."""
    return [event.get("annotation") for _, event in part.annotations]
