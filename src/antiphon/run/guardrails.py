"""Guardrails of a run: checks of its input and of its final output, which may stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, overload

from .awaiting import MaybeAwaitable
from .tool_guardrails import Guardrail, decorated, name_of

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
class InputGuardrail(Guardrail, Generic[TContext]):
    """A check of the run's input. In parallel it runs beside the first turn, else before any model call."""

    guardrail_function: InputCheck
    run_in_parallel: bool = True

    async def run(
        self, agent: Any, input: str | list[Any], context: RunContextWrapper[TContext]
    ) -> InputGuardrailResult:
        """Return what the check found in `input`. Raises UserError where it returned something else."""
        return InputGuardrailResult(self, await self.ask(GuardrailFunctionOutput, context, agent, input))


@dataclass
class OutputGuardrail(Guardrail, Generic[TContext]):
    """A check of the final output."""

    guardrail_function: OutputCheck

    async def run(self, context: RunContextWrapper[TContext], agent: Any, agent_output: Any) -> OutputGuardrailResult:
        """Return what the check found in `agent_output`. Raises UserError where it returned something else."""
        found = await self.ask(GuardrailFunctionOutput, context, agent, agent_output)
        return OutputGuardrailResult(self, agent_output, agent, found)


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
    return decorated(func, lambda function: InputGuardrail[Any](function, name_of(function, name), run_in_parallel))


@overload
def output_guardrail(func: OutputCheck, *, name: str | None = None) -> OutputGuardrail[Any]: ...
@overload
def output_guardrail(*, name: str | None = None) -> Callable[[OutputCheck], OutputGuardrail[Any]]: ...
def output_guardrail(func: OutputCheck | None = None, *, name: str | None = None) -> Any:
    """Return the function, of context, agent and output, as a guardrail; used as a decorator, bare or called."""
    return decorated(func, lambda function: OutputGuardrail[Any](function, name_of(function, name)))
