"""Guardrails of a run: checks of its input and of its final output, which may stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from .awaiting import MaybeAwaitable, settled
from .tool_guardrails import must_be, must_be_callable, name_of

if TYPE_CHECKING:
    from .context import RunContextWrapper

TContext = TypeVar("TContext")


@dataclass
class GuardrailFunctionOutput:
    """What a guardrail found, `output_info`, and whether that stops the run."""

    output_info: Any
    tripwire_triggered: bool


InputCheck: TypeAlias = Callable[["RunContextWrapper[Any]", Any, Any], MaybeAwaitable[GuardrailFunctionOutput]]
OutputCheck: TypeAlias = Callable[["RunContextWrapper[Any]", Any, Any], MaybeAwaitable[GuardrailFunctionOutput]]


@dataclass
class InputGuardrail(Generic[TContext]):
    """A check of the run's input. In parallel it runs beside the first turn, else before any model call."""

    guardrail_function: InputCheck
    name: str | None = None
    run_in_parallel: bool = True

    def get_name(self) -> str:
        """Return the guardrail's name, by default its function's."""
        return name_of(self.guardrail_function, self.name)

    async def run(
        self, agent: Any, input: str | list[Any], context: RunContextWrapper[TContext]
    ) -> InputGuardrailResult:
        """Return what the check found in `input`. Raises UserError where it returned something else."""
        must_be_callable(self.guardrail_function)
        found = await settled(self.guardrail_function(context, agent, input))
        return InputGuardrailResult(self, must_be(found, GuardrailFunctionOutput, self.get_name()))


@dataclass
class OutputGuardrail(Generic[TContext]):
    """A check of the final output."""

    guardrail_function: OutputCheck
    name: str | None = None

    def get_name(self) -> str:
        """Return the guardrail's name, by default its function's."""
        return name_of(self.guardrail_function, self.name)

    async def run(self, context: RunContextWrapper[TContext], agent: Any, agent_output: Any) -> OutputGuardrailResult:
        """Return what the check found in `agent_output`. Raises UserError where it returned something else."""
        must_be_callable(self.guardrail_function)
        found = await settled(self.guardrail_function(context, agent, agent_output))
        checked = must_be(found, GuardrailFunctionOutput, self.get_name())
        return OutputGuardrailResult(self, agent_output, agent, checked)


@dataclass
class InputGuardrailResult:
    """What a guardrail said about the run's input."""

    guardrail: InputGuardrail[Any]
    output: GuardrailFunctionOutput


@dataclass
class OutputGuardrailResult:
    """What a guardrail said about the final output of `agent`."""

    guardrail: OutputGuardrail[Any]
    agent_output: Any
    agent: Any
    output: GuardrailFunctionOutput


@overload
def input_guardrail(
    func: InputCheck, *, name: str | None = None, run_in_parallel: bool = True
) -> InputGuardrail[Any]: ...
@overload
def input_guardrail(
    *, name: str | None = None, run_in_parallel: bool = True
) -> Callable[[InputCheck], InputGuardrail[Any]]: ...
def input_guardrail(func: InputCheck | None = None, *, name: str | None = None, run_in_parallel: bool = True) -> Any:
    """Return the function, of context, agent and input, as a guardrail; used as a decorator, bare or called."""

    def decorate(function: InputCheck) -> InputGuardrail[Any]:
        return InputGuardrail(function, name_of(function, name), run_in_parallel)

    return decorate if func is None else decorate(func)


@overload
def output_guardrail(func: OutputCheck, *, name: str | None = None) -> OutputGuardrail[Any]: ...
@overload
def output_guardrail(*, name: str | None = None) -> Callable[[OutputCheck], OutputGuardrail[Any]]: ...
def output_guardrail(func: OutputCheck | None = None, *, name: str | None = None) -> Any:
    """Return the function, of context, agent and output, as a guardrail; used as a decorator, bare or called."""

    def decorate(function: OutputCheck) -> OutputGuardrail[Any]:
        return OutputGuardrail(function, name_of(function, name))

    return decorate if func is None else decorate(func)
