"""What a create request may hold, as JSON schemas: requests are checked by them, and the OpenAPI document shows them.

Items and tools are looked at where they are converted: here only that they are objects. Source: the create parameters
of openai 3.57, `openai.types.responses.response_create_params`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from antiphon.near import nearest
from antiphon.request.params import MEANT

from .errors import ApiError, invalid

Schema: TypeAlias = Mapping[str, Any]

OBJECT: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
WORD: Schema = {"type": "string", "minLength": 1, "maxLength": 512}
FLAG: Schema = {"type": "boolean"}
PENALTY: Schema = {"type": "number", "minimum": -2, "maximum": 2}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 128}
METADATA: Schema = {
    "type": "object",
    "maxProperties": 16,
    "propertyNames": {"maxLength": 64},
    "additionalProperties": {"type": "string", "maxLength": 512},
}
ITEMS: Schema = {"type": "array", "items": OBJECT}

CREATE: dict[str, Schema] = {
    "model": WORD,
    "input": {"anyOf": [TEXT, ITEMS]},
    "instructions": {"anyOf": [TEXT, ITEMS]},
    "tools": {"type": "array", "items": OBJECT},
    "tool_choice": {"anyOf": [{"type": "string", "enum": ["none", "auto", "required"]}, OBJECT]},
    "parallel_tool_calls": FLAG,
    "max_tool_calls": {"type": "integer", "minimum": 1},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "presence_penalty": PENALTY,
    "frequency_penalty": PENALTY,
    "max_output_tokens": {"type": "integer", "minimum": 1},
    "top_logprobs": {"type": "integer", "minimum": 0, "maximum": 20},
    "text": {"type": "object", "properties": {"format": OBJECT, "verbosity": WORD}},
    "reasoning": {"type": "object", "properties": {"effort": WORD, "summary": WORD}},
    "include": {"type": "array", "items": TEXT},
    "metadata": METADATA,
    "previous_response_id": ID,
    "conversation": {"anyOf": [ID, {"type": "object", "properties": {"id": ID}, "required": ["id"]}]},
    "store": FLAG,
    "stream": FLAG,
    "stream_options": {"type": "object", "properties": {"include_usage": FLAG, "include_obfuscation": FLAG}},
    "background": FLAG,
    "truncation": {"type": "string", "enum": ["auto", "disabled"]},
    "service_tier": WORD,
    "user": TEXT,
    "safety_identifier": TEXT,
    "prompt_cache_key": TEXT,
    "prompt_cache_retention": WORD,
    "prompt": OBJECT,
    "client_metadata": OBJECT,
    "context_management": {"anyOf": [ITEMS, OBJECT]},
}
# What other requests hold. Sources: `input_token_count_params` and `response_compact_params` of openai 3.57.
COUNT: dict[str, Schema] = {
    name: CREATE[name]
    for name in (
        *("model", "input", "instructions", "previous_response_id", "conversation", "tools", "tool_choice"),
        *("parallel_tool_calls", "reasoning", "text", "truncation"),
    )
}
COMPACT: dict[str, Schema] = {
    name: CREATE[name]
    for name in (
        *("model", "input", "instructions", "previous_response_id", "prompt_cache_key", "prompt_cache_retention"),
        "service_tier",
    )
}
CONVERSATION: dict[str, Schema] = {"items": {**ITEMS, "maxItems": 1000}, "metadata": METADATA}

# JSON type -> its name in messages, and whether a value is one
_TYPES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("a boolean", lambda value: isinstance(value, bool)),
    "integer": ("an integer", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "object": ("an object", lambda value: isinstance(value, dict)),
}


def check(given: Mapping[str, Any], properties: Mapping[str, Schema], required: Sequence[str] = ()) -> None:
    """Raise ApiError for the first thing in `given` that is wrong. Null is as not given; unknown names are let through."""
    for name in required:
        if given.get(name) is None:
            said = f"Missing required parameter: '{name}'.{_instead(name, given, properties)}"
            raise invalid(name, said, "missing_required_parameter")
    for name, value in given.items():
        if value is not None and name in properties:
            for fault in _faults(value, properties[name], name):
                raise fault


def _faults(value: Any, schema: Schema, path: str) -> Iterator[ApiError]:
    """Yield what is wrong with `value`, the outermost first."""
    if "anyOf" in schema:
        yield from _any(value, schema["anyOf"], path)
        return
    said, is_one = _TYPES[schema["type"]]
    if not is_one(value):
        yield invalid(path, f"Invalid type for '{path}': expected {said}, but got {_described(value)}.", "invalid_type")
        return
    yield from _bounds(value, schema, path)
    yield from _inside(value, schema, path)


def _any(value: Any, choices: Sequence[Schema], path: str) -> Iterator[ApiError]:
    fitting = [one for one in choices if _TYPES[one["type"]][1](value)]
    if fitting:
        yield from _faults(value, fitting[0], path)
        return
    said = " or ".join(_TYPES[one["type"]][0] for one in choices)
    yield invalid(path, f"Invalid type for '{path}': expected {said}, but got {_described(value)}.", "invalid_type")


def _bounds(value: Any, schema: Schema, path: str) -> Iterator[ApiError]:
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(repr(one) for one in schema["enum"])
        yield invalid(path, f"Invalid value for '{path}': {value!r:.60}. It is one of {allowed}.")
    low, high = schema.get("minimum"), schema.get("maximum")
    if (low is not None and not value >= low) or (high is not None and not value <= high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        yield invalid(path, f"Invalid value for '{path}': {value!r:.40}. It is {limits}.", "value_out_of_range")
    for least, most, words in (
        ("minLength", "maxLength", "characters"),
        ("minItems", "maxItems", "elements"),
        ("", "maxProperties", "keys"),
    ):
        if len_wrong(value, schema.get(least, 0), schema.get(most)):
            limit = f"at most {schema[most]}" if least not in schema or len(value) else f"at least {schema[least]}"
            yield invalid(path, f"Invalid value for '{path}': it has {len(value)} {words}, and {limit} are allowed.")


def _instead(name: str, given: Mapping[str, Any], properties: Mapping[str, Schema]) -> str:
    """Return what a message says more where a parameter came under another name, or misspelt."""
    for came in given:
        if came not in properties and len(came) <= 64 and (MEANT.get(came) == name or nearest(came, (name,)) == name):
            return f" {came!r} came: did you mean {name!r}?"
    return ""


def len_wrong(value: Any, least: int, most: int | None) -> bool:
    """Return whether `value` is shorter or longer than allowed; what has no length never is."""
    if most is None and not least:
        return False
    return not least <= len(value) <= (most if most is not None else len(value))


def _inside(value: Any, schema: Schema, path: str) -> Iterator[ApiError]:
    if "items" in schema:
        for number, one in enumerate(value):
            yield from _faults(one, schema["items"], f"{path}[{number}]")
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield invalid(
                f"{path}.{name}", f"Missing required parameter: '{path}.{name}'.", "missing_required_parameter"
            )
    for name, inner in schema.get("properties", {}).items():
        if value.get(name) is not None:
            yield from _faults(value[name], inner, f"{path}.{name}")
    if "additionalProperties" in schema:
        longest = schema["propertyNames"]["maxLength"]
        for name, one in value.items():
            if len(name) > longest:
                yield invalid(path, f"Invalid key in '{path}': it has {len(name)} characters, {longest} are allowed.")
            yield from _faults(one, schema["additionalProperties"], f"{path}.{name[:longest]}")


def _described(value: Any) -> str:
    if value is None:
        return "null"
    return next(said for said, is_one in _TYPES.values() if is_one(value))
