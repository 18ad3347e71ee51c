"""Guardrails of a single tool: checks of a call's arguments before it runs, and of what it returned.

A check answers with a behavior: allow the call, reject it with a message that the model gets instead of an output, or
raise out of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypedDict, TypeVar, overload

from antiphon.exceptions import UserError

from .awaiting import MaybeAwaitable, settled
from .reading import is_dict

if TYPE_CHECKING:
    from .tool_context import ToolContext

T = TypeVar("T")
TContext_co = TypeVar("TContext_co", covariant=True)


class AllowBehavior(TypedDict):
    """The call goes on."""

    type: Literal["allow"]


class RejectContentBehavior(TypedDict):
    """The model gets `message` as the tool's output."""

    type: Literal["reject_content"]
    message: str


class RaiseExceptionBehavior(TypedDict):
    """The run ends with a tripwire exception."""

    type: Literal["raise_exception"]


Behavior: TypeAlias = AllowBehavior | RejectContentBehavior | RaiseExceptionBehavior
BEHAVIORS = ("allow", "reject_content", "raise_exception")


@dataclass
class ToolGuardrailFunctionOutput:
    """What a guardrail of a tool found, `output_info`, and what is to be done about it."""

    output_info: Any = None
    behavior: Behavior = field(default_factory=lambda: AllowBehavior(type="allow"))

    @classmethod
    def allow(cls, output_info: Any = None) -> ToolGuardrailFunctionOutput:
        """Return that the call goes on."""
        return cls(output_info, {"type": "allow"})

    @classmethod
    def reject_content(cls, message: str, output_info: Any = None) -> ToolGuardrailFunctionOutput:
        """Return that the model gets `message` instead of the tool's output, and the run goes on."""
        return cls(output_info, {"type": "reject_content", "message": message})

    @classmethod
    def raise_exception(cls, output_info: Any = None) -> ToolGuardrailFunctionOutput:
        """Return that the run ends with a tripwire exception."""
        return cls(output_info, {"type": "raise_exception"})


@dataclass
class ToolInputGuardrailData:
    """What an input guardrail is given: the call, in its context, and the agent that made it."""

    context: ToolContext[Any]
    agent: Any


@dataclass
class ToolOutputGuardrailData(ToolInputGuardrailData):
    """What an output guardrail is given: as for the input, and what the tool returned."""

    output: Any


InputCheck: TypeAlias = Callable[[ToolInputGuardrailData], MaybeAwaitable[ToolGuardrailFunctionOutput]]
OutputCheck: TypeAlias = Callable[[ToolOutputGuardrailData], MaybeAwaitable[ToolGuardrailFunctionOutput]]


def name_of(function: Any, name: str | None) -> str:
    """Return `name`, or the function's own where none was given."""
    return name or str(getattr(function, "__name__", type(function).__name__))


def must_be_callable(function: Any) -> None:
    """Raise UserError where `function` cannot be called."""
    if not callable(function):
        raise UserError(f"a guardrail's function is {type(function).__name__}: it must be callable")


def must_be(found: object, expected: type[T], name: str) -> T:
    """Return what a guardrail returned. Raises UserError where it is something else: who says nothing allows nothing."""
    if not isinstance(found, expected):
        raise UserError(f"the guardrail {name!r} returned {type(found).__name__}: a {expected.__name__} is expected")
    return found


def _checked(given: object, name: str) -> ToolGuardrailFunctionOutput:
    found = must_be(given, ToolGuardrailFunctionOutput, name)
    behavior: Any = found.behavior
    kind = behavior.get("type") if is_dict(behavior) else None
    if not isinstance(kind, str) or kind not in BEHAVIORS:
        raise UserError(
            f"the guardrail {name!r} returned the behavior {behavior!r}: its type is one of {', '.join(BEHAVIORS)}"
        )
    return found


@dataclass
class ToolInputGuardrail(Generic[TContext_co]):
    """A check of a call's arguments, before the tool runs."""

    guardrail_function: InputCheck
    name: str | None = None

    def get_name(self) -> str:
        """Return the guardrail's name, by default its function's."""
        return name_of(self.guardrail_function, self.name)

    async def run(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Return what the check found. Raises UserError where it returned something else."""
        must_be_callable(self.guardrail_function)
        return _checked(await settled(self.guardrail_function(data)), self.get_name())


@dataclass
class ToolOutputGuardrail(Generic[TContext_co]):
    """A check of what a tool returned, before the model sees it."""

    guardrail_function: OutputCheck
    name: str | None = None

    def get_name(self) -> str:
        """Return the guardrail's name, by default its function's."""
        return name_of(self.guardrail_function, self.name)

    async def run(self, data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
        """Return what the check found. Raises UserError where it returned something else."""
        must_be_callable(self.guardrail_function)
        return _checked(await settled(self.guardrail_function(data)), self.get_name())


@dataclass
class ToolInputGuardrailResult:
    """What an input guardrail said about one call."""

    guardrail: ToolInputGuardrail[Any]
    output: ToolGuardrailFunctionOutput


@dataclass
class ToolOutputGuardrailResult:
    """What an output guardrail said about one output."""

    guardrail: ToolOutputGuardrail[Any]
    output: ToolGuardrailFunctionOutput


@overload
def tool_input_guardrail(func: InputCheck, *, name: str | None = None) -> ToolInputGuardrail[Any]: ...
@overload
def tool_input_guardrail(*, name: str | None = None) -> Callable[[InputCheck], ToolInputGuardrail[Any]]: ...
def tool_input_guardrail(func: InputCheck | None = None, *, name: str | None = None) -> Any:
    """Return the function as an input guardrail; used as a decorator, bare or called."""

    def decorate(function: InputCheck) -> ToolInputGuardrail[Any]:
        return ToolInputGuardrail(function, name_of(function, name))

    return decorate if func is None else decorate(func)


@overload
def tool_output_guardrail(func: OutputCheck, *, name: str | None = None) -> ToolOutputGuardrail[Any]: ...
@overload
def tool_output_guardrail(*, name: str | None = None) -> Callable[[OutputCheck], ToolOutputGuardrail[Any]]: ...
def tool_output_guardrail(func: OutputCheck | None = None, *, name: str | None = None) -> Any:
    """Return the function as an output guardrail; used as a decorator, bare or called."""

    def decorate(function: OutputCheck) -> ToolOutputGuardrail[Any]:
        return ToolOutputGuardrail(function, name_of(function, name))

    return decorate if func is None else decorate(func)
