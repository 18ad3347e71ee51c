"""Tools of MCP servers as function tools."""

from __future__ import annotations

import asyncio
import copy
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.exceptions import MCPToolCancellationError, ModelBehaviorError, UserError
from antiphon.run.awaiting import settled, together
from antiphon.run.context import ToolContext
from antiphon.run.handoffs import Handoff
from antiphon.run.reading import is_dict, is_list
from antiphon.tools.function_tool import arguments_of, forgiving
from antiphon.tools.strict import copied_schema, ensure_strict_json_schema
from antiphon.tools.tool import (
    FunctionTool,
    FunctionToolCustomDataContext,
    ToolErrorFunction,
    ToolOrigin,
    ToolOriginType,
    default_tool_error_function,
)

from .policy import needs_approval
from .server import MCPServer, MCPToolCustomDataContext, MCPToolMetaContext, reporter

if TYPE_CHECKING:
    from antiphon.run.context import RunContextWrapper

Json: TypeAlias = dict[str, Any]

LONGEST_NAME = 64  # of a function. Source: the API's reference of `tools`
SILENT_FAILURE = "The tool failed, and did not say why."
NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


async def agent_tools(agent: Any, run_context: RunContextWrapper[Any]) -> list[FunctionTool]:
    """Return the tools of all MCP servers of an agent, as its `mcp_config` says."""
    config: Mapping[str, Any] = agent.mcp_config
    with_server = bool(config.get("include_server_in_tool_names", False))
    return await function_tools(
        agent.mcp_servers,
        run_context,
        agent,
        convert_schemas_to_strict=bool(config.get("convert_schemas_to_strict", False)),
        failure_error_function=config.get("failure_error_function", default_tool_error_function),
        include_server_in_tool_names=with_server,
        taken=set(_names(agent)) if with_server else (),
    )


async def function_tools(
    servers: Sequence[MCPServer],
    run_context: RunContextWrapper[Any],
    agent: Any,
    *,
    convert_schemas_to_strict: bool = False,
    failure_error_function: ToolErrorFunction | None = default_tool_error_function,
    include_server_in_tool_names: bool = False,
    taken: Collection[str] = (),
) -> list[FunctionTool]:
    """Return the tools of several servers, in their order. Raises UserError where two have one name.

    With their servers' names they never have: neither one another's, nor one of those that are `taken`.
    """
    listed = await together([server.list_tools(run_context, agent) for server in servers]) if servers else []
    for server, tools in zip(servers, listed, strict=True):
        _refuse_twice(
            (tool.name for tool in tools),
            f"the MCP server {server.name!r} lists several tools",
            "a call could not say which: let a tool_filter leave them out",
        )
    offered = [(server, tool) for server, tools in zip(servers, listed, strict=True) for tool in tools]
    names = prefixed(offered, taken) if include_server_in_tool_names else [None] * len(offered)
    found = [
        to_function_tool(tool, server, convert_schemas_to_strict, agent, failure_error_function, name)
        for (server, tool), name in zip(offered, names, strict=True)
    ]
    _refuse_twice(
        (tool.name for tool in found),
        "several MCP servers have a tool",
        'set mcp_config={"include_server_in_tool_names": True}, or filter one out',
    )
    return found


def _names(agent: Any) -> Iterable[str]:
    """Yield the names that an agent's model knows already: of functions, and of handoffs."""
    yield from (one.name for one in agent.tools if isinstance(one, FunctionTool))
    for one in agent.handoffs:
        yield one.tool_name if isinstance(one, Handoff) else Handoff.default_tool_name(one)


def to_function_tool(
    tool: Any,
    server: MCPServer,
    convert_schemas_to_strict: bool = False,
    agent: Any = None,
    failure_error_function: ToolErrorFunction | None = default_tool_error_function,
    tool_name_override: str | None = None,
) -> FunctionTool:
    """Return a tool of a server as a function tool. A schema that has no strict form stays as it is.

    A name that no function of a model may have is made one; the server is called by its own. Raises UserError where
    the schema is too deep or too large for any use.
    """
    try:
        schema, strict = _schema(tool.input_schema, convert_schemas_to_strict)
    except UserError as error:
        raise UserError(
            f"the tool {tool.name!r} of the MCP server {server.name!r}: {error}, or let a tool_filter leave it out"
        ) from error
    own = server.failure_error_function
    told = failure_error_function if isinstance(own, str) else own
    title = tool.title or (tool.annotations.title if tool.annotations is not None else None)

    calls = _Calls(server, tool)
    return FunctionTool(
        name=tool_name_override or _fitting(NOT_IN_NAMES.sub("_", tool.name) or "tool", tool.name),
        description=tool.description or title or "",
        params_json_schema=schema,
        on_invoke_tool=forgiving(calls.output, told),
        strict_json_schema=strict,
        tool_input_guardrails=server.tool_input_guardrails,
        tool_output_guardrails=server.tool_output_guardrails,
        needs_approval=needs_approval(server.approval_policy, tool, agent),
        custom_data_extractor=calls.kept if server.custom_data_extractor is not None else None,
        origin=ToolOrigin(ToolOriginType.MCP, mcp_server_name=server.name),
        title=title,
        annotations=tool.annotations,
    )


@dataclass(slots=True)
class _Calls:
    """The calls of one tool. `results`: call id -> what came, until something of it is kept."""

    server: MCPServer
    tool: Any
    results: dict[str, MCPToolCustomDataContext] = field(default_factory=dict[str, MCPToolCustomDataContext])

    async def output(self, ctx: ToolContext[Any], arguments: str) -> Any:
        """Return what the tool returned for one call."""
        server, name = self.server, self.tool.name
        read = arguments_of(ctx.tool_name, arguments)
        if isinstance(read, str):
            raise ModelBehaviorError(read)
        result = await called(server, self.tool, read, ctx)
        output = output_of(result, server.use_structured_content)
        if server.custom_data_extractor is not None:
            held = (read, result.meta, result.structured_content, result.is_error, output)
            self.results[ctx.tool_call_id] = MCPToolCustomDataContext(ctx, server.name, name, ctx.tool_name, *held)
        return output

    async def kept(self, about: FunctionToolCustomDataContext) -> Mapping[str, Any] | None:
        """Return what is kept with the output of a call; None of one without a result."""
        result = self.results.pop(about.tool_context.tool_call_id, None)
        extract = self.server.custom_data_extractor
        return None if result is None or extract is None else await settled(extract(result))


async def called(server: MCPServer, tool: Any, arguments: Json, ctx: ToolContext[Any]) -> Any:
    """Return the result of a call. Cancelling who awaits it cancels the call, and the server is told.

    What the server says of its progress is reported in the run.

    Raises MCPToolCancellationError where the call was cancelled by itself.
    """
    meta = await _meta(server, tool, arguments, ctx)
    reporter.set(ctx.report)
    task = asyncio.ensure_future(server.call_tool(tool.name, arguments, meta))
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    if task.cancelled():
        raise MCPToolCancellationError(
            f"the call of tool {tool.name!r} on the MCP server {server.name!r} was cancelled, and not by the run"
        )
    return task.result()


def output_of(result: Any, use_structured_content: bool) -> Any:
    """Return what a tool returns for a result: its parts, or its structured content where that is asked for.

    A failed call's parts say why it failed, so they come before all else.
    """
    structured = result.structured_content
    if structured is not None and not result.is_error and (use_structured_content or not result.content):
        return json.dumps(structured)
    parts = [_part(one) for one in result.content]
    return parts[0] if len(parts) == 1 else parts or (SILENT_FAILURE if result.is_error else "")


def prefixed(offered: Sequence[tuple[MCPServer, Any]], taken: Collection[str] = ()) -> list[str]:
    """Return the tools' names with those of their servers: `mcp_<server>__<tool>`.

    One that is too long, that is taken or that several would have gets a digest of what it stands for: of the server's
    name, and of its place among those of that name.
    """
    places: dict[str, list[MCPServer]] = {}
    for server, _ in offered:
        if server not in places.setdefault(server.name, []):
            places[server.name].append(server)
    names = [f"mcp_{_word(server.name, 'server')}__{_word(tool.name, 'tool')}" for server, tool in offered]
    often = Counter(names)
    wholes = [f"{one.name}\0{tool.name}" + "\0" * places[one.name].index(one) for one, tool in offered]
    return [
        _fitting(name, whole, alone=often[name] == 1 and name not in taken)
        for name, whole in zip(names, wholes, strict=True)
    ]


def _word(name: str, kind: str) -> str:
    return NOT_IN_NAMES.sub("_", name).strip("_-") or kind


def _fitting(name: str, whole: str, *, alone: bool = True) -> str:
    """Return `name`; where it is too long or not alone, cut and with a digest of all that it stands for."""
    if alone and len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(whole.encode()).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9].rstrip('_-')}_{digest}"


def _part(block: Any) -> Json:
    match block.type:
        case "text":
            return {"type": "text", "text": block.text}
        case "image":
            return {"type": "image", "image_url": f"data:{block.mime_type};base64,{block.data}"}
        case _:
            return {"type": "text", "text": block.model_dump_json(by_alias=True, exclude_none=True)}


def _schema(given: Mapping[str, Any], strict: bool) -> tuple[Json, bool]:
    """Return the schema of the arguments, and whether it is strict."""
    schema = copied_schema(dict(given))
    if strict and (not given or not _is_open(schema)):
        try:
            return ensure_strict_json_schema(copied_schema(schema)), True
        except UserError:
            pass  # it has no strict form: the model is asked without
    schema.setdefault("properties", {})  # MCP does not ask for it, the API does
    return schema, False


def _is_open(schema: Any) -> bool:
    """Return whether an object in it takes properties that it does not name: closing it would change what it takes."""
    if is_list(schema):
        return any(_is_open(one) for one in schema)
    if not is_dict(schema):
        return False
    free = schema.get("type") == "object" and not schema.get("properties")
    return (free and schema.get("additionalProperties") is not False) or any(_is_open(one) for one in schema.values())


async def _meta(server: MCPServer, tool: Any, arguments: Json, ctx: ToolContext[Any]) -> Json | None:
    """Return the `_meta` of a call: what the resolver says, and what the server's tool itself carries."""
    made: object = None
    if server.tool_meta_resolver is not None:
        about = MCPToolMetaContext(ctx, server.name, tool.name, dict(arguments))
        made = await settled(server.tool_meta_resolver(about))
    if made is not None and not is_dict(made):
        raise UserError(f"a tool_meta_resolver returned {type(made).__name__}: a dict or None is expected")
    return made if tool.meta is None else {**(made or {}), **copy.deepcopy(tool.meta)}


def _refuse_twice(names: Iterable[str], what: str, way_out: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UserError(f"{what} {', '.join(twice)}: {way_out}")
