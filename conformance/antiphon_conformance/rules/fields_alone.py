"""A quick way to ask whether a value validates: no objects are built, and of a union one class is asked.

pydantic describes what a type validates as a schema of plain dicts. Two changes make that schema three times as quick to
ask, and neither lets anything through that the whole schema refuses:

- a model becomes a dict with its fields: whether they fit is all that is asked, so that neither an instance of it is
  needed nor what else an instance would hold;
- a union of models that each have another `type` becomes the model that the value's own `type` names.

What does not fit here may fit there: a model instance, or a value of another class in a union. So of what does not fit
nothing is known, and the whole schema has to say what is wrong with it.
Source: pydantic's documentation, "Core Schema" (`TypeAdapter.core_schema`) and "Discriminated Unions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from antiphon_conformance.read import Json

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

Fits: TypeAlias = Callable[[Any], bool]
Node: TypeAlias = Mapping[str, Any]

# What a model's own configuration may say without changing which fields fit.
_HARMLESS = {"title": None, "extra_fields_behavior": ("allow", "ignore")}
_BESIDE = ("metadata", "serialization")  # what a node holds that is not asked
_NAMING = ("validation_alias",)  # what says of a field where its value is
_OWN_CODE = ("custom_init", "root_model", "post_init")


def fits(annotation: Any, *, strict: bool) -> Fits:
    """Return what says of a value whether it surely validates against a type."""
    from pydantic import TypeAdapter
    from pydantic_core import SchemaValidator

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    adapter.rebuild()  # openai's models are built when they are first needed
    node: Any = adapter.core_schema
    known: dict[str, Node] = {one["ref"]: one for one in node.get("definitions", ())}
    schema = adapter.core_schema if _has_code(node) else cast("CoreSchema", _Quicker(known).of(node))
    return partial(SchemaValidator(schema).isinstance_python, strict=strict)


def _has_code(node: Any) -> bool:
    """Whether a schema calls a function, which may want the instance of a model."""
    if node.__class__ in (list, tuple):
        return any(map(_has_code, node))
    if node.__class__ is not dict:
        return False
    held: Json = node
    kind = held.get("type")
    if not isinstance(kind, str):  # the fields of a model, or the choices of a union, by name
        return any(map(_has_code, held.values()))
    return kind.startswith("function-") or any(_has_code(one) for key, one in held.items() if key not in _BESIDE)


class _Quicker:
    """Rewrites a schema; `known` are its definitions, by their names."""

    def __init__(self, known: Mapping[str, Node]) -> None:
        self._known = known

    def of(self, node: Any) -> Any:
        """Return a node, or what a node holds, with all below it rewritten."""
        if node.__class__ is list:
            return list(map(self.of, node))
        if node.__class__ is tuple:  # a choice of a union, and its name
            return tuple(map(self.of, node))
        if node.__class__ is not dict:
            return node
        held: Json = node
        kind = held.get("type")
        if kind == "model" and _is_fields_alone(held):
            return self._named_as(held, self._dict_of(held["schema"]["fields"]))
        by_type = self._by_type(held["choices"]) if kind == "union" else None
        if by_type:
            choices = {name: self.of(choice) for name, choice in by_type.items()}
            return self._named_as(held, {"type": "tagged-union", "discriminator": "type", "choices": choices})
        beside = _BESIDE if isinstance(kind, str) else ()
        return {key: one if key in beside else self.of(one) for key, one in held.items()}

    def _dict_of(self, fields: Mapping[str, Node]) -> Node:
        """Return what asks for a dict with these fields; one that has a default may be missing."""
        asked = {name: self._field(field) for name, field in fields.items()}
        return {"type": "typed-dict", "fields": asked, "extra_behavior": "ignore"}

    def _field(self, field: Node) -> Node:
        schema = self.of(field["schema"])
        kept = {key: field[key] for key in _NAMING if key in field}
        return {**kept, "type": "typed-dict-field", "schema": schema, "required": schema["type"] != "default"}

    def _named_as(self, node: Node, made: Node) -> Node:
        return {**made, "ref": node["ref"]} if "ref" in node else made

    def _by_type(self, choices: list[Any]) -> dict[str, Node] | None:
        """Return type -> choice, or None where two choices have one `type`, or one has none."""
        found: dict[str, Node] = {}
        for choice in choices:
            node: Node = choice[0] if choice.__class__ is tuple else choice
            names = list(self._types(node))
            if not names or any(name in found for name in names):
                return None
            found.update(dict.fromkeys(names, node))
        return found

    def _types(self, node: Node) -> Iterator[str]:
        """Yield the values that `type` may have in a model."""
        while node["type"] == "definition-ref":
            node = self._known[node["schema_ref"]]
        fields: Mapping[str, Node] = node["schema"].get("fields", {}) if node["type"] == "model" else {}
        field: Node = fields["type"]["schema"] if "type" in fields else {"type": ""}
        while field["type"] in ("default", "nullable"):
            field = field["schema"]
        if field["type"] == "literal":
            yield from field["expected"]
        elif field["type"] == "enum":
            yield from (member.value for member in field["members"])


def _is_fields_alone(model: Node) -> bool:
    """Whether a model asks of a dict just what its fields ask."""
    config: Mapping[str, Any] = model.get("config", {})
    odd = [key for key, value in config.items() if key not in _HARMLESS or value not in (_HARMLESS[key] or (value,))]
    return model["schema"]["type"] == "model-fields" and not odd and not any(map(model.get, _OWN_CODE))
