"""`run_suite`: all cases, in all forms, put to one adapter, and what the rules say.

    cases -> forms -> Adapter.answer -> rules, expectation -> Run -> SuiteReport

A case that is none is the suite's error, and is not put to anybody. An answer that is not whole is one finding: what
is missing in its events follows from that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from antiphon.errors import BadInput
from antiphon.near import nearest

from . import SUITE_VERSION
from .adapters import Adapter, told
from .answer import Answer, Fault
from .baseline import excused, stale
from .case import USUAL, BadCase, Case, cases_hash, load_cases
from .expecting import ends_early, not_failed, truncated_calls, unmet
from .forms import FORMS, derive
from .judge import check
from .report import Finding, Level, Report
from .requirements import required
from .results import Deviation, Outcome, Run, SuiteReport
from .said import REASONING_FIELDS
from .validity import problems_of

MOST_HUNG, MOST_DIED = 3, 20  # then nothing more is put to the adapter
CASE_RULES = ("HAR001", "HAR002", "HAR003")
# what went wrong in an adapter -> the rule that says so
_BY_FAULT = {"raised": "HAR002", "died": "HAR002", "hung": "HAR003", "endless": "HAR003"}


@dataclass(frozen=True, slots=True)
class Facts:
    """What the rules look at in a profile, for a case with opt-ins."""

    reasoning_fields: Sequence[str]
    finish_reason_optional: bool
    quirks: Sequence[object]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is done. `has`: what the adapter has; None: `USUAL`. `areas`: those whose rules count; empty: all.

    `forms` are the names of the forms that are derived. `requirements` is a version of the suite whose rules alone
    count and show; "" is this one, where newer rules are shown and do not count. `all_ran`: no case was left out, so
    that a line of the baseline for any case can be stale.
    """

    has: Collection[str] | None = None
    baseline: Sequence[Deviation] = ()
    forms: Collection[str] = tuple(FORMS)
    strict: bool = False
    areas: Collection[str] = ()
    requirements: str = ""
    all_ran: bool = True


@dataclass(slots=True)
class _Stamina:
    """How much more is put to an adapter that hangs or dies."""

    hung: int = 0
    died: int = 0

    def take(self, fault: Fault | None) -> None:
        """Count a fault."""
        self.hung += fault is not None and fault.kind in ("hung", "endless")
        self.died += fault is not None and fault.kind == "died"

    @property
    def spent(self) -> str:
        """Why nothing more is put to it, "" where more is."""
        if self.hung >= MOST_HUNG:
            return f"the adapter did not end {self.hung} times, and was asked no more"
        return f"the process died {self.died} times, and was asked no more" if self.died >= MOST_DIED else ""


@dataclass(slots=True)
class Runner:
    """Puts cases to an adapter, one after another."""

    adapter: Adapter
    settings: Settings = field(default_factory=Settings)
    _stamina: _Stamina = field(default_factory=_Stamina)

    def runs(self, case: Case | BadCase) -> Iterator[Run]:
        """Yield the run of a case as it is written, and then of its forms, unless its answer was not whole."""
        base = self.run(case)
        yield base
        whole = base.outcome is not Outcome.NOT_APPLICABLE and not {"HAR002", "HAR003"} & {
            f.code for f in base.findings
        }
        if isinstance(case, BadCase) or base.outcome is Outcome.ERROR or not whole:
            return
        for form in derive(replace(case, not_as=case.not_as | (set(FORMS) - set(self.settings.forms)))):
            yield self.run(form)

    def run(self, case: Case | BadCase) -> Run:
        """Return the run of one case in one form."""
        bad = [Finding("HAR001", Level.MUST, None, problem) for problem in problems_of(case)]
        if isinstance(case, BadCase) or bad:
            return _error(case, bad)
        reason = self._not_applicable(case)
        if reason:
            return _about(case, Outcome.NOT_APPLICABLE, reason=reason)
        answer = self.adapter.answer(case)
        self._stamina.take(answer.fault)
        try:
            return self._judged(case, answer)
        except Exception as problem:  # noqa: BLE001 -- a rule of the suite's, or of a plug-in's, that raises is one wrong run
            return replace(_about(case, Outcome.ERROR, reason=f"a rule raised {told(problem)}"), events=answer.events)

    def _not_applicable(self, case: Case) -> str:
        has = USUAL if self.settings.has is None else self.settings.has
        missing = sorted(case.needs - set(has))
        if missing:
            return f"needs: {', '.join(missing)}"
        if case.done and not case.finishes and "done" not in self.adapter.told:
            return "`[DONE]` alone ends it, and the adapter is not told of that"
        return self._stamina.spent

    def _judged(self, case: Case, answer: Answer) -> Run:
        found, ran, events = judge(case, answer, self.adapter.told)
        findings, new = scored(found, self.settings)
        expected = excused(self.settings.baseline, case.id, {one.code for one in findings})
        levels = (Level.MUST, Level.SHOULD) if self.settings.strict else (Level.MUST,)
        failing = [one for one in findings if one.level in levels and one.code not in expected]
        outcome = Outcome.FAIL if failing else Outcome.EXPECTED if expected else Outcome.PASS
        keep = bool(findings or new or not case.form)
        return replace(
            _about(case, outcome),
            findings=findings,
            ran=tuple(code for code in ran if self._counts(code)),
            expected=expected,
            new=new,
            chunks=case.chunks if keep else (),
            events=events if keep else (),
        )

    def _counts(self, code: str) -> bool:
        return not self.settings.areas or code[:3] in self.settings.areas


def scored(findings: Sequence[Finding], settings: Settings) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings that count, and those of rules that are newer than what is required."""
    due = required(settings.requirements)
    wanted = [one for one in findings if not settings.areas or one.code[:3] in settings.areas]
    newer = [one for one in wanted if one.code not in due]
    return tuple(one for one in wanted if one.code in due), () if settings.requirements else tuple(newer)


def run_suite(
    adapter: Adapter,
    cases: Iterable[Case | BadCase] | None = None,
    settings: Settings | None = None,
    *,
    on_run: Callable[[Run], None] | None = None,
) -> SuiteReport:
    """Return what all runs gave. `cases` are those of the suite where none are given; `on_run` is told of each run.

    The adapter is closed at the end. An interrupt ends the run: what ran until then is reported.
    """
    settings = settings or Settings()
    chosen = tuple(load_cases() if cases is None else cases)
    runner, runs, notes, interrupted = Runner(adapter, settings), list[Run](), list[str](), False
    try:
        for case in chosen:
            for run in runner.runs(case):
                runs.append(run)
                if on_run is not None:
                    on_run(run)
    except KeyboardInterrupt:
        interrupted = True
        notes.append(f"interrupted after {len({run.case for run in runs})} of {len(chosen)} cases")
        settings = replace(settings, all_ran=False)
    finally:
        adapter.close()
    return replace(reported(adapter, chosen, runs, settings, notes), interrupted=interrupted)


def reported(
    adapter: Adapter,
    cases: Sequence[Case | BadCase],
    runs: Sequence[Run],
    settings: Settings,
    notes: Sequence[str] = (),
) -> SuiteReport:
    """Return the report of these runs."""
    from antiphon import __version__

    took_place = [run for run in runs if run.outcome not in (Outcome.NOT_APPLICABLE, Outcome.ERROR)]
    broken = [(run.case, [one.code for one in run.findings]) for run in took_place]
    judged = [one for one in settings.baseline if not settings.areas or one.rule[:3] in settings.areas]
    return SuiteReport(
        adapter.subject,
        tuple(runs),
        settings.requirements or SUITE_VERSION,
        __version__,
        cases_hash(cases),
        stale=stale(judged, broken, all_ran=settings.all_ran and len(took_place) > 0),
        notes=tuple(notes),
        strict=settings.strict,
    )


def judge(case: Case, answer: Answer, told: Collection[str]) -> tuple[list[Finding], list[str], Sequence[Any]]:
    """Return what is wrong with an answer, the codes of the rules that were applied, and the events as they were read.

    `told` is what the adapter was told of the case beside the chunks.
    """
    fault = answer.fault if answer.fault is not None and not _raised_on(case, answer) else None
    if fault is not None:
        found = [Finding(_BY_FAULT[fault.kind], Level.MUST, None, fault.message)]
        return found, list(CASE_RULES), answer.events
    report = check(
        answer.events,
        chunks=case.chunks,
        request=case.request if "request" in told else None,
        profile=_facts(case),
        done=case.done if "done" in told else None,
    )
    if answer.fault is not None and "STR003" in report.codes:
        let_out = f"the source raised {answer.fault.message}, and the adapter let it out before any terminal event"
        return [Finding("STR003", Level.MUST, None, let_out)], [*CASE_RULES, *report.ran], report.events
    if not report.events:  # that it does not end says all
        return [one for one in report.findings if one.code == "STR003"], [*CASE_RULES, *report.ran], ()
    findings = [*(one for one in report.findings if not _sources_own(case, one)), *_beyond(case, report)]
    return findings, [*CASE_RULES, *report.ran], report.events


def _sources_own(case: Case, finding: Finding) -> bool:
    """Whether a finding is about what the source of chunks did, so that the adapter is right to pass it on: arguments
    that end early under a success, and an end that the rules take for the stream's own where an exception made it."""
    if finding.code == "CAL004":
        return case.expect is not None and any(map(ends_early, case.expect.output))
    return finding.code == "END009" and case.raises is not None and not case.finishes


def _beyond(case: Case, report: Report) -> list[Finding]:
    """Return what is not as the case expects; of a stream that is broken off, calls that it completes by half."""
    expected = case.expect
    if expected is None and case.raises is not None and not case.finishes:
        return [*not_failed(report), *truncated_calls(report)]
    return unmet(expected, report) if expected is not None else truncated_calls(report)


def _raised_on(case: Case, answer: Answer) -> bool:
    """Whether what was raised is what the source raised: an adapter may pass it on, after the terminal event."""
    if case.raises is None or answer.fault is None or answer.fault.kind != "raised":
        return False
    return answer.fault.message.startswith(f"{case.raises.type}: ") and case.raises.message in answer.fault.message


def _facts(case: Case) -> Facts | None:
    if not case.opt_ins:
        return None
    quirks = sorted(case.opt_ins - {"finish_reason_optional"})
    return Facts(REASONING_FIELDS, "finish_reason_optional" in case.opt_ins, quirks)


def _about(case: Case, outcome: Outcome, *, reason: str = "") -> Run:
    return Run(
        case.id, case.title, outcome, case.form, rules=case.rules, needs=tuple(sorted(case.needs)), reason=reason
    )


def _error(case: Case | BadCase, found: Sequence[Finding]) -> Run:
    title, rules = (case.title, case.rules) if isinstance(case, Case) else ("", ())
    reason = "; ".join(one.message for one in found)
    return Run(case.id, title, Outcome.ERROR, rules=rules, findings=tuple(found), reason=reason)


def choose(cases: Sequence[Case | BadCase], patterns: Sequence[str]) -> tuple[Case | BadCase, ...]:
    """Return the cases whose id is, or begins with, one of `patterns`; `*` and `?` are wildcards.

    Raises BadInput for a pattern that no case has.
    """
    from fnmatch import fnmatchcase

    made: dict[str, Case | BadCase] = {}
    for pattern in patterns:
        found = [
            case for case in cases if fnmatchcase(case.id, pattern) or case.id.startswith(f"{pattern.rstrip('/')}/")
        ]
        if not found:
            folders = ", ".join(sorted({case.id.partition("/")[0] for case in cases}))
            close = nearest(pattern, (case.id for case in cases), 0.8)
            hint = f"; did you mean {close!r}? Give" if close else "; give"
            raise BadInput(f"no case is called {pattern!r}{hint} an id such as {cases[0].id}, or a folder: {folders}")
        made.update((case.id, case) for case in found)
    return tuple(case for case in cases if case.id in made)
