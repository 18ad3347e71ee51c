"""What a type checker tells a user of the runner: good programs pass, and a wrong option is found where it stands."""

from __future__ import annotations

from pathlib import Path

import pytest

mypy = pytest.importorskip("mypy.api", reason="mypy is not installed")

PROGRAM = """
from typing import Any

from antiphon import (
    Agent, GuardrailFunctionOutput, RunConfig, RunContextWrapper, RunState, Runner, ShellTool, ToolGuardrailFunctionOutput,
    ToolInputGuardrailData, ToolOutputGuardrailData, function_tool, handoff, input_guardrail, output_guardrail,
    tool_input_guardrail, tool_output_guardrail,
)


@function_tool
def add(a: int, b: int = 2) -> int:
    return a + b


@function_tool(name_override="sub", needs_approval=True, tool_input_guardrails=[])
async def subtract(ctx: RunContextWrapper[str], a: int) -> int:
    return a


@input_guardrail
async def bare(ctx: RunContextWrapper[str], agent: Agent[str], input: str | list[Any]) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, False)


@input_guardrail(name="called", run_in_parallel=False)
def called(ctx: RunContextWrapper[str], agent: Agent[str], input: str | list[Any]) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, False)


@output_guardrail()
def said(ctx: RunContextWrapper[str], agent: Agent[str], output: str) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, False)


@tool_input_guardrail
def given(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()


@tool_output_guardrail(name="made")
async def made(data: ToolOutputGuardrailData) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()


def nothing() -> int:
    return 1


agent = Agent[str](name="A", tools=[add, subtract], input_guardrails=[bare, called], output_guardrails=[said])


async def use(state: RunState[Any]) -> None:
    agent.as_tool("ask", "Asks.", None, True, needs_approval=True, max_turns=None)
    await Runner.run(agent, "hi", context="c", max_turns=None, run_config={"workflow_name": "w"})
    Runner.run_streamed(agent, state, "c", 3, None, RunConfig(model="m"), error_handlers={})
    state.to_string(context_serializer=lambda context: {"text": context}, strict_context=True)
    await RunState.from_json(agent, state.to_json(), context_override="c")

    await Runner.run(agent, "hi", max_turn=1)  # wrong
    await Runner.run(agent, "hi", "c")  # wrong
    Runner.run_sync(agent, "hi", max_turns="3")  # wrong
    Runner.run_streamed(agent, "hi", sesion=None)  # wrong
    Runner.run_streamed(agent, "hi", None, "three")  # wrong
    RunConfig(modl="m")  # wrong
    RunConfig(on_incomplete="ignore")  # wrong
    Agent(nam="A")  # wrong
    agent.as_tool("ask")  # wrong
    agent.as_tool("ask", "Asks.", need_approval=True)  # wrong
    agent.as_tool("ask", "Asks.", max_turns="3")  # wrong
    handoff(agent, tool_name="go")  # wrong
    function_tool(nothing, name_overide="n")  # wrong
    function_tool(name_override=3)(nothing)  # wrong
    input_guardrail(nothing)  # wrong
    input_guardrail(name="n", run_in_paralel=False)  # wrong
    output_guardrail(run_in_parallel=False)  # wrong
    tool_input_guardrail(given.guardrail_function, nam="n")  # wrong
    tool_output_guardrail(nothing)  # wrong
    ShellTool(exec=None)  # wrong
    state.approve(1)  # wrong
    state.to_json(strict=True)  # wrong
    state.to_string(context_serialiser=None)  # wrong
    await RunState.from_json(agent, {}, contextoverride=1)  # wrong
    await RunState.from_string(agent, "{}", strict_context="yes")  # wrong
"""


def test_a_checker_finds_the_wrong_options(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    cache = getattr(request.config, "cache", None)  # none where its plug-in is switched off
    kept = str(cache.mkdir("mypy") if cache is not None else tmp_path / "cache")
    told, problems, _ = mypy.run(
        ["--strict", "--no-error-summary", "--hide-error-context", f"--cache-dir={kept}", str(program)]
    )
    found = {int(line.split(":")[1]) for line in told.splitlines() if ": error:" in line}
    wrong = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if line.endswith("# wrong")}
    assert (found, problems) == (wrong, "")
