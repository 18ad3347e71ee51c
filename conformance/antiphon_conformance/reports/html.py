"""One page of HTML for a whole run: self-contained, without a network, light and dark, usable by keyboard alone.

Its size is bounded: streams are shown around a finding, and of very many findings the first of each rule in full.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.errors import ExtraMissing
from antiphon.timeline import STYLE, escaped
from antiphon_conformance.results import (
    CLEAN,
    FINDINGS,
    INTERRUPTED,
    NOTHING_RAN,
    WRONG_USE,
    Outcome,
    Run,
    SuiteReport,
)

from .grid import State, areas_of, rows_of
from .pictured import broken_rules, first_anchors

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# exit status -> class, verdict
VERDICTS: dict[int, tuple[str, str]] = {
    CLEAN: ("clean", "Clean"),
    FINDINGS: ("broken", "Rules are broken"),
    WRONG_USE: ("error", "The suite or a case is wrong"),
    NOTHING_RAN: ("error", "Nothing ran"),
    INTERRUPTED: ("error", "Interrupted"),
}
# outcome -> what its count is called
COUNTED: dict[Outcome, str] = {
    Outcome.PASS: "passed",
    Outcome.FAIL: "failed",
    Outcome.EXPECTED: "failed as expected",
    Outcome.ERROR: "wrong cases",
    Outcome.NOT_APPLICABLE: "not applicable",
}
LISTED = 500  # runs that are told with a reason


def write(report: SuiteReport, path: str | Path) -> None:
    """Write the page to `path`. Raises OSError where that cannot be, ExtraMissing without jinja2."""
    Path(path).write_text(page(report), encoding="utf-8", errors="backslashreplace")  # a lone surrogate has no bytes


def page(report: SuiteReport) -> str:
    """Return the page. Raises ExtraMissing without jinja2."""
    areas = areas_of(report)
    broken = broken_rules(report)
    script = _asset("page.js")
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            report=report,
            verdict=VERDICTS[report.exit_status],
            counts=_counts(report),
            areas=[_Column(area, area_titles().get(area, "")) for area in areas],
            rows=rows_of(report, areas),
            broken=broken,
            anchors=first_anchors(broken),
            states=[state for state in State if state is not State.NOT_RUN],
            wrong=_reasoned(report, Outcome.ERROR) + _unfound(report),
            left_out=_left_out(report),
            style=_asset("page.css") + STYLE,
            script=script,
            script_hash=b64encode(sha256(script.encode()).digest()).decode(),
        )
    )


@dataclass(frozen=True, slots=True)
class _Column:
    area: str
    title: str


def area_titles() -> dict[str, str]:
    """Return what each area is about. Source: CONFORMANCE §2."""
    titles: dict[str, str] = json.loads(_asset("areas.json"))
    return titles


def _counts(report: SuiteReport) -> list[tuple[str, int, str]]:
    """Return label, count and class of each count in the summary."""
    outcomes = Counter(run.outcome for run in report.runs)
    classes = {Outcome.PASS: "clean", Outcome.FAIL: "broken", Outcome.EXPECTED: "expected", Outcome.ERROR: "error"}
    cases = len({run.case for run in report.runs})
    return [
        ("cases", cases, ""),
        ("runs", len(report.runs), ""),
        ("ran", len(report.ran), ""),
        *(
            (COUNTED[outcome], outcomes[outcome], classes.get(outcome, "") if outcomes[outcome] else "")
            for outcome in COUNTED
        ),
    ]


def _reasoned(report: SuiteReport, outcome: Outcome) -> list[tuple[str, str]]:
    """Return name and reason of the runs with that outcome."""
    runs = [run for run in report.runs if run.outcome is outcome]
    told = [(run.name, run.reason or "no reason was given") for run in runs[:LISTED]]
    return [*told, *_more(runs)]


def _unfound(report: SuiteReport) -> list[tuple[str, str]]:
    """Return name and reason of the runs that failed although no rule was broken."""
    runs = [run for run in report.runs if run.outcome is Outcome.FAIL and not run.findings]
    return [*((run.name, run.reason or "no reason was given") for run in runs[:LISTED]), *_more(runs)]


def _more(runs: list[Run]) -> Iterable[tuple[str, str]]:
    return [("…", f"{len(runs) - LISTED:,} more")] if len(runs) > LISTED else []


def _left_out(report: SuiteReport) -> list[tuple[str, int, list[str]]]:
    """Return each reason for which runs did not apply, how many they are, and the first names."""
    reasons: dict[str, list[str]] = {}
    for run in report.runs:
        if run.outcome is Outcome.NOT_APPLICABLE:
            reasons.setdefault(run.reason or "no reason was given", []).append(run.name)
    return [(reason, len(names), names[:40]) for reason, names in reasons.items()]


def _asset(name: str) -> str:
    return files("antiphon_conformance.reports").joinpath("templates", name).read_text(encoding="utf-8")


def needed() -> None:
    """Raise ExtraMissing where what writes the page is not installed."""
    try:
        import jinja2 as _  # noqa: F401 -- whether it is there is all that is asked
    except ImportError:
        told = "the HTML report needs jinja2: pip install 'antiphon[conformance]', or write another report"
        raise ExtraMissing(told, extra="conformance") from None


def _environment() -> Environment:
    needed()
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(_asset), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters |= {"shown": _shown, "ticked": _ticked}
    return made


def _shown(value: Any, limit: int = 2000) -> str:
    """Return a text with what is not printable as escapes, and not longer than `limit`."""
    text = str(value)
    return escaped(text if len(text) <= limit else text[: limit - 1] + "…")


def _ticked(text: str) -> Markup:
    """Return a sentence of ours: what stands between backticks in it is code."""
    from markupsafe import Markup, escape

    parts = (f"<code>{escape(part)}</code>" if n % 2 else escape(part) for n, part in enumerate(text.split("`")))
    return Markup("").join(map(Markup, parts))
