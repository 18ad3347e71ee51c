"""Events as openai model objects. With `exact`, the only module of the engine that imports openai."""

from __future__ import annotations

from typing import Any, get_args

from openai import BaseModel
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import ValidationError

from .chunk import copied
from .emit import Emitter, Keep, Writer
from .exact import Blank, Inexact, maker


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

        def write(text: str) -> Any:
            keep(text)
            held = base.copy()
            held["sequence_number"] = number = self.number
            held["delta"] = text
            if with_logprobs:
                held["logprobs"] = []
            self.number = number + 1
            event: Any = Blank()
            event.__dict__ = held
            event.__pydantic_fields_set__ = names.copy()
            event.__pydantic_extra__ = {}
            event.__pydantic_private__ = None
            event.__class__ = model
            return event

        return write

    def response(self, snapshot: dict[str, Any]) -> Any:
        return _made(Response, snapshot)

    def _event(self, type: str, number: int, fields: dict[str, Any]) -> Any:
        return _made(CLASSES[type], {"type": type, "sequence_number": number, **fields})


def _made(model: type[BaseModel], held: dict[str, Any]) -> Any:
    """Return `held` as an object of `model` that shares nothing with it."""
    try:
        return maker(model)(held)
    except Inexact:
        pass
    own = copied(held)
    try:
        return model.model_validate(own)
    except ValidationError:  # a word that openai does not list, such as an error code: kept as it is
        return model.construct(**own)
