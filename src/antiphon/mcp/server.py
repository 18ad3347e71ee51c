"""`MCPServer`: what an agent needs of an MCP server, and `ConnectedServer`, which has it through the `mcp` package."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypedDict, TypeVar, Unpack

from antiphon.errors import ExtraMissing
from antiphon.exceptions import AgentsException, UserError
from antiphon.run.awaiting import MaybeAwaitable
from antiphon.run.guardrails import ToolInputGuardrail, ToolOutputGuardrail
from antiphon.tools.tool import ToolErrorFunction

from .policy import RequireApproval, ToolFilter, policy_of, seen

try:
    from mcp import Client, MCPError
    from mcp.types import CONNECTION_CLOSED, ToolListChangedNotification

    from .connection import Connection, reason
except ImportError as error:
    raise ExtraMissing(
        "MCP servers need the package of the extra `mcp`: pip install 'antiphon[mcp]'", extra="mcp"
    ) from error

if TYPE_CHECKING:
    from antiphon.run.context import RunContextWrapper

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]

# who is told how far the call of this task is: set by `called`, read where the request is sent
reporter: ContextVar[Callable[[Any], None] | None] = ContextVar("reporter", default=None)

MAX_PAGES = 1000  # of a listing: a server that never ends one is broken
LONGEST_WAIT = 60  # attempts after which a wait is not doubled any more: it would become too large for a float


@dataclass
class MCPToolMetaContext:
    """The call for which a `tool_meta_resolver` gives the request's `_meta`."""

    run_context: RunContextWrapper[Any]
    server_name: str
    tool_name: str
    arguments: Json | None


MCPToolMetaResolver: TypeAlias = Callable[[MCPToolMetaContext], MaybeAwaitable[Json | None]]


@dataclass(frozen=True)
class MCPToolCustomDataContext:
    """The result of a call, of which a `custom_data_extractor` keeps something with the output.

    `tool_name`: as the server calls it. `tool_display_name`: as the model does. `tool_output`: what the model is told.
    """

    run_context: RunContextWrapper[Any]
    server_name: str
    tool_name: str
    tool_display_name: str
    arguments: Mapping[str, Any]
    result_meta: Mapping[str, Any] | None
    structured_content: Mapping[str, Any] | None
    is_error: bool | None
    tool_output: Any


MCPToolCustomDataExtractor: TypeAlias = Callable[[MCPToolCustomDataContext], MaybeAwaitable[Mapping[str, Any] | None]]


class MCPServer(ABC):
    """An MCP server, as an agent uses it. A subclass may reach it in its own way.

    `use_structured_content`: a tool's structured result is its output instead of its parts. `require_approval`: which
    tools are asked about. `failure_error_function`: what the model is told of a failure; "inherit": as the agent says,
    None: the run raises. `tool_meta_resolver`: gives each call its `_meta`. `custom_data_extractor`: what is kept of a
    result with the output's item, and not told to the model. The guardrails are for all tools.
    """

    def __init__(
        self,
        use_structured_content: bool = False,
        require_approval: RequireApproval = None,
        failure_error_function: ToolErrorFunction | Literal["inherit"] | None = "inherit",
        tool_meta_resolver: MCPToolMetaResolver | None = None,
        *,
        custom_data_extractor: MCPToolCustomDataExtractor | None = None,
        tool_input_guardrails: list[ToolInputGuardrail[Any]] | None = None,
        tool_output_guardrails: list[ToolOutputGuardrail[Any]] | None = None,
    ) -> None:
        self.use_structured_content = use_structured_content
        self.approval_policy = policy_of(require_approval)
        self.failure_error_function = failure_error_function
        self.tool_meta_resolver = tool_meta_resolver
        self.custom_data_extractor = custom_data_extractor
        self.tool_input_guardrails, self.tool_output_guardrails = tool_input_guardrails, tool_output_guardrails

    @property
    @abstractmethod
    def name(self) -> str:
        """Return a name to read. It holds no secret."""

    @abstractmethod
    async def connect(self) -> None:
        """Connect; it stays connected until `cleanup()`."""

    @abstractmethod
    async def cleanup(self) -> None:
        """Close the connection."""

    @abstractmethod
    async def list_tools(self, run_context: RunContextWrapper[Any] | None = None, agent: Any = None) -> list[Any]:
        """Return the tools that this agent may see, `mcp.types.Tool` objects."""

    @abstractmethod
    async def call_tool(self, tool_name: str, arguments: Json | None, meta: Json | None = None) -> Any:
        """Return a `mcp.types.CallToolResult`."""

    @abstractmethod
    async def list_prompts(self) -> Any:
        """Return the prompts, `mcp.types.ListPromptsResult`."""

    @abstractmethod
    async def get_prompt(self, name: str, arguments: Json | None = None) -> Any:
        """Return a prompt, `mcp.types.GetPromptResult`."""

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.cleanup()


class Policies(TypedDict, total=False):
    """What every server may be given; see `MCPServer`."""

    use_structured_content: bool
    require_approval: RequireApproval
    failure_error_function: ToolErrorFunction | Literal["inherit"] | None
    tool_meta_resolver: MCPToolMetaResolver | None
    custom_data_extractor: MCPToolCustomDataExtractor | None
    tool_input_guardrails: list[ToolInputGuardrail[Any]] | None
    tool_output_guardrails: list[ToolOutputGuardrail[Any]] | None


class ServerOptions(Policies, total=False):
    """What a server that is connected to may be given beside; see `ConnectedServer`."""

    client_session_timeout_seconds: float | None
    tool_filter: ToolFilter
    max_retry_attempts: int
    retry_backoff_seconds_base: float
    retry_backoff_seconds_max: float | None
    message_handler: Callable[[Any], Awaitable[None]] | None
    max_list_pages: int | None


class ConnectedServer(MCPServer):
    """A server that is reached through a transport of the `mcp` package.

    `cache_tools_list`: the list is asked for once, and again after `invalidate_tools_cache()` or when the server says
    that it changed. `client_session_timeout_seconds`: how long one request may take; None or 0: any time.
    `max_retry_attempts`: how often a failed request is sent again, also one that calls a tool, -1 for until it succeeds;
    a lost connection is made anew for it. `max_list_pages`: how many pages a list may have.
    """

    def __init__(
        self,
        name: str,
        *,
        cache_tools_list: bool = False,
        client_session_timeout_seconds: float | None = 5,
        tool_filter: ToolFilter = None,
        max_retry_attempts: int = 0,
        retry_backoff_seconds_base: float = 1.0,
        retry_backoff_seconds_max: float | None = None,
        message_handler: Callable[[Any], Awaitable[None]] | None = None,
        max_list_pages: int | None = None,
        **policies: Unpack[Policies],
    ) -> None:
        super().__init__(**policies)
        if max_retry_attempts < -1:
            raise UserError(
                f"max_retry_attempts is {max_retry_attempts}: a number of attempts, 0 or more, or -1 for all"
            )
        if max_list_pages is not None and max_list_pages < 1:
            raise UserError(f"max_list_pages is {max_list_pages}: a number of pages, 1 or more, or None")
        self._name = name
        self.cache_tools_list, self.tool_filter = cache_tools_list, tool_filter
        self.max_retry_attempts, self.max_list_pages = max_retry_attempts, max_list_pages or MAX_PAGES
        self.retry_backoff_seconds_base = retry_backoff_seconds_base
        self.retry_backoff_seconds_max = retry_backoff_seconds_max
        self._tools: list[Any] | None = None
        self._changes = 0  # how often the server's tools may have changed
        self._message_handler = message_handler
        timeout = client_session_timeout_seconds or None
        self._connection = Connection(
            name,
            self.create_streams,
            timeout=timeout,
            on_message=self._told,
            on_tools_changed=self.invalidate_tools_cache if cache_tools_list else None,
        )

    @abstractmethod
    def create_streams(self) -> AbstractAsyncContextManager[Any]:
        """Return the transport, a context manager of the `mcp` package's two streams."""

    @property
    def name(self) -> str:
        """Return a name to read."""
        return self._name

    @property
    def cached_tools(self) -> list[Any] | None:
        """Return the tools that were listed last; None where that is not known any more."""
        return self._tools

    def invalidate_tools_cache(self) -> None:
        """Ask for the list of tools again when it is needed next."""
        self._tools = None
        self._changes += 1

    async def connect(self) -> None:
        """Connect. Raises UserError where the server cannot be reached."""
        await self._connection.start()

    async def cleanup(self) -> None:
        """Close the connection, and a server that was started for it."""
        self.invalidate_tools_cache()
        await self._connection.stop()

    async def list_tools(self, run_context: RunContextWrapper[Any] | None = None, agent: Any = None) -> list[Any]:
        """Return the tools that this agent may see, in the server's order."""
        known = self._tools if self.cache_tools_list else None
        if known is None:
            changes = self._changes
            known = list((await self._listed("tools", lambda client: client.list_tools)).tools)
            self._tools = known if changes == self._changes else None
        return await seen(list(known), self.tool_filter, self.name, run_context, agent)

    async def call_tool(self, tool_name: str, arguments: Json | None, meta: Json | None = None) -> Any:
        """Return the result of a call; its `is_error` says that the tool failed."""
        given: Any = meta
        progress = _progress(reporter.get())
        return await self._asked(
            f"call the tool {tool_name!r}",
            lambda client: client.call_tool(tool_name, arguments or {}, progress_callback=progress, meta=given),
        )

    async def list_prompts(self) -> Any:
        """Return the prompts, those of all pages."""
        return await self._listed("prompts", lambda client: client.list_prompts)

    async def get_prompt(self, name: str, arguments: Json | None = None) -> Any:
        """Return a prompt."""
        return await self._asked(f"get the prompt {name!r}", lambda client: client.get_prompt(name, arguments))

    async def list_resources(self, cursor: str | None = None) -> Any:
        """Return one page of the resources."""
        return await self._asked("list the resources", lambda client: client.list_resources(cursor=cursor))

    async def list_resource_templates(self, cursor: str | None = None) -> Any:
        """Return one page of the templates of resources."""
        return await self._asked(
            "list the resource templates", lambda client: client.list_resource_templates(cursor=cursor)
        )

    async def read_resource(self, uri: str) -> Any:
        """Return what a resource holds."""
        return await self._asked("read a resource", lambda client: client.read_resource(uri))

    async def _listed(self, key: str, ask: Callable[[Client], Callable[..., Awaitable[Any]]]) -> Any:
        return await self._asked(f"list the {key}", lambda client: _whole(ask(client), key, self.max_list_pages))

    async def _asked(self, what: str, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Return the answer to a request, sent again as often as it may be.

        Raises UserError without a connection, AgentsException where the request failed.
        """
        for attempt in count():
            client = self._connection.client
            try:
                return await ask(client)
            except AgentsException:
                raise
            except Exception as error:  # noqa: BLE001  # transports raise what they like
                failed = error
            # outside of `except`: what it comes from may hold a URL with a key
            if self.max_retry_attempts != -1 and attempt >= self.max_retry_attempts:
                raise AgentsException(f"the MCP server {self.name!r} could not {what}: {reason(failed)}")
            await self._before_another(attempt, failed, client)
        raise AssertionError("the attempts are counted without an end")

    async def _before_another(self, attempt: int, error: Exception, client: Client) -> None:
        wait = self.retry_backoff_seconds_base * 2 ** min(attempt, LONGEST_WAIT)
        await asyncio.sleep(
            wait if self.retry_backoff_seconds_max is None else min(wait, self.retry_backoff_seconds_max)
        )
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
            await self._connection.renew(client)

    async def _told(self, message: Any) -> None:
        """Take what the server says unasked: that its tools changed, and whatever the caller wants to hear."""
        if isinstance(message, ToolListChangedNotification):
            self.invalidate_tools_cache()
        if self._message_handler is not None:
            await self._message_handler(message)


def _progress(report: Callable[[Any], None] | None) -> Any:
    """Return what the `mcp` package tells of a call's progress; it is told on as a dict."""
    if report is None:
        return None

    async def told(progress: float, total: float | None, message: str | None) -> None:
        report({"progress": progress, "total": total, "message": message})

    return told


async def _whole(ask: Callable[..., Awaitable[Any]], key: str, most: int) -> Any:
    """Return the first page of a listing with the items of all. Raises AgentsException where the server never ends it."""
    pages: list[Any] = []
    cursor: str | None = None
    for _ in range(most):
        page = await ask(cursor=cursor)
        pages.append(page)
        if not page.next_cursor or page.next_cursor == cursor:
            found = [one for held in pages for one in getattr(held, key)]
            return pages[0].model_copy(update={key: found, "next_cursor": None})
        cursor = page.next_cursor
    raise AgentsException(f"the MCP server has more than {most} pages of {key}")
