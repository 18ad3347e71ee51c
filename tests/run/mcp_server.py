"""An MCP server for tests: run as a program it speaks by standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer

PIXEL = b"\x89PNG\r\n\x1a\n"


def make_server(note: Callable[[str], None], name: str = "tests") -> MCPServer[Any]:
    """Return a server; `note` is told what happens in its slow tool."""
    server: MCPServer[Any] = MCPServer(name, log_level="ERROR")

    @server.tool(title="Add two")
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def words(text: str) -> str:
        return text

    @server.tool()
    def picture() -> Image:
        return Image(data=PIXEL, format="png")

    @server.tool(structured_output=False)
    def several() -> list[Any]:
        return ["one", Image(data=PIXEL, format="png")]

    @server.tool()
    def free(values: dict[str, int]) -> str:
        return str(sum(values.values()))

    @server.tool()
    def fail(text: str) -> str:
        raise ValueError(f"cannot {text}")

    @server.tool()
    async def slow() -> str:
        note("started")
        try:
            await asyncio.sleep(60)
        except BaseException:
            note("cancelled")
            raise
        return "done"

    @server.tool()
    async def meta(ctx: Context[Any]) -> str:
        given: Any = ctx.request_context.meta
        return str(dict(given).get("who"))

    @server.tool()
    async def grow(ctx: Context[Any]) -> str:
        def grown() -> str:
            return "grown"

        server.add_tool(grown)
        await ctx.notify_tools_changed()
        return "ok"

    @server.tool()
    async def steps(ctx: Context[Any]) -> str:
        for number in (1, 2):
            await ctx.report_progress(number, 2, f"step {number}")
        return "ok"

    @server.tool()
    def crash() -> str:
        os._exit(3)

    return server


if __name__ == "__main__":
    log = Path(sys.argv[1])

    def noted(text: str) -> None:
        with log.open("a") as file:
            file.write(text + "\n")

    noted("run")
    make_server(noted).run("stdio")
