"""The response as the lifecycle events show it: the request's echo, and what became of it.

Each snapshot has all keys that the Open Responses schema requires, with the API's own defaults where the request said
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.errors import BadInput

from .chunk import fields, is_object, many, plain

# key -> what the API says where the request said nothing. Source: recordings in responses/openai.
DEFAULTS: dict[str, Any] = {
    "previous_response_id": None,
    "instructions": None,
    "tools": [],
    "tool_choice": "auto",
    "truncation": "disabled",
    "parallel_tool_calls": True,
    "text": {"format": {"type": "text"}},
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "top_logprobs": 0,
    "temperature": 1.0,
    "reasoning": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "store": False,
    "background": False,
    "service_tier": "default",
    "metadata": {},
    "safety_identifier": None,
    "prompt_cache_key": None,
}
OPTIONAL = ("user", "prompt", "conversation", "prompt_cache_retention")  # echoed where they were given
TOOL_DEFAULTS = {"description": None, "parameters": None, "strict": None}  # of a function tool
FORMAT_DEFAULTS = {"description": None, "strict": False}  # of a json_schema format
TIERS = frozenset({"auto", "default", "flex", "scale", "priority"})


class Snapshots:
    """Makes the snapshots of one response. `request` is a Responses create body, as a mapping or an object."""

    def __init__(self, request: Any, response_id: str, created_at: int) -> None:
        if request is not None and not is_object(request):
            raise BadInput(f"request is {type(request).__name__}: it is the create parameters, as a mapping or object")
        given: Mapping[str, Any] = {} if request is None else plain(request)
        self._head = {"id": response_id, "object": "response", "created_at": created_at}
        self._echo = _echo_of(given) if given else DEFAULTS
        self.model = str(given.get("model") or "")

    def suggest_model(self, model: str) -> None:
        """Take the model that a chunk names, where the request named none and no chunk did before."""
        self.model = self.model or model

    def make(self, status: str, **fields: Any) -> dict[str, Any]:
        """Return a snapshot, which shares the echo with all others, with `fields` over the defaults (no output, no usage, no error)."""
        return {
            **self._head,
            "completed_at": None,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": [],
            "usage": None,
            **self._echo,
            **fields,
        }


def _echo_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the response repeats of the request, over the defaults."""
    echo = {
        **DEFAULTS,
        **{key: _echo(key, given[key]) for key in given.keys() & DEFAULTS.keys() if given[key] is not None},
        **{key: given[key] for key in OPTIONAL if given.get(key) is not None},
    }
    if isinstance(echo.get("conversation"), str):
        echo["conversation"] = {"id": echo["conversation"]}
    return echo


def _echo(key: str, given: Any) -> Any:
    held = fields(given)
    if key == "text":
        return {**held, "format": _format(fields(held.get("format")))}
    if key == "reasoning":
        return {"effort": None, "summary": None, **held}
    return [_tool(fields(tool)) for tool in many(given)] if key == "tools" else given


def _format(format: Mapping[str, Any]) -> dict[str, Any]:
    if not format:
        return {"type": "text"}
    return {**FORMAT_DEFAULTS, **format} if format.get("type") == "json_schema" else {**format}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {**TOOL_DEFAULTS, **tool} if tool.get("type") == "function" else {**tool}
