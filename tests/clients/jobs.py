"""A job for a client, and what its user is shown: the same words for all clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


def _tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return {"type": "function", "name": name, "description": description, "strict": True, "parameters": schema}


TOOLS: dict[str, dict[str, Any]] = {
    "get_weather": _tool("get_weather", "The weather of a city", city={"type": "string"}),
    "get_season": _tool("get_season", "The season of the year"),
}
PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class Job:
    """What a client is to ask. `tool`: the one it offers, of `TOOLS`. `retries`: how often it may try again by itself."""

    model: str
    input: str = "What is the weather in Oslo?"
    tool: str | None = None
    schema: bool = False
    image: bool = False
    retries: int = 0


@dataclass(frozen=True)
class Outcome:
    """What the user of a client is shown.

    `calls`: names and JSON arguments, in order. `status` and `reason`: how the last response ended. `usage`: input,
    output and total tokens of it. `object`: the parsed answer. `error`: the HTTP status, or 0, of what was raised.
    """

    text: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    status: str | None = "completed"
    reason: str | None = None
    usage: tuple[int, int, int] | None = None
    object: Any = None
    error: int | None = None
