"""`AdapterSuite` and the plug-in, as a stranger's tests use them: in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from typing import Any

import pytest

from antiphon_conformance import AdapterSuite
from antiphon_conformance.plugin import Tally

pytest_plugins = ["pytester"]

MINE = """
from antiphon import aconvert

async def clean(chunks):
    async for event in aconvert(chunks, events="dict"):
        yield event

async def from_one(chunks):
    async for event in clean(chunks):
        yield {**event, "sequence_number": event["sequence_number"] + 1}

def raises(chunks):
    raise KeyError("boom")
"""
TEST = """
from antiphon_conformance import AdapterSuite

class TestMine(AdapterSuite):
    adapter = "mine:{adapter}"
    cases = ["text/plain", "text/one-chunk", "calls/plain"]
    {more}
"""
# Where the package is installed, its plug-in is there by its entry point.
INSTALLED = any(point.value == "antiphon_conformance.plugin" for point in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "antiphon_conformance.plugin")
OTHERS = ("-p", "no:asyncio", "-p", "no:schemathesis")  # they warn of what is none of our business
LINE = '[[deviation]]\nrule = "{}"\ncase = "{}"\nreason = "so it is"\n'


@pytest.fixture
def run(pytester: pytest.Pytester) -> Any:
    def run(adapter: str, more: str = "has = {'tools', 'usage'}", baseline: str = "", *arguments: str) -> Any:
        pytester.makepyfile(mine=MINE, test_mine=TEST.format(adapter=adapter, more=more))
        (pytester.path / "known.toml").write_text(baseline)
        how = pytester.runpytest_subprocess if "-n" in arguments else pytester.runpytest_inprocess
        return how(*PLUGIN, *OTHERS, "-p", "no:cacheprovider", *arguments)

    return run


def test_a_clean_adapter_passes(run: Any) -> None:
    result = run("clean")
    result.assert_outcomes(passed=3 * 12 + 2)
    result.stdout.fnmatch_lines(["antiphon: test_mine.py::TestMine: 3 cases, 3 ran, 0 with findings, 0 not applicable"])


def test_a_breach_fails_in_its_area_and_says_why(run: Any) -> None:
    result = run("from_one")
    result.assert_outcomes(failed=3, passed=3 * 11 + 2)
    result.stdout.fnmatch_lines(
        [
            "*test_conformance?text/plain-SEQ?*",
            "SEQ001 numbered-from-0-by-1   MUST   text/plain",
            "  event 0: sequence_number is 1 where 0 follows",
            "  ▸    0  created",
            "  why: *",
            "*antiphon explain SEQ001*",
            "antiphon: test_mine.py::TestMine: 3 cases, 3 ran, 3 with findings, 0 not applicable",
        ]
    )


def test_an_adapter_that_raises_is_told_where(run: Any) -> None:
    result = run("raises", "cases = ['text/plain']")
    result.assert_outcomes(failed=1, passed=11 + 2)
    result.stdout.fnmatch_lines(
        ["HAR002 adapter-gives-an-answer   MUST   text/plain", "*KeyError: 'boom' (mine.py:*, in raises)"]
    )


def test_what_a_baseline_excuses_passes_and_what_is_stale_fails(run: Any) -> None:
    more = 'baseline = "known.toml"'
    run("from_one", more, LINE.format("SEQ001", "*")).assert_outcomes(passed=3 * 12 + 2)
    result = run("from_one", more, LINE.format("SEQ001", "text/plain"))
    result.assert_outcomes(failed=2, passed=3 * 12 - 2 + 2)
    result = run("clean", more, LINE.format("SEQ001", "*") + LINE.format("ITM001", "text/plain"))
    result.assert_outcomes(failed=2, passed=3 * 12 + 1)
    result.stdout.fnmatch_lines(
        [
            "*stale: nothing breaks SEQ001 in * any more, remove the line*",
            "*stale: nothing breaks ITM001 in text/plain*",
        ]
    )


def test_what_the_adapter_does_not_have_is_skipped_and_nothing_run_fails(run: Any) -> None:
    result = run("clean", "has = set()")
    result.assert_outcomes(passed=12 + 2, skipped=2 * 12)
    result.stdout.fnmatch_lines(["*3 cases, 1 ran, 0 with findings, 2 not applicable (needs: tools, usage)"])
    result = run("clean", "cases = ['calls/plain']; has = set()")
    result.assert_outcomes(failed=1, passed=1, skipped=12)
    result.stdout.fnmatch_lines(["*nothing ran: none of 1 cases applies*"])


def test_under_xdist_too(run: Any) -> None:
    pytest.importorskip("xdist")
    result = run("from_one", "has = {'tools', 'usage'}", "", "-n", "2")
    result.assert_outcomes(failed=3, passed=3 * 11 + 2)
    result.stdout.fnmatch_lines(["antiphon: *TestMine: 3 cases, 3 ran, 3 with findings, 0 not applicable"])


@pytest.mark.parametrize(
    ("more", "baseline", "message"),
    [
        ("adapter = None", "", "*TestMine: there is no adapter: set one*"),
        ("has = {'magic'}", "", "*TestMine: has: magic is not known; there are reasoning*"),
        ("cases = ['nowhere']", "", "*TestMine: no case is called 'nowhere'*"),
        ("baseline = 'none.toml'", "", "*TestMine: cannot read the baseline*"),
        ("baseline = 'known.toml'", "x", "*TestMine: *known.toml is no TOML*"),
        (
            "baseline = 'known.toml'",
            LINE.format("SEQ001", "text/none"),
            "*SEQ001 is excused in 'text/none', and there is no*",
        ),
        ("requirements = '7.0'", "", "*there are no requirements '7.0'*"),
    ],
)
def test_a_setting_that_is_none(run: Any, more: str, baseline: str, message: str) -> None:
    result = run("clean", more, baseline)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()


# What a subclass may not do


def test_the_tests_are_not_overridden_one_by_one() -> None:
    message = r"TestMine\.test_conformance: the tests of AdapterSuite are not overridden one by one.*baseline"
    with pytest.raises(TypeError, match=message):
        type("TestMine", (AdapterSuite,), {"test_conformance": lambda self: None})

    class Mixin:
        def test_baseline(self) -> None: ...

    with pytest.raises(TypeError, match=r"TestMine\.test_baseline"):
        type("TestMine", (Mixin, AdapterSuite), {})


@pytest.mark.parametrize(
    "mark", [pytest.mark.skip, pytest.mark.xfail(reason="x"), [pytest.mark.skipif(True, reason="x")]]
)
def test_the_class_is_not_marked_away(mark: Any) -> None:
    with pytest.raises(
        TypeError, match=r"TestMine is marked (skip|xfail|skipif): a known deviation goes in the baseline"
    ):
        type("TestMine", (AdapterSuite,), {"pytestmark": mark})


def test_tests_and_settings_of_ones_own_are_welcome() -> None:
    made = type("TestMine", (AdapterSuite,), {"adapter": "a:b", "test_mine": lambda self: None})
    assert type("TestMore", (made,), {"has": {"tools"}}).adapter == "a:b"


# The plug-in


def test_the_plugin_imports_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import antiphon_conformance.plugin; "
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith('antiphon')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    lazy = ["antiphon", "antiphon.lazily", "antiphon_conformance"]  # they load nothing before it is asked for
    assert out.split() == [*lazy, "antiphon_conformance.plugin"]


def test_the_plugin_counts_none_but_its_own() -> None:
    tally = Tally()
    for name in (
        "test_x.py::test_conformance[a]",
        "test_x.py::test_other[text/plain-ITM]",
        "test_x.py::test_conformance",
    ):
        tally.pytest_runtest_logreport(pytest.TestReport(name, ("", 0, ""), {}, "passed", None, "call"))
    assert tally.outcomes == {}
