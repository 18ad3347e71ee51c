"""The decorators that make tools and guardrails; `tool` is `function_tool`."""

from __future__ import annotations

from .run.guardrails import input_guardrail, output_guardrail, tool_input_guardrail, tool_output_guardrail
from .tools.function_tool import function_tool

tool = function_tool

__all__ = [
    "function_tool",
    "input_guardrail",
    "output_guardrail",
    "tool",
    "tool_input_guardrail",
    "tool_output_guardrail",
]
