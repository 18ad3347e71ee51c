"""The runs of a report as a grid: a row for each case, a column for each area, the worst of all forms in the cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from antiphon_conformance.report import Finding, Level
from antiphon_conformance.results import Area, Outcome, Run, SuiteReport


class State(Enum):
    """What a cell says: a sign, a class, and words. The first is the worst."""

    ERROR = ("!", "error", "the suite or the case is wrong")
    BROKEN = ("✗", "broken", "broken")
    WARNED = ("△", "warned", "SHOULD broken")
    EXPECTED = ("≈", "expected", "broken, as the baseline says")
    NEW = ("+", "new", "broken, by a newer rule that is not scored")
    NOTED = ("·", "noted", "MAY")
    CLEAN = ("✓", "clean", "clean")
    NOT_RUN = ("", "none", "no rule of this area ran")
    NOT_APPLICABLE = ("–", "left-out", "not applicable")

    @property
    def sign(self) -> str:
        """One character."""
        return self.value[0]

    @property
    def css(self) -> str:
        """The class in a page."""
        return self.value[1]

    @property
    def words(self) -> str:
        """The same for those who do not see the sign."""
        return self.value[2]


_BADNESS = {state: n for n, state in enumerate(State)}


@dataclass(frozen=True, slots=True)
class Cell:
    """One case in one area. `runs` are the forms that are in this state, of `of` that ran."""

    area: Area
    state: State
    runs: int
    of: int


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case: its forms, and a cell for each area."""

    case: str
    title: str
    state: State
    forms: int
    cells: tuple[Cell, ...]
    reason: str = ""


def area_of(code: str) -> Area:
    """Return the letters before the number of a code."""
    return code.rstrip("0123456789")


def areas_of(report: SuiteReport) -> tuple[Area, ...]:
    """Return the areas that ran or were broken, in the order of the rules, others last."""
    from antiphon_conformance.rule import every_rule

    order = list(dict.fromkeys(area_of(rule.code) for rule in every_rule()))
    codes = {code for run in report.runs for code in (*run.ran, *(one.code for one in all_of(run)))}
    seen = {area_of(code) for code in codes}
    return (*(area for area in order if area in seen), *sorted(seen - set(order)))


def rows_of(report: SuiteReport, areas: Sequence[Area]) -> list[CaseRow]:
    """Return a row for each case, in the order of the runs."""
    together: dict[str, list[Run]] = {}
    for run in report.runs:
        together.setdefault(run.case, []).append(run)
    return [_row(case, runs, areas, report.strict) for case, runs in together.items()]


def _row(case: str, runs: Sequence[Run], areas: Sequence[Area], strict: bool) -> CaseRow:
    cells = tuple(_cell(area, runs, strict) for area in areas)
    state = worst([*(cell.state for cell in cells), *(_whole(run) for run in runs)])
    reason = next((run.reason for run in runs if run.reason), "")
    return CaseRow(case, runs[0].title, state, len({run.form for run in runs}), cells, reason)


def _whole(run: Run) -> State:
    """Return what a run's outcome alone says."""
    match run.outcome:
        case Outcome.ERROR:
            return State.ERROR
        case Outcome.FAIL:
            return State.BROKEN
        case Outcome.EXPECTED:
            return State.EXPECTED
        case Outcome.PASS:
            return State.CLEAN
        case Outcome.NOT_APPLICABLE:
            return State.NOT_APPLICABLE


def _cell(area: Area, runs: Sequence[Run], strict: bool) -> Cell:
    states = [_state(area, run, strict) for run in runs]
    state = worst(states)
    ran = [one for one in states if one not in (State.NOT_RUN, State.NOT_APPLICABLE)]
    return Cell(area, state, states.count(state), len(ran))


def _state(area: Area, run: Run, strict: bool) -> State:
    if run.outcome is Outcome.NOT_APPLICABLE:
        return State.NOT_APPLICABLE
    found = [state_of(finding, run, strict) for finding in all_of(run) if area_of(finding.code) == area]
    if found:
        return worst(found)
    ran = any(area_of(code) == area for code in run.ran)
    return State.CLEAN if ran else State.NOT_RUN


def all_of(run: Run) -> tuple[Finding, ...]:
    """Return the findings of a run, those that are not scored too."""
    return (*run.findings, *run.new)


def state_of(finding: Finding, run: Run, strict: bool) -> State:
    """Return how bad a finding is: a baseline excuses it, and SHOULD is as MUST only where the run is strict."""
    if finding.code in run.expected:
        return State.EXPECTED
    if finding in run.new:
        return State.NEW
    match finding.level:
        case Level.MUST:
            return State.BROKEN
        case Level.SHOULD:
            return State.BROKEN if strict else State.WARNED
        case Level.MAY:
            return State.NOTED


def worst(states: Iterable[State]) -> State:
    """Return the worst of `states`. A case that ran in one form and not in another has run."""
    return min(states, key=_BADNESS.__getitem__, default=State.NOT_APPLICABLE)
