"""Whether an event or a response is surely valid, asked of one class instead of a union of sixty.

A union accepts what one of its classes accepts, and `type` names the one to ask. So what fits here validates; of what
does not fit nothing is known, and the whole union has to say what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from types import GenericAlias
from typing import TYPE_CHECKING, Any, TypeAlias, Union, get_args

from antiphon_conformance.events import FAMILIES, HEAD, TERMINALS
from antiphon_conformance.read import Json, mapping, text

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model: TypeAlias = type[BaseModel]

Fits: TypeAlias = Callable[[Any], bool]

# field that `numbered_by` counts in an item
_LISTS = {"content_index": "content", "summary_index": "summary"}


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


def by_type(union: Any) -> dict[str, Model]:
    """Return type -> model, for the models in an annotation whose `type` is a literal."""
    models = [model for model in _models(union) if "type" in model.model_fields]
    return {kind: model for model in models for kind in get_args(model.model_fields["type"].annotation)}


def _models(annotation: Any) -> Iterator[Model]:
    """Yield the models in a union, also where it is annotated or in a list."""
    if hasattr(annotation, "model_fields"):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)


@cache
def event_fits(kind: str) -> Fits | None:
    """Return what says of an event of this type whether it surely validates against openai's model, strictly; None for
    an unknown type."""
    model = event_types().get(kind)
    if model is None:
        return None
    if kind in HEAD or kind in TERMINALS:
        return partial(_snapshot_fits, _fits(model, strict=True))
    inner = next((name for name in ("item", "part") if name in model.model_fields), "")
    classes = by_type(model.model_fields[inner].annotation) if inner else {}
    if len(classes) < 2:
        return _fits(model, strict=True)
    return partial(_inner_fits, inner, _by_inner(model, inner, classes))


class _by_inner(dict[str, Fits]):
    pass
