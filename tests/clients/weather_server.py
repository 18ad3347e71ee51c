"""An MCP server on stdin and stdout with one tool, for clients that start one: `python weather_server.py`."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("weather")


@server.tool()
def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return f"It is sunny in {city}."


if __name__ == "__main__":
    server.run("stdio")
