"""What several probes ask with: sentences, tools, messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _tool(name: str, about: str, properties: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"type": "function", "name": name, "description": about, "parameters": parameters, **more}


_CITY = {"city": {"type": "string", "maxLength": 12}, "unit": {"type": "string", "enum": ["c", "f"]}}
_NUMBERS = {one: {"type": "integer", "minimum": 0, "maximum": 99} for one in "ab"}
WEATHER = _tool("get_weather", "The weather in a city.", _CITY)
ADD = _tool("add", "Add two numbers.", _NUMBERS)
CLOCK = _tool("get_time", "The time of day.", {})
_PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
    "required": ["city"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "name": "place", "schema": _PLACE, "strict": True}
# One grey pixel.
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
)
SEA = "Say in one short sentence what the sea is."
OSLO = "What is the weather in Oslo, in degrees c? Use the tool."
STEADY = {"seed": 7, "temperature": 0}


def user(*parts: Any) -> list[dict[str, Any]]:
    """Return one user message of these parts."""
    return [{"role": "user", "content": list(parts)}]


def said(role: str, content: Any, **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "content": content, **more}


def history(content: str | None) -> list[dict[str, Any]]:
    """Return chat messages in which a call was made and answered; `content` is beside the call."""
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'}}
    asked = said("user", "Add one and two.")
    return [asked, said("assistant", content, tool_calls=[call]), said("tool", "3", tool_call_id="call_1")]


TOOLS = {"input": OSLO, "tools": [WEATHER, ADD]}
