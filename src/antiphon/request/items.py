"""Reads input items, whatever form they have, as the few things that a chat history knows: the closed union `Entry`.

Ids of items, their status, `phase`, `parsed_arguments`, annotations and log probabilities say nothing to a backend:
they are not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias

import msgspec

from antiphon.stream.chunk import fields, is_object, many, plain, text_of, word

from .arguments import input_text, object_text
from .content import ChatPart, Content, Scope, answer_text, joined, plain_text, tool_content, user_content
from .names import Tool, ToolKind
from .read import Json, described, entries, named, optional_record, record, shared
from .report import BadRequest, Place, path_of

Role: TypeAlias = Literal["user", "system", "developer"]


class Message(msgspec.Struct, frozen=True):
    """What the user, the system or the developer said."""

    role: Role
    content: Content
    place: Place


class Answer(msgspec.Struct, frozen=True):
    """Text of the assistant. `refusal`: where what was refused has a field of its own; else it is in the text."""

    text: str
    place: Place
    refusal: str = ""


class Thought(msgspec.Struct, frozen=True):
    """A reasoning item, as it came: `replay` reads it where it is wanted."""

    item: Json
    place: Place

    @property
    def path(self) -> str:
        """Where it is, as the report says it."""
        return path_of(self.place)


class Call(msgspec.Struct, frozen=True):
    """A call of the assistant. `call_id` is the client's, "" where it gave none; `name` is the chat name."""

    call_id: str
    name: str
    arguments: str  # the JSON text of an object
    data: Json  # provider_data
    place: Place


class Output(msgspec.Struct, frozen=True):
    """What a call gave back: what its tool message holds, and the parts that it cannot hold."""

    call_id: str
    content: Content
    place: Place
    shown: tuple[ChatPart, ...] = ()


Entry: TypeAlias = Message | Answer | Thought | Call | Output
Reader: TypeAlias = Callable[[Json, str, Scope], Iterable[Entry]]


class BringsTools(Exception):
    """An item that offers tools was found, which `tools` reads first, since calls before it may be theirs."""


def read_item(one: Any, number: int, scope: Scope, *, tools_read: bool) -> Iterable[Entry]:
    """Return what an item says. It is carried, or named in the report.

    `tools_read`: the tools that items bring are offered; else BringsTools is raised for an item that brings some.
    Raises BadRequest for what is no item: no object, without a type, with an unknown role.
    """
    path = f"input[{number}]"
    item = record(one, path)
    kind = kind_of(item, path)
    if kind in TOOL_BEARERS and not tools_read:
        raise BringsTools
    reader = READERS.get(kind)
    if reader is not None:
        return reader(item, path, scope)
    if kind not in TOOL_BEARERS:
        scope.report.dropped(path, kind, UNCARRIED.get(kind, "chat has no such item"))
    return ()


def kind_of(item: Json, path: str) -> str:
    """Return the type of an item; one that came without is known by its fields."""
    kind = item.get("type")
    if isinstance(kind, str) and kind:
        return kind
    if kind is not None:
        raise BadRequest(f"{path}.type", f"the type of an item is expected, and here is {described(kind)}")
    if "role" in item:
        return "message"
    if "call_id" in item:
        if "output" in item:
            return "function_call_output"
        return "custom_tool_call" if "input" in item and "arguments" not in item else "function_call"
    if isinstance(item.get("id"), str):
        return "item_reference"
    raise BadRequest(path, "an item has a `type`, or a `role` and `content`")


# --- messages ------------------------------------------------------------------------------------------------------


def _message(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    role, content = item.get("role"), item.get("content")
    here = f"{path}.content"
    if role == "assistant":
        yield from _answer(item, path, scope)
    elif role == "user":
        yield Message("user", user_content(content, here, scope), path)
    elif role in ("system", "developer"):
        yield Message(_known(role, path, scope), plain_text(content, here, scope), path)
    elif role == "tool":
        yield _gave(word(item.get("tool_call_id")), content, here, scope, path)
    else:
        allowed = "user, assistant, system, developer"
        raise BadRequest(f"{path}.role", f"one of {allowed} is expected, and here is {role!r:.40}")


def _known(role: Literal["system", "developer"], path: str, scope: Scope) -> Role:
    """Return the role under which the backend knows it; what is to lead is told of where all that leads is joined."""
    profile = scope.profile
    if role == "developer" and not profile.developer_role and not profile.single_leading_system:
        scope.report.changed(f"{path}.role", "developer", "system", "the backend has no developers")
        return "system"
    return role


def _answer(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield the text of an assistant message, then the calls that some clients put into its content."""
    content = item.get("content")
    parts = [content] if isinstance(content, str) or is_object(content) else entries(content, f"{path}.content")
    texts: list[str] = []
    calls: list[Entry] = []
    for number, part in enumerate(parts):
        here = f"{path}.content[{number}]"
        held = fields(part) if isinstance(part, str) else record(part, here)
        kind = held.get("type")
        if isinstance(kind, str) and kind in CALLS:
            calls.extend(READERS[kind](held, here, scope))
        else:
            texts.append(answer_text(part, here, scope))
    refusal = text_of(item.get("refusal"))
    text = joined([*texts, refusal])
    if text.strip():
        yield Answer(text, path)
    calls.extend(_chat_calls(item, path, scope))
    yield from calls
    if not text.strip() and not calls:
        scope.report.ignored(path, "an assistant message without text", "backends refuse empty ones")


def _chat_calls(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield the `tool_calls` of a message that came in chat form."""
    for number, call in enumerate(many(item.get("tool_calls"))):
        here = f"{path}.tool_calls[{number}]"
        held = fields(call)
        name, arguments = _chat_call(held, here, scope)
        yield Call(word(held.get("id")), name, arguments, optional_record(held.get("provider_data"), here), here)


def _chat_call(held: Json, path: str, scope: Scope) -> tuple[str, str]:
    """Return the chat name and the arguments of a call in chat form, of a function or of a custom tool."""
    if is_object(held.get("custom")):
        custom = record(held["custom"], f"{path}.custom")
        return scope.names.find("custom", None, named(custom, "name", f"{path}.custom")), input_text(
            custom.get("input")
        )
    function = optional_record(held.get("function"), f"{path}.function")
    name = scope.names.find("function", None, named(function, "name", f"{path}.function"))
    return name, object_text(function.get("arguments"), path, scope)


def _reasoning(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    yield Thought(item, path)


# --- calls and outputs ---------------------------------------------------------------------------------------------


def _call(item: Json, path: str, name: str, arguments: str) -> Call:
    data = item.get("provider_data")
    return Call(_call_id(item), name, arguments, fields(data) if is_object(data) else {}, path)


def _call_id(item: Json) -> str:
    return word(item.get("call_id")) or word(item.get("id"))


def _function_call(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    name = scope.names.find("function", _namespace(item), named(item, "name", path))
    yield _call(item, path, name, object_text(item.get("arguments"), path, scope))


def _custom_call(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    name = scope.names.find("custom", _namespace(item), named(item, "name", path))
    yield _call(item, path, name, input_text(item.get("input")))


def _namespace(item: Json) -> str | None:
    return word(item.get("namespace")) or None


def _output(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    yield _gave(word(item.get("call_id")), item.get("output"), f"{path}.output", scope, path)


def _gave(call_id: str, value: Any, here: str, scope: Scope, path: str) -> Output:
    content, shown = tool_content(value, here, scope)
    return Output(call_id, content, path, shown)


def _mcp_call(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield a call that a server made, and what it gave back, as a call of a function."""
    scope.report.changed(path, "mcp_call", "a function call with its output", "chat has no servers of tools")
    name = scope.names.find("function", word(item.get("server_label")) or None, named(item, "name", path))
    call_id = word(item.get("id"))
    yield Call(call_id, name, object_text(item.get("arguments"), path, scope), {}, path)
    given = item.get("error") if item.get("error") is not None else item.get("output")
    yield _gave(call_id, given, f"{path}.output", scope, path)


def _own_call(kind: ToolKind, field: str) -> Reader:
    """Return a reader for calls of the API's own tools that the client runs: `field` holds what is called for."""

    def read(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
        if kind == "tool_search" and item.get("execution") == "server":
            scope.report.ignored(path, "tool_search_call", "the server searched; the tools it found are offered")
            return
        given = item.get(field)
        held = {
            key: value for key, value in fields(given).items() if (key, value) not in SAYS_NOTHING and value is not None
        }
        arguments = object_text(given if isinstance(given, str) else shared(held), path, scope)
        yield _call(item, path, scope.names.find(kind, None, kind), arguments)

    return read


def _own_output(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    output = item.get("output")
    text = (
        output if isinstance(output, str) else "" if output is None else json.dumps(plain(output), ensure_ascii=False)
    )
    if item.get("status") == "failed":
        text = joined(["failed", text])
    yield Output(_call_id(item), text, path)


def _found_tools(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield the output of a search that the client made; the tools themselves are offered by `tools`."""
    if item.get("execution") == "server" or not word(item.get("call_id")):
        scope.report.changed(path, "tool_search_output", "tools", "what the server found is offered")
        return
    found = [
        {"name": scope.names.find(tool.kind, tool.namespace, tool.name), "description": description}
        for tool, description in tools_in(item.get("tools"), f"{path}.tools")
    ]
    yield Output(word(item.get("call_id")), json.dumps({"tools": found}, ensure_ascii=False), path)


def tools_in(tools: Any, path: str, namespace: str | None = None) -> Iterable[tuple[Tool, str]]:
    """Yield the functions and custom tools in a list of tools, with their descriptions, those in namespaces too."""
    for number, one in enumerate(entries(tools, path)):
        here = f"{path}[{number}]"
        held = record(one, here)
        kind = held.get("type")
        if kind == "namespace":
            yield from tools_in(held.get("tools"), f"{here}.tools", named(held, "name", here))
        elif kind == "function" or kind == "custom":
            yield Tool(kind, named(held, "name", here), namespace), text_of(held.get("description"))


# of the action of a local shell: what the model did not say, and the item must have
SAYS_NOTHING: tuple[tuple[str, Any], ...] = (("type", "exec"), ("env", {}))
READERS: dict[str, Reader] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "mcp_call": _mcp_call,
    "tool_search_call": _own_call("tool_search", "arguments"),
    "tool_search_output": _found_tools,
    "local_shell_call": _own_call("local_shell", "action"),
    "local_shell_call_output": _own_output,
    "shell_call": _own_call("shell", "action"),
    "shell_call_output": _own_output,
    "apply_patch_call": _own_call("apply_patch", "operation"),
    "apply_patch_call_output": _own_output,
}
CALLS = frozenset({"function_call", "custom_tool_call"})  # also found in the content of assistant messages
TOOL_BEARERS = frozenset({"additional_tools", "tool_search_output"})  # their `tools` are offered
_HOSTED = "it was made by a hosted tool, which no chat backend has"
UNCARRIED: dict[str, str] = {
    "item_reference": "what it refers to is not in the request",
    "compaction": "only the server that made it can read it",
    "compaction_trigger": "no chat backend compacts",
    "configuration_update": "chat has one configuration for a whole request",
    **dict.fromkeys(
        (
            "web_search_call",
            "file_search_call",
            "code_interpreter_call",
            "image_generation_call",
            "computer_call",
            "computer_call_output",
            "mcp_list_tools",
            "mcp_approval_request",
            "mcp_approval_response",
            "program",
            "program_output",
        ),
        _HOSTED,
    ),
}
