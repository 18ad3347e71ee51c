"""Tools that the API's own servers run. No chat backend has them: there they are dropped, or refused in strict mode.

Source of the parameters: the tool types of openai 3.57, `openai.types.responses`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from antiphon.exceptions import UserError
from antiphon.run.awaiting import MaybeAwaitable
from antiphon.run.context import RunContextWrapper
from antiphon.run.reading import Json, said
from antiphon.stream.chunk import plain

from .tool import ApiTool, checked_callers


@dataclass
class FileSearchTool(ApiTool):
    """A search in vector stores. `include_search_results`: what was found is in the output too."""

    type = name = "file_search"
    told = ("vector_store_ids", "ranking_options", "filters")
    vector_store_ids: list[str]
    max_num_results: int | None = None
    include_search_results: bool = False
    ranking_options: Any = None
    filters: Any = None

    @property
    def response_include(self) -> tuple[str, ...]:
        """Return what the answer is to have beside its usual items."""
        return ("file_search_call.results",) if self.include_search_results else ()

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it. Raises UserError for a number of results that it does not take."""
        most = self.max_num_results
        if most is not None and (isinstance(most, bool) or not 0 <= most <= 50):
            raise UserError(f"max_num_results of the file search is {most!r}: 1 to 50, or 0 or None for the default")
        return super().to_responses_tool() | said(max_num_results=most or None)


@dataclass
class WebSearchTool(ApiTool):
    """A search in the web. `external_web_access` False: only in what is cached."""

    type = name = "web_search"
    told = ("search_context_size", "external_web_access", "search_content_types", "image_settings")
    user_location: Any = None
    filters: Any = None
    search_context_size: Literal["low", "medium", "high"] = "medium"
    external_web_access: bool | None = None
    search_content_types: list[Literal["text", "image"]] | None = None
    image_settings: Mapping[str, Any] | None = None

    @property
    def response_include(self) -> tuple[str, ...]:
        """Return what the answer is to have beside its usual items."""
        return ("web_search_call.results",) if "image" in (self.search_content_types or ()) else ()

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        where = {"filters": plain(self.filters), "user_location": plain(self.user_location)}
        return {**super().to_responses_tool(), **where}


@dataclass
class _Configured:
    """A tool that is its configuration: the API's object."""

    tool_config: Any

    def to_responses_tool(self) -> Json:
        """Return the tool as the API has it."""
        return dict(plain(self.tool_config))


@dataclass
class CodeInterpreterTool(_Configured):
    """A container in which the model runs code; `tool_config` is the API's object."""

    name: ClassVar[str] = "code_interpreter"

    def __post_init__(self) -> None:
        self.tool_config = _with_callers(self.tool_config, self.name)


@dataclass
class ImageGenerationTool(_Configured):
    """A model that makes images; `tool_config` is the API's object."""

    name: ClassVar[str] = "image_generation"


@dataclass
class MCPToolApprovalRequest:
    """A call of a hosted MCP server that waits for approval: `data` is the API's item."""

    ctx_wrapper: RunContextWrapper[Any]
    data: Any


class MCPToolApprovalFunctionResult(TypedDict):
    """Whether such a call may go on, and if not, why."""

    approve: bool
    reason: NotRequired[str]


MCPToolApprovalFunction: TypeAlias = Callable[[MCPToolApprovalRequest], MaybeAwaitable[MCPToolApprovalFunctionResult]]


@dataclass
class HostedMCPTool(_Configured):
    """An MCP server that the API itself calls. Without `on_approval_request` its approvals interrupt the run."""

    name: ClassVar[str] = "hosted_mcp"
    on_approval_request: MCPToolApprovalFunction | None = None

    def __post_init__(self) -> None:
        held: Json = plain(self.tool_config)
        self.tool_config = _with_callers(self.tool_config, f"hosted MCP server {held.get('server_label', 'unknown')}")


@dataclass
class ToolSearchTool(ApiTool):
    """A search for tools with `defer_loading`; with `execution` "client" the caller answers it."""

    type = name = "tool_search"
    told = ("description", "execution", "parameters")
    description: str | None = None
    execution: Literal["server", "client"] | None = None
    parameters: Any = None


@dataclass
class ProgrammaticToolCallingTool(ApiTool):
    """Programs, written by the model and run by the API, that call tools with "programmatic" in `allowed_callers`."""

    type = name = "programmatic_tool_calling"


def _with_callers(config: Any, tool: str) -> Json:
    held: Json = dict(plain(config))
    if held.get("allowed_callers") is not None:
        held["allowed_callers"] = checked_callers(held["allowed_callers"], tool)
    return held
