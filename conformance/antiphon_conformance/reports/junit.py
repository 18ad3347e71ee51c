"""The report as JUnit's XML, which every CI shows: a testsuite for each area, a testcase for each case and rule.

The forms of a case are one testcase: what broke in which form is in its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from antiphon_conformance.report import Finding, Level
from antiphon_conformance.results import Outcome, Run, SuiteReport
from antiphon_conformance.rule import find

# What XML 1.0 has no way to write.
_NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write(report: SuiteReport, path: Path) -> None:
    """Write the report to a file."""
    root = document(report)
    indent(root)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def document(report: SuiteReport) -> Element:
    """Return the document: areas in order of their letters, then what did not apply, and what is wrong."""
    root = Element("testsuites", name=_safe(f"antiphon: {report.subject.name}"))
    cases = _by_case(report.runs)
    areas = sorted({code[:3] for run in report.runs for code in run.ran})
    for area in areas:
        _suite(root, area, [one for runs in cases.values() for one in _area(area, runs, report.strict)])
    left_out = [_skipped(runs[0]) for runs in cases.values() if runs[0].outcome is Outcome.NOT_APPLICABLE]
    _suite(root, "not applicable", left_out)
    _suite(root, "suite", [*(_wrong(run) for run in report.runs if run.outcome is Outcome.ERROR), *_stale(report)])
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    return root


def _by_case(runs: Sequence[Run]) -> dict[str, list[Run]]:
    made: dict[str, list[Run]] = {}
    for run in runs:
        made.setdefault(run.case, []).append(run)
    return made


def _suite(root: Element, name: str, cases: Sequence[Element]) -> None:
    if not cases:
        return
    counted = {
        key: str(sum(case.find(tag) is not None for case in cases))
        for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suite = SubElement(root, "testsuite", {"name": name, "tests": str(len(cases)), **counted})
    suite.extend(cases)


def _area(area: str, runs: Sequence[Run], strict: bool) -> Iterator[Element]:
    """Yield a testcase for each rule of the area that ran over a case."""
    codes = sorted(
        {code for run in runs for code in (*run.ran, *(one.code for one in run.findings)) if code[:3] == area}
    )
    for code in codes:
        if runs[0].outcome is not Outcome.ERROR:
            yield _testcase(code, runs, strict)


def _testcase(code: str, runs: Sequence[Run], strict: bool) -> Element:
    rule = find(code)
    case = Element(
        "testcase", classname=f"{code[:3]}.{_safe(runs[0].case)}", name=f"{code} {rule.name if rule else ''}".strip()
    )
    found = [(run, one) for run in runs for one in run.findings if one.code == code]
    levels = (Level.MUST, Level.SHOULD) if strict else (Level.MUST,)
    failing = [(run, one) for run, one in found if one.level in levels and code not in run.expected]
    if failing:
        failure = SubElement(case, "failure", type=failing[0][1].level.value, message=_safe(failing[0][1].message))
        failure.text = _safe(
            "\n".join([*(_told(run, one) for run, one in failing), f"why: {rule.why if rule else ''}"])
        )
    elif found:
        excuse = found[0][0].expected.get(code)
        words = f"expected: {excuse.reason}" if excuse else f"only {found[0][1].level.value}"
        SubElement(case, "system-out").text = _safe("\n".join([words, *(_told(run, one) for run, one in found)]))
    return case


def _told(run: Run, finding: Finding) -> str:
    return f"{run.name}: {finding}"


def _skipped(run: Run) -> Element:
    case = Element("testcase", classname="not applicable", name=_safe(run.case))
    SubElement(case, "skipped", message=_safe(run.reason))
    return case


def _wrong(run: Run) -> Element:
    case = Element("testcase", classname="suite", name=_safe(run.name))
    SubElement(case, "error", type="HAR001", message=_safe(run.reason))
    return case


def _stale(report: SuiteReport) -> Iterator[Element]:
    for deviation in report.stale:
        case = Element("testcase", classname="baseline", name=_safe(f"{deviation.rule} {deviation.case}"))
        SubElement(case, "failure", type="stale", message="nothing breaks this rule here any more: remove the line")
        yield case


def _safe(text: str) -> str:
    """Return `text` as XML can hold it."""
    return _NO_XML.sub("\ufffd", text)
