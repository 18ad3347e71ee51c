"""The rules of the canonical Responses event stream.

    events -> Trace -> rules -> Report

`check(events)` looks at events that somebody has and says which rules they break; `same_output(a, b)` says in what
two streams differ that a user can see. Nothing here knows how the events were made. Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .grammar import TABLES
    from .judge import check
    from .report import Finding, Report
    from .rule import Client, Level, Recording, Rule, Schema, all_rules, find
    from .same import same_output
    from .suite import AdapterSuite

SUITE_VERSION = "1.0"

# public name -> the module that has it
_HOMES: dict[str, str] = {
    "AdapterSuite": ".suite",
    "TABLES": ".grammar",
    "check": ".judge",
    "same_output": ".same",
    **dict.fromkeys(("Finding", "Report"), ".report"),
    **dict.fromkeys(("Client", "Level", "Recording", "Rule", "Schema", "all_rules", "find"), ".rule"),
}

__all__ = [
    "SUITE_VERSION",
    "TABLES",
    "AdapterSuite",
    "Client",
    "Finding",
    "Level",
    "Recording",
    "Report",
    "Rule",
    "Schema",
    "all_rules",
    "check",
    "find",
    "same_output",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'antiphon_conformance' has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
