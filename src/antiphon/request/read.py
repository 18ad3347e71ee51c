"""Reads what a request holds: mappings, openai param types and pydantic models, mixed at any depth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from antiphon.stream.chunk import NOT_GIVEN, fields, is_object, plain

from .report import BadRequest

Json: TypeAlias = Mapping[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})
_SETTLED = frozenset({str, int, float, bool, type(None), dict, list})  # what is read as it is, as often as one likes
_WHOLE = (str, bytes, bytearray, Mapping, list, tuple)  # of what can be iterated, what is not read as a list


def record(value: Any, path: str) -> Json:
    """Return the fields of `value`. Raises BadRequest where it is no object."""
    if not is_object(value):
        raise BadRequest(path, f"an object is expected, and here is {described(value)}")
    return settled(fields(value))


def settled(held: Json) -> Json:
    """Return what can be read more than once: iterables as lists, without what was left out; `held` where it can be.

    openai's param types allow any iterable where there is a list, and `omit` where there is a value.
    """
    if _SETTLED.issuperset(map(type, held.values())):
        return held
    given = {key: one for key, one in held.items() if type(one).__name__ not in NOT_GIVEN}
    lists = {key: list(one) for key, one in given.items() if _is_loose(one)}
    return {**given, **lists} if lists or len(given) < len(held) else held


def _is_loose(value: Any) -> bool:
    """Return whether it is an iterable that may be read once alone, or that JSON does not know."""
    return isinstance(value, Iterable) and not isinstance(value, _WHOLE) and not is_object(value)  # pyright: ignore[reportUnknownArgumentType]


def optional_record(value: Any, path: str) -> Json:
    """Return the fields of `value`, none where it is null."""
    return {} if value is None else record(value, path)


def entries(value: Any, path: str) -> list[Any]:
    """Return the entries of a list, none where it is null. Raises BadRequest where it is no list."""
    if value is None:
        return []
    if isinstance(value, list):
        return value  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, tuple) or _is_loose(value):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    raise BadRequest(path, f"a list is expected, and here is {described(value)}")


def named(held: Json, key: str, path: str) -> str:
    """Return a name that must be there. Raises BadRequest where it is missing or empty."""
    value = held.get(key)
    if isinstance(value, str) and value:
        return value
    raise BadRequest(f"{path}.{key}", f"a name is expected, and here is {described(value)}")


def shared(value: Any) -> Any:
    """Return `value` as JSON data. What is plain already is shared, not copied: it must not be changed."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if type(value) is dict:
        made = {key: shared(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
        if all(made[key] is one for key, one in value.items()):  # pyright: ignore[reportUnknownVariableType]
            return value  # pyright: ignore[reportUnknownVariableType]
        return {key: one for key, one in made.items() if type(value[key]).__name__ not in NOT_GIVEN}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if type(value) is list:
        read = [shared(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        return value if all(new is old for new, old in zip(read, value, strict=True)) else read  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return plain(value)


def described(value: Any) -> str:
    """Return what kind of value it is, without what it says."""
    if value is None:
        return "null"
    if value == "" or (isinstance(value, int | float) and not isinstance(value, bool)):
        return repr(value)
    return f"a {type(value).__name__}"
