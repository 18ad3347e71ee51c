"""Functions as schemas, schemas in strict mode, output types: tables, and a property for any signature."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from antiphon.agent_output import AgentOutputSchema
from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.function_schema import function_schema, generate_func_documentation
from antiphon.strict_schema import ensure_strict_json_schema
from antiphon.tool_context import ToolContext


class Place(BaseModel):
    """A place."""

    city: str
    zip: str | None = None


class Unit(Enum):
    CELSIUS = "c"
    KELVIN = "k"


class Point(TypedDict):
    x: int
    y: int


@dataclass
class Pair:
    left: int
    right: str


class Node(BaseModel):
    value: int
    children: list[Node] = []


class Free(BaseModel):
    labels: dict[str, int]


# --- signatures ------------------------------------------------------------------------------------------------------


def plain(a: int, b: str = "x", c: float | None = None) -> str:
    """Does a thing.

    Args:
        a: The first.
        c: The third,
            on two lines.
    """
    return f"{a}{b}{c}"


def annotated(a: Annotated[int, "a number"], b: Annotated[str, Field(min_length=2, description="b text")]) -> None: ...


def defaults_in_annotations(
    a: Annotated[float, Field(default=5.0, ge=0)],
    _b: Annotated[int, Field(default=3)],
    c: Annotated[list[int], Field(default_factory=list)],
) -> None: ...


def fields_as_defaults(a: int = Field(ge=1, description="at least one"), b: int = Field(3, le=9)) -> None: ...


def odd_names(_hidden: int, copy: str, model_config: bool = True, json: int = 1) -> None: ...


def starred(a: int, *rest: int, flag: bool = False) -> None: ...


def with_context(ctx: ToolContext[Any], place: Place, unit: Unit, kind: Literal["a", "b"] = "a") -> None: ...


class Service:
    def look(self, key: str) -> str:
        """Look it up."""
        return key

    def __call__(self, key: int) -> int:
        return key


class Described:
    """What the class says."""

    def __call__(self, key: int) -> int:
        """What the call says."""
        return key


def _string(title: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "type": "string", **more}


def _integer(title: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "type": "integer", **more}


SCHEMAS: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    (
        "plain",
        plain,
        {
            "a": _integer("A", description="The first."),
            "b": _string("B", default="x"),
            "c": {
                "title": "C",
                "anyOf": [{"type": "number"}, {"type": "null"}],
                "description": "The third,\non two lines.",
            },
        },
    ),
    (
        "annotated",
        annotated,
        {
            "a": _integer("A", description="a number"),
            "b": _string("B", minLength=2, description="b text"),
        },
    ),
    (
        "defaults_in_annotations",
        defaults_in_annotations,
        {
            "a": {"title": "A", "type": "number", "minimum": 0, "default": 5.0},
            "_b": _integer("B", default=3),
            "c": {"title": "C", "type": "array", "items": {"type": "integer"}},
        },
    ),
    (
        "fields_as_defaults",
        fields_as_defaults,
        {
            "a": _integer("A", minimum=1, description="at least one"),
            "b": _integer("B", maximum=9, default=3),
        },
    ),
    (
        "odd_names",
        odd_names,
        {
            "_hidden": _integer("Hidden"),
            "copy": _string("Copy"),
            "model_config": {"title": "Model Config", "type": "boolean", "default": True},
            "json": _integer("Json", default=1),
        },
    ),
    (
        "starred",
        starred,
        {
            "a": _integer("A"),
            "rest": {"title": "Rest", "type": "array", "items": {"type": "integer"}},
            "flag": {"title": "Flag", "type": "boolean", "default": False},
        },
    ),
    ("bound method", Service().look, {"key": _string("Key")}),
    ("object", Service(), {"key": _integer("Key")}),
    ("partial", partial(plain, c=1.0), {"a": _integer("A", description="The first."), "b": _string("B", default="x")}),
]


@pytest.mark.parametrize(("name", "function", "properties"), SCHEMAS, ids=[one[0] for one in SCHEMAS])
def test_a_signature_becomes_a_strict_schema(
    name: str, function: Callable[..., Any], properties: dict[str, Any]
) -> None:
    schema = function_schema(function, name_override="f")
    found = schema.params_json_schema
    kept = {key: found["properties"][key] for key in properties}
    assert kept == properties
    assert {key: found[key] for key in ("title", "type", "required", "additionalProperties")} == {
        "title": "f_args",
        "type": "object",
        "required": list(found["properties"]),
        "additionalProperties": False,
    }


def test_a_context_is_not_in_the_schema() -> None:
    schema = function_schema(with_context)
    data = schema.params_pydantic_model(place={"city": "Bonn"}, unit="k")
    assert (schema.takes_context, sorted(schema.params_json_schema["properties"]), schema.to_call_args(data)) == (
        True,
        ["kind", "place", "unit"],
        ([Place(city="Bonn"), Unit.KELVIN, "a"], {}),
    )


def test_without_strict_mode_defaults_are_optional_and_keywords_are_free() -> None:
    def free(a: int, b: str = "x", **more: int) -> None: ...

    schema = function_schema(free, strict_json_schema=False)
    data = schema.params_pydantic_model(a=1, more={"c": 2})
    assert schema.params_json_schema["required"] == ["a"]
    assert schema.params_json_schema["properties"]["more"]["type"] == "object"
    assert schema.to_call_args(data) == ([1, "x"], {"c": 2})
    with pytest.raises(ModelBehaviorError, match="a came as a parameter and in 'more'"):
        schema.to_call_args(schema.params_pydantic_model(a=1, more={"a": 2}))


def _late_context(a: int, ctx: ToolContext[Any]) -> None: ...


def _free_keywords(**more: int) -> None: ...


def _free_dict(a: dict[str, int]) -> None: ...


def _any_object(a: Free) -> None: ...


class Opaque:
    """Nothing that pydantic knows."""


def _opaque(a: Opaque) -> None: ...


def _callable(a: Callable[[], int]) -> None: ...


REFUSED: list[tuple[str, Callable[..., Any], str]] = [
    ("late context", _late_context, "non-first position in function _late_context"),
    ("keywords", _free_keywords, "turn strict mode off"),
    ("dict", _free_dict, "additionalProperties"),
    ("model with a dict", _any_object, "additionalProperties"),
    ("class", _opaque, "function _opaque has a type without a JSON schema"),
    ("callable", _callable, "function _callable has a type without a JSON schema"),
]


@pytest.mark.parametrize(("name", "function", "words"), REFUSED, ids=[one[0] for one in REFUSED])
def test_what_has_no_strict_schema_is_refused(name: str, function: Callable[..., Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        function_schema(function)


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    class Local: ...

    def function(a: Local) -> None: ...

    with pytest.raises(UserError, match="names 'Local', which its module does not have"):
        function_schema(function)


# --- docstrings ------------------------------------------------------------------------------------------------------

DOCSTRINGS = {
    "google": "Says it.\n\nArgs:\n    a: The a.\n    *rest: The rest.\n\nReturns:\n    It.",
    "glued": "Says it.\nArgs:\n    a: The a.\n    *rest: The rest.",
    "first": "Args:\n    a: The a.\n    rest: The rest.",
    "numpy": "Says it.\n\nParameters\n----------\na : int\n    The a.\n*rest\n    The rest.\n",
    "sphinx": "Says it.\n\n:param a: The a.\n:param rest: The rest.\n:returns: It.",
}


@pytest.mark.parametrize("style", DOCSTRINGS)
def test_docstrings_of_three_styles(style: str) -> None:
    def function(a: int, *rest: int) -> None: ...

    function.__doc__ = DOCSTRINGS[style]
    told = generate_func_documentation(function)
    assert told.param_descriptions == {"a": "The a.", "rest": "The rest."}
    assert told.description == (None if style == "first" else "Says it.")


def test_docstrings_may_be_overridden_or_left_out() -> None:
    bare = function_schema(plain, use_docstring_info=False)
    named = function_schema(plain, name_override="other", description_override="Other words.")
    assert (bare.name, bare.description) == ("plain", None)
    assert "description" not in bare.params_json_schema["properties"]["a"]
    assert (named.name, named.description) == ("other", "Other words.")


# --- any signature ---------------------------------------------------------------------------------------------------

VALUES: dict[Any, st.SearchStrategy[Any]] = {
    int: st.integers(-9, 9),
    str: st.text(max_size=5),
    bool: st.booleans(),
    list[int]: st.lists(st.integers(-9, 9), max_size=3),
    int | None: st.none() | st.integers(-9, 9),
    Any: st.none() | st.booleans() | st.lists(st.text(max_size=2), max_size=2),
}
NAMES = st.sampled_from(
    [
        "a",
        "b",
        "copy",
        "json",
        "schema",
        "dict",
        "_x",
        "__y",
        "self",
        "cls",
        "model_config",
        "model_dump",
        "validate",
        "fields",
        "Field",
        "data",
        "name",
        "type",
    ]
)
KINDS = [inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY]


@st.composite
def calls(draw: st.DrawFn) -> tuple[inspect.Signature, dict[str, Any]]:
    """A signature, and the arguments that a model gives by name."""
    names = draw(st.lists(NAMES, unique=True, max_size=6))
    kinds = sorted(draw(st.lists(st.sampled_from(KINDS), min_size=len(names), max_size=len(names))))
    parameters: list[inspect.Parameter] = []
    values: dict[str, Any] = {}
    optional = False
    for name, kind in zip(names, kinds, strict=True):
        annotation = draw(st.sampled_from(list(VALUES)))
        optional = (kind is not inspect.Parameter.KEYWORD_ONLY and optional) or draw(st.booleans())
        default = draw(VALUES[annotation]) if optional else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
        if not optional or draw(st.booleans()):
            values[name] = draw(VALUES[annotation])
    if draw(st.booleans()):
        rest = inspect.Parameter("rest", inspect.Parameter.VAR_POSITIONAL, annotation=int)
        parameters.append(rest)
        values["rest"] = draw(st.lists(st.integers(-9, 9), max_size=3))
    return inspect.Signature(sorted(parameters, key=lambda one: one.kind)), values


@given(calls())
def test_any_signature_gets_what_the_model_gave(case: tuple[inspect.Signature, dict[str, Any]]) -> None:
    signature, values = case

    def function(*args: Any, **keywords: Any) -> None: ...

    vars(function)["__signature__"] = signature
    function.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    schema = function_schema(function)
    args, keywords = schema.to_call_args(schema.params_pydantic_model.model_validate(values))
    bound = signature.bind(*args, **keywords)
    bound.apply_defaults()
    expected = {one.name: values.get(one.name, one.default) for one in signature.parameters.values()}
    if "rest" in expected:
        expected["rest"] = tuple(expected["rest"])
    assert dict(bound.arguments) == expected
    assert sorted(schema.params_json_schema["properties"]) == sorted(signature.parameters)


# --- strict mode -----------------------------------------------------------------------------------------------------

CLOSED = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
STRICT: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("empty", {}, CLOSED),
    (
        "nested",
        {"properties": {"a": {"type": "array", "items": {"properties": {"b": {"type": "string"}}}}}},
        {
            "type": "object",
            "properties": {
                "a": {
                    "type": "array",
                    "items": {**CLOSED, "properties": {"b": {"type": "string"}}, "required": ["b"]},
                }
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    ),
    (
        "null default",
        {"type": "object", "properties": {"a": {"type": ["string", "null"], "default": None}}},
        {**CLOSED, "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]},
    ),
    (
        "reference with a description",
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A", "description": "an a"}},
            "$defs": {"A": {"type": "string", "minLength": 1}},
        },
        {
            **CLOSED,
            "properties": {"a": {"type": "string", "minLength": 1, "description": "an a"}},
            "required": ["a"],
            "$defs": {"A": {"type": "string", "minLength": 1}},
        },
    ),
    (
        "one of",
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}, {"type": "object"}]}}},
        {**CLOSED, "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "object", "additionalProperties": False}]}}, "required": ["a"]},
    ),
    (
        "tuple",
        {"properties": {"a": {"type": "array", "prefixItems": [{"type": "object"}, {"type": "null"}]}}},
        {
            **CLOSED,
            "properties": {
                "a": {
                    "type": "array",
                    "prefixItems": [{"type": "object", "additionalProperties": False}, {"type": "null"}],
                }
            },
            "required": ["a"],
        },
    ),
    (
        "all of two",
        {"properties": {"a": {"allOf": [{"type": "object"}, {"title": "T"}]}}},
        {
            **CLOSED,
            "properties": {"a": {"allOf": [{"type": "object", "additionalProperties": False}, {"title": "T"}]}},
            "required": ["a"],
        },
    ),
    (
        "all of one",
        {
            "type": "object",
            "properties": {"a": {"allOf": [{"$ref": "#/$defs/A"}], "title": "T"}},
            "$defs": {"A": {"type": "object", "properties": {"b": {"type": "null"}}}},
        },
        {
            **CLOSED,
            "properties": {
                "a": {**CLOSED, "properties": {"b": {"type": "null"}}, "required": ["b"], "title": "T"}
            },
            "required": ["a"],
            "$defs": {"A": {**CLOSED, "properties": {"b": {"type": "null"}}, "required": ["b"]}},
        },
    ),
    (
        "all of one, by way of another, in an object",
        {
            "type": "object",
            "description": "d",
            "allOf": [{"$ref": "#/$defs/A~1", "title": "T"}],
            "$defs": {"A/": {"$ref": "#/$defs/B"}, "B": {"type": "object", "properties": {"b": {"type": "null"}}}},
        },
        {
            **CLOSED,
            "description": "d",
            "title": "T",
            "properties": {"b": {"type": "null"}},
            "required": ["b"],
            "$defs": {
                "A/": {"$ref": "#/$defs/B"},
                "B": {**CLOSED, "properties": {"b": {"type": "null"}}, "required": ["b"]},
            },
        },
    ),
    (
        "all of one, in an object without properties",
        {"type": "object", "properties": {}, "allOf": [{"properties": {"b": {"type": "null"}}}]},
        {**CLOSED, "properties": {"b": {"type": "null"}}, "required": ["b"]},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "schema", "strict"), STRICT, ids=[one[0] for one in STRICT])
def test_strict_mode(name: str, schema: dict[str, Any], strict: dict[str, Any]) -> None:
    made = ensure_strict_json_schema(schema)
    assert made == strict
    assert ensure_strict_json_schema(made) == strict


def _deep(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        made = {"type": "array", "items": made}
    return made


def _fan(levels: int) -> dict[str, Any]:
    """Two references a level: inlined, they would be a schema of 2^levels nodes."""
    defs: dict[str, Any] = {"L0": {"type": "string"}}
    for level in range(levels):
        ref = {"$ref": f"#/$defs/L{level}", "description": "d"}
        defs[f"L{level + 1}"] = {"type": "object", "properties": {"a": ref, "b": dict(ref)}}
    return {"type": "object", "properties": {"top": {"$ref": f"#/$defs/L{levels}", "description": "d"}}, "$defs": defs}


NAMED = {"type": "object", "properties": {"value": {"type": "string"}}}
NOT_STRICT: list[tuple[str, dict[str, Any], str]] = [
    ("free object", {"type": "object", "additionalProperties": True}, "additionalProperties"),
    ("free object by an empty schema", {"type": "object", "additionalProperties": {}}, "additionalProperties"),
    ("untyped free object", {"additionalProperties": {"type": "string"}}, "additionalProperties"),
    ("union at the root", {"anyOf": [{"type": "string"}]}, "anyOf"),
    ("nullable root", {"type": ["object", "null"]}, "root"),
    ("reference to nowhere", {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "title": "T"}}}, "nowhere"),
    ("reference outside", {"type": "object", "properties": {"a": {"$ref": "http://x/a", "title": "T"}}}, "inside"),
    (
        "reference with more to say",
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A", "minLength": 1}}, "$defs": {"A": {}}},
        "minLength",
    ),
    (
        "circular reference",
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a", "title": "T"}}},
        "circular",
    ),
    (
        "circular references alone",
        {"type": "object", "allOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": {"$ref": "#/$defs/A"}}},
        "circular",
    ),
    *(
        (
            f"a closed object beside {what}",
            {**CLOSED, "properties": {}, "allOf": [one], "$defs": {"A": NAMED}},
            "may not be there",
        )
        for what, one in (("an allOf", NAMED), ("an allOf of a reference", {"$ref": "#/$defs/A"}))
    ),
    ("too deep", _deep(200), "deep"),
    ("fan of references", _fan(20), "too large"),
    ("no schema", {"type": "object", "properties": {"a": "string"}}, "a schema is an object"),
]


@pytest.mark.parametrize(("name", "schema", "words"), NOT_STRICT, ids=[one[0] for one in NOT_STRICT])
def test_a_schema_without_strict_form_is_refused(name: str, schema: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        ensure_strict_json_schema(schema)


LEAF = st.sampled_from([{"type": "string"}, {"type": "integer", "default": None}, {}, {"$ref": "#/$defs/A"}])
KEYS = st.sampled_from(["a", "b", "type", "properties"])


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.fixed_dictionaries({"properties": st.dictionaries(KEYS, inner, max_size=3)}),
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=2), "title": st.just("t")}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        st.fixed_dictionaries({"$ref": st.just("#/$defs/A"), "description": st.just("d")}),
    )


def _objects(schema: Any) -> list[Any]:
    """All schemas of objects in a schema; what names properties is no schema itself."""
    if isinstance(schema, list):
        return [one for inner in schema for one in _objects(inner)]
    if not isinstance(schema, dict):
        return []
    inner = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), schema.get("items")]
    parts = [schema.get(key) for key in ("anyOf", "oneOf", "allOf")]
    return [schema] * (schema.get("type") == "object") + _objects(inner) + _objects(parts)


@settings(deadline=None)
@given(
    st.dictionaries(KEYS, st.recursive(LEAF, _larger, max_leaves=8), max_size=3),
    st.recursive(LEAF, _larger, max_leaves=3),
)
def test_any_schema_is_made_strict_or_refused(properties: dict[str, Any], definition: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": properties, "$defs": {"A": definition}}
    try:
        made = ensure_strict_json_schema(copy.deepcopy(schema))
    except UserError:
        return
    assert ensure_strict_json_schema(copy.deepcopy(made)) == made
    for one in _objects(made):
        assert one["additionalProperties"] is False
        assert one.get("required", []) == list(one.get("properties", {}))


@pytest.mark.parametrize("schema", [[], "object", None])
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    with pytest.raises(TypeError, match="a dict is expected"):
        ensure_strict_json_schema(schema)


# --- output types ----------------------------------------------------------------------------------------------------

OUTPUTS: list[tuple[Any, str, str, Any]] = [
    (Place, "Place", '{"city":"Bonn","zip":null}', Place(city="Bonn")),
    (Point, "Point", '{"x":1,"y":2}', {"x": 1, "y": 2}),
    (list[int], "list[int]", '{"response":[1,2]}', [1, 2]),
    (int, "int", '{"response":3}', 3),
    (list[Place], "list[Place]", '{"response":[{"city":"Bonn","zip":"1"}]}', [Place(city="Bonn", zip="1")]),
    (Pair, "Pair", '{"response":{"left":1,"right":"r"}}', Pair(1, "r")),
    (Pair, "Pair", '{"left":1,"right":"r"}', Pair(1, "r")),
    (Literal["a", "b"], "Literal[a, b]", '{"response":"a"}', "a"),
    (Node, "Node", '{"value":1,"children":[{"value":2,"children":[]}]}', Node(value=1, children=[Node(value=2)])),
]


@pytest.mark.parametrize(("kind", "name", "text", "value"), OUTPUTS)
def test_output_types(kind: Any, name: str, text: str, value: Any) -> None:
    schema = AgentOutputSchema(kind)
    assert (schema.is_plain_text(), schema.is_strict_json_schema()) == (False, True)
    assert schema.validate_json(text) == value
    assert schema.json_schema()["additionalProperties"] is False
    if not name.startswith("Literal"):
        assert schema.name() == name


@pytest.mark.parametrize("kind", [str, None])
def test_plain_text_has_no_schema(kind: Any) -> None:
    schema = AgentOutputSchema(kind)
    assert schema.is_plain_text()
    with pytest.raises(UserError, match="plain text"):
        schema.json_schema()


@pytest.mark.parametrize("kind", [dict[str, int], Free])
def test_an_output_type_that_cannot_be_strict(kind: Any) -> None:
    with pytest.raises(UserError, match="strict_json_schema=False"):
        AgentOutputSchema(kind)
    loose = AgentOutputSchema(kind, strict_json_schema=False)
    assert not loose.is_strict_json_schema()


@pytest.mark.parametrize(
    ("kind", "text"),
    [(Place, '{"zip":"geheim"}'), (Place, "geheim"), (list[int], '["geheim"]'), (Pair, '{"left":"geheim"}')],
)
def test_output_that_does_not_fit_is_not_repeated(kind: Any, text: str) -> None:
    with pytest.raises(ModelBehaviorError, match="Invalid JSON") as caught:
        AgentOutputSchema(kind).validate_json(text)
    assert "geheim" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__context__) == (None, None)
