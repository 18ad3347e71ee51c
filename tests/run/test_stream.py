"""The events of streamed runs: their order, their timing, their end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.exceptions import MaxTurnsExceeded, ModelBehaviorError
from antiphon.handoffs import handoff
from antiphon.lifecycle import RunHooks
from antiphon.models import ModelSettings
from antiphon.run import RunConfig, Runner
from antiphon.stream_events import (
    AgentUpdatedStreamEvent,
    RawResponsesStreamEvent,
    RunItemStreamEvent,
    ToolProgressStreamEvent,
)
from antiphon.testing import ModelStep, ScriptedModel, assistant_message
from antiphon.tool import function_tool
from antiphon.tool_context import ToolContext

from .scenarios import World, agent, call, message_and_handoff, tool_beside_handoff, two_tools_two_turns


def word(event: Any) -> str:
    """Return an event in a word: an agent, `raw` for a model's, the name of an item's, what a tool reported."""
    match event:
        case AgentUpdatedStreamEvent(new_agent):
            return f"agent {new_agent.name}"
        case RawResponsesStreamEvent(data):
            return "raw" if data.type != "response.completed" else "raw completed"
        case RunItemStreamEvent(name):
            return name
        case ToolProgressStreamEvent(data):
            return f"progress {data}"
        case _:
            raise AssertionError(event)


def squeezed(words: list[str]) -> list[str]:
    return [one for place, one in enumerate(words) if one != "raw" or words[place - 1] != "raw"]


async def read(result: Any) -> list[str]:
    return squeezed([word(event) async for event in result.stream_events()])


TURN = ["raw", "raw completed"]
ORDERS = [
    (
        two_tools_two_turns,
        [
            "agent A",
            *TURN,
            "reasoning_item_created",
            "message_output_created",
            "tool_called",
            "tool_called",
            "tool_output",
            "tool_output",
            *TURN,
            "tool_called",
            "tool_output",
            *TURN,
            "message_output_created",
        ],
    ),
    (
        tool_beside_handoff,
        [
            "agent A",
            *TURN,
            "tool_called",
            "handoff_requested",
            "tool_output",
            "handoff_occured",
            "agent B",
            *TURN,
            "message_output_created",
        ],
    ),
    (
        message_and_handoff,
        [
            "agent A",
            *TURN,
            "message_output_created",
            "handoff_requested",
            "handoff_occured",
            "agent B",
            *TURN,
            "message_output_created",
        ],
    ),
]


@pytest.mark.parametrize(("build", "expected"), ORDERS, ids=[build.__name__ for build, _ in ORDERS])
async def test_order(build: Any, expected: list[str]) -> None:
    assert await read(Runner.run_streamed(build(World()), "go")) == expected


async def test_before_reading_and_after() -> None:
    result = Runner.run_streamed(two_tools_two_turns(World()), "go")
    before = (result.is_complete, result.current_turn, result.final_output, result.new_items)
    assert before == (False, 0, None, [])
    seen = [result.is_complete async for _ in result.stream_events()]
    assert not any(seen)
    assert (result.is_complete, result.current_turn, result.final_output) == (True, 3, "done")
    assert result.run_loop_exception is None
    assert [event async for event in result.stream_events()] == []


async def test_a_run_goes_on_without_a_reader() -> None:
    result = Runner.run_streamed(two_tools_two_turns(World()), "go")
    await result.run_loop_task
    assert result.is_complete
    assert result.final_output == "done"
    assert (await read(result))[-1] == "message_output_created"


async def test_what_is_not_held_is_gone_at_once() -> None:
    """Nothing of a run waits for the collector, also where tools have reported and others have run inside."""

    @function_tool
    async def slowly(ctx: ToolContext[Any]) -> str:
        ctx.report("half")
        return "x"

    inner = agent("Inner", [call("slowly")], [assistant_message("inner")], tools=[slowly])
    steps = [call("slowly")], [call("ask", input="?")], [assistant_message("done")]
    result = Runner.run_streamed(agent("A", *steps, tools=[slowly, inner.as_tool("ask", "")]), "go")
    await read(result)
    await asyncio.sleep(0)
    refs = [weakref.ref(result), weakref.ref(result.context_wrapper)]
    gc.collect()
    gc.disable()
    try:
        del result
        assert [ref() for ref in refs] == [None, None]
    finally:
        gc.enable()


async def test_resumed_order() -> None:
    """The call is not announced again: its output is the first item."""
    world = World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    first = Runner.run_streamed(a, "go")
    assert await read(first) == ["agent A", *TURN, "tool_called"]
    assert [item.type for item in first.new_items] == ["tool_call_item", "tool_approval_item"]
    state = first.to_state()
    state.approve(first.interruptions[0])
    second = Runner.run_streamed(a, state)
    assert await read(second) == ["agent A", "tool_output", *TURN, "message_output_created"]
    assert [item.type for item in second.new_items] == [
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]


async def test_tool_called_is_seen_before_the_tool_and_its_hook() -> None:
    seen: list[str] = []

    class Hooks(RunHooks[Any, Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            seen.append("hook")

    @function_tool
    async def look() -> str:
        seen.append("tool")
        return "x"

    a = agent("A", [call("look")], [assistant_message("done")], tools=[look])
    async for event in Runner.run_streamed(a, "go", hooks=Hooks()).stream_events():
        if isinstance(event, RunItemStreamEvent):
            seen.append(event.name)  # noqa: PERF401  # what came before the error counts
    assert seen == ["tool_called", "hook", "tool", "tool_output", "message_output_created"]


async def test_progress_from_tools_and_from_threads() -> None:
    @function_tool
    async def slowly(ctx: ToolContext[Any]) -> str:
        ctx.report({"percent": 50})
        await asyncio.sleep(0)
        return "x"

    @function_tool
    def in_a_thread(ctx: ToolContext[Any]) -> str:
        ctx.report("half")
        return "y"

    def build() -> Agent[Any]:
        steps = [call("slowly")], [call("in_a_thread")], [assistant_message("done")]
        return agent("A", *steps, tools=[slowly, in_a_thread])

    result = Runner.run_streamed(build(), "go")
    events = [event async for event in result.stream_events()]
    told = [(one.tool_name, one.tool_call_id, one.data) for one in events if isinstance(one, ToolProgressStreamEvent)]
    assert told == [
        ("slowly", "call_slowly_1", {"percent": 50}),
        ("in_a_thread", "call_in_a_thread_1", "half"),
    ]
    words = [word(event) for event in events if not isinstance(event, RawResponsesStreamEvent)]
    assert words[1:4] == ["tool_called", "progress {'percent': 50}", "tool_output"]
    assert (await Runner.run(build(), "go")).final_output == "done"


async def test_a_filter_takes_no_event_away() -> None:
    b = agent("B", [assistant_message("I am B")])

    def forgetful(data: Any) -> Any:
        return data.clone(new_items=tuple(one for one in data.new_items if "handoff" not in one.type))

    a = agent("A", [call("transfer_to_b")], handoffs=[handoff(b, input_filter=forgetful)])
    words = await read(Runner.run_streamed(a, "go"))
    assert words[3:6] == ["handoff_requested", "handoff_occured", "agent B"]
    asked = b.model.last_call.input
    assert [item.get("type", "message") for item in asked] == ["message"]


# --- errors ----------------------------------------------------------------------------------------------------------


async def test_errors_come_after_the_events() -> None:
    world = World()
    steps = [[call("look", number, text="x")] for number in range(3)]
    a = agent("A", *steps, tools=[world.tool("look")])
    result = Runner.run_streamed(a, "go", max_turns=2)
    words: list[str] = []

    async def collect() -> None:
        async for event in result.stream_events():
            words.append(word(event))  # noqa: PERF401  # what came before the error counts

    with pytest.raises(MaxTurnsExceeded, match=r"Max turns \(2\) exceeded") as caught:
        await collect()
    assert [one for one in words if not one.startswith("raw")] == ["agent A", *["tool_called", "tool_output"] * 2]
    assert result.is_complete
    assert result.run_loop_exception is caught.value
    assert caught.value.run_data is not None
    assert len(caught.value.run_data.new_items) == 4


async def test_a_stream_without_an_end() -> None:
    a = Agent("A", model=ScriptedModel([ModelStep.stream([])]))
    result = Runner.run_streamed(a, "go")
    with pytest.raises(ModelBehaviorError, match="Model did not produce a final response!"):
        await read(result)
    with pytest.raises(ModelBehaviorError):
        await result.run_loop_task


async def test_the_output_is_that_of_the_items_where_the_end_has_none() -> None:
    asked: Any = (None, "x", ModelSettings(), [], None, [], None)
    whole = [event async for event in ScriptedModel([[assistant_message("hi")]]).stream_response(*asked)]
    whole[-1].response.output = []
    result = Runner.run_streamed(Agent("A", model=ScriptedModel([ModelStep.stream(whole)])), "go")
    assert (await read(result))[-1] == "message_output_created"
    assert result.final_output == "hi"


async def test_checked_events() -> None:
    config = RunConfig(check_events=True)
    good = agent("A", [assistant_message("hi")])
    assert (await Runner.run(good, "go", run_config=config)).final_output == "hi"
    asked: Any = (None, "x", ModelSettings(), [], None, [], None)
    events = [event async for event in ScriptedModel([[assistant_message("hi")]]).stream_response(*asked)]
    del events[1]
    bad = Agent("A", model=ScriptedModel([ModelStep.stream(events)]))
    result = Runner.run_streamed(bad, "go", run_config=config)
    with pytest.raises(Exception, match="the stream breaks"):
        await read(result)


async def test_a_run_leaves_nothing_behind() -> None:
    """500 streamed runs at once; afterwards nothing of them is held."""

    async def one() -> None:
        async for _ in Runner.run_streamed(two_tools_two_turns(World()), "go").stream_events():
            pass

    await one()
    gc.collect()
    before = _counts()
    await asyncio.gather(*(one() for _ in range(500)))
    gc.collect()
    assert _counts() == before


def _counts() -> tuple[int, int]:
    objects = gc.get_objects()
    return (
        sum(isinstance(one, RunItemStreamEvent) for one in objects),
        sum(isinstance(one, Agent) for one in objects),
    )


@pytest.mark.parametrize("where", ["while it reads", "after it broke off"])
async def test_a_reader_may_await_the_task(where: str) -> None:
    """A run waits for who reads its events, but not while that one waits for the run."""
    world = World()
    a = agent("A", [call("look", text="x")], [call("look", 2, text="y")], [assistant_message("end")])
    a.tools = [world.tool("look")]
    result = Runner.run_streamed(a, "go")
    reader = result.stream_events()
    seen = [await anext(reader)]
    if where == "while it reads":
        async for event in reader:
            seen.append(event)
            await asyncio.wait_for(result.run_loop_task, 10)
    await asyncio.wait_for(result.run_loop_task, 10)
    assert (result.is_complete, result.final_output) == (True, "end")
    seen.extend([event async for event in reader])
    items = [event.item for event in seen if isinstance(event, RunItemStreamEvent)]
    assert items == result.new_items
