"""Calls that wait: what decides about them, what the model is told, and that nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.extensions.handoff_filters import remove_all_tools
from antiphon.handoffs import HandoffInputData, handoff
from antiphon.items import ToolApprovalItem, ToolCallOutputItem
from antiphon.run import RunConfig, Runner, ToolExecutionConfig
from antiphon.run_context import RunContextWrapper
from antiphon.run_state import RunState
from antiphon.testing import assistant_message, function_call
from antiphon.tool import ApplyPatchTool, CustomTool, FunctionTool, ShellTool, ToolOrigin, ToolOriginType
from antiphon.tool_guardrails import ToolGuardrailFunctionOutput, tool_input_guardrail

from .memory import ListSession
from .scenarios import World, agent, call, told


def outputs(items: list[Any]) -> dict[str, Any]:
    """Return what the model was given for each call."""
    return {item["call_id"]: item["output"] for item in items if item.get("type") == "function_call_output"}


async def resume(a: Any, state: RunState[Any], how: str, **options: Any) -> Any:
    match how:
        case "plain":
            return await Runner.run(a, state, **options)
        case "streamed":
            result = Runner.run_streamed(a, state, **options)
            async for _ in result.stream_events():
                pass
            return result
        case "elsewhere":
            return await Runner.run(a, await RunState.from_string(a, state.to_string()), **options)
        case _:
            raise AssertionError(how)


HOWS = pytest.mark.parametrize("how", ["plain", "streamed", "elsewhere"])


@HOWS
async def test_a_free_tool_beside_one_that_waits(how: str) -> None:
    """The free one runs once, before; its output is in the history with the other's."""
    world = World(gated=True)
    tools = [world.tool("cleanup"), world.tool("diagnose", free=True)]
    steps = [call("cleanup", text="x"), call("diagnose", text="y")], [assistant_message("done")]
    a = agent("A", *steps, tools=tools)
    first = await Runner.run(a, "go")
    assert world.done == ["diagnose(y)"]
    assert [item.name for item in first.interruptions] == ["cleanup"]
    assert [told(item) for item in first.new_items] == [
        "tool_call:cleanup",
        "tool_call:diagnose",
        "tool_call_output:diagnose says y",
        "tool_approval:cleanup",
    ]
    state = first.to_state()
    state.approve(first.interruptions[0])
    final = await resume(a, state, how)
    assert world.done == ["diagnose(y)", "cleanup(x)"]
    assert outputs(a.model.last_call.input) == {
        "call_cleanup_1": "cleanup says x",
        "call_diagnose_1": "diagnose says y",
    }
    assert final.final_output == "done"


REJECTIONS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {}, "Tool execution was not approved."),
    ({"rejection_message": "use staging"}, {}, "use staging"),
    ({"rejection_message": ""}, {}, ""),
    ({"rejection_message": "never", "always_reject": True}, {}, "never"),
    (
        {},
        {"run_config": RunConfig(tool_error_formatter=lambda args: f"{args.kind} {args.tool_name}")},
        "approval_rejected look",
    ),
    ({}, {"run_config": RunConfig(tool_error_formatter=lambda args: None)}, "Tool execution was not approved."),
    ({"rejection_message": "no"}, {"run_config": RunConfig(tool_error_formatter=lambda args: "other")}, "no"),
]


@HOWS
@pytest.mark.parametrize(("decision", "options", "expected"), REJECTIONS)
async def test_rejected(how: str, decision: dict[str, Any], options: dict[str, Any], expected: str) -> None:
    world = World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    first = await Runner.run(a, "go")
    state = first.to_state()
    state.reject(first.interruptions[0], **decision)
    final = await resume(a, state, how, **options)
    assert world.done == []
    assert outputs(a.model.last_call.input) == {"call_look_1": expected}
    assert final.final_output == "done"
    assert [item.tool_origin for item in final.new_items if isinstance(item, ToolCallOutputItem)] == [
        ToolOrigin(ToolOriginType.FUNCTION)
    ]


@HOWS
@pytest.mark.parametrize("verdict", ["approve", "reject"])
async def test_always(how: str, verdict: str) -> None:
    """What is decided for all calls of a tool holds for later ones, and for no other tool."""
    world = World(gated=True)
    steps = [call("look", 1, text="x")], [call("look", 2, text="y")], [call("find", text="z")]
    a = agent("A", *steps, tools=[world.tool("look"), world.tool("find")])
    first = await Runner.run(a, "go")
    state = first.to_state()
    if verdict == "approve":
        state.approve(first.interruptions[0], always_approve=True)
    else:
        state.reject(first.interruptions[0], always_reject=True, rejection_message="never")
    second = await resume(a, state, how)
    assert [item.name for item in second.interruptions] == ["find"]
    assert world.done == (["look(x)", "look(y)"] if verdict == "approve" else [])
    given = outputs(second.to_input_list())
    expected = {"approve": ["look says x", "look says y"], "reject": ["never", "never"]}
    assert list(given.values()) == expected[verdict]


async def test_undecided_is_the_same_again() -> None:
    """No model is called."""
    world = World(gated=True)
    a = agent("A", [call("look", text="x")], tools=[world.tool("look")])
    first = await Runner.run(a, "go")
    second = await Runner.run(a, first.to_state())
    assert [told(item) for item in second.new_items] == [told(item) for item in first.new_items]
    assert [item.call_id for item in second.interruptions] == ["call_look_1"]
    assert (second.final_output, len(a.model.calls), world.done) == (None, 1, [])


async def test_states_are_independent() -> None:
    world = World(gated=True)
    a = agent(
        "A",
        [call("look", text="x")],
        [assistant_message("one")],
        [assistant_message("two")],
        tools=[world.tool("look")],
    )
    first = await Runner.run(a, "go")
    yes, no = first.to_state(), first.to_state()
    yes.approve(first.interruptions[0])
    no.reject(first.interruptions[0])
    assert first.context_wrapper.is_tool_approved("look", "call_look_1") is None
    assert (await Runner.run(a, yes)).final_output == "one"
    assert (await Runner.run(a, no)).final_output == "two"
    assert world.done == ["look(x)"]


async def test_needs_approval_by_its_arguments() -> None:
    world = World()

    async def dangerous(ctx: RunContextWrapper[Any], params: dict[str, Any], call_id: str) -> bool:
        return bool(params["text"] == "all") and call_id.endswith("2")

    tool = world.tool("wipe")
    tool.needs_approval = dangerous
    a = agent("A", [call("wipe", 1, text="a bit"), call("wipe", 2, text="all")], tools=[tool])
    result = await Runner.run(a, "go")
    assert world.done == ["wipe(a bit)"]
    assert [item.arguments for item in result.interruptions] == ['{"text": "all"}']


async def test_an_approval_is_bound_to_the_exact_call() -> None:
    """The id of a call that was made stands for another call: that is refused."""
    world = World(gated=True)
    steps = [call("look", text="x")], [function_call("look", {"text": "everything"}, call_id="call_look_1")]
    a = agent("A", *steps, tools=[world.tool("look")])
    first = await Runner.run(a, "go")
    state = first.to_state()
    state.approve(first.interruptions[0])
    with pytest.raises(ModelBehaviorError, match="each call has an id of its own"):
        await Runner.run(a, state)
    assert world.done == ["look(x)"]


async def test_a_changed_call_in_a_stored_state_is_not_approved() -> None:
    world = World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    first = await Runner.run(a, "go")
    state = first.to_state()
    state.approve(first.interruptions[0])
    text = state.to_string().replace('\\"text\\": \\"x\\"', '\\"text\\": \\"everything\\"')
    assert text != state.to_string()
    with pytest.raises(ModelBehaviorError, match="each call has an id of its own"):
        await Runner.run(a, await RunState.from_string(a, text))
    assert world.done == []


async def test_a_call_of_another_run_is_refused() -> None:
    world = World(gated=True)
    a = agent("A", [call("look", 1, text="x")], [call("look", 2, text="x")], tools=[world.tool("look")])
    one, two = await Runner.run(a, "go"), await Runner.run(a, "go")
    with pytest.raises(UserError, match="does not wait in this state"):
        one.to_state().approve(two.interruptions[0])


async def test_the_context_decides_too() -> None:
    world = World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    result = await Runner.run(a, "go")
    item = result.interruptions[0]
    result.context_wrapper.reject_tool(item, rejection_message="no")
    status = (
        result.context_wrapper.is_tool_approved("look", "call_look_1"),
        result.context_wrapper.get_approval_status("look", "call_look_1", existing_pending=item),
        result.context_wrapper.get_rejection_message("look", "call_look_1"),
    )
    assert status == (False, False, "no")
    result.context_wrapper.approve_tool(item)
    assert (await Runner.run(a, result.to_state())).final_output == "done"
    assert world.done == ["look(x)"]


async def test_items_can_be_in_sets() -> None:
    a = agent("A")
    raw = function_call("look", {}, call_id="1", namespace="crm")
    one, other = ToolApprovalItem(a, raw), ToolApprovalItem(a, raw)
    assert len({one, other, one}) == 2
    assert (one.name, one.qualified_name, one.call_id, one.arguments) == ("look", "crm.look", "1", "{}")


@HOWS
async def test_input_added_while_paused(how: str) -> None:
    """It comes after the outputs of the calls, and is one of the run's items."""
    world = World(gated=True)
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[world.tool("look")])
    first = await Runner.run(a, "go")
    state = first.to_state()
    state.approve(first.interruptions[0])
    state.add_input("dropped")
    state.clear_pending_input()
    state.add_input("be quick")
    state.add_input([{"role": "user", "content": "please"}])
    assert state.pending_input == [
        {"role": "user", "content": "be quick"},
        {"role": "user", "content": "please"},
    ]
    final = await resume(a, state, how)
    assert [item.type for item in final.new_items] == [
        "tool_call_item",
        "tool_call_output_item",
        "input_item",
        "input_item",
        "message_output_item",
    ]
    kinds = [item.get("content") or item["type"] for item in a.model.last_call.input]
    assert kinds == ["go", "function_call", "function_call_output", "be quick", "please"]
    with pytest.raises(UserError, match="the run is complete"):
        final.to_state().add_input("too late")


async def test_input_guardrails_of_a_tool_may_come_first() -> None:
    asked: list[str] = []

    @tool_input_guardrail
    def refuse(data: Any) -> ToolGuardrailFunctionOutput:
        asked.append(data.context.tool_arguments)
        return ToolGuardrailFunctionOutput.reject_content("not that")

    world = World(gated=True)
    tool = world.tool("look")
    tool.tool_input_guardrails = [refuse]
    config = RunConfig(tool_execution=ToolExecutionConfig(pre_approval_tool_input_guardrails=True))
    a = agent("A", [call("look", text="x")], [assistant_message("done")], tools=[tool])
    result = await Runner.run(a, "go", run_config=config)
    assert (result.final_output, result.interruptions, world.done) == ("done", [], [])
    assert outputs(a.model.last_call.input) == {"call_look_1": "not that"}
    assert len(asked) == 1


# --- agents as tools -------------------------------------------------------------------------------------------------


@HOWS
async def test_inside_an_agent_tool(how: str) -> None:
    """It is asked once, in the outer result, and the inner run goes on where it was; after JSON as well."""
    world = World(gated=True)
    inner = agent("Inner", [call("look", text="x")], [assistant_message("inner done")], tools=[world.tool("look")])
    a = agent("A", [call("ask", input="?")], [assistant_message("done")], tools=[inner.as_tool("ask", "")])
    first = await Runner.run(a, "go")
    assert [(item.name, item.agent.name) for item in first.interruptions] == [("look", "Inner")]
    assert [told(item) for item in first.new_items] == ["tool_call:ask"]
    state = first.to_state()
    state.approve(first.interruptions[0])
    final = await resume(a, state, how)
    assert (final.final_output, final.interruptions, world.done) == ("done", [], ["look(x)"])
    assert len(inner.model.calls) == 2
    assert outputs(a.model.last_call.input) == {"call_ask_1": "inner done"}
    assert final.context_wrapper.usage.requests == 4


async def test_two_restored_states_side_by_side() -> None:
    world = World(gated=True)
    inner = agent(
        "Inner", [call("look", text="x")], *[[assistant_message("inner done")]] * 2, tools=[world.tool("look")]
    )
    a = agent("A", [call("ask", input="?")], *[[assistant_message("done")]] * 2, tools=[inner.as_tool("ask", "")])
    text = (await Runner.run(a, "go")).to_state().to_string()
    one, other = await RunState.from_string(a, text), await RunState.from_string(a, text)
    one.approve(one.get_interruptions()[0])
    other.reject(other.get_interruptions()[0], rejection_message="no")
    assert (await Runner.run(a, one)).final_output == "done"
    assert world.done == ["look(x)"]
    assert (await Runner.run(a, other)).final_output == "done"
    assert world.done == ["look(x)"]
    assert outputs(inner.model.last_call.input) == {"call_look_1": "no"}


async def test_always_holds_for_the_next_run_of_the_agent_tool() -> None:
    world = World(gated=True)
    inner_steps = [call("look", text="x")], [assistant_message("1")], [call("look", text="y")], [assistant_message("2")]
    inner = agent("Inner", *inner_steps, tools=[world.tool("look")])
    steps = [call("ask", 1, input="?")], [call("ask", 2, input="!")], [assistant_message("done")]
    a = agent("A", *steps, tools=[inner.as_tool("ask", ""), world.tool("look")])
    first = await Runner.run(a, "go")
    state = await RunState.from_string(a, first.to_state().to_string())
    state.approve(state.get_interruptions()[0], always_approve=True)
    final = await Runner.run(a, state)
    assert (final.final_output, world.done) == ("done", ["look(x)", "look(y)"])
    assert final.context_wrapper.is_tool_approved("look", "any") is None


async def test_the_agent_tool_itself_waits() -> None:
    inner = agent("Inner", [assistant_message("inner done")])
    tool = inner.as_tool("ask", "", needs_approval=True)
    a = agent("A", [call("ask", input="?")], [assistant_message("done")], tools=[tool])
    first = await Runner.run(a, "go")
    assert [item.name for item in first.interruptions] == ["ask"]
    assert inner.model.calls == ()
    state = first.to_state()
    state.approve(first.interruptions[0])
    assert (await Runner.run(a, state)).final_output == "done"


# --- other kinds of tools --------------------------------------------------------------------------------------------


class Editor:
    def __init__(self) -> None:
        self.done: list[str] = []

    def create_file(self, operation: Any) -> str:
        self.done.append(operation.path)
        return "made"

    update_file = delete_file = create_file


def shell_call() -> dict[str, Any]:
    return {
        "type": "shell_call",
        "id": "sh_1",
        "call_id": "c1",
        "status": "completed",
        "action": {"commands": ["ls"], "timeout_ms": None, "max_output_length": None},
    }


def patch_call() -> dict[str, Any]:
    operation = {"type": "create_file", "path": "a.txt", "diff": "+a"}
    return {"type": "apply_patch_call", "id": "ap_1", "call_id": "c1", "status": "completed", "operation": operation}


def custom_call() -> dict[str, Any]:
    return {"type": "custom_tool_call", "id": "ct_1", "call_id": "c1", "name": "sql", "input": "select 1"}


class MyShell(ShellTool):
    """A tool of a user's own class is one of its base's kind."""


class MyPatch(ApplyPatchTool):
    """As above."""


class MyText(CustomTool):
    """As above."""


GIVEN: tuple[Any, ...] = (ShellTool, ApplyPatchTool, CustomTool)
OWN: tuple[Any, ...] = (MyShell, MyPatch, MyText)


def other_tools(done: list[str], classes: tuple[Any, ...] = GIVEN, **options: Any) -> list[Any]:
    editor = Editor()
    editor.done = done
    shell, patch, text = classes
    return [
        shell(executor=lambda request: done.append(request.data.action.commands[0]) or "out", name="bash", **options),
        patch(editor, **options),
        text("sql", "", on_invoke_tool=lambda ctx, asked: done.append(asked) or "rows", **options),
    ]


OTHERS = [
    (shell_call, "bash", "ls", "shell_call_output"),
    (patch_call, "apply_patch", "a.txt", "apply_patch_call_output"),
    (custom_call, "sql", "select 1", "custom_tool_call_output"),
]


@HOWS
@pytest.mark.parametrize("classes", [GIVEN, OWN], ids=["given", "own"])
@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize(("raw", "name", "effect", "kind"), OTHERS, ids=[one[1] for one in OTHERS])
async def test_other_kinds(
    how: str, classes: tuple[Any, ...], verdict: str, raw: Any, name: str, effect: str, kind: str
) -> None:
    done: list[str] = []
    a = agent("A", [raw()], [assistant_message("done")], tools=other_tools(done, classes, needs_approval=True))
    first = await Runner.run(a, "go")
    assert [item.name for item in first.interruptions] == [name]
    state = first.to_state()
    if verdict == "approve":
        state.approve(first.interruptions[0])
    else:
        state.reject(first.interruptions[0], rejection_message="no way")
    final = await resume(a, state, how)
    assert done == ([effect] if verdict == "approve" else [])
    last = a.model.last_call.input[-1]
    assert (final.final_output, last["type"], last["call_id"]) == ("done", kind, "c1")
    assert ("no way" in str(last["output"])) == (verdict == "reject")


@pytest.mark.parametrize("verdict", [True, False])
@pytest.mark.parametrize(("raw", "name", "effect", "kind"), OTHERS, ids=[one[1] for one in OTHERS])
async def test_other_kinds_ask_their_own_function(verdict: bool, raw: Any, name: str, effect: str, kind: str) -> None:
    done: list[str] = []

    async def on_approval(ctx: Any, item: Any) -> Any:
        return {"approve": verdict, "reason": "not today"}

    tools = other_tools(done, needs_approval=True, on_approval=on_approval)
    a = agent("A", [raw()], [assistant_message("done")], tools=tools)
    result = await Runner.run(a, "go")
    assert (result.final_output, done) == ("done", [effect] if verdict else [])
    assert ("not today" in str(a.model.last_call.input[-1])) != verdict


async def test_needs_approval_of_other_kinds_sees_what_is_asked() -> None:
    asked: list[Any] = []

    def needs(ctx: Any, wanted: Any, call_id: str) -> bool:
        asked.append(wanted)
        return True

    for raw, *_ in OTHERS:
        await Runner.run(agent("A", [raw()], tools=other_tools([], needs_approval=needs)), "go")
    assert (asked[0].commands, asked[1].path, asked[2]) == (["ls"], "a.txt", "select 1")


# arguments -> what the function that decides is asked, whether the call waits, what runs
UNJUDGED: list[tuple[str, list[Any], bool, list[str]]] = [
    ('{"text": "x"}', [{"text": "x"}], False, ['{"text": "x"}']),
    ("", [{}], False, [""]),
    ("[1]", [], True, []),
    ('"x"', [], True, []),
    ("null", [], True, []),
    ('{"text": "x', [], False, []),
]


@pytest.mark.parametrize(("arguments", "asked", "waits", "runs"), UNJUDGED, ids=[one[0] for one in UNJUDGED])
async def test_arguments_that_nobody_can_judge(arguments: str, asked: list[Any], waits: bool, runs: list[str]) -> None:
    """A tool that reads its arguments itself is not run on what the function that decides was not shown."""
    seen: list[Any] = []
    done: list[str] = []

    async def needs(ctx: Any, wanted: dict[str, Any], call_id: str) -> bool:
        seen.append(wanted)
        return False

    async def invoke(ctx: Any, given: str) -> str:
        done.append(given)
        return "done"

    tool = FunctionTool("raw", "", {"type": "object"}, invoke, strict_json_schema=False, needs_approval=needs)
    said = function_call("raw", arguments, call_id="c1")
    result = await Runner.run(agent("A", [said], [assistant_message("end")], tools=[tool]), "go")
    assert (seen, bool(result.interruptions), done) == (asked, waits, runs)


def _behind(name: str, world: World) -> dict[str, Any]:
    """What answers a call of `look`: a function, an agent, or a handoff."""
    inner = agent("Inner", [assistant_message("inner")])
    return {
        "function": lambda: {"tools": [world.tool("look")]},
        "agent": lambda: {"tools": [inner.as_tool("look", "d", needs_approval=True)]},
        "handoff": lambda: {"handoffs": [handoff(inner, tool_name_override="look")]},
    }[name]()


@HOWS
@pytest.mark.parametrize("approves", [True, False])
@pytest.mark.parametrize(("first", "then"), [("function", "agent"), ("function", "handoff"), ("agent", "function")])
async def test_a_decision_is_about_what_answered_then(how: str, approves: bool, first: str, then: str) -> None:
    """A call that was approved goes to no other thing that has the tool's name by now; a rejected one to nothing."""
    world = World(gated=True)
    a = agent("A", [call("look", text="x", input="x")], [assistant_message("done")], **_behind(first, world))
    state = (await Runner.run(a, "go")).to_state()
    (state.approve if approves else state.reject)(state.get_interruptions()[0])
    a.tools, a.handoffs = [], []
    for name, held in _behind(then, world).items():
        setattr(a, name, held)
    if approves or then == "handoff":
        with pytest.raises(
            UserError, match=r"was for (a function|the agent 'Inner' as a) tool, and now it would be for"
        ):
            await resume(a, state, how)
        assert world.done == []
    else:
        result = await resume(a, state, how)
        assert (result.final_output, world.done) == ("done", [])


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("verdict", ["approve", "reject"])
@pytest.mark.parametrize("elsewhere", [False, True])
async def test_always_holds_inside_agent_tools(elsewhere: bool, verdict: str, depth: int) -> None:
    """What is decided for all calls of a tool holds in a later run inside the same agent tools, however deep."""
    world = World(gated=True)
    twice = [call("pay", text="1")], [assistant_message("1")], [call("pay", text="1")], [assistant_message("2")]
    a = agent("Inner", *twice, tools=[world.tool("pay")])
    for n in range(depth):
        steps = [[call("ask", 1, input="q")], [assistant_message("1")], [call("ask", 2, input="q")]]
        steps = steps[::2] if n == depth - 1 else [*steps, [assistant_message("2")]]
        a = agent(f"Outer {n}", *steps, [assistant_message("done")], tools=[a.as_tool("ask", "")])
    state = (await Runner.run(a, "go")).to_state()
    getattr(state, verdict)(state.get_interruptions()[0], True)
    if elsewhere:
        state = await RunState.from_string(a, state.to_string())
    result = await Runner.run(a, state)
    assert (result.interruptions, result.final_output) == ([], "done")
    assert world.done == (["pay(1)", "pay(1)"] if verdict == "approve" else [])


@pytest.mark.parametrize("keep", ["nothing", "no tools", "all", "the pair"])
@pytest.mark.parametrize("how", ["plain", "streamed", "elsewhere"])
async def test_a_filter_leaves_no_saved_call_without_output(how: str, keep: str) -> None:
    """The calls of a turn that waited are in the session before a filter is asked; so their outputs come there too."""
    filters: dict[str, Callable[[HandoffInputData], HandoffInputData]] = {
        "nothing": lambda data: data.clone(new_items=()),
        "no tools": remove_all_tools,
        "all": lambda data: data,
        "the pair": lambda data: data.clone(new_items=data.new_items[:1] + data.new_items[2:3]),
    }
    world = World(gated=True)
    session: Any = ListSession()
    b = agent("B", [assistant_message("end")])
    a = agent("A", [call("pay", text="1"), call("transfer_to_b")], tools=[world.tool("pay")])
    a.handoffs = [handoff(b, input_filter=filters[keep])]
    state = (await Runner.run(a, "go", session=session)).to_state()
    state.approve(state.get_interruptions()[0])
    result = await resume(a, state, how, session=session)
    said = [(item.get("type", "message"), item.get("call_id")) for item in session.items]
    ids = ["call_pay_1", "call_transfer_to_b_1"]
    assert said[:3] == [("message", None), *(("function_call", one) for one in ids)]
    assert sorted(said[3:5]) == [("function_call_output", one) for one in ids]
    assert said[5:] == [("message", None)]
    assert (result.final_output, world.done) == ("end", ["pay(1)"])
