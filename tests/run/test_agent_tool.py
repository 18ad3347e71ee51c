"""Agents as tools: their input, their output, their events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from antiphon.agent import Agent
from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.models import Usage
from antiphon.run import Runner
from antiphon.stream_events import ToolProgressStreamEvent
from antiphon.testing import ScriptedModel, assistant_message, function_call
from antiphon.tool import function_tool
from antiphon.tool_context import ToolContext

from .memory import ListSession
from .scenarios import World, agent, call


class Trip(BaseModel):
    """Structured input."""

    city: str
    days: int = 1


@dataclass
class Order:
    number: int


def asked(inner: Agent[Any]) -> Any:
    return inner.model.last_call.input[-1]["content"]


async def run_with(inner: Agent[Any], arguments: Any, **options: Any) -> tuple[Any, Agent[Any]]:
    tool = inner.as_tool("ask", "Ask.", **options)
    a = agent("A", [function_call("ask", arguments, call_id="c1")], [assistant_message("done")], tools=[tool])
    return await Runner.run(a, "go", context="c"), a


def output(a: Agent[Any]) -> Any:
    return a.model.last_call.input[-1]["output"]


async def test_the_tool() -> None:
    tool = agent("My Helper").as_tool(None, None)
    assert (tool.name, tool.description) == ("my_helper", "")
    assert tool.params_json_schema["properties"]["input"]["type"] == "string"
    assert (tool.params_json_schema["required"], tool.params_json_schema["additionalProperties"]) == (["input"], False)
    with pytest.raises(TypeError, match="dataclass or Pydantic model"):
        agent("A").as_tool("x", "", parameters=int)


async def test_text_in_and_out() -> None:
    inner = Agent("Inner", model=ScriptedModel([[assistant_message("42")]], default_usage=Usage(1, 5, total_tokens=5)))
    result, a = await run_with(inner, {"input": "six times seven"})
    assert (asked(inner), output(a)) == ("six times seven", "42")
    assert result.context_wrapper.usage.total_tokens == 5
    assert result.new_items[0].tool_origin.to_json_dict() == {
        "type": "agent_as_tool",
        "agent_name": "Inner",
        "agent_tool_name": "ask",
    }


@pytest.mark.parametrize("with_schema", [True, False])
@pytest.mark.parametrize(("parameters", "arguments"), [(Trip, {"city": "Graz", "days": 2}), (Order, {"number": 7})])
async def test_structured_input(parameters: Any, arguments: Any, with_schema: bool) -> None:
    seen: list[Any] = []
    inner = agent("Inner", [assistant_message("ok")], instructions=lambda ctx, a: seen.append(ctx.tool_input) or "x")
    await run_with(inner, arguments, parameters=parameters, include_input_schema=with_schema)
    text = asked(inner)
    assert seen == [arguments]
    assert all(str(value) in text for value in arguments.values())
    assert ("JSON schema" in text) == with_schema


async def test_an_input_builder() -> None:
    async def build(given: Any) -> list[Any]:
        return [{"role": "user", "content": f"to {given['params']['city']}"}]

    inner = agent("Inner", [assistant_message("ok")])
    await run_with(inner, {"city": "Graz", "days": 2}, parameters=Trip, input_builder=build)
    assert asked(inner) == "to Graz"


async def test_arguments_that_do_not_fit() -> None:
    """The model is told where, and not what it wrote."""
    _, a = await run_with(agent("Inner"), {"city": "Graz", "days": "secret"}, parameters=Trip)
    assert "days" in output(a)
    assert "secret" not in output(a)
    with pytest.raises(ModelBehaviorError, match="days") as caught:
        await run_with(agent("Inner"), {"city": "x", "days": "secret"}, parameters=Trip, failure_error_function=None)
    assert "secret" not in str(caught.value)


async def test_what_the_inner_run_raises() -> None:
    _, a = await run_with(agent("Inner", ValueError("broken")), {"input": "x"})
    assert output(a) == "An error occurred while running the tool. Please try again. Error: broken"
    with pytest.raises(UserError, match="Error running tool ask: broken"):
        await run_with(agent("Inner", ValueError("broken")), {"input": "x"}, failure_error_function=None)


async def test_an_output_extractor() -> None:
    async def extract(result: Any) -> str:
        held = result.agent_tool_invocation
        return f"{result.final_output}/{held.tool_name}/{held.tool_call_id}/{held.tool_arguments}/{result.context_wrapper.context}"

    _, a = await run_with(agent("Inner", [assistant_message("ok")]), '{"input":"x"}', custom_output_extractor=extract)
    assert output(a) == 'ok/ask/c1/{"input":"x"}/c'


async def test_an_empty_output_is_the_last_one_said() -> None:
    inner = agent(
        "Inner",
        [assistant_message("first"), call("look", text="x")],
        [assistant_message("")],
        tools=[World().tool("look")],
    )
    _, a = await run_with(inner, {"input": "x"})
    assert output(a) == "look says x"


async def test_turns_and_session_of_the_inner_run() -> None:
    session = ListSession()
    inner = agent("Inner", *[[call("look", n, text="x")] for n in range(5)], tools=[World().tool("look")])
    _, a = await run_with(inner, {"input": "x"}, max_turns=2, session=session)
    assert "Max turns (2) exceeded" in output(a)
    assert len(session.items) == 5


@pytest.mark.parametrize("failing", [True, False])
async def test_events_of_the_inner_run(failing: bool, caplog: pytest.LogCaptureFixture) -> None:
    seen: list[tuple[str, str, str]] = []

    async def on_stream(given: Any) -> None:
        event = given["event"]
        seen.append((event.type, given["agent"].name, given["tool_call"].call_id))
        if failing:
            raise RuntimeError("mine")

    inner = agent("Inner", [call("transfer_to_b")], handoffs=[agent("B", [assistant_message("ok")])])
    _, a = await run_with(inner, {"input": "x"}, on_stream=on_stream)
    assert output(a) == "ok"
    assert seen[0] == ("agent_updated_stream_event", "Inner", "c1")
    assert seen[-1] == ("run_item_stream_event", "B", "c1")
    assert bool(caplog.records) == failing
    assert inner.model.last_call.streamed


async def test_progress_of_inner_tools_reaches_the_outer_stream() -> None:
    @function_tool
    async def look(ctx: ToolContext[Any]) -> str:
        ctx.report("half")
        return "x"

    inner = agent("Inner", [call("look")], [assistant_message("ok")], tools=[look])
    a = agent("A", [call("ask", input="?")], [assistant_message("done")], tools=[inner.as_tool("ask", "")])
    events = [event async for event in Runner.run_streamed(a, "go").stream_events()]
    told = [event for event in events if isinstance(event, ToolProgressStreamEvent)]
    assert [(one.data, one.tool_name, one.agent and one.agent.name) for one in told] == [("half", "look", "Inner")]
