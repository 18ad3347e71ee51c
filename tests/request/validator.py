"""What a strict chat backend refuses: written from the Chat Completions API reference, without the library."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
ROLES = ("system", "developer", "user", "assistant", "tool")
PARTS = {"text": "text", "image_url": "image_url", "input_audio": "input_audio", "file": "file"}
CHOICES = ("auto", "none", "required")
# fields of an assistant message beside role, content and tool_calls
REASONING = ("reasoning_content", "reasoning", "reasoning_details", "thinking_blocks")


def faults(
    body: Json, *, system_first: bool = False, call_id: str | None = None, tool_parts: Collection[str] = ()
) -> list[str]:
    """Return in words what a strict backend would refuse in `body`. `tool_parts`: what it takes in tool messages."""
    return [
        *_plain(body),
        *_order(body["messages"], system_first=system_first),
        *(
            fault
            for at, message in enumerate(body["messages"])
            for fault in _message(message, f"messages[{at}]", tool_parts)
        ),
        *_calls(body["messages"], call_id),
        *_tools(body),
        *_params(body),
    ]


def _plain(body: Json) -> Iterable[str]:
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        yield f"it is no JSON: {error}"
    if not body.get("messages"):
        yield "there are no messages"


def _order(messages: Sequence[Json], *, system_first: bool) -> Iterable[str]:
    """Tool messages come right after the calls they answer, one each, in the order of the calls."""
    waiting: list[str] = []
    for at, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if not waiting or waiting.pop(0) != message.get("tool_call_id"):
                yield f"messages[{at}]: no call waits for {message.get('tool_call_id')!r} here"
            continue
        if waiting:
            yield f"messages[{at}]: the calls {waiting} have no output"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if system_first and role in ("system", "developer") and at:
            yield f"messages[{at}]: a {role} message that is not the first"
        if system_first and role == "developer":
            yield f"messages[{at}]: the role developer"
    if waiting:
        yield f"at the end: the calls {waiting} have no output"


def _message(message: Json, path: str, tool_parts: Collection[str]) -> Iterable[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        yield f"{path}: the role {role!r}"
    allowed = {"role", "content"} | ({"tool_call_id"} if role == "tool" else set())
    if role == "assistant":
        allowed |= {"tool_calls", *REASONING}
        yield from _assistant(message, path)
    elif role == "user":
        if not isinstance(content, str | list):
            yield f"{path}: content is {type(content).__name__}"
        yield from _parts(content, path) if isinstance(content, list) else ()
    elif role == "tool" and isinstance(content, list) and tool_parts:
        yield from _parts(content, path)
        yield from (f"{path}: a {part['type']}" for part in content if part["type"] not in {"text", *tool_parts})
    elif not isinstance(content, str):
        yield f"{path}: the content of a {role} message is {type(content).__name__}"
    yield from (f"{path}: unknown field {name!r}" for name in set(message) - allowed)


def _assistant(message: Json, path: str) -> Iterable[str]:
    content, calls = message.get("content"), message.get("tool_calls")
    if "tool_calls" in message and not calls:
        yield f"{path}: tool_calls is empty"
    if not content and not calls:
        yield f"{path}: it has neither content nor calls"
    if not isinstance(content, str | list | None):
        yield f"{path}: content is {type(content).__name__}"
    if isinstance(content, list) and any(part["type"] not in ("text", "thinking") for part in content):
        yield f"{path}: its content holds more than text and thinking"
    for name in REASONING:
        if name in message and not message[name]:
            yield f"{path}: {name} is empty"


def _parts(parts: Sequence[Json], path: str) -> Iterable[str]:
    if not parts:
        yield f"{path}: content is an empty list"
    for part in parts:
        key = PARTS.get(part.get("type", ""))
        if key is None or set(part) != {"type", key}:
            yield f"{path}: a part {sorted(part)} of type {part.get('type')!r}"
        elif key == "image_url" and not (isinstance(part[key], dict) and isinstance(part[key].get("url"), str)):
            yield f"{path}: an image without url"
        elif key == "image_url" and part[key].get("detail", "auto") not in ("auto", "low", "high"):
            yield f"{path}: the detail {part[key]['detail']!r}"
        elif key == "text" and not isinstance(part[key], str):
            yield f"{path}: text is {type(part[key]).__name__}"


def _calls(messages: Sequence[Json], call_id: str | None) -> Iterable[str]:
    for at, message in enumerate(messages):
        calls = message.get("tool_calls") or ()
        ids = [call.get("id") for call in calls]
        if len(set(ids)) < len(ids):
            yield f"messages[{at}]: two calls with one id"
        for call in calls:
            yield from _call(call, f"messages[{at}]", call_id)


def _call(call: Json, path: str, call_id: str | None) -> Iterable[str]:
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield f"{path}: a call without id"
    elif call_id is not None and not re.fullmatch(call_id, call["id"]):
        yield f"{path}: the call id {call['id']!r}"
    if call.get("type") != "function" or set(call["function"]) != {"name", "arguments"}:
        yield f"{path}: a call of another form"
    if not NAME.match(call["function"]["name"]):
        yield f"{path}: the name {call['function']['name']!r}"
    try:
        if not isinstance(json.loads(call["function"]["arguments"]), dict):
            yield f"{path}: arguments are no object"
    except ValueError:
        yield f"{path}: arguments are no JSON"


def _tools(body: Json) -> Iterable[str]:
    tools = body.get("tools")
    if tools is None:
        yield from (f"{name} without tools" for name in ("tool_choice", "parallel_tool_calls") if name in body)
        return
    if not tools:
        yield "tools is empty"
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        yield f"two tools with one name: {names}"
    for tool in tools:
        yield from _tool(tool)
    choice = body.get("tool_choice", "auto")
    if isinstance(choice, str):
        if choice not in CHOICES:
            yield f"tool_choice {choice!r}"
    elif choice != {"type": "function", "function": {"name": choice.get("function", {}).get("name")}}:
        yield f"tool_choice {choice!r}"
    elif choice["function"]["name"] not in names:
        yield f"tool_choice names {choice['function']['name']!r}"


def _tool(tool: Json) -> Iterable[str]:
    function = tool.get("function", {})
    if set(tool) != {"type", "function"} or tool["type"] != "function":
        yield f"a tool of another form: {sorted(tool)}"
    if not NAME.match(function.get("name", "")):
        yield f"a tool named {function.get('name')!r}"
    if not set(function) <= {"name", "description", "parameters", "strict"}:
        yield f"a function with {sorted(function)}"
    if not isinstance(function.get("description", ""), str):
        yield "a description that is no string"
    if not isinstance(function.get("strict", False), bool):
        yield "strict that is no bool"
    if function.get("parameters", {}).get("type") != "object":
        yield f"{function.get('name')}: parameters are no schema of an object"


def _params(body: Json) -> Iterable[str]:
    yield from (f"{name} is null" for name, value in body.items() if value is None)
    if "stream_options" in body and not body.get("stream"):
        yield "stream_options without stream"
    if "top_logprobs" in body and not body.get("logprobs"):
        yield "top_logprobs without logprobs"
    if "max_tokens" in body and "max_completion_tokens" in body:
        yield "two token limits"
    form = body.get("response_format")
    if form is None:
        return
    if form.get("type") == "json_schema":
        inner = form.get("json_schema", {})
        if not NAME.match(inner.get("name", "")) or not isinstance(inner.get("schema"), dict):
            yield "a json_schema without name or schema"
        if not set(inner) <= {"name", "schema", "strict", "description"} or set(form) != {"type", "json_schema"}:
            yield "a json_schema of another form"
    elif form != {"type": "json_object"}:
        yield f"response_format {form!r}"
