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


def decorated(function: Any, make: Callable[[Any], Any]) -> Any:
    """Return what a decorator makes of a function; used with options alone, what makes it of the function to come."""
    return make if function is None else make(function)


@dataclass
class Guardrail:
    """A check, by a function that says what it found; its name is by default the function's."""

    guardrail_function: Callable[..., Any]
    name: str | None = None

    def get_name(self) -> str:
        """Return the guardrail's name, by default its function's."""
        return name_of(self.guardrail_function, self.name)

    async def ask(self, expected: type[T], *about: Any) -> T:
        """Return what the function says. Raises UserError where that is something else, or it cannot be called."""
        function: Any = self.guardrail_function
        if not callable(function):
            raise UserError(f"a guardrail's function is {type(function).__name__}: it must be callable")
        return must_be(await settled(function(*about)), expected, self.get_name())


def must_be(found: object, expected: type[T], name: str) -> T:
    """Return what a guardrail returned. Raises UserError where it is something else: who says nothing allows nothing."""
    if not isinstance(found, expected):
        raise UserError(f"the guardrail {name!r} returned {type(found).__name__}: a {expected.__name__} is expected")
    return found


@dataclass
class _ToolGuardrail(Guardrail):
    async def run(self, data: Any) -> ToolGuardrailFunctionOutput:
        """Return what the check found. Raises UserError where it returned something else."""
        found = await self.ask(ToolGuardrailFunctionOutput, data)
        behavior: Any = found.behavior
        kind = behavior.get("type") if is_dict(behavior) else None
        if not isinstance(kind, str) or kind not in BEHAVIORS:
            raise UserError(
                f"the guardrail {self.get_name()!r} returned the behavior {behavior!r}: its type is one of "
                f"{', '.join(BEHAVIORS)}"
            )
        return found


@dataclass
class ToolInputGuardrail(_ToolGuardrail, Generic[TContext_co]):
    """A check of a call's arguments, before the tool runs."""

    guardrail_function: InputCheck


@dataclass
class ToolOutputGuardrail(_ToolGuardrail, Generic[TContext_co]):
    """A check of what a tool returned, before the model sees it."""

    guardrail_function: OutputCheck


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
    return decorated(func, lambda function: ToolInputGuardrail[Any](function, name_of(function, name)))


@overload
def tool_output_guardrail(func: OutputCheck, *, name: str | None = None) -> ToolOutputGuardrail[Any]: ...
@overload
def tool_output_guardrail(*, name: str | None = None) -> Callable[[OutputCheck], ToolOutputGuardrail[Any]]: ...
def tool_output_guardrail(func: OutputCheck | None = None, *, name: str | None = None) -> Any:
    """Return the function as an output guardrail; used as a decorator, bare or called."""
    return decorated(func, lambda function: ToolOutputGuardrail[Any](function, name_of(function, name)))
