"""Stopping a run: at once, after the turn, or by leaving the iterator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.models import ModelSettings
from antiphon.run import Runner
from antiphon.stream_events import RawResponsesStreamEvent, RunItemStreamEvent
from antiphon.testing import ModelStep, ScriptedModel, assistant_message
from antiphon.tool import function_tool

from .memory import ListSession
from .scenarios import World, agent, call, handoff_only, told, two_tools_two_turns


class Endless:
    """A model's stream that does not end, and knows whether it was closed."""

    def __init__(self) -> None:
        self.begun, self.closed = asyncio.Event(), False

    async def events(self, _: Any) -> AsyncIterator[Any]:
        source = ScriptedModel([[assistant_message("hello, this is long")]])
        try:
            async for event in source.stream_response(None, "x", ModelSettings(), [], None, [], None):  # type: ignore[arg-type]
                if event.type == "response.output_text.done":
                    self.begun.set()
                    await asyncio.Event().wait()
                yield event
        finally:
            self.closed = True

    def agent(self) -> Agent[Any]:
        return Agent("A", model=ScriptedModel([ModelStep.stream(self.events)]))


async def test_immediate() -> None:
    endless = Endless()
    result = Runner.run_streamed(endless.agent(), "go")
    seen = 0
    async for event in result.stream_events():
        seen += 1
        if isinstance(event, RawResponsesStreamEvent) and event.data.type == "response.output_text.delta":
            result.cancel()
            result.cancel()
            assert result.is_complete
    assert seen == 6
    assert (result.new_items, result.final_output, endless.closed) == ([], None, True)
    assert result.run_loop_task.done()


async def test_immediate_wakes_a_reader_that_waits() -> None:
    endless = Endless()
    result = Runner.run_streamed(endless.agent(), "go")

    async def read() -> int:
        return len([event async for event in result.stream_events()])

    reader = asyncio.create_task(read())
    await endless.begun.wait()
    await asyncio.sleep(0)
    result.cancel()
    assert await asyncio.wait_for(reader, 5) == 6
    assert endless.closed


async def test_immediate_before_reading() -> None:
    world = World()
    result = Runner.run_streamed(two_tools_two_turns(world), "go")
    result.cancel()
    assert [event async for event in result.stream_events()] == []
    assert (result.is_complete, world.done) == (True, [])


async def test_immediate_while_a_tool_runs() -> None:
    """The turn leaves nothing, not in the session either; the next run with it has no orphan."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    @function_tool
    async def slowly() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    session, world = ListSession(), World()
    steps = [call("look", text="x")], [call("slowly")], [assistant_message("again")]
    a = agent("A", *steps, tools=[world.tool("look"), slowly])
    result = Runner.run_streamed(a, "go", session=session)
    async for event in result.stream_events():
        if isinstance(event, RunItemStreamEvent) and told(event.item) == "tool_call:slowly":
            await begun.wait()  # who reads may wait for a tool: the run does not wait for the reader for ever
            result.cancel()
    assert stopped.is_set()
    first_turn = ["tool_call:look", "tool_call_output:look says x"]
    assert [told(item) for item in result.new_items] == first_turn
    assert [item.get("type", "message") for item in session.items] == [
        "message",
        "function_call",
        "function_call_output",
    ]
    again = await Runner.run(a, "and now?", session=session)
    assert again.final_output == "again"
    kinds = [item.get("type", "message") for item in a.model.last_call.input]
    assert kinds == ["message", "function_call", "function_call_output", "message"]


async def test_immediate_goes_on_from_the_state() -> None:
    """From where the broken turn began: it is asked again, and nothing of it is kept."""
    world = World()
    a = two_tools_two_turns(world)
    result = Runner.run_streamed(a, "go")
    async for event in result.stream_events():
        if isinstance(event, RunItemStreamEvent) and event.name == "tool_output":
            break_now = told(event.item) == "tool_call_output:find says y"
            if break_now:
                result.cancel("after_turn")
    state = result.to_state()
    final = await Runner.run(a, state)
    assert final.final_output == "done"
    assert world.done == ["look(x)", "find(y)", "look(z)"]


@pytest.mark.parametrize("turns_before", [0, 1])
async def test_a_broken_turn_is_asked_again(turns_before: int) -> None:
    """From the state after the cancel: nothing of the turn is kept, and the session has all of it once."""
    hang = asyncio.Event()

    async def slowly(_: Any) -> Any:
        if not hang.is_set():
            hang.set()
            await asyncio.Event().wait()
        return [assistant_message("done")]

    session, world = ListSession([{"role": "user", "content": "before"}]), World()
    steps = [[call("look", text="x")]] * turns_before
    a = agent("A", *steps, *[ModelStep.respond(slowly)] * 2, tools=[world.tool("look")])
    result = Runner.run_streamed(a, "go", session=session)
    async with result.stream_events():
        await hang.wait()
    state = result.to_state()
    assert state.current_turn == turns_before
    final = await Runner.run(a, state, session=session)
    assert (final.final_output, world.done) == ("done", ["look(x)"] * turns_before)
    assert session.items == final.to_input_list()
    assert len(session.items) == 3 + 2 * turns_before


async def test_after_turn() -> None:
    """The turn ends as any: saved and counted; from the state the run goes on."""
    world, session = World(), ListSession()
    a = two_tools_two_turns(world)
    result = Runner.run_streamed(a, "go", session=session)
    names: list[str] = []
    async for event in result.stream_events():
        if isinstance(event, RunItemStreamEvent):
            names.append(event.name)
            result.cancel(mode="after_turn")
    assert names[-2:] == ["tool_output", "tool_output"]
    assert (result.final_output, result.current_turn, result.is_complete) == (None, 1, True)
    assert result.context_wrapper.usage.requests == 1
    assert len(session.items) == 1 + 6
    final = await Runner.run(a, result.to_state(), session=session)
    assert final.final_output == "done"
    assert world.done == ["look(x)", "find(y)", "look(z)"]
    assert session.items == final.to_input_list()


async def test_after_turn_goes_on_from_the_input_list() -> None:
    a = two_tools_two_turns(World())
    result = Runner.run_streamed(a, "go")
    async for _ in result.stream_events():
        result.cancel(mode="after_turn")
    final = await Runner.run(result.last_agent, result.to_input_list(mode="normalized"))
    assert final.final_output == "done"


async def test_after_turn_before_reading() -> None:
    result = Runner.run_streamed(two_tools_two_turns(World()), "go")
    result.cancel(mode="after_turn")
    assert [event.type async for event in result.stream_events()] == ["agent_updated_stream_event"]


async def test_after_turn_of_a_handoff() -> None:
    a = handoff_only(World())
    result = Runner.run_streamed(a, "go")
    async for _ in result.stream_events():
        result.cancel(mode="after_turn")
    assert result.last_agent.name == "B"
    assert len(result.raw_responses) == 1
    assert (await Runner.run(a, result.to_state())).final_output == "I am B"


async def test_a_later_immediate_wins() -> None:
    endless = Endless()
    result = Runner.run_streamed(endless.agent(), "go")
    async for event in result.stream_events():
        if isinstance(event, RawResponsesStreamEvent) and event.data.type == "response.output_text.delta":
            result.cancel(mode="after_turn")
            result.cancel()
    assert endless.closed
    result.cancel(mode="after_turn")


async def test_closing_the_iterator() -> None:
    endless = Endless()
    result = Runner.run_streamed(endless.agent(), "go")
    async with result.stream_events() as events:
        async for event in events:
            if isinstance(event, RawResponsesStreamEvent) and event.data.type == "response.output_text.delta":
                break
    assert (endless.closed, result.run_loop_task.done(), result.is_complete) == (True, True, True)


async def test_a_plain_break() -> None:
    """No tool runs after the reader has left."""
    world = World()
    result = Runner.run_streamed(two_tools_two_turns(world), "go")
    async for event in result.stream_events():
        if isinstance(event, RawResponsesStreamEvent):
            break
    await asyncio.wait([result.run_loop_task])
    assert world.done == []
    assert result.is_complete


async def test_cancelling_who_reads() -> None:
    endless = Endless()
    result = Runner.run_streamed(endless.agent(), "go")

    async def read() -> None:
        async for _ in result.stream_events():
            pass

    reader = asyncio.create_task(read())
    await endless.begun.wait()
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    await asyncio.wait([result.run_loop_task])
    assert endless.closed


async def test_cancelling_a_plain_run_stops_its_tools() -> None:
    begun, stopped = asyncio.Event(), asyncio.Event()

    @function_tool
    async def slowly() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    run = asyncio.create_task(Runner.run(agent("A", [call("slowly")], tools=[slowly]), "go"))
    await begun.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert stopped.is_set()


async def test_a_cancelled_resumed_run_keeps_what_was_done() -> None:
    """An approved tool that has run is not run again from the state after the cancel."""
    world = World(gated=True)
    begun = asyncio.Event()
    hang = [True]

    @function_tool(needs_approval=True)
    async def slowly() -> str:
        begun.set()
        if hang[0]:
            await asyncio.Event().wait()
        return "at last"

    steps = [call("look", text="x"), call("slowly")], [assistant_message("done")]
    a = agent("A", *steps, tools=[world.tool("look"), slowly])
    first = await Runner.run(a, "go")
    state = first.to_state()
    for item in first.interruptions:
        state.approve(item)
    result = Runner.run_streamed(a, state)
    async with result.stream_events():
        await begun.wait()
    assert world.done == ["look(x)"]
    hang[0] = False
    final = await Runner.run(a, result.to_state())
    assert final.final_output == "done"
    assert world.done == ["look(x)"]
    assert [told(item) for item in final.new_items] == [
        "tool_call:look",
        "tool_call:slowly",
        "tool_call_output:look says x",
        "tool_call_output:at last",
        "message_output:done",
    ]


@pytest.mark.parametrize("build", [two_tools_two_turns, handoff_only])
@pytest.mark.parametrize("added", [True, False])
async def test_a_state_kept_while_the_turn_is_saved(added: bool, build: Any) -> None:
    """The process is stopped while the session takes the turn, or just after: it has the turn once in the end."""

    class Slow(ListSession):
        """Stops in the middle of adding the first turn."""

        def __init__(self) -> None:
            super().__init__()
            self.reached, self.quick = asyncio.Event(), False

        async def add_items(self, items: list[Any]) -> None:
            stops = self.saves == [1] and not self.quick
            if not stops or added:
                await super().add_items(items)
            if stops:
                self.reached.set()
                await asyncio.Event().wait()

    session, world = Slow(), World()
    a = build(world)
    result = Runner.run_streamed(a, "go", session=session)
    reader = asyncio.create_task(_all(result))
    await session.reached.wait()
    state = result.to_state()
    reader.cancel()
    await asyncio.wait([reader, result.run_loop_task])
    session.quick = True
    final = await Runner.run(a, state, session=session)
    assert session.items == final.to_input_list()
    assert final.final_output in ("done", "I am B")
    assert len(set(world.done)) == len(world.done)


async def _all(result: Any) -> None:
    async for _ in result.stream_events():
        pass
