"""What a run does beside its turns: instructions, hooks, guardrails, errors, sessions, kept conversations, results."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from antiphon.agent import Agent, ToolsToFinalOutputResult
from antiphon.exceptions import (
    AgentsException,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelIncompleteError,
    ModelRefusalError,
    OutputGuardrailTripwireTriggered,
    UserError,
)
from antiphon.guardrail import GuardrailFunctionOutput, input_guardrail, output_guardrail
from antiphon.items import ItemHelpers
from antiphon.lifecycle import AgentHooks, RunHooks
from antiphon.models import ModelSettings, Usage
from antiphon.run import ModelInputData, RunConfig, Runner
from antiphon.run_error_handlers import RunErrorHandlerResult
from antiphon.run_state import RunState
from antiphon.testing import ModelStep, ScriptedModel, assistant_message, reasoning_item
from antiphon.tool import function_tool

from .memory import ListSession
from .scenarios import World, agent, call, one_tool, told, two_tools_two_turns


async def plain(a: Agent[Any], *args: Any, **options: Any) -> Any:
    return await Runner.run(a, *args, **options)


async def streamed(a: Agent[Any], *args: Any, **options: Any) -> Any:
    result = Runner.run_streamed(a, *args, **options)
    async for _ in result.stream_events():
        pass
    return result


WAYS = pytest.mark.parametrize("run", [plain, streamed])


# --- options ---------------------------------------------------------------------------------------------------------

NO_OPTIONS: list[tuple[Any, str]] = [
    (lambda a: asyncio.run(Runner.run(a, "x", max_turn=1)), "a run has no option max_turn; there are: auto_previous"),
    (lambda a: Runner.run_streamed(a, "x", max_turn=1), "max_turn"),
    (
        lambda a: asyncio.run(Runner.run(a, "x")).to_state().to_json(strict=1),
        "has no option strict; there are: context_serial",
    ),
    (
        lambda a: asyncio.run(Runner.run(a, "x")).to_state().to_string(strict=1),
        "has no option strict; there are: context_ser",
    ),
    (lambda a: RunConfig(modl="x"), "modl"),
    (lambda a: RunConfig(model=3), "RunConfig model must be a string, Model, or None, got int"),
    (lambda a: RunConfig(model_settings=3), "RunConfig model_settings must be a ModelSettings instance or a dict, got"),
    (lambda a: a.as_tool("ask", "", max_turn=1), "max_turn"),
    (lambda a: function_tool(told, title="T"), "function_tool has no option title; there are: allowed_callers"),
    (lambda a: function_tool(name="T"), "function_tool has no option name"),
    (lambda a: input_guardrail(told, parallel=True), "parallel"),
    (lambda a: input_guardrail(told, "name"), "positional"),
    (lambda a: output_guardrail(run_in_parallel=True)(told), "run_in_parallel"),
]


@pytest.mark.parametrize(("use", "message"), NO_OPTIONS)
def test_options_that_are_none(use: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        use(agent("A", [assistant_message("hi")]))


# what a run would go on with, and its state could not be read with: refused before the first model call
NOT_TO_BE_KEPT: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    ("x", {"max_turns": 5.0}, TypeError, "max_turns is 5.0: it is a whole number, or None for no limit"),
    ("x", {"max_turns": True}, TypeError, "max_turns is True"),
    ("x", {"max_turns": "3"}, TypeError, "max_turns is '3'"),
    ("x", {"conversation_id": 3}, TypeError, "conversation_id is 3: it is text or None"),
    ("x", {"previous_response_id": 3}, TypeError, "previous_response_id is 3"),
    ("x", {"run_config": {"reasoning_item_id_policy": "drop"}}, UserError, "reasoning_item_id_policy is 'drop'"),
    (["x"], {}, UserError, "a list with str in it"),
    ([{"role": "user", "content": "x"}, None], {}, UserError, "a list with NoneType in it"),
]


@WAYS
@pytest.mark.parametrize(("given", "options", "error", "message"), NOT_TO_BE_KEPT)
async def test_what_a_state_cannot_keep(
    run: Any, given: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    a = agent("A", [assistant_message("hi")])
    with pytest.raises(error, match=message):
        await run(a, given, **options)
    assert a.model.calls == ()


@pytest.mark.parametrize("auto", [None, False, 0, 1, True])
async def test_a_switch_that_is_no_bool_is_kept_as_one(auto: Any) -> None:
    @function_tool(needs_approval=True)
    def look() -> str:
        return "seen"

    a = agent("A", [call("look")], [assistant_message("hi")], tools=[look])
    first = await Runner.run(a, "x", auto_previous_response_id=auto)
    state = await RunState.from_string(a, first.to_state().to_string())
    state.approve(state.get_interruptions()[0])
    assert (await Runner.run(a, state)).final_output == "hi"


async def test_options_of_a_streamed_run_by_position() -> None:
    result = Runner.run_streamed(agent("A", [assistant_message("hi")]), "x", {"user": 1}, 3, RunHooks())
    async for _ in result.stream_events():
        pass
    assert (result.context_wrapper.context, result.max_turns, result.final_output) == ({"user": 1}, 3, "hi")
    with pytest.raises(TypeError, match="multiple values"):
        Runner.run_streamed(agent("A"), "x", None, context=1)
    with pytest.raises(TypeError, match="positional"):
        Runner.run_streamed(agent("A"), "x", *[None] * 9)


# --- agents ----------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": 1}, "Agent name must be a string"),
    ({"tools": ()}, "Agent tools must be a list"),
    ({"handoffs": None}, "Agent handoffs must be a list"),
    ({"instructions": 1}, "Agent instructions must be a string, callable, or None"),
    ({"model": 1}, "Agent model must be"),
    ({"model_settings": 1}, "Agent model_settings must be"),
    ({"hooks": 1}, "Agent hooks must be"),
    ({"output_type": 1}, "Agent output_type must be"),
    ({"tool_use_behavior": "x"}, "Agent tool_use_behavior must be"),
    ({"reset_tool_choice": 1}, "Agent reset_tool_choice must be a boolean"),
]


@pytest.mark.parametrize(("options", "message"), WRONG, ids=[next(iter(one)) for one, _ in WRONG])
def test_an_agent_of_wrong_types(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Agent(**{"name": "A", **options})


def test_clone_is_shallow() -> None:
    tools: list[Any] = []
    a = Agent("A", tools=tools, model_settings={"temperature": 0.5})  # type: ignore[arg-type]  # a mapping will do
    b = a.clone(name="B")
    assert (b.name, b.tools is tools, b.model_settings) == ("B", True, ModelSettings(temperature=0.5))


async def test_instructions() -> None:
    async def made(ctx: Any, a: Agent[Any]) -> str:
        return f"{a.name} for {ctx.context}"

    a = agent("A", [assistant_message("x")], instructions=made)
    await Runner.run(a, "go", context="me")
    assert a.model.last_call.system_instructions == "A for me"
    with pytest.raises(TypeError, match="exactly 2"):
        await Runner.run(Agent("A", model=ScriptedModel(), instructions=lambda ctx: "x"), "go")  # type: ignore[arg-type, misc]


async def test_stored_prompts() -> None:
    async def made(data: Any) -> Any:
        return {"id": "p_1", "variables": {"who": data.context.context, "by": data.agent.name}}

    a = agent("A", [assistant_message("x")], [assistant_message("y")], prompt=made)
    await Runner.run(a, "go", context="me")
    assert a.model.last_call.prompt == {"id": "p_1", "version": None, "variables": {"who": "me", "by": "A"}}
    a.prompt = {"id": "p_2", "version": "3"}
    await Runner.run(a, "go")
    assert a.model.last_call.prompt == {"id": "p_2", "version": "3", "variables": None}
    a.prompt = lambda data: "p_3"
    with pytest.raises(TypeError, match="a mapping with an id"):
        await Runner.run(a, "go")


@pytest.mark.parametrize("reset", [True, False])
async def test_tool_choice_is_reset_after_a_tool_was_used(reset: bool) -> None:
    settings = ModelSettings(tool_choice="required", temperature=0.1)
    world = World()
    steps = [call("look", text="x")], [assistant_message("done")]
    a = agent("A", *steps, tools=[world.tool("look")], model_settings=settings, reset_tool_choice=reset)
    await Runner.run(a, "go")
    choices = [one.model_settings.tool_choice for one in a.model.calls]
    assert choices == ["required", None if reset else "required"]
    assert a.model.last_call.model_settings.temperature == 0.1
    assert a.model_settings.tool_choice == "required"


@WAYS
async def test_tool_use_behavior_by_a_function(run: Any) -> None:
    async def first_that_is_long(ctx: Any, results: list[Any]) -> ToolsToFinalOutputResult:
        long = [one.output for one in results if len(one.output) > 10]
        return ToolsToFinalOutputResult(bool(long), long[0] if long else None)

    world = World()
    steps = [call("look", text="x")], [call("look", 2, text="x, and more")]
    a = agent("A", *steps, tools=[world.tool("look")], tool_use_behavior=first_that_is_long)
    assert (await run(a, "go")).final_output == "look says x"
    a = agent("A", [call("look", text="x")], tools=[world.tool("look")], tool_use_behavior=lambda ctx, results: True)
    with pytest.raises(UserError, match="a ToolsToFinalOutputResult is expected"):
        await run(a, "go")


def test_run_sync_and_again() -> None:
    for _ in range(2):
        assert Runner.run_sync(agent("A", [assistant_message("hi")]), "go").final_output == "hi"
    asyncio.get_event_loop_policy().get_event_loop().close()  # it is the thread's, and stays open else


async def test_run_sync_inside_a_loop() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        Runner.run_sync(agent("A"), "go")


# --- hooks -----------------------------------------------------------------------------------------------------------


def hooks_of(base: Any, name: str, seen: list[str]) -> Any:
    def noted(event: str) -> Any:
        async def hook(self: Any, *args: Any, **named: Any) -> None:
            seen.append(f"{name}.{event}")

        return hook

    return type("Noted", (base,), {event: noted(event) for event in dir(base) if event.startswith("on_")})()


@WAYS
async def test_order_of_hooks(run: Any) -> None:
    seen: list[str] = []
    world = World()
    b = agent("B", [assistant_message("done")], hooks=hooks_of(AgentHooks, "B", seen))
    a = agent(
        "A",
        [call("look", text="x")],
        [call("transfer_to_b")],
        tools=[world.tool("look")],
        handoffs=[b],
        hooks=hooks_of(AgentHooks, "A", seen),
    )
    await run(a, "go", hooks=hooks_of(RunHooks, "run", seen))
    assert [one.replace("on_", "") for one in seen] == [
        *("run.agent_start", "A.start"),
        *("run.llm_start", "A.llm_start", "A.llm_end", "run.llm_end"),
        *("run.tool_start", "A.tool_start", "run.tool_end", "A.tool_end"),
        *("run.llm_start", "A.llm_start", "A.llm_end", "run.llm_end"),
        *("run.handoff", "A.handoff"),
        *("run.agent_start", "B.start"),
        *("run.llm_start", "B.llm_start", "B.llm_end", "run.llm_end"),
        *("run.agent_end", "B.end"),
    ]


@WAYS
async def test_an_agents_start_knows_the_input(run: Any) -> None:
    seen: list[Any] = []

    class Hooks(RunHooks[Any, Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            seen.append((agent.name, context.turn_input))

    a = agent("A", [call("transfer_to_b")], handoffs=[agent("B", [assistant_message("done")])])
    await run(a, "go", hooks=Hooks())
    assert seen == [("A", [{"role": "user", "content": "go"}]), ("B", [{"role": "user", "content": "go"}])]


async def test_wrong_hooks() -> None:
    with pytest.raises(TypeError, match="Run hooks must be"):
        await Runner.run(agent("A"), "go", hooks=AgentHooks())  # type: ignore[arg-type]  # that is tested


# --- guardrails ------------------------------------------------------------------------------------------------------


def tripping(after: asyncio.Event | None = None, *, parallel: bool = True) -> Any:
    @input_guardrail(run_in_parallel=parallel)
    async def guard(ctx: Any, a: Any, said: Any) -> GuardrailFunctionOutput:
        if after is not None:
            await after.wait()
        return GuardrailFunctionOutput(said, True)

    return guard


@WAYS
async def test_a_blocking_guardrail_prevents_the_call(run: Any) -> None:
    session = ListSession()
    a = agent("A", input_guardrails=[tripping(parallel=False)])
    with pytest.raises(InputGuardrailTripwireTriggered) as caught:
        await run(a, "go", session=session)
    assert a.model.calls == ()
    assert caught.value.guardrail_result.output.output_info == "go"
    assert session.items == [{"role": "user", "content": "go"}]


@WAYS
async def test_no_tool_starts_after_a_trip(run: Any) -> None:
    """The guardrail trips while the model speaks."""
    world, tripped, session = World(), asyncio.Event(), ListSession()

    async def slowly(_: Any) -> Any:
        tripped.set()
        for _ in range(5):
            await asyncio.sleep(0)
        return [call("look", text="x")]

    a = agent("A", ModelStep.respond(slowly), tools=[world.tool("look")], input_guardrails=[tripping(tripped)])
    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(a, "go", session=session)
    assert world.done == []
    assert session.items == [{"role": "user", "content": "go"}]


@WAYS
@pytest.mark.parametrize("ticks", range(4))
async def test_no_tool_starts_where_a_guardrail_says_so_at_once(run: Any, ticks: int) -> None:
    """The model does not wait at all, and the guardrail hardly does."""
    world = World()

    @input_guardrail
    async def guard(ctx: Any, a: Any, said: Any) -> GuardrailFunctionOutput:
        for _ in range(ticks):
            await asyncio.sleep(0)
        return GuardrailFunctionOutput(None, True)

    a = agent("A", [call("look", text="x")], tools=[world.tool("look")], input_guardrails=[guard])
    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(a, "go")
    assert world.done == []


@WAYS
async def test_a_slow_guardrail_may_trip_after_the_tools(run: Any) -> None:
    ran = asyncio.Event()

    @function_tool
    async def look() -> str:
        ran.set()
        return "x"

    a = agent("A", [call("look")], [assistant_message("never")], tools=[look], input_guardrails=[tripping(ran)])
    with pytest.raises(InputGuardrailTripwireTriggered):
        await run(a, "go")
    assert len(a.model.calls) == 1


@WAYS
async def test_guardrails_that_let_through(run: Any) -> None:
    @input_guardrail
    def fine(ctx: Any, a: Any, said: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(len(said), False)

    @output_guardrail
    async def short(ctx: Any, a: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output, len(output) > 9)

    config = RunConfig(input_guardrails=[fine], output_guardrails=[short])
    a = agent("A", [assistant_message("hi")], input_guardrails=[fine], output_guardrails=[short])
    result = await run(a, "go", run_config=config)
    assert [one.output.output_info for one in result.input_guardrail_results] == [2, 2]
    assert [(one.agent_output, one.agent.name) for one in result.output_guardrail_results] == [("hi", "A")] * 2
    assert result.input_guardrail_results[0].guardrail.get_name() == "fine"


@output_guardrail
def nothing_said(ctx: Any, a: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, True)


@WAYS
async def test_a_blocked_output(run: Any) -> None:
    """The tools' calls and outputs are saved, the message never; there is no final output."""
    session, world = ListSession(), World()
    steps = [call("look", text="x")], [reasoning_item("hm"), assistant_message("secret")]
    a = agent("A", *steps, tools=[world.tool("look")], output_guardrails=[nothing_said])
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await run(a, "go", session=session)
    assert [one.get("type", "message") for one in session.items] == ["message", "function_call", "function_call_output"]


async def test_a_blocked_output_is_known_without_reading() -> None:
    session = ListSession()
    a = agent("A", [assistant_message("secret")], output_guardrails=[nothing_said])
    result = Runner.run_streamed(a, "go", session=session)
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await result.run_loop_task
    assert (result.final_output, result.is_complete) == (None, True)
    assert isinstance(result.run_loop_exception, OutputGuardrailTripwireTriggered)
    assert session.items == [{"role": "user", "content": "go"}]


@WAYS
async def test_what_an_approved_tool_did_is_saved_before_the_output_is_judged(run: Any) -> None:
    session, world = ListSession(), World(gated=True)
    a = agent(
        "A",
        [call("look", text="x")],
        tools=[world.tool("look")],
        output_guardrails=[nothing_said],
        tool_use_behavior="stop_on_first_tool",
    )
    first = await run(a, "go", session=session)
    state = first.to_state()
    state.approve(first.interruptions[0])
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await run(a, state, session=session)
    assert [one.get("type", "message") for one in session.items] == ["message", "function_call", "function_call_output"]


# --- errors ----------------------------------------------------------------------------------------------------------


class Report(BaseModel):
    lines: list[str]


def refusal() -> dict[str, Any]:
    part = {"type": "refusal", "refusal": "I will not"}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def refusing(**options: Any) -> Agent[Any]:
    return agent("A", [refusal()], **options)


def cut_off(**options: Any) -> Agent[Any]:
    step = ModelStep(
        [assistant_message("half of"), call("look", text="x")],
        status="incomplete",
        incomplete_reason="max_output_tokens",
    )
    return agent("A", step, tools=[World().tool("look")], **options)


def looping(**options: Any) -> Agent[Any]:
    return agent("A", *[[call("look", n, text="x")] for n in range(9)], tools=[World().tool("look")], **options)


def not_json(**options: Any) -> Agent[Any]:
    return agent("A", [assistant_message("no JSON")], **{"output_type": Report, **options})


ERRORS: list[tuple[str, Any, type[Exception]]] = [
    ("model_refusal", refusing, ModelRefusalError),
    ("incomplete", cut_off, ModelIncompleteError),
    ("max_turns", looping, MaxTurnsExceeded),
    ("invalid_final_output", not_json, ModelBehaviorError),
]


@WAYS
@pytest.mark.parametrize(("kind", "build", "error"), ERRORS, ids=[one[0] for one in ERRORS])
async def test_errors_and_what_is_said_instead(run: Any, kind: str, build: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        await run(build(), "go", max_turns=3)
    assert isinstance(caught.value, AgentsException)
    assert caught.value.run_data is not None
    assert caught.value.run_data.last_agent.name == "A"

    session = ListSession()
    seen: list[Any] = []

    async def handler(given: Any) -> Any:
        seen.append(given)
        return {"final_output": Report(lines=["sorry"])}

    result = await run(build(output_type=Report), "go", max_turns=3, error_handlers={kind: handler}, session=session)
    assert result.final_output == Report(lines=["sorry"])
    assert isinstance(seen[0].error, error)
    assert seen[0].run_data.last_agent.name == "A"
    assert told(result.new_items[-1]) == 'message_output:{"lines": ["sorry"]}'
    assert session.items == result.to_input_list()


@WAYS
async def test_what_handlers_may_return(run: Any) -> None:
    async def output(handler: Any) -> Any:
        result = await run(refusing(), "go", error_handlers={"model_refusal": handler, "unknown": handler})
        return result.final_output, len(result.new_items)

    assert await output(lambda given: "bare") == ("bare", 2)
    assert await output(lambda given: RunErrorHandlerResult("quiet", include_in_history=False)) == ("quiet", 1)
    with pytest.raises(ModelRefusalError, match="Model refused to produce output: I will not"):
        await output(lambda given: None)
    with pytest.raises(UserError, match="its keys are"):
        await output(lambda given: {"final_output": 1, "more": 2})
    with pytest.raises(UserError, match="is no Report"):
        await run(refusing(output_type=Report), "go", error_handlers={"model_refusal": lambda given: "text"})


@WAYS
async def test_a_cut_answer_may_be_returned(run: Any) -> None:
    """Its text is the output; the call in it is never made, and is not in the history."""
    a = cut_off()
    result = await run(a, "go", run_config=RunConfig(on_incomplete="return"))
    assert (result.final_output, result.incomplete_reason) == ("half of", "max_output_tokens")
    assert [told(item) for item in result.new_items] == ["message_output:half of"]


@WAYS
async def test_an_unknown_tool(run: Any) -> None:
    with pytest.raises(ModelBehaviorError, match="Tool nothing not found in agent A"):
        await run(agent("A", [call("nothing")]), "go")


@WAYS
async def test_siblings_of_a_failing_tool_are_stopped(run: Any) -> None:
    done: list[str] = []
    begun = asyncio.Event()

    @function_tool(failure_error_function=None)
    async def fails() -> str:
        await begun.wait()
        raise ValueError("broken")

    @function_tool
    async def writes() -> str:
        begun.set()
        try:
            await asyncio.sleep(30)
        finally:
            done.append("stopped")
        done.append("wrote")
        return ""

    a = agent("A", [call("writes"), call("fails")], tools=[fails, writes])
    with pytest.raises(UserError, match="Error running tool fails: broken"):
        await run(a, "go")
    assert done == ["stopped"]


async def test_at_most_so_many_tools_at_once() -> None:
    running, most = [0], [0]

    @function_tool
    async def look(text: str) -> str:
        running[0] += 1
        most[0] = max(most[0], running[0])
        await asyncio.sleep(0)
        running[0] -= 1
        return text

    steps = [call("look", number, text="x") for number in range(6)], [assistant_message("done")]
    a = agent("A", *steps, tools=[look])
    await Runner.run(a, "go", run_config={"tool_execution": {"max_function_tool_concurrency": 2}})
    assert most == [2]


@pytest.mark.parametrize("config", [{"nothing": 1}, {"tool_not_found_behavior": "x"}, {"sandbox": object()}])
async def test_a_wrong_config(config: Any) -> None:
    with pytest.raises(UserError):
        await Runner.run(agent("A"), "go", run_config=config)


# --- what the model is given -----------------------------------------------------------------------------------------


@WAYS
async def test_the_input_filter(run: Any) -> None:
    async def keep_last(data: Any) -> ModelInputData:
        return ModelInputData(data.model_data.input[-1:], f"{data.agent.name} {data.context}")

    a = two_tools_two_turns(World())
    await run(a, "go", context="c", run_config=RunConfig(call_model_input_filter=keep_last))
    assert [len(one.input) for one in a.model.calls] == [1, 1, 1]
    assert a.model.last_call.system_instructions == "A c"
    with pytest.raises(UserError, match="a ModelInputData is expected"):
        await run(one_tool(World()), "go", run_config=RunConfig(call_model_input_filter=lambda data: data))


async def test_ids_of_reasoning_may_be_left_out() -> None:
    a = two_tools_two_turns(World())
    result = await Runner.run(a, "go", run_config=RunConfig(reasoning_item_id_policy="omit"))
    thought = [item for item in a.model.last_call.input if item.get("type") == "reasoning"]
    assert thought
    assert "id" not in thought[0]
    assert "id" not in result.to_input_list()[1]


async def test_model_and_settings_of_the_run() -> None:
    model = ScriptedModel([[assistant_message("from the run's model")]])
    settings = ModelSettings(temperature=0.9, extra_args={"b": 2})
    a = Agent("A", model=ScriptedModel(), model_settings=ModelSettings(top_p=0.5, extra_args={"a": 1}))
    result = await Runner.run(a, "go", run_config=RunConfig(model=model, model_settings=settings))
    assert result.final_output == "from the run's model"
    expected = ModelSettings(top_p=0.5, temperature=0.9, extra_args={"a": 1, "b": 2})
    assert model.last_call is not None
    assert model.last_call.model_settings == expected


# --- sessions --------------------------------------------------------------------------------------------------------


@WAYS
async def test_a_session_has_each_turn_once(run: Any) -> None:
    session = ListSession([{"role": "user", "content": "before"}])
    a = two_tools_two_turns(World())
    result = await run(a, "go", session=session)
    assert session.items == result.to_input_list()
    assert session.saves == [1, 6, 2, 1]
    assert a.model.first_call.input[0] == {"role": "user", "content": "before"}


@WAYS
async def test_an_interrupted_turn_in_a_session(run: Any) -> None:
    session, world = ListSession(), World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    first = await run(a, "go", session=session)
    assert [one.get("type", "message") for one in session.items] == ["message", "function_call"]
    state = first.to_state()
    state.approve(first.interruptions[0])
    result = await run(a, state, session=session)
    assert session.items == result.to_input_list()


@WAYS
async def test_what_has_no_pair_is_not_given_to_the_model(run: Any) -> None:
    old = [
        {"type": "function_call_output", "call_id": "cut", "output": "x"},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "broken", "name": "look", "arguments": "{}"},
        {"role": "assistant", "content": "hi"},
    ]
    a = agent("A", [assistant_message("done")])
    await run(a, "go", session=ListSession(old))
    assert a.model.last_call.input == [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "go"}]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def a_copy(item: dict[str, Any]) -> dict[str, Any]:
    return dict(item)


# what the caller's function makes of history and input -> what of it is new
JOINED: list[tuple[str, Any, list[str]]] = [
    ("the newest of the history", lambda old, new: [*old[-1:], *new], ["go"]),
    ("nothing of the history", lambda old, new: new, ["go"]),
    ("nothing at all", lambda old, new: [], []),
    ("more than there was", lambda old, new: [user("first"), *old, *new, user("last")], ["first", "go", "last"]),
    ("copies", lambda old, new: [*map(a_copy, old), *map(a_copy, new)], ["go"]),
    ("the history twice", lambda old, new: [*old, *old, *new], ["go"]),
]


@WAYS
@pytest.mark.parametrize("old", [["old", "older"], ["older", "go"]], ids=["other", "said before"])
@pytest.mark.parametrize(("name", "join", "saved"), JOINED, ids=[one[0] for one in JOINED])
async def test_the_callers_function_joins_history_and_input(
    run: Any, name: str, join: Any, saved: list[str], old: list[str]
) -> None:
    """What is new is saved, also where the same was said before."""
    session = ListSession([user(text) for text in old])

    async def joining(history: list[Any], new: list[Any]) -> list[Any]:
        return join(history, new)

    a = agent("A", [assistant_message("done")])
    await run(a, [user("go")], session=session, run_config=RunConfig(session_input_callback=joining))
    assert a.model.last_call.input == join([user(text) for text in old], [user("go")])
    assert [item["content"] for item in session.items[:-1]] == [*old, *saved]


async def test_the_limit_of_the_run_counts_more() -> None:
    class Limited(ListSession):
        session_settings: ClassVar[Any] = {"limit": 3}

    session = Limited([{"role": "user", "content": str(number)} for number in range(5)])
    a = agent("A", [assistant_message("done")], [assistant_message("done")])
    await Runner.run(a, "go", session=session)
    await Runner.run(a, "go", session=session, run_config=RunConfig(session_settings={"limit": 1}))
    assert [len(one.input) for one in a.model.calls] == [4, 2]


async def test_a_session_and_a_kept_conversation_exclude_each_other() -> None:
    with pytest.raises(UserError, match="use one of them"):
        await Runner.run(agent("A"), "go", session=ListSession(), conversation_id="conv_1")


# --- conversations that the server keeps -----------------------------------------------------------------------------

KEPT: list[tuple[dict[str, Any], list[str | None]]] = [
    ({"conversation_id": "conv_1"}, [None, None, None]),
    ({"previous_response_id": "resp_0"}, ["resp_0", "resp_scripted_1", "resp_scripted_2"]),
    ({"auto_previous_response_id": True}, [None, "resp_scripted_1", "resp_scripted_2"]),
]


@WAYS
@pytest.mark.parametrize(("options", "previous"), KEPT, ids=[next(iter(one)) for one, _ in KEPT])
async def test_only_what_is_new_is_sent(run: Any, options: dict[str, Any], previous: list[str | None]) -> None:
    a = two_tools_two_turns(World())
    await run(a, "go", **options)
    kinds = [[item.get("type", "message") for item in one.input] for one in a.model.calls]
    assert kinds == [["message"], ["function_call_output"] * 2, ["function_call_output"]]
    assert [one.previous_response_id for one in a.model.calls] == previous
    assert {one.conversation_id for one in a.model.calls} == {options.get("conversation_id")}


@pytest.mark.parametrize(("options", "previous"), KEPT, ids=[next(iter(one)) for one, _ in KEPT])
async def test_only_what_is_new_is_sent_after_a_pause(options: dict[str, Any], previous: list[str | None]) -> None:
    from antiphon.run_state import RunState

    world = World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    first = await Runner.run(a, "go", **options)
    state = await RunState.from_string(a, first.to_state().to_string())
    state.approve(state.get_interruptions()[0])
    state.add_input("more")
    await Runner.run(a, state)
    assert [item.get("type", "message") for item in a.model.last_call.input] == ["function_call_output", "message"]
    assert a.model.last_call.previous_response_id == previous[1]


async def test_a_kept_conversation_refuses_filters_and_does_not_nest(caplog: pytest.LogCaptureFixture) -> None:
    def build() -> Agent[Any]:
        return agent("A", [call("transfer_to_b")], handoffs=[agent("B", [assistant_message("B")])])

    with pytest.raises(UserError, match="has an input filter"):
        await Runner.run(
            build(), "go", conversation_id="c", run_config=RunConfig(handoff_input_filter=lambda data: data)
        )
    await Runner.run(build(), "go", conversation_id="c", run_config=RunConfig(nest_handoff_history=True))
    assert "does not nest its history" in caplog.text


# --- results ---------------------------------------------------------------------------------------------------------


@WAYS
async def test_a_result(run: Any) -> None:
    usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
    world = World()
    model = ScriptedModel([[call("look", text="x")], [assistant_message("done")]], default_usage=usage)
    a = Agent("A", model=model, tools=[world.tool("look")])
    result = await run(a, "go", context={"user": 1})
    held = result.context_wrapper
    assert (held.context, held.usage.requests, held.usage.total_tokens) == ({"user": 1}, 2, 30)
    assert [one.total_tokens for one in held.usage.request_usage_entries] == [15, 15]
    assert (result.last_response_id, result.input, result.max_turns) == ("resp_scripted_2", "go", 10)
    assert result.final_output_as(str) == "done"
    with pytest.raises(TypeError, match="not of type int"):
        result.final_output_as(int, raise_if_incorrect_type=True)
    assert ItemHelpers.text_message_outputs(result.new_items) == "done"
    assert "Last agent: A" in str(result)
    with pytest.raises(ValueError, match="preserve_all"):
        result.to_input_list(mode="other")


@WAYS
async def test_agents_are_released(run: Any) -> None:
    import gc

    result = await run(agent("A", [assistant_message("done")]), "go")
    result.release_agents()
    gc.collect()
    assert result.new_items[0].agent is None
    assert result.to_input_list()[1]["content"][0]["text"] == "done"
    with pytest.raises(AgentsException, match="released"):
        _ = result.last_agent


@WAYS
@pytest.mark.parametrize("nests", [True, False])
async def test_input_lists_after_a_handoff(run: Any, nests: bool) -> None:
    """Normalized is what the last agent read and what followed; nothing is said twice in either."""
    b = agent("B", [assistant_message("I am B")])
    a = agent("A", [assistant_message("wait"), call("transfer_to_b")], handoffs=[b])
    result = await run(a, "go", run_config=RunConfig(nest_handoff_history=nests))
    normalized = result.to_input_list(mode="normalized")
    assert normalized == [*b.model.last_call.input, normalized[-1]]
    assert normalized[-1]["content"][0]["text"] == "I am B"
    if not nests:
        assert result.to_input_list() == normalized
    texts = [str(item) for item in result.to_input_list()]
    assert sum("'wait'" in one for one in texts) == 1
