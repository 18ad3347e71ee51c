"""The arguments of calls in the history, as JSON objects: strict backends refuse anything else."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from antiphon.stream.chunk import is_object, plain

from .content import Scope

INPUT = "input"  # the one argument of a function that stands for a custom tool
UNREADABLE = "unreadable_arguments"  # what holds arguments that are no JSON object


quoted = json.encoder.encode_basestring  # a string as JSON has it, characters as they are


class _Skipped(msgspec.Struct, gc=False):
    """An object of which nothing is kept."""


# Reads the JSON text of an object, and makes nothing of it. Raises a DecodeError, ValueError or RecursionError, and
# TypeError where it is no text.
read_object = msgspec.json.Decoder(_Skipped).decode


def object_text(arguments: Any, path: str, scope: Scope) -> str:
    """Return `arguments` as the JSON text of an object: as they are where they are one, `{}` where there are none.

    What is not a JSON object is kept in one, under its own key.
    """
    if is_object(arguments) and not isinstance(arguments, str):  # one of its subclasses has fields too
        return json.dumps(plain(arguments), ensure_ascii=False)
    text = _told(arguments)
    if text.strip() in ("", "null"):
        return "{}"
    if _is_object(text):
        return text
    scope.report.changed(
        f"{path}.arguments",
        f"{len(text)} characters that are not a JSON object",
        f"an object with the key {UNREADABLE!r}",
        "strict backends refuse a history with other arguments",
    )
    return json.dumps({UNREADABLE: text}, ensure_ascii=False)


def input_text(value: Any) -> str:
    """Return the arguments of the function that stands for a custom tool."""
    text = value if isinstance(value, str) else "" if value is None else _told(value)
    return f'{{"{INPUT}": {quoted(text)}}}'


def _told(value: Any) -> str:
    """Return a text as it is, without halves of characters, and anything else as JSON."""
    made = plain(value)
    return made if isinstance(made, str) else json.dumps(made)


def _is_object(text: str) -> bool:
    try:
        read_object(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return True
