"""Baselines: what is excused, what is stale, and what is wrong with a file, by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon import convert
from antiphon.errors import BadInput
from antiphon_conformance.adapters import PythonAdapter
from antiphon_conformance.baseline import excused, parse_baseline, read_baseline, stale
from antiphon_conformance.case import load_cases
from antiphon_conformance.requirements import required, versions
from antiphon_conformance.results import Deviation, Outcome
from antiphon_conformance.rule import every_rule
from antiphon_conformance.running import Settings, choose, run_suite

GOOD = """
# what mine does
[[deviation]]
rule = "SEQ001"
case = "*"
reason = "counts from 1"
issue = "https://tracker.example/7"

[[deviation]]
rule = "ITM002"
case = "text/plain"
reason = "one id for all"
"""
ANY = Deviation("SEQ001", "*", "counts from 1", "https://tracker.example/7")
ONE = Deviation("ITM002", "text/plain", "one id for all")


def test_a_baseline_is_read(tmp_path: Path) -> None:
    file = tmp_path / "known.toml"
    file.write_text(GOOD)
    assert read_baseline(file) == (ANY, ONE)
    assert parse_baseline("", "empty.toml") == ()


ENTRY = '[[deviation]]\nrule = "SEQ001"\ncase = "*"\nreason = "x"\n'
WRONG = {
    "no TOML": ("[[deviation]\n", "b.toml is no TOML: "),
    "another table": ("[excuses]\n", "b.toml: excuses is not known"),
    "one bracket": ('[deviation]\nrule = "SEQ001"\n', "with two brackets"),
    "no table": ("deviation = [1]\n", "b.toml, deviation 1: a deviation is a table"),
    "no reason": (ENTRY + '\n[[deviation]]\nrule = "ITM001"\ncase = "*"\n', "b.toml:6: reason is missing"),
    "blank reason": (ENTRY.replace('"x"', '" "'), "b.toml:1: reason is missing"),
    "nothing": ("\n\n[[deviation]]\n", "b.toml:3: rule and case and reason is missing"),
    "a number": (ENTRY.replace('"x"', "7"), "b.toml:1: reason is 7, not a text"),
    "unknown key": (ENTRY + 'until = "2030"\n', "b.toml:1: until is not known; there are rule, case, reason, issue"),
    "unknown rule": (ENTRY.replace("SEQ001", "SEQ999"), "b.toml:1: there is no rule 'SEQ999'"),
    "twice": (ENTRY + ENTRY.replace('"x"', '"y"'), "b.toml:5: SEQ001 in * is excused twice"),
}


@pytest.mark.parametrize(("written", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_baseline_says_where(written: str, message: str) -> None:
    with pytest.raises(BadInput) as problem:
        parse_baseline(written, "b.toml")
    assert message in str(problem.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot read the baseline"):
        read_baseline(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b'reason = "\xe9"')
    with pytest.raises(BadInput, match="no UTF-8"):
        read_baseline(tmp_path / "latin.toml")


def test_the_exact_line_goes_before_the_one_for_any_case() -> None:
    exact = Deviation("SEQ001", "text/plain", "only here")
    assert excused((ANY, exact), "text/plain", ["SEQ001", "ITM001"]) == {"SEQ001": exact}
    assert excused((ANY, exact), "text/one-chunk", ["SEQ001"]) == {"SEQ001": ANY}


@pytest.mark.parametrize(
    ("ran", "all_ran", "left"),
    [
        ([("text/plain", ["SEQ001", "ITM002"])], True, ()),
        ([("text/plain", ["SEQ001"])], True, (ONE,)),
        ([("text/plain", [])], True, (ANY, ONE)),
        ([("text/plain", [])], False, (ONE,)),  # another case may break it
        ([("text/one-chunk", ["SEQ001"])], True, ()),  # the case of the other line did not run
    ],
)
def test_what_excuses_nothing_is_stale(ran: Any, all_ran: bool, left: Any) -> None:
    assert stale((ANY, ONE), ran, all_ran=all_ran) == left


# The four outcomes, in a run


def from_one(chunks: list[dict[str, Any]]) -> Iterator[Any]:
    for event in convert(chunks, events="dict"):
        yield {**event, "sequence_number": event["sequence_number"] + 1}


def clean(chunks: list[dict[str, Any]]) -> Iterator[Any]:
    return convert(chunks, events="dict")


LINE = Deviation("SEQ001", "text/plain", "counts from 1")


@pytest.mark.parametrize(
    ("adapter", "baseline", "outcome", "is_stale", "status"),
    [
        (from_one, (), Outcome.FAIL, False, 1),
        (from_one, (LINE,), Outcome.EXPECTED, False, 0),
        (clean, (LINE,), Outcome.PASS, True, 1),
        (clean, (), Outcome.PASS, False, 0),
    ],
)
def test_breach_and_line(
    adapter: Callable[..., Any], baseline: Any, outcome: Outcome, is_stale: bool, status: int
) -> None:
    report = run_suite(PythonAdapter(adapter), choose(load_cases(), ["text/plain"]), Settings(baseline=baseline))
    assert {run.outcome for run in report.runs} == {outcome}
    assert report.stale == (baseline if is_stale else ())
    assert report.exit_status == status


# Requirements


def test_version_1_0_is_the_rules_that_are_since_1_0() -> None:
    assert versions() == ("1.0",)
    assert required("1.0") == required("") == {rule.code for rule in every_rule() if rule.since == "1.0"}
    with pytest.raises(BadInput, match=r"there are no requirements '9.9'; there are 1.0"):
        required("9.9")


def test_a_rule_that_is_newer_is_shown_and_not_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    import antiphon_conformance.running as running

    monkeypatch.setattr(running, "required", lambda version: required("1.0") - {"SEQ001"})
    cases = choose(load_cases(), ["text/plain"])
    report = run_suite(PythonAdapter(from_one), cases, Settings(forms=()))
    assert [(run.outcome, [one.code for one in run.new]) for run in report.runs] == [(Outcome.PASS, ["SEQ001"])]
    report = run_suite(PythonAdapter(from_one), cases, Settings(forms=(), requirements="1.0"))
    assert [(run.outcome, run.new) for run in report.runs] == [(Outcome.PASS, ())]
