"""CHT: the answer as a whole: whether it is a stream of chunks, and whether it comes to its end."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.evidence import (
    CHAT_TEXT,
    LLAMACPP_FAULT,
    MALFORMED,
    stream_client,
)
from antiphon_conformance.read import quoted
from antiphon_conformance.rule import Client, Found, Level, Schema, folded, rule

from .chunks import CHUNKS, STREAM, WHOLE

_SSE = Schema("HTML standard, section 9.2 Server-sent events")
_WEB = Client("EventSource of browsers", "the HTML standard has it fail the connection on any other content type")


@rule(
    "CHT001",
    "answered-with-a-stream",
    Level.MUST,
    since="1.0",
    sources=(
        stream_client("any status but 2xx raises APIStatusError; a body without chunks is an empty answer"),
        CHAT_TEXT,
    ),
    needs=STREAM,
    about="answers",
)
def answered_with_a_stream(trace: AnswerTrace) -> Iterator[Found]:
    """A request that asks for a stream and is right is answered with a status of 2xx and at least one chunk."""
    exchange = trace.exchange
    if exchange.refusal or trace.chunks or trace.errors:
        return
    if exchange.status is None:
        yield Found(None, f"no answer came: {exchange.message}")
    elif not exchange.answered:
        where = f" to {quoted(exchange.headers['location'], 100)}" if "location" in exchange.headers else ""
        yield Found(None, f"the status is {exchange.status}{where}: {_begun(exchange.body)}")
    else:
        ended = f" before the answer ended: {exchange.message}" if exchange.failure else ""
        yield Found(
            None, f"no chunk came{ended}; the body is {exchange.content_type or 'untyped'}: {_begun(exchange.body)}"
        )


@rule(
    "CHT002",
    "chat-content-type",
    Level.MUST,
    since="1.0",
    sources=(_WEB, _SSE),
    needs=STREAM,
    about="answers",
)
def chat_content_type(trace: AnswerTrace) -> Iterator[Found]:
    """The content type of a stream is `text/event-stream`."""
    exchange = trace.exchange
    if exchange.answered and exchange.content_type != "text/event-stream":
        yield Found(None, f"the content type is {quoted(exchange.headers.get('content-type', ''))}")


@rule(
    "CHT003",
    "body-comes-to-its-end",
    Level.MUST,
    since="1.0",
    sources=(
        stream_client("a body that breaks off raises out of the loop over the chunks"),
        CHAT_TEXT,
    ),
    needs=STREAM,
    about="answers",
)
def body_comes_to_its_end(trace: AnswerTrace) -> Iterator[Found]:
    """The body comes to its end by itself: the connection does not break, nor fall silent, and it is not endless."""
    exchange = trace.exchange
    if exchange.answered and exchange.failure and (trace.chunks or trace.errors):
        yield Found(None, f"after {len(trace.values)} chunks and {exchange.seconds:.0f} s: {exchange.message}")


@rule(
    "CHT004",
    "payloads-are-objects",
    Level.MUST,
    since="1.0",
    sources=(
        stream_client("`Stream` decodes each payload with json.loads: JSONDecodeError; each line as UTF-8 before that"),
        CHAT_TEXT,
    ),
    needs=CHUNKS,
    broken_by=(MALFORMED,),
    about="answers",
)
def payloads_are_objects(trace: AnswerTrace) -> Iterator[Found]:
    """Each payload but `[DONE]` is one JSON object, in UTF-8."""
    if trace.wire.garbled is not None:
        line, held = trace.wire.garbled
        yield Found(None, f"line {line} is no UTF-8: {quoted(held)}")
    cut = len(trace.values) - 1 if not trace.whole else None  # what breaks off breaks off anywhere
    yield from folded(
        Found(at, f"the payload is no JSON object: {quoted(payload)}") for at, payload in trace.unreadable if at != cut
    )


@rule(
    "CHT005",
    "framed-as-messages",
    Level.SHOULD,
    since="1.0",
    sources=(_SSE,),
    needs=CHUNKS,
    about="answers",
)
def framed_as_messages(trace: AnswerTrace) -> Iterator[Found]:
    """Each payload is a message of its own: `data:` lines without an `event:` name, and a blank line after it, also
    after the last."""
    yield from folded(Found(None, f"line {line} has no field: {quoted(held)}") for line, held in trace.wire.odd)
    named = [one for one in trace.wire.messages if one.event and not (one.event == "error" and trace.errors)]
    yield from folded(Found(None, f"line {one.line}: the message is named {quoted(one.event)}") for one in named)
    if trace.whole and trace.wire.unfinished:
        yield Found(None, "no blank line follows the last message")


@rule(
    "CHT006",
    "done-comes-last",
    Level.SHOULD,
    since="1.0",
    sources=(Schema("API reference, chat completions, `stream`: terminated by a data: [DONE] message"),),
    needs=WHOLE,
    about="answers",
)
def done_comes_last(trace: AnswerTrace) -> Iterator[Found]:
    """`data: [DONE]` comes once, after the last chunk."""
    if not trace.done and not trace.cut:
        yield Found(None, "the body ends without `data: [DONE]`")
    elif trace.done and trace.after_done:
        yield Found(len(trace.values) - trace.after_done, f"{trace.after_done} payloads come after `[DONE]`")


@rule(
    "CHT007",
    "no-error-within",
    Level.MUST,
    since="1.0",
    sources=(stream_client("`Stream` raises APIError for a payload with `error`"), CHAT_TEXT),
    needs=STREAM,
    broken_by=(LLAMACPP_FAULT,),
    about="answers",
)
def no_error_within(trace: AnswerTrace) -> Iterator[Found]:
    """A stream that began reports no error; a request that cannot be served is refused with a status before it."""
    for at, chunk in trace.errors[:1]:
        yield Found(at, f"the stream reports an error: {quoted(chunk.get('error') or chunk, 200)}")


def _begun(body: bytes) -> str:
    """Return how a body begins, as a message shows it."""
    shown = body[:400].decode("utf-8", "replace").strip()
    return quoted(shown, 160) if shown else "the body is empty"
