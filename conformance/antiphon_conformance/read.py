"""Reads what may be anything: events and chunks as dicts, fields as what they should be.

Whatever has the wrong type reads as missing; that it is wrong is SCH001's to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, TypeAlias, cast

Json: TypeAlias = dict[str, Any]

_TEXT_ALONE, _DICTS_ALONE = frozenset((str,)), frozenset((dict,))
_MOST_DIGITS = 20  # longer ones are no index and no count; Python refuses to read those of 4,300


def plain(value: object) -> Json | None:
    """Return an event or chunk as a dict, or None where it is no object.

    A mapping is taken as it is, a model object by its `model_dump`, with the fields that were set.
    """
    if _is_json(value):
        return cast("Json", value)
    if isinstance(value, Mapping):
        held: Mapping[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {key: one for key, one in held.items() if isinstance(key, str)}
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        return None
    for options in ({"mode": "json", "by_alias": True, "exclude_unset": True, "warnings": False}, {}):
        try:
            dumped: object = dump(**options)
        except (TypeError, ValueError, AttributeError):
            continue
        return cast("Json", dumped) if isinstance(dumped, dict) else None
    return None


def _is_json(value: Any) -> bool:
    """Whether this is a dict as JSON has it, which is taken without a copy."""
    return value.__class__ is dict and _TEXT_ALONE.issuperset(map(type, value))


def plain_all(values: Iterable[object]) -> list[Json | None]:
    """Return `values`, each as `plain` has it. Where all are dicts as JSON has them, none is looked at alone."""
    held: list[Any] = list(values)
    if _DICTS_ALONE.issuperset(map(type, held)) and _TEXT_ALONE.issuperset(map(type, chain.from_iterable(held))):
        return held
    return [plain(value) for value in held]


def text(value: object) -> str:
    """Return a string, "" for anything else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int | None:
    """Return a whole number, None for anything else; True is no number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def whole(value: object) -> int | None:
    """Return a whole number, also one that came as a string or a float; None for anything else."""
    if isinstance(value, int):
        return None if isinstance(value, bool) else value
    if isinstance(value, str):
        value = value.strip()
        return int(value) if value.isdecimal() and len(value) < _MOST_DIGITS else None
    return int(value) if isinstance(value, float) and value.is_integer() else None


def mapping(value: object) -> Json:
    """Return a dict, an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def listed(value: object) -> list[Any]:
    """Return a list, an empty one for anything else."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]


def mappings(value: object) -> list[Json]:
    """Return the dicts in a list."""
    return [one for one in listed(value) if isinstance(one, dict)]  # pyright: ignore[reportUnknownVariableType]


def quoted(value: object, limit: int = 60) -> str:
    """Return `value` as a message shows it: short, on one line."""
    shown = repr(value)
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
