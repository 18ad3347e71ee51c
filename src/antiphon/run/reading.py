"""What a JSON value is, as both type checkers understand it; and which options there are."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, TypeAlias, TypeGuard

from antiphon.stream.chunk import plain

Json: TypeAlias = dict[str, Any]


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether `value` is a list."""
    return isinstance(value, list)


def is_dict(value: object) -> TypeGuard[Json]:
    """Return whether `value` is a dict; JSON's have strings as keys."""
    return isinstance(value, dict)


def said(**values: Any) -> Json:
    """Return the values that are not None, as JSON data."""
    return {name: plain(value) for name, value in values.items() if value is not None}


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise TypeError for an option that is none."""
    unknown = sorted(name for name in given if name not in known)
    if unknown:
        raise TypeError(f"{what} has no option {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
