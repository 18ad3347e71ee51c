"""CAL: function calls and custom tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator

from antiphon_conformance.events import FAMILIES
from antiphon_conformance.evidence import CALL, CUSTOM, CUT_CALL, NO_ARGUMENTS, PARALLEL, REASONING_CALL, sdk, types
from antiphon_conformance.read import mapping, quoted, text
from antiphon_conformance.rule import Client, Found, Level, as_found, folded, rule
from antiphon_conformance.trace import Items, JsonKind, Trace
from antiphon_conformance.walk import Item, Part

_DECODER = json.JSONDecoder()


@rule(
    "CAL001",
    "arguments-done-is-the-deltas",
    Level.MUST,
    since="1.0",
    sources=(CALL, PARALLEL, CUSTOM),
    alone=True,
)
def arguments_done_is_the_deltas(block: Items) -> Iterator[Found]:
    """A call has one `function_call_arguments.done` (or `custom_tool_call_input.done`) before it is done, with the
    deltas joined; and the done item has the same."""
    told: set[int] = set()
    for breaches in block.illegal("CAL001"):
        told.add(breaches[0].about)
        yield from as_found(breaches)
    for item, part in block.calls:
        if part is not None and part.whole and part.done_text is not None and item.first_at not in told:
            yield from _unlike(item, part)


def _unlike(item: Item, part: Part) -> Iterator[Found]:
    """Yield where the deltas, the done event and the done item differ, once."""
    joined, done = part.joined, part.done_text
    held = mapping(item.done).get(FAMILIES[part.family].text)
    if joined != done:
        yield Found(part.text_done_at, f"the deltas of {item.label()} are {quoted(joined)}, its done is {quoted(done)}")
    elif item.done is not None and held != done:
        yield Found(item.done_at, f"{item.label()} is done with {quoted(held)}, where {quoted(done)} came")


@rule(
    "CAL002",
    "name-and-call-id-known-at-added",
    Level.MUST,
    since="1.0",
    sources=(CALL, PARALLEL, CUSTOM),
    alone=True,
)
def name_and_call_id_known_at_added(block: Items) -> Iterator[Found]:
    """An added call has a `name` and a `call_id`, neither of them empty."""
    for item, _ in block.calls:
        added = item.added
        if added is None or (text(added.get("name")) and text(added.get("call_id"))):
            continue
        missing = " and ".join(key for key in ("name", "call_id") if not text(added.get(key)))
        yield Found(item.added_at, f"{item.label()} is added without {missing}")


@rule(
    "CAL003",
    "calls-stay-apart",
    Level.MUST,
    since="1.0",
    sources=(PARALLEL, sdk("adds each delta to the call at its output_index, so that mixed calls cannot be parsed")),
    alone=True,
)
def calls_stay_apart(block: Items) -> Iterator[Found]:
    """A fragment of arguments names one call by index and id, and no call holds the arguments of two."""
    trace = block.trace
    for item, part in block.calls:
        if item.misfits:
            yield from folded(Found(at, message) for at, code, message in item.misfits if code == "CAL003")
        arguments = text(item.said.get("arguments")) or (part.joined if part is not None else "")
        several = item.type == "function_call" and _json(trace, arguments) == "several"
        if several and not _sent_so(trace, arguments):
            yield Found(
                item.done_at or item.first_at, f"{item.label()} holds more than one JSON text: {quoted(arguments)}"
            )


def _sent_so(trace: Trace, arguments: str) -> bool:
    """Whether the chunks have one call with just these arguments, or leave open which call has what."""
    return trace.said is not None and (
        trace.said.unclear or any(call.arguments == arguments for call in trace.said.calls)
    )


@rule(
    "CAL004",
    "arguments-parse",
    Level.SHOULD,
    since="1.0",
    sources=(CALL, PARALLEL, types("ResponseFunctionToolCall.arguments")),
    alone=True,
)
def arguments_parse(block: Items) -> Iterator[Found]:
    """The arguments of a completed function call are JSON."""
    for item, _ in block.calls:
        done = mapping(item.done)
        arguments = text(done.get("arguments"))
        if done.get("status") == "completed" and arguments and _json(block.trace, arguments) == "none":
            yield Found(item.done_at, f"the arguments of {item.label()} are no JSON: {quoted(arguments)}")


@rule(
    "CAL005",
    "no-arguments-is-an-empty-object",
    Level.MUST,
    since="1.0",
    sources=(NO_ARGUMENTS, Client("openai-agents", "tool.invoke parses the arguments as a JSON object")),
    alone=True,
)
def no_arguments_is_an_empty_object(block: Items) -> Iterator[Found]:
    """A completed function call without arguments has the arguments `{}`."""
    for item, _ in block.calls:
        done = mapping(item.done)
        if done.get("status") == "completed" and done.get("arguments") == "":
            yield Found(item.done_at, f"{item.label()} is completed with empty arguments")


@rule(
    "CAL006",
    "arguments-in-items-of-their-kind",
    Level.MUST,
    since="1.0",
    sources=(CALL, CUSTOM, CUT_CALL, REASONING_CALL),
    alone=True,
)
def arguments_in_items_of_their_kind(block: Items) -> Iterator[Found]:
    """`function_call_arguments.*` is about a `function_call`, `custom_tool_call_input.*` about a `custom_tool_call`."""
    for item, part in block.parts:
        family = FAMILIES.get(part.family)
        if family is not None and family.table == "bare" and item.type and item.type not in family.items:
            yield Found(part.first_at, f"{part.family} is about {item.label()}")


def _json(trace: Trace, arguments: str) -> JsonKind:
    """Return what `_read` does; no text of a stream is read twice."""
    known = trace.json_kinds.get(arguments)
    if known is None:
        known = trace.json_kinds[arguments] = _read(arguments)
    return known


def _read(arguments: str) -> JsonKind:
    """Return whether a text is one JSON value, several one after the other, or not JSON."""
    bare = arguments.strip()
    try:
        _, end = _DECODER.raw_decode(bare)
    except (ValueError, RecursionError):
        return "none"
    rest = bare[end:].lstrip()
    return "one" if not rest else "several" if rest[0] in '{["' else "none"
