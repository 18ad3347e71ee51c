"""A function's parameters as a pydantic model and a JSON schema, and the way back to a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from math import isfinite
from types import GenericAlias, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PydanticUserError, TypeAdapter, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import ValidationError, core_schema

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.run.context import RunContextWrapper
from antiphon.run.reading import Json

from .docstrings import DocstringStyle, FuncDocumentation, generate_func_documentation, name_of, said_by
from .strict import ensure_strict_json_schema

Parameter: TypeAlias = inspect.Parameter
EMPTY = inspect.Parameter.empty
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class QuietSchema(GenerateJsonSchema):
    """A default that has no JSON form is left out without a warning: it is the function's own affair."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Return pydantic's schema of a value with a default; no request can hold one that is NaN or infinite."""
        made = super().default_schema(schema)
        default = made.get("default")
        if isinstance(default, float) and not isfinite(default):
            del made["default"]
        return made


@dataclass
class FuncSchema:
    """What a model needs to know to call a function, and what turns its arguments into the call.

    `fields`: parameter -> field of the model, where its own name cannot be a field's.
    """

    name: str
    description: str | None
    params_pydantic_model: type[BaseModel]
    params_json_schema: Json
    signature: inspect.Signature
    takes_context: bool = False
    strict_json_schema: bool = True
    return_annotation: Any = inspect.Signature.empty
    fields: Mapping[str, str] = field(default_factory=dict[str, str])

    def to_call_args(self, data: BaseModel) -> tuple[list[Any], Json]:
        """Return the positional and the keyword arguments that `data` stands for; the context is not among them.

        Raises ModelBehaviorError where a key of `**kwargs` is a named parameter too.
        """
        args: list[Any] = []
        keywords: Json = {}
        starred = False
        for parameter in list(self.signature.parameters.values())[int(self.takes_context) :]:
            value = data.__dict__.get(self.fields.get(parameter.name, parameter.name))
            if parameter.kind is Parameter.VAR_POSITIONAL:
                args.extend(value or ())
                starred = True
            elif parameter.kind is Parameter.VAR_KEYWORD:
                keywords.update(self._free(parameter.name, value or {}))
            elif parameter.kind is Parameter.KEYWORD_ONLY or starred:
                keywords[parameter.name] = value
            else:
                args.append(value)
        return args, keywords

    def _free(self, name: str, values: Json) -> Json:
        taken = {one.name for one in self.signature.parameters.values() if one.kind in BY_NAME}
        clash = sorted(taken & values.keys())
        if clash:
            raise ModelBehaviorError(
                f"Invalid arguments for tool {self.name}: {', '.join(clash)} came as a parameter and in {name!r}; "
                "each argument is given once, as the parameter"
            )
        return values


def function_schema(
    func: Callable[..., Any],
    docstring_style: DocstringStyle | None = None,
    name_override: str | None = None,
    description_override: str | None = None,
    use_docstring_info: bool = True,
    strict_json_schema: bool = True,
) -> FuncSchema:
    """Return the schema of a function: from its signature, its annotations and its docstring.

    A first parameter annotated as a context is not in it. Raises UserError where a later one is, where `**kwargs` or
    a free-form dict is asked for in strict mode, or where an annotation cannot be resolved.
    """
    told = (
        generate_func_documentation(func, docstring_style) if use_docstring_info else FuncDocumentation(name_of(func))
    )
    name = name_override or told.name
    hints, signature = _hints(func), signature_of(func)
    parameters = list(signature.parameters.values())
    takes_context = bool(parameters) and parameters[0].kind in POSITIONAL and _is_context(hints.get(parameters[0].name))
    offered = parameters[int(takes_context) :]
    _refuse(offered, hints, name, strict_json_schema)
    fields = _field_names([one.name for one in offered])
    model, schema = _described(name, offered, hints, fields)
    for one, text in _descriptions(offered, hints, told):
        schema["properties"][_key(model, fields[one])]["description"] = text
    return FuncSchema(
        name=name,
        description=description_override or told.description,
        params_pydantic_model=model,
        params_json_schema=ensure_strict_json_schema(schema) if strict_json_schema else schema,
        signature=signature,
        takes_context=takes_context,
        strict_json_schema=strict_json_schema,
        return_annotation=hints.get("return", signature.return_annotation),
        fields=fields,
    )


def described(
    kind: Any, what: str, mode: Literal["validation", "serialization"] = "validation"
) -> tuple[TypeAdapter[Any], Json]:
    """Return what reads values of a type, and its JSON schema. Raises UserError, of `what`, where it has none."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        return adapter, adapter.json_schema(mode=mode, schema_generator=QuietSchema)
    except (PydanticUserError, NameError) as error:
        raise UserError(
            f"{what} has no JSON schema: {error}; use a pydantic model, a dataclass, a TypedDict, or what can be a "
            "field of one"
        ) from error


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why values do not fit. Returned, as an exception would hold the values."""

    why: str


def fitting(read: Callable[[Any], Any], given: Any, whole: str = "arguments") -> Any:
    """Return what `read`, a validator of pydantic's, makes of what is given; `Unfit`, without the values, where it cannot.

    `whole`: what all of the values together are called.
    """
    try:
        return read(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
    return Unfit("; ".join(f"{'.'.join(str(key) for key in one['loc']) or whole}: {one['msg']}" for one in found))


def signature_of(func: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function. Raises UserError where it has none, as some that are written in C."""
    try:
        return inspect.signature(func)
    except ValueError as error:
        raise UserError(
            f"{name_of(func)} says nothing of its parameters: wrap it in a function that has them, with annotations"
        ) from error


def _hints(func: Callable[..., Any]) -> Json:
    annotated = said_by(func)
    try:
        return get_type_hints(annotated.__init__ if inspect.isclass(annotated) else annotated, include_extras=True)
    except NameError as error:
        raise UserError(
            f"an annotation of {name_of(func)} names {error.name!r}, which its module does not have: "
            "define it at the top of the module, or leave out `from __future__ import annotations`"
        ) from error


def _is_context(annotation: Any) -> bool:
    """Return whether an annotation is that of a context: the run's, or a call's, or one of them or None."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(_is_context(one) for one in get_args(annotation))
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and issubclass(kind, RunContextWrapper)


def _refuse(offered: list[Parameter], hints: Json, name: str, strict: bool) -> None:
    for one in offered:
        if _is_context(hints.get(one.name)):
            raise UserError(
                f"RunContextWrapper/ToolContext param found at non-first position in function {name}: "
                f"make {one.name!r} the first, which is passed by position"
            )
        if one.kind is Parameter.VAR_KEYWORD and strict:
            raise UserError(
                f"**{one.name} of function {name} has no strict schema: name the parameters, or turn strict mode off"
            )


def _field_names(names: list[str]) -> dict[str, str]:
    """Return for each name itself, or another one where pydantic has a meaning for it already."""
    free = (other for number in count() if (other := f"parameter_{number}") not in names)
    return {name: next(free) if name.startswith("_") or hasattr(BaseModel, name) else name for name in names}


def _described(
    name: str, offered: list[Parameter], hints: Json, fields: Mapping[str, str]
) -> tuple[type[BaseModel], Json]:
    """Return the model of the parameters, and its JSON schema. Raises UserError for a type that has none."""
    free = any(one.kind is Parameter.VAR_KEYWORD for one in offered)
    config = ConfigDict(protected_namespaces=(), extra="forbid" if free else "ignore", arbitrary_types_allowed=False)
    made: Json = {fields[one.name]: _definition(one, hints, fields[one.name]) for one in offered}
    try:
        model = create_model(f"{name}_args", __config__=config, **made)
        return model, model.model_json_schema(schema_generator=QuietSchema)
    except PydanticUserError as error:
        raise UserError(f"a parameter of function {name} has a type without a JSON schema: {error.message}") from error


def _definition(one: Parameter, hints: Json, field_name: str) -> Any:
    """Return the annotation of the model's field for a parameter, with its default where it has one of its own."""
    annotation, default = hints.get(one.name, Any), one.default
    if one.kind is Parameter.VAR_POSITIONAL:  # the annotation is that of each value, PEP 484
        annotation, default = GenericAlias(list, (annotation,)), Field(default_factory=list)
    elif one.kind is Parameter.VAR_KEYWORD:
        annotation, default = GenericAlias(dict, (str, annotation)), Field(default_factory=dict)
    if field_name != one.name:
        title = one.name.replace("_", " ").strip().title()
        annotation = Annotated[annotation, Field(alias=one.name, title=title)]
    return annotation if default is EMPTY else (annotation, default)


def _descriptions(offered: list[Parameter], hints: Json, told: FuncDocumentation) -> Iterator[tuple[str, str]]:
    """Yield parameter and description; the docstring's comes before that of the annotation."""
    described = told.param_descriptions or {}
    for one in offered:
        extras = get_args(hints.get(one.name))[1:] if get_origin(hints.get(one.name)) is Annotated else ()
        annotated = next((extra for extra in extras if isinstance(extra, str)), None)
        text = described.get(one.name) or annotated
        if text:
            yield one.name, text


def _key(model: type[BaseModel], field_name: str) -> str:
    """Return the key of a field in the model's schema, which pydantic takes from what the field may be given as."""
    alias = model.model_fields[field_name].validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return next((one for one in choices if isinstance(one, str)), field_name)
