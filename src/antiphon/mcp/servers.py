"""MCP servers by transport: a process of its own, streamable HTTP, and the older server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Literal, NotRequired, Unpack
from urllib.parse import urlsplit

import httpx2
from typing_extensions import TypedDict

from .server import ConnectedServer, ServerOptions  # first: it says which extra is missing

from mcp import StdioServerParameters, stdio_client  # isort: skip
from mcp.client.sse import sse_client  # isort: skip
from mcp.client.streamable_http import streamable_http_client  # isort: skip


class MCPServerStdioParams(TypedDict):
    """How a server is started. `env` is added to the few variables that the `mcp` package passes on."""

    command: str
    args: NotRequired[list[str]]
    env: NotRequired[dict[str, str]]
    cwd: NotRequired[str | Path]
    encoding: NotRequired[str]
    encoding_error_handler: NotRequired[Literal["strict", "ignore", "replace"]]


class MCPServerStreamableHttpParams(TypedDict):
    """Where a server is. `timeout`: seconds to connect and to send; `sse_read_timeout`: between two events."""

    url: str
    headers: NotRequired[dict[str, str]]
    timeout: NotRequired[float]
    sse_read_timeout: NotRequired[float]
    terminate_on_close: NotRequired[bool]
    httpx_client_factory: NotRequired[Callable[..., httpx2.AsyncClient]]
    auth: NotRequired[httpx2.Auth | None]


class MCPServerSseParams(TypedDict):
    """Where a server of the older transport is."""

    url: str
    headers: NotRequired[dict[str, str]]
    timeout: NotRequired[float]
    sse_read_timeout: NotRequired[float]
    auth: NotRequired[httpx2.Auth | None]


class MCPServerStdio(ConnectedServer):
    """A server that is started as a process and spoken to by its standard input and output."""

    def __init__(
        self,
        params: MCPServerStdioParams,
        cache_tools_list: bool = False,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self.params = StdioServerParameters(**params)
        super().__init__(name or f"stdio: {self.params.command}", cache_tools_list=cache_tools_list, **options)

    def create_streams(self) -> AbstractAsyncContextManager[Any]:
        """Return the transport; entering it starts the process, leaving it ends it."""
        return stdio_client(self.params)


class MCPServerStreamableHttp(ConnectedServer):
    """A server that is reached by streamable HTTP."""

    def __init__(
        self,
        params: MCPServerStreamableHttpParams,
        cache_tools_list: bool = False,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self.params = params
        called = name or f"streamable_http: {_place(params['url'])}"
        super().__init__(called, cache_tools_list=cache_tools_list, **options)

    @asynccontextmanager
    async def create_streams(self) -> AsyncGenerator[Any]:
        """Return the transport."""
        make = self.params.get("httpx_client_factory", _client)
        timeout = httpx2.Timeout(self.params.get("timeout", 5), read=self.params.get("sse_read_timeout", 300))
        async with (
            make(headers=self.params.get("headers"), timeout=timeout, auth=self.params.get("auth")) as client,
            streamable_http_client(
                self.params["url"], http_client=client, terminate_on_close=self.params.get("terminate_on_close", True)
            ) as streams,
        ):
            yield streams


class MCPServerSse(ConnectedServer):
    """A server that is reached by the older transport of server-sent events, which streamable HTTP replaces."""

    def __init__(
        self,
        params: MCPServerSseParams,
        cache_tools_list: bool = False,
        name: str | None = None,
        **options: Unpack[ServerOptions],
    ) -> None:
        self.params = params
        super().__init__(name or f"sse: {_place(params['url'])}", cache_tools_list=cache_tools_list, **options)

    def create_streams(self) -> AbstractAsyncContextManager[Any]:
        """Return the transport."""
        return sse_client(**self.params)


def _client(
    headers: Mapping[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth)


def _place(url: str) -> str:
    """Return a URL without user, password and query: a name is read by others."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path}"
