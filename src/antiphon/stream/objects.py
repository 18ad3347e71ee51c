"""Events as openai model objects. The only module of the engine that imports openai."""

from __future__ import annotations

from typing import Any, get_args

from openai import BaseModel
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import ValidationError

from .chunk import copied
from .emit import Emitter, Keep, Writer

_new = object.__new__
# A delta event is filled slot by slot: equal to a validated one in every way, at a third of the cost.
_set_dict = BaseModel.__dict__.get("__dict__", vars(BaseModel.__mro__[1])["__dict__"]).__set__
_set_fields_set = vars(BaseModel.__mro__[1])["__pydantic_fields_set__"].__set__
_set_extra = vars(BaseModel.__mro__[1])["__pydantic_extra__"].__set__
_set_private = vars(BaseModel.__mro__[1])["__pydantic_private__"].__set__


def _classes() -> dict[str, type[BaseModel]]:
    union = get_args(get_args(ResponseStreamEvent)[0])
    return {get_args(model.model_fields["type"].annotation)[0]: model for model in union}


CLASSES = _classes()  # event type -> its class in openai


class ObjectEmitter(Emitter):
    """Events as the classes of `openai.types.responses`. Keys that the class does not know are kept as extras."""

    def writer(self, type: str, keep: Keep, **fields: Any) -> Writer:
        model = CLASSES[type]
        base = {**fields, "type": type, "sequence_number": 0, "delta": ""}
        names = set(base)
        with_logprobs = "logprobs" in fields

        def write(text: str) -> BaseModel:
            keep(text)
            held = base.copy()
            held["sequence_number"] = number = self.number
            held["delta"] = text
            if with_logprobs:
                held["logprobs"] = []
            self.number = number + 1
            event = _new(model)
            _set_dict(event, held)
            _set_fields_set(event, names.copy())
            _set_extra(event, {})
            _set_private(event, None)
            return event

        return write

    def response(self, snapshot: dict[str, Any]) -> Response:
        try:
            return Response.model_validate(snapshot)
        except ValidationError:
            return Response.construct(**snapshot)

    def _event(self, type: str, number: int, fields: dict[str, Any]) -> BaseModel:
        model = CLASSES[type]
        event: dict[str, Any] = {"type": type, "sequence_number": number, **copied(fields)}
        try:
            return model.model_validate(event)
        except ValidationError:  # a word that openai does not list, such as an error code: kept as it is
            return model.construct(**event)
