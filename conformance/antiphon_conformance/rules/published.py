"""The published schemas: openai's types for events and items, and the Open Responses schema for responses.

Each is asked in the quick way of `fields_alone` first; where something does not fit, the whole schema says what is wrong
with it. Either is asked of what `lightened` leaves of a long response.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from .fields_alone import Fits, fits

if TYPE_CHECKING:
    from pydantic import BaseModel

    Model: TypeAlias = type[BaseModel]


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


@cache
def event_fits() -> Fits:
    """Return what says whether an event surely validates, strictly, against openai's model for its type."""
    from openai.types.responses import ResponseStreamEvent

    return fits(ResponseStreamEvent, strict=True)


@cache
def open_response_fits() -> Fits:
    """Return what says whether a response surely validates against the Open Responses schema."""
    from openresponses_types import ResponseResource

    return fits(ResponseResource, strict=False)


def by_type(annotation: Any) -> dict[str, Model]:
    """Return type -> model, for the models that an annotation names, in a union or a list of it."""
    models = [model for model in _models(annotation) if "type" in model.model_fields]
    return {kind: model for model in models for kind in get_args(model.model_fields["type"].annotation)}


def _models(annotation: Any) -> Iterator[Model]:
    if hasattr(annotation, "model_fields"):
        yield annotation
    for inner in get_args(annotation):
        yield from _models(inner)
