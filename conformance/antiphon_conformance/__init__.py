"""The rules of the canonical Responses event stream.

    events -> Trace -> rules -> Report

`check(events)` looks at events that somebody has and says which rules they break; `same_output(a, b)` says in what
two streams differ that a user can see. Nothing here knows how the events were made. Names are loaded when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from antiphon.lazily import lazily

if TYPE_CHECKING:
    from .grammar import TABLES
    from .judge import check
    from .report import Finding, Report
    from .rule import Client, Level, Recording, Rule, Schema, all_rules, find
    from .same import same_output
    from .suite import AdapterSuite

SUITE_VERSION = "1.0"

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

__getattr__, __dir__ = lazily(
    __name__,
    {
        ".grammar": ("TABLES",),
        ".judge": ("check",),
        ".report": ("Finding", "Report"),
        ".rule": ("Client", "Level", "Recording", "Rule", "Schema", "all_rules", "find"),
        ".same": ("same_output",),
        ".suite": ("AdapterSuite",),
    },
)
