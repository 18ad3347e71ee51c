"""What a chunk and an event say, in one short line each; whatever they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from reprlib import Repr
from typing import Any

from antiphon.errors import BadInput
from antiphon.stream.accumulate import PARTS, TEXTS, Json, fields_of, is_json, plain

from .bars import escaped

SHOWN = 90  # characters of a text


def said_by(chunk: object) -> str:
    """Return what a chunk says, in one line: its texts, calls, finish_reason, usage or error."""
    fields = fields_or_empty(chunk)
    if not fields:
        return _quoted(chunk)
    words = [*_delta_words(delta_of(fields))]
    finish, usage, error = choice_of(fields).get("finish_reason"), fields.get("usage"), fields.get("error")
    if finish:
        words.append(f"finish {finish!s:.40}")
    if is_json(usage):
        words.append(f"usage {usage.get('prompt_tokens')!s:.12} + {usage.get('completion_tokens')!s:.12}")
    if error:
        words.append(f"error {_quoted(text_of(error, 'message') if is_json(error) else error)}")
    return escaped(" · ".join(words)) or "nothing"


def _delta_words(delta: Json) -> Iterator[str]:
    for key, value in delta.items():
        if key == "tool_calls":
            yield from map(_call_words, calls_of(delta))
        elif key == "role" and len(delta) > 1:
            continue
        elif key == "function_call":
            yield _call_words({"function": value})
        elif value not in (None, "", []) or key == "content":
            yield f"{escaped(key[:24])} {_quoted(value)}"


def _call_words(call: Json) -> str:
    function = function_of(call)
    name, text = text_of(function, "name"), text_of(function, "arguments") or text_of(function, "input")
    return f"call {call.get('index', '?')!s:.6} {escaped(name[:30])}({_cut(text)})"


def told_by(event: object) -> tuple[str, str, str]:
    """Return what an event is, where it belongs, and what it carries, each in one short line."""
    fields = fields_or_empty(event)
    if not fields:
        return "no event", "", _quoted(event)
    type = text_of(fields, "type")
    name = type.rpartition(".")[0]
    return escaped(type.removeprefix("response.")[:60]) or "no type", _place(name, fields), _carried(fields)


def _place(name: str, fields: Json) -> str:
    """Return the item's index, and the part's after a point."""
    part = PARTS[name][1] if name in PARTS else TEXTS[name].index if name in TEXTS else ""
    numbers = [fields.get(key) for key in ("output_index", part) if key in fields]
    return escaped(".".join(f"{number!s:.8}" for number in numbers))


def _carried(fields: Json) -> str:
    item, part, response = (plain(fields.get(key)) for key in ("item", "part", "response"))
    if is_json(item):
        name = f" {escaped(text_of(item, 'name')[:30])}" if item.get("name") else ""
        status = f", {escaped(text_of(item, 'status')[:20])}" if item.get("status") else ""
        return f"{escaped(text_of(item, 'type')[:30])}{name}{status}"
    if is_json(part):
        return escaped(text_of(part, "type")[:30])
    if is_json(response):
        return escaped(text_of(response, "status")[:30])
    carried = ("delta", "text", "refusal", "arguments", "input", "message", "error")
    return next((_quoted(fields[key]) for key in carried if key in fields), "")


_REPR = Repr()
_REPR.maxstring = _REPR.maxother = SHOWN
_REPR.maxlevel = 3


def _quoted(value: object) -> str:
    return f"“{_cut(value)}”" if isinstance(value, str) else _cut(_REPR.repr(value))


def _cut(text: str) -> str:
    return escaped(text) if len(text) <= SHOWN else escaped(text[: SHOWN - 1]) + "…"


def excerpt(value: object, limit: int = 1500) -> str:
    """Return a value as JSON on several lines, its long texts and lists cut, in at most `limit` characters."""
    shown = json.dumps(_shortened(plain(value), 6), indent=1, ensure_ascii=False, default=_quoted)
    lines = "\n".join(map(escaped, shown.split("\n")))
    return lines if len(lines) <= limit else lines[: limit - 1] + "…"


def _shortened(value: Any, depth: int) -> Any:
    match value:
        case str():
            return value if len(value) <= 2 * SHOWN else f"{value[: 2 * SHOWN]}… ({len(value):,} characters)"
        case dict() | list() if depth == 0:
            return "…"
        case dict():
            members: list[tuple[Any, Any]] = list(islice(value.items(), 40))  # pyright: ignore[reportUnknownArgumentType]
            return {f"{key!s:.60}": _shortened(one, depth - 1) for key, one in members}
        case list():
            return [_shortened(one, depth - 1) for one in value[:12]] + ["…"] * (len(value) > 12)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        case _:
            return value


# --- reading what may be anything ----------------------------------------------------------------------------------


def fields_or_empty(value: object) -> Json:
    """Return the fields of an event or chunk, {} of what has none."""
    try:
        return fields_of(value)
    except BadInput:
        return {}


def text_of(fields: Json, key: str) -> str:
    """Return a string, "" for anything else."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def choice_of(chunk: object) -> Json:
    """Return the first choice of a chunk."""
    choices = plain(fields_or_empty(chunk).get("choices"))
    first: object = plain(choices[0]) if isinstance(choices, list) and choices else None  # pyright: ignore[reportUnknownArgumentType]
    return first if is_json(first) else {}


def delta_of(chunk: object) -> Json:
    """Return the delta in the first choice of a chunk."""
    delta = choice_of(chunk).get("delta")
    return delta if is_json(delta) else {}


def calls_of(delta: Json) -> list[Json]:
    """Return the fragments of calls in a delta."""
    return [call for call in _listed(delta.get("tool_calls")) if is_json(call)]


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType] -- of anything


def function_of(call: Json) -> Json:
    """Return the function of a fragment, or the custom tool."""
    function = call.get("function") or call.get("custom")
    return function if is_json(function) else {}
