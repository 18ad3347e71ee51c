"""CHT: how a chat backend refuses a request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from antiphon_conformance.chunks import AnswerTrace
from antiphon_conformance.evidence import LLAMACPP_FAULT, LLAMACPP_OVERFLOW
from antiphon_conformance.read import Json, mapping, quoted, text
from antiphon_conformance.rule import AnswerNeed, Client, Found, Level, Recording, Schema, rule

_ASKED = {
    "model": "a model that does not exist",
    "request": "what is no request",
    "length": "a prompt that is too long",
}
_ERRORS = Schema("OpenAI's published description, ErrorResponse: error with type, message, param, code")


@rule(
    "CHT050",
    "errors-have-the-known-shape",
    Level.SHOULD,
    since="1.0",
    sources=(_ERRORS, Client("openai-python", "APIError has no code, param and type where the body is another")),
    needs=(AnswerNeed.CHAT,),
    broken_by=(LLAMACPP_OVERFLOW, LLAMACPP_FAULT),
    about="answers",
)
def errors_have_the_known_shape(trace: AnswerTrace) -> Iterator[Found]:
    """An error is JSON, `{"error": {…}}` with a `message` and a `type` that are strings, and `code` and `param` that
    are strings or null; so is one within a stream."""
    exchange = trace.exchange
    if exchange.status is not None and exchange.status >= 400:
        problem = _wrong_body(exchange.body, exchange.content_type)
        if problem:
            yield Found(None, f"{problem} (status {exchange.status})")
    for at, chunk in trace.errors[:1]:
        problem = _wrong_error(chunk.get("error"))
        if problem:
            yield Found(at, problem)


def _wrong_body(body: bytes, content_type: str) -> str:
    """Return what is wrong with the body of an error, or ""."""
    try:
        held: Any = json.loads(body)
    except (ValueError, RecursionError):
        return f"the error is no JSON: {quoted(body[:200].decode('utf-8', 'replace'))}"
    if content_type != "application/json":
        return f"the error's content type is {quoted(content_type)}"
    return _wrong_error(mapping(held).get("error"))


def _wrong_error(error: object) -> str:
    """Return what is wrong with an error object, or ""."""
    if not isinstance(error, dict):
        return f"`error` is {quoted(error)}"
    held: Json = mapping(error)  # pyright: ignore[reportUnknownArgumentType]
    wrong = [f"`{key}` is {quoted(held.get(key))}" for key in ("message", "type") if not text(held.get(key))]
    wrong += [
        f"`{key}` is {quoted(held[key])}" for key in ("code", "param") if not isinstance(held.get(key), str | None)
    ]
    return "; ".join(wrong)


@rule(
    "CHT051",
    "bad-requests-are-refused",
    Level.SHOULD,
    since="1.0",
    sources=(Schema("API reference, error codes: 400 for a malformed request, 404 for a model that does not exist"),),
    needs=(AnswerNeed.CHAT,),
    broken_by=(Recording("wire/llamacpp/err_bad_model.sse"),),
    about="answers",
)
def bad_requests_are_refused(trace: AnswerTrace) -> Iterator[Found]:
    """A model that does not exist, and what is no request, are refused with a status of 4xx before any stream."""
    exchange = trace.exchange
    if not exchange.refusal:
        return
    asked = _ASKED[exchange.refusal]
    if exchange.status is None:
        yield Found(None, f"{asked} got no answer: {exchange.message}")
    elif exchange.status >= 500:
        yield Found(None, f"{asked} is answered with status {exchange.status}")
    elif exchange.answered and exchange.refusal == "length" and not trace.whole:
        yield Found(None, f"{asked} got a stream that does not come to its end")
    elif exchange.answered and exchange.refusal != "length":
        yield Found(None, f"{asked} is served, with status {exchange.status}")


@rule(
    "CHT052",
    "overflow-has-its-code",
    Level.SHOULD,
    since="1.0",
    sources=(
        Client("Codex", "stops trying again at `context_length_exceeded` alone"),
        Schema("API reference, error codes"),
    ),
    needs=(AnswerNeed.CHAT, AnswerNeed.REFUSAL),
    broken_by=(LLAMACPP_OVERFLOW,),
    about="answers",
)
def overflow_has_its_code(trace: AnswerTrace) -> Iterator[Found]:
    """The error for a prompt that is too long has the code "context_length_exceeded"."""
    exchange = trace.exchange
    if exchange.refusal != "length" or exchange.status is None or exchange.status >= 500:
        return
    try:
        error = mapping(mapping(json.loads(exchange.body)).get("error"))
    except (ValueError, RecursionError):
        error = {}
    if error.get("code") != "context_length_exceeded":
        yield Found(None, f"`code` is {quoted(error.get('code'))}, and `type` {quoted(error.get('type'))}")
