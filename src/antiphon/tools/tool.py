"""`FunctionTool`: a function that the model may call, and what a run needs to know of it."""

from __future__ import annotations

import asyncio
import copy
import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Literal, TypeAlias

from antiphon.exceptions import ToolTimeoutError, UserError
from antiphon.run.approvals import qualified
from antiphon.run.awaiting import MaybeAwaitable, settled
from antiphon.run.context import RunContextWrapper, ToolContext
from antiphon.run.guardrails import ToolInputGuardrail, ToolOutputGuardrail
from antiphon.run.items import RunItem, ToolApprovalItem
from antiphon.run.reading import Json, is_dict, is_list, said
from antiphon.run.tool_outputs import words_of

from .strict import copied_schema, ensure_strict_json_schema, referred

ToolCaller: TypeAlias = Literal["direct", "programmatic"]
ToolTimeoutBehavior: TypeAlias = Literal["error_as_result", "raise_exception"]
ToolErrorFunction: TypeAlias = Callable[[RunContextWrapper[Any], Exception], MaybeAwaitable[str]]
Enabled: TypeAlias = bool | Callable[[RunContextWrapper[Any], Any], MaybeAwaitable[bool]]
NeedsApproval: TypeAlias = bool | Callable[[RunContextWrapper[Any], dict[str, Any], str], MaybeAwaitable[bool]]
Invoke: TypeAlias = Callable[[ToolContext[Any], str], Awaitable[Any]]

CALLERS: tuple[ToolCaller, ...] = ("direct", "programmatic")
TIMEOUT_BEHAVIORS: tuple[ToolTimeoutBehavior, ...] = ("error_as_result", "raise_exception")
DEFAULT_APPROVAL_REJECTION_MESSAGE = "Tool execution was not approved."


class ErrorText(str):
    """What the model is told of a failure instead of an output: no schema of the output holds for it."""

    __slots__ = ()


class ToolOriginType(StrEnum):
    """What kind of thing is behind a function tool."""

    FUNCTION = "function"
    MCP = "mcp"
    AGENT_AS_TOOL = "agent_as_tool"


@dataclass(frozen=True)
class ToolOrigin:
    """What is behind a function tool: a function, a tool of an MCP server, or an agent."""

    type: ToolOriginType
    mcp_server_name: str | None = None
    agent_name: str | None = None
    agent_tool_name: str | None = None

    def to_json_dict(self) -> dict[str, str]:
        """Return it as JSON data, without what is not known."""
        return {name: str(value) for name, value in vars(self).items() if value is not None}

    @classmethod
    def from_json_dict(cls, data: Any) -> ToolOrigin | None:
        """Return what `to_json_dict` gave; None for data that is no origin."""
        held: Mapping[str, Any] = data if is_dict(data) else {}
        if held.get("type") not in list(ToolOriginType):
            return None
        names = ("mcp_server_name", "agent_name", "agent_tool_name")
        told = {name: held[name] for name in names if isinstance(held.get(name), str)}
        return cls(ToolOriginType(held["type"]), **told)


@dataclass(frozen=True)
class FunctionToolCustomDataContext:
    """What a `custom_data_extractor` is given: the call, its tool, what it returned, and the item for the model."""

    tool_context: ToolContext[Any]
    tool: FunctionTool
    output: Any
    raw_item: Mapping[str, Any]


FunctionToolCustomDataExtractor: TypeAlias = Callable[
    [FunctionToolCustomDataContext], MaybeAwaitable[Mapping[str, Any] | None]
]


async def custom_data(extract: Callable[[Any], MaybeAwaitable[Any]] | None, about: Any) -> Json | None:
    """Return what an extractor keeps with an output. Raises UserError for what a state could not hold as JSON."""
    kept: Any = None if extract is None else await settled(extract(about))
    if kept is None:
        return None
    try:
        return dict(json.loads(json.dumps(dict(kept), allow_nan=False)))
    except (TypeError, ValueError) as error:
        raise UserError(f"a custom_data_extractor returned what is no JSON object: {error}") from error


@dataclass
class FunctionTool:
    """A function that the model may call.

    `on_invoke_tool`: takes the call's context and its arguments as JSON text and returns the output; most tools are
    made by `function_tool`, which builds it. `needs_approval`: a bool, or a function of context, arguments and call
    id. `timeout_seconds`: how long one call may take. `output_json_schema`: of what it returns, for programs.
    `namespace`: the group that `tool_namespace` put it in. `origin`: what is behind it. `agent`: the agent that
    answers, where the tool is one. `title`: how a server calls it. `annotations`: what an MCP server says of it.
    `output_type_adapter`: pydantic's, of the type that is returned, where that is known.
    """

    name: str
    description: str
    params_json_schema: dict[str, Any]
    on_invoke_tool: Invoke
    strict_json_schema: bool = True
    is_enabled: Enabled = True
    tool_input_guardrails: list[ToolInputGuardrail[Any]] | None = None
    tool_output_guardrails: list[ToolOutputGuardrail[Any]] | None = None
    needs_approval: NeedsApproval = False
    timeout_seconds: float | None = None
    timeout_behavior: ToolTimeoutBehavior = "error_as_result"
    timeout_error_function: ToolErrorFunction | None = None
    defer_loading: bool = False
    custom_data_extractor: FunctionToolCustomDataExtractor | None = field(default=None, kw_only=True)
    allowed_callers: list[ToolCaller] | None = field(default=None, kw_only=True)
    output_json_schema: dict[str, Any] | None = field(default=None, kw_only=True)
    namespace: str | None = field(default=None, kw_only=True)
    namespace_description: str | None = field(default=None, kw_only=True)
    origin: ToolOrigin = field(default_factory=lambda: ToolOrigin(ToolOriginType.FUNCTION), kw_only=True)
    title: str | None = field(default=None, kw_only=True)
    annotations: Any = field(default=None, kw_only=True)
    agent: Any = field(default=None, kw_only=True, repr=False)
    output_type_adapter: Any = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        self.allowed_callers = checked_callers(self.allowed_callers, self.qualified_name)
        if self.output_json_schema is not None:
            self.output_json_schema = _output_schema(self.name, self.output_json_schema)
        if self.strict_json_schema:
            self.params_json_schema = ensure_strict_json_schema(copied_schema(self.params_json_schema))
        _check_timeout(self)

    @property
    def qualified_name(self) -> str:
        """Return the name with its namespace, where it has one: decisions about the tool are kept under it."""
        return qualified(self.name, self.namespace)

    @property
    def mcp_annotations(self) -> Any:
        """Return a copy of what the MCP server says of the tool; None for other tools. They are hints, no promises."""
        return copy.deepcopy(self.annotations)

    def to_responses_tool(self) -> dict[str, Any]:
        """Return the tool as the API has it; one in a namespace as the namespace with it alone."""
        made = {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": dict(self.params_json_schema),
            "strict": self.strict_json_schema,
            **said(defer_loading=self.defer_loading or None, allowed_callers=self.allowed_callers),
            **said(output_schema=self.output_json_schema),
        }
        if self.namespace is None:
            return made
        told = self.namespace_description or ""
        return {"type": "namespace", "name": self.namespace, "description": told, "tools": [made]}


class ApiTool:
    """A tool that the API knows by its `type`. `told`: what else it is told of it, each where it is set."""

    type: ClassVar[str]
    told: ClassVar[tuple[str, ...]] = ()

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return {"type": self.type, **said(**{name: getattr(self, name) for name in self.told})}


@dataclass
class FunctionToolResult:
    """What a call of a function tool came to. `run_item` is None where it waits; then `interruptions` say for what."""

    tool: FunctionTool
    output: Any
    run_item: RunItem | None
    interruptions: list[ToolApprovalItem] = field(default_factory=list["ToolApprovalItem"])
    agent_run_result: Any = None


def default_tool_error_function(ctx: RunContextWrapper[Any], error: Exception) -> str:
    """Return what the model is told of a tool that failed."""
    return f"An error occurred while running the tool. Please try again. Error: {words_of(error)}"


def default_tool_timeout_error_message(*, tool_name: str, timeout_seconds: float) -> str:
    """Return what the model is told of a tool that took too long."""
    return f"Tool '{tool_name}' timed out after {timeout_seconds:g} seconds."


async def invoke_function_tool(*, function_tool: FunctionTool, context: ToolContext[Any], arguments: str) -> Any:
    """Return what the tool returns, or what is told of it where it takes longer than it may.

    Raises ToolTimeoutError where the tool's `timeout_behavior` asks for it.
    """
    seconds = function_tool.timeout_seconds
    scope = asyncio.timeout(seconds)
    failed: Exception | None = None
    output: Any = None
    try:
        async with scope:
            output = await function_tool.on_invoke_tool(context, arguments)
    except Exception as error:
        if seconds is None or not scope.expired():
            raise
        failed = error
    if seconds is not None and scope.expired() and (failed is not None or isinstance(output, ErrorText)):
        return await _timed_out(function_tool, context, ToolTimeoutError(function_tool.name, seconds), failed)
    return output  # also of a tool that gives what it has when its time is over


async def _timed_out(
    tool: FunctionTool, context: ToolContext[Any], told: ToolTimeoutError, error: Exception | None
) -> str:
    if tool.timeout_behavior == "raise_exception":
        raise told from error
    if tool.timeout_error_function is not None:
        return ErrorText(await settled(tool.timeout_error_function(context, told)))
    return ErrorText(default_tool_timeout_error_message(tool_name=tool.name, timeout_seconds=told.timeout_seconds))


def tool_namespace(*, name: str, description: str | None, tools: Sequence[FunctionTool]) -> list[FunctionTool]:
    """Return copies of `tools` that are offered together under `name`. Raises UserError for an empty name or text."""
    if not _says(name) or not _says(description):
        raise UserError("a namespace has a name and a description, and neither is empty")
    stray = next((one for one in list[object](tools) if not isinstance(one, FunctionTool)), None)
    if stray is not None:
        raise UserError(f"a namespace holds function tools, and here is {type(stray).__name__}")
    return [_in_namespace(tool, name.strip(), str(description).strip()) for tool in tools]


def _says(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _in_namespace(tool: FunctionTool, name: str, description: str) -> FunctionTool:
    if tool.name == name:
        raise UserError(
            f"the tool {tool.name!r} has the name of its namespace, which stands for deferred tools: rename one"
        )
    made = copy.copy(tool)
    made.namespace, made.namespace_description = name, description
    return made


def checked_callers(callers: Any, tool: str) -> list[ToolCaller] | None:
    """Return a copy of `allowed_callers`. Raises UserError for what is no list of callers, each once."""
    if callers is None:
        return None
    given: list[Any] = callers if is_list(callers) else []
    if not given or len({str(one) for one in given}) != len(given) or any(one not in CALLERS for one in given):
        raise UserError(
            f"the tool {tool!r} has allowed_callers {callers!r}: a list is expected with 'direct', 'programmatic' or both"
        )
    return list(given)


def is_object_schema(schema: Mapping[str, Any]) -> bool:
    """Return whether a JSON schema describes an object at its root, also by reference."""
    held, seen = schema, set[str]()
    while held.get("type") not in ("object", ["object"]):
        pointer = held.get("$ref")
        if not isinstance(pointer, str) or pointer in seen or not pointer.startswith("#/"):
            return False
        seen.add(pointer)
        held = referred(schema, pointer) or {}
    return True


def _output_schema(tool: str, schema: Any) -> dict[str, Any]:
    if not is_dict(schema) or not is_object_schema(schema):
        raise UserError(f"the output_json_schema of tool {tool!r} must describe a JSON object")
    return ensure_strict_json_schema(copied_schema(schema))


def _check_timeout(tool: FunctionTool) -> None:
    seconds: Any = tool.timeout_seconds
    if seconds is not None:
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"timeout_seconds of tool {tool.name!r} is {seconds!r}: a number of seconds is expected")
        if not math.isfinite(seconds) or seconds <= 0:
            raise ValueError(f"timeout_seconds of tool {tool.name!r} is {seconds!r}: it is finite and more than 0")
        if getattr(tool.on_invoke_tool, "runs_in_thread", False):  # a function_tool says so of itself
            raise ValueError(
                f"tool {tool.name!r} is a sync function, whose thread cannot be stopped: only async ones have a timeout"
            )
    if tool.timeout_behavior not in TIMEOUT_BEHAVIORS:
        raise ValueError(
            f"timeout_behavior of tool {tool.name!r} is {tool.timeout_behavior!r}: {' or '.join(TIMEOUT_BEHAVIORS)}"
        )
    if tool.timeout_error_function is not None and not callable(tool.timeout_error_function):
        raise TypeError(f"timeout_error_function of tool {tool.name!r} must be callable or None")
