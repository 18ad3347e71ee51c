"""Tools of MCP servers as function tools."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.exceptions import MCPToolCancellationError, ModelBehaviorError, UserError
from antiphon.run.awaiting import settled, together
from antiphon.run.context import ToolContext
from antiphon.run.reading import is_dict, is_list
from antiphon.tools.function_tool import arguments_of, forgiving
from antiphon.tools.strict import copied_schema, ensure_strict_json_schema
from antiphon.tools.tool import (
    FunctionTool,
    ToolErrorFunction,
    ToolOrigin,
    ToolOriginType,
    default_tool_error_function,
)

from .policy import needs_approval
from .server import MCPServer, MCPToolMetaContext, reporter

if TYPE_CHECKING:
    from antiphon.run.context import RunContextWrapper

Json: TypeAlias = dict[str, Any]

LONGEST_NAME = 64  # of a function. Source: the API's reference of `tools`
SILENT_FAILURE = "The tool failed, and did not say why."
NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


async def agent_tools(agent: Any, run_context: RunContextWrapper[Any]) -> list[FunctionTool]:
    """Return the tools of all MCP servers of an agent, as its `mcp_config` says."""
    config: Mapping[str, Any] = agent.mcp_config
    return await function_tools(
        agent.mcp_servers,
        run_context,
        agent,
        convert_schemas_to_strict=bool(config.get("convert_schemas_to_strict", False)),
        failure_error_function=config.get("failure_error_function", default_tool_error_function),
        include_server_in_tool_names=bool(config.get("include_server_in_tool_names", False)),
    )


async def function_tools(
    servers: Sequence[MCPServer],
    run_context: RunContextWrapper[Any],
    agent: Any,
    *,
    convert_schemas_to_strict: bool = False,
    failure_error_function: ToolErrorFunction | None = default_tool_error_function,
    include_server_in_tool_names: bool = False,
) -> list[FunctionTool]:
    """Return the tools of several servers, in their order. Raises UserError where two have one name."""
    listed = await together([server.list_tools(run_context, agent) for server in servers]) if servers else []
    for server, tools in zip(servers, listed, strict=True):
        _refuse_twice(
            (tool.name for tool in tools),
            f"the MCP server {server.name!r} lists several tools",
            "a call could not say which: let a tool_filter leave them out",
        )
    found = [
        to_function_tool(
            tool,
            server,
            convert_schemas_to_strict,
            agent,
            failure_error_function,
            prefixed(server.name, tool.name) if include_server_in_tool_names else None,
        )
        for server, tools in zip(servers, listed, strict=True)
        for tool in tools
    ]
    _refuse_twice(
        (tool.name for tool in found),
        "several MCP servers have a tool",
        'set mcp_config={"include_server_in_tool_names": True}, or filter one out',
    )
    return found


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

    async def invoke(ctx: ToolContext[Any], arguments: str) -> Any:
        read = arguments_of(ctx.tool_name, arguments)
        if isinstance(read, str):
            raise ModelBehaviorError(read)
        return output_of(await called(server, tool, read, ctx), server.use_structured_content)

    return FunctionTool(
        name=tool_name_override or _fitting(NOT_IN_NAMES.sub("_", tool.name) or "tool", tool.name),
        description=tool.description or title or "",
        params_json_schema=schema,
        on_invoke_tool=forgiving(invoke, told),
        strict_json_schema=strict,
        tool_input_guardrails=server.tool_input_guardrails,
        tool_output_guardrails=server.tool_output_guardrails,
        needs_approval=needs_approval(server.approval_policy, tool, agent),
        origin=ToolOrigin(ToolOriginType.MCP, mcp_server_name=server.name),
        title=title,
        annotations=tool.annotations,
    )


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


def prefixed(server: str, tool: str) -> str:
    """Return a tool's name with its server's: `mcp_<server>__<tool>`; a long one is cut and gets a digest."""
    named = [NOT_IN_NAMES.sub("_", one).strip("_-") or kind for one, kind in ((server, "server"), (tool, "tool"))]
    return _fitting(f"mcp_{named[0]}__{named[1]}", f"{server}\0{tool}")


def _fitting(name: str, whole: str) -> str:
    """Return `name`, cut where it is too long, with a digest of all that it stands for."""
    if len(name) <= LONGEST_NAME:
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
    if server.tool_meta_resolver is None:
        return None
    made: object = await settled(
        server.tool_meta_resolver(MCPToolMetaContext(ctx, server.name, tool.name, dict(arguments)))
    )
    if made is not None and not is_dict(made):
        raise UserError(f"a tool_meta_resolver returned {type(made).__name__}: a dict or None is expected")
    return made


def _refuse_twice(names: Iterable[str], what: str, way_out: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise UserError(f"{what} {', '.join(twice)}: {way_out}")
