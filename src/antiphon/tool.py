"""Tools: functions, and those that the API knows by their types."""

from __future__ import annotations

from typing import Any, TypeAlias

from .run.tool_outputs import (
    ToolOutputFileContent,
    ToolOutputFileContentDict,
    ToolOutputImage,
    ToolOutputImageDict,
    ToolOutputText,
    ToolOutputTextDict,
)
from .tools.computer import ComputerProvider, ComputerTool, ComputerToolSafetyCheckData
from .tools.editor import ApplyPatchTool
from .tools.function_tool import function_tool
from .tools.hosted import (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    MCPToolApprovalFunction,
    MCPToolApprovalFunctionResult,
    MCPToolApprovalRequest,
    ProgrammaticToolCallingTool,
    ToolSearchTool,
    WebSearchTool,
)
from .tools.local import CustomDataExtractor, CustomTool, LocalToolCustomDataContext
from .tools.shell import (
    LocalShellCommandRequest,
    LocalShellExecutor,
    LocalShellTool,
    ShellActionRequest,
    ShellCallData,
    ShellCallOutcome,
    ShellCommandOutput,
    ShellCommandRequest,
    ShellExecutor,
    ShellResult,
    ShellTool,
)
from .tools.tool import (
    DEFAULT_APPROVAL_REJECTION_MESSAGE,
    FunctionTool,
    FunctionToolCustomDataContext,
    FunctionToolCustomDataExtractor,
    FunctionToolResult,
    ToolCaller,
    ToolErrorFunction,
    ToolOrigin,
    ToolOriginType,
    ToolTimeoutBehavior,
    default_tool_error_function,
    default_tool_timeout_error_message,
    invoke_function_tool,
    tool_namespace,
)

Tool: TypeAlias = (
    FunctionTool
    | FileSearchTool
    | WebSearchTool
    | ComputerTool[Any]
    | HostedMCPTool
    | CustomTool
    | ShellTool
    | ApplyPatchTool
    | LocalShellTool
    | ImageGenerationTool
    | CodeInterpreterTool
    | ToolSearchTool
    | ProgrammaticToolCallingTool
)

# the three kinds of local tools that keep data beside an output give and take the same
ApplyPatchToolCustomDataContext: TypeAlias = LocalToolCustomDataContext
ApplyPatchToolCustomDataExtractor: TypeAlias = CustomDataExtractor
ComputerToolCustomDataContext: TypeAlias = LocalToolCustomDataContext
ComputerToolCustomDataExtractor: TypeAlias = CustomDataExtractor
CustomToolCustomDataContext: TypeAlias = LocalToolCustomDataContext
CustomToolCustomDataExtractor: TypeAlias = CustomDataExtractor

__all__ = [
    "DEFAULT_APPROVAL_REJECTION_MESSAGE",
    "ApplyPatchTool",
    "ApplyPatchToolCustomDataContext",
    "ApplyPatchToolCustomDataExtractor",
    "CodeInterpreterTool",
    "ComputerProvider",
    "ComputerTool",
    "ComputerToolCustomDataContext",
    "ComputerToolCustomDataExtractor",
    "ComputerToolSafetyCheckData",
    "CustomTool",
    "CustomToolCustomDataContext",
    "CustomToolCustomDataExtractor",
    "FileSearchTool",
    "FunctionTool",
    "FunctionToolCustomDataContext",
    "FunctionToolCustomDataExtractor",
    "FunctionToolResult",
    "HostedMCPTool",
    "ImageGenerationTool",
    "LocalShellCommandRequest",
    "LocalShellExecutor",
    "LocalShellTool",
    "MCPToolApprovalFunction",
    "MCPToolApprovalFunctionResult",
    "MCPToolApprovalRequest",
    "ProgrammaticToolCallingTool",
    "ShellActionRequest",
    "ShellCallData",
    "ShellCallOutcome",
    "ShellCommandOutput",
    "ShellCommandRequest",
    "ShellExecutor",
    "ShellResult",
    "ShellTool",
    "Tool",
    "ToolCaller",
    "ToolErrorFunction",
    "ToolOrigin",
    "ToolOriginType",
    "ToolOutputFileContent",
    "ToolOutputFileContentDict",
    "ToolOutputImage",
    "ToolOutputImageDict",
    "ToolOutputText",
    "ToolOutputTextDict",
    "ToolSearchTool",
    "ToolTimeoutBehavior",
    "WebSearchTool",
    "default_tool_error_function",
    "default_tool_timeout_error_message",
    "function_tool",
    "invoke_function_tool",
    "tool_namespace",
]
