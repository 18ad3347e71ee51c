"""JSON schemas in the API's strict mode: every object closed, every property required, no reference beside other keys.

Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. A schema that has no strict form
is refused: what is closed silently would accept something else than its author wrote.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from antiphon.exceptions import UserError
from antiphon.run.reading import is_dict, is_list

Schema: TypeAlias = dict[str, Any]

MAX_NODES = 20_000  # a reference may fan out: a schema from an MCP server must not eat the process
MAX_DEPTH = 100  # well below the interpreter's recursion limit
EMPTY: Schema = {"additionalProperties": False, "type": "object", "properties": {}, "required": []}
# what may stand beside a `$ref` without saying more about the values
HARMLESS = frozenset(
    {
        *("$anchor", "$comment", "$defs", "$id", "$schema", "contentEncoding", "contentMediaType", "contentSchema"),
        *("default", "definitions", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"),
    }
)
OPEN_OBJECT = (
    "additionalProperties must not be set for an object in a strict schema, and here it is {given!r}: "
    "name the properties, or turn strict mode off for this function or output type"
)


def ensure_strict_json_schema(schema: Schema) -> Schema:
    """Return `schema` in strict form; it is changed in place. An empty one becomes the object without properties.

    Raises UserError where it has no strict form, is nested too deeply or is too large.
    """
    if not is_dict(schema):
        raise TypeError(f"a JSON schema is {type(schema).__name__}: a dict is expected")
    _check_depth(schema)
    if not schema:
        return copy.deepcopy(EMPTY)
    made = _Strict(schema).node(schema, "#")
    if isinstance(made.get("anyOf"), list):
        raise UserError("the root of a strict schema is an object, and here it is anyOf: wrap it in a property")
    if made.get("type") == ["object"]:
        made["type"] = "object"
    if isinstance(made.get("type"), list):
        raise UserError(f"the root of a strict schema is an object, and here its type is {made['type']}")
    return made


def copied_schema(schema: Schema) -> Schema:
    """Return a deep copy. Raises UserError where the schema is nested too deeply to be walked."""
    _check_depth(schema)
    return copy.deepcopy(schema)


def referred(schema: Any, ref: str) -> Schema | None:
    """Return the schema inside `schema` that a `$ref`, "#/…", refers to; None where it leads nowhere."""
    found: Any = schema
    for key in unquote(ref[2:]).split("/"):
        found = found.get(key.replace("~1", "/").replace("~0", "~")) if is_dict(found) else None
    return found if is_dict(found) else None


@dataclass
class _Strict:
    """The walk over one schema. `left`: how many nodes it may still look at."""

    root: Schema
    left: int = MAX_NODES

    def node(self, schema: Any, path: str, depth: int = 1) -> Schema:
        """Return one schema, changed in place to its strict form."""
        if not is_dict(schema):
            raise UserError(f"{path}: a schema is an object, and here is {type(schema).__name__}")
        self._spend(path, depth)
        held = schema

        def inner(one: Any, name: str) -> Schema:
            return self.node(one, f"{path}/{name}", depth + 1)

        for name in ("$defs", "definitions"):
            _each(held, name, inner)
        closed = held.get("additionalProperties") is False
        _close(held, path)
        _each(held, "properties", inner)
        if isinstance(held.get("items"), dict):
            held["items"] = inner(held["items"], "items")
        for name in ("prefixItems", "allOf"):
            if len(_listed(held.get(name))) > (name == "allOf"):  # an allOf of one is merged below
                held[name] = [inner(one, f"{name}/{number}") for number, one in enumerate(held[name])]
        self._unions(held, inner)
        if "default" in held and held["default"] is None:
            del held["default"]  # a nullable property is null when it is not given
        return self._merged(held, path, depth, closed=closed)

    def _unions(self, held: Schema, inner: Callable[[Any, str], Schema]) -> None:
        """Make the parts of a union strict; strict mode knows no `oneOf`, which says more than `anyOf` needs to."""
        parts = [one for name in ("anyOf", "oneOf") for one in _listed(held.pop(name, None))]
        if parts:
            held["anyOf"] = [inner(one, f"anyOf/{number}") for number, one in enumerate(parts)]

    def _merged(self, held: Schema, path: str, depth: int, *, closed: bool) -> Schema:
        """Put an `allOf` of one, or a `$ref` with other keys beside it, into the schema itself."""
        alone = _listed(held.get("allOf"))
        if len(alone) == 1:
            del held["allOf"]
            other = self._resolved(alone[0], path) if held else alone[0]
            if closed and _names(other) - _names(held):
                raise UserError(
                    f"{path}: additionalProperties is false beside an allOf, so that what the allOf names may not be there: "
                    "leave it out, or name the properties beside it"
                )
            if held.get("properties") == {}:  # the object beside says nothing of its own
                del held["properties"], held["required"]
            return self._with(held, other, path, depth)
        if "$ref" in held and len(held) > 1:
            target = self._target(held.pop("$ref"), path, set(held))
            if target is held:
                raise UserError(f"{path}: the $ref is circular and nothing but a reference")
            return self._with(held, target, path, depth)
        return held

    def _with(self, held: Schema, other: Any, path: str, depth: int) -> Schema:
        if not is_dict(other):
            raise UserError(f"{path}: a schema is an object, and here is {type(other).__name__}")
        merged = copy.deepcopy(other)
        clash = sorted(key for key in merged.keys() & held.keys() if key not in HARMLESS and merged[key] != held[key])
        if clash:
            raise UserError(f"{path}: {', '.join(clash)} is said twice and differs, here and in what it refers to")
        own = dict(held)
        held.clear()
        held.update({**merged, **own})
        return self.node(held, path, depth + 1)

    def _resolved(self, other: Any, path: str) -> Any:
        """Return what an `allOf` of one says, where that is a `$ref`: what is beside the `allOf` may say it too."""
        for _ in range(MAX_DEPTH):
            if not is_dict(other) or "$ref" not in other:
                return other
            beside = {key: one for key, one in other.items() if key != "$ref"}
            other = {**self._target(other["$ref"], path, set(beside)), **beside}
        raise UserError(f"{path}: the $ref is circular and nothing but a reference")

    def _target(self, ref: Any, path: str, beside: set[str]) -> Any:
        more = sorted(beside - HARMLESS)
        if more:
            raise UserError(f"{path}: a $ref with {', '.join(more)} beside it has no strict form")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            raise UserError(f"{path}: the $ref is {ref!r}, and only those inside the schema, '#/…', can be followed")
        found = referred(self.root, ref)
        if found is None:
            raise UserError(f"{path}: the $ref {ref!r} leads nowhere")
        return found

    def _spend(self, path: str, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            raise UserError(f"{path[:80]}: the schema is too large or too deep for strict mode; a $ref may be circular")


def _close(held: Schema, path: str) -> None:
    """Close an object and require its properties."""
    kind, properties = held.get("type"), held.get("properties")
    if kind is None and isinstance(properties, dict):
        kind = held["type"] = "object"
    is_object = kind == "object" or (isinstance(kind, list) and "object" in kind)
    if (is_object or kind is None) and held.get("additionalProperties", False) is not False:
        raise UserError(f"{path}: {OPEN_OBJECT.format(given=held['additionalProperties'])}")
    if is_object:
        held["additionalProperties"] = False
    named: Schema = held["properties"] if is_dict(held.get("properties")) else {}
    missing = sorted(str(one) for one in _listed(held.get("required")) if one not in named)
    if is_object and missing:
        raise UserError(f"{path}: {', '.join(missing)} is required and no property: name it among the properties")
    if is_dict(held.get("properties")):
        held["required"] = list(named)


def _each(held: Schema, name: str, inner: Callable[[Any, str], Schema]) -> None:
    if isinstance(held.get(name), dict):
        held[name] = {key: inner(one, f"{name}/{key}") for key, one in held[name].items()}


def _names(schema: Any) -> set[str]:
    return set(schema["properties"]) if is_dict(schema) and is_dict(schema.get("properties")) else set()


def _listed(value: Any) -> list[Any]:
    return value if is_list(value) else []


def _check_depth(schema: Any) -> None:
    layer: list[Any] = [schema]
    depth = seen = 0
    while layer:
        depth += 1
        seen += len(layer)
        if depth > MAX_DEPTH or seen > MAX_NODES:
            raise UserError(f"the schema is nested more than {MAX_DEPTH} deep, or has too many parts: flatten it")
        layer = [inner for one in layer for inner in _values(one) if isinstance(inner, dict | list)]


def _values(value: Any) -> list[Any]:
    return list(value.values()) if is_dict(value) else _listed(value)
