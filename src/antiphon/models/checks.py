"""Native events held to the rules of the suite that is installed: entry-point group `antiphon.checks`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from antiphon.errors import AntiphonError, BadInput

GROUP = "antiphon.checks"


class EventsBroken(AntiphonError):
    """A native stream breaks the rules of the events; `findings` say which, where and how."""

    def __init__(self, findings: Sequence[Any]) -> None:
        first = "; ".join(str(one) for one in findings[:3])
        more = f"; and {len(findings) - 3} more" if len(findings) > 3 else ""
        super().__init__(f"the stream breaks {len(findings)} rules: {first}{more}")
        self.findings = tuple(findings)


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
