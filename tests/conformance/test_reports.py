"""The written reports: one value, said in full in each form."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from antiphon import convert
from antiphon_conformance import Finding, Level
from antiphon_conformance.adapters import PythonAdapter
from antiphon_conformance.case import BadCase, load_cases
from antiphon_conformance.reports import console, jsonl, junit, markdown
from antiphon_conformance.reports.sums import broken_rules, count, sentence
from antiphon_conformance.results import Deviation, Outcome, Run, Subject, SuiteReport
from antiphon_conformance.running import Settings, choose, run_suite


def two_bugs(chunks: list[dict[str, Any]]) -> Iterator[Any]:
    """Counts from 1, and has one id for all items."""
    for event in convert(chunks, events="dict", ids="counted", created_at=0):
        text = json.dumps({**event, "sequence_number": event["sequence_number"] + 1})
        for prefix in ("msg", "fc"):
            text = text.replace(f'"{prefix}_', '"item_').replace("item_0", "item_").replace("item_1", "item_")
        yield json.loads(text)


COUNTS = Deviation("SEQ001", "*", "counts from 1", "https://tracker.example/7")
STALE = Deviation("USE001", "text/plain", "no usage")


@pytest.fixture(scope="module")
def report() -> SuiteReport:
    cases = [
        *choose(load_cases(), ["calls/text-before", "text/plain", "refusal/only", "opt-ins/think-tags"]),
        BadCase("mine/bad", "it is <no> case\x00"),
    ]
    settings = Settings(has={"tools"}, baseline=(COUNTS, STALE), forms=("characters",))
    return run_suite(PythonAdapter(two_bugs, "mine:two_bugs", version="7"), cases, settings)


def test_the_report_is_as_it_must_be(report: SuiteReport) -> None:
    assert [(run.name, run.outcome) for run in report.runs] == [
        ("calls/text-before", Outcome.FAIL),
        ("calls/text-before [characters]", Outcome.FAIL),
        ("opt-ins/think-tags", Outcome.NOT_APPLICABLE),
        ("refusal/only", Outcome.NOT_APPLICABLE),
        ("text/plain", Outcome.EXPECTED),
        ("text/plain [characters]", Outcome.EXPECTED),
        ("mine/bad", Outcome.ERROR),
    ]
    assert report.stale == (STALE,)
    assert report.exit_status == 2


def test_the_sums(report: SuiteReport) -> None:
    counts = count(report)
    assert (counts.cases, counts.ran, counts.not_applicable, counts.runs) == (5, 3, 2, 5)
    assert counts.reasons == {"needs: refusal": 1, "needs: reasoning, think_tags": 1}
    assert set(counts.broken) == {one.code[:3] for one in broken_rules(report, Level.MUST)}
    assert "ITM" in counts.broken
    assert "SEQ" in counts.clean
    assert sentence(report).endswith(
        "5 cases, 3 ran in 5 runs, 2 not applicable (needs: reasoning, refusal, think_tags)"
    )


def test_console(report: SuiteReport) -> None:
    out = io.StringIO()
    console.write(report, Console(file=out, width=200, highlight=False))
    text = out.getvalue()
    for line in (
        "ITM002 ids-differ   MUST   calls/text-before\n",
        "  ▸ ",
        "  why: client openai-python",
        "  antiphon explain ITM002 · --case calls/text-before shows it alone\n",
        "the suite is wrong   mine/bad: it is <no> case\\x00\n",
        "expected  SEQ001 in *: counts from 1 https://tracker.example/7 (2 cases)\n",
        "stale  USE001 in text/plain: no usage: it is not broken any more, remove the line\n",
        "mine:two_bugs 7 · suite 1.0\n",
        "5 cases, 3 ran in 5 runs, 2 not applicable (needs: reasoning, refusal, think_tags)\n",
    ):
        assert line in text
    assert "SEQ001 numbered" not in text


def test_console_says_that_nothing_ran() -> None:
    out = io.StringIO()
    console.write(SuiteReport(Subject("x", "adapter"), (), "1.0", "0", ""), Console(file=out))
    assert out.getvalue().endswith("0 areas clean · 0 cases, 0 ran in 0 runs, 0 not applicable\nnothing ran\n")


def test_json_lines_validate(report: SuiteReport, tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonl.write(report, tmp_path / "report.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "report.jsonl").read_text("utf-8").splitlines()]
    jsonschema.Draft202012Validator.check_schema(jsonl.line_schema())
    validator = jsonschema.Draft202012Validator(jsonl.line_schema())
    assert [error.message for line in lines for error in validator.iter_errors(line)] == []
    assert not validator.is_valid({**lines[-1], "exit_status": 7})
    assert [line["line"] for line in lines] == ["suite", *["finding"] * (len(lines) - 4), "problem", "stale", "sum"]
    assert lines[0]["subject"] == {"name": "mine:two_bugs", "kind": "adapter", "version": "7"}
    excused = {line["code"]: line["expected"] for line in lines if line["line"] == "finding"}
    assert excused["SEQ001"] == "counts from 1"
    assert excused["ITM002"] is None
    assert lines[-1]["exit_status"] == 2
    assert lines[-1]["runs"] == {"pass": 0, "fail": 2, "expected": 2, "not_applicable": 2, "error": 1}


def test_json_lines_come_as_it_happens(report: SuiteReport) -> None:
    out = io.StringIO()
    lines = jsonl.Lines(out)
    lines.begin(report.subject, report.cases_hash)
    begun = out.getvalue().count("\n")
    for run in report.runs:
        lines.run(run)
    lines.end(report)
    assert begun == 1
    assert out.getvalue() == "".join(f"{jsonl.written(line)}\n" for line in jsonl.lines(report))


def test_junit(report: SuiteReport, tmp_path: Path) -> None:
    junit.write(report, tmp_path / "report.xml")
    root = ElementTree.parse(tmp_path / "report.xml").getroot()
    suites = {suite.get("name"): suite for suite in root}
    failed = [case for suite in root for case in suite if case.find("failure") is not None]
    assert {(case.get("classname"), case.get("name", "")[:6]) for case in failed} == {
        *(("ITM.calls/text-before", one.code) for one in broken_rules(report, Level.MUST) if one.code[:3] == "ITM"),
        *((f"{one.code[:3]}.calls/text-before", one.code) for one in broken_rules(report, Level.MUST)),
        ("baseline", "USE001"),
    }
    assert "calls/text-before [characters]: ITM002 MUST" in "".join(case.find("failure").text or "" for case in failed)
    assert [case.get("name") for case in suites["not applicable"]] == ["opt-ins/think-tags", "refusal/only"]
    assert suites["suite"].find("testcase/error").get("message") == "it is <no> case\ufffd"
    assert root.get("errors") == "1"
    assert root.get("skipped") == "2"
    assert int(root.get("tests", 0)) == sum(len(suite) for suite in root)


def test_markdown(report: SuiteReport, tmp_path: Path) -> None:
    markdown.write(report, tmp_path / "report.md")
    lines = (tmp_path / "report.md").read_text("utf-8").splitlines()
    assert "| rule | level | mine:two\\_bugs |" in lines
    assert "| SEQ001 numbered-from-0-by-1 | MUST | (2) |" in lines
    assert "| ITM002 ids-differ | MUST | 1 |" in lines
    assert "| USE001 usage-where-the-source-gave-it | MUST | ✓ |" in lines
    assert any(line.startswith("- **ITM002** MUST, in 1 of 3 cases; `calls/text-before`: ") for line in lines)
    assert "- stale: USE001 in text/plain: no usage" in lines


def test_the_matrix_has_a_column_for_each_subject(report: SuiteReport) -> None:
    empty = SuiteReport(Subject("a|b", "adapter"), (), "1.0", "0", "")
    head, _, *rows = markdown.matrix([report, empty])
    assert head == "| rule | level | mine:two\\_bugs | a\\|b |"
    assert all(row.endswith(" | – |") for row in rows)


def test_only_strict_counts_a_should() -> None:
    soft = Finding("SCH002", Level.SHOULD, 0, "odd")
    run = Run("a/b", "t", Outcome.PASS, findings=(soft,), ran=("SCH002",))
    lax = SuiteReport(Subject("x", "adapter"), (run,), "1.0", "0", "")
    strict = SuiteReport(Subject("x", "adapter"), (run,), "1.0", "0", "", strict=True)
    assert (count(lax).broken, count(strict).broken) == ((), ("SCH",))
    assert [len(junit.document(one).findall(".//failure")) for one in (lax, strict)] == [0, 1]
