"""`AgentOutputSchema`: the type of an agent's final output, as a JSON schema and back."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel, RootModel, TypeAdapter
from typing_extensions import TypedDict

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.tools.schema import Unfit, described, fitting
from antiphon.tools.strict import ensure_strict_json_schema

WRAPPER = "response"  # the one property of the object around a type that is no object


class AgentOutputSchemaBase(ABC):
    """What a run asks of an output type. A subclass may describe and read the output in its own way."""

    @abstractmethod
    def is_plain_text(self) -> bool:
        """Return whether the output is text as the model says it; then there is no schema."""

    @abstractmethod
    def name(self) -> str:
        """Return the name of the output type."""

    @abstractmethod
    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema; asked only where the output is no plain text."""

    @abstractmethod
    def is_strict_json_schema(self) -> bool:
        """Return whether the schema is in strict mode."""

    @abstractmethod
    def validate_json(self, json_str: str) -> Any:
        """Return the value in the model's JSON text. Raises ModelBehaviorError where it does not fit."""


class AgentOutputSchema(AgentOutputSchemaBase):
    """The schema of a Python type. A type that is no object is asked for as `{"response": …}` and unwrapped again."""

    def __init__(self, output_type: Any, strict_json_schema: bool = True) -> None:
        self.output_type = output_type
        self._strict = strict_json_schema
        self._wrapped = not self.is_plain_text() and not _is_object(output_type)
        told = _wrapper(output_type) if self._wrapped else output_type
        self._adapter, self._schema = described(told, f"the output type {self.name()}")
        if strict_json_schema and not self.is_plain_text():
            self._schema = self._made_strict()

    def is_plain_text(self) -> bool:
        """Return whether the output is text as the model says it: for None and str."""
        return self.output_type is None or self.output_type is str

    def is_strict_json_schema(self) -> bool:
        """Return whether the schema is in strict mode."""
        return self._strict

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema. Raises UserError for plain text, which has none."""
        if self.is_plain_text():
            raise UserError("plain text has no JSON schema: ask is_plain_text() first")
        return self._schema

    def name(self) -> str:
        """Return the name of the type, with its arguments."""
        return _type_name(self.output_type)

    def validate_json(self, json_str: str) -> Any:
        """Return the value in the model's JSON text.

        Raises ModelBehaviorError where it does not fit. The error says where and why, and does not hold the text.
        """
        read = fitting(self._adapter.validate_json, json_str, "the answer")
        if isinstance(read, Unfit) and self._wrapped and dataclasses.is_dataclass(self.output_type):
            alone: TypeAdapter[Any] = TypeAdapter(cast("Any", self.output_type))
            bare = fitting(alone.validate_json, json_str)  # a model that sees an object may leave the wrap
            read = read if isinstance(bare, Unfit) else {WRAPPER: bare}
        if isinstance(read, Unfit):
            why = read.why.removeprefix("the answer: Invalid JSON: ")
            raise ModelBehaviorError(f"Invalid JSON when parsing the output as {self.name()}: {why}")
        return read[WRAPPER] if self._wrapped else read

    def _made_strict(self) -> dict[str, Any]:
        try:
            return ensure_strict_json_schema(self._schema)
        except UserError as error:
            raise UserError(
                f"the output type {self.name()} has no strict JSON schema: {error}; change the type, or use "
                "AgentOutputSchema(your_type, strict_json_schema=False)"
            ) from error


def _is_object(kind: Any) -> bool:
    bare = get_origin(kind) or kind
    return isinstance(bare, type) and issubclass(bare, BaseModel | dict) and not issubclass(bare, RootModel)


def _wrapper(kind: Any) -> Any:
    return cast("Any", TypedDict)("OutputType", {WRAPPER: kind})


def _type_name(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is None:
        return str(getattr(kind, "__name__", repr(kind)))
    inner = ", ".join(_type_name(one) for one in args)
    return f"{getattr(origin, '__name__', origin)}[{inner}]" if args else str(kind)
