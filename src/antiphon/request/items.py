"""Reads input items, whatever form they have, as the few things that a chat history knows: the closed union `Entry`.

Ids of items, their status, `phase`, `parsed_arguments`, annotations and log probabilities say nothing to a backend:
they are not read.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from antiphon.profile import REASONING_FIELDS
from antiphon.stream.chunk import fields, is_object, many, text_of, word

from .arguments import input_text, object_text
from .content import Scope, answer_text, joined, plain_text, tool_content, user_content
from .entries import Answer, Call, Entry, Message, Output, Reader, Role, Thought
from .own import call_of, found_tools, own_call, own_output
from .read import Json, described, entries, named, optional_record, record
from .report import BadRequest

__all__ = ["Answer", "BringsTools", "Call", "Entry", "Message", "Output", "Thought", "kind_of", "read_item"]


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
    thinking: list[Json] = []
    calls: list[Entry] = []
    for number, part in enumerate(parts):
        here = f"{path}.content[{number}]"
        held = fields(part) if isinstance(part, str) else record(part, here)
        kind = held.get("type")
        if isinstance(kind, str) and kind in CALLS:
            calls.extend(READERS[kind](held, here, scope))
        elif isinstance(kind, str) and kind in THINKING:
            thinking.append(held)
        else:
            texts.append(answer_text(part, here, scope))
    refusal = text_of(item.get("refusal"))
    text = joined([*texts, refusal])
    in_chat_form = not CHAT.isdisjoint(item)
    if thinking or in_chat_form:
        yield from _thought_beside(item, thinking, path)
    if text.strip():
        yield Answer(text, path)
    if in_chat_form:
        calls.extend(_chat_calls(item, path, scope))
    yield from calls
    for key in ("audio", "function_call") if in_chat_form else ():
        if item.get(key) is not None:
            scope.report.dropped(f"{path}.{key}", key, "no item of the Responses API has it")
    if not text.strip() and not calls:
        scope.report.ignored(path, "an assistant message without text", "backends refuse empty ones")


def _thought_beside(item: Json, thinking: list[Json], path: str) -> Iterable[Entry]:
    """Yield the reasoning of a message that came in chat form: of its fields, and of its content. One text counts once."""
    said = dict.fromkeys([*(text_of(item.get(key)) for key in REASONING_FIELDS), *map(text_of, thinking)])
    blocks = [part for part in thinking if part.get("type") != "reasoning_text"]
    data = {key: item[key] for key in PIECES if item.get(key)} | ({"thinking_blocks": blocks} if blocks else {})
    if data or any(said):
        content = [{"type": "reasoning_text", "text": text} for text in said if text]
        yield Thought({"content": content, "provider_data": data}, path)


def _chat_calls(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield the `tool_calls` of a message that came in chat form."""
    for number, call in enumerate(many(item.get("tool_calls"))):
        here = f"{path}.tool_calls[{number}]"
        held = fields(call)
        name, arguments = _chat_call(held, here, scope)
        beside = {key: held[key] for key in BESIDE if held.get(key)}
        data = {**beside, **optional_record(held.get("provider_data"), here)}
        yield Call(word(held.get("id")), name, arguments, data, here)


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


def _function_call(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    name = scope.names.find("function", _namespace(item), named(item, "name", path))
    given = item["input"] if "input" in item and "arguments" not in item else item.get("arguments")
    yield call_of(item, path, name, object_text(given, path, scope))


def _custom_call(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    name = scope.names.find("custom", _namespace(item), named(item, "name", path))
    given = item["arguments"] if "arguments" in item and "input" not in item else item.get("input")
    yield call_of(item, path, name, input_text(given))


def _namespace(item: Json) -> str | None:
    return word(item.get("namespace")) or None


def _output(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    key = "content" if "content" in item and "output" not in item else "output"
    yield _gave(word(item.get("call_id")), item.get(key), f"{path}.{key}", scope, path)


def _gave(call_id: str, value: Any, here: str, scope: Scope, path: str) -> Output:
    content, shown = tool_content(value, here, scope)
    return Output(call_id, content, path, shown)


def _mcp_call(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield a call that a server made, and what it gave back, as a call of a function."""
    scope.report.changed(path, "mcp_call", "a function call with its output", "chat has no servers of tools")
    name = scope.names.find("function", word(item.get("server_label")) or None, named(item, "name", path))
    call_id = word(item.get("id")) or f"mcp_{''.join(filter(str.isdigit, path))}"
    yield Call(call_id, name, object_text(item.get("arguments"), path, scope), {}, path)
    given = item.get("error") if item.get("error") is not None else item.get("output")
    yield _gave(call_id, given, f"{path}.output", scope, path)


READERS: dict[str, Reader] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "function_call_output": _output,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _output,
    "mcp_call": _mcp_call,
    "tool_search_call": own_call("tool_search", "arguments"),
    "tool_search_output": found_tools,
    "local_shell_call": own_call("local_shell", "action"),
    "local_shell_call_output": own_output,
    "shell_call": own_call("shell", "action"),
    "shell_call_output": own_output,
    "apply_patch_call": own_call("apply_patch", "operation"),
    "apply_patch_call_output": own_output,
}
# Of the content of assistant messages: what is no answer. Sources: `thinking` parts of docs.mistral.ai, "Reasoning", and
# of Anthropic's blocks; `reasoning_text` in `Message` of openai 3.57's conversations.
THINKING = frozenset({"thinking", "redacted_thinking", "reasoning_text"})
PIECES = ("reasoning_details", "thinking_blocks")  # of a message in chat form: what its reasoning consists of
# What an assistant message in chat form has beside its content.
CHAT = frozenset({"tool_calls", "refusal", "audio", "function_call", *REASONING_FIELDS, *PIECES})
# What came beside a call of a chat backend, under the names that `stream.normalize` keeps it by.
BESIDE = ("extra_content", "provider_specific_fields")
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
