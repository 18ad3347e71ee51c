"""A small instance of a JSON schema: the arguments and the structured answers of the replay backend."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

_DEEP = 6  # from this depth on nothing is given that may be left out
_TOO_DEEP = 24
_FORMATS = {
    "date-time": "2025-01-01T12:00:00Z",
    "date": "2025-01-01",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "choir@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.org/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
# where no type is said: a key that tells it
_KEYS = {"properties": "object", "required": "object", "items": "array", "prefixItems": "array", "minimum": "number"}
# tried one after the other where a pattern is asked for; no pattern is taken apart
_CANDIDATES = (
    "text",
    "a",
    "A",
    "1",
    "10",
    "abc",
    "ABC",
    "ab-1",
    "2025-01-01",
    "12:00",
    "example.org",
    "+4912345678",
    "#aabbcc",
    "",
)


def instance(schema: Any) -> Any:
    """Return a value that `schema` accepts; the same one every time. Patterns and `not` are met by luck only."""
    return _Maker(_schema(schema)).make(schema, 0)


class _Maker:
    """Makes values for one schema, within which references lead."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def make(self, schema: Any, depth: int, number: int = 0) -> Any:
        """Return a value for a part of the schema. `number`: which of several values that shall differ."""
        if depth > _TOO_DEEP:
            return None
        whole = self._merged(_schema(schema), depth)
        for key in ("const", "default"):
            if key in whole and number == 0:
                return whole[key]
        for key in ("enum", "examples"):
            if choices := whole.get(key):
                return choices[number % len(choices)]
        for key in ("anyOf", "oneOf"):
            if ways := whole.get(key):
                return self.make(_choice(ways, depth), depth + 1, number)
        return self._of_type(_type(whole), whole, depth, number)

    def _of_type(self, type: str, schema: Schema, depth: int, number: int) -> Any:
        match type:
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number":
                return _number(schema, number, type == "integer")
            case "boolean":
                return number % 2 == 0
            case "null":
                return None
            case _:
                return _string(schema, number)

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties: Schema = schema.get("properties") or {}
        names: list[str] = list(schema.get("required") or (() if depth >= _DEEP else properties))
        made = {name: self.make(properties.get(name, {}), depth + 1) for name in names}
        more = schema.get("additionalProperties", {})
        while len(made) < schema.get("minProperties", 0):
            made[f"key{len(made) + 1}"] = self.make(more, depth + 1)
        return made

    def _array(self, schema: Schema, depth: int) -> list[Any]:
        first = [self.make(one, depth + 1) for one in schema.get("prefixItems") or ()]
        count = schema.get("minItems", len(first) if first or depth >= _DEEP else 1)
        count = min(max(count, len(first)), schema.get("maxItems", math.inf))
        items = schema.get("items", {})
        return [*first, *(self.make(items, depth + 1, number) for number in range(len(first), int(count)))][
            : int(count)
        ]

    def _merged(self, schema: Schema, depth: int) -> Schema:
        """Return the schema with what it refers to, and with all of its `allOf`."""
        whole = dict(schema)
        parts = list(whole.pop("allOf", ()))
        if reference := whole.pop("$ref", None):
            parts.insert(0, self._found(reference))
        for part in parts if depth <= _TOO_DEEP else ():
            other = self._merged(_schema(part), depth + 1)
            both: dict[str, Any] = {**other, **whole}
            if "properties" in both:
                both["properties"] = {**other.get("properties", {}), **whole.get("properties", {})}
            if "required" in both:
                both["required"] = [*other.get("required", ()), *whole.get("required", ())]
            whole = both
        return whole

    def _found(self, reference: str) -> Schema:
        at: Any = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            at = _schema(at).get(step.replace("~1", "/").replace("~0", "~"))
        return _schema(at)


def _schema(value: Any) -> Schema:
    """Return a schema as a mapping: `true`, and what is none, accept anything."""
    return value if isinstance(value, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def _choice(ways: list[Any], depth: int) -> Any:
    """Return the first way that is not null; deep down null, or one that leads no deeper, goes first."""
    plain = [way for way in ways if _schema(way).get("type") != "null"]
    if depth < _DEEP:
        return (plain or ways)[0]
    nulls = [way for way in ways if _schema(way).get("type") == "null"]
    return next(iter(nulls or [way for way in plain if "$ref" not in _schema(way)]), ways[0])


def _type(schema: Schema) -> str:
    type = schema.get("type")
    if isinstance(type, list):
        names: list[str] = type  # pyright: ignore[reportUnknownVariableType]
        return next((name for name in names if name != "null"), "null")
    if isinstance(type, str):
        return type
    return next((name for key, name in _KEYS.items() if key in schema), "string")


def _number(schema: Schema, number: int, whole: bool) -> int | float:
    least: float = schema.get("minimum", -math.inf)
    if "exclusiveMinimum" in schema:
        least = max(least, schema["exclusiveMinimum"] + (1 if whole else 0.5))
    most: float = schema.get("maximum", math.inf)
    if "exclusiveMaximum" in schema:
        most = min(most, schema["exclusiveMaximum"] - (1 if whole else 0.5))
    value: float = min(max(1 + number, least), most)
    if step := schema.get("multipleOf"):
        value = math.ceil(value / step) * step
        value = value if value <= most else math.floor(most / step) * step
    return math.ceil(value) if whole else value


def _string(schema: Schema, number: int) -> str:
    least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
    if made := _FORMATS.get(schema.get("format", "")):
        return made
    if pattern := schema.get("pattern"):
        fitting = (one for one in _CANDIDATES if least <= len(one) <= most and re.search(pattern, one))
        return next(fitting, "text")
    text = "text" if number == 0 else f"text{number + 1}"
    return text.ljust(least, "x")[: None if most == math.inf else int(most)]


def as_json(value: Any) -> str:
    """Return a value as the JSON text that a model would write."""
    return json.dumps(value, ensure_ascii=False)
