"""DLT: deltas, and the texts they add up to."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.events import FAMILIES
from antiphon_conformance.evidence import HOSTED_CODE, LOGPROBS, MIXTURE, REFUSAL, SUMMARIES, TEXT, types
from antiphon_conformance.read import Json, listed, quoted
from antiphon_conformance.rule import Found, Level, folded, rule
from antiphon_conformance.trace import Items, Trace
from antiphon_conformance.walk import Item, Part

from .parts import LISTS, came, in_item, text_of


@rule("DLT001", "deltas-add-up", Level.MUST, since="1.0", sources=(TEXT, REFUSAL, SUMMARIES, HOSTED_CODE), alone=True)
def deltas_add_up(block: Items) -> Iterator[Found]:
    """The deltas of a text, joined, are the text of its `.done`: also where the text came whole, there is a delta."""
    for item, part in block.parts:
        if part.family and FAMILIES[part.family].table != "bare" and not adds_up(part):
            length, whole = len(part.joined), len(part.done_text or "")
            at = part.text_done_at
            yield Found(at, f"the deltas of {item.label()} ({length} characters) are not its done text ({whole})")


def adds_up(part: Part) -> bool:
    """Whether the deltas are the done text; True where that cannot be said, or another rule says what is missing."""
    unknown = part.done_text is None or not part.whole or (part.has_parts and part.added is None)
    return unknown or part.joined == part.done_text


@rule("DLT002", "no-empty-delta", Level.MUST, since="1.0", sources=(TEXT, MIXTURE, REFUSAL))
def no_empty_delta(trace: Trace) -> Iterator[Found]:
    """No delta is the empty string."""
    yield from folded(Found(at, f"`{trace.types[at]}` has an empty delta") for at in trace.empty if trace.types[at])


@rule("DLT003", "one-text-everywhere", Level.MUST, since="1.0", sources=(TEXT, REFUSAL, SUMMARIES), alone=True)
def one_text_everywhere(block: Items) -> Iterator[Found]:
    """The part in `part.done`, and in the done item, has the text of its `.done` event; and the done item has no part
    that did not come as events."""
    for item in block.items:
        unlike = [found for part in item.parts.values() if part.has_parts and (found := _unlike(item, part))]
        if unlike:
            yield from folded(unlike)
        elif item.done is not None:
            yield from _uncalled(item, item.done)


def _unlike(item: Item, part: Part) -> Found | None:
    """Return where a done part or item has another text than came."""
    if not part.whole:
        return None
    for at, holder in ((part.done_at, part.done), (item.done_at, in_item(item.done, part))):
        held = text_of(holder)
        if held is not None and held != part.joined and held != part.done_text:
            where = f"{part.key[0]} {part.key[1]} of {item.label()}"
            return Found(at, f"{where} has the text {quoted(held)}, which is not what came")
    return None


def _told(part: Part) -> tuple[str, ...]:
    """Return the texts that a part may have: the deltas joined, and that of the done event."""
    return (part.joined, part.done_text) if part.done_text is not None else (part.joined,)


def same_texts(item: Item, held: Json) -> bool:
    """Whether a snapshot of an item has the texts, annotations and logprobs that came as events."""
    for part in item.parts.values():
        if part.has_parts:
            found = in_item(held, part)
            if found is None or text_of(found) not in _told(part) or listed(found.get("annotations")) != came(part):
                return False
            if listed(found.get("logprobs")) != listed(part.logprobs):
                return False
        elif part.family and held.get(FAMILIES[part.family].text) not in _told(part):
            return False
    return True


def _uncalled(item: Item, done: Json) -> Iterator[Found]:
    """Yield where the done item has more or fewer parts than came, once; a part that was not added is another
    rule's."""
    if item.added is None or item.type not in ("message", "reasoning"):
        return
    several: list[Found] = []
    for space, field in LISTS.items():
        held = len(listed(done.get(field)))
        if not held and not item.parts:
            continue
        came = item.in_space(space)
        if held != len(came) and all(part.added is not None for part in came):
            several.append(
                Found(item.done_at, f"{item.label()} is done with {held} parts in {field}, and {len(came)} came")
            )
    yield from folded(several)


@rule(
    "DLT004",
    "logprobs-are-joined",
    Level.MUST,
    since="1.0",
    sources=(LOGPROBS, types("ResponseTextDoneEvent.logprobs")),
    alone=True,
)
def logprobs_are_joined(block: Items) -> Iterator[Found]:
    """The logprobs of the deltas, joined, are those of `output_text.done`, and of the part in the done item."""
    for item, part in block.numbered_parts:
        if part.family == "output_text" and part.whole and part.text_done is not None:
            yield from _other_logprobs(item, part, part.text_done)


def _other_logprobs(item: Item, part: Part, text_done: Json) -> Iterator[Found]:
    due = listed(part.logprobs)
    for at, holder in ((part.text_done_at, text_done), (item.done_at, in_item(item.done, part))):
        held = None if holder is None else listed(holder.get("logprobs"))
        if held is not None and held != due and adds_up(part):
            counts = f"{len(held)} logprobs, which are not the {len(part.logprobs)} of the deltas"
            yield Found(at, f"{item.label()} has {counts}")
            return
