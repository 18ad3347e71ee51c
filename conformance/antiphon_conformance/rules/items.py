"""ITM: output items."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from antiphon_conformance.events import CALLS, HOSTED, OWN_ITEMS, PLACES, SILENT
from antiphon_conformance.evidence import (
    CALL,
    COPILOT,
    HOSTED_CODE,
    HOSTED_SEARCH,
    MIXTURE,
    OVERLAP,
    PARALLEL,
    REASONING,
    TEXT,
    TWO_MESSAGES,
    sdk,
)
from antiphon_conformance.read import Json, mapping, quoted, text
from antiphon_conformance.rule import Found, Level, as_found, folded, rule
from antiphon_conformance.trace import Items, Trace
from antiphon_conformance.walk import Item

# What an item may have when it is done, and not when it is added.
FILLED = ("content", "summary", "arguments", "input")


@rule(
    "ITM001",
    "announced-in-order",
    Level.MUST,
    since="1.0",
    sources=(PARALLEL, MIXTURE, sdk('raises "Duplicate response output index 0."')),
)
def announced_in_order(trace: Trace) -> Iterator[Found]:
    """The nth `response.output_item.added` has `output_index` n, counted from 0."""
    yield from folded(_out_of_order(trace))


def _out_of_order(trace: Trace) -> Iterator[Found]:
    """Yield the items whose index does not follow; counting goes on from what is there."""
    counted = [item for item in trace.items if item.output_index is not None and item.real]
    following = {0} if not trace.resumed else {item.output_index or 0 for item in counted[:1]}
    for n, item in enumerate(counted):
        index = item.output_index or 0
        if index not in following:
            expected = " or ".join(map(str, sorted(following)))
            yield Found(
                item.first_at, f"{item.label()} was announced at output_index {index}, where {expected} follows"
            )
        following = {index + 1} if index in following else {index + 1, n + 1}


@rule(
    "ITM002",
    "ids-differ",
    Level.MUST,
    since="1.0",
    sources=(PARALLEL, TWO_MESSAGES, sdk('raises "Response snapshot has conflicting output identities."')),
)
def ids_differ(trace: Trace) -> Iterator[Found]:
    """Every item has an `id`, no two items have one `id`, and no two calls have one `call_id`."""
    told = [(item, text(item.said.get("call_id"))) for item in trace.items if item.type in CALLS]
    yield from folded(_nameless(trace))
    yield from folded(_repeated("id", ((item, item.id) for item in trace.items)))
    yield from folded(_repeated("call_id", told))


def _nameless(trace: Trace) -> Iterator[Found]:
    """Yield the items whose id is "" wherever they are told; one that differs is ITM005's, no id at all SCH001's."""
    for item in trace.items:
        told = [one for one in (item.added, item.done) if one is not None]
        if told and all(one.get("id") == "" for one in told):
            at = item.added_at if item.added is not None else item.done_at
            yield Found(at, f"item {item.output_index} has an empty id")


def _repeated(key: str, told: Iterable[tuple[Item, str]]) -> Iterator[Found]:
    first: dict[str, Item] = {}
    for item, name in told:
        other = first.setdefault(name, item)
        if name and other is not item:
            yield Found(item.first_at, f"items {other.output_index} and {item.output_index} have one {key}, {name}")


@rule("ITM003", "announced-once-done-once", Level.MUST, since="1.0", sources=(TEXT, PARALLEL))
def announced_once_done_once(trace: Trace) -> Iterator[Found]:
    """An item is added once and done once."""
    for breaches in trace.illegal("ITM003"):
        yield from as_found(breaches)


@rule(
    "ITM004",
    "nothing-outside-an-items-life",
    Level.MUST,
    since="1.0",
    sources=(TEXT, MIXTURE, sdk("raises where an event is about an item that was not announced")),
    broken_by=(COPILOT,),
)
def nothing_outside_an_items_life(trace: Trace) -> Iterator[Found]:
    """An event about an item comes after its `added` and before its `done`, and names it by the index and the id that
    it was announced with."""
    for breaches in trace.illegal("ITM004"):
        yield from as_found(breaches)
    for item in trace.items:
        if item.misfits:
            yield from folded(Found(at, message) for at, code, message in item.misfits if code == "ITM004")


@rule(
    "ITM005",
    "same-item-in-added-and-done",
    Level.MUST,
    since="1.0",
    sources=(TEXT, CALL, sdk('raises "Completed output item identity changed."')),
    broken_by=(COPILOT,),
    alone=True,
)
def same_item_in_added_and_done(block: Items) -> Iterator[Found]:
    """`type`, `id`, `call_id`, `name` and `output_index` are the same in an item's `added` and its `done`."""
    for item in block.items:
        if item.misfits and not any(code == "ITM004" for _, code, _ in item.misfits):
            yield from folded(Found(at, message) for at, code, message in item.misfits if code == "ITM005")
        if item.added is not None and item.done is not None:
            yield from _turned(item, item.added, item.done)


def _turned(item: Item, added: Json, done: Json) -> Iterator[Found]:
    """Yield what is another when done than when added."""
    for key in ("type", "id", "call_id", "name"):
        was, now = added.get(key), done.get(key)
        if was != now and (was is not None or key == "id"):
            yield Found(item.done_at, f"{key} of {item.label()} was {quoted(was)} when added and is {quoted(now)}")


@rule(
    "ITM006",
    "every-item-is-done",
    Level.MUST,
    since="1.0",
    sources=(TEXT, PARALLEL, sdk('raises "Cannot complete response with unfinished output items."')),
    alone=True,
)
def every_item_is_done(block: Items) -> Iterator[Found]:
    """Every item that was added is done before the terminal event (the recordings excuse `mcp_list_tools`)."""
    end = block.trace.terminal
    if end is None:
        return
    for item in block.items:
        late = item.done_at is None or item.done_at > end.at
        if late and item.announced and item.type != "mcp_list_tools" and item.first_at < end.at:
            yield Found(end.at, f"{item.label()} is not done when the response ends")


@rule(
    "ITM007",
    "one-item-after-another",
    Level.MUST,
    since="1.0",
    sources=(PARALLEL, MIXTURE, REASONING),
    broken_by=(OVERLAP,),
)
def one_item_after_another(trace: Trace) -> Iterator[Found]:
    """An item is done before the next is added, parallel calls too (the recordings excuse `mcp_list_tools`)."""
    yield from folded(_overlaps(trace))


def _overlaps(trace: Trace) -> Iterator[Found]:
    """Yield the items that begin while an earlier one is open that is done later; one never done is ITM006's."""
    latest: Item | None = None
    for item in sorted((one for one in trace.items if one.real), key=lambda one: one.first_at):
        if latest is not None and item.first_at < (latest.done_at or 0):
            yield Found(item.first_at, f"{item.label()} begins before {latest.label()} is done")
        if item.type != "mcp_list_tools" and (item.done_at or -1) > (latest.done_at or -1 if latest else -1):
            latest = item


@rule("ITM008", "closing-is-contiguous", Level.MUST, since="1.0", sources=(TEXT, CALL, REASONING))
def closing_is_contiguous(trace: Trace) -> Iterator[Found]:
    """What closes a part or an item is adjacent: text done, part done, item done; arguments done, item done."""
    # What else could stand between is another rule's: another item (ITM007), a delta (PRT001), a head (STR001).
    strange = sorted(at for kind, places in trace.kinds.items() if _interrupts(kind) for at in places)
    if not strange:
        return
    for item in trace.items:
        last = max((part.first_at for part in item.parts.values()), default=-1)
        for part in item.parts.values():
            begin, end = part.text_done_at, item.done_at if part.first_at == last else part.done_at
            if begin is not None and end is not None:
                between = strange[bisect_right(strange, begin) : bisect_right(strange, end)]
                yield from folded(
                    Found(at, f"`{trace.types[at]}` stands between the closing events of {item.label()}")
                    for at in between
                )


def _interrupts(kind: str) -> bool:
    return (kind not in PLACES and kind not in SILENT and kind != "") or kind.endswith("annotation.added")


@rule("ITM009", "added-empty", Level.MUST, since="1.0", sources=(TEXT, CALL, REASONING), alone=True)
def added_empty(block: Items) -> Iterator[Found]:
    """An added message, reasoning item or call is empty: `content: []`, `summary: []`, `arguments: ""`, `input: ""`."""
    for item in block.items:
        added = item.added
        if added and any(map(added.get, FILLED)) and added.get("type") in OWN_ITEMS:
            full = ", ".join(key for key in FILLED if added.get(key))
            yield Found(item.added_at, f"{item.label()} is added with {full}")


@rule("ITM010", "status-of-items", Level.MUST, since="1.0", sources=(TEXT, CALL, MIXTURE), alone=True)
def status_of_items(block: Items) -> Iterator[Found]:
    """A message or call has status `in_progress` when added, and `completed` or `incomplete` when done."""
    for item in block.items:
        if item.type not in OWN_ITEMS or item.type == "reasoning":
            continue
        if item.added is not None and item.added.get("status") != "in_progress":
            yield _other_status(item, item.added_at, item.added, "in_progress")
        if item.done is not None and item.done.get("status") not in ("completed", "incomplete"):
            yield _other_status(item, item.done_at, item.done, "completed or incomplete")


def _other_status(item: Item, at: int | None, told: Json, allowed: str) -> Found:
    softer = Level.SHOULD if _excused(item.type, told) else None
    return Found(at, f"{item.label()} has status {quoted(told.get('status'))} here, not {allowed}", softer)


def _excused(kind: str, told: Json) -> bool:
    """Whether recordings have this: messages completed when added (cagent--testdebug-title-openai-gpt52pro), and a
    program's calls in progress when done (vercel-ai--openai-programmatic-tool-calling)."""
    if kind == "message":
        return told.get("status") == "completed"
    return mapping(told.get("caller")).get("type") == "program"


@rule(
    "ITM011",
    "hosted-events-in-order",
    Level.SHOULD,
    since="1.0",
    sources=(HOSTED_SEARCH, HOSTED_CODE),
)
def hosted_events_in_order(trace: Trace) -> Iterator[Found]:
    """The events of a hosted tool come in the order of their kind (such as in_progress, searching, completed), about
    an item of that type."""
    for breaches in trace.illegal("ITM011"):
        yield from as_found(breaches)
    for kind, roles in HOSTED.items():
        yield from folded(_hosted(trace, kind, roles))


def _hosted(trace: Trace, kind: str, roles: tuple[str, ...]) -> Iterator[Found]:
    """Yield the events of one hosted tool that step back, or that are about an item of another type."""
    came = list(trace.of(*(f"response.{kind}.{role}" for role in roles)))
    types = {item.output_index: item.type for item in trace.items} if came else {}
    reached: dict[object, int] = {}
    for at, event in came:
        index, role = quoted(event.get("output_index")), trace.types[at].rpartition(".")[2]
        step, last = roles.index(role), reached.get(index, -1)
        if step < last or (step == last and role != "partial_image"):
            yield Found(at, f"`{trace.types[at]}` comes after {roles[last]}")
        reached[index] = max(step, last)
        found = types.get(event["output_index"]) if isinstance(event.get("output_index"), int) else None
        if found and found != kind:
            yield Found(at, f"`{trace.types[at]}` is about an item of type {found}")
