"""WIR: HTTP and server-sent events of a server that speaks Responses natively; who leaves is let go by all."""

from __future__ import annotations

import json
from collections.abc import Iterator

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.evidence import TEXT, sdk
from antiphon_conformance.read import mapping, quoted, text
from antiphon_conformance.rule import AnswerNeed, Client, Found, Level, Recording, Schema, folded, rule

_STREAM = (AnswerNeed.RESPONSES, AnswerNeed.STREAM)
_WEB = Client("EventSource of browsers", "the HTML standard has it fail the connection on any other content type")


@rule(
    "WIR001",
    "events-content-type",
    Level.MUST,
    since="1.0",
    sources=(_WEB, Schema("HTML standard, section 9.2 Server-sent events")),
    needs=_STREAM,
    about="answers",
)
def events_content_type(trace: AnswerTrace) -> Iterator[Found]:
    """A stream is answered with status 200 and content type `text/event-stream`, and comes to its end."""
    exchange = trace.exchange
    if exchange.status is None:
        yield Found(None, f"no answer came: {exchange.message}")
    elif exchange.status < 400 and exchange.content_type != "text/event-stream":
        came = exchange.headers.get("content-type", "")
        yield Found(None, f"the status is {exchange.status}, the content type {quoted(came)}")
    elif exchange.status >= 400 and not exchange.refusal:
        yield Found(
            None, f"the status is {exchange.status}: {quoted(exchange.body[:300].decode('utf-8', 'replace'), 160)}"
        )
    elif exchange.failure:
        yield Found(None, f"after {len(trace.values)} events and {exchange.seconds:.0f} s: {exchange.message}")


@rule(
    "WIR002",
    "event-name-equals-type",
    Level.MUST,
    since="1.0",
    sources=(
        Client("EventSource of browsers", "calls the listeners of the name in `event:`"),
        TEXT,
        sdk("reads `type`"),
    ),
    needs=_STREAM,
    about="answers",
)
def event_name_equals_type(trace: AnswerTrace) -> Iterator[Found]:
    """Each message has `event:` with the `type` of its payload, a JSON object in UTF-8; `[DONE]` is not sent."""
    if trace.wire.garbled is not None:
        line, held = trace.wire.garbled
        yield Found(None, f"line {line} is no UTF-8: {quoted(held)}")
    yield from folded(_misnamed(trace))
    if trace.done:
        yield Found(None, "the body ends with `[DONE]`", Level.SHOULD)
    if trace.whole and trace.wire.unfinished:
        yield Found(None, "no blank line follows the last message", Level.SHOULD)


def _misnamed(trace: AnswerTrace) -> Iterator[Found]:
    messages = [one for one in trace.wire.messages if one.data.strip() != "[DONE]"]
    for at, (message, value) in enumerate(zip(messages, trace.values, strict=True)):
        kind = text(mapping(value).get("type"))
        if not isinstance(value, dict):
            yield Found(at, f"the payload is no JSON object: {quoted(value)}")
        elif message.event != kind:
            yield Found(at, f"the message is named {quoted(message.event)}, and its type is {quoted(kind)}")


@rule(
    "WIR003",
    "errors-before-the-stream",
    Level.MUST,
    since="1.0",
    sources=(Client("openai-python", "raises by the status, and reads `error.message` and `error.code` of the body"),),
    needs=(AnswerNeed.RESPONSES,),
    about="answers",
)
def errors_before_the_stream(trace: AnswerTrace) -> Iterator[Found]:
    """What is wrong with a request is told before the stream: a status of 4xx and a JSON body with `error.message`."""
    exchange = trace.exchange
    if exchange.refusal in ("model", "request") and exchange.answered:
        yield Found(
            None, f"a request with a wrong {exchange.refusal} is served, with status {exchange.status}", Level.SHOULD
        )
    if exchange.status is None or exchange.status < 400:
        return
    try:
        error = mapping(mapping(json.loads(exchange.body)).get("error"))
    except (ValueError, RecursionError):
        error = {}
    if not text(error.get("message")):
        shown = quoted(exchange.body[:200].decode("utf-8", "replace"))
        yield Found(None, f"the body has no `error.message`: {shown} (status {exchange.status})")
    elif not isinstance(error.get("code"), str | None):
        yield Found(None, f"`error.code` is {quoted(error['code'])}", Level.SHOULD)
    elif exchange.refusal and exchange.status >= 500:
        yield Found(None, f"the status is {exchange.status}", Level.SHOULD)


@rule(
    "WIR004",
    "who-leaves-is-let-go",
    Level.MUST,
    since="1.0",
    sources=(
        Client("every user who presses stop", "waits behind answers that nobody reads, and pays for them"),
        Recording("wire/llamacpp/cancel_client.sse"),
    ),
    needs=(AnswerNeed.AFTER,),
    about="answers",
)
def who_leaves_is_let_go(trace: AnswerTrace) -> Iterator[Found]:
    """When the client closes the connection the server stops, and serves the next request as if nothing had been."""
    after = trace.exchange.after
    if after is not None and trace.exchange.left and (not after.answered or after.failure):
        said = after.message or f"status {after.status}"
        yield Found(None, f"clients left, and the next request was not served: {said}")
