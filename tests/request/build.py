"""Items and tools in shorthand. What is written here is ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from antiphon import Profile
from antiphon.request import ChatRequest, to_chat_request

Json: TypeAlias = dict[str, Any]

SHARED = Path(__file__).resolve().parents[3] / "shared"  # beside the checkout, where it exists
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})

PLAIN = Profile("plain", developer_role=False, single_leading_system=True, files=False, images=False)
SEEING = Profile("seeing", audio=True)


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def said(*texts: str, **more: Any) -> Json:
    """Return an assistant message as a response holds it."""
    content = [{"type": "output_text", "text": text, "annotations": []} for text in texts]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content, **more}


def call(call_id: str, name: str = "f", arguments: Any = "{}", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def typed(call_id: str, name: str, text: str, **more: Any) -> Json:
    return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": text, **more}


def output(call_id: str, value: Any = "1", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value, **more}


def thought(text: str = "", **more: Any) -> Json:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", "id": "rs_1", "summary": summary, **more}


def tool(name: str = "f", **more: Any) -> Json:
    return {"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}, **more}


def free(name: str, **more: Any) -> Json:
    """Return a custom tool."""
    return {"type": "custom", "name": name, **more}


def space(name: str, *tools: Json, **more: Any) -> Json:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools), **more}


def asked(call_id: str, name: str = "f", arguments: str = "{}", **more: Any) -> Json:
    """Return a tool call on the chat side."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def assistant(content: Any, *calls: Json, **more: Any) -> Json:
    """Return an assistant message on the chat side."""
    return {"role": "assistant", "content": content, **more, **({"tool_calls": list(calls)} if calls else {})}


def result(call_id: str, content: Any = "1") -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def converted(*items: Any, profile: Profile | None = None, strict: bool = False, **request: Any) -> ChatRequest:
    """Return the chat request for these items, with further parameters of the request."""
    return to_chat_request({"model": "m", "input": list(items), **request}, profile=profile, strict=strict)


def noted(chat: ChatRequest) -> list[tuple[str, str]]:
    """Return the report as pairs of kind and path."""
    return [(change.kind, change.path) for change in chat.report]


@dataclass(frozen=True)
class Case:
    """A history, the messages it must become, and what must be reported: pairs of kind and path, in order."""

    name: str
    items: tuple[Any, ...]
    messages: tuple[Json, ...]
    report: tuple[tuple[str, str], ...] = ()
    profile: Profile | None = None
    request: Mapping[str, Any] = field(default_factory=dict[str, Any])


def case(
    name: str, items: tuple[Any, ...], *messages: Json, report: tuple[tuple[str, str], ...] = (), **more: Any
) -> Case:
    return Case(name, items, messages, report, **more)
