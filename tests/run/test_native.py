"""What native Responses models answer with: the names of its items, what is run of it, and what the model is sent."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from antiphon.computer import AsyncComputer
from antiphon.exceptions import ModelBehaviorError, UserError
from antiphon.items import ToolCallItem
from antiphon.run import RunConfig, Runner
from antiphon.run_state import RunState
from antiphon.stream.chunk import fields
from antiphon.stream_events import RunItemStreamEvent
from antiphon.testing import assistant_message, function_call
from antiphon.tool import (
    CodeInterpreterTool,
    ComputerTool,
    HostedMCPTool,
    LocalShellTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    ToolOrigin,
    ToolOriginType,
    ToolSearchTool,
    WebSearchTool,
    function_tool,
)
from antiphon.tool_guardrails import ToolGuardrailFunctionOutput, tool_input_guardrail, tool_output_guardrail

from .scenarios import World, agent


class Screen(AsyncComputer):
    """A computer that notes what is done with it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    async def screenshot(self) -> str:
        self.done.append("screenshot")
        return "PNG"

    async def click(self, x: int, y: int, button: Any) -> None:
        self.done.append(f"click {x},{y} {button}")

    async def double_click(self, x: int, y: int) -> None:
        self.done.append("double_click")

    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None:
        self.done.append("scroll")

    async def type(self, text: str) -> None:
        self.done.append(f"type {text}")

    async def wait(self) -> None:
        self.done.append("wait")

    async def move(self, x: int, y: int) -> None:
        self.done.append("move")

    async def keypress(self, keys: list[str]) -> None:
        self.done.append(f"keypress {keys}")

    async def drag(self, path: list[tuple[int, int]]) -> None:
        self.done.append(f"drag {path}")


CLICK = {"type": "click", "x": 1, "y": 2, "button": "left"}
SHOT = {"type": "screenshot"}
DRAG = {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}


def computer_call(**asked: Any) -> dict[str, Any]:
    held = {"type": "computer_call", "id": "cu_1", "call_id": "c1", "status": "completed", "pending_safety_checks": []}
    return {**held, **asked}


MCP = {"type": "mcp", "server_label": "docs", "server_url": "https://example.com/mcp"}
PROGRAM = {"type": "program", "id": "pr_1", "call_id": "p1", "code": "look()", "fingerprint": "f"}
PROGRAM_OUTPUT = {"type": "program_output", "id": "po_1", "call_id": "p1", "result": "7", "status": "completed"}
TOOL_SEARCH = {
    "type": "tool_search_call",
    "id": "ts_1",
    "call_id": None,
    "execution": "server",
    "status": "completed",
    "arguments": {"q": "crm"},
}
TOOL_SEARCH_OUTPUT = {
    "type": "tool_search_output",
    "id": "to_1",
    "call_id": None,
    "execution": "server",
    "status": "completed",
    "tools": [],
}
WEB_SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x", "queries": ["x"]},
}
MCP_LIST = {"type": "mcp_list_tools", "id": "ml_1", "server_label": "docs", "tools": []}
MCP_CALL = {
    "type": "mcp_call",
    "id": "mc_1",
    "server_label": "docs",
    "name": "find",
    "arguments": "{}",
    "output": "found",
}
CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "status": "completed",
    "code": "1",
    "container_id": "k",
    "outputs": [],
}
IMAGE = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "PNG"}
COMPACTION = {"type": "compaction", "id": "cm_1", "encrypted_content": "…"}
HOSTED = [
    WebSearchTool(),
    HostedMCPTool(MCP),
    CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}}),
    ToolSearchTool(),
    ProgrammaticToolCallingTool(),
]
DONE = assistant_message("done")

# what the model answers with -> the events' names, the items' types
SETTLED: list[tuple[str, list[Any], list[str], list[str]]] = [
    (
        "web search",
        [WEB_SEARCH, DONE],
        ["tool_called", "message_output_created"],
        ["tool_call_item", "message_output_item"],
    ),
    ("code", [CODE, DONE], ["tool_called", "message_output_created"], ["tool_call_item", "message_output_item"]),
    ("an image", [IMAGE, DONE], ["tool_called", "message_output_created"], ["tool_call_item", "message_output_item"]),
    (
        "a hosted MCP server",
        [MCP_LIST, MCP_CALL, DONE],
        ["mcp_list_tools", "tool_called", "message_output_created"],
        ["mcp_list_tools_item", "tool_call_item", "message_output_item"],
    ),
    (
        "tool search",
        [TOOL_SEARCH, TOOL_SEARCH_OUTPUT, DONE],
        ["tool_search_called", "tool_search_output_created", "message_output_created"],
        ["tool_search_call_item", "tool_search_output_item", "message_output_item"],
    ),
    (
        "a program, its MCP call and its output",
        [PROGRAM, {**MCP_CALL, "caller": {"type": "program", "caller_id": "p1"}}, PROGRAM_OUTPUT, DONE],
        ["tool_called", "tool_called", "tool_output", "message_output_created"],
        ["tool_call_item", "tool_call_item", "tool_call_output_item", "message_output_item"],
    ),
    (
        "compaction",
        [COMPACTION, DONE],
        ["message_output_created"],
        ["compaction_item", "message_output_item"],
    ),
]


@pytest.mark.parametrize(("output", "names", "types"), [one[1:] for one in SETTLED], ids=[one[0] for one in SETTLED])
async def test_what_needs_nothing(output: list[Any], names: list[str], types: list[str]) -> None:
    hosted = [HostedMCPTool({**MCP, "allowed_callers": ["direct", "programmatic"]}), *HOSTED]
    result = Runner.run_streamed(agent("A", output, tools=hosted), "go")
    events = [event.name async for event in result.stream_events() if isinstance(event, RunItemStreamEvent)]
    assert events == names
    assert [item.type for item in result.new_items] == types
    assert result.final_output == "done"
    docs = ToolOrigin(ToolOriginType.MCP, mcp_server_name="docs")
    calls = [item for item in result.new_items if isinstance(item, ToolCallItem)]
    assert [item.tool_origin for item in calls] == [
        docs if fields(item.raw_item).get("type") == "mcp_call" else None for item in calls
    ]


COMPUTERS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("preview", {"action": CLICK}, ["click 1,2 left", "screenshot"]),
    ("preview, a screenshot", {"action": SHOT}, ["screenshot"]),
    ("several", {"actions": [CLICK, DRAG, SHOT]}, ["click 1,2 left", "drag [(1, 2), (3, 4)]", "screenshot"]),
    ("several, the last is none", {"actions": [SHOT, CLICK]}, ["screenshot", "click 1,2 left", "screenshot"]),
]


@pytest.mark.parametrize(("asked", "done"), [one[1:] for one in COMPUTERS], ids=[one[0] for one in COMPUTERS])
async def test_computers(asked: dict[str, Any], done: list[str]) -> None:
    screen = Screen()
    a = agent("A", [computer_call(**asked)], [DONE], tools=[ComputerTool(screen)])
    result = Runner.run_streamed(a, "go")
    events = [event.name async for event in result.stream_events() if isinstance(event, RunItemStreamEvent)]
    assert events == ["tool_called", "tool_output", "message_output_created"]
    assert screen.done == done
    assert a.model.last_call.input[-1] == {
        "call_id": "c1",
        "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64,PNG"},
        "type": "computer_call_output",
    }
    assert result.new_items[0].tool_name == "computer_use_preview"


async def test_safety_checks() -> None:
    check = {"id": "s1", "code": "malicious", "message": "careful"}
    call = computer_call(action=CLICK, pending_safety_checks=[check])
    with pytest.raises(UserError, match="on_safety_check"):
        await Runner.run(agent("A", [call], tools=[ComputerTool(Screen())]), "go")
    tool: ComputerTool[Any] = ComputerTool(Screen(), on_safety_check=lambda data: False)
    with pytest.raises(UserError, match="not acknowledged"):
        await Runner.run(agent("A", [call], tools=[tool]), "go")
    a = agent("A", [call], [DONE], tools=[ComputerTool(Screen(), on_safety_check=lambda data: True)])
    await Runner.run(a, "go")
    assert a.model.last_call.input[-1]["acknowledged_safety_checks"] == [check]


async def test_an_unknown_action() -> None:
    with pytest.raises(ModelBehaviorError, match="'fly'"):
        await Runner.run(agent("A", [computer_call(action={"type": "fly"})], tools=[ComputerTool(Screen())]), "go")


async def test_shells() -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    old = {"type": "local_shell_call", "id": "ls_1", "call_id": "c1", "status": "completed", "action": action}
    a = agent("A", [old], [DONE], tools=[LocalShellTool(lambda request: "files")])
    await Runner.run(a, "go")
    assert a.model.last_call.input[-1] == {"type": "local_shell_call_output", "call_id": "c1", "output": "files"}

    def executor(request: Any) -> str:
        raise OSError("no such command")

    new = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["x"], "max_output_length": 7}}
    a = agent("A", [new], [DONE], tools=[ShellTool(executor)])
    await Runner.run(a, "go")
    assert a.model.last_call.input[-1] == {
        "type": "shell_call_output",
        "call_id": "c1",
        "output": [{"stdout": "no such", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}],
        "max_output_length": 7,
    }


async def test_a_shell_of_ones_own() -> None:
    class Mine(ShellTool):
        pass

    new = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["x"]}}
    mine = Mine(lambda request: "files", on_approval=lambda ctx, item: {"approve": False}, needs_approval=True)
    a = agent("A", [new], [DONE], tools=[mine])
    config = RunConfig(tool_error_formatter=lambda args: f"{args.tool_type} {args.tool_name}: no")
    await Runner.run(a, "go", run_config=config)
    told = a.model.last_call.input[-1]
    assert (told["type"], told["output"][0]["stderr"]) == ("shell_call_output", "shell shell: no")


async def test_a_hosted_shell_runs_nothing_here() -> None:
    tool = ShellTool(environment={"type": "container_auto"})
    call = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "action": {"commands": ["x"]}}
    output = {"type": "shell_call_output", "id": "so_1", "call_id": "c1", "output": [], "created_by": "server"}
    a = agent("A", [call, output], [DONE], tools=[tool])
    result = await Runner.run(a, "go")
    assert [item.type for item in result.new_items] == [
        "tool_call_item",
        "tool_call_output_item",
        "message_output_item",
    ]
    assert "created_by" not in a.model.last_call.input[-1]


async def test_a_program_calls_a_function() -> None:
    """The output of the call passes its caller on."""
    world = World()
    tool = world.tool("look", {"n": 1})
    tool.allowed_callers = ["programmatic"]
    by_program = function_call("look", {"text": "x"}, call_id="c1")
    by_program.caller = {"type": "program", "caller_id": "p1"}  # type: ignore[attr-defined]  # as the API sends it
    tools = [tool, ProgrammaticToolCallingTool()]
    a = agent("A", [PROGRAM, by_program], [PROGRAM_OUTPUT, DONE], tools=tools)
    await Runner.run(a, "go")
    assert a.model.last_call.input[-1] == {
        "call_id": "c1",
        "output": '{"n": 1}',
        "type": "function_call_output",
        "caller": {"type": "program", "caller_id": "p1"},
    }
    for output, message in [
        ([function_call("look", {}, call_id="c2")], "caller direct"),
        ([by_program], "was not begun"),
        ([PROGRAM, PROGRAM_OUTPUT, {**PROGRAM_OUTPUT, "id": "po_2"}], "already ended"),
    ]:
        with pytest.raises(ModelBehaviorError, match=message):
            await Runner.run(agent("A", output, tools=tools), "go")
    with pytest.raises(ModelBehaviorError, match="without a programmatic_tool_calling tool"):
        await Runner.run(agent("A", [PROGRAM], tools=[tool]), "go")


def _by_program(name: str) -> Any:
    call = function_call(name, {}, call_id="c1")
    call.caller = {"type": "program", "caller_id": "p1"}  # type: ignore[attr-defined]  # as the API sends it
    return call


@pytest.mark.parametrize("kept", [{"previous_response_id": "resp_0"}, {"conversation_id": "conv_0"}])
async def test_a_program_that_the_server_knows(kept: dict[str, str]) -> None:
    """Where the server keeps a history, a program may have been begun in it; one that ended here has ended."""
    world = World(gated=True)
    tool = world.tool("look")
    tool.allowed_callers = ["programmatic"]
    made: dict[str, Any] = {"tools": [tool, ProgrammaticToolCallingTool()]}
    a = agent("A", [_by_program("look")], [PROGRAM_OUTPUT, DONE], **made)
    state = (await Runner.run(a, "go", **kept)).to_state()  # type: ignore[arg-type]  # names of the runner's options
    state = await RunState.from_string(a, state.to_string())
    state.approve(state.get_interruptions()[0])
    assert (await Runner.run(a, state)).final_output == "done"
    again = agent("A", [PROGRAM_OUTPUT, {**PROGRAM_OUTPUT, "id": "po_2"}], **made)
    with pytest.raises(ModelBehaviorError, match="already ended"):
        await Runner.run(again, "go", **kept)  # type: ignore[arg-type]  # as above


@tool_input_guardrail
def refuses(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("refused")


@tool_output_guardrail
def withholds(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("withheld")


async def _breaks() -> Any:
    raise ValueError("broken")


async def _waits() -> Any:
    await asyncio.sleep(60)


async def _works() -> Any:
    return {"n": 1}


COUNT = {"type": "object", "properties": {"n": {"type": "integer"}}}
FAILURES: list[tuple[Any, dict[str, Any], str]] = [
    (_works, {"tool_input_guardrails": [refuses]}, "refused"),
    (_works, {"tool_output_guardrails": [withholds]}, "withheld"),
    (_works, {"needs_approval": True}, "Tool execution was not approved."),
    (_breaks, {"failure_error_function": lambda context, error: f"told: {error}"}, "told: broken"),
    (_waits, {"timeout": 0.01}, "Tool 'look' timed out after 0.01 seconds."),
]


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize(("function", "options", "words"), FAILURES, ids=[one[2] for one in FAILURES])
async def test_a_program_reads_of_a_failure_as_of_an_output(
    function: Any, options: dict[str, Any], words: str, typed: bool
) -> None:
    """A program that reads the JSON of a tool is told of its failures in JSON."""
    schema = {"output_json_schema": COUNT} if typed else {}
    callers: Any = {"allowed_callers": ["programmatic"], "name_override": "look", **schema}
    tools = [function_tool(function, **callers, **options), ProgrammaticToolCallingTool()]
    a = agent("A", [PROGRAM, _by_program("look")], [PROGRAM_OUTPUT, DONE], tools=tools)
    result = await Runner.run(a, "go")
    if result.interruptions:
        state = result.to_state()
        state.reject(state.get_interruptions()[0])
        await Runner.run(a, state)
    (output,) = [one["output"] for one in a.model.last_call.input if one.get("type") == "function_call_output"]
    assert (json.loads(output) if typed else output) == ({"error": words} if typed else words)


REQUEST = {"type": "mcp_approval_request", "id": "mr_1", "server_label": "docs", "name": "wipe", "arguments": "{}"}


@pytest.mark.parametrize("verdict", [True, False])
async def test_mcp_approvals_by_a_function(verdict: bool) -> None:
    tool = HostedMCPTool(MCP, on_approval_request=lambda request: {"approve": verdict, "reason": "no"})
    a = agent("A", [REQUEST], [DONE], tools=[tool])
    result = Runner.run_streamed(a, "go")
    events = [event.name async for event in result.stream_events() if isinstance(event, RunItemStreamEvent)]
    assert events == ["mcp_approval_requested", "mcp_approval_response", "message_output_created"]
    expected = {"type": "mcp_approval_response", "approval_request_id": "mr_1", "approve": verdict}
    assert a.model.last_call.input[-1] == (expected if verdict else {**expected, "reason": "no"})


@pytest.mark.parametrize("verdict", [True, False])
async def test_mcp_approvals_by_hand(verdict: bool) -> None:
    a = agent("A", [REQUEST], [DONE], tools=[HostedMCPTool(MCP)])
    first = await Runner.run(a, "go")
    assert [(item.name, item.qualified_name) for item in first.interruptions] == [("wipe", "docs.wipe")]
    state = await RunState.from_string(a, first.to_state().to_string())
    item = state.get_interruptions()[0]
    if verdict:
        state.approve(item)
    else:
        state.reject(item, rejection_message="no")
    result = await Runner.run(a, state)
    assert [one.type for one in result.new_items] == [
        "mcp_approval_request_item",
        "mcp_approval_response_item",
        "message_output_item",
    ]
    assert a.model.last_call.input[-1]["approve"] is verdict


MISSING = [
    (computer_call(action=CLICK), "without a computer tool"),
    ({"type": "shell_call", "call_id": "c", "action": {"commands": ["x"]}}, "without a shell tool"),
    ({"type": "apply_patch_call", "call_id": "c", "operation": {}}, "without an apply_patch tool"),
    ({"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": ""}, "Tool sql not found in agent A"),
    (REQUEST, "MCP server label docs not found"),
]


@pytest.mark.parametrize(("output", "message"), MISSING, ids=[one["type"] for one, _ in MISSING])
async def test_a_tool_that_is_not_there(output: Any, message: str) -> None:
    with pytest.raises(ModelBehaviorError, match=message):
        await Runner.run(agent("A", [output]), "go")


async def test_a_structured_output_of_parts() -> None:
    from antiphon.tool import ToolOutputImage, ToolOutputText

    @function_tool
    def look() -> list[Any]:
        return [ToolOutputText(text="a cat"), ToolOutputImage(image_url="data:,")]

    a = agent("A", [function_call("look", {}, call_id="c1")], [DONE], tools=[look])
    await Runner.run(a, "go")
    assert a.model.last_call.input[-1]["output"] == [
        {"type": "input_text", "text": "a cat"},
        {"type": "input_image", "image_url": "data:,"},
    ]
