"""Guardrails: checks of a run's input and of its final output, and of a single tool's arguments and output.

A check of a run may stop it. A check of a tool answers with a behavior: allow the call, reject it with a message that
the model gets instead of an output, or raise out of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    overload,
)

from antiphon.exceptions import ToolInputGuardrailTripwireTriggered, ToolOutputGuardrailTripwireTriggered, UserError

from .awaiting import MaybeAwaitable, returned
from .context import RunContextWrapper, ToolContext
from .reading import is_dict

T = TypeVar("T")
F = TypeVar("F")
P = ParamSpec("P")
TContext = TypeVar("TContext")
TContext_co = TypeVar("TContext_co", covariant=True)


def name_of(function: Any, name: str | None) -> str:
    """Return `name`, or the function's own where none was given."""
    return name or str(getattr(function, "__name__", type(function).__name__))


@dataclass
class Guardrail:
    """A check, by a function that says what it found; its name is by default the function's.

    `finds`: the class of what the function returns. `result`: the class of what is kept of that.
    """

    finds: ClassVar[type[Any]]
    result: ClassVar[type[Any]]
    guardrail_function: Callable[..., Any]
    name: str | None = None

    def get_name(self) -> str:
        """Return the guardrail's name, by default its function's."""
        return name_of(self.guardrail_function, self.name)

    async def ask(self, *about: Any) -> Any:
        """Return what the function says. Raises UserError where that is something else, or it cannot be called."""
        function: Any = self.guardrail_function
        if not callable(function):
            raise UserError(f"a guardrail's function is {type(function).__name__}: it must be callable")
        return await returned(function(*about), self.finds, f"the guardrail {self.get_name()!r}")


class Decorator(Generic[F, P, T]):
    """Makes a guardrail of a function; used bare, or called with the guardrail's options, by their names."""

    def __init__(self, make: Callable[Concatenate[F, P], T], said: str) -> None:
        self._make: Callable[..., T] = make
        self.__doc__ = f"Return the {said}; used as a decorator, bare or called."

    @overload
    def __call__(self, func: F, *nothing: P.args, **options: P.kwargs) -> T: ...
    @overload
    def __call__(self, func: None = None, *nothing: P.args, **options: P.kwargs) -> Callable[[F], T]: ...
    def __call__(self, func: F | None = None, **options: Any) -> Any:  # type: ignore[misc]  # options have names
        """Return the guardrail, by default with the function's name; without the function, what makes it of one."""
        if func is None:
            return partial(self, **options)
        return self._make(func, **{**options, "name": name_of(func, options.get("name"))})


# --- of a run --------------------------------------------------------------------------------------------------------


@dataclass
class GuardrailFunctionOutput:
    """What a guardrail found, `output_info`, and whether that stops the run."""

    output_info: Any
    tripwire_triggered: bool


# a function of the context, the agent, and the input or the output
Check: TypeAlias = Callable[["RunContextWrapper[Any]", Any, Any], MaybeAwaitable[GuardrailFunctionOutput]]


@dataclass
class InputGuardrailResult:
    """What a guardrail said about the run's input."""

    guardrail: InputGuardrail[Any]
    output: GuardrailFunctionOutput


@dataclass
class InputGuardrail(Guardrail, Generic[TContext]):
    """A check of the run's input. In parallel it runs beside the first turn, else before any model call."""

    finds: ClassVar[type[Any]] = GuardrailFunctionOutput
    result: ClassVar[type[Any]] = InputGuardrailResult
    guardrail_function: Check
    run_in_parallel: bool = True

    async def run(
        self, agent: Any, input: str | list[Any], context: RunContextWrapper[TContext]
    ) -> InputGuardrailResult:
        """Return what the check found in `input`. Raises UserError where it returned something else."""
        return InputGuardrailResult(self, await self.ask(context, agent, input))


@dataclass
class OutputGuardrailResult:
    """What a guardrail said about the final output of `agent`."""

    guardrail: OutputGuardrail[Any]
    agent_output: Any
    agent: Any
    output: GuardrailFunctionOutput


@dataclass
class OutputGuardrail(Guardrail, Generic[TContext]):
    """A check of the final output."""

    finds: ClassVar[type[Any]] = GuardrailFunctionOutput
    result: ClassVar[type[Any]] = OutputGuardrailResult
    guardrail_function: Check

    async def run(self, context: RunContextWrapper[TContext], agent: Any, agent_output: Any) -> OutputGuardrailResult:
        """Return what the check found in `agent_output`. Raises UserError where it returned something else."""
        found = await self.ask(context, agent, agent_output)
        return OutputGuardrailResult(self, agent_output, agent, found)


input_guardrail = Decorator(InputGuardrail[Any], "function, of context, agent and input, as a guardrail")
output_guardrail = Decorator(OutputGuardrail[Any], "function, of context, agent and output, as a guardrail")


# --- of a tool -------------------------------------------------------------------------------------------------------


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


ToolInputCheck: TypeAlias = Callable[[ToolInputGuardrailData], MaybeAwaitable[ToolGuardrailFunctionOutput]]
ToolOutputCheck: TypeAlias = Callable[[ToolOutputGuardrailData], MaybeAwaitable[ToolGuardrailFunctionOutput]]


@dataclass
class _ToolGuardrail(Guardrail):
    finds: ClassVar[type[Any]] = ToolGuardrailFunctionOutput
    tripped: ClassVar[type[Exception]]

    async def run(self, data: Any) -> ToolGuardrailFunctionOutput:
        """Return what the check found. Raises UserError where it returned something else."""
        found = await self.ask(data)
        behavior: Any = found.behavior
        kind = behavior.get("type") if is_dict(behavior) else None
        if not isinstance(kind, str) or kind not in BEHAVIORS:
            raise UserError(
                f"the guardrail {self.get_name()!r} returned the behavior {behavior!r}: its type is one of "
                f"{', '.join(BEHAVIORS)}"
            )
        return cast("ToolGuardrailFunctionOutput", found)

    async def refusal(self, data: Any, results: list[Any]) -> str | None:
        """Return what the model is told where the check refuses the call; None where it does not.

        `results` keeps what it found. Raises the tripwire exception where it says so.
        """
        found = await self.run(data)
        results.append(self.result(self, found))
        if found.behavior["type"] == "raise_exception":
            raise self.tripped(self, found)
        return str(found.behavior.get("message", "")) if found.behavior["type"] == "reject_content" else None


@dataclass
class ToolInputGuardrailResult:
    """What an input guardrail said about one call."""

    guardrail: ToolInputGuardrail[Any]
    output: ToolGuardrailFunctionOutput


@dataclass
class ToolInputGuardrail(_ToolGuardrail, Generic[TContext_co]):
    """A check of a call's arguments, before the tool runs."""

    result: ClassVar[type[Any]] = ToolInputGuardrailResult
    tripped: ClassVar[type[Exception]] = ToolInputGuardrailTripwireTriggered
    guardrail_function: ToolInputCheck


@dataclass
class ToolOutputGuardrailResult:
    """What an output guardrail said about one output."""

    guardrail: ToolOutputGuardrail[Any]
    output: ToolGuardrailFunctionOutput


@dataclass
class ToolOutputGuardrail(_ToolGuardrail, Generic[TContext_co]):
    """A check of what a tool returned, before the model sees it."""

    result: ClassVar[type[Any]] = ToolOutputGuardrailResult
    tripped: ClassVar[type[Exception]] = ToolOutputGuardrailTripwireTriggered
    guardrail_function: ToolOutputCheck


tool_input_guardrail = Decorator(ToolInputGuardrail[Any], "function as an input guardrail")
tool_output_guardrail = Decorator(ToolOutputGuardrail[Any], "function as an output guardrail")
