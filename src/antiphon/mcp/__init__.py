"""MCP servers, whose tools an agent may call: `Agent(mcp_servers=[…])`. Needs the extra `mcp`.

Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .policy import (
        LocalMCPApprovalCallable,
        RequireApproval,
        ToolFilter,
        ToolFilterCallable,
        ToolFilterContext,
        ToolFilterStatic,
        create_static_tool_filter,
    )
    from .server import (
        MCPServer,
        MCPToolCustomDataContext,
        MCPToolCustomDataExtractor,
        MCPToolMetaContext,
        MCPToolMetaResolver,
    )
    from .servers import (
        MCPServerSse,
        MCPServerSseParams,
        MCPServerStdio,
        MCPServerStdioParams,
        MCPServerStreamableHttp,
        MCPServerStreamableHttpParams,
    )
    from .tools import agent_tools, function_tools, to_function_tool

# module -> its public names
_NAMES: dict[str, tuple[str, ...]] = {
    ".policy": (
        "LocalMCPApprovalCallable",
        "RequireApproval",
        "ToolFilter",
        "ToolFilterCallable",
        "ToolFilterContext",
        "ToolFilterStatic",
        "create_static_tool_filter",
    ),
    ".server": (
        "MCPServer",
        "MCPToolCustomDataContext",
        "MCPToolCustomDataExtractor",
        "MCPToolMetaContext",
        "MCPToolMetaResolver",
    ),
    ".servers": (
        "MCPServerSse",
        "MCPServerSseParams",
        "MCPServerStdio",
        "MCPServerStdioParams",
        "MCPServerStreamableHttp",
        "MCPServerStreamableHttpParams",
    ),
    ".tools": ("agent_tools", "function_tools", "to_function_tool"),
}
__all__ = [
    "LocalMCPApprovalCallable",
    "MCPServer",
    "MCPServerSse",
    "MCPServerSseParams",
    "MCPServerStdio",
    "MCPServerStdioParams",
    "MCPServerStreamableHttp",
    "MCPServerStreamableHttpParams",
    "MCPToolCustomDataContext",
    "MCPToolCustomDataExtractor",
    "MCPToolMetaContext",
    "MCPToolMetaResolver",
    "RequireApproval",
    "ToolFilter",
    "ToolFilterCallable",
    "ToolFilterContext",
    "ToolFilterStatic",
    "agent_tools",
    "create_static_tool_filter",
    "function_tools",
    "to_function_tool",
]

__getattr__, __dir__ = lazily(__name__, _NAMES)
