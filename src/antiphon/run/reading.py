"""What a JSON value is, as both type checkers understand it."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether `value` is a list."""
    return isinstance(value, list)


def is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether `value` is a dict; JSON's have strings as keys."""
    return isinstance(value, dict)
