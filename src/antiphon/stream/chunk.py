"""Reads one chunk: the only place that copes with missing, null or ill-typed fields.

A chunk may be an object of an SDK (openai, LiteLLM, any-llm: anything with fields), a mapping, or JSON bytes. All are
read as mappings. The usual chunk, which holds one piece of text, of reasoning or of arguments and nothing else that
counts, is recognised without that: `plain_object` and `plain_json` return its delta, or None for any other chunk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, Literal, TypeAlias

import msgspec

from .deltas import CallDelta, Json, ReasoningDelta, TextDelta

# A bare piece of text is a str; one with log probabilities is a TextDelta.
PlainDelta: TypeAlias = str | TextDelta | CallDelta | ReasoningDelta

# Keys that mean something, beside the ones that a plain chunk may fill. A chunk that fills one of them is not plain.
# What is set in an openai delta that holds text, calls or reasoning alone. (`construct` does not count extra fields.)
PLAIN_TEXT = (frozenset({"content"}), frozenset({"content", "role"}))
PLAIN_CALLS = frozenset({"tool_calls"})
UNLIKELY = -9999.0  # OpenAI's word for a token that is too unlikely to count (API reference, `logprobs`)
NOT_GIVEN = frozenset({"NotGiven", "Omit"})  # openai's words for a parameter that is left out
PLAIN_REASONING = frozenset({"content", "role", "reasoning_content", "reasoning"})
CHUNK_KEYS = ("error", "usage", "x_groq", "citations")
CHOICE_KEYS = ("finish_reason", "native_finish_reason", "logprobs", "usage", "error")
LOGPROB_KEYS = ("refusal", "reasoning_content", "reasoning")
CALL_KEYS = ("custom", "extra_content", "provider_specific_fields", "thought_signature")
DELTA_KEYS = (
    "refusal",
    "function_call",
    "reasoning_text",
    "reasoning_details",
    "thinking_blocks",
    "annotations",
    "citations",
    "audio",
    "images",
    "image",
    "provider_specific_fields",
)


class Unreadable(Exception):
    """A value that has no JSON form, such as a number of thousands of digits."""


def fields(value: Any) -> Mapping[str, Any]:
    """Return what `value` holds by name: a mapping as it is, an object's fields with its extra ones, else nothing."""
    if type(value) is dict:
        return value  # pyright: ignore[reportUnknownVariableType]
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        extra = getattr(value, "__pydantic_extra__", None)
        return {**own, **extra} if extra else own  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping):
        return value  # pyright: ignore[reportUnknownVariableType]
    return msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else {}


def is_object(value: Any) -> bool:
    """Return whether `value` has fields: a mapping, or an object of an SDK."""
    if value is None or type(value) is dict:
        return value is not None
    return isinstance(getattr(value, "__dict__", None), dict) or isinstance(value, Mapping | msgspec.Struct)


def plain(value: Any) -> Any:
    """Return `value` as plain JSON data: SDK objects become dicts, at any depth."""
    if isinstance(value, str):
        return whole_characters(value)
    if value is None or isinstance(value, int | bool):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if is_object(value):
        return {whole_characters(str(key)): plain(one) for key, one in _said(value).items()}
    return str(value)


def _said(value: Any) -> Mapping[str, Any]:
    """Return what an object says, by the names of the API: of a model not the fields that were never given."""
    known: Any = getattr(value.__class__, "__pydantic_fields__", None)
    if not isinstance(known, dict):
        return {key: one for key, one in fields(value).items() if type(one).__name__ not in NOT_GIVEN}
    given: Any = getattr(value, "__pydantic_fields_set__", ())
    return {
        (known[key].alias or key) if key in known else key: one  # pyright: ignore[reportUnknownMemberType]
        for key, one in fields(value).items()
        if one is not None or key in given
    }


def copied(value: Any) -> Any:
    """Return a copy of JSON data that shares no dict and no list with it."""
    if type(value) is dict:
        return {key: copied(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return [copied(one) for one in value] if type(value) in (list, tuple) else value  # pyright: ignore[reportUnknownVariableType]


def many(value: Any) -> list[Any]:
    """Return the entries of a field that holds a list: a single object is a list of one, a JSON text is read."""
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, str):
        return many(_json(value))
    return [value] if is_object(value) else []


def text_of(value: Any) -> str:
    """Return the text in `value`: a string, a number, a typed part or a list of parts, however nested."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, int | float):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return "".join(text_of(one) for one in value)  # pyright: ignore[reportUnknownVariableType]
    held = fields(value)
    return next((text_of(held[key]) for key in ("text", "content", "thinking", "summary") if held.get(key)), "")


def word(value: Any) -> str:
    """Return a name, an id or a word: a string as it is, a number as its digits, else nothing."""
    if isinstance(value, str):
        return whole_characters(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def whole_characters(text: str) -> str:
    """Return `text` with what stands for half a character in place of lone surrogates, which no event can hold."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole_number(value: Any) -> int | None:
    """Return an index: also one that came as a string or a float; None where there is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() else None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) else None


def arguments_of(value: Any) -> str:
    """Return arguments as JSON text: a string as it is, null as nothing, any other value serialised once."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(plain(value))
    except ValueError as error:
        raise Unreadable(f"arguments cannot be written as JSON: {error}") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def entries(value: Any) -> tuple[dict[str, Any], ...]:
    """Return log probabilities in the form of the Responses API; null `bytes` are the token's UTF-8."""
    return tuple([_entry(fields(one)) for one in many(value)])


def _entry(held: Mapping[str, Any]) -> dict[str, Any]:
    return {**_token(held), "top_logprobs": [_token(fields(top)) for top in many(held.get("top_logprobs"))]}


def _token(held: Mapping[str, Any]) -> dict[str, Any]:
    token, octets, logprob = held.get("token"), held.get("bytes"), held.get("logprob")
    token = whole_characters(token if type(token) is str else text_of(token))
    return {
        "token": token,
        "logprob": float(logprob) if isinstance(logprob, int | float) and isfinite(logprob) else UNLIKELY,
        "bytes": _octets(octets) or list(token.encode("utf-8", "replace")),
    }


def _octets(value: Any) -> list[int]:
    """Return the bytes of a token; nothing where they are null, or no numbers."""
    held: list[Any] = list(value) if isinstance(value, list | tuple) else []  # pyright: ignore[reportUnknownArgumentType]
    return held if all(type(one) is int for one in held) else []


def decode(payload: bytes | str) -> Json | None:
    """Return the JSON object in `payload`, or None where it holds none."""
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


# --- the usual chunk ---------------------------------------------------------------------------------------------


def plain_object(chunk: Any) -> PlainDelta | None:
    """Return the one delta of a plain openai `ChatCompletionChunk`, or of a mapping; None where it is not plain."""
    if type(chunk) is dict:
        return _plain_mapping(chunk)  # pyright: ignore[reportUnknownArgumentType]
    try:
        own = chunk.__dict__
        (choice,) = own["choices"]
        if own["usage"] is not None or (chunk.__pydantic_extra__ and not _idle(chunk.__pydantic_extra__, CHUNK_KEYS)):
            return None
        own = choice.__dict__
        if own["finish_reason"] or own["index"]:
            return None
        if own["logprobs"] is not None:
            return _plain_with_logprobs(own)
        if choice.__pydantic_extra__ and not _idle(choice.__pydantic_extra__, CHOICE_KEYS):
            return None
        delta = own["delta"]
        extra, given = delta.__pydantic_extra__, delta.__pydantic_fields_set__
        if not extra and given in PLAIN_TEXT:
            text = delta.__dict__["content"]
            return text if type(text) is str and text and (text.isascii() or _is_whole(text)) else None
        if not extra and given == PLAIN_CALLS:
            return _plain_call_object(delta.__dict__["tool_calls"])
        if extra and len(extra) == 1 and given <= PLAIN_REASONING and not delta.__dict__["content"]:
            text = extra.get("reasoning_content") or extra.get("reasoning")
            return ReasoningDelta(text) if type(text) is str and text and _is_whole(text) else None
        return _plain_message({**delta.__dict__, **extra} if extra else delta.__dict__)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _plain_with_logprobs(choice: Mapping[str, Any]) -> TextDelta | None:
    delta, logprobs = fields(choice["delta"]), fields(choice["logprobs"])
    if not _idle(logprobs, LOGPROB_KEYS) or not logprobs.get("content"):
        return None
    text = _plain_message(delta)
    return TextDelta(text, entries(logprobs["content"])) if isinstance(text, str) else None


def _plain_mapping(chunk: Any) -> PlainDelta | None:
    try:
        (choice,) = chunk["choices"]
        if choice.get("index") or not _idle(choice, CHOICE_KEYS) or not _idle(chunk, CHUNK_KEYS):
            return None
        return _plain_message(choice["delta"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _is_whole(text: str) -> bool:
    """Return whether no character is cut: a lone surrogate is half of one."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _idle(held: Mapping[str, Any], keys: Iterable[str]) -> bool:
    """Return whether none of `keys` is filled."""
    return not any(held.get(key) for key in keys)


def _plain_message(held: Mapping[str, Any]) -> PlainDelta | None:
    """Return the delta of a message that holds just one of text, reasoning and a bare fragment of a call."""
    text, calls = held.get("content"), held.get("tool_calls")
    reasoning, other = held.get("reasoning_content"), held.get("reasoning")
    if sum(map(bool, (text, reasoning, other, calls))) != 1 or not _idle(held, DELTA_KEYS):
        return None
    if calls:
        return _plain_call(calls)
    if text:
        return text if type(text) is str and _is_whole(text) else None
    reasoning = reasoning or other
    return ReasoningDelta(reasoning) if type(reasoning) is str and _is_whole(reasoning) else None


def _plain_call_object(calls: Any) -> CallDelta | None:
    (call,) = calls
    own = call.__dict__
    function = own["function"]
    held = function.__dict__
    arguments, index = held["arguments"], own["index"]
    if own["id"] or held["name"] or call.__pydantic_extra__ or function.__pydantic_extra__:
        return None
    if type(arguments) is not str or not arguments or type(index) is not int or not _is_whole(arguments):
        return None
    return CallDelta(index, "", "", arguments)


def _plain_call(calls: Any) -> CallDelta | None:
    (call,) = calls
    own = fields(call)
    function = fields(own["function"])
    arguments, index = function["arguments"], own["index"]
    if own.get("id") or function.get("name") or not _idle(own, CALL_KEYS) or function.get("provider_specific_fields"):
        return None
    if type(arguments) is not str or not arguments or type(index) is not int or not _is_whole(arguments):
        return None
    return CallDelta(index, "", "", arguments)


class _Function(msgspec.Struct, frozen=True, gc=False):
    arguments: str
    name: Literal[""] | None = None
    provider_specific_fields: None = None


class _Call(msgspec.Struct, frozen=True, gc=False):
    index: int
    function: _Function
    id: Literal[""] | None = None
    custom: None = None
    extra_content: None = None
    provider_specific_fields: None = None
    thought_signature: None = None


class _Delta(msgspec.Struct, frozen=True, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[_Call] | None = None
    refusal: None = None
    function_call: None = None
    reasoning_text: None = None
    reasoning_details: None = None
    thinking_blocks: None = None
    annotations: None = None
    citations: None = None
    audio: None = None
    images: None = None
    image: None = None
    provider_specific_fields: None = None


class _Token(msgspec.Struct, frozen=True, gc=False):
    token: str
    logprob: float
    bytes: list[int]


class _Entry(msgspec.Struct, frozen=True, gc=False):
    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[_Token]


class _Logprobs(msgspec.Struct, frozen=True, gc=False):
    content: tuple[_Entry, ...]
    refusal: None = None
    reasoning_content: None = None
    reasoning: None = None


class _Choice(msgspec.Struct, frozen=True, gc=False):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: Literal[""] | None = None
    native_finish_reason: None = None
    logprobs: _Logprobs | None = None
    usage: None = None
    error: None = None


class _Chunk(msgspec.Struct, frozen=True, gc=False):
    choices: tuple[_Choice]
    error: None = None
    usage: None = None
    x_groq: None = None
    citations: None = None


_decode_plain = msgspec.json.Decoder(_Chunk).decode


def plain_json(payload: Any) -> PlainDelta | None:
    """Return the one delta of a plain chunk in JSON bytes; None where it is not plain (or no JSON, or not bytes)."""
    try:
        choice = _decode_plain(payload).choices[0]
    except (msgspec.DecodeError, RecursionError, TypeError):  # a ValidationError is a DecodeError
        return None
    delta = choice.delta
    text, reasoning, other, calls = delta.content, delta.reasoning_content, delta.reasoning, delta.tool_calls
    if choice.logprobs is not None:
        only = text and not reasoning and not other and calls is None and choice.logprobs.content
        return TextDelta(text or "", msgspec.to_builtins(choice.logprobs.content)) if only else None
    if text and not reasoning and not other and calls is None:
        return text
    if calls is not None:
        arguments = calls[0].function.arguments
        busy = text or reasoning or other or not arguments
        return None if busy else CallDelta(calls[0].index, "", "", arguments)
    return ReasoningDelta(reasoning or other or "") if (not reasoning) != (not other) and not text else None
