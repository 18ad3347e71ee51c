"""The tools that a request offers, as functions: those of `tools`, and those that input items bring."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.stream.chunk import fields, is_object, text_of, word

from .arguments import INPUT
from .content import Scope
from .items import TOOL_BEARERS, kind_of
from .names import Tool, ToolKind
from .own import inside
from .read import Json, described, entries, named, optional_record, record, shared
from .report import BadRequest

SPOKEN: dict[str, ToolKind] = {"function": "function", "custom": "custom"}  # tools that the request names
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
# what a tool may say beside what is carried: it changes how a server runs it, not what the model may call
_UNREAD = ("defer_loading", "output_schema", "allowed_callers", "async", "async_")


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that the model may call. `namespace_note`: the description of its namespace, on the first tool of it."""

    tool: Tool
    held: Json
    path: str
    namespace_note: str = ""


def offers(request_tools: Any, items: Sequence[Any], scope: Scope) -> list[Offer]:
    """Return the tools that can be offered, in order, each once: of two with one name the later counts.

    Tools that a server would run are dropped. Raises BadRequest for what is no tool.
    """
    if not request_tools and not items:
        return entries(request_tools, "tools")
    found = list(_offers(request_tools, "tools", scope))
    for number, one in enumerate(items):
        path = f"input[{number}]"
        item = record(one, path)
        if kind_of(item, path) in TOOL_BEARERS:
            brought = list(_offers(item.get("tools"), f"{path}.tools", scope))
            if item.get("type") == "additional_tools":
                scope.report.changed(path, "additional_tools", "tools", "chat has one list of tools for a request")
            found.extend(brought)
    latest = {offer.tool.identity: offer for offer in found}
    for offer in found:
        kept = latest[offer.tool.identity]
        if kept is not offer and kept.held != offer.held:
            scope.report.changed(offer.path, f"tool {offer.tool.name!r}", kept.path, "it is declared again there")
    return list(latest.values())


def declare(offered: Sequence[Offer], scope: Scope) -> None:
    """Give all tools their names: those without a namespace first, so that they keep theirs."""
    for offer in sorted(offered, key=lambda offer: bool(offer.tool.namespace)):
        scope.names.declare(offer.tool)


def functions(offered: Sequence[Offer], scope: Scope) -> list[dict[str, Any]]:
    """Return chat's `tools` for `offered`, which have their names."""
    return [_function(offer, scope) for offer in offered]


def _offers(tools: Any, path: str, scope: Scope, namespace: str | None = None) -> Iterable[Offer]:
    for number, one in enumerate(entries(tools, path)):
        here = f"{path}[{number}]"
        held = record(one, here)
        kind = held.get("type")
        if not isinstance(kind, str) or not kind:
            raise BadRequest(f"{here}.type", f"the type of a tool is expected, and here is {described(kind)}")
        if kind in SPOKEN:
            inner = inside(held, kind, here)
            yield Offer(Tool(SPOKEN[kind], named(inner, "name", here), namespace), inner, here)
        elif kind == "namespace" and namespace is None:
            yield from _namespace(held, here, scope)
        elif kind in CLIENT_TOOLS and namespace is None and not _is_hosted(held, kind):
            name: ToolKind = CLIENT_TOOLS[kind].kind
            yield Offer(Tool(name, name), held, here)
        else:
            why = "the API's own servers run it: no chat backend has it"
            scope.report.add("dropped", here, f"tool of type {kind}", None, why)


def _namespace(held: Json, path: str, scope: Scope) -> Iterable[Offer]:
    name, note = named(held, "name", path), text_of(held.get("description"))
    for offer in _offers(held.get("tools"), f"{path}.tools", scope, name):
        yield Offer(offer.tool, offer.held, offer.path, note)
        note = ""


def _function(offer: Offer, scope: Scope) -> dict[str, Any]:
    tool, held = offer.tool, offer.held
    name = scope.names.give(tool)
    if name != tool.name:
        scope.report.changed(offer.path, f"tool {tool.name!r}", f"function {name!r}", "chat has one flat list of names")
    for key in _UNREAD:
        if held.get(key) not in (None, False):
            scope.report.ignored(f"{offer.path}.{key}", key, "chat has no such setting: the tool is offered to all")
    made = {"name": name, **MAKERS[tool.kind](offer, scope)}
    if offer.namespace_note:
        note = f"Tools of {tool.namespace}: {offer.namespace_note}"
        made["description"] = "\n\n".join(text for text in (made.get("description"), note) if text)
    return {"type": "function", "function": made}


def _plain(offer: Offer, scope: Scope) -> dict[str, Any]:
    held, strict = offer.held, offer.held.get("strict")
    made: dict[str, Any] = {"parameters": _parameters(held, offer.path)}
    if held.get("description"):
        made = {"description": text_of(held.get("description")), **made}
    if strict is not None and not isinstance(strict, bool):
        raise BadRequest(f"{offer.path}.strict", f"true or false is expected, and here is {described(strict)}")
    if strict is not None and scope.profile.strict_tools:
        made["strict"] = strict
    elif strict:
        why = f"profile {scope.profile.name!r} has no strict tools"
        scope.report.weakened(f"{offer.path}.strict", "strict", "a schema that may be missed", why)
    return made


def _parameters(held: Json, path: str) -> Any:
    given = shared(held.get("parameters"))
    if given is None or given == {}:
        return NO_PARAMETERS
    if not is_object(given):
        raise BadRequest(f"{path}.parameters", f"a JSON schema is expected, and here is {described(given)}")
    kind = fields(given).get("type")
    if kind is None:
        return {**given, "type": "object"}
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise BadRequest(f"{path}.parameters.type", f"the schema of an object is expected, and here is {kind!r:.40}")
    return given


def _custom(offer: Offer, scope: Scope) -> dict[str, Any]:
    """Return a function with one string for a tool that takes free text; its grammar is told in words."""
    note = _grammar(optional_record(offer.held.get("format"), f"{offer.path}.format"), f"{offer.path}.format", scope)
    why = "chat has no tools that take free text"
    scope.report.changed(offer.path, f"custom tool {offer.tool.name!r}", f"a function with the string {INPUT!r}", why)
    texts = (text_of(offer.held.get("description")), note)
    return {
        "description": "\n\n".join(text for text in texts if text),
        "parameters": {
            "type": "object",
            "properties": {INPUT: {"type": "string", "description": "The whole input, as it is: no JSON inside."}},
            "required": [INPUT],
            "additionalProperties": False,
        },
    }


def _grammar(form: Json, path: str, scope: Scope) -> str:
    """Return the grammar of a custom tool in words, "" where it takes any text. Raises BadRequest where it is missing."""
    if form.get("type") != "grammar":
        if form and form.get("type") != "text":
            scope.report.weakened(path, f"a format of type {form.get('type')!r:.40}", "any text", "nobody knows it")
        return ""
    held = record(form["grammar"], path) if is_object(form.get("grammar")) else form
    definition = text_of(held.get("definition"))
    if not definition:
        raise BadRequest(f"{path}.definition", "a grammar is expected, and there is none")
    return f"`{INPUT}` is text that this {word(held.get('syntax'))} grammar allows:\n{definition}"


# --- the API's own tools that the client runs ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClientTool:
    """A tool that the API knows by its type, and that the client runs: as a function."""

    kind: ToolKind
    description: str
    properties: Json
    required: tuple[str, ...]


_TEXT = {"type": "string"}
_WORDS = {"type": "array", "items": {"type": "string"}}
_TIME = {"type": "integer", "description": "Milliseconds."}
CLIENT_TOOLS: dict[str, ClientTool] = {
    "tool_search": ClientTool(
        "tool_search",
        "Find further tools. Those found can be called from the next turn on.",
        {"query": {"type": "string", "description": "What the tools are to do."}},
        ("query",),
    ),
    "local_shell": ClientTool(
        "local_shell",
        "Run a command on the user's machine.",
        {
            "command": {**_WORDS, "description": "The program and its arguments."},
            "working_directory": _TEXT,
            "timeout_ms": _TIME,
        },
        ("command",),
    ),
    "shell": ClientTool(
        "shell",
        "Run commands in a shell, one after the other.",
        {"commands": _WORDS, "timeout_ms": _TIME, "max_output_length": {"type": "integer"}},
        ("commands",),
    ),
    "apply_patch": ClientTool(
        "apply_patch",
        "Create, change or delete one file.",
        {
            "type": {"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            "path": _TEXT,
            "diff": {"type": "string", "description": "The change in V4A diff form; for a new file, its lines."},
        },
        ("type", "path"),
    ),
}


def _is_hosted(held: Json, kind: str) -> bool:
    """Return whether a server is to run it: a shell in a container, a search unless the client says that it searches.

    A search with a description or parameters is the client's. Source: `ToolSearchToolParam` of openai 3.57.
    """
    if kind == "tool_search":
        told = bool(held.get("description") or held.get("parameters"))
        return held.get("execution") != "client" and (held.get("execution") is not None or not told)
    environment = fields(held.get("environment"))
    return kind == "shell" and bool(environment) and environment.get("type") != "local"


def _client(offer: Offer, scope: Scope) -> dict[str, Any]:
    tool = CLIENT_TOOLS[offer.tool.kind]
    why = "chat has functions alone"
    scope.report.changed(offer.path, f"tool of type {tool.kind}", f"function {tool.kind!r}", why)
    given = shared(offer.held.get("parameters"))
    own = {"type": "object", "properties": tool.properties, "required": list(tool.required)}
    return {
        "description": text_of(offer.held.get("description")) or tool.description,
        "parameters": given if is_object(given) and given else own,
    }


MAKERS: dict[ToolKind, Callable[[Offer, Scope], dict[str, Any]]] = {
    "function": _plain,
    "custom": _custom,
    "tool_search": _client,
    "local_shell": _client,
    "shell": _client,
    "apply_patch": _client,
}
