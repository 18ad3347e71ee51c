"""MCP servers: a process of its own and streamable HTTP, both real; policies, filters, and what a run makes of it."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")
uvicorn = pytest.importorskip("uvicorn")

from antiphon.exceptions import AgentsException, MCPToolCancellationError, ModelBehaviorError, UserError  # noqa: E402  # after it is known to be there
from antiphon.mcp import (  # noqa: E402  # as above
    MCPServer,
    MCPServerSse,
    MCPServerStdio,
    MCPServerStreamableHttp,
    MCPToolCustomDataContext,
    create_static_tool_filter,
    function_tools,
    to_function_tool,
)
from antiphon.run.agent import Agent  # noqa: E402  # as above
from antiphon.run.config import RunConfig  # noqa: E402  # as above
from antiphon.run.context import RunContextWrapper  # noqa: E402  # as above
from antiphon.run.handoffs import handoff  # noqa: E402  # as above
from antiphon.run.items import ToolCallOutputItem  # noqa: E402  # as above
from antiphon.run.runner import Runner  # noqa: E402  # as above
from antiphon.testing import ScriptedModel, assistant_message, function_call  # noqa: E402  # as above
from antiphon.tool_context import ToolContext  # noqa: E402  # as above
from antiphon.tools.function_tool import function_tool  # noqa: E402  # as above

from .mcp_server import PIXEL, make_server  # noqa: E402  # as above

PROGRAM = str(Path(__file__).with_name("mcp_server.py"))
SECRET = "geheim-4711"
TOOLS = ["add", "words", "picture", "several", "free", "fail", "slow", "meta", "grow", "steps", "crash"]
CONTEXT = RunContextWrapper("ctx")
AGENT = Agent[Any](name="a")
PICTURE = {"type": "image", "image_url": f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"}


def stdio(log: Path, **options: Any) -> MCPServerStdio:
    return MCPServerStdio({"command": sys.executable, "args": [PROGRAM, str(log)]}, **options)


@asynccontextmanager
async def http(notes: list[str], key: str = SECRET) -> AsyncIterator[str]:
    """The URL of a server on loopback that wants a key in a header."""
    app = make_server(notes.append).streamable_http_app()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and dict(scope["headers"]).get(b"x-key") != key.encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await app(scope, receive, send)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(guarded, log_level="critical", timeout_graceful_shutdown=1))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            await task


class Opened:
    """A connected server, and what its slow tool noted."""

    def __init__(self, server: Any, notes: Callable[[], list[str]]) -> None:
        self.server, self.notes = server, notes


@pytest.fixture(params=["stdio", "http"])
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    async with AsyncExitStack() as stack:
        if request.param == "stdio":
            log = tmp_path / "log"
            server: Any = await stack.enter_async_context(stdio(log))
            yield Opened(server, lambda: log.read_text().split()[1:])
        else:
            notes: list[str] = []
            url = await stack.enter_async_context(http(notes))
            made = MCPServerStreamableHttp({"url": url, "headers": {"x-key": SECRET}})
            yield Opened(await stack.enter_async_context(made), lambda: notes)


async def until(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true")


def call(name: str, arguments: str) -> ToolContext[Any]:
    return ToolContext("ctx", None, name, "call_1", arguments)


async def invoke(server: MCPServer, name: str, arguments: str, **options: Any) -> Any:
    tools = {tool.name: tool for tool in await function_tools([server], CONTEXT, AGENT, **options)}
    return await tools[name].on_invoke_tool(call(name, arguments), arguments)


# --- both transports -------------------------------------------------------------------------------------------------

OUTPUTS: list[tuple[str, str, Any]] = [
    ("add", '{"a": 1}', {"type": "text", "text": "2"}),
    ("words", '{"text": "é\\u2028"}', {"type": "text", "text": "é\u2028"}),
    ("picture", "{}", PICTURE),
    ("several", "", [{"type": "text", "text": "one"}, PICTURE]),
    ("fail", '{"text": "x"}', {"type": "text", "text": "Error executing tool fail"}),
]


async def test_tools_are_listed_and_called(opened: Opened) -> None:
    assert [tool.name for tool in await opened.server.list_tools()] == TOOLS
    for name, arguments, output in OUTPUTS:
        assert await invoke(opened.server, name, arguments) == output
    bad = await invoke(opened.server, "add", "{")
    assert bad.startswith("An error occurred while running the tool. Please try again. Error: Invalid JSON input")


async def test_a_cancelled_call_is_cancelled_in_the_server(opened: Opened) -> None:
    task = asyncio.create_task(invoke(opened.server, "slow", "{}"))
    await until(lambda: opened.notes() == ["started"])
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: opened.notes() == ["started", "cancelled"])
    assert await invoke(opened.server, "add", '{"a": 1}') == {"type": "text", "text": "2"}


async def test_what_a_tool_says_of_its_progress_is_an_event_of_the_run(opened: Opened) -> None:
    model = ScriptedModel([[function_call("steps", "{}", call_id="c1")], [assistant_message("done")]])
    result = Runner.run_streamed(Agent[Any](name="a", mcp_servers=[opened.server], model=model), "go")
    events = [event async for event in result.stream_events() if event.type == "tool_progress_stream_event"]
    assert [event.data for event in events] == [
        {"progress": float(number), "total": 2.0, "message": f"step {number}"} for number in (1, 2)
    ]


async def test_many_calls_at_once(opened: Opened) -> None:
    outputs = await asyncio.gather(*(invoke(opened.server, "add", f'{{"a": {n}, "b": {n}}}') for n in range(20)))
    assert outputs == [{"type": "text", "text": str(2 * n)} for n in range(20)]


async def test_a_request_that_takes_too_long(tmp_path: Path) -> None:
    async with stdio(tmp_path / "log", client_session_timeout_seconds=0.3) as server:
        told = await invoke(server, "slow", "{}")
        assert "could not call the tool 'slow'" in told
        with pytest.raises(AgentsException, match="could not call the tool 'slow'"):
            await invoke(server, "slow", "{}", failure_error_function=None)


async def test_it_is_closed_by_another_task_than_it_was_opened_by(tmp_path: Path) -> None:
    server = stdio(tmp_path / "log")
    await asyncio.gather(asyncio.create_task(server.connect()), asyncio.create_task(server.connect()))
    assert len(await server.list_tools()) == len(TOOLS)
    await asyncio.create_task(server.cleanup())
    await server.cleanup()
    with pytest.raises(UserError, match="is not connected"):
        await server.list_tools()
    await server.connect()
    assert await invoke(server, "add", '{"a": 1}') == {"type": "text", "text": "2"}
    await server.cleanup()
    assert (tmp_path / "log").read_text().split() == ["run", "run"]


# --- what may go wrong -----------------------------------------------------------------------------------------------


async def test_a_server_that_cannot_be_reached_is_named_and_its_secrets_are_not(tmp_path: Path) -> None:
    async with http([], key="another") as url:
        credentials = url.replace("//", f"//me:{SECRET}@") + f"?key={SECRET}"
        wrong: list[MCPServer] = [
            MCPServerStreamableHttp({"url": credentials, "headers": {"x-key": SECRET}}),
            MCPServerStreamableHttp({"url": f"http://127.0.0.1:1/mcp?key={SECRET}", "headers": {"x-key": SECRET}}),
            MCPServerSse({"url": f"http://127.0.0.1:1/sse?key={SECRET}"}),
            MCPServerStdio({"command": str(tmp_path / "none"), "args": [SECRET]}),
            MCPServerStdio({"command": sys.executable, "args": ["-c", "pass", SECRET]}),
        ]
        for server in wrong:
            with pytest.raises(UserError, match="cannot be reached") as caught:
                await server.connect()
            assert SECRET not in f"{caught.value} {server.name}"
            assert (caught.value.__cause__, caught.value.__context__) == (None, None)
            await server.cleanup()


async def test_connecting_can_be_given_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    silent = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    server = MCPServerStdio({"command": sys.executable, "args": ["-c", silent]})
    task = asyncio.create_task(server.connect())
    await until(lambda: pid.exists() and pid.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


async def test_a_lost_connection_is_made_anew_where_a_call_may_be_repeated(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with stdio(log, max_retry_attempts=1, retry_backoff_seconds_base=0) as server:
        with pytest.raises(AgentsException, match="Connection closed"):
            await server.call_tool("crash", {})
        assert await invoke(server, "add", '{"a": 1}') == {"type": "text", "text": "2"}
        assert log.read_text().split() == ["run", "run", "run"]
        with pytest.raises(AgentsException, match="Connection closed"):
            await server.call_tool("crash", {})
        outputs = await asyncio.gather(*(invoke(server, "add", '{"a": 1}') for _ in range(4)))
        assert outputs == [{"type": "text", "text": "2"}] * 4
        assert log.read_text().split() == ["run"] * 5
    async with stdio(log) as server:
        with pytest.raises(AgentsException, match="Connection closed"):
            await server.call_tool("crash", {})
        with pytest.raises(AgentsException, match="Connection closed"):
            await server.list_tools()


async def test_a_request_may_be_repeated_until_it_succeeds(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with stdio(log, max_retry_attempts=-1, retry_backoff_seconds_base=0) as server:
        calling = asyncio.create_task(server.call_tool("crash", {}))
        await until(lambda: log.read_text().split() == ["run"] * 4)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
    with pytest.raises(UserError, match="max_retry_attempts is -2"):
        stdio(log, max_retry_attempts=-2)


async def test_no_process_is_left_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = f"import os, runpy, sys; open({str(pid)!r}, 'w').write(str(os.getpid())); sys.argv = ['s', {str(tmp_path / 'log')!r}]; runpy.run_path({PROGRAM!r}, run_name='__main__')"
    async with MCPServerStdio({"command": sys.executable, "args": ["-c", program]}) as server:
        await server.list_tools()
        os.kill(int(pid.read_text()), 0)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), signal.SIGKILL)


# --- a server of the caller's own ------------------------------------------------------------------------------------


class Own(MCPServer):
    """Answers from what it is given."""

    def __init__(self, called: str, tools: list[Any], answer: Callable[[], Any] | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.called, self.tools, self.answer, self.calls = called, tools, answer, list[Any]()

    @property
    def name(self) -> str:
        return self.called

    async def connect(self) -> None: ...
    async def cleanup(self) -> None: ...
    async def list_prompts(self) -> Any: ...
    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[Any]:
        return self.tools

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        self.calls.append((tool_name, arguments, meta))
        made = None if self.answer is None else self.answer()
        return await made if asyncio.iscoroutine(made) else made


def tool(name: str, schema: dict[str, Any] | None = None, **more: Any) -> Any:
    from mcp.types import Tool

    return Tool(name=name, input_schema={"type": "object"} if schema is None else schema, **more)


def result(*content: Any, structured: Any = None, is_error: bool = False) -> Any:
    from mcp.types import CallToolResult, TextContent

    texts: list[Any] = [TextContent(type="text", text=one) if isinstance(one, str) else one for one in content]
    return CallToolResult(content=texts, structured_content=structured, is_error=is_error)


def link() -> Any:
    from mcp.types import ResourceLink

    return ResourceLink(type="resource_link", name="r", uri="file:///r")


RESULTS: list[tuple[Any, bool, Any]] = [
    (lambda: result("t"), False, {"type": "text", "text": "t"}),
    (lambda: result("t", structured={"a": 1}), False, {"type": "text", "text": "t"}),
    (lambda: result("t", structured={"a": 1}), True, '{"a": 1}'),
    (lambda: result("why", structured={"a": 1}, is_error=True), True, {"type": "text", "text": "why"}),
    (lambda: result(structured={"a": 1}), False, '{"a": 1}'),
    (lambda: result(), False, ""),
    (lambda: result(link()), False, {"type": "text", "text": '{"name":"r","uri":"file:///r","type":"resource_link"}'}),
]


@pytest.mark.parametrize(("answer", "structured", "output"), RESULTS)
async def test_results(answer: Any, structured: bool, output: Any) -> None:
    server = Own("s", [tool("t")], answer, use_structured_content=structured)
    assert await invoke(server, "t", '{"a": 1}') == output
    assert server.calls == [("t", {"a": 1}, None)]


async def _cancel() -> None:
    raise asyncio.CancelledError


async def test_a_call_that_cancels_itself_is_an_error_of_the_tool() -> None:
    server = Own("s", [tool("t")], _cancel)
    assert "was cancelled, and not by the run" in await invoke(server, "t", "{}")
    with pytest.raises(MCPToolCancellationError):
        await invoke(server, "t", "{}", failure_error_function=None)


async def test_who_says_what_the_model_is_told_of_a_failure() -> None:
    async def broken() -> None:
        raise RuntimeError("down")

    inherits = Own("s", [tool("t")], broken)
    decides = Own("s", [tool("t")], broken, failure_error_function=lambda ctx, error: f"own: {error}")
    raises = Own("s", [tool("t")], broken, failure_error_function=None)
    assert (
        await invoke(inherits, "t", "{}", failure_error_function=lambda ctx, error: f"agent: {error}") == "agent: down"
    )
    assert await invoke(decides, "t", "{}", failure_error_function=None) == "own: down"
    with pytest.raises(RuntimeError, match="down"):
        await invoke(raises, "t", "{}")
    with pytest.raises(ModelBehaviorError, match="Invalid JSON input for tool t") as caught:
        await invoke(raises, "t", f'{{"{SECRET}')
    assert SECRET not in str(caught.value)


async def test_the_meta_of_a_call(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def resolve(context: Any) -> dict[str, Any]:
        seen.append((context.run_context.context, context.server_name, context.tool_name, context.arguments))
        return {"who": "me"}

    async with stdio(tmp_path / "log", name="real", tool_meta_resolver=resolve) as server:
        assert await invoke(server, "meta", "{}") == {"type": "text", "text": "me"}
    assert seen == [("ctx", "real", "meta", {})]
    wrong = Own("s", [tool("t")], tool_meta_resolver=lambda context: "no")
    assert "a dict or None is expected" in await invoke(wrong, "t", "{}")


@pytest.mark.parametrize(
    ("resolved", "meta"),
    [
        (None, {"of": {"tool": [1]}}),
        ({}, {"of": {"tool": [1]}}),
        ({"who": "me", "of": 1}, {"who": "me", "of": {"tool": [1]}}),
    ],
)
async def test_what_a_tool_carries_goes_with_each_call(resolved: Any, meta: dict[str, Any]) -> None:
    carries = tool("t", _meta={"of": {"tool": [1]}})
    server = Own("s", [carries], tool_meta_resolver=lambda context: resolved)
    await invoke(server, "t", "{}")
    server.calls[0][2]["of"]["tool"].append(2)  # a server that changes what it is given does not change the tool
    await invoke(server, "t", "{}")
    assert server.calls[1] == ("t", {}, meta)


async def test_data_of_a_result_is_kept_beside_the_output() -> None:
    from mcp.types import CallToolResult, TextContent

    seen: list[Any] = []

    def keep(about: MCPToolCustomDataContext) -> dict[str, Any] | None:
        seen.append((about.run_context.context, about.server_name, about.tool_name, about.tool_display_name))
        seen.append((about.arguments, about.structured_content, about.is_error, about.tool_output))
        return None if about.result_meta is None else {"chart": about.result_meta["chart"]}

    def answer() -> Any:
        text = TextContent(type="text", text="t")
        return CallToolResult(content=[text], structured_content={"a": 1}, _meta={"chart": "line"})

    server = Own("s", [tool("t!")], answer, custom_data_extractor=keep)
    model = ScriptedModel([[function_call("t_", {"b": 2}, call_id="c1")], [assistant_message("done")]])
    result = await Runner.run(Agent(name="a", model=model, mcp_servers=[server]), "go", context="ctx")
    (output,) = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert output.custom_data == {"chart": "line"}
    assert seen == [("ctx", "s", "t!", "t_"), ({"b": 2}, {"a": 1}, False, {"type": "text", "text": "t"})]
    assert "chart" not in str(model.last_call.input)


async def test_a_listing_has_no_more_pages_than_it_may() -> None:
    endless = {"command": sys.executable, "args": [PROGRAM.replace("mcp_server", "hostile_mcp_server"), "endless"]}
    async with MCPServerStdio(endless, max_list_pages=2) as server:
        with pytest.raises(AgentsException, match="more than 2 pages of tools"):
            await server.list_tools()


async def test_listings_are_read_to_their_end() -> None:
    paged = {"command": sys.executable, "args": [PROGRAM.replace("mcp_server", "hostile_mcp_server"), "pages"]}
    async with MCPServerStdio(paged, max_list_pages=3) as server:
        prompts = await server.list_prompts()
        tools = await server.list_tools()
    assert [one.name for one in prompts.prompts] == ["prompts 1", "prompts 2", "prompts 3"]
    assert (prompts.next_cursor, prompts.meta["page"]) == (None, 1)
    assert [one.name for one in tools] == ["tools 1", "tools 2", "tools 3"]


def test_a_number_of_pages_is_one_or_more() -> None:
    with pytest.raises(UserError, match="max_list_pages is 0"):
        MCPServerStreamableHttp({"url": "http://127.0.0.1:1/mcp"}, max_list_pages=0)


# --- schemas and names -----------------------------------------------------------------------------------------------

OPEN = {"type": "object", "properties": {"a": {"type": "object"}}}
PLAIN = {"type": "object", "properties": {"a": {"type": "string"}}, "required": []}
CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
BARE = {"type": "object", "properties": {}}
SCHEMAS: list[tuple[dict[str, Any], bool, dict[str, Any], bool]] = [
    (PLAIN, False, PLAIN, False),
    (PLAIN, True, CLOSED, True),
    (OPEN, True, OPEN, False),
    ({"type": "object"}, False, BARE, False),
    ({"type": "object"}, True, BARE, False),
    ({}, True, {**BARE, "required": [], "additionalProperties": False}, True),
    ({"anyOf": [{"type": "null"}]}, True, {"anyOf": [{"type": "null"}], "properties": {}}, False),
]


@pytest.mark.parametrize(("given", "strict", "schema", "is_strict"), SCHEMAS)
def test_schemas(given: dict[str, Any], strict: bool, schema: dict[str, Any], is_strict: bool) -> None:
    made = to_function_tool(tool("t", given), Own("s", []), strict)
    assert (made.params_json_schema, made.strict_json_schema) == (schema, is_strict)


def test_what_a_tool_says_of_itself() -> None:
    from mcp.types import ToolAnnotations

    hints = ToolAnnotations(title="Annotated", read_only_hint=True)
    titled = to_function_tool(tool("t", description="Does it.", title="Title", annotations=hints), Own("s", []))
    annotated = to_function_tool(tool("t", annotations=hints), Own("s", []))
    nameless = to_function_tool(tool("t"), Own("s", []))
    assert [(one.description, one.title) for one in (titled, annotated, nameless)] == [
        ("Does it.", "Title"),
        ("Annotated", "Annotated"),
        ("", None),
    ]
    assert titled.origin.to_json_dict() == {"type": "mcp", "mcp_server_name": "s"}
    assert titled.mcp_annotations == hints
    assert titled.mcp_annotations is not hints
    assert nameless.mcp_annotations is None


async def test_tools_of_several_servers_have_different_names() -> None:
    servers = [Own("one", [tool("t")]), Own("two/2", [tool("t"), tool("x" * 80)])]
    with pytest.raises(UserError, match="several MCP servers have a tool t"):
        await function_tools(servers, CONTEXT, AGENT)
    named = await function_tools(servers, CONTEXT, AGENT, include_server_in_tool_names=True)
    assert [one.name for one in named][:2] == ["mcp_one__t", "mcp_two_2__t"]
    assert len(named[2].name) == 64
    await named[1].on_invoke_tool(call(named[1].name, "{}"), "{}")
    assert servers[1].calls == [("t", {}, None)]


# tools by server -> the names of those that get a digest, without it; the others keep theirs
NAMED: list[tuple[list[tuple[str, list[str]]], list[str], list[str]]] = [
    ([("a b", ["t"]), ("a_b", ["t"]), ("c", ["t"])], ["mcp_a_b__t", "mcp_a_b__t"], ["mcp_c__t"]),
    ([("a", ["t", "t!"])], ["mcp_a__t", "mcp_a__t"], []),
    ([("same", ["t"]), ("same", ["t", "u"])], ["mcp_same__t", "mcp_same__t"], ["mcp_same__u"]),
    ([("own", ["t"])], ["mcp_own__t"], []),
    ([("on", ["t"])], ["mcp_on__t"], []),
    ([("over", ["t"])], ["mcp_over__t"], []),
]


@pytest.mark.parametrize(("tools", "digested", "plain"), NAMED)
async def test_names_with_the_server_are_never_one_anothers(
    tools: list[tuple[str, list[str]]], digested: list[str], plain: list[str]
) -> None:
    def own() -> None: ...

    async def named(servers: list[tuple[str, list[str]]]) -> dict[tuple[str, str], list[str]]:
        agent = Agent[Any](
            name="a",
            tools=[function_tool(own, name_override="mcp_own__t")],
            handoffs=[handoff(AGENT, tool_name_override="mcp_on__t"), Agent(name="b")],
            mcp_servers=[Own(name, [tool(one) for one in names]) for name, names in servers],
            mcp_config={"include_server_in_tool_names": True},
        )
        agent.handoffs.append(handoff(AGENT, tool_name_override="mcp_over__t"))
        made = await agent.get_mcp_tools(CONTEXT)
        found: dict[tuple[str, str], list[str]] = {}
        for (server, name), one in zip(((s, n) for s, names in servers for n in names), made, strict=True):
            found.setdefault((server, name), []).append(one.name)
        return found

    names = await named(tools)
    flat = [one for several in names.values() for one in several]
    assert len(set(flat)) == len(flat)
    assert sorted(name[:-9] for name in flat if re.search("_[0-9a-f]{8}$", name)) == digested
    assert [name for name in flat if not re.search("_[0-9a-f]{8}$", name)] == plain
    turned = await named([(server, [*reversed(several)]) for server, several in reversed(tools)])
    assert {key: sorted(several) for key, several in turned.items()} == {
        key: sorted(several) for key, several in names.items()
    }


# --- filters and the cache -------------------------------------------------------------------------------------------


async def _filter(context: Any, one: Any) -> bool:
    return bool(context.agent is AGENT and context.server_name == "named" and one.name in ("add", "meta"))


FILTERS: list[tuple[Any, list[str]]] = [
    (None, TOOLS),
    (create_static_tool_filter(), TOOLS),
    (create_static_tool_filter(["add", "words"], ["words"]), ["add"]),
    (create_static_tool_filter(blocked_tool_names=TOOLS[1:]), ["add"]),
    (create_static_tool_filter(allowed_tool_names=[]), []),
    (_filter, ["add", "meta"]),
    (lambda context, one: one.name == "add", ["add"]),
]


async def test_filters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with stdio(tmp_path / "log", name="named") as server:
        for tool_filter, names in FILTERS:
            server.tool_filter = tool_filter
            assert [one.name for one in await server.list_tools(CONTEXT, AGENT)] == names
        with pytest.raises(UserError, match="needs a run_context and an agent"):
            await server.list_tools()

        def broken(context: Any, one: Any) -> bool:
            raise RuntimeError(SECRET)

        server.tool_filter = broken
        assert await server.list_tools(CONTEXT, AGENT) == []
        server.tool_filter = lambda context, one: one.name == "add" or broken(context, one)
        with caplog.at_level("ERROR", logger="antiphon"):
            assert [one.name for one in await server.list_tools(CONTEXT, AGENT)] == ["add"]
        assert "RuntimeError for the tool words" in caplog.text
        assert SECRET not in caplog.text


async def test_a_kept_list_is_asked_for_again_when_the_server_says_so(tmp_path: Path) -> None:
    async with stdio(tmp_path / "log", cache_tools_list=True) as server:
        first = await server.list_tools()
        await asyncio.sleep(0.3)  # until the server knows that somebody listens
        assert [one.name for one in await server.list_tools()] == [one.name for one in first]
        assert server.cached_tools is not None
        kept = server.cached_tools
        assert (await server.list_tools())[0] is kept[0]
        await server.call_tool("grow", {})
        await until(lambda: server.cached_tools is None)
        assert [one.name for one in await server.list_tools()] == [*TOOLS, "grown"]
        server.invalidate_tools_cache()
        assert server.cached_tools is None


# --- approvals -------------------------------------------------------------------------------------------------------


async def _only_add(context: Any, agent: Any, one: Any) -> bool:
    return bool(context is CONTEXT and agent is AGENT and one.name == "add")


POLICIES: list[tuple[Any, bool, bool]] = [
    (None, False, False),
    ("always", True, True),
    ("never", False, False),
    (True, True, True),
    ({"add": "always", "words": "never"}, True, False),
    ({"add": True}, True, False),
    ({"always": {"tool_names": ["add"]}, "never": {"tool_names": ["words"]}}, True, False),
    (_only_add, True, False),
    (lambda context, agent, one: one.name == "add", True, False),
]


@pytest.mark.parametrize(("policy", "add", "words"), POLICIES)
async def test_which_tools_are_asked_about(policy: Any, add: bool, words: bool) -> None:
    server = Own("s", [tool("add"), tool("words")], require_approval=policy)
    asked: list[bool] = []
    for one in await function_tools([server], CONTEXT, AGENT):
        needs = one.needs_approval
        made: Any = needs(CONTEXT, {}, "c") if callable(needs) else needs
        asked.append(await made if asyncio.iscoroutine(made) else made)
    assert asked == [add, words]
    without_agent = to_function_tool(tool("add"), server).needs_approval
    assert without_agent is (True if callable(policy) else add)


@pytest.mark.parametrize(
    "policy",
    [
        "sometimes",
        3,
        {"add": "sometimes"},
        {"always": {"tool_names": "add"}},
        {"always": {"tool_names": ["a"]}, "never": {"tool_names": ["a"]}},
        {"always": {"tool_names": ["a"]}, "often": {}},
    ],
)
def test_a_policy_that_is_none_is_refused(policy: Any) -> None:
    with pytest.raises(UserError, match="require_approval"):
        Own("s", [], require_approval=policy)


# --- runs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_run_calls_a_tool_after_approval(streamed: bool, tmp_path: Path) -> None:
    async with stdio(tmp_path / "log", require_approval={"add": "always"}) as server:
        steps = [
            [function_call("add", '{"a": 1}', call_id="c1"), function_call("words", '{"text": "w"}', call_id="c2")],
            [assistant_message("done")],
        ]
        agent = Agent[Any](name="a", mcp_servers=[server], model=ScriptedModel(steps))

        async def run(given: Any) -> Any:
            if not streamed:
                return await Runner.run(agent, given, run_config=RunConfig(tracing_disabled=True))
            result = Runner.run_streamed(agent, given, run_config=RunConfig(tracing_disabled=True))
            async for _ in result.stream_events():
                pass
            return result

        paused = await run("go")
        (pending,) = paused.interruptions
        assert (paused.final_output, pending.tool_name) == (None, "add")
        state = paused.to_state()
        state.approve(pending)
        done = await run(state)
        outputs = {item.call_id: item.output for item in done.new_items if isinstance(item, ToolCallOutputItem)}
        assert done.final_output == "done"
        assert outputs == {"c1": {"type": "text", "text": "2"}, "c2": {"type": "text", "text": "w"}}
