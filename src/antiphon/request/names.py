"""The names of tools on the chat side, and back: reversible, legal, at most 64 characters.

A chat backend has one flat list of functions. The Responses API has namespaces, and calls that are not functions. So
each tool has one chat name, and the table of them says what a call of that name is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any, Literal, TypeAlias

# How a tool is declared in a Responses request; all but "function" come back as items of another type.
ToolKind: TypeAlias = Literal["function", "custom", "tool_search", "local_shell", "shell", "apply_patch"]

LONGEST = 64  # Source: `name` of a function in the Chat Completions API reference
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_HASHED = 8  # characters of a hash that keeps apart what a shortened or cleaned name cannot


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the request names it."""

    kind: ToolKind
    name: str
    namespace: str | None = None

    @property
    def identity(self) -> tuple[str, str | None, str]:
        """What calls find it by. Functions and custom tools share their names; the API's own tools have none."""
        return ("" if self.kind in ("function", "custom") else self.kind, self.namespace, self.name)

    @property
    def wanted(self) -> str:
        """The chat name it gets where that is legal and free."""
        if not self.namespace:
            return self.name
        return self.namespace + ("" if self.namespace.endswith("__") else "__") + self.name


class Names:
    """Gives chat names, each to one tool. A name that is legal and free stays as it is.

    `functions`, `customs`: what `called` found.
    """

    def __init__(self) -> None:
        self.functions: dict[Any, str] = {}
        self.customs: dict[Any, str] = {}
        self._chat: dict[tuple[str, str | None, str], str] = {}
        self._tools: dict[str, Tool] = {}

    def give(self, tool: Tool) -> str:
        """Return the chat name of `tool`; one that was not declared gets a name as if it were."""
        known = self._chat.get(tool.identity)
        if known is not None:
            return known
        name = self._free(tool)
        self._chat[tool.identity] = name
        self._tools[name] = tool
        return name

    def declare(self, tool: Tool) -> str:
        """Return the chat name of a tool that the request offers: from now on that name is of its kind."""
        name = self.give(tool)
        self._tools[name] = tool
        return name

    def find(self, kind: ToolKind, namespace: str | None, name: str) -> str:
        """Return the chat name for a call in the history, or for a choice.

        A native response may give a plain function its own name as namespace (recording
        openai/langchain-openai-1.7.4-test-tool-search-streaming): where only the plain one is offered, it is meant. And a
        call of one of the API's own tools that did not fit it came back as a function call of its name.
        """
        tool = Tool(kind, name, namespace)
        meant = ("", None, name) if namespace else (name, None, name)
        if tool.identity not in self._chat and meant in self._chat:
            return self._chat[meant]
        return self.give(tool)

    def called(self, kind: ToolKind, key: Any) -> str:
        """Return the chat name of the tool that a history calls by its name, or by `(namespace, name)`.

        Raises KeyError for what is no name.
        """
        pair: Any = key if type(key) is tuple else (None, key)  # pyright: ignore[reportUnknownVariableType]
        namespace, name = pair
        if not isinstance(name, str) or not name or not isinstance(namespace, str | None):
            raise KeyError  # of what is no name
        known = self.functions if kind == "function" else self.customs
        found = known[key] = self.find(kind, namespace or None, name)
        return found

    def restorable(self) -> dict[str, Tool]:
        """Return chat name -> tool, for those whose calls are not to come back as they are."""
        return {
            name: tool
            for name, tool in self._tools.items()
            if tool.kind != "function" or tool.namespace or tool.name != name
        }

    def _free(self, tool: Tool) -> str:
        legal = _ILLEGAL.sub("_", tool.wanted)[:LONGEST]
        if legal == tool.wanted and legal not in self._tools:
            return legal
        for salt in count():
            hashed = sha256(f"{salt}\0{tool.identity}".encode()).hexdigest()[:_HASHED]
            name = f"{legal[: LONGEST - _HASHED - 1]}_{hashed}"
            if name not in self._tools:
                return name
        raise AssertionError("counting has no end")
