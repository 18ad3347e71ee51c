"""What goes wrong at a source, in the words of `response.error`: a code, and a message without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from antiphon.errors import SourceError

from .chunk import fields, is_object, many, plain, text_of, whole_characters, whole_number, word


class Fault(NamedTuple):
    """`code` and `message` of `response.error`."""

    code: str
    message: str


SERVER_ERROR = "server_error"
LONGEST = 2000  # characters of a message; what is longer is a page, or an attack on the patterns below
STATUS = ("code", "status", "status_code")  # where an error object has its HTTP status, or a word
# words in what the provider said -> the code; the first row that fits decides
WORDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"rate.?limit|too.?many.?requests|quota|throttl|resource.?exhausted|\b429\b", re.I),
        "rate_limit_exceeded",
    ),
    (
        re.compile(
            r"context.?length|context.?window|context.?size|maximum context|context.?overflow|"
            r"prompt is too long|too many (input |prompt )?tokens|exceeds? the (available|maximum|model)[^.]{0,20} ?context",
            re.I,
        ),
        "context_length_exceeded",
    ),
)
_CREDENTIALS = (
    (re.compile(r"(\w+://)[^\s/@]+@"), r"\1***@"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}"), r"\1 ***"),
    (
        re.compile(
            r"(?i)([\"']?\b(?:api[-_ ]?key|access[-_]?token|token|secret|password|authorization|key)[\"']?\s*[=:]\s*[\"']?)[\w.~+/*-]{6,}"
        ),
        r"\1***",
    ),
    (re.compile(r"\b(?:sk|pk|rk|gsk|xai|hf|r8|AIza|ghp|gho|nvapi)[-_]?[\w*-]{12,}"), "***"),
)


def redact(message: str) -> str:
    """Return `message` without keys, without credentials in URLs, and without halves of characters."""
    message = whole_characters(message)
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]}… ({len(message)} characters)"
    for pattern, instead in _CREDENTIALS:
        message = pattern.sub(instead, message)
    return message


def error_in(chunk: Mapping[str, Any], choice: Mapping[str, Any]) -> Fault | None:
    """Return the error that a chunk reports, or None: beside its choices, in its choice, or as the whole object.

    Sources: recordings groq/pydantic-ai--test-groq-test-tool-use-failed-error-streaming (bare object),
    openrouter/pydantic-ai--test-openrouter-test-openrouter-stream-error (beside choices); groq's Python package, type
    `XGroq` (why a stream was stopped early).
    """
    found = chunk.get("error") or choice.get("error") or fields(chunk.get("x_groq")).get("error")
    if found:
        return fault_of(found)
    if choice or chunk.get("choices"):
        return None
    if chunk.get("object") == "error":
        return fault_of(chunk)
    return None if chunk.get("choices") is not None or chunk.get("usage") else _bare_error(chunk)


def _bare_error(held: Mapping[str, Any]) -> Fault | None:
    """Return the error that an object reports which is no chunk, or None.

    Sources: FastAPI and the servers made with it (`detail`), Cloudflare's API (`errors`), gateways that answer with
    their own status object (`message` beside a code).
    """
    errors = many(held.get("errors"))
    if errors:
        return fault_of(errors[0])
    told = isinstance(held.get("message"), str) and any(held.get(key) for key in (*STATUS, "type"))
    return fault_of(held) if held.get("detail") or told else None


def fault_of(error: Any) -> Fault:
    """Return the fault that an error object or text describes."""
    held = fields(error) if is_object(error) else {"message": text_of(error)}
    inner = held.get("error")
    if inner and "message" not in held:
        return fault_of(inner)
    code = next((value for key in STATUS if (value := held.get(key)) not in (None, "")), None)
    status = next((number for key in STATUS if (number := whole_number(held.get(key))) is not None), None)
    kind = word(held.get("type"))
    said = text_of(held.get("message")) or text_of(held.get("detail")) or word(kind or code)
    message = said or f"the provider reported an error: {str(plain(error))[:200]}"
    named = [name for name in dict.fromkeys((word(code), kind)) if name and name not in message]
    if named:
        message = f"{message} ({', '.join(named)})"
    return Fault(_code(status, f"{word(code)} {kind} {said}"), redact(message))


def fault_of_exception(error: BaseException) -> Fault:
    """Return the fault that an exception of the source describes: its own, else by its HTTP status, then its words."""
    if isinstance(error, SourceError):
        return Fault(error.code, redact(str(error)))
    status = _held_by(error, "status_code")
    if status is None:
        status = _held_by(_held_by(error, "response"), "status_code")
    name, said = type(error).__name__, _words(error)
    code = word(_held_by(error, "code"))
    message = f"{name}: {said}" if said else name
    return Fault(_code(whole_number(status), f"{code} {name} {said}"), redact(message))


def _held_by(holder: Any, name: str) -> Any:
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 -- of others, and what it says besides still counts
        return None


def _words(error: BaseException) -> str:
    try:
        return str(error).strip()
    except Exception:  # noqa: BLE001 -- an exception of others that cannot be told is still one
        return ""


def _code(status: int | None, said: str) -> str:
    if status == 429:
        return "rate_limit_exceeded"
    for pattern, code in WORDS:
        if pattern.search(said[:LONGEST]):
            return code
    return "invalid_prompt" if status is not None and 400 <= status < 500 else SERVER_ERROR
