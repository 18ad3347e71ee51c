"""`AdapterSuite`: the whole suite as pytest's tests, one for each case and area of rules.

    class TestMine(AdapterSuite):
        adapter = "mypackage.stream:convert"
        has = {"tools", "reasoning"}
        baseline = "known-deviations.toml"

The class is a setting, no place for exceptions: what is known to deviate stands in the baseline, where it is seen.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, ClassVar, cast

from antiphon.errors import BadInput, ExtraMissing
from antiphon.near import listing

from .adapters import SECONDS, Adapter, ChunkStyle, PythonAdapter, load
from .baseline import read_baseline, refuse_unknown
from .case import CAPABILITIES, BadCase, Case, load_cases
from .forms import FORMS
from .report import Level
from .requirements import required
from .results import Deviation, Outcome, Run, Subject, SuiteReport
from .rule import every_rule
from .running import Runner, Settings, choose

try:
    import pytest
except ImportError as problem:
    raise ExtraMissing(
        "AdapterSuite needs pytest: pip install 'antiphon[conformance]'", extra="conformance"
    ) from problem

TESTS = ("test_conformance", "test_baseline", "test_something_ran")
_FIXED = (*TESTS, "pytest_generate_tests", "teardown_class")


class AdapterSuite:
    """The base of a test class; importing it collects nothing.

    `adapter`: a dotted path (`package.module:name`), a callable, or a command of a process as a list of words. `has`:
    what it has, of `CAPABILITIES`; a case that needs something else is skipped. `baseline`: a file of known deviations,
    from the folder of the test. `chunks`: how it takes chunks ("dict", "openai", "sse"); None tries it. `forms`: the
    forms that are derived. `cases`: ids or folders of cases; all, where it is empty. `strict`: SHOULD fails too.
    `requirements`: a version of the suite, whose rules alone are applied. `seconds`: what one case may take.

    Raises TypeError where a subclass overrides a test, or skips them by a mark.
    """

    adapter: ClassVar[Any] = None
    has: ClassVar[Collection[str] | None] = None
    baseline: ClassVar[str | Path | None] = None
    chunks: ClassVar[ChunkStyle | None] = None
    forms: ClassVar[Collection[str]] = tuple(FORMS)
    cases: ClassVar[Collection[str]] = ()
    strict: ClassVar[bool] = False
    requirements: ClassVar[str] = ""
    seconds: ClassVar[float] = SECONDS

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _FIXED:
            if inspect.getattr_static(cls, name) is not AdapterSuite.__dict__[name]:
                raise TypeError(
                    f"{cls.__name__}.{name}: the tests of AdapterSuite are not overridden one by one. What is known to "
                    "deviate goes in the baseline, what the adapter does not have out of `has`"
                )
        marks = [mark.name for mark in _marks(cls) if mark.name in ("skip", "skipif", "xfail")]
        if marks:
            raise TypeError(
                f"{cls.__name__} is marked {marks[0]}: a known deviation goes in the baseline, by rule and case"
            )

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Give each test its cases; called by pytest when it collects."""
        made = _session(type(self))
        if "area" in metafunc.fixturenames:
            areas = sorted({rule.area for rule in every_rule() if rule.about != "answers"})
            ids = [(case.id, area) for case in made.cases for area in areas]
            metafunc.parametrize(("case", "area"), ids, ids=[f"{case}-{area}" for case, area in ids])
        elif "deviation" in metafunc.fixturenames:
            lines: list[Deviation | None] = list(made.settings.baseline) or [None]
            names = [f"{one.rule}-{one.case}" if one is not None else "none" for one in lines]
            metafunc.parametrize("deviation", lines, ids=names)

    @classmethod
    def teardown_class(cls) -> None:
        """End what the adapter holds."""
        _session(cls).close()

    def test_conformance(self, case: str, area: str) -> None:
        """The rules of one area, over one case in all its forms."""
        runs = _session(type(self)).runs(case)
        if runs[0].outcome is Outcome.NOT_APPLICABLE:
            pytest.skip(runs[0].reason)
        if runs[0].outcome is Outcome.ERROR:
            pytest.fail(f"the suite is wrong: {case}: {runs[0].reason}", pytrace=False)
        told = _told(runs, area, self.strict)
        if told:
            pytest.fail(told, pytrace=False)

    def test_baseline(self, deviation: Deviation | None) -> None:
        """A line of the baseline still excuses something."""
        made = _session(type(self))
        if deviation is None:
            assert not made.settings.baseline
            return
        chosen = [case.id for case in made.cases]
        cases = [case for case in chosen if deviation.case in ("*", case)]
        if any(deviation.rule in {one.code for run in made.runs(case) for one in run.findings} for case in cases):
            return
        if not cases:
            pytest.skip(f"{deviation.case} is not among the cases of this class")
        pytest.fail(
            f"stale: nothing breaks {deviation.rule} in {deviation.case} any more, remove the line", pytrace=False
        )

    def test_something_ran(self) -> None:
        """At least one case applies: a suite that runs nothing proves nothing."""
        made = _session(type(self))
        if not any(made.runs(case.id)[0].outcome is not Outcome.NOT_APPLICABLE for case in made.cases):
            pytest.fail(
                f"nothing ran: none of {len(made.cases)} cases applies to an adapter that has {self.has}", pytrace=False
            )


def _marks(cls: type) -> list[pytest.Mark]:
    marks: Any = getattr(cls, "pytestmark", [])
    listed: list[Any] = list(cast("Iterable[Any]", marks)) if isinstance(marks, list | tuple) else [marks]
    return [one.mark if hasattr(one, "mark") else one for one in listed]


def _told(runs: list[Run], area: str, strict: bool) -> str:
    """Return what is broken in an area, as the report on a terminal says it."""
    from .reports.console import told
    from .reports.sums import broken_rules

    report = SuiteReport(Subject("", "adapter"), tuple(runs), "", "", "")
    levels = (Level.MUST, Level.SHOULD) if strict else (Level.MUST,)
    broken = [one for one in broken_rules(report, *levels) if one.code[:3] == area]
    return "\n\n".join("\n".join(line.plain for line in told(one)) for one in broken)


class _Session:
    """What one class of tests has run so far; each case runs once in a process."""

    def __init__(self, suite: type[AdapterSuite]) -> None:
        self.settings = _settings(suite)
        self.cases = choose(load_cases(), tuple(suite.cases)) if suite.cases else load_cases()
        refuse_unknown(self.settings.baseline, {case.id for case in load_cases()}, name=str(suite.baseline))
        self._by_id: dict[str, Case | BadCase] = {case.id: case for case in self.cases}
        self._suite = suite
        self._runner: Runner | None = None
        self._unusable = ""
        self._runs: dict[str, list[Run]] = {}

    def runs(self, case: str) -> list[Run]:
        """Return the runs of a case, in all its forms."""
        if case not in self._runs:
            self._runs[case] = list(self._begun().runs(self._by_id[case]))
        return self._runs[case]

    def _begun(self) -> Runner:
        """Return the runner. An adapter that cannot be used is tried once, and fails each test with the same words."""
        if self._runner is None and not self._unusable:
            try:
                self._runner = Runner(_adapter(self._suite), self.settings)
            except BadInput as problem:
                self._unusable = f"{self._suite.__name__}: {problem}"
        if self._runner is None:
            pytest.fail(self._unusable, pytrace=False)
        return self._runner

    def close(self) -> None:
        """End what the adapter holds; it is begun again where it is needed again."""
        if self._runner is not None:
            self._runner.adapter.close()
        self._runner = None


_SESSIONS: dict[type[AdapterSuite], _Session] = {}


def _session(suite: type[AdapterSuite]) -> _Session:
    """Return the session of a class. Fails what is collected for a setting that is none."""
    if suite not in _SESSIONS:
        try:
            _SESSIONS[suite] = _Session(suite)
        except BadInput as problem:
            pytest.fail(f"{suite.__name__}: {problem}", pytrace=False)
    return _SESSIONS[suite]


def _settings(suite: type[AdapterSuite]) -> Settings:
    if suite.adapter is None:
        raise BadInput('there is no adapter: set one, such as adapter = "mypackage.stream:convert"')
    unknown = sorted(set(suite.has or ()) - set(CAPABILITIES))
    if unknown:
        raise BadInput(f"has: {', '.join(unknown)} is not known{listing(unknown[0], CAPABILITIES, 'there are')}")
    required(suite.requirements)
    baseline: tuple[Deviation, ...] = ()
    if suite.baseline is not None:
        baseline = read_baseline(Path(inspect.getfile(suite)).parent / suite.baseline)
    return Settings(
        suite.has, baseline, tuple(suite.forms), suite.strict, requirements=suite.requirements, all_ran=not suite.cases
    )


def _adapter(suite: type[AdapterSuite]) -> Adapter:
    target: Any = inspect.getattr_static(suite, "adapter")
    if isinstance(target, staticmethod | classmethod):
        target = suite.adapter
    match target:
        case str():
            return load(target, style=suite.chunks, seconds=suite.seconds)
        case list() | tuple():
            from .process import ProcessAdapter

            words: list[str] = [str(word) for word in target]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType]
            return ProcessAdapter(shlex.join(words), seconds=suite.seconds)
        case _ if callable(target):
            made: Callable[..., Any] = target
            return PythonAdapter(made, style=suite.chunks, seconds=suite.seconds)
        case _:
            raise BadInput(f"adapter is {target!r}: give a dotted path, a callable, or the words of a command")
