"""What programs that move here rely on: what a session keeps, what is offered when, who is asked, what stops a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from typing import Any

import pytest
from pydantic import TypeAdapter

from antiphon.agent import Agent, ToolsToFinalOutputResult
from antiphon.errors import ServerFailed
from antiphon.exceptions import (
    InputGuardrailTripwireTriggered,
    ModelIncompleteError,
    OutputGuardrailTripwireTriggered,
    UserError,
)
from antiphon.guardrail import GuardrailFunctionOutput, input_guardrail, output_guardrail
from antiphon.handoffs import handoff
from antiphon.items import ToolCallOutputItem
from antiphon.lifecycle import AgentHooks, RunHooks
from antiphon.models import ModelSettings
from antiphon.models.multi_provider import MultiProvider
from antiphon.run import AgentRunner, RunConfig, Runner, get_default_agent_runner, set_default_agent_runner
from antiphon.run_context import RunContextWrapper
from antiphon.run_state import RunState
from antiphon.testing import ModelStep, ScriptedModel, assistant_message, reasoning_item
from antiphon.tool import function_tool

from .memory import ListSession
from .scenarios import World, agent, call, told

STREAMED = pytest.mark.parametrize("streamed", [False, True])


async def run(a: Agent[Any], given: Any, streamed: bool, **options: Any) -> Any:
    if not streamed:
        return await Runner.run(a, given, **options)
    result = Runner.run_streamed(a, given, **options)
    async for _ in result.stream_events():
        pass
    return result


def kinds(items: list[Any]) -> list[str]:
    return [item.get("type") or item["role"] for item in items]


# --- what a session keeps of an output that guardrails see ------------------------------------------------------------


def guardrail(says: str) -> Any:
    @output_guardrail
    def judge(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        if says == "fails":
            raise LookupError("the guardrail's own")
        return GuardrailFunctionOutput(None, says == "trips")

    return judge


ERRORS: dict[str, type[Exception]] = {"trips": OutputGuardrailTripwireTriggered, "fails": LookupError}
PAIR = ["function_call", "function_call_output"]
# who gives the final output, and what the guardrail does -> what the session has beside the user's message
SESSIONS = {
    ("model", "passes"): [*PAIR, "message"],
    ("model", "trips"): PAIR,
    ("model", "fails"): [*PAIR, "message"],
    ("tool", "passes"): ["message", *PAIR],
    ("tool", "trips"): PAIR,
    ("tool", "fails"): ["message", *PAIR],
}


@STREAMED
@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("who", "says"), SESSIONS)
async def test_what_a_session_keeps(who: str, says: str, gated: bool, streamed: bool) -> None:
    world, session = World(gated=gated), ListSession()
    by_tool = [assistant_message("I look"), call("look", text="secret")]
    steps = [by_tool] if who == "tool" else [[call("look", text="secret")], [assistant_message("done")]]
    more: Any = {"tool_use_behavior": "stop_on_first_tool"} if who == "tool" else {}
    a = agent("A", *steps, tools=[world.tool("look")], output_guardrails=[guardrail(says)], **more)
    given: Any = "go"
    if gated:
        paused = await run(a, "go", streamed, session=session)
        given = paused.to_state()
        given.approve(paused.interruptions[0])
    with pytest.raises(ERRORS[says]) if says in ERRORS else nullcontext():
        await run(a, given, streamed, session=session)
    kept = [*(["message"] if gated and who == "tool" else []), *PAIR] if says == "trips" else SESSIONS[who, says]
    assert kinds(session.items) == ["user", *kept]
    refused = who == "tool" and says == "trips"
    assert ("look says secret" in str(session.items)) is not refused


@STREAMED
async def test_what_a_tool_beside_a_waiting_one_returned_is_kept_when_it_was_seen(streamed: bool) -> None:
    world, session = World(gated=True), ListSession()
    steps = [call("free", text="secret"), call("look", text="x")]
    tools = [world.tool("free", free=True), world.tool("look")]
    a = agent("A", steps, tools=tools, tool_use_behavior="stop_on_first_tool", output_guardrails=[guardrail("trips")])
    paused = await run(a, "go", streamed, session=session)
    assert kinds(session.items) == ["user", "function_call", "function_call"]
    state = paused.to_state()
    state.approve(paused.interruptions[0])
    with pytest.raises(OutputGuardrailTripwireTriggered):
        await run(a, state, streamed, session=session)
    assert kinds(session.items) == ["user", "function_call", "function_call", *[PAIR[1]] * 2]
    assert "secret" not in str([item for item in session.items if item.get("type") == PAIR[1]])


@pytest.mark.parametrize(("guarded", "output"), [(True, ""), (False, "look says x")])
async def test_an_empty_output_of_an_agent_tool(guarded: bool, output: str) -> None:
    """What no guardrail has seen does not stand for it."""
    guards = [guardrail("passes")] if guarded else []
    steps = [call("look", text="x")], [assistant_message("")]
    b = agent("B", *steps, tools=[World().tool("look")], output_guardrails=guards)
    a = agent("A", [call("ask", input="q")], [assistant_message("done")], tools=[b.as_tool("ask", "")])
    result = await Runner.run(a, "go")
    assert [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)] == [output]


def _tenant(wrapper: Any) -> Any:
    return None if wrapper is None else wrapper.context["tenant"]


class Scoped:
    """A session that keeps the items of each tenant apart; `wrapper` is the run's context."""

    session_id, session_settings = "scoped", None

    def __init__(self) -> None:
        self.of: dict[Any, list[Any]] = {}

    async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
        return list(self.of.get(_tenant(wrapper), []))[-(limit or 0) :]

    async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
        self.of.setdefault(_tenant(wrapper), []).extend(items)

    async def pop_item(self, *, wrapper: Any = None) -> Any:
        return self.of[_tenant(wrapper)].pop()

    async def clear_session(self, *, wrapper: Any = None) -> None:
        self.of.clear()


class HalfScoped(Scoped):
    async def clear_session(self) -> None:  # type: ignore[override]  # one that has not all of it
        self.of.clear()


@STREAMED
@pytest.mark.parametrize(("kind", "scope"), [(Scoped, "tenant"), (HalfScoped, None)])
async def test_a_session_that_takes_the_context(kind: type[Scoped], scope: Any, streamed: bool) -> None:
    session, world = kind(), World(gated=True)
    steps = [call("look", text="x")], [assistant_message("done")]
    a = agent("A", *steps, tools=[world.tool("look")])
    paused = await run(a, "go", streamed, session=session, context={"tenant": "tenant"})
    state = await RunState.from_string(a, paused.to_state().to_string())
    state.approve(state.get_interruptions()[0])
    await run(a, state, streamed, session=session)
    assert {key: kinds(items) for key, items in session.of.items()} == {scope: ["user", *PAIR, "message"]}


@pytest.mark.parametrize(("policy", "ids"), [(None, True), ("omit", False)])
async def test_ids_of_reasoning_in_a_session(policy: Any, ids: bool) -> None:
    session: Any = ListSession()
    a = agent("A", [reasoning_item("hm"), assistant_message("one")], [assistant_message("two")])
    await Runner.run(a, "go", session=session)
    await Runner.run(a, "on", session=session, run_config=RunConfig(reasoning_item_id_policy=policy))
    sent = next(item for item in a.model.last_call.input if item.get("type") == "reasoning")  # type: ignore[union-attr]
    assert ("id" in sent) is ids


# --- what a model is offered, and asked -------------------------------------------------------------------------------


@STREAMED
async def test_what_is_offered_is_found_out_when_all_is_prepared(streamed: bool) -> None:
    seen: list[Any] = []

    class Prepares(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            context.context["started"] = True

    def instructions(context: Any, agent: Any) -> str:
        context.context["instructed"] = True
        return "x"

    def enabled(context: Any, agent: Any) -> bool:
        seen.append((dict(context.context), context.turn_input))
        return True

    b = agent("B", [assistant_message("b")])
    by = handoff(b, is_enabled=enabled)
    a = agent("A", [call("transfer_to_b")], handoffs=[by], instructions=instructions)
    result = await run(a, "go", streamed, context={}, hooks=Prepares())
    assert result.final_output == "b"
    assert seen == [({"started": True, "instructed": True}, [{"role": "user", "content": "go"}])]


@pytest.mark.parametrize("dropped", ["tool_call_output_item", "tool_call_item"])
async def test_a_filter_that_leaves_half_a_call(dropped: str) -> None:
    def half(data: Any) -> Any:
        return data.clone(pre_handoff_items=tuple(item for item in data.pre_handoff_items if item.type != dropped))

    b = agent("B", [assistant_message("b")])
    steps = [call("look", text="x")], [call("transfer_to_b")]
    await Runner.run(agent("A", *steps, tools=[World().tool("look")], handoffs=[handoff(b, input_filter=half)]), "go")
    assert kinds(b.model.last_call.input) == ["user", *PAIR]  # type: ignore[union-attr]


class Falsy:
    def __bool__(self) -> bool:
        return False


async def test_what_is_there_counts_though_it_is_falsy() -> None:
    told_of: list[str] = []

    class OfRun(Falsy, RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            told_of.append("run")

    class OfAgent(Falsy, AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            told_of.append("agent")

    class Filter(Falsy):
        def __call__(self, data: Any) -> Any:
            told_of.append("filter")
            return data

    b = agent("B", [assistant_message("b")], hooks=OfAgent())
    a = agent("A", [call("transfer_to_b")], handoffs=[handoff(b, input_filter=Filter())])

    def unused(_: Any) -> Any:
        raise AssertionError("the handoff has a filter of its own")

    await Runner.run(a, "go", hooks=OfRun(), run_config=RunConfig(handoff_input_filter=unused))
    assert told_of == ["run", "filter", "run", "agent"]

    class OwnRunner(Falsy, AgentRunner):
        pass

    mine = OwnRunner()
    set_default_agent_runner(mine)
    try:
        assert get_default_agent_runner() is mine
    finally:
        set_default_agent_runner(None)


def said(kind: str, **fields: Any) -> Any:
    """Return a step whose stream ends with an event of that type, and a response that does not say so itself."""

    async def events(_: Any) -> AsyncIterator[Any]:
        source = ScriptedModel([[assistant_message("half")]]).stream_response(
            None,
            "x",
            ModelSettings(),
            [],
            None,
            [],
            None,
        )
        async for event in source:
            if event.type == "response.completed":
                event.type = kind
                yield event.model_copy(update=fields)
            else:
                yield event

    return ModelStep.stream(events)


ENDINGS: list[tuple[str, dict[str, Any], type[Exception]]] = [
    ("response.incomplete", {}, ModelIncompleteError),
    ("response.failed", {}, ServerFailed),
    ("error", {"code": "server_error", "message": "boom"}, ServerFailed),
    ("response.error", {"code": None, "message": "boom"}, ServerFailed),
]


@pytest.mark.parametrize(("kind", "fields", "error"), ENDINGS)
async def test_the_last_event_says_how_an_answer_ended(kind: str, fields: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        await run(agent("A", said(kind, **fields)), "go", True)


async def test_what_a_run_came_to_is_not_lost_to_its_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: Any) -> None:
        raise RuntimeError("no close")

    monkeypatch.setattr(MultiProvider, "aclose", fail)
    assert (await Runner.run(agent("A", [assistant_message("done")]), "go")).final_output == "done"
    with pytest.raises(KeyError, match="the model's own"):
        await Runner.run(agent("A", ModelStep.raise_error(KeyError("the model's own"))), "go")


# --- approvals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("verdict", [True, False])
async def test_always_holds_for_the_tool_of_one_agent(verdict: bool, elsewhere: bool) -> None:
    """Another agent may have another tool of that name."""
    first, second = World(gated=True), World(gated=True)
    b = agent("B", [call("op", 3)], [assistant_message("b")], tools=[second.tool("op")])
    steps = [call("op", 1)], [call("op", 2)], [call("transfer_to_b")]
    a = agent("A", *steps, tools=[first.tool("op")], handoffs=[b])
    state = (await Runner.run(a, "go")).to_state()
    item = state.get_interruptions()[0]
    state.approve(item, always_approve=True) if verdict else state.reject(item, True, rejection_message="never")
    if elsewhere:
        state = await RunState.from_string(a, state.to_string())
    result = await Runner.run(a, state)
    assert [one.agent.name for one in result.interruptions] == ["B"]
    assert first.done == (["op()", "op()"] if verdict else [])
    outputs = [told(one) for one in result.new_items if isinstance(one, ToolCallOutputItem)]
    assert outputs == [f"tool_call_output:{'op says ' if verdict else 'never'}"] * 2
    held = result.context_wrapper
    assert (held.is_tool_approved("op", "call_op_2"), held.is_tool_approved("op", "call_op_9")) == (verdict, verdict)
    held.approve_tool(result.interruptions[0], True)
    assert held.is_tool_approved("op", "call_op_9") is None  # of two agents' tools, it is not known which
    assert held.get_rejection_message("op", "call_op_1") == (None if verdict else "never")


@pytest.mark.parametrize(
    ("text", "same"), [('{ "text": "x" }', True), ('{"text": "x "}', False), ('{"text": "y"}', False)]
)
async def test_spaces_of_arguments_make_no_other_call(text: str, same: bool) -> None:
    world = World()
    again = call("look", text="x").model_copy(update={"arguments": text})
    a = agent("A", [call("look", text="x")], [again], [assistant_message("done")], tools=[world.tool("look")])
    if same:
        assert (await Runner.run(a, "go")).final_output == "done"
    else:
        with pytest.raises(Exception, match="was that of another call"):
            await Runner.run(a, "go")
    assert world.done == ["look(x)"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
async def test_a_number_that_nobody_can_judge_waits(number: str) -> None:
    asked: list[Any] = []

    async def needs(context: Any, arguments: Any, call_id: str) -> bool:
        asked.append(arguments)
        return False

    @function_tool(needs_approval=needs)
    def pay(amount: float) -> str:
        return f"{amount}"

    one = call("pay").model_copy(update={"arguments": f'{{"amount": {number}}}'})
    result = await Runner.run(agent("A", [one], tools=[pay]), "go")
    assert (len(result.interruptions), asked) == (1, [])


def _not_yet(context: Any, results: Any) -> ToolsToFinalOutputResult:
    return ToolsToFinalOutputResult(False, None)


STOPS: list[tuple[Any, bool, bool]] = [
    ("run_llm_again", False, True),
    ("stop_on_first_tool", False, False),
    ("stop_on_first_tool", True, True),  # a handoff wins
    ({"stop_at_tool_names": ["look"]}, False, False),
    ({"stop_at_tool_names": ["other"]}, False, True),
    (_not_yet, False, False),
]


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(("behavior", "hands_over", "takes"), STOPS)
async def test_input_that_a_model_may_never_read(behavior: Any, hands_over: bool, takes: bool, elsewhere: bool) -> None:
    calls = [call("look", text="x"), *([call("transfer_to_b")] if hands_over else [])]
    tools, b = [World(gated=True).tool("look")], agent("B", [assistant_message("done")])
    a = agent("A", calls, [assistant_message("done")], tools=tools, handoffs=[b], tool_use_behavior=behavior)
    state = (await Runner.run(a, "go")).to_state()
    if elsewhere:
        state = await RunState.from_string(a, state.to_string())
    if not takes:
        with pytest.raises(UserError, match="may end the run"):
            state.add_input("late")
        assert state.pending_input == []
        return
    state.add_input("late")
    state.approve(state.get_interruptions()[0])
    assert (await Runner.run(a, state)).final_output == "done"
    last = b if hands_over else a
    assert {"role": "user", "content": "late"} in last.model.last_call.input  # type: ignore[union-attr]


async def test_an_agent_tool_that_waited_is_begun_once() -> None:
    told_of: list[str] = []

    class Counts(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            told_of.append(f"start {tool.name}")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            told_of.append(f"end {tool.name}")

    b = agent("B", [call("look", text="x")], [assistant_message("b")], tools=[World(gated=True).tool("look")])
    a = agent("A", [call("ask", input="q")], [assistant_message("done")], tools=[b.as_tool("ask", "")])
    state = (await Runner.run(a, "go", hooks=Counts())).to_state()
    state.approve(state.get_interruptions()[0])
    await Runner.run(a, state, hooks=Counts())
    assert told_of == ["start ask", "end ask"]


# --- stopping after a turn --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pauses", [0, 1, 30])
@pytest.mark.parametrize("at", ["tool_called", "tool_output", "handoff_occured"])
async def test_whoever_reads_the_last_event_of_a_turn_can_stop_the_run(at: str, pauses: int) -> None:
    b = agent("B", [assistant_message("b")])
    answer = call("transfer_to_b") if at == "handoff_occured" else call("look", text="x")
    a = agent("A", [answer], [assistant_message("done")], tools=[World().tool("look")], handoffs=[b])
    result = Runner.run_streamed(a, "go")
    async for event in result.stream_events():
        if getattr(event, "name", "") == at:
            for _ in range(pauses):
                await asyncio.sleep(0)
            result.cancel(mode="after_turn")
    assert result.final_output is None
    assert len(result.raw_responses) == 1
    assert (await Runner.run(a, result.to_state())).final_output in ("done", "b")


async def test_a_reader_that_pauses_can_be_passed_by_others() -> None:
    """The run waits for it at the end of the turn, until it comes back or somebody stops the run."""
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[World().tool("look")])
    result = Runner.run_streamed(a, "go")
    events = result.stream_events()
    async for event in events:
        if getattr(event, "name", "") == "tool_output":
            break
    for _ in range(30):
        await asyncio.sleep(0)
    assert len(result.raw_responses) == 1
    result.cancel(mode="after_turn")
    await asyncio.wait([result.run_loop_task], timeout=5)
    assert result.run_loop_task.done()
    assert [event async for event in events] == []


def test_a_state_has_the_parameters_of_its_annotations() -> None:
    both: Any = RunState[dict[str, Any], Agent[Any]]
    assert both.__args__ == (dict[str, Any], Agent[Any])


def test_a_context_has_a_schema() -> None:
    """It may be a part of what a program validates."""
    adapter = TypeAdapter(RunContextWrapper[dict[str, str]])
    held = RunContextWrapper({"tenant": "a"})
    assert adapter.json_schema()["type"] == "object"
    assert adapter.validate_json(adapter.dump_json(held)).context == held.context


@STREAMED
async def test_added_input_that_tripped_is_asked_about_again(streamed: bool) -> None:
    """A guardrail that is slow does not let it through the second time."""
    world = World()

    @input_guardrail
    async def no_evil(context: Any, agent: Any, said: Any) -> GuardrailFunctionOutput:
        for _ in range(20):
            await asyncio.sleep(0)
        return GuardrailFunctionOutput(None, "evil" in str(said))

    steps = [call("look", 1)], [call("look", 2)], [assistant_message("done")]
    a = agent("A", *steps, tools=[world.tool("look")], input_guardrails=[no_evil])
    first = Runner.run_streamed(a, "go")
    async for event in first.stream_events():
        if getattr(event, "name", "") == "tool_output":
            first.cancel(mode="after_turn")
    state = first.to_state()
    state.add_input("evil")
    for _ in range(2):
        with pytest.raises(InputGuardrailTripwireTriggered):
            await run(a, state, streamed)
        assert state.pending_input == [{"role": "user", "content": "evil"}]
    assert world.done == ["look()"]
    state.clear_pending_input()
    assert (await run(a, state, streamed)).final_output == "done"
