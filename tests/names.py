"""`python -m tests.names` writes docs/names.md: every public name of `antiphon`, by the module that has it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import antiphon

PAGE = Path(__file__).parents[1] / "docs" / "names.md"

# module -> what its names are for
TITLES = {
    ".stream": "The stream",
    ".profile": "Profiles",
    ".inprocess": "The client without a server",
    ".models": "Models",
    ".agent": "Agents",
    ".run": "Runs",
    ".result": "Results",
    ".items": "Run items",
    ".stream_events": "Events of a run",
    ".run_state": "A run that was interrupted",
    ".run_context": "The context of a run",
    ".run_error_handlers": "Error handlers",
    ".lifecycle": "Hooks",
    ".tool": "Tools",
    ".tool_context": "The context of a tool",
    ".computer": "Computers",
    ".editor": "Editors of files",
    ".handoffs": "Handoffs",
    ".guardrail": "Guardrails",
    ".tool_guardrails": "Guardrails of tools",
    ".agent_output": "Structured output",
    ".memory": "Sessions",
    ".tracing": "Spans",
    ".logger": "Logs",
    ".exceptions": "Errors of a run",
    ".errors": "Errors",
}


def text() -> str:
    """Return the page."""
    head = "# All names\n\nWhat `from antiphon import …` knows, made from the docstrings by `python -m tests.names`.\n"
    return head + "".join(_section(module, title) for module, title in TITLES.items())


def _section(module: str, title: str) -> str:
    homes = {name: home for home, names in antiphon._NAMES.items() for name in names}
    names = [name for name in antiphon.__all__ if homes[name].startswith(module) and _nearest(homes[name]) == module]
    lines = "".join(f"| `{name}` | {_told(getattr(antiphon, name))} |\n" for name in names)
    return f"\n## {title}\n\n| name | what it is |\n|---|---|\n{lines}"


def _nearest(home: str) -> str:
    """Return the key of `TITLES` that a module belongs to: the longest that it begins with."""
    return max((key for key in TITLES if f"{home}.".startswith(f"{key}.")), key=len)


def _told(value: Any) -> str:
    """Return the first paragraph of a docstring; an alias of a type has none of its own."""
    own = inspect.getdoc(value)
    if not own or type(value).__module__ in ("typing", "types", "typing_extensions", "collections.abc"):
        return "a type" if not inspect.isfunction(value) else "a function"
    return " ".join(_first(own)).replace("|", "\\|")


def _first(docstring: str) -> Iterator[str]:
    for line in docstring.split("\n"):
        if not line.strip():
            return
        yield line.strip()


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
