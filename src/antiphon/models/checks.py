"""Native events held to the rules of the suite that is installed: entry-point group `antiphon.checks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from antiphon.errors import BadInput

from .errors import EventsBroken

GROUP = "antiphon.checks"


def check_events(events: Sequence[Any]) -> None:
    """Raise EventsBroken where `events`, a whole stream, break a MUST; BadInput where no suite is installed."""
    report = suite()(events)
    if not report.ok:
        raise EventsBroken(report.findings)


@cache
def suite() -> Callable[[Sequence[Any]], Any]:
    """Return the suite's `check`. Raises BadInput where none is installed."""
    from importlib.metadata import entry_points

    point = next(iter(entry_points(group=GROUP)), None)
    if point is None:
        raise BadInput(f"nothing is installed in the entry-point group {GROUP!r}, so events cannot be checked")
    found: Callable[[Sequence[Any]], Any] = point.load()
    return found
