"""Hostile and odd input to the parts that a run is made of: what each of them says, keeps, or refuses."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import AliasChoices, BaseModel, Field, RootModel

from antiphon.agent_output import AgentOutputSchema
from antiphon.errors import ServerFailed
from antiphon.exceptions import AgentsException, ToolTimeoutError, UserError
from antiphon.function_schema import function_schema
from antiphon.guardrail import InputGuardrail, OutputGuardrail
from antiphon.handoffs import HandoffInputData, handoff, nest_handoff_history
from antiphon.memory import SessionSettings, SQLiteSession
from antiphon.models import FallbackModel, ModelSettings, ModelTracing
from antiphon.run.agent import Agent
from antiphon.run.awaiting import settled
from antiphon.run.context import RunContextWrapper
from antiphon.run.history import PREAMBLE
from antiphon.run.items import ReasoningItem
from antiphon.run.runner import Runner
from antiphon.run.tracing import CAPTURE, Tracing
from antiphon.strict_schema import ensure_strict_json_schema
from antiphon.testing import InvalidModelStep, ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from antiphon.tool import FunctionTool, function_tool, invoke_function_tool
from antiphon.tool_context import ToolContext
from antiphon.tool_guardrails import (
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
    ToolOutputGuardrail,
    ToolOutputGuardrailData,
)

FAILED = "An error occurred while running the tool. Please try again. Error: "
ASKED: tuple[Any, ...] = (None, "hi", ModelSettings(), [], None, [], ModelTracing.DISABLED)
AGENT = Agent[Any](name="a")


def call(tool: FunctionTool, arguments: str = "{}") -> ToolContext[Any]:
    return ToolContext(None, tool_name=tool.name, tool_call_id="c", tool_arguments=arguments)


async def invoke(tool: FunctionTool, arguments: str = "{}") -> Any:
    return await invoke_function_tool(function_tool=tool, context=call(tool, arguments), arguments=arguments)


class Speechless(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


# --- what is made a tool ---------------------------------------------------------------------------------------------


def base(a: int, b: int, c: int = 3) -> int:
    """Adds.

    Args:
        a: The first.
    """
    return a + b + c


class Caller:
    """The object."""

    def __call__(self, a: int) -> int:
        """The call."""
        return a

    def method(self, a: int) -> int:
        return a


def maybe_context(ctx: RunContextWrapper[Any] | None, a: int) -> str:
    return f"{type(ctx).__name__} {a}"


def endless(a: float = float("nan"), b: float = float("inf"), c: float = 1.0) -> None: ...


def test_who_is_called_is_who_is_described() -> None:
    found = [(tool.name, tool.description) for tool in map(function_tool, (Caller(), partial(base, b=1)))]
    assert found == [("Caller", "The call."), ("base", "Adds.")]
    properties = function_tool(partial(base, b=1)).params_json_schema["properties"]
    assert properties["a"] == {"title": "A", "type": "integer", "description": "The first."}


async def test_a_context_that_may_be_none_is_a_context() -> None:
    tool = function_tool(maybe_context)
    assert list(tool.params_json_schema["properties"]) == ["a"]
    assert await invoke(tool, '{"a": 1}') == "ToolContext 1"


def test_a_default_that_no_request_can_hold_is_left_out() -> None:
    properties = function_tool(endless).params_json_schema["properties"]
    assert [one.get("default") for one in properties.values()] == [None, None, 1.0]
    json.dumps(properties, allow_nan=False)


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def keyword_context(*, ctx: RunContextWrapper[Any], a: int) -> None: ...


NO_TOOLS: list[tuple[str, Callable[[], Any], str]] = [
    ("lambda", lambda: function_tool(lambda a: a), "name_override"),
    ("generator", lambda: function_tool(generator), "ctx.report"),
    ("async generator", lambda: function_tool(async_generator), "ctx.report"),
    ("unbound method", lambda: function_tool(Caller.method), r"function_tool\(thing.method\)"),
    ("no signature", lambda: function_tool(max), "wrap it in a function"),
    ("a text", lambda: function_tool("add"), "what can be called"),
    ("context by keyword", lambda: function_tool(keyword_context), "passed by position"),
    ("style of docstrings", lambda: function_schema(base, "rest"), "google, numpy, sphinx"),
    ("output without a schema", lambda: AgentOutputSchema(Callable[[], int]), "has no JSON schema"),
    ("output that is not there", lambda: AgentOutputSchema("Nowhere"), "has no JSON schema"),
]


@pytest.mark.parametrize(("name", "make", "words"), NO_TOOLS, ids=[one[0] for one in NO_TOOLS])
def test_what_no_call_can_reach_is_refused_when_it_is_made(name: str, make: Callable[[], Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        make()


async def test_a_lambda_with_a_name_and_a_bound_method_are_tools() -> None:
    tools = [function_tool(lambda a: a, name_override="same"), function_tool(Caller().method)]
    assert [await invoke(tool, '{"a": 1}') for tool in tools] == [1, 1]


DOCSTRINGS: list[tuple[str, str, str, dict[str, str]]] = [
    ("one field", "Do.\n\nMore.", "Do.\n\nMore.\n\n:param a: x", {"a": "x"}),
    ("one field with a type", "Do.", "Do.\n:param int a: x", {"a": "x"}),
    ("stars", "Do.", "Do.\n\n:param a: x\n:param \\*rest: y\n:param \\**more: z", {"a": "x", "rest": "y", "more": "z"}),
    ("keywords", "Do.", "Do.\n\nArgs:\n    a: x\n\nKeyword Args:\n    b: y", {"a": "x", "b": "y"}),
    (
        "others",
        "Do.",
        "Do.\n\nParameters\n----------\na : int\n    x\n\nOther Parameters\n----------------\nb : int\n    y",
        {"a": "x", "b": "y"},
    ),
]


@pytest.mark.parametrize(("name", "said", "text", "told"), DOCSTRINGS, ids=[one[0] for one in DOCSTRINGS])
def test_a_docstring_is_read_whole(name: str, said: str, text: str, told: dict[str, str]) -> None:
    def documented(a: int, *rest: int, b: int = 1, **more: int) -> None: ...

    documented.__doc__ = text
    schema = function_schema(documented, strict_json_schema=False)
    properties = schema.params_json_schema["properties"]
    described = {name: one["description"] for name, one in properties.items() if "description" in one}
    assert (schema.description, described) == (said, told)


def clashing(json: int, parameter_0: int, parameter_1: int, copy: int) -> list[int]:
    return [json, parameter_0, parameter_1, copy]


def renamed(
    a: Annotated[int, Field(validation_alias="first")],
    b: Annotated[int, Field(validation_alias=AliasChoices("second", "b"))],
    c: Annotated[int, Field(alias="third")],
) -> list[int]:
    """Renames.

    Args:
        a: one
        b: two
        c: three
    """
    return [a, b, c]


NAMES: list[tuple[Callable[..., Any], list[str]]] = [
    (clashing, ["json", "parameter_0", "parameter_1", "copy"]),
    (renamed, ["first", "second", "third"]),
]


@pytest.mark.parametrize(("function", "names"), NAMES)
async def test_each_argument_gets_to_its_parameter(function: Callable[..., Any], names: list[str]) -> None:
    tool = function_tool(function)
    properties = tool.params_json_schema["properties"]
    assert list(properties) == names
    if function is renamed:
        assert [one["description"] for one in properties.values()] == ["one", "two", "three"]
    given = {name: number for number, name in enumerate(names)}
    assert await invoke(tool, json.dumps(given)) == list(given.values())


# --- what a tool does ------------------------------------------------------------------------------------------------


@function_tool
async def cancels_itself() -> None:
    task = asyncio.create_task(asyncio.sleep(60))
    task.cancel()
    await task


@function_tool
def cancelled_in_a_thread() -> None:
    raise asyncio.CancelledError("by a library")


@function_tool
def speechless() -> None:
    raise Speechless


@function_tool
def number(a: int) -> int:
    return a


SAID: list[tuple[FunctionTool, str, str]] = [
    (cancels_itself, "{}", "Tool execution cancelled."),
    (cancelled_in_a_thread, "{}", "by a library"),
    (speechless, "{}", "(a value of the type Speechless, which has no text: RuntimeError)"),
    (number, '{"a": ' + "9" * 5000 + "}", "Invalid JSON input for tool number: a number has too many digits"),
    (number, "[" * 100_000, "Invalid JSON input for tool number: too deep"),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), SAID, ids=[f"{one[0].name} {one[1][:6]}" for one in SAID])
async def test_the_model_is_told_what_went_wrong(tool: FunctionTool, arguments: str, words: str) -> None:
    assert await invoke(tool, arguments) == FAILED + words


async def test_a_cancelled_tool_without_an_error_function_raises() -> None:
    @function_tool(failure_error_function=None)
    async def cancelled() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await invoke(cancelled)


async def _fails_late() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise ValueError("while it was cleaned up")


async def _gives_what_it_has() -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "half"
    return "all"


async def test_a_tool_whose_time_is_over_has_timed_out_whatever_it_raises_then() -> None:
    told = function_tool(_fails_late, timeout=0.01)
    assert await invoke(told) == "Tool '_fails_late' timed out after 0.01 seconds."
    for options in ({}, {"failure_error_function": None}):
        raised = function_tool(_fails_late, timeout=0.01, timeout_behavior="raise_exception", **options)
        with pytest.raises(ToolTimeoutError):
            await invoke(raised)
    assert await invoke(function_tool(_gives_what_it_has, timeout=0.01)) == "half"


OUTPUTS: list[tuple[str, Any, str]] = [
    ("no kind of part", {"type": ["text"]}, "{'type': ['text']}"),
    ("a dict for a kind", [{"type": {}}], "[{'type': {}}]"),
    ("a number without text", 10**5000, "(a value of the type int, which has no text: ValueError)"),
    ("an error without text", Speechless(), "(a value of the type Speechless, which has no text: RuntimeError)"),
]


@pytest.mark.parametrize(("name", "output", "text"), OUTPUTS, ids=[one[0] for one in OUTPUTS])
@pytest.mark.parametrize("streamed", [False, True])
async def test_any_output_goes_to_the_model(name: str, output: Any, text: str, streamed: bool) -> None:
    @function_tool
    def odd() -> Any:
        return output

    model = ScriptedModel([[function_call("odd", {}, call_id="c")], [assistant_message("done")]])
    agent = Agent[Any](name="a", model=model, tools=[odd])
    if streamed:
        result = Runner.run_streamed(agent, "go")
        async for _ in result.stream_events():
            pass
        assert result.final_output == "done"
    else:
        assert (await Runner.run(agent, "go")).final_output == "done"
    assert model.last_call is not None
    assert model.last_call.input[-1] == {"type": "function_call_output", "call_id": "c", "output": text}


# --- guardrails ------------------------------------------------------------------------------------------------------

UNSAID: list[Any] = [None, True, {"tripwire_triggered": False}, "allow"]
UNKNOWN: list[Any] = [{"type": "deny"}, {}, None, "allow", {"type": ["allow"]}]


@pytest.mark.parametrize("found", UNSAID, ids=repr)
async def test_a_guardrail_that_says_nothing_lets_nothing_pass(found: Any) -> None:
    context = RunContextWrapper[Any](None)
    data = call(number)
    checks = [
        InputGuardrail[Any](lambda *_: found, "check").run(AGENT, "in", context),
        OutputGuardrail[Any](lambda *_: found, "check").run(context, AGENT, "out"),
        ToolInputGuardrail[Any](lambda _: found, "check").run(ToolInputGuardrailData(data, AGENT)),
        ToolOutputGuardrail[Any](lambda _: found, "check").run(ToolOutputGuardrailData(data, AGENT, "out")),
    ]
    for check in checks:
        with pytest.raises(UserError, match=f"'check' returned {type(found).__name__}"):
            await check


@pytest.mark.parametrize("behavior", UNKNOWN, ids=repr)
async def test_a_behavior_that_is_none_lets_nothing_pass(behavior: Any) -> None:
    said = ToolGuardrailFunctionOutput(behavior=behavior)
    with pytest.raises(UserError, match="allow, reject_content, raise_exception"):
        await ToolInputGuardrail[Any](lambda _: said).run(ToolInputGuardrailData(call(number), AGENT))


# --- schemas ---------------------------------------------------------------------------------------------------------


def _shared(depth: int, width: int) -> dict[str, Any]:
    """Return a schema whose parts are one object each level: small in memory, and huge as a tree."""
    held: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        held = {"type": "object", "properties": {f"p{number}": held for number in range(width)}}
    return held


def _circle() -> dict[str, Any]:
    held: dict[str, Any] = {"type": "object", "properties": {}}
    held["properties"] |= {"left": held, "right": held}
    return held


NOT_STRICT: list[tuple[str, dict[str, Any], str]] = [
    ("shared parts", _shared(30, 4), "too many parts"),
    ("a circle", _circle(), "too many parts"),
    ("required alone", {"type": "object", "required": ["a"]}, "a is required and no property"),
    ("required more", {"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}, "b is required"),
]


@pytest.mark.parametrize(("name", "schema", "words"), NOT_STRICT, ids=[one[0] for one in NOT_STRICT])
def test_no_schema_eats_the_process_or_changes_what_it_takes(name: str, schema: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        ensure_strict_json_schema(schema)


class Numbers(RootModel[list[int]]):
    pass


class Inner(BaseModel):
    a: int


class Either(RootModel[Inner | int]):
    pass


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [(Numbers, "[1]", Numbers([1])), (Either, '{"a":1}', Either(Inner(a=1))), (Either, "2", Either(2))],
)
def test_a_root_model_is_asked_for_inside_of_an_object(kind: Any, text: str, value: Any) -> None:
    schema = AgentOutputSchema(kind)
    assert (schema.json_schema()["type"], list(schema.json_schema()["properties"])) == ("object", ["response"])
    assert schema.validate_json(f'{{"response": {text}}}') == value


# --- handoffs and their history --------------------------------------------------------------------------------------


def test_a_history_that_cannot_be_read_whole_stays_as_it_is() -> None:
    for lines in ("1. user: hi\nnot a line", "hi", "1. user: hi\n2. {broken"):
        odd = {"role": "assistant", "content": f"{PREAMBLE}\n<CONVERSATION HISTORY>\n{lines}\n</CONVERSATION HISTORY>"}
        nested = nest_handoff_history(HandoffInputData((odd,), (), ()))
        again = nest_handoff_history(nested)
        assert (json.dumps(odd) in nested.input_history[0]["content"], again) == (True, nested)


def test_of_reasoning_the_next_agent_is_told_the_summary_alone() -> None:
    thought = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": "short"}],
        "content": [{"type": "reasoning_text", "text": "long"}],
        "encrypted_content": "c2VjcmV0",
    }
    nested = nest_handoff_history(HandoffInputData("hi", (), (ReasoningItem(AGENT, thought),)))
    line = json.dumps({key: thought[key] for key in ("type", "id", "summary")})
    assert nested.input_history[0]["content"].split("\n")[2:-1] == ["1. user: hi", f"2. {line}"]


def test_what_says_nothing_of_itself_is_refused_in_a_handoff() -> None:
    with pytest.raises(UserError, match="says nothing of its parameters"):
        handoff(AGENT, on_handoff=max)
    with pytest.raises(UserError, match="the input_type of a handoff has no JSON schema"):
        handoff(AGENT, on_handoff=lambda ctx, given: None, input_type=Callable[[], int])


# --- sessions --------------------------------------------------------------------------------------------------------

NO_ITEMS: list[Any] = [[None], ["text"], [{"role": "user"}, 5], [[{}]], {"role": "user"}, "text", b"bytes"]


@pytest.fixture(params=["plain", "alchemy"])
async def session(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    """A session in the file `s.db`."""
    if request.param == "plain":
        with closing(SQLiteSession("s", tmp_path / "s.db")) as plain:
            yield plain
        return
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("aiosqlite")
    from antiphon.memory import SQLAlchemySession

    other = SQLAlchemySession("s", url=f"sqlite+aiosqlite:///{tmp_path / 's.db'}")
    yield other
    await other.close()


async def test_what_could_not_be_read_again_is_not_kept(session: Any) -> None:
    await session.add_items([{"n": 1}])
    for items in NO_ITEMS:
        with pytest.raises(UserError, match=r"is expected|is a mapping"):
            await session.add_items(items)
    assert await session.get_items(10**30) == [{"n": 1}]


async def test_a_row_that_is_no_utf8_is_left_out(session: Any, tmp_path: Path) -> None:
    await session.add_items([{"n": 1}, {"n": 2}])
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        for spoilt in ("X'FF7B7D'", "X'7B2261223A22FF227D'"):
            connection.execute(
                f"INSERT INTO agent_messages (session_id, message_data) VALUES ('s', CAST({spoilt} AS TEXT))"
            )
    assert await session.get_items() == [{"n": 1}, {"n": 2}]
    assert await session.replace_oldest([{"n": 1}], [{"sum": 1}])
    assert await session.get_items() == [{"sum": 1}, {"n": 2}]
    assert await session.pop_item() == {"n": 2}


async def test_a_closed_session_says_so(session: Any) -> None:
    await session.add_items([{"n": 1}])
    await settled(session.close())
    for use in (session.get_items, session.pop_item, session.clear_session, partial(session.add_items, [{"n": 2}])):
        with pytest.raises(UserError, match="is closed"):
            await use()


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.db").write_bytes(b"no database at all, but long enough to be read as the head of one" * 50)
    with pytest.raises(UserError, match=r"none\.db"):
        await SQLiteSession("s", tmp_path / "none.db").get_items()


async def test_no_error_of_a_database_holds_what_is_kept(tmp_path: Path) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip("aiosqlite")
    from antiphon.memory import SQLAlchemySession

    session = SQLAlchemySession("s", url=f"sqlite+aiosqlite:///{tmp_path / 's.db'}")
    await session.add_items([{"n": 1}])
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute(
            "CREATE TRIGGER full BEFORE INSERT ON agent_messages BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="disk full") as caught:
        await session.add_items([{"role": "user", "content": "geheim-4711"}])
    assert "geheim" not in str(caught.value)
    await session.close()


def test_a_limit_is_at_most_what_there_can_be() -> None:
    assert SessionSettings().limited(10**30) == sys.maxsize


# --- spans -----------------------------------------------------------------------------------------------------------


def _circular() -> dict[str, Any]:
    held: dict[str, Any] = {}
    held["me"] = held
    return held


CONTENTS: list[tuple[Any, str]] = [
    (_circular(), "{'me': {...}}"),
    ({(1, 2): 3}, "{(1, 2): 3}"),
    ([Speechless()], '["(a value of the type Speechless, which has no text: RuntimeError)"]'),
    (10**5000, "(a value of the type int, which has no text: ValueError)"),
    ("\ud800", "\ufffd"),
]


def _fail_in_a_span(value: Any) -> None:
    with Tracing.start().tool("t", "c") as span:
        span.content("content", value)
        raise Speechless


@pytest.mark.parametrize(("value", "told"), CONTENTS, ids=[told[:12] for _, told in CONTENTS])
def test_no_span_ends_a_run(value: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setenv(CAPTURE, "true")
    with pytest.raises(Speechless):
        _fail_in_a_span(value)
    (done,) = kept.get_finished_spans()
    assert (done.attributes["content"], done.attributes["error.type"]) == (told, "Speechless")
    provider.shutdown()


# --- models ----------------------------------------------------------------------------------------------------------


async def _nothing(call: ModelCall) -> AsyncIterator[Any]:
    for event in ():
        yield event


UNSAID_FAILURES: list[tuple[str, ModelStep]] = [
    ("failed in its events", ModelStep(status="failed")),
    ("no event", ModelStep.stream(_nothing)),
]


@pytest.mark.parametrize(("name", "step"), UNSAID_FAILURES, ids=[one[0] for one in UNSAID_FAILURES])
async def test_a_stream_that_fails_without_raising_goes_to_the_next_model(name: str, step: ModelStep) -> None:
    model = FallbackModel([ScriptedModel([step]), ScriptedModel([[assistant_message("Other.")]])])
    events: list[Any] = [event async for event in model.stream_response(*ASKED)]
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert events[-1].response.output == [assistant_message("Other.")]
    alone: list[Any] = [event async for event in FallbackModel([ScriptedModel([step])]).stream_response(*ASKED)]
    assert [event.type for event in alone[-1:]] == (["response.failed"] if step.status == "failed" else [])


class Unclosable(ScriptedModel):
    closed = False

    async def close(self) -> None:
        self.closed = True
        raise RuntimeError("stays open")


async def test_all_models_of_a_chain_are_closed() -> None:
    models = [Unclosable(), Unclosable()]
    with pytest.raises(RuntimeError, match="stays open"):
        await FallbackModel(models).close()
    assert [model.closed for model in models] == [True, True]


async def test_a_scripted_failure_is_raised_streamed_and_not() -> None:
    for run in (Runner.run, _streamed):
        with pytest.raises(ServerFailed):
            await run(Agent[Any](name="a", model=ScriptedModel([ModelStep(status="failed")])), "hi")


async def _streamed(agent: Agent[Any], text: str) -> None:
    async for _ in Runner.run_streamed(agent, text).stream_events():
        pass


NO_STEPS: list[tuple[Any, str]] = [
    ({"output": None}, "output is no list"),
    ({"output": "text"}, "output is no list"),
    ({"error": "text"}, "error is no exception"),
    ({"responder": 5}, "responder is no function"),
    ({"stream_events": 5}, "stream_events is no list"),
    ({"status": "cancelled"}, "completed, incomplete, failed"),
]


@pytest.mark.parametrize(("step", "words"), NO_STEPS)
def test_a_step_is_refused_when_it_is_given(step: Any, words: str) -> None:
    with pytest.raises(InvalidModelStep, match=words):
        ScriptedModel([step])


# --- MCP servers -----------------------------------------------------------------------------------------------------


PROGRAM = str(Path(__file__).with_name("hostile_mcp_server.py"))
CONTEXT = RunContextWrapper[Any](None)


def hostile(mode: str, **options: Any) -> Any:
    pytest.importorskip("mcp")
    from antiphon.mcp import MCPServerStdio

    return MCPServerStdio({"command": sys.executable, "args": [PROGRAM, mode]}, name=mode, **options)


REFUSED: list[tuple[str, type[Exception], str]] = [
    ("twice", UserError, "the MCP server 'twice' lists several tools a"),
    ("deep", UserError, "the tool 'deep' of the MCP server 'deep': the schema is nested"),
    ("endless", AgentsException, "the MCP server has more than 1000 pages of tools"),
]


@pytest.mark.parametrize(("mode", "error", "words"), REFUSED, ids=[one[0] for one in REFUSED])
async def test_a_listing_that_is_of_no_use_names_its_server(mode: str, error: type[Exception], words: str) -> None:
    async with hostile(mode, client_session_timeout_seconds=30) as server:
        from antiphon.mcp import function_tools

        with pytest.raises(error, match=words):
            await function_tools([server], CONTEXT, AGENT)


async def test_no_servers_have_no_tools() -> None:
    pytest.importorskip("mcp")
    from antiphon.mcp import function_tools

    assert await function_tools([], CONTEXT, AGENT) == []


async def test_a_name_that_no_function_may_have_is_made_one_and_the_server_is_called_by_its_own() -> None:
    async with hostile("names", client_session_timeout_seconds=30) as server:
        from antiphon.mcp import function_tools

        tools = await function_tools([server], CONTEXT, AGENT)
        assert [tool.name for tool in tools[:2]] == ["a_b", "has_space__"]
        assert [(len(tool.name), tool.name[:4]) for tool in tools[2:]] == [(64, "xxxx"), (4, "tool")]
        said = [(await invoke(tool))["text"] for tool in tools]
    assert said == ["a.b", "has space/ü", "x" * 70, ""]


async def test_a_failure_without_words_is_told_and_so_is_a_death() -> None:
    from_server = {"fails": "The tool failed, and did not say why.", "dies": "Connection closed"}
    for mode, words in from_server.items():
        async with hostile(mode, client_session_timeout_seconds=30) as server:
            from antiphon.mcp import function_tools

            (tool,) = await function_tools([server], CONTEXT, AGENT)
            assert str(await invoke(tool)).endswith(words)


async def test_who_gives_up_connecting_leaves_those_who_wait_too() -> None:
    server = hostile("silent", client_session_timeout_seconds=1)
    gives_up, waits = asyncio.create_task(server.connect()), asyncio.create_task(server.connect())
    await asyncio.sleep(0.1)
    gives_up.cancel()
    found = await asyncio.gather(gives_up, waits, return_exceptions=True)
    await server.cleanup()
    assert [type(one) for one in found] == [asyncio.CancelledError, UserError]
