"""SCH: the published schemas. The libraries that have them are imported when a rule runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from antiphon_conformance.events import NEWER, OWN_ITEMS
from antiphon_conformance.evidence import GROK, TEXT, sdk, types
from antiphon_conformance.read import Json, listed, mapping, mappings, quoted, text
from antiphon_conformance.rule import Found, Level, Need, Recording, Schema, folded, rule
from antiphon_conformance.trace import Trace

from .lightened import lightened, open_lightened
from .published import event_fits, event_types, item_types, open_response_fits

if TYPE_CHECKING:
    from pydantic import BaseModel

# class of an item, field -> what RSN004, ITM010, CAL002 and ITM005 say of it
_ELSEWHERE = {
    *((name, "summary") for name in ("ResponseReasoningItem", "ReasoningBody")),
    *((name, "status") for name in ("ResponseOutputMessage", "Message", "FunctionCall")),
    *((name, "name") for name in ("ResponseFunctionToolCall", "ResponseCustomToolCall", "FunctionCall")),
    *((name, "call_id") for name in ("ResponseFunctionToolCall", "ResponseCustomToolCall", "FunctionCall")),
}

# An item that validates.
_FITTING: Json = {"type": "reasoning", "id": "rs_1", "summary": []}

OPEN_RESPONSES = Schema("Open Responses, as the package openresponses-types has it")


@rule(
    "SCH001",
    "events-validate",
    Level.MUST,
    since="1.0",
    sources=(TEXT, sdk("reads fields by attribute, so that a missing one raises"), types("ResponseStreamEvent")),
    broken_by=(GROK,),
)
def events_validate(trace: Trace) -> Iterator[Found]:
    """Every event is an object with a `type`, and validates strictly against openai's type for it (recordings excuse
    any string as error code, usage without `cache_write_tokens`, an `error` that is only nested, and what hosted
    tools' items hold)."""
    told: set[str] = set()  # an item's fault comes again in the terminal output
    numbered = trace.numbered
    judged = [*trace.plain] if numbered else [{"sequence_number": 0, **event} for event in trace.events]
    deep = trace.has_long
    for at in trace.holding if deep else [snapshot.at for snapshot in trace.snapshots]:
        judged[at] = lightened(judged[at] or {}, deep=deep)
    for at in [at for at, fit in enumerate(map(event_fits(), judged)) if not fit]:
        kind, event = trace.types[at], trace.plain[at]
        if event is None:
            yield Found(at, f"the event is no object: {quoted(trace.raw[at])}")
        elif not kind:
            yield Found(at, f"the event has no type: {quoted(event.get('type'))}")
        else:
            wrong = {_bare(fault): fault for fault in _faults(event, numbered)}
            new = [fault for bare, fault in wrong.items() if bare not in told]
            told.update(wrong)
            if new:
                yield Found(at, f"`{kind}`: {'; '.join(new[:3])}")


@rule("SCH002", "known-types", Level.SHOULD, since="1.0", sources=(types("ResponseStreamEvent"),))
def known_types(trace: Trace) -> Iterator[Found]:
    """The type of every event, and of every item, is one that openai's types know, or one of a list of newer ones."""
    seen: set[str] = set()
    for kind, places in trace.kinds.items():
        if kind and kind not in event_types() and kind not in NEWER:
            seen.add(kind)
            yield Found(places[0], f"`{kind}` is no known type of event")
    for item in trace.items:
        if item.type and item.type not in seen and item.type not in item_types():
            seen.add(item.type)
            yield Found(item.first_at, f"{quoted(item.type)} is no known type of item")


@rule(
    "SCH003",
    "snapshots-are-whole",
    Level.SHOULD,
    since="1.0",
    sources=(OPEN_RESPONSES,),
    needs=(Need.OPEN_RESPONSES,),
    broken_by=(Recording("responses/openai/ddtrace--v1-response-function-call-streamed.jsonl"),),
)
def snapshots_are_whole(trace: Trace) -> Iterator[Found]:
    """Every response snapshot has all the keys that the Open Responses schema requires, and validates against it, and
    so do its items of the types that this schema has."""
    yield from folded(_not_open(trace))


def _not_open(trace: Trace) -> Iterator[Found]:
    from openresponses_types import ResponseResource

    deep = trace.has_long
    for snapshot in trace.snapshots:
        judged = open_lightened(_judged(snapshot.response), deep=deep)
        if open_response_fits()(judged):
            continue
        errors = _branched(_raw_errors(ResponseResource, judged, strict=False)) if snapshot.response else []
        told = {_field(fault) for fault in _faults(trace.events[snapshot.at], trace.numbered)}
        wrong = [_worded(one) for one in errors if _field(_worded(one)) not in told and _counts(one)]
        if wrong:
            yield Found(snapshot.at, f"the response in `{snapshot.type}`: {'; '.join(wrong[:4])}")


def _counts(error: Mapping[str, Any]) -> bool:
    """Whether no other rule says the same: each says what a key holds, and this one that it is there."""
    return (error["type"] == "missing" and len(error["loc"]) == 1) or not _elsewhere(error["loc"])


def _judged(response: Json) -> Json:
    """Return a response without what the package does not know: hosted tools, their items, a format's schema."""
    judged = dict(response)
    if isinstance(response.get("output"), list):
        judged["output"] = [one for one in mappings(response["output"]) if _in_open_schema(one)]
    if isinstance(response.get("tools"), list):
        judged["tools"] = [one for one in mappings(response["tools"]) if one.get("type") == "function"]
    form = mapping(mapping(response.get("text")).get("format"))
    if form.get("type") == "json_schema":
        judged["text"] = {**mapping(response["text"]), "format": {**form, "schema": None}}
    return judged


def _in_open_schema(item: Json) -> bool:
    return item.get("type") in ("message", "function_call", "reasoning") and "caller" not in item


# Validating, and which errors count


def _faults(event: Json, numbered: bool) -> Iterator[str]:
    """Yield what is wrong with an event, but for what recordings excuse; nothing for a type that is not known."""
    model = event_types().get(text(event.get("type")))
    excused = model is None or (_holds_hosted(event) and event_fits()({**event, "item": _FITTING}))
    errors = _raw_errors(model, lightened(event, deep=True), strict=True) if model is not None and not excused else []
    if errors:
        for error in _branched(errors):
            if not _excused(event, error, numbered):
                yield _worded(error)


def _holds_hosted(event: Json) -> bool:
    """Whether an event is about the item of a hosted tool: what is wrong in it is excused."""
    return (text(mapping(event.get("item")).get("type")) or "message") not in OWN_ITEMS


def _raw_errors(model: type[BaseModel], value: Json, *, strict: bool) -> list[Mapping[str, Any]]:
    from pydantic import ValidationError

    try:
        model.model_validate(value, strict=strict)
    except ValidationError as error:
        return list(error.errors(include_url=False, include_context=False))
    return []


def _branched(errors: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the errors without those of a union's other branches: the ones whose `type` does not fit."""
    others = [error["loc"][:-1] for error in errors if error["type"] == "literal_error" and error["loc"][-1] == "type"]
    branches = {loc for loc in others if loc}
    left = [error for error in errors if not any(error["loc"][:n] in branches for n in range(len(error["loc"])))]
    return left or errors[:1]


def _excused(event: Json, error: Mapping[str, Any], numbered: bool) -> bool:
    loc: tuple[str | int, ...] = error["loc"]
    if loc[-1] == "cache_write_tokens" or (loc == ("sequence_number",) and not numbered):
        return bool(error["type"] == "missing")
    if loc == ("response", "error", "code"):
        return isinstance(error["input"], str)
    if event.get("type") == "error" and loc[0] in ("code", "message", "param"):
        return error["type"] == "missing" and bool(mapping(event.get("error")))
    return _elsewhere(loc) or _in_hosted(event, loc)


def _elsewhere(loc: tuple[str | int, ...]) -> bool:
    """Whether another rule, as strong, says the same."""
    inner = list(loc)[1 if loc[:1] == ("response",) and len(loc) > 1 else 0 :]
    if inner[0] in ("usage", "error", "incomplete_details"):
        return True  # USE003, END003, END006
    branch, field = (inner[-2], inner[-1]) if len(inner) > 2 else ("", "")
    return inner[0] in ("item", "output") and (branch, field) in _ELSEWHERE


def _in_hosted(event: Json, loc: tuple[Any, ...]) -> bool:
    """Whether an error is inside the item of a hosted tool, or of a type that is newer."""
    item: object = None
    if loc[0] == "item":
        item = event.get("item")
    elif loc[:2] == ("response", "output") and len(loc) > 2 and isinstance(loc[2], int):
        item = listed(mapping(event.get("response")).get("output"))[loc[2]]
    kind = text(mapping(item).get("type"))
    return bool(kind) and kind not in OWN_ITEMS


def _worded(error: Mapping[str, Any]) -> str:
    """Return an error as a message has it: the field, without places in lists and names of classes, and what is wrong."""
    path = [part for part in error["loc"] if isinstance(part, str) and part[:1].islower() and "[" not in part]
    return f"{'.'.join(path)}: {error['msg']}"


def _field(fault: str) -> str:
    """Return the response's own field that a worded error is in: what SCH001 says of it, SCH003 need not."""
    return re.split(r"[.:]", fault.removeprefix("response."), maxsplit=1)[0]


def _bare(fault: str) -> str:
    """Return a worded error without whether it is in an item or in the output."""
    return fault.removeprefix("response.output.").removeprefix("item.")
