"""Function tools: calls, errors, timeouts, outputs, what the API is told of each kind of tool."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from openai.types.responses import ResponseCustomToolCall
from pydantic import BaseModel, TypeAdapter

from antiphon.agent_output import AgentOutputSchema
from antiphon.decorators import tool
from antiphon.exceptions import ModelBehaviorError, ToolTimeoutError, UserError
from antiphon.models.params import create_params
from antiphon.models.settings import ModelSettings
from antiphon.run.agent import Agent
from antiphon.run.context import RunContextWrapper
from antiphon.run.items import ItemHelpers, ToolCallOutputItem
from antiphon.run.runner import Runner
from antiphon.run_state import RunState
from antiphon.testing import ScriptedModel, assistant_message, function_call
from antiphon.tool import (
    ApplyPatchTool,
    CodeInterpreterTool,
    ComputerTool,
    CustomTool,
    FileSearchTool,
    FunctionTool,
    HostedMCPTool,
    ImageGenerationTool,
    LocalShellTool,
    ProgrammaticToolCallingTool,
    ShellTool,
    ToolOrigin,
    ToolOriginType,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolSearchTool,
    WebSearchTool,
    function_tool,
    invoke_function_tool,
    tool_namespace,
)
from antiphon.tool_context import ToolContext

SECRET = "geheim-4711"
FAILED = "An error occurred while running the tool. Please try again. Error: "


class Weather(BaseModel):
    city: str
    degrees: int


@function_tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@tool(name_override="sum", strict_mode=False)
async def add_all(a: int, *more: int, **named: int) -> int:
    return a + sum(more) + sum(named.values())


@function_tool
def whoami(ctx: ToolContext[str]) -> str:
    return f"{ctx.context}:{ctx.tool_name}:{ctx.tool_call_id}"


@function_tool
async def run_context(ctx: RunContextWrapper[str], suffix: str) -> str:
    return ctx.context + suffix


@function_tool
def broken(a: int) -> str:
    raise ValueError(f"no {a}")


@function_tool
def stops() -> int:
    return next(iter(()))


class Adder:
    async def __call__(self, a: int) -> int:
        return a + 1


def call(tool: FunctionTool, arguments: str, *, context: Any = "ctx") -> ToolContext[Any]:
    return ToolContext(context, None, tool.name, "call_1", arguments)


async def invoke(tool: FunctionTool, arguments: str) -> Any:
    return await invoke_function_tool(function_tool=tool, context=call(tool, arguments), arguments=arguments)


CALLS: list[tuple[str, FunctionTool, str, Any]] = [
    ("sync", add, '{"a": 1, "b": 5}', 6),
    ("default", add, '{"a": 1}', 3),
    ("coerced", add, '{"a": "1"}', 3),
    ("async, starred", add_all, '{"a": 1, "more": [2, 3], "named": {"x": 4}}', 10),
    ("call context", whoami, "{}", "ctx:whoami:call_1"),
    ("call context, no arguments", whoami, "", "ctx:whoami:call_1"),
    ("run context", run_context, '{"suffix": "!"}', "ctx!"),
    ("object", function_tool(Adder(), name_override="adder"), '{"a": 1}', 2),
    ("partial", function_tool(partial(Adder().__call__), name_override="p"), '{"a": 1}', 2),
    ("stops", stops, "{}", FAILED + "the function raised StopIteration"),
    ("raises", broken, '{"a": 3}', FAILED + "no 3"),
    ("missing", add, "{}", FAILED + "Invalid JSON input for tool add: a: Field required"),
    (
        "no JSON",
        add,
        '{"a": ' + SECRET,
        FAILED + "Invalid JSON input for tool add: Expecting value at character 6",
    ),
    ("no object", add, '["a"]', FAILED + "Invalid JSON input for tool add: expected a JSON object"),
    (
        "wrong type",
        add,
        f'{{"a": "{SECRET}"}}',
        FAILED
        + "Invalid JSON input for tool add: a: Input should be a valid integer, "
        + "unable to parse string as an integer",
    ),
    (
        "unknown key of **named",
        add_all,
        '{"a": 1, "b": 2}',
        FAILED + "Invalid JSON input for tool sum: b: Extra inputs are not permitted",
    ),
]


@pytest.mark.parametrize(("name", "tool", "arguments", "output"), CALLS, ids=[one[0] for one in CALLS])
async def test_a_call(name: str, tool: FunctionTool, arguments: str, output: Any) -> None:
    assert await tool.on_invoke_tool(call(tool, arguments), arguments) == output
    assert await invoke(tool, arguments) == output


async def test_sync_functions_leave_the_event_loop_free() -> None:
    @function_tool
    def where() -> int:
        return threading.get_ident()

    assert await invoke(where, "{}") != threading.get_ident()


# --- errors ----------------------------------------------------------------------------------------------------------


async def _sorry(ctx: RunContextWrapper[Any], error: Exception) -> str:
    return f"sorry, {ctx.context}: {error}"


@pytest.mark.parametrize("function", [lambda ctx, error: f"sorry, {ctx.context}: {error}", _sorry])
async def test_an_error_function_says_what_the_model_is_told(function: Any) -> None:
    def fail() -> None:
        raise RuntimeError("broken")

    failing = function_tool(fail, failure_error_function=function)
    assert await invoke(failing, "{}") == "sorry, ctx: broken"


async def test_without_an_error_function_errors_are_raised_and_hold_no_arguments() -> None:
    def fail(a: int) -> None:
        raise RuntimeError("broken")

    failing = function_tool(fail, failure_error_function=None)
    with pytest.raises(RuntimeError, match="broken"):
        await invoke(failing, '{"a": 1}')
    for arguments in (f'{{"a": "{SECRET}"}}', f'{{"a": {SECRET}'):
        with pytest.raises(ModelBehaviorError) as caught:
            await failing.on_invoke_tool(call(failing, ""), arguments)
        assert SECRET not in str(caught.value)
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)


async def test_cancellation_is_no_error_of_the_tool() -> None:
    @function_tool
    async def wait() -> None:
        await asyncio.Event().wait()

    task = asyncio.create_task(invoke(wait, "{}"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


# --- timeouts --------------------------------------------------------------------------------------------------------


async def _forever() -> str:
    await asyncio.Event().wait()
    return "never"


async def _own_timeout() -> str:
    raise TimeoutError("mine")


async def test_a_tool_that_takes_too_long() -> None:
    told = function_tool(_forever, timeout=0.01)
    own_words = function_tool(_forever, timeout=0.01, timeout_error_function=lambda ctx, error: f"late: {error}")
    raising = function_tool(_forever, timeout=0.01, timeout_behavior="raise_exception")
    late = "Tool '_forever' timed out after 0.01 seconds."
    assert [await invoke(told, "{}"), await invoke(own_words, "{}")] == [late, f"late: {late}"]
    with pytest.raises(ToolTimeoutError) as caught:
        await invoke(raising, "{}")
    assert (caught.value.tool_name, caught.value.timeout_seconds) == ("_forever", 0.01)


async def test_a_timeout_of_its_own_is_an_error_of_the_tool() -> None:
    raising = function_tool(_own_timeout, timeout=9, failure_error_function=None)
    with pytest.raises(TimeoutError, match="mine"):
        await invoke(raising, "{}")


TIMEOUTS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"timeout": "1"}, TypeError, "number"),
    ({"timeout": True}, TypeError, "number"),
    ({"timeout": 0}, ValueError, "more than 0"),
    ({"timeout": float("inf")}, ValueError, "finite"),
    ({"timeout_behavior": "other"}, ValueError, "error_as_result or raise_exception"),
    ({"timeout_error_function": "words"}, TypeError, "callable"),
]


@pytest.mark.parametrize(("options", "error", "words"), TIMEOUTS)
def test_timeouts_are_checked(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        function_tool(_forever, **options)


def test_a_sync_function_has_no_timeout() -> None:
    def sync() -> None: ...

    with pytest.raises(ValueError, match="cannot be stopped"):
        function_tool(sync, timeout=1)


# --- outputs ---------------------------------------------------------------------------------------------------------

PARTS: list[tuple[Any, Any]] = [
    ("text", "text"),
    (3, "3"),
    (None, "None"),
    ({"a": 1}, "{'a': 1}"),
    ([], "[]"),
    (ToolOutputText(text="t"), [{"type": "input_text", "text": "t"}]),
    ({"type": "text", "text": "t"}, [{"type": "input_text", "text": "t"}]),
    (
        [
            ToolOutputImage(image_url="https://x/i.png", detail="low"),
            {"type": "file", "file_id": "f1", "filename": "a"},
        ],
        [
            {"type": "input_image", "image_url": "https://x/i.png", "detail": "low"},
            {"type": "input_file", "file_id": "f1", "filename": "a"},
        ],
    ),
    ([ToolOutputText(text="t"), 3], "[ToolOutputText(type='text', text='t'), 3]"),
    ({"type": "image"}, "{'type': 'image'}"),
]


@pytest.mark.parametrize(("output", "payload"), PARTS)
def test_outputs_for_the_model(output: Any, payload: Any) -> None:
    item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
    assert ItemHelpers.tool_call_output_item(item, output) == {
        "type": "function_call_output",
        "call_id": "c1",
        "output": payload,
    }


@pytest.mark.parametrize(("kind", "values"), [(ToolOutputImage, {}), (ToolOutputFileContent, {"filename": "a"})])
def test_parts_need_a_source(kind: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="has"):
        kind(**values)


async def test_a_declared_output_type_is_checked() -> None:
    def look(city: str) -> Any:
        return {"city": city, "degrees": "3"} if city else {"degrees": SECRET}

    typed = function_tool(look, output_type=Weather, failure_error_function=None)
    assert typed.output_json_schema == AgentOutputSchema(Weather).json_schema()
    assert await invoke(typed, '{"city": "Bonn"}') == Weather(city="Bonn", degrees=3)
    with pytest.raises(UserError, match="does not match its output type: city: Field required") as caught:
        await invoke(typed, '{"city": ""}')
    assert SECRET not in str(caught.value)


def _weather() -> Weather:
    return Weather(city="Bonn", degrees=3)


def _number() -> int:
    return 3


def test_a_tool_for_programs_has_its_return_annotation() -> None:
    assert function_tool(_weather).output_json_schema is None
    typed = function_tool(_weather, allowed_callers=["programmatic"])
    assert typed.to_responses_tool() == {
        "type": "function",
        "name": "_weather",
        "description": "",
        "parameters": {
            "title": "_weather_args",
            "type": "object",
            "properties": {},
            "additionalProperties": False,
            "required": [],
        },
        "strict": True,
        "allowed_callers": ["programmatic"],
        "output_schema": AgentOutputSchema(Weather).json_schema(),
    }


WRONG_TOOLS: list[tuple[str, Callable[[], Any], str]] = [
    ("callers", lambda: function_tool(_number, allowed_callers=["everyone"]), "'direct', 'programmatic' or both"),  # type: ignore[list-item]  # what is refused
    ("callers twice", lambda: function_tool(_number, allowed_callers=["direct", "direct"]), "or both"),
    ("no callers", lambda: function_tool(_number, allowed_callers=[]), "or both"),
    ("no object", lambda: function_tool(_number, allowed_callers=["programmatic"]), "JSON object"),
    ("no object", lambda: function_tool(_number, output_json_schema={"type": "string"}), "JSON object"),
    ("two types", lambda: function_tool(_weather, output_type=Weather, output_json_schema={}), "give one"),
    ("namespace", lambda: tool_namespace(name=" ", description="d", tools=[]), "neither is empty"),
    ("namespace", lambda: tool_namespace(name="n", description=None, tools=[]), "neither is empty"),
    ("namespace", lambda: tool_namespace(name="n", description="d", tools=["x"]), "str"),  # type: ignore[list-item]  # what is refused
    ("namespace", lambda: tool_namespace(name="add", description="d", tools=[add]), "name of its namespace"),
    ("shell", lambda: ShellTool(), "no executor"),
    ("shell", lambda: ShellTool(executor=lambda _: "", environment={"type": "container_auto"}), "hosted"),
    ("shell", lambda: ShellTool(environment={"type": "container_auto"}, needs_approval=True), "hosted"),
    ("search", lambda: FileSearchTool(["v"], max_num_results=99).to_responses_tool(), "1 to 50"),
]


@pytest.mark.parametrize(("name", "make", "words"), WRONG_TOOLS)
def test_what_no_tool_can_be_is_refused(name: str, make: Callable[[], Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


# --- what the API is told --------------------------------------------------------------------------------------------


class Screen:
    """Stands for a computer: nothing acts on it here."""


class Editor:
    def create_file(self, operation: Any) -> None: ...
    def update_file(self, operation: Any) -> None: ...
    def delete_file(self, operation: Any) -> None: ...


TOLD: list[tuple[Any, dict[str, Any]]] = [
    (
        FileSearchTool(["v1"], 3, True, {"ranker": "auto"}),
        {
            "type": "file_search",
            "vector_store_ids": ["v1"],
            "max_num_results": 3,
            "ranking_options": {"ranker": "auto"},
        },
    ),
    (
        WebSearchTool(search_context_size="low", external_web_access=False),
        {
            "type": "web_search",
            "filters": None,
            "user_location": None,
            "search_context_size": "low",
            "external_web_access": False,
        },
    ),
    (
        CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}}),
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ),
    (ImageGenerationTool({"type": "image_generation"}), {"type": "image_generation"}),
    (
        HostedMCPTool({"type": "mcp", "server_label": "l", "server_url": "https://x", "allowed_callers": ["direct"]}),
        {"type": "mcp", "server_label": "l", "server_url": "https://x", "allowed_callers": ["direct"]},
    ),
    (ToolSearchTool(execution="client"), {"type": "tool_search", "execution": "client"}),
    (ProgrammaticToolCallingTool(), {"type": "programmatic_tool_calling"}),
    (ComputerTool(Screen()), {"type": "computer"}),  # type: ignore[type-var]  # what it is does not matter here
    (LocalShellTool(lambda _: ""), {"type": "local_shell"}),
    (ShellTool(lambda _: ""), {"type": "shell", "environment": {"type": "local"}}),
    (ApplyPatchTool(Editor()), {"type": "apply_patch"}),
    (
        CustomTool("c", "d", lambda ctx, text: text, format={"type": "text"}, defer_loading=True),
        {"type": "custom", "name": "c", "description": "d", "format": {"type": "text"}, "defer_loading": True},
    ),
]


@pytest.mark.parametrize(("tool", "told"), TOLD, ids=[type(one[0]).__name__ for one in TOLD])
def test_what_the_api_is_told(tool: Any, told: dict[str, Any]) -> None:
    assert create_params(tools=[tool])["tools"] == [told]


def test_a_namespace() -> None:
    (made,) = tool_namespace(name=" math ", description="Sums.", tools=[add])
    assert (made.qualified_name, add.qualified_name) == ("math.add", "add")
    inner = add.to_responses_tool()
    assert made.to_responses_tool() == {
        "type": "namespace",
        "name": "math",
        "description": "Sums.",
        "tools": [inner],
    }


def test_tools_of_one_namespace_are_offered_together() -> None:
    one, other = tool_namespace(name="n", description="d", tools=[add, whoami])
    (found, alone) = create_params(tools=[one, broken, other])["tools"]
    assert found["tools"] == [add.to_responses_tool(), whoami.to_responses_tool()]
    assert (found["name"], alone) == ("n", broken.to_responses_tool())
    assert one.to_responses_tool()["tools"] == [add.to_responses_tool()]


def test_what_hosted_tools_add_to_the_answer() -> None:
    tools = [FileSearchTool(["v"], include_search_results=True), WebSearchTool(search_content_types=["image"])]
    asked = create_params(model_settings=ModelSettings(response_include=["x"]), tools=[*tools, tools[0]])["include"]
    assert asked == ["x", "file_search_call.results", "web_search_call.results"]
    assert "include" not in create_params(tools=[FileSearchTool(["v"]), add])


@pytest.mark.parametrize(
    "origin",
    [
        ToolOrigin(ToolOriginType.FUNCTION),
        ToolOrigin(ToolOriginType.MCP, mcp_server_name="s"),
        ToolOrigin(ToolOriginType.AGENT_AS_TOOL, agent_name="a", agent_tool_name="t"),
    ],
)
def test_origins_survive_json(origin: ToolOrigin) -> None:
    assert ToolOrigin.from_json_dict(TypeAdapter(dict[str, str]).validate_python(origin.to_json_dict())) == origin


@pytest.mark.parametrize("data", [None, {}, {"type": "other"}, {"type": ["mcp"]}, "mcp"])
def test_what_is_no_origin(data: Any) -> None:
    assert ToolOrigin.from_json_dict(data) is None


def test_the_context_of_a_call_shares_that_of_the_run() -> None:
    run = RunContextWrapper("ctx")
    item = {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}", "namespace": "math"}
    made = ToolContext.from_agent_context(run, "c", item)
    made.usage.requests += 1
    assert (run.usage.requests, made.tool_name, made.tool_arguments, made.qualified_tool_name) == (
        1,
        "add",
        "{}",
        "math.add",
    )
    with pytest.raises(ValueError, match="tool_name"):
        ToolContext.from_agent_context(run, "c")


# --- data beside an output -------------------------------------------------------------------------------------------


class _Editor:
    def create_file(self, operation: Any) -> str:
        return "out"

    delete_file = update_file = create_file


def _beside(kind: str, extract: Callable[[Any], Any]) -> Agent[Any]:
    """An agent that calls one tool, which keeps data beside its output."""
    if kind == "function":
        made: Any = function_tool(lambda: "out", name_override="one", custom_data_extractor=extract)
        call: Any = function_call("one", {}, call_id="c")
    elif kind == "custom":
        made = CustomTool("one", "d", lambda context, text: "out", custom_data_extractor=extract)
        call = ResponseCustomToolCall(type="custom_tool_call", id="ct", call_id="c", name="one", input="")
    else:
        made = ApplyPatchTool(_Editor(), custom_data_extractor=extract)
        removal = {"type": "delete_file", "path": "a"}
        call = {"type": "apply_patch_call", "id": "ap", "call_id": "c", "operation": removal, "status": "completed"}
    model = ScriptedModel([[call], [assistant_message("done")]])
    return Agent[Any](name="a", model=model, tools=[made])


BESIDE = pytest.mark.parametrize("kind", ["function", "custom", "apply_patch"])
KEPT: list[tuple[Any, Any]] = [
    ({"chart": {"rows": [1, 2.5, None]}}, {"chart": {"rows": [1, 2.5, None]}}),
    ({"pair": (1, 2)}, {"pair": [1, 2]}),
    ({}, {}),
    (None, None),
]


@BESIDE
@pytest.mark.parametrize(("told", "kept"), KEPT)
async def test_data_beside_an_output_is_kept_and_not_told(kind: str, told: Any, kept: Any) -> None:
    def extract(about: Any) -> Any:
        about.raw_item["chart"] = "of the extractor"  # what it is given is not what the model is told
        return told

    a = _beside(kind, extract)
    result = await Runner.run(a, "go")
    (output,) = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert output.custom_data == kept
    assert "chart" not in str([output.raw_item, output.to_input_item(), a.model.last_call.input])  # type: ignore[union-attr]  # it is scripted
    state = await RunState.from_string(a, result.to_state().to_string())
    (restored,) = [item for item in state.new_items if isinstance(item, ToolCallOutputItem)]
    assert restored.custom_data == kept


@BESIDE
@pytest.mark.parametrize("told", [{"a": object()}, {"a": float("nan")}, {"a": float("-inf")}, ["a"], 3, "ab"])
async def test_data_beside_an_output_that_no_state_could_hold_is_refused(kind: str, told: Any) -> None:
    with pytest.raises(UserError, match="a custom_data_extractor returned what is no JSON object"):
        await Runner.run(_beside(kind, lambda about: told), "go")
