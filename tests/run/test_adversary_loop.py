"""Hostile programs: what callers, models, tools and files do to a run that they should not do."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.agent import Agent
from antiphon.exceptions import AgentsException, ModelBehaviorError, UserError
from antiphon.guardrail import GuardrailFunctionOutput, input_guardrail, output_guardrail
from antiphon.handoffs import handoff
from antiphon.lifecycle import RunHooks
from antiphon.memory import SQLiteSession
from antiphon.models.interface import Model, ModelResponse
from antiphon.models.usage import Usage
from antiphon.run import RunConfig, Runner
from antiphon.run_state import RunState
from antiphon.testing import ScriptedModel, assistant_message, function_call, reasoning_item
from antiphon.tool import function_tool

from .scenarios import World, agent, call, told


async def plain(a: Agent[Any], given: Any = "go", **options: Any) -> Any:
    return await Runner.run(a, given, **options)


async def streamed(a: Agent[Any], given: Any = "go", **options: Any) -> Any:
    result = Runner.run_streamed(a, given, **options)
    async for _ in result.stream_events():
        pass
    return result


both = pytest.mark.parametrize("run", [plain, streamed])


def all_told(result: Any) -> list[str]:
    return [told(item) for item in result.new_items]


# --- what tools, guardrails and hooks do ------------------------------------------------------------------------------


async def cancels_itself(*_: Any) -> Any:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


async def raises_cancelled(*_: Any) -> Any:
    raise asyncio.CancelledError


def with_tool() -> Agent[Any]:
    async def stops() -> None:
        await cancels_itself()

    return agent("A", [call("stops")], tools=[function_tool(stops)])


def with_input_guardrail(check: Any, *, beside: bool) -> Agent[Any]:
    guardrail = input_guardrail(check, run_in_parallel=beside)
    return agent("A", [assistant_message("x")], input_guardrails=[guardrail])


def with_output_guardrail(check: Any) -> Agent[Any]:
    return agent("A", [assistant_message("x")], output_guardrails=[output_guardrail(check)])


@both
@pytest.mark.parametrize(
    "build",
    [
        with_tool,
        *(
            lambda check=check, beside=beside: with_input_guardrail(check, beside=beside)
            for check in (cancels_itself, raises_cancelled)
            for beside in (True, False)
        ),
        lambda: with_output_guardrail(cancels_itself),
        lambda: with_output_guardrail(raises_cancelled),
    ],
)
async def test_what_cancels_itself_does_not_cancel_the_caller(run: Any, build: Callable[[], Agent[Any]]) -> None:
    with pytest.raises(UserError, match="cancelled itself"):
        await run(build())
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@both
async def test_a_run_inside_a_hook_does_not_touch_the_run_around_it(run: Any) -> None:
    """The context of a run may be given to another: the calls that were made stay those of the first."""

    class Asks(RunHooks[Any]):
        async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: Any) -> None:
            if agent.name == "A":
                await Runner.run(Agent("J", model=ScriptedModel([[assistant_message("fine")]])), "?", context=context)

    world = World()
    a = agent("A", [call("look", text="x")], [call("look", text="x")], [assistant_message("done")])
    a.tools = [world.tool("look")]
    result = await run(a, hooks=Asks())
    assert (world.done, result.final_output) == (["look(x)"], "done")
    assert result.context_wrapper.usage.requests == 6


async def test_a_tool_that_fails_after_another_has_ended() -> None:
    """The events that were due come before the error, and are those of the items that the error tells of."""

    async def fails() -> None:
        raise ValueError("no")

    tools = [World().tool("look"), function_tool(fails, failure_error_function=None)]
    result = Runner.run_streamed(agent("A", [call("look", text="x"), call("fails")], tools=tools), "go")
    items: list[Any] = []

    async def read() -> None:
        async for event in result.stream_events():
            items.extend([event.item] if event.type == "run_item_stream_event" else [])

    with pytest.raises(UserError, match="Error running tool fails: no") as raised:
        await read()
    assert raised.value.run_data is not None
    assert items == raised.value.run_data.new_items
    assert [told(item) for item in items] == ["tool_call:look", "tool_call:fails", "tool_call_output:look says x"]


# --- what models give -------------------------------------------------------------------------------------------------


class Gives(Model):
    """A model that answers with whatever it was given."""

    def __init__(self, answer: Any, events: Any = ()) -> None:
        self.answer, self.given = answer, events

    async def get_response(self, *_: Any, **__: Any) -> Any:
        return self.answer

    async def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        for one in self.given:
            yield one


def answered(*output: Any, **more: Any) -> ModelResponse:
    return ModelResponse(list(output), Usage(requests=1), "resp_1", **more)


NO_ANSWERS: list[tuple[Any, list[Any]]] = [
    (None, []),
    ("hello", ["hello"]),
    ({"output": []}, [{"type": "response.completed"}]),
    (ModelResponse([], None, None), [None]),  # type: ignore[arg-type]  # what a model without types may give
    (ModelResponse(None, Usage(), None), [object()]),  # type: ignore[arg-type]  # as above
]


@both
@pytest.mark.parametrize(("answer", "events"), NO_ANSWERS)
async def test_what_is_no_answer(run: Any, answer: Any, events: list[Any]) -> None:
    with pytest.raises(ModelBehaviorError):
        await run(Agent("A", model=Gives(answer, events)))


async def test_a_failed_answer_is_raised_and_nothing_of_it_is_run() -> None:
    world = World()
    a = Agent("A", model=Gives(answered(call("look", text="x"), status="failed")), tools=[world.tool("look")])
    with pytest.raises(Exception, match="the model's response failed"):
        await Runner.run(a, "go")
    assert world.done == []


@pytest.mark.parametrize("arguments", [{}, {"arguments": None}, {"arguments": ""}])
async def test_calls_without_arguments(arguments: dict[str, Any]) -> None:
    """Of a tool that needs none, and of a handoff: they are made."""
    world = World()
    look = {"type": "function_call", "call_id": "call_1", "name": "look", **arguments}
    over = {"type": "function_call", "call_id": "call_2", "name": "transfer_to_b", **arguments}
    b = agent("B", [assistant_message("I am B")])
    a = Agent("A", model=Gives(answered(look, over)), tools=[world.tool("look")], handoffs=[b])
    assert (await Runner.run(a, "go")).final_output == "I am B"
    assert world.done == ["look()"]


# --- who reads --------------------------------------------------------------------------------------------------------


def looks() -> Agent[Any]:
    return agent("A", [call("look", text="x")], [assistant_message("done")], tools=[World().tool("look")])


async def test_a_reader_that_never_began_cancels_nothing() -> None:
    result = Runner.run_streamed(looks(), "go")
    result.stream_events()
    gc.collect()
    assert len([event async for event in result.stream_events()]) > 2
    assert (result.final_output, result.is_complete) == ("done", True)


async def test_a_reader_that_is_lost_after_the_end() -> None:
    result = Runner.run_streamed(looks(), "go")
    await result.run_loop_task
    reader = result.stream_events()
    await anext(reader)
    assert not result.is_complete
    del reader
    gc.collect()
    assert result.is_complete


async def test_a_run_whose_task_is_cancelled_before_it_begins() -> None:
    result = Runner.run_streamed(looks(), "go")
    result.run_loop_task.cancel()
    async with asyncio.timeout(5):
        with pytest.raises(AgentsException, match="the task of the run was cancelled"):
            await anext(result.stream_events())
    assert result.is_complete


@both
async def test_agents_that_were_released(run: Any) -> None:
    a = looks()
    result = await run(a)
    result.release_agents()
    with pytest.raises(UserError, match="were released"):
        result.to_state()
    assert "Last agent: A" in str(result)
    del a
    gc.collect()
    assert "Last agent: released" in str(result)


STEPS: list[list[Any]] = [
    [reasoning_item("hm"), assistant_message("I look"), call("look", text="x"), call("find", text="y")],
    [call("transfer_to_b")],
    [call("find", 2, text="z")],
    [assistant_message("B is done")],
]
BROUGHT = [
    "reasoning:",
    "message_output:I look",
    "tool_call:look",
    "tool_call:find",
    "tool_call_output:look says x",
    "tool_call_output:find says y",
    "handoff_call:transfer_to_b",
    'handoff_output:{"assistant": "B"}',
    "tool_call:find@B",
    "tool_call_output:find says z@B",
    "message_output:B is done@B",
]


PAIR = ["function_call", "function_call_output"]
KEPT = ["message", "reasoning", "message", *sorted(PAIR * 2), *PAIR, *PAIR, "message"]


def two_agents() -> Agent[Any]:
    world = World()
    b = agent("B", tools=[world.tool("find")])
    return agent("A", tools=[world.tool("look"), world.tool("find")], handoffs=[b])


async def _cancel(result: Any, reader: Any) -> None:
    result.cancel()


async def _after_turn(result: Any, reader: Any) -> None:
    result.cancel("after_turn")


async def _close(result: Any, reader: Any) -> None:
    await reader.aclose()


@pytest.mark.parametrize("stop", [_cancel, _after_turn, _close])
async def test_a_run_that_is_stopped_at_any_event_goes_on_as_if_it_was_not(stop: Any) -> None:
    """The state is read back from its text; items and session are those of a run that was never stopped."""
    ended = False
    for stop_at in range(200):
        if ended:
            break
        a, session, place = two_agents(), SQLiteSession("s"), 0
        result = Runner.run_streamed(a, "go", session=session, run_config=RunConfig(model=ScriptedModel(STEPS)))
        reader, ended = result.stream_events(), True
        async for _ in reader:
            if place == stop_at:
                ended = False
                await stop(result, reader)
            place += 1
        text = result.to_state().to_string()
        state = await RunState.from_string(a, text)
        assert state.to_string() == text
        left = RunConfig(model=ScriptedModel(STEPS[state.current_turn :]))
        assert all_told(await Runner.run(a, state, session=session, run_config=left)) == BROUGHT
        kept = [item.get("type", "message") for item in await session.get_items()]
        assert kept == KEPT
        session.close()
    assert ended


async def test_guardrails_of_a_first_turn_that_is_asked_again_count_once() -> None:
    @input_guardrail
    async def fine(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, False)

    a = agent("A", [assistant_message("x")], [assistant_message("y")], input_guardrails=[fine])
    result = Runner.run_streamed(a, "go")
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            result.cancel()
    await asyncio.wait([result.run_loop_task])
    assert len((await Runner.run(a, result.to_state())).input_guardrail_results) == 1


# --- what filters and handlers return ---------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "changed",
    [
        {"new_items": None},
        {"new_items": ({"type": "message"},)},
        {"pre_handoff_items": ("x",)},
        {"input_items": (1,)},
        {"input_history": 5},
    ],
)
async def test_filters_that_return_what_does_not_fit(run: Any, changed: dict[str, Any]) -> None:
    by = handoff(agent("B"), input_filter=lambda data: data.clone(**changed))
    with pytest.raises(UserError, match=f"'transfer_to_b' returned does not fit: {next(iter(changed))}"):
        await run(agent("A", [call("transfer_to_b")], handoffs=[by]))


@both
async def test_a_handler_says_what_the_model_would_have_said(run: Any) -> None:
    handlers = {"max_turns": lambda _: {"final_output": [1, 2]}}
    result = await run(agent("A", output_type=list[int]), max_turns=0, error_handlers=handlers)
    assert result.final_output == [1, 2]
    assert all_told(result) == ['message_output:{"response": [1, 2]}']


# --- approvals --------------------------------------------------------------------------------------------------------


async def paused() -> tuple[World, Agent[Any], RunState[Any]]:
    world = World(gated=True)
    a = agent("A", [call("look", text="x"), call("find", text="y")], [assistant_message("done")])
    a.tools = [world.tool("look"), world.tool("find")]
    return world, a, (await Runner.run(a, "go")).to_state()


@pytest.mark.parametrize("place", [0, 1])
async def test_arguments_that_change_after_the_approval(place: int) -> None:
    """None of the calls is made, whichever was changed."""
    world, a, state = await paused()
    for item in state.get_interruptions():
        state.approve(item)
    changed: Any = state.get_interruptions()[place].raw_item
    changed.arguments = '{"text": "something else"}'
    with pytest.raises(ModelBehaviorError, match="that of another call"):
        await Runner.run(a, state)
    assert world.done == []


@pytest.mark.parametrize("given", [None, 5, "call_look_1", {"call_id": "call_look_1"}])
async def test_what_is_no_call_cannot_be_decided(given: Any) -> None:
    _, _, state = await paused()
    with pytest.raises(UserError, match="is no call that waits"):
        state.approve(given)
    with pytest.raises(UserError, match="is no call that waits"):
        state.reject(given)


@pytest.mark.parametrize("given", [None, 5, [5], {"role": "user", "content": "x"}, ("x",)])
async def test_what_is_no_input_cannot_be_added(given: Any) -> None:
    _, _, state = await paused()
    with pytest.raises(UserError, match="it is text or a list of input items"):
        state.add_input(given)
    assert state.pending_input == []


# --- runs inside runs -------------------------------------------------------------------------------------------------


def three_deep(world: World, names: tuple[str, str, str] = ("A", "B", "C")) -> Agent[Any]:
    outer, middle, inner = names
    c = agent(inner, [call("deep", text="1")], [call("deep", 2, text="2")], [assistant_message("c")])
    c.tools = [world.tool("deep")]
    b = agent(middle, [call("ask_c", input="q")], [assistant_message("b")], tools=[c.as_tool("ask_c", "")])
    return agent(outer, [call("ask_b", input="q")], [assistant_message("a")], tools=[b.as_tool("ask_b", "")])


@both
@pytest.mark.parametrize("names", [("A", "B", "C"), ("A", "A", "A"), ("A", "B", "A")])
@pytest.mark.parametrize(
    ("verdict", "always", "rounds", "done"),
    [
        ("approve", False, 2, ["deep(1)", "deep(2)"]),
        ("approve", True, 1, ["deep(1)", "deep(2)"]),
        ("reject", False, 2, []),
        ("reject", True, 1, []),
    ],
)
async def test_calls_three_runs_deep(
    run: Any, names: tuple[str, str, str], verdict: str, always: bool, rounds: int, done: list[str]
) -> None:
    """The state is read back ten times in each round, byte for byte the same, also where agents share a name."""
    world = World(gated=True)
    a = three_deep(world, names)
    result = await run(a)
    for _ in range(rounds):
        state = result.to_state()
        for _ in range(10):
            text = state.to_string()
            state = await RunState.from_string(a, text)
            assert state.to_string() == text
        (item,) = state.get_interruptions()
        for _ in range(2):
            getattr(state, verdict)(item, always)
        result = await run(a, state)
    assert (result.interruptions, world.done, result.final_output) == ([], done, "a")
    assert all_told(result) == ["tool_call:ask_b", "tool_call_output:b", "message_output:a"]


@pytest.mark.parametrize("on_stream", [None, lambda event: None])
async def test_a_state_that_is_kept_while_a_run_inside_goes_on(on_stream: Any) -> None:
    """What the run inside has done by then is not done again."""
    inner = [[call("step", 1, text="1")], [call("keep", 1)], [call("step", 2, text="2")], [assistant_message("b")]]
    outer = [[call("ask", input="q")], [assistant_message("a")]]
    kept: list[str] = []
    world = World()

    async def keep() -> str:
        kept.append(result.to_state().to_string())
        return "kept"

    b = Agent("B", model=ScriptedModel(inner), tools=[world.tool("step"), function_tool(keep)])
    a = Agent("A", model=ScriptedModel(outer), tools=[b.as_tool("ask", "", on_stream=on_stream)])
    result = Runner.run_streamed(a, "go")
    await result.run_loop_task
    assert world.done == ["step(1)", "step(2)"]

    world.done.clear()
    state = await RunState.from_string(a, kept[0])
    assert state.to_string() == kept[0]
    a.model, b.model = ScriptedModel(outer[1:]), ScriptedModel(inner[2:])
    again = await Runner.run(a, state)
    assert (world.done, again.final_output) == (["step(2)"], "a")
    assert again.context_wrapper.usage.requests == result.context_wrapper.usage.requests


async def test_a_turn_that_was_broken_off_leaves_no_run_inside() -> None:
    """The id of its call may come again for another call: that one gets a run of its own."""
    started = asyncio.Event()

    async def slow() -> None:
        started.set()
        await asyncio.Event().wait()

    c = agent("C", [call("deep", text="1")], tools=[World(gated=True).tool("deep")])
    a = agent("A", [call("ask", input="one"), call("slow")], tools=[c.as_tool("ask", ""), function_tool(slow)])
    result = Runner.run_streamed(a, "go")
    await started.wait()
    for _ in range(20):
        await asyncio.sleep(0)  # the run inside comes to its call
    result.cancel()
    await asyncio.wait([result.run_loop_task])
    c.model = ScriptedModel([[assistant_message("anew")]])
    a.model = ScriptedModel([[call("ask", input="two")], [assistant_message("done")]])
    again = await Runner.run(a, result.to_state())
    assert all_told(again) == ["tool_call:ask", "tool_call_output:anew", "message_output:done"]
    assert c.model.calls[0].input == [{"role": "user", "content": "two"}]


async def test_a_run_inside_that_failed_waits_no_more() -> None:
    c = agent("C", [call("deep", text="1")], RuntimeError("no"), tools=[World(gated=True).tool("deep")])
    a = agent("A", [call("ask", input="q")], [assistant_message("done")], tools=[c.as_tool("ask", "")])
    state = (await Runner.run(a, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    result = await Runner.run(a, state)
    assert result.final_output == "done"
    assert result.to_state().to_json()["nested_states"] == {}


# --- states that were edited ------------------------------------------------------------------------------------------

GONE = object()
EDITS: list[tuple[tuple[Any, ...], Any]] = [
    (("$schemaVersion",), {}),
    (("current_turn",), "x"),
    (("current_turn",), -1),
    (("max_turns",), []),
    (("original_input",), 5),
    (("original_input",), [5]),
    (("model_responses",), []),
    (("model_responses", 0, "output"), {}),
    (("context", "usage", "requests"), "many"),
    (("context", "approvals"), []),
    (("context", "tool_invocations", "call_ask_b_1", "completed"), None),
    (("tool_use_tracker",), {"A": "look"}),
    (("current_turn_item_count",), 99),
    (("current_turn_persisted_item_count",), 99),
    (("current_turn_persisted_item_count",), None),
    (("generated_items",), []),
    (("session_items", 0, "raw_item"), "x"),
    (("current_step", "type"), "next_step_something"),
    (("current_step", "data"), None),
    (("current_step", "data", "interruptions"), []),
    (("current_step", "data", "interruptions", 0, "nested_index"), 9),
    (("current_step", "data", "interruptions", 0, "nested_call_id"), "another"),
    (("nested_states", "call_ask_b_1"), []),
    (("nested_states", "call_ask_b_1", "current_step"), None),
    (("nested_states", "call_ask_b_1", "starting_agent", "name"), "Z"),
    (("current_agent",), GONE),
    (("context",), GONE),
]


def edited(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    again = deepcopy(data)
    held = again
    for key in path[:-1]:
        held = held[key]
    if value is GONE:
        del held[path[-1]]
    else:
        held[path[-1]] = value
    return again


def paths(data: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the ways to all that is in JSON data; of a list, to the first two."""
    keys = list(data) if isinstance(data, dict) else list(range(min(2, len(data)))) if isinstance(data, list) else []
    for key in keys:
        yield (*before, key)
        yield from paths(data[key], (*before, key))


def stored() -> Any:
    async def run() -> Any:
        state = (await Runner.run(three_deep(World(gated=True)), "go", context={"user": 1})).to_state()
        state.add_input("more")
        return json.loads(state.to_string())

    return asyncio.run(run())


STORED = stored()


@pytest.mark.parametrize(("path", "value"), EDITS)
async def test_an_edited_state_is_refused(path: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(UserError):
        await RunState.from_json(three_deep(World(gated=True)), edited(STORED, path, value))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(paths(STORED))), st.sampled_from([None, 5, -1, "x", [], {}, [5], True, GONE]))
def test_a_state_is_refused_as_a_whole_or_can_be_gone_on_from(path: tuple[Any, ...], value: Any) -> None:
    """Whatever is put in the place of whatever: no error but those of the library, at reading and at running."""

    async def run() -> None:
        a = three_deep(World(gated=True))
        try:
            state = await RunState.from_json(a, edited(STORED, path, value))
        except UserError:
            return
        state = await RunState.from_string(a, state.to_string())  # a context that is no mapping is one now
        text = state.to_string()
        assert (await RunState.from_string(a, text)).to_string() == text
        config = RunConfig(model=ScriptedModel([[assistant_message("x")]] * 6))
        try:
            for item in state.get_interruptions():
                state.approve(item)
            result = await Runner.run(a, state, run_config=config)
        except AgentsException:
            return
        assert str(result)
        assert json.dumps(result.to_input_list(mode="normalized"))

    asyncio.run(run())


# --- endings ----------------------------------------------------------------------------------------------------------


async def test_no_ending_leaves_a_task_or_an_agent() -> None:
    """Nor an error that nobody has seen: the event loop is told of none."""
    told_of: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told_of.append(context))

    async def fails() -> None:
        raise ValueError("no")

    async def waits() -> None:
        await asyncio.Event().wait()

    def bad() -> Agent[Any]:
        return agent("A", [call("fails")], tools=[function_tool(fails, failure_error_function=None)])

    def endless() -> Agent[Any]:
        return agent("A", [call("waits")], tools=[function_tool(waits)])

    refs: list[weakref.ref[Any]] = []

    async def one(build: Callable[[], Agent[Any]], way: str) -> None:
        a = build()
        refs.append(weakref.ref(a))
        result = Runner.run_streamed(a, "go", max_turns=1)
        refs.append(weakref.ref(result))
        with suppress(AgentsException, RuntimeError):
            if way == "read":
                async for event in result.stream_events():
                    if event.type == "run_item_stream_event" and build is endless:
                        break
            elif build is endless:
                result.cancel()
            await asyncio.wait([result.run_loop_task])

    for build in (looks, bad, endless, lambda: agent("A", RuntimeError("no")), lambda: three_deep(World(gated=True))):
        for way in ("read", "unread"):
            for _ in range(20):
                await one(build, way)
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert [ref for ref in refs if ref() is not None] == []
    assert len(asyncio.all_tasks()) == 1
    assert told_of == []


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("depth", [10_000, 100_000])
async def test_arguments_that_are_nested_too_deep_are_told_to_the_model(depth: int, streamed: bool) -> None:
    @function_tool(needs_approval=lambda context, asked, call_id: _no())
    def look(q: str) -> str:
        """Look it up."""
        return q

    deep = '{"q":' + "[" * depth
    model = ScriptedModel([[function_call("look", deep, call_id="call_1")], [assistant_message("done")]])
    agent = Agent(name="A", model=model, tools=[look])
    if streamed:
        result: Any = Runner.run_streamed(agent, "hi")
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agent, "hi")
    assert result.final_output == "done"
    assert [item.type for item in result.new_items] == [
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]


async def _no() -> bool:
    return False


async def test_a_state_that_has_no_form_in_json_says_so() -> None:
    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)

    @function_tool
    def odd() -> Any:
        """Return what holds itself."""
        return holds_itself

    @function_tool(needs_approval=True)
    def ask() -> str:
        """Ask."""
        return "yes"

    calls = [function_call("odd", "{}", call_id="call_1"), function_call("ask", "{}", call_id="call_2")]
    result = await Runner.run(Agent(name="A", model=ScriptedModel([calls]), tools=[odd, ask]), "hi")
    with pytest.raises(UserError, match="the state cannot be written as JSON: RecursionError"):
        result.to_state().to_string()
