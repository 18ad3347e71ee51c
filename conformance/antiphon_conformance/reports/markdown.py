"""The report as Markdown: a matrix, rule by adapter, for one report or several."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from antiphon.timeline import escaped
from antiphon_conformance.report import Level
from antiphon_conformance.results import Outcome, SuiteReport
from antiphon_conformance.rule import find

from .sums import broken_rules, count, expected_rules, sentence

CLEAN, NOT_APPLICABLE = "✓", "–"


def write(report: SuiteReport, path: Path) -> None:
    """Write one report to a file."""
    path.write_text("\n".join(page([report])) + "\n", "utf-8", "backslashreplace")


def page(reports: Sequence[SuiteReport]) -> Iterator[str]:
    """Yield the lines of a page: the matrix, what the signs mean, and what was found for each subject."""
    yield "# Conformance"
    yield ""
    yield from matrix(reports)
    yield ""
    yield (
        f"{CLEAN} no finding · a number: the cases in which the rule is broken · (a number): so many, as a baseline says · "
        f"{NOT_APPLICABLE} did not run"
    )
    for report in reports:
        yield ""
        yield from _about(report)


def matrix(reports: Sequence[SuiteReport]) -> Iterator[str]:
    """Yield the lines of the table: a row for each rule that ran anywhere, a column for each subject."""
    codes = sorted({code for report in reports for run in report.runs for code in run.ran})
    columns = [_cells(report) for report in reports]
    yield f"| rule | level | {' | '.join(_cell(report.subject.name) for report in reports)} |"
    yield "|---|---|" + "---|" * len(reports)
    for code in codes:
        rule = find(code)
        name, level = (rule.name, rule.level.value) if rule is not None else ("", "")
        yield f"| {code} {name} | {level} | {' | '.join(cells.get(code, NOT_APPLICABLE) for cells in columns)} |"


def _cells(report: SuiteReport) -> dict[str, str]:
    """Return code -> what its cell says."""
    cells = {code: CLEAN for run in report.runs for code in run.ran}
    for deviation, runs in expected_rules(report).items():
        cells[deviation.rule] = f"({len({run.case for run in runs})})"
    for one in broken_rules(report):
        cells[one.code] = str(len(one.cases))
    return cells


def _about(report: SuiteReport) -> Iterator[str]:
    version = f" {report.subject.version}" if report.subject.version else ""
    yield f"## {_cell(report.subject.name)}{_cell(version)}"
    yield ""
    yield f"{_cell(sentence(report))}. Suite {report.suite_version}, cases `{report.cases_hash}`."
    found = broken_rules(report, Level.MUST, Level.SHOULD)
    if found:
        yield ""
    for one in found:
        run, finding = one.places[0]
        yield f"- **{one.code}** {finding.level.value}, in {len(one.cases)} of {count(report).ran} cases; {_code(run.name)}: {_cell(finding.message)}"
    for deviation in report.stale:
        yield f"- stale: {_cell(f'{deviation.rule} in {deviation.case}: {deviation.reason}')}"
    for run in report.runs:
        if run.outcome is Outcome.ERROR:
            yield f"- the suite is wrong: {_code(run.name)}: {_cell(run.reason)}"


def _cell(text: str) -> str:
    """Return `text` as a table and a line may hold it."""
    plain = escaped(" ".join(text.split()))
    for char in "\\|<>*_`[]":
        plain = plain.replace(char, f"\\{char}")
    return plain


def _code(text: str) -> str:
    """Return `text` as code, within more backticks than it has in a row."""
    plain = escaped(" ".join(text.split()))
    fence = "`" * (1 + max(map(len, re.findall("`+", plain)), default=0))
    space = " " if "`" in plain else ""
    return f"{fence}{space}{plain}{space}{fence}"
