"""The report as JSON lines: a line for each finding, as it happens. `jsonl.schema.json` describes the lines.

The first line says what is tested, the last one sums up. `version` is that of the lines' form: it changes when a line
loses a key, or a key changes its meaning; new keys and kinds of lines may come without.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from antiphon_conformance.read import Json
from antiphon_conformance.report import Finding, Level
from antiphon_conformance.results import Deviation, Outcome, Run, Subject, SuiteReport
from antiphon_conformance.rule import find

from .sums import count

VERSION = 1


class Lines:
    """Writes lines to a file of text: `begin`, then `run` for each run, then `end`."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def begin(self, subject: Subject, cases_hash: str) -> None:
        """Write the line that says what is tested."""
        self._write([head(subject, cases_hash)])

    def run(self, run: Run) -> None:
        """Write the lines of one run: none where nothing was found."""
        self._write(about(run))

    def end(self, report: SuiteReport) -> None:
        """Write the lines about the baseline, and the one that sums up."""
        self._write([*(_stale(one) for one in report.stale), total(report)])

    def _write(self, lines: Iterable[Json]) -> None:
        for line in lines:
            self._file.write(written(line) + "\n")
        self._file.flush()


def write(report: SuiteReport, path: Path) -> None:
    """Write the whole report to a file."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(written(line) + "\n" for line in lines(report))


def written(line: Json) -> str:
    """Return a line as it is written, without its end."""
    return json.dumps(line)


def lines(report: SuiteReport) -> Iterator[Json]:
    """Yield all lines of a report."""
    yield head(report.subject, report.cases_hash)
    for run in report.runs:
        yield from about(run)
    yield from map(_stale, report.stale)
    yield total(report)


def head(subject: Subject, cases_hash: str) -> Json:
    """Return the first line."""
    from antiphon import __version__
    from antiphon_conformance import SUITE_VERSION

    return {
        "line": "suite",
        "version": VERSION,
        "subject": {"name": subject.name, "kind": subject.kind, "version": subject.version},
        "suite": SUITE_VERSION,
        "package": __version__,
        "cases": cases_hash,
    }


def about(run: Run) -> Iterator[Json]:
    """Yield the lines of a run: its findings, or why it is no run at all."""
    if run.outcome is Outcome.ERROR:
        yield {"line": "problem", "case": run.case, "form": run.form, "reason": run.reason}
        return
    yield from (_finding(run, finding, scored=True) for finding in run.findings)
    yield from (_finding(run, finding, scored=False) for finding in run.new)


def _finding(run: Run, finding: Finding, *, scored: bool) -> Json:
    rule, excuse = find(finding.code), run.expected.get(finding.code)
    return {
        "line": "finding",
        "case": run.case,
        "form": run.form,
        "layer": run.layer.value,
        "code": finding.code,
        "name": rule.name if rule is not None else "",
        "level": finding.level.value,
        "index": finding.index,
        "message": finding.message,
        "scored": scored,
        "expected": excuse.reason if excuse is not None else None,
    }


def _stale(deviation: Deviation) -> Json:
    return {"line": "stale", "code": deviation.rule, "case": deviation.case, "reason": deviation.reason}


def total(report: SuiteReport) -> Json:
    """Return the last line."""
    counts = count(report)
    levels = Counter(
        one.level for run in report.runs for one in run.unexpected(*Level) if run.outcome is not Outcome.ERROR
    )
    outcomes = Counter(run.outcome for run in report.runs)
    return {
        "line": "sum",
        "exit_status": report.exit_status,
        "cases": counts.cases,
        "ran": counts.ran,
        "not_applicable": counts.not_applicable,
        "reasons": dict(counts.reasons),
        "runs": {outcome.value: outcomes[outcome] for outcome in Outcome},
        "findings": {level.value: levels[level] for level in Level},
        "clean": list(counts.clean),
        "broken": list(counts.broken),
        "stale": len(report.stale),
        "strict": report.strict,
        "notes": list(report.notes),
        "suite": report.suite_version,
        "package": report.package_version,
        "cases_hash": report.cases_hash,
    }


def line_schema() -> Any:
    """Return the JSON Schema of a line."""
    return json.loads(files("antiphon_conformance.reports").joinpath("jsonl.schema.json").read_text("utf-8"))
