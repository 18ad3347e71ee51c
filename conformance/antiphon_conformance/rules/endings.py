"""END: how the response ends."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.ending import Ending, ending_of
from antiphon_conformance.events import OWN_ITEMS
from antiphon_conformance.evidence import (
    CHAT_ERROR,
    CHAT_LENGTH,
    CHAT_TEXT,
    CODEX,
    CUT_CALL,
    CUT_REASONING,
    CUT_TEXT,
    ERROR,
    MIXTURE,
    TEXT,
    sdk,
)
from antiphon_conformance.read import Json, listed, mapping, quoted, text
from antiphon_conformance.rule import Client, Found, Level, Need, as_found, folded, rule
from antiphon_conformance.trace import Snapshot, Trace
from antiphon_conformance.walk import Item

from .deltas import same_texts

INCOMPLETE = {"END001": "max_output_tokens", "END002": "content_filter"}
# What differs between a done item and the same item in the terminal output, in 17 recordings.
RESEALED = ("encrypted_content", "fingerprint")
WITH_STATUS = frozenset(OWN_ITEMS) - {"reasoning"}
CLIENTS = Client("14 clients tried", "take a failure without a nested `error` event for success")


def _unlike(trace: Trace, ending: Ending) -> Iterator[Found]:
    """Yield where the terminal event is not the one that is due."""
    terminal = trace.terminal
    if terminal is None or (ending.or_failed and terminal.type == "response.failed"):
        return
    reason = text(mapping(terminal.response.get("incomplete_details")).get("reason"))
    if terminal.type != ending.terminal:
        yield Found(terminal.at, f"`{terminal.type}`, though {ending.why}: `{ending.terminal}` is due")
    elif ending.reason and reason != ending.reason:
        yield Found(terminal.at, f"incomplete by {quoted(reason)}, though {ending.why}: {ending.reason} is due")


@rule(
    "END001",
    "length-is-incomplete",
    Level.MUST,
    since="1.0",
    sources=(CUT_TEXT, CUT_CALL, CHAT_LENGTH),
    needs=(Need.CHUNKS,),
)
def length_is_incomplete(trace: Trace) -> Iterator[Found]:
    """A finish by `length` or `max_tokens` is `response.incomplete` by `max_output_tokens`."""
    ending = ending_of(trace.said) if trace.said is not None else None
    if ending is not None and ending.reason == INCOMPLETE["END001"]:
        yield from _unlike(trace, ending)


@rule(
    "END002",
    "content-filter-is-incomplete",
    Level.MUST,
    since="1.0",
    sources=(CUT_TEXT, Client("openai-agents", "reads incomplete_details.reason")),
    needs=(Need.CHUNKS,),
)
def content_filter_is_incomplete(trace: Trace) -> Iterator[Found]:
    """A finish by `content_filter` or `safety` is `response.incomplete` by `content_filter`."""
    ending = ending_of(trace.said) if trace.said is not None else None
    if ending is not None and ending.reason == INCOMPLETE["END002"]:
        yield from _unlike(trace, ending)


@rule("END003", "error-is-failed", Level.MUST, since="1.0", sources=(ERROR, CHAT_ERROR, CLIENTS))
def error_is_failed(trace: Trace) -> Iterator[Found]:
    """An error is a nested `error` event and `response.failed`, each with a code and a message; an error in the chunks
    ends the response so."""
    for at, event in trace.of("error"):
        yield from _untold(at, "the `error` event", event.get("error"))
    terminal = trace.terminal
    if terminal is not None and terminal.type == "response.failed" and not _other_status(terminal):
        yield from _untold(terminal.at, "the failed response", terminal.response.get("error"))
    ending = ending_of(trace.said) if trace.said is not None else None
    if ending is not None and ending.fault:
        yield from _unlike(trace, ending)


def _other_status(terminal: Snapshot | None) -> bool:
    """Whether a terminal event has the status of another, as END008 says."""
    return terminal is not None and text(terminal.response.get("status")) in {"completed", "incomplete", "failed"} - {
        terminal.type.removeprefix("response.")
    }


def _untold(at: int, where: str, error: object) -> Iterator[Found]:
    """Yield where an error says too little."""
    missing = [key for key in ("code", "message") if not text(mapping(error).get(key))]
    if missing:
        yield Found(at, f"{where} has no error.{' and no error.'.join(missing)}")


@rule("END004", "statuses-agree-with-the-ending", Level.MUST, since="1.0", sources=(CUT_TEXT, CUT_CALL, MIXTURE))
def statuses_agree_with_the_ending(trace: Trace) -> Iterator[Found]:
    """No item of a completed response is incomplete; in any other, all items are incomplete from the first one on."""
    if trace.terminal is None:
        return
    told = [(item, mapping(item.done).get("status")) for item in trace.items if item.type in OWN_ITEMS]
    first: Item | None = None
    for item, status in told:
        if status == "incomplete" and trace.terminal.type == "response.completed":
            yield Found(item.done_at, f"{item.label()} is incomplete in a completed response")
            return
        if first is not None and status == "completed":
            yield Found(item.done_at, f"{item.label()} is completed after {first.label()}, which is incomplete")
            return
        first = first or (item if status == "incomplete" else None)


@rule(
    "END005",
    "output-is-the-done-items",
    Level.MUST,
    since="1.0",
    sources=(TEXT, MIXTURE, sdk('raises "Completed response output identity changed."')),
    broken_by=(CODEX,),
)
def output_is_the_done_items(trace: Trace) -> Iterator[Found]:
    """`response.output` of the terminal event is the done items in order of index, equal field by field (recordings
    excuse `encrypted_content` and `fingerprint`)."""
    terminal = trace.terminal
    if terminal is None or not terminal.response:
        return
    due = sorted((item for item in trace.items if item.real), key=_place)
    output = [mapping(one) for one in listed(terminal.response.get("output"))]
    if trace.resumed:
        output = output[len(output) - len(due) :] if len(output) > len(due) else output
    if len(output) != len(due):
        yield Found(terminal.at, f"the output has {len(output)} items, {len(due)} came")
        return
    # Most are just the same, which needs no look at each field.
    others = [(item, held) for item, held in zip(due, output, strict=True) if item.done != held]
    yield from folded(found for item, held in others for found in _changed(terminal, item, held))


def _place(item: Item) -> tuple[int, int]:
    return (item.output_index if item.output_index is not None else item.first_at, item.first_at)


def _changed(terminal: Snapshot, item: Item, held: Json) -> Iterator[Found]:
    """Yield where an item in the output is not as it was done; an item that was not done is another rule's."""
    if item.done is None:
        return
    keys = sorted({*item.done, *held} - set(RESEALED))
    differing = [key for key in keys if item.done.get(key) != held.get(key) or (key in item.done) != (key in held)]
    if differing and not (_suspect(item) and _as_it_came(item, held)):
        yield Found(terminal.at, f"{item.label()} in the output has another {', '.join(differing)} than when done")


def _suspect(item: Item) -> bool:
    """Whether the done item is not what came, as DLT003, DLT004, PRT005, CAL001 and ITM005 say, or has a status that
    is none, as ITM010 says."""
    return item.done is not None and not _as_it_came(item, item.done)


def _as_it_came(item: Item, held: Json) -> bool:
    """Whether an item has the identity it was added with, and the texts and annotations that came."""
    added = mapping(item.added)
    same = all(added.get(key, held.get(key)) == held.get(key) for key in ("id", "type", "call_id", "name"))
    ended = item.type not in WITH_STATUS or held.get("status") in ("completed", "incomplete")
    return same and ended and same_texts(item, held)


@rule("END006", "incomplete-says-why", Level.MUST, since="1.0", sources=(CUT_TEXT, CUT_CALL, CUT_REASONING))
def incomplete_says_why(trace: Trace) -> Iterator[Found]:
    """`incomplete_details.reason` of an incomplete response is `max_output_tokens` or `content_filter`."""
    for snapshot in trace.snapshots:
        reason = mapping(snapshot.response.get("incomplete_details")).get("reason")
        if snapshot.type == "response.incomplete" and not _other_status(snapshot) and reason not in INCOMPLETE.values():
            yield Found(snapshot.at, f"incomplete_details.reason is {quoted(reason)}")


@rule("END007", "error-before-failed", Level.MUST, since="1.0", sources=(ERROR, CLIENTS))
def error_before_failed(trace: Trace) -> Iterator[Found]:
    """`response.failed` comes right after an `error` event, and has its code and message."""
    terminal = trace.terminal
    if _other_status(terminal):
        return
    for breaches in trace.illegal("END007"):
        yield from as_found(breaches)
    told = [mapping(event.get("error")) for _, event in trace.of("error")]
    if terminal is not None and terminal.type == "response.failed" and told:
        error = mapping(terminal.response.get("error"))
        differing = [key for key in ("code", "message") if error.get(key) and error[key] != told[-1].get(key)]
        if differing and told[-1].get("code") and told[-1].get("message"):
            yield Found(terminal.at, f"error.{' and error.'.join(differing)} is not as in the `error` event")


@rule("END008", "status-is-the-event", Level.MUST, since="1.0", sources=(TEXT, CUT_TEXT, ERROR))
def status_is_the_event(trace: Trace) -> Iterator[Found]:
    """The response in a terminal event has the event's own status, an `error` only where it failed,
    `incomplete_details` only where it is incomplete, and `completed_at` only where it is completed."""
    terminal = trace.terminal
    if terminal is None or not terminal.response:
        return
    status = terminal.type.removeprefix("response.")
    only = {"error": "failed", "incomplete_details": "incomplete", "completed_at": "completed"}
    wrong = [key for key, when in only.items() if terminal.response.get(key) is not None and status != when]
    if terminal.response.get("status") != status:
        yield Found(terminal.at, f"`{terminal.type}` has status {quoted(terminal.response.get('status'))}")
    elif wrong:
        yield Found(terminal.at, f"`{terminal.type}` has {' and '.join(wrong)}")


@rule(
    "END009",
    "ends-as-the-chunks-end",
    Level.MUST,
    since="1.0",
    sources=(CHAT_TEXT, CHAT_LENGTH, CLIENTS),
    needs=(Need.CHUNKS,),
)
def ends_as_the_chunks_end(trace: Trace) -> Iterator[Found]:
    """A finish by any other word is `response.completed`; without a finish, a response is completed only where
    `[DONE]` or the usage came last, and has failed otherwise."""
    ending = ending_of(trace.said) if trace.said is not None else None
    if ending is not None and not ending.reason and not ending.fault:
        yield from _unlike(trace, ending)


@rule("END010", "error-event-is-flat-too", Level.SHOULD, since="1.0", sources=(ERROR, CLIENTS))
def error_event_is_flat_too(trace: Trace) -> Iterator[Found]:
    """An `error` event has `code`, `message` and `param` also beside the nested `error`, as the published types say,
    and they say the same."""
    for at, event in trace.of("error"):
        nested = mapping(event.get("error"))
        missing = [key for key in ("code", "message", "param") if key not in event]
        differing = [key for key in ("code", "message", "param") if key in event and event[key] != nested.get(key)]
        if missing:
            yield Found(at, f"the `error` event has no {', '.join(missing)} of its own")
        elif differing and text(nested.get("code")) and text(nested.get("message")):
            yield Found(at, f"{', '.join(differing)} of the `error` event is not as in its nested `error`")
