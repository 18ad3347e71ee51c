"""Makes openai objects of JSON data that is exactly of their types: as validation does, at a tenth of the cost.

What is made equals what pydantic would make, slot by slot. Data that is not exactly what the fields say (another type,
an unknown word, a missing field) and classes that hold more than plain fields raise `Inexact`: then pydantic decides.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from openai import BaseModel
from pydantic.fields import FieldInfo

from .chunk import LISTS, copied

Make: TypeAlias = Callable[[Any], Any]  # the value of a field, of one in JSON; they share nothing. Raises Inexact
_UNIONS = (Union, types.UnionType)


class Inexact(Exception):
    """The data is not exactly of the type that it is to be made into."""


class Blank(BaseModel):
    """An object that gets its class last: until then its slots are set past pydantic, at a tenth of the cost."""

    __new__ = object.__new__
    __init__ = object.__init__  # pyright: ignore[reportAssignmentType]  # it takes nothing: all is set later
    __setattr__ = object.__setattr__
    __delattr__ = object.__delattr__


@cache
def maker(model: type[BaseModel]) -> Make:
    """Return what makes objects of `model`."""
    if model.__private_attributes__ or any(map(_is_made_anew, model.model_fields.values())):
        return _refuse
    make = _general(model)
    return _token(model, make) if TOKEN - {"bytes"} <= model.model_fields.keys() <= ENTRY else make


def _general(model: type[BaseModel]) -> Make:
    keys = {name: field.alias or name for name, field in model.model_fields.items()}
    template = {name: None if field.is_required() else field.default for name, field in model.model_fields.items()}
    required = {keys[name] for name, field in model.model_fields.items() if field.is_required()}
    renamed = {key: name for name, key in keys.items() if key != name}
    makes: dict[str, Make] = {}
    kinds: dict[str, type[Any] | None] = {}  # what is taken as it is

    def prepare() -> None:
        fields = model.model_fields.items()
        kinds.update({keys[name]: _kind_of(field.annotation) for name, field in fields})
        makes.update(
            {keys[name]: _made_of(field.annotation) for name, field in fields}
        )  # at once: others may wait for it

    def make(value: Any) -> Any:
        if type(value) is not dict:
            raise Inexact
        if not makes:
            prepare()  # not before it is needed: a class may hold objects of its own class
        data: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        held, given = template.copy(), {*data}
        extra: dict[str, Any] = {}
        if not required <= given:
            raise Inexact
        for key, one in data.items():
            if type(one) is kinds.get(key):
                held[key] = one
            elif key in makes:
                held[key] = makes[key](one)
            else:
                extra[key] = copied(one)
        return _filled(model, _named(held, given, renamed) if renamed else held, given, extra)

    return make


def _filled(model: type[BaseModel], held: dict[str, Any], given: set[str], extra: dict[str, Any]) -> Any:
    """Return an object of `model` that owns all that is given."""
    made: Any = Blank()
    made.__dict__ = held
    made.__pydantic_fields_set__ = given
    made.__pydantic_extra__ = extra
    made.__pydantic_private__ = None
    made.__class__ = model
    return made


def _named(held: dict[str, Any], given: set[str], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields by their names in Python, and name those that were `given` so."""
    for key, name in renamed.items():
        if name in given:
            raise Inexact
        if key in given:
            held[name] = held.pop(key)
            given.remove(key)
            given.add(name)
    return held


TOKEN = frozenset({"token", "logprob", "bytes"})
ENTRY = TOKEN | {"top_logprobs"}


def _token(model: type[BaseModel], otherwise: Make) -> Make:
    """Return the same for a token with its log probability, written out: where there are any, nearly all objects are."""
    has_top, knows_bytes = "top_logprobs" in model.model_fields, "bytes" in model.model_fields
    size = len(ENTRY if has_top else TOKEN)
    make_top = _made_of(model.model_fields["top_logprobs"].annotation) if has_top else _refuse

    def make(one: Any) -> Any:
        try:
            token, logprob, given = one["token"], one["logprob"], one["bytes"]
            top = one["top_logprobs"] if has_top else None
            octets = [*bytes(given)]  # so that they are numbers
        except (KeyError, TypeError, ValueError):
            return otherwise(one)
        if len(one) != size or type(token) is not str or type(logprob) is not float or type(given) is not list:
            return otherwise(one)
        held: dict[str, Any] = {"token": token}
        if knows_bytes:
            held["bytes"] = octets
        held["logprob"] = logprob
        if has_top:
            held["top_logprobs"] = make_top(top)
        return _filled(model, held, {*one}, {} if knows_bytes else {"bytes": given[:]})

    return make


def _is_made_anew(field: FieldInfo) -> bool:
    """Return whether the field's default must not be shared."""
    return field.default_factory is not None or isinstance(field.default, list | dict | BaseModel)


def _made_of(annotation: Any) -> Make:
    """Return what makes values of a field that is annotated so."""
    arguments = get_args(annotation)
    match get_origin(annotation):
        case origin if origin is Annotated:
            return _made_of(arguments[0])
        case origin if origin is Literal:
            return _word_of(frozenset(arguments))
        case origin if origin is list:
            return _list_of(_made_of(arguments[0]), _kind_of(arguments[0]))
        case origin if origin is dict:
            return _dict_of(_made_of(arguments[1])) if arguments[0] is str else _refuse
        case origin if origin in _UNIONS:
            return _one_of(arguments)
        case _:
            return _plain(annotation)


def _kind_of(annotation: Any) -> type[Any] | None:
    """Return the type whose values such a field takes as they are, if there is one."""
    options = get_args(annotation) if get_origin(annotation) in _UNIONS else (annotation,)
    return next((one for one in (str, float, int, bool) if one in options), None)


def _plain(annotation: Any) -> Make:
    if annotation in (object, Any):
        return copied
    if annotation is float:
        return _number
    if annotation in (str, int, bool, type(None)):
        return _just(annotation)
    return maker(annotation) if _is_model(annotation) else _refuse


def _refuse(value: Any) -> Any:
    raise Inexact


def _number(value: Any) -> float:
    if type(value) is float:
        return value
    if type(value) is not int:
        raise Inexact
    return float(value)


def _just(kind: type[Any]) -> Make:
    def make(value: Any) -> Any:
        if type(value) is not kind:
            raise Inexact
        return value

    return make


def _word_of(words: frozenset[Any]) -> Make:
    def make(value: Any) -> Any:
        if type(value) is not str or value not in words:
            raise Inexact
        return value

    return make


def _list_of(make: Make, kind: type[Any] | None) -> Make:
    def make_list(value: Any) -> list[Any]:
        if type(value) not in LISTS:
            raise Inexact
        return [one if type(one) is kind else make(one) for one in value]

    return make_list


def _dict_of(make: Make) -> Make:
    def make_dict(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise Inexact
        data: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {key: make(one) for key, one in data.items()}

    return make_dict


def _one_of(options: Sequence[Any]) -> Make:
    """Return what makes a value of one of several types: of classes the one whose `type` the data names."""
    by_type: dict[str, Make] = {}
    others: list[Make] = []
    untold = 0  # options that take an object whatever its type is
    for option in sorted(options, key=lambda one: one is float):  # a whole number is an int, where it may be
        words = _types(option)
        for word in words:
            by_type[word] = _refuse if word in by_type else maker(option)
        if not words:
            others.append(_made_of(option))
            untold += _takes_objects(option)
    if untold > 1 or (untold and by_type):
        return _refuse

    def make(value: Any) -> Any:
        if value is None and type(None) in options:
            return None
        word = value.get("type") if isinstance(value, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(word, str) and word in by_type:
            return by_type[word](value)
        for other in others:
            try:
                return other(value)
            except Inexact:
                pass
        raise Inexact

    return make


def _takes_objects(option: Any) -> bool:
    return option in (object, Any) or get_origin(option) is dict or _is_model(option)


def _types(option: Any) -> Sequence[str]:
    """Return the words that the field `type` of a class allows; none where it is no class, or has no such field."""
    if not _is_model(option) or "type" not in option.model_fields:
        return ()
    annotation: Any = option.model_fields["type"].annotation
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _is_model(option: Any) -> bool:
    return isinstance(option, type) and issubclass(option, BaseModel)
