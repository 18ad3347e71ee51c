"""Calls of the API's own tools that the client runs, what came of them, and the tools that a search found."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from antiphon.stream.chunk import fields, is_object, plain, text_of, word

from .arguments import object_text
from .content import Scope, joined
from .entries import Call, Entry, Output, Reader
from .names import Tool, ToolKind
from .read import Json, entries, named, record, shared

# of the action of a local shell: what the model did not say, and the item must have
SAYS_NOTHING: tuple[tuple[str, Any], ...] = (("type", "exec"), ("env", {}))


def call_of(item: Json, path: str, name: str, arguments: str) -> Call:
    """Return the call that an item is, under its chat name. One without `call_id` goes by its own id."""
    data = item.get("provider_data")
    return Call(_call_id(item), name, arguments, fields(data) if is_object(data) else {}, path)


def _call_id(item: Json) -> str:
    return word(item.get("call_id")) or word(item.get("id"))


def own_call(kind: ToolKind, field: str) -> Reader:
    """Return a reader for calls of the API's own tools that the client runs: `field` holds what is called for."""

    def read(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
        if kind == "tool_search" and item.get("execution") == "server":
            scope.report.ignored(path, "tool_search_call", "the server searched; the tools it found are offered")
            return
        given = shared(item.get(field))
        if is_object(given):
            told = fields(given).items()
            given = {key: value for key, value in told if (key, value) not in SAYS_NOTHING and value is not None}
        arguments = object_text(given, path, scope)
        if kind == "local_shell":
            scope.shells[word(item.get("id"))] = _call_id(item)
        yield call_of(item, path, scope.names.find(kind, None, kind), arguments)

    return read


def own_output(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
    """Yield the output. That of a local shell has no `call_id`: its `id` is that of the call, or of the call's item.

    Source: `LocalShellCallOutput` of openai 3.57, "the unique ID of the local shell tool call".
    """
    output = item.get("output")
    text = output if isinstance(output, str) else json.dumps(plain(output), ensure_ascii=False)
    if output is None:
        text = ""
    if item.get("status") == "failed":
        text = joined(["failed", text])
    call_id = _call_id(item)
    yield Output(call_id if word(item.get("call_id")) else scope.shells.get(call_id, call_id), text, path)


def found_tools(item: Json, path: str, scope: Scope) -> Iterable[Entry]:
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
            inner = inside(held, kind, here)
            yield Tool(kind, named(inner, "name", here), namespace), text_of(inner.get("description"))


def inside(held: Json, kind: str, path: str) -> Json:
    """Return what says how a tool is called; some clients nest it, as chat does."""
    if not is_object(held.get(kind)):
        return held
    beside = {key: value for key, value in held.items() if key not in ("type", kind)}
    return {**beside, **record(held[kind], f"{path}.{kind}")}
