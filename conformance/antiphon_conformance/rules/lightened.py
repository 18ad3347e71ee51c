"""Events and responses without their long lists, where each member surely validates by itself.

All that pydantic reads of a value is kept until the last of it is read, and Python's collector walks what is kept, again
and again; and a union of thirty classes says thirty times of each item of a response what is not wrong with it. So the
members of a long list are asked some at a time. Whatever is wrong with a value is wrong with what is left of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from antiphon_conformance.read import Json, mapping, text
from antiphon_conformance.trace import LONG

from .fields_alone import Fits, fits
from .published import by_type, event_types

if TYPE_CHECKING:
    from .published import Model

# field -> how many members its list has at least where they are asked apart from it
_LISTS = {"output": 1, "content": LONG, "summary": LONG, "annotations": LONG, "logprobs": LONG}
_HOLDERS = ("response", "item", "part", *_LISTS)


def lightened(event: Json, *, deep: bool = False) -> Json:
    """Return an event without the items of its response; `deep` is whether items and parts are looked into, too."""
    model = event_types().get(text(event.get("type")))
    return event if model is None else _light(model, event, strict=True, deep=deep)


def open_lightened(response: Json, *, deep: bool = False) -> Json:
    """Return a response without its items, by the Open Responses schema; `deep` as for `lightened`."""
    from openresponses_types import ResponseResource

    return _light(ResponseResource, response, strict=False, deep=deep)


def _light(model: Model, held: Json, *, strict: bool, deep: bool) -> Json:
    changed: Json = {}
    for name in _holders(model):
        value: Any = held.get(name)
        if value.__class__ is dict and value and (deep or name == "response"):
            changed[name] = _light_member(model, name, value, strict, deep)
        elif value.__class__ is list and value:
            deeper = deep and _hold_more(model, name)
            members = [_light_member(model, name, one, strict, deep) for one in value] if deeper else value
            asked = len(value) >= _LISTS.get(name, 0) and _all_fit(_members_fit(model, name, strict), members)
            changed[name] = [] if asked else members
    return {**held, **changed} if any(changed[name] is not held[name] for name in changed) else held


def _light_member(model: Model, name: str, value: Any, strict: bool, deep: bool) -> Any:
    models = _models(model, name)
    inner = models.get(text(mapping(value).get("type"))) or models.get("")
    return value if inner is None or value.__class__ is not dict else _light(inner, value, strict=strict, deep=deep)


@cache
def _holders(model: Model) -> tuple[str, ...]:
    return tuple(name for name in _HOLDERS if name in model.model_fields)


@cache
def _hold_more(model: Model, name: str) -> bool:
    """Return whether what a field holds has such fields itself."""
    return any(map(_holders, _models(model, name).values()))


@cache
def _models(model: Model, name: str) -> Mapping[str, Model]:
    """Return the models that a field holds, or the members of its list: by `type`, or the only one as ""."""
    annotation: Any = model.model_fields[name].annotation
    return {"": annotation} if hasattr(annotation, "model_fields") else by_type(annotation)


def _all_fit(fit: Fits, members: list[Any]) -> bool:
    """Whether all members of a list surely validate: some are asked at a time."""
    return all(fit(members[first : first + LONG]) for first in range(0, len(members), LONG))


@cache
def _members_fit(model: Model, name: str, strict: bool) -> Fits:
    """Return what says whether members of a list surely validate; of what is no list nothing does."""
    members = _list(model.model_fields[name].annotation)
    return _never if members is None else fits(members, strict=strict)


def _list(annotation: Any) -> Any:
    """Return the list in an annotation, None where it has none."""
    if get_origin(annotation) is list:
        return annotation
    if get_origin(annotation) in (Union, UnionType):
        return next((found for one in get_args(annotation) if (found := _list(one)) is not None), None)
    return None


def _never(_: Any) -> bool:
    return False
