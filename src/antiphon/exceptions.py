"""What a run raises: one tree under `AgentsException`, which is itself an `AntiphonError`.

Names, messages and fields are those that users of the OpenAI Agents SDK catch and read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .errors import AgentsException, UserError

if TYPE_CHECKING:
    from .run.guardrails import (
        InputGuardrailResult,
        OutputGuardrailResult,
        ToolGuardrailFunctionOutput,
        ToolInputGuardrail,
        ToolInputGuardrailResult,
        ToolOutputGuardrail,
        ToolOutputGuardrailResult,
    )

__all__ = [
    "AgentsException",
    "InputGuardrailTripwireTriggered",
    "MCPToolCancellationError",
    "MaxTurnsExceeded",
    "ModelBehaviorError",
    "ModelIncompleteError",
    "ModelRefusalError",
    "ModelTimeoutError",
    "OutputGuardrailTripwireTriggered",
    "RunErrorDetails",
    "ToolInputGuardrailTripwireTriggered",
    "ToolOutputGuardrailTripwireTriggered",
    "ToolTimeoutError",
    "UserError",
]


@dataclass
class RunErrorDetails:
    """How far a run had come when it raised. `last_agent` and `context_wrapper` are the run's own objects."""

    input: str | list[Any]
    new_items: list[Any]
    raw_responses: list[Any]
    last_agent: Any
    context_wrapper: Any
    input_guardrail_results: list[InputGuardrailResult] = field(default_factory=list["InputGuardrailResult"])
    output_guardrail_results: list[OutputGuardrailResult] = field(default_factory=list["OutputGuardrailResult"])
    tool_input_guardrail_results: list[ToolInputGuardrailResult] = field(
        default_factory=list["ToolInputGuardrailResult"]
    )
    tool_output_guardrail_results: list[ToolOutputGuardrailResult] = field(
        default_factory=list["ToolOutputGuardrailResult"]
    )

    def __str__(self) -> str:
        counts = (
            f"{len(self.new_items)} new items",
            f"{len(self.raw_responses)} model responses",
            f"{len(self.input_guardrail_results)} input guardrail results",
            f"{len(self.output_guardrail_results)} output guardrail results",
        )
        name = getattr(self.last_agent, "name", None)
        return f"RunErrorDetails: last agent {name!r}; {', '.join(counts)}"


class _Told(AgentsException):
    """An exception that is its message."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class MaxTurnsExceeded(_Told):
    """The run needed more turns than it may have."""


class ModelBehaviorError(_Told):
    """The model did what it must not: called a tool that does not exist, gave arguments or output that do not fit."""


class MCPToolCancellationError(_Told):
    """A call of an MCP tool was cancelled inside the server or its transport, not by the run."""


class ModelRefusalError(AgentsException):
    """The model refused; `refusal` is what it said."""

    def __init__(self, refusal: str) -> None:
        super().__init__(f"Model refused to produce output: {refusal}")
        self.refusal = refusal

    def __reduce__(self) -> tuple[type[ModelRefusalError], tuple[str]]:
        return type(self), (self.refusal,)


class ModelIncompleteError(AgentsException):
    """The model's answer was cut off. `reason` is the API's word for why; `response` is what came, or None."""

    def __init__(self, reason: str | None, response: Any = None) -> None:
        super().__init__(
            f"the model's answer is incomplete ({reason or 'no reason given'}); "
            'RunConfig(on_incomplete="return") takes what came as the output'
        )
        self.reason = reason
        self.response = response

    def __reduce__(self) -> tuple[type[ModelIncompleteError], tuple[str | None, Any]]:
        return type(self), (self.reason, self.response)


class ModelTimeoutError(AgentsException):
    """One attempt of a model call took longer than `timeout_seconds`."""

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"Model call timed out after {timeout_seconds:g} seconds.")
        self.timeout_seconds = timeout_seconds

    def __reduce__(self) -> tuple[type[ModelTimeoutError], tuple[float]]:
        return type(self), (self.timeout_seconds,)


class ToolTimeoutError(AgentsException):
    """A call of the function tool `tool_name` took longer than `timeout_seconds`."""

    def __init__(self, tool_name: str, timeout_seconds: float) -> None:
        super().__init__(f"Tool '{tool_name}' timed out after {timeout_seconds:g} seconds.")
        self.tool_name = tool_name
        self.timeout_seconds = timeout_seconds

    def __reduce__(self) -> tuple[type[ToolTimeoutError], tuple[str, float]]:
        return type(self), (self.tool_name, self.timeout_seconds)


class InputGuardrailTripwireTriggered(AgentsException):
    """A guardrail stopped the run because of its input."""

    def __init__(self, guardrail_result: InputGuardrailResult) -> None:
        super().__init__(f"Guardrail {type(guardrail_result.guardrail).__name__} triggered tripwire")
        self.guardrail_result = guardrail_result


class OutputGuardrailTripwireTriggered(AgentsException):
    """A guardrail stopped the run because of its final output."""

    def __init__(self, guardrail_result: OutputGuardrailResult) -> None:
        super().__init__(f"Guardrail {type(guardrail_result.guardrail).__name__} triggered tripwire")
        self.guardrail_result = guardrail_result


class ToolInputGuardrailTripwireTriggered(AgentsException):
    """A guardrail of a tool stopped the run because of the call's arguments."""

    def __init__(self, guardrail: ToolInputGuardrail[Any], output: ToolGuardrailFunctionOutput) -> None:
        super().__init__(f"Tool input guardrail {type(guardrail).__name__} triggered tripwire")
        self.guardrail = guardrail
        self.output = output


class ToolOutputGuardrailTripwireTriggered(AgentsException):
    """A guardrail of a tool stopped the run because of what the tool returned."""

    def __init__(self, guardrail: ToolOutputGuardrail[Any], output: ToolGuardrailFunctionOutput) -> None:
        super().__init__(f"Tool output guardrail {type(guardrail).__name__} triggered tripwire")
        self.guardrail = guardrail
        self.output = output
