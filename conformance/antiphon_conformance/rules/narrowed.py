"""Whether an event or an item is surely valid: asked of the one class that `type` names, not of a union of thirty.

A union accepts what one of its classes accepts. So what fits here validates; of what does not fit nothing is known,
and the whole union has to say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial, reduce
from types import GenericAlias
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from antiphon_conformance.events import FAMILIES, HEAD, TERMINALS
from antiphon_conformance.read import Json, mapping, text

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model: TypeAlias = type[BaseModel]

Fits: TypeAlias = Callable[[Any], bool]

_LISTS = {"content_index": "content", "summary_index": "summary"}
# type of item -> field that is a list of parts -> the types of these parts
_PARTS: dict[str, dict[str, set[str]]] = {}
for _family in FAMILIES.values():
    if _family.part:
        _of_item = _PARTS.setdefault(_family.items[0], {})
        _of_item.setdefault(_LISTS[_family.numbered_by], set()).add(_family.part)


def event_fits(kind: str) -> Fits:
    """Return what says whether an event of this type surely validates, strictly, against openai's model for it."""
    return _event_fits(kind) if kind in event_types() else _never


@cache
def _event_fits(kind: str) -> Fits:
    model = event_types()[kind]
    whole = _fits(model, True)
    if kind in HEAD or kind in TERMINALS:
        return lambda event: whole(lightened(event))
    for field in ("item", "part"):
        classes = by_type(model.model_fields[field].annotation) if field in model.model_fields else {}
        if len(classes) > 1:
            return _inner_fits(model, field, classes)
    return whole


def lightened(event: Json) -> Json:
    """Return an event without the items of its response where each of them surely validates, else as it is: whatever
    is wrong with the event is wrong with either."""
    response: Any = event.get("response")
    if response.__class__ is not dict:
        return event
    bare = _without_items(response, _item_fits)
    return event if bare is response else {**event, "response": bare}


def open_lightened(response: Json) -> Json:
    """Return a response without its items where each surely validates against the Open Responses schema, else as it
    is."""
    return _without_items(response, _open_item_fits)


@cache
def event_types() -> dict[str, Model]:
    """Return type of event -> openai's model for it."""
    from openai.types.responses import ResponseStreamEvent

    return by_type(ResponseStreamEvent)


@cache
def item_types() -> dict[str, Model]:
    """Return type of item -> openai's model for it."""
    from openai.types.responses import ResponseOutputItem

    return by_type(ResponseOutputItem)


def by_type(annotation: Any) -> dict[str, Model]:
    """Return type -> model, for the models that an annotation names, in a union or a list of it."""
    models = [model for model in _models(annotation) if "type" in model.model_fields]
    return {kind: model for model in models for kind in get_args(model.model_fields["type"].annotation)}


def _models(annotation: Any) -> Iterator[Model]:
    if hasattr(annotation, "model_fields"):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


# What fits


def _never(_: Any) -> bool:
    return False


def _without_items(response: Json, item_fits: Fits) -> Json:
    output: Any = response.get("output")
    if output.__class__ is not list or not output or not all(map(item_fits, output)):
        return response
    return {**response, "output": []}


def _inner_fits(model: Model, field: str, classes: dict[str, Model]) -> Fits:
    """Return what says whether an event fits with the item or part it holds, of which `classes` are those possible."""
    made: dict[str, Fits] = {}

    def fits(event: Json) -> bool:
        kind = text(mapping(event.get(field)).get("type"))
        if kind not in made:
            inner = classes.get(kind)
            if inner is None:
                return False
            made[kind] = _fits(_narrowed(model, (field, inner)), True)
        return made[kind](event)

    return fits


def _item_fits(item: Any) -> bool:
    model = item_types().get(text(mapping(item).get("type")))
    return model is not None and _fits(model, True)(item)


def _open_item_fits(item: Json) -> bool:
    model = _open_item_types().get(text(item.get("type")))
    return model is not None and _fits(model, False)(item)


@cache
def _open_item_types() -> dict[str, Model]:
    """Return type of item -> the model of Open Responses, with the parts that its items have in a stream."""
    from openresponses_types import ResponseResource

    known = by_type(ResponseResource.model_fields["output"].annotation)
    return {kind: _narrowed(model, *_parts_of(kind, model)) for kind, model in known.items()}


def _parts_of(kind: str, model: Model) -> Iterator[tuple[str, Any]]:
    """Yield each field of an item that is a list of parts, and the list that it is in a stream."""
    for field, wanted in _PARTS.get(kind, {}).items():
        annotation = model.model_fields[field].annotation
        kept: list[Any] = [one for part, one in by_type(annotation).items() if part in wanted]
        if kept:
            parts: Any = GenericAlias(list, (reduce(lambda one, other: one | other, kept),))
            yield field, parts | None if type(None) in get_args(annotation) else parts


@cache
def _narrowed(model: Model, *fields: tuple[str, Any]) -> Model:
    """Return the model with other annotations for these fields."""
    from pydantic import create_model

    changed: dict[str, Any] = {name: (annotation, model.model_fields[name]) for name, annotation in fields}
    return create_model(model.__name__, __base__=model, **changed)


@cache
def _fits(model: Model, strict: bool) -> Fits:
    """Return what says whether a value validates against a model."""
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(model)
    adapter.rebuild()  # openai's models are built when they are first needed
    return partial(adapter.validator.isinstance_python, strict=strict)
