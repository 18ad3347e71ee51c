"""Guardrails by themselves: sync and async, named and nameless, and what a tool's guardrail may say."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from antiphon.errors import BadInput
from antiphon.exceptions import (
    AgentsException,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelIncompleteError,
    ModelRefusalError,
    ModelTimeoutError,
    OutputGuardrailTripwireTriggered,
    ToolInputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    ToolTimeoutError,
    UserError,
)
from antiphon.guardrail import (
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailResult,
    OutputGuardrail,
    OutputGuardrailResult,
    input_guardrail,
    output_guardrail,
)
from antiphon.run.context import RunContextWrapper
from antiphon.tool_context import ToolContext
from antiphon.tool_guardrails import (
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
    tool_input_guardrail,
    tool_output_guardrail,
)

CONTEXT = RunContextWrapper("ctx")
CALL: ToolContext[Any] = ToolContext("ctx", None, "f", "c", "{}")
AGENT = object()  # guardrails do not look at it


def sync_check(ctx: Any, agent: Any, value: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(value, tripwire_triggered=value == "bad")


async def async_check(ctx: Any, agent: Any, value: Any) -> GuardrailFunctionOutput:
    return sync_check(ctx, agent, value)


def sync_tool_check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    output = data.output if isinstance(data, ToolOutputGuardrailData) else data.context.tool_arguments
    return ToolGuardrailFunctionOutput.reject_content("no", output)


async def async_tool_check(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    return sync_tool_check(data)


@pytest.mark.parametrize("check", [sync_check, async_check])
@pytest.mark.parametrize("value", ["good", "bad"])
async def test_checks_of_a_run(check: Any, value: str) -> None:
    found = GuardrailFunctionOutput(value, value == "bad")
    before, after = input_guardrail(check), output_guardrail(check)
    assert await before.run(AGENT, value, CONTEXT) == InputGuardrailResult(before, found)
    assert await after.run(CONTEXT, AGENT, value) == OutputGuardrailResult(after, value, AGENT, found)


@pytest.mark.parametrize("check", [sync_tool_check, async_tool_check])
async def test_checks_of_a_tool(check: Any) -> None:
    before, after = tool_input_guardrail(check), tool_output_guardrail(check)
    refused = {"type": "reject_content", "message": "no"}
    data = (ToolInputGuardrailData(CALL, AGENT), ToolOutputGuardrailData(CALL, AGENT, 3))
    found = (await before.run(data[0]), await after.run(data[1]))
    assert found == (ToolGuardrailFunctionOutput("{}", refused), ToolGuardrailFunctionOutput(3, refused))  # type: ignore[arg-type]  # a plain dict


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (input_guardrail(sync_check), "sync_check"),
        (input_guardrail(name="n", run_in_parallel=False)(sync_check), "n"),
        (output_guardrail(name="n")(sync_check), "n"),
        (tool_input_guardrail(name="n")(sync_tool_check), "n"),
        (tool_output_guardrail(sync_tool_check), "sync_tool_check"),
        (InputGuardrail(sync_check), "sync_check"),
        (OutputGuardrail(sync_check), "sync_check"),
        (ToolInputGuardrail(sync_tool_check), "sync_tool_check"),
        (ToolOutputGuardrail(sync_tool_check, "n"), "n"),
    ],
)
def test_names(made: Any, name: str) -> None:
    assert made.get_name() == name


def test_input_guardrails_run_beside_the_turn_unless_told() -> None:
    assert (
        input_guardrail(sync_check).run_in_parallel,
        input_guardrail(run_in_parallel=False)(sync_check).run_in_parallel,
    ) == (True, False)


async def test_a_guardrail_without_a_function_is_refused() -> None:
    wrong: Any = "check"
    with pytest.raises(UserError, match="callable"):
        await InputGuardrail(wrong).run(AGENT, "x", CONTEXT)
    with pytest.raises(UserError, match="callable"):
        await ToolInputGuardrail(wrong).run(ToolInputGuardrailData(CALL, AGENT))


@pytest.mark.parametrize(
    ("output", "behavior"),
    [
        (ToolGuardrailFunctionOutput.allow("i"), {"type": "allow"}),
        (ToolGuardrailFunctionOutput.reject_content("m", "i"), {"type": "reject_content", "message": "m"}),
        (ToolGuardrailFunctionOutput.raise_exception("i"), {"type": "raise_exception"}),
        (ToolGuardrailFunctionOutput("i"), {"type": "allow"}),
    ],
)
def test_what_a_tools_guardrail_may_say(output: ToolGuardrailFunctionOutput, behavior: dict[str, str]) -> None:
    assert (output.output_info, output.behavior) == ("i", behavior)


def test_the_tripwires_say_which_guardrail_it_was() -> None:
    output = GuardrailFunctionOutput(None, True)
    said = ToolGuardrailFunctionOutput.raise_exception()
    before, after = ToolInputGuardrail[Any](sync_tool_check), ToolOutputGuardrail[Any](sync_tool_check)
    errors: list[AgentsException] = [
        InputGuardrailTripwireTriggered(InputGuardrailResult(InputGuardrail(sync_check), output)),
        OutputGuardrailTripwireTriggered(OutputGuardrailResult(OutputGuardrail(sync_check), "o", AGENT, output)),
        ToolInputGuardrailTripwireTriggered(before, said),
        ToolOutputGuardrailTripwireTriggered(after, said),
    ]
    assert [str(error) for error in errors] == [
        "Guardrail InputGuardrail triggered tripwire",
        "Guardrail OutputGuardrail triggered tripwire",
        "Tool input guardrail ToolInputGuardrail triggered tripwire",
        "Tool output guardrail ToolOutputGuardrail triggered tripwire",
    ]
    assert all(error.run_data is None for error in errors)


@pytest.mark.parametrize(
    "error",
    [
        UserError("u"),
        BadInput("b"),
        MaxTurnsExceeded("m"),
        ToolTimeoutError("t", 1.5),
        ModelTimeoutError(2),
        ModelRefusalError("r"),
        ModelIncompleteError("max_output_tokens"),
    ],
)
def test_errors_are_one_tree_and_survive_pickling(error: AgentsException) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
    assert isinstance(error, AgentsException)
