"""RunState: as JSON and back, its version, its context, its agents."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from antiphon.agent import Agent
from antiphon.exceptions import UserError
from antiphon.run import Runner
from antiphon.run_state import RunState
from antiphon.testing import ScriptedModel, assistant_message

from .scenarios import World, agent, call, told


async def paused(context: Any = None, name: str = "A") -> tuple[Agent[Any], RunState[Any]]:
    world = World(gated=True)
    a = agent(name, [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    return a, (await Runner.run(a, "go", context=context)).to_state()


async def test_what_is_in_it() -> None:
    _, state = await paused({"user": 7})
    data = state.to_json()
    assert json.loads(json.dumps(data)) == data
    call_json = data["model_responses"][0]["output"][0]
    assert (call_json["name"], call_json["call_id"]) == ("look", "call_look_1")
    expected = {
        "$schemaVersion": "1.0",
        "current_turn": 1,
        "current_agent": {"name": "A"},
        "original_input": "go",
        "pending_input": [],
        "max_turns": 10,
        "tool_use_tracker": {"A": ["look"]},
        "conversation_id": None,
        "previous_response_id": None,
        "auto_previous_response_id": False,
        "reasoning_item_id_policy": None,
        "input_guardrail_results": [],
        "trace": None,
    }
    assert {name: data[name] for name in expected} == expected
    step = data["current_step"]
    assert step["type"] == "next_step_interruption"
    waiting = step["data"]["interruptions"][0]
    assert (waiting["type"], waiting["agent"], waiting["tool_name"]) == ("tool_approval_item", {"name": "A"}, "look")
    assert data["context"]["context"] == {"user": 7}
    assert data["last_model_response"] == data["model_responses"][-1]
    assert [one["type"] for one in data["generated_items"]] == ["tool_call_item"]
    assert data["generated_items"] == data["session_items"]


async def test_it_is_the_same_after_a_round_trip() -> None:
    a, state = await paused({"user": 7})
    again = await RunState.from_json(a, state.to_json())
    assert again.to_json() == state.to_json()
    assert (await RunState.from_string(a, state.to_string())).to_json() == state.to_json()


@pytest.mark.parametrize("version", ["0.1", "99.0", None, 1])
async def test_another_version_is_refused(version: Any) -> None:
    a, state = await paused()
    data = {**state.to_json(), "$schemaVersion": version}
    with pytest.raises(UserError, match="schema version"):
        await RunState.from_json(a, data)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"$schemaVersion": "1.0"}'])
async def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        await RunState.from_string(agent("A"), text)


async def test_an_agent_that_is_gone_is_named() -> None:
    _, state = await paused(name="old")
    with pytest.raises(UserError, match="Run state agent not found in agent map: 'old'"):
        await RunState.from_json(agent("new"), state.to_json())


async def test_agents_of_one_name_are_told_apart() -> None:
    world = World(gated=True)
    twins = [
        agent("B", [call("look", text=str(n))], [assistant_message(f"B{n}")], tools=[world.tool("look")])
        for n in (1, 2)
    ]
    middle = agent("M", [call("transfer_to_b")], handoffs=[twins[1]])
    a = agent("A", [call("transfer_to_m")], handoffs=[twins[0], middle])
    state = (await Runner.run(a, "go")).to_state()
    assert state.to_json()["current_agent"] == {"name": "B", "identity": "B#2"}
    again = await RunState.from_json(a, state.to_json())
    again.approve(again.get_interruptions()[0])
    assert (await Runner.run(a, again)).final_output == "B2"


# --- the context -----------------------------------------------------------------------------------------------------


@dataclass
class User:
    name: str


class Account(BaseModel):
    name: str


class Opaque:
    name = "o"


CONTEXTS: list[tuple[Any, Any, bool]] = [
    (None, None, False),
    ({"name": "n"}, {"name": "n"}, False),
    (User("n"), {"name": "n"}, True),
    (Account(name="n"), {"name": "n"}, True),
    (Opaque(), {}, True),
]


@pytest.mark.parametrize(("context", "stored", "lossy"), CONTEXTS)
async def test_contexts(context: Any, stored: Any, lossy: bool, caplog: pytest.LogCaptureFixture) -> None:
    a, state = await paused(context)
    with caplog.at_level(logging.WARNING, "antiphon"):
        data = state.to_json()
    assert data["context"]["context"] == stored
    assert bool(caplog.records) == lossy
    assert (await RunState.from_json(a, data)).context.context == stored
    if lossy:
        with pytest.raises(UserError, match="context_serializer"):
            state.to_json(strict_context=True)
        with pytest.raises(UserError, match="context_deserializer"):
            await RunState.from_json(a, data, strict_context=True)


async def test_context_by_functions_and_by_hand() -> None:
    a, state = await paused(User("n"))
    data = state.to_json(context_serializer=lambda user: {"n": user.name}, strict_context=True)
    read = await RunState.from_json(a, data, context_deserializer=lambda held: User(held["n"]), strict_context=True)
    assert read.context.context == User("n")
    other = await RunState.from_json(a, data, context_override=User("o"))
    assert other.context.context == User("o")
    with pytest.raises(UserError, match="a mapping is expected"):
        state.to_json(context_serializer=lambda user: user.name)


async def test_turns_and_usage_go_on() -> None:
    world = World(gated=True)
    steps = [[call("look", number, text="x")] for number in range(4)]
    a = agent("A", *steps, tools=[world.tool("look")])
    result = await Runner.run(a, "go", max_turns=3)
    for expected in (1, 2):
        state = await RunState.from_string(a, result.to_state().to_string())
        assert state.context.usage.requests == expected
        state.approve(state.get_interruptions()[0])
        result = await Runner.run(a, state)
    state = result.to_state()
    state.approve(state.get_interruptions()[0])
    with pytest.raises(Exception, match="Max turns"):
        await Runner.run(a, state)
    assert len(world.done) == 3


async def test_provider_data_is_kept() -> None:
    world = World(gated=True)
    raw = call("look", text="x")
    raw.provider_data = {"thought_signature": "abc"}
    a = agent("A", [raw], [assistant_message("done")], tools=[world.tool("look")])
    state = await RunState.from_string(a, (await Runner.run(a, "go")).to_state().to_string())
    state.approve(state.get_interruptions()[0])
    await Runner.run(a, state)
    assert a.model.last_call.input[1]["provider_data"] == {"thought_signature": "abc"}


async def test_the_result_is_not_changed_by_going_on() -> None:
    a, state = await paused()
    first = await Runner.run(a, state)
    before = first.to_state().to_json()
    state.approve(state.get_interruptions()[0])
    assert state.to_json() != before
    result = await Runner.run(a, state)
    assert result.final_output == "done"
    assert first.to_state().to_json() == before
    assert [told(item) for item in result.new_items][-1] == "message_output:done"


async def test_a_new_process_with_other_models() -> None:
    """The agents are made anew; only their names are in the state."""
    _, state = await paused()
    state.approve(state.get_interruptions()[0])
    world = World(gated=True)
    fresh = Agent("A", model=ScriptedModel([[assistant_message("elsewhere")]]), tools=[world.tool("look")])
    result = await Runner.run(fresh, await RunState.from_string(fresh, state.to_string()))
    assert (result.final_output, world.done) == ("elsewhere", ["look(x)"])
