"""Reads one chunk: the only place that copes with missing, null or ill-typed fields.

A chunk may be an object of an SDK (openai, LiteLLM, any-llm: anything with fields), a mapping, or JSON bytes. All are
read as mappings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from math import isfinite
from typing import Any

import msgspec

from .deltas import Json

UNLIKELY = -9999.0  # OpenAI's word for a token that is too unlikely to count (API reference, `logprobs`)
_MOST_DIGITS = 20  # of a number in a string
_MOST_BITS = 10_000  # of a number that is written
# Names, since `list | tuple` is made anew wherever it stands, which costs ten times its use.
LISTS = (list, tuple)
NUMBERS = (int, float)
_WITH_FIELDS = (Mapping, msgspec.Struct)
_HOLDERS = frozenset({dict, list, tuple})
_AS_THEY_ARE = frozenset({int, bool, type(None)})
_GIVEN = frozenset({*_AS_THEY_ARE, str, float, dict, list})  # types of most values, none of which is left out
_strictly = msgspec.json.Decoder().decode
_NO_MODEL: Any = object()  # of pydantic
NOT_GIVEN = frozenset({"NotGiven", "Omit"})  # openai's words for a parameter that is left out


class Unreadable(Exception):
    """A value that has no JSON form, such as a number of thousands of digits."""


def fields(value: Any) -> Mapping[str, Any]:
    """Return what `value` holds by name: a mapping as it is, an object's fields with its extra ones, else nothing."""
    if type(value) is dict:
        return value  # pyright: ignore[reportUnknownVariableType]
    if value is None:
        return {}
    own = getattr(value, "__dict__", None)
    if type(own) is dict:
        extra: Any = getattr(value, "__pydantic_extra__", _NO_MODEL)
        if extra is not _NO_MODEL:
            return {**own, **extra} if extra else own  # pyright: ignore[reportUnknownVariableType]
        kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
        if not _is_mapping(kind):  # whose attributes are not what it holds
            return own  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping):
        return value  # pyright: ignore[reportUnknownVariableType]
    return msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else {}


@cache
def _is_mapping(kind: type[Any]) -> bool:
    return issubclass(kind, Mapping)


def is_object(value: Any) -> bool:
    """Return whether `value` has fields: a mapping, or an object of an SDK."""
    if value is None or type(value) is dict:
        return value is not None
    return isinstance(getattr(value, "__dict__", None), dict) or isinstance(value, _WITH_FIELDS)


def plain(value: Any) -> Any:
    """Return `value` as plain JSON data: SDK objects become dicts, at any depth."""
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _AS_THEY_ARE:
        return value
    if kind is dict:
        return _plain_entries(value)
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if isfinite(value) else str(value)
    if isinstance(value, LISTS):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "replace")
    if isinstance(value, Enum):
        return plain(value.value)
    names = _names(kind)
    if names is not None:
        return _plain_fields(value, names)
    if is_object(value):
        return _plain_entries(fields(value))
    return [plain(one) for one in value] if isinstance(value, Iterable) else str(value)  # pyright: ignore[reportUnknownVariableType]


def _plain_entries(held: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        key if type(key) is str and key.isascii() else whole_characters(key if isinstance(key, str) else str(key)): (
            one if type(one) in _AS_THEY_ARE else plain(one)
        )
        for key, one in held.items()
        if type(one) in _GIVEN or type(one).__name__ not in NOT_GIVEN
    }


def _plain_fields(model: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Return what a pydantic model says, by the names of the API, but for the fields that were never given."""
    given: Any = getattr(model, "__pydantic_fields_set__", ())
    return {
        names[key] if key in names else whole_characters(key): one if type(one) in _AS_THEY_ARE else plain(one)
        for key, one in fields(model).items()
        if one is not None or key in given
    }


@cache
def _names(model: type[Any]) -> Mapping[str, str] | None:
    """Return the fields of a pydantic model with their names in the API, or None for any other class."""
    known: Any = getattr(model, "__pydantic_fields__", None)
    return {name: field.alias or name for name, field in known.items()} if isinstance(known, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def copied(value: Any) -> Any:
    """Return a copy of JSON data that shares no dict and no list with it."""
    if type(value) is dict:
        copy: dict[Any, Any] = value.copy()  # pyright: ignore[reportUnknownVariableType]
        for key, one in copy.items():
            if type(one) in _HOLDERS:
                copy[key] = copied(one)
        return copy
    if type(value) in LISTS:
        return [*value] if _HOLDERS.isdisjoint(map(type, value)) else [copied(one) for one in value]
    return value


def many(value: Any) -> list[Any]:
    """Return the entries of a field that holds a list: a single object is a list of one, a JSON text is read."""
    if value is None:
        return []
    if isinstance(value, LISTS):
        return list(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, str):
        return many(_json(value))
    return [value] if is_object(value) else []


def text_of(value: Any) -> str:
    """Return the text in `value`: a string, a number, a typed part or a list of parts, however nested."""
    if isinstance(value, str):
        return _exact(value)
    if value is None or isinstance(value, bool):
        return ""
    if isinstance(value, NUMBERS):
        if not _is_writable(value):
            raise Unreadable("a number of thousands of digits cannot be written")
        return json.dumps(value)
    if isinstance(value, LISTS):
        return "".join(text_of(one) for one in value)  # pyright: ignore[reportUnknownVariableType]
    held = fields(value)
    return next((text_of(held[key]) for key in ("text", "content", "thinking", "summary") if held.get(key)), "")


def word(value: Any) -> str:
    """Return a name, an id or a word: a string as it is, a number as its digits, a member by its value, else nothing."""
    if value is None:
        return ""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, NUMBERS) and not isinstance(value, bool) and _is_writable(value):
        return str(value)
    return word(value.value) if isinstance(value, Enum) else ""


def _is_writable(number: float) -> bool:
    """Return whether a number can be written: Python writes no integer of more than some thousand digits."""
    return isinstance(number, float) or number.bit_length() < _MOST_BITS


def is_whole(text: str) -> bool:
    """Return whether no character is cut: a lone surrogate is half of one."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def whole_characters(text: str) -> str:
    """Return `text` with what stands for half a character in place of lone surrogates, which no event can hold."""
    return _exact(text) if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _exact(text: str) -> str:
    """Return `text` as a plain string: of a subclass, such as an SDK's enumeration, no encoder knows what to make."""
    return text if type(text) is str else str.__str__(text)


def whole_number(value: Any) -> int | None:
    """Return an index: also one that came as a string or a float; None where there is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _in_digits(value.strip())
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return int(value) if isinstance(value, int) else None


def _in_digits(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS and text.removeprefix("-").isdecimal() else None


def arguments_of(value: Any) -> str:
    """Return arguments as JSON text: a string as it is, null as nothing, any other value serialised once."""
    if isinstance(value, str):
        return _exact(value)
    try:
        return "" if value is None else json.dumps(plain(value))
    except ValueError as error:
        raise Unreadable(f"arguments cannot be written as JSON: {error}") from None


def _json(text: str | bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def entries(value: Any) -> tuple[dict[str, Any], ...]:
    """Return log probabilities in the form of the Responses API; null `bytes` are the token's UTF-8.

    An entry without fields says nothing.
    """
    return tuple([_entry(held) for one in many(value) if (held := fields(one))])


def _entry(held: Mapping[str, Any]) -> dict[str, Any]:
    entry = _token(held)
    entry["top_logprobs"] = [_token(fields(top)) for top in many(held.get("top_logprobs"))]
    return entry


def _token(held: Mapping[str, Any]) -> dict[str, Any]:
    token, logprob = held.get("token"), held.get("logprob")
    if type(token) is not str or not token.isascii():
        token = whole_characters(token if isinstance(token, str) else text_of(token))
    if type(logprob) is not float or not isfinite(logprob):
        logprob = _log_probability(logprob)
    return {
        "token": token,
        "logprob": logprob,
        "bytes": _octets(held.get("bytes")) or list(token.encode("utf-8", "replace")),
    }


def _log_probability(value: Any) -> float:
    try:
        return float(value) if isinstance(value, NUMBERS) and isfinite(value) else UNLIKELY
    except OverflowError:  # an integer beyond what a float holds
        return UNLIKELY


def _octets(value: Any) -> list[int]:
    """Return the bytes of a token; nothing where they are null, or no bytes."""
    try:
        return [*bytes(value)] if type(value) in LISTS else []
    except (TypeError, ValueError):
        return []


def decode(payload: bytes | str) -> Json | None:
    """Return the JSON object in `payload`, or None where it holds none."""
    try:
        value = _strictly(payload)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = _json(payload)  # three times slower, and takes more: NaN, halves of characters, other encodings
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]
