"""A run that goes on from a state and is broken off: with the same state it goes on from where it came to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.exceptions import (
    ModelBehaviorError,
    OutputGuardrailTripwireTriggered,
    ToolOutputGuardrailTripwireTriggered,
    UserError,
)
from antiphon.guardrail import GuardrailFunctionOutput, output_guardrail
from antiphon.lifecycle import RunHooks
from antiphon.run import Runner
from antiphon.run_state import RunState
from antiphon.testing import ModelStep, ScriptedModel, assistant_message
from antiphon.tool import function_tool
from antiphon.tool_guardrails import ToolGuardrailFunctionOutput, tool_output_guardrail

from .memory import ListSession
from .scenarios import World, agent, call, told

WAYS = ("plain", "streamed", "elsewhere")


async def run(a: Agent[Any], state: Any, way: str, **options: Any) -> Any:
    if way != "streamed":
        return await Runner.run(a, state, **options)
    result = Runner.run_streamed(a, state, **options)
    async for _ in result.stream_events():
        pass
    return result


async def approved(a: Agent[Any], **options: Any) -> RunState[Any]:
    state = (await Runner.run(a, "go", **options)).to_state()
    for item in state.get_interruptions():
        state.approve(item)
    return state


@dataclass
class Once:
    """Something that fails the first time."""

    times: int = 0

    def __call__(self, *_: Any, **__: Any) -> None:
        self.times += 1
        if self.times == 1:
            raise RuntimeError("once")


class EndHook(RunHooks[Any]):
    def __init__(self) -> None:
        self.once = Once()

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        self.once()


@dataclass(frozen=True)
class Broken:
    """`build` makes the agents; what is broken off the first time raises `error`; the second time is `then`."""

    name: str
    build: Callable[[World], Agent[Any]]
    error: type[Exception]
    then: str | type[Exception] = "done"
    hooks: Callable[[], RunHooks[Any]] | None = None

    def __str__(self) -> str:
        return self.name


def model_fails(world: World) -> Agent[Any]:
    steps = [call("pay", text="1")], ModelStep.raise_error(ConnectionError("503")), [assistant_message("done")]
    return agent("A", *steps, tools=[world.tool("pay")])


def one_call(world: World) -> Agent[Any]:
    return agent("A", [call("pay", text="1")], [assistant_message("done")], tools=[world.tool("pay")])


def extractor_fails(world: World) -> Agent[Any]:
    made = one_call(world)
    made.tools[0].custom_data_extractor = Once()
    return made


def tool_raises(world: World) -> Agent[Any]:
    @function_tool(needs_approval=True, failure_error_function=None)
    def pay() -> None:
        world.done.append("pay(1)")
        raise ValueError("after it was paid")

    return agent("A", [call("pay")], [assistant_message("done")], tools=[pay])


def output_trips(world: World) -> Agent[Any]:
    @tool_output_guardrail
    def no(_: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.raise_exception()

    made = one_call(world)
    made.tools[0].tool_output_guardrails = [no]
    return made


BROKEN = [
    Broken("the next model call fails", model_fails, ConnectionError),
    Broken("a hook fails", one_call, RuntimeError, hooks=EndHook),
    Broken("the data beside fails", extractor_fails, RuntimeError),
    Broken("the tool fails", tool_raises, UserError, ModelBehaviorError),
    Broken("the output is refused", output_trips, ToolOutputGuardrailTripwireTriggered, ModelBehaviorError),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broken", BROKEN, ids=str)
async def test_what_was_done_is_not_done_again(broken: Broken, way: str) -> None:
    world, session = World(gated=True), ListSession()
    a = broken.build(world)
    options: dict[str, Any] = {"session": session, "hooks": broken.hooks() if broken.hooks else None}
    state = await approved(a, **options)
    with pytest.raises(broken.error):
        await run(a, state, way, **options)
    if way == "elsewhere":
        state = await RunState.from_string(a, state.to_string())
    if isinstance(broken.then, str):
        result = await run(a, state, way, **options)
        assert result.final_output == broken.then
        ids = [item.get("call_id") for item in session.items if item.get("type") == "function_call_output"]
        assert len(ids) == len(set(ids)) == 1
    else:
        with pytest.raises(broken.then, match="not made twice"):
            await run(a, state, way, **options)
    assert world.done == ["pay(1)"]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("way", WAYS)
async def test_cancelled_after_a_tool(way: str, inside: bool) -> None:
    world, waits = World(gated=True), asyncio.Event()

    async def hang(_: Any) -> Any:
        waits.set()
        await asyncio.Event().wait()

    steps = [call("pay", text="1")], ModelStep.respond(hang), [assistant_message("done")]
    a = agent("B", *steps, tools=[world.tool("pay")])
    if inside:
        a = agent("A", [call("ask", input="q")], [assistant_message("done")], tools=[a.as_tool("ask", "")])
    state = await approved(a)
    task = asyncio.create_task(run(a, state, way))
    await waits.wait()
    task.cancel()
    await asyncio.wait([task])
    if way == "elsewhere":
        state = await RunState.from_string(a, state.to_string())
    for _ in range(9):
        await asyncio.sleep(0)
    assert (await run(a, state, way)).final_output == "done"
    assert world.done == ["pay(1)"]


@pytest.mark.parametrize("way", ["plain", "streamed"])
async def test_one_state_is_decided_about_until_the_run_ends(way: str) -> None:
    world = World(gated=True)
    steps = [call("look", 1, text="1")], [call("look", 2, text="2")], [assistant_message("done")]
    a = agent("A", *steps, tools=[world.tool("look")])
    state = (await Runner.run(a, "go")).to_state()
    result = None
    while state.get_interruptions():
        state.approve(state.get_interruptions()[0])
        result = await run(a, state, way)
    assert result is not None
    assert result.final_output == "done"
    assert world.done == ["look(1)", "look(2)"]
    assert (await run(a, state, way)).final_output == "done"
    assert world.done == ["look(1)", "look(2)"]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("listens", [False, True], ids=["", "with on_stream"])
@pytest.mark.parametrize("way", WAYS)
async def test_cancelled_beside_a_tool_inside(way: str, listens: bool, depth: int) -> None:
    """What the tools of the turn at hand have done in a run inside is done, whether its events are listened to or not."""
    world, waits, hang = World(), asyncio.Event(), [True]

    def listen(_: Any) -> None:
        pass

    async def slowly() -> str:
        waits.set()
        if hang[0]:
            await asyncio.Event().wait()
        return "at last"

    tools = [world.tool("pay"), function_tool(slowly)]
    a = agent("B", [call("pay", text="1"), call("slowly")], [assistant_message("done")], tools=tools)
    for n in range(depth):
        asks = a.as_tool("ask", "", on_stream=listen if listens else None, needs_approval=n == depth - 1)
        a = agent("A", [call("ask", input="q")], [assistant_message("done")], tools=[asks])
    state = await approved(a)
    task = asyncio.create_task(run(a, state, way))
    await waits.wait()
    for _ in range(9):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    for _ in range(9):
        await asyncio.sleep(0)
    if way == "elsewhere":
        state = await RunState.from_string(a, state.to_string())
    hang[0] = False
    assert (await run(a, state, way)).final_output == "done"
    assert world.done == ["pay(1)"]


@pytest.mark.parametrize("events", [0, 1, 2, 3, 99])
@pytest.mark.parametrize("given", ["what was given", "what came of it"])
async def test_cancelled_at_once(given: str, events: int) -> None:
    """A run that goes on with a turn of another is cancelled after some events, the first before it has begun."""
    world = World(gated=True)
    calls = [call("pay", text="1"), call("look", text="2")]
    tools = [world.tool("pay", free=True), world.tool("look")]
    a = agent("A", calls, [assistant_message("done")], [assistant_message("done")], tools=tools)
    session: Any = ListSession()
    state = await approved(a, session=session)
    result = Runner.run_streamed(a, state, session=session)
    reader = result.stream_events()
    for _ in range(events):
        await anext(reader, None)
    result.cancel()
    assert [told(item) for item in result.new_items][:2] == ["tool_call:pay", "tool_call:look"]
    await reader.aclose()
    state = result.to_state() if given == "what came of it" else state
    assert (await Runner.run(a, state, session=session)).final_output == "done"
    assert world.done == ["pay(1)", "look(2)"]
    kinds = [item.get("type", item.get("role")) for item in session.items]
    assert kinds == ["user", *["function_call"] * 2, *["function_call_output"] * 2, "message"]


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("way", WAYS)
async def test_an_output_that_was_withheld_is_not_answered_twice(way: str, times: int) -> None:
    """What tools returned was refused as the final output; the run is tried again until it is not."""
    world, session, refused = World(gated=True), ListSession(), list[str]()

    @output_guardrail
    def strict(*_: Any) -> GuardrailFunctionOutput:
        refused.append("no")
        return GuardrailFunctionOutput(None, tripwire_triggered=len(refused) <= times)

    calls = [call("pay", text="1"), call("look", text="2")]
    a = agent("A", calls, tools=[world.tool("pay"), world.tool("look", free=True)], output_guardrails=[strict])
    a.tool_use_behavior = "stop_on_first_tool"
    state = await approved(a, session=session)
    for _ in range(times):
        with pytest.raises(OutputGuardrailTripwireTriggered):
            await run(a, state, way, session=session)
        if way == "elsewhere":
            state = await RunState.from_string(a, state.to_string())
    assert (await run(a, state, way, session=session)).final_output == "pay says 1"
    ids = [item.get("call_id") for item in session.items if item.get("type") == "function_call_output"]
    assert sorted(ids) == ["call_look_1", "call_pay_1"]


async def test_a_result_stays_as_it_was() -> None:
    """The state that a run started from is another's: what comes of it later does not show in the result."""
    world = World(gated=True)
    steps = [call("look", 1, text="1")], [call("look", 2, text="2")], [assistant_message("done")]
    a = agent("A", *steps, tools=[world.tool("look")])
    state = await approved(a)
    second = await Runner.run(a, state)
    before = [told(item) for item in second.new_items], second.to_state().to_json()
    state.approve(state.get_interruptions()[0])
    await Runner.run(a, state)
    assert ([told(item) for item in second.new_items], second.to_state().to_json()) == before


async def test_a_call_that_was_cancelled_is_made_again() -> None:
    begun, hang, done = asyncio.Event(), [True], list[str]()

    @function_tool(needs_approval=True)
    async def slowly() -> str:
        begun.set()
        if hang[0]:
            await asyncio.Event().wait()
        done.append("slowly")
        return "at last"

    a = Agent("A", model=ScriptedModel([[call("slowly")], [assistant_message("done")]]), tools=[slowly])
    state = await approved(a)
    task = asyncio.create_task(Runner.run(a, state))
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    hang[0] = False
    assert (await Runner.run(a, state)).final_output == "done"
    assert done == ["slowly"]
