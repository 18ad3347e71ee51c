"""The report on a terminal: what broke, which rule, why it is a rule, and the events around it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from antiphon_conformance.commands.lint import STYLES, around, shown
from antiphon_conformance.report import Level, Report
from antiphon_conformance.results import Deviation, Outcome, Run, SuiteReport
from antiphon_conformance.rule import find

from .sums import Broken, broken_rules, expected_rules, new_rules, sentence

MOST_CASES = 6  # that are named for one rule
# what was tested -> how a finding is seen alone
_ALONE = {
    "adapter": " · --case {} shows it alone",
    "process": " · --case {} shows it alone",
    "server": " · --probe {} shows it alone",
}


def write(report: SuiteReport, console: Console | None = None, *, everything: bool = False) -> None:
    """Write the report. `everything`: also rules that are only MAY, and each case that did not apply."""
    console = console or Console(highlight=False, soft_wrap=True)
    console.print(Text("\n").join(lines(report, everything=everything)))


def lines(report: SuiteReport, *, everything: bool = False) -> Iterator[Text]:
    """Yield the lines of the report."""
    levels = tuple(Level) if everything else (Level.MUST, Level.SHOULD)
    for broken in broken_rules(report, *levels):
        yield from told(broken, report.subject.kind)
        yield Text()
    for run in report.runs:
        if run.outcome is Outcome.ERROR:
            wrong = "not readable" if report.subject.kind == "recording" else "the suite is wrong"
            yield Text.assemble((wrong, "bold red"), f"   {run.name}: {shown(run.reason)}")
    for deviation, runs in expected_rules(report).items():
        yield Text(f"expected  {_excuse(deviation)} ({_of(runs)})", "dim")
    for deviation in report.stale:
        yield Text.assemble(
            ("stale", "bold red"), f"  {_excuse(deviation)}: it is not broken any more, remove the line"
        )
    for code, times in sorted(new_rules(report).items()):
        yield Text(
            f"new, not scored  {code} {_name(code)}: broken in {times} runs; it counts from the next version", "yellow"
        )
    if everything:
        yield from (
            Text(f"not applicable  {shown(run.case)}: {shown(run.reason)}", "dim")
            for run in report.runs
            if run.reason and run.outcome is Outcome.NOT_APPLICABLE
        )
    yield from (Text(shown(note, 2000)) for note in report.notes)
    if report.profile:
        yield Text(report.profile)
    name, version = shown(report.subject.name), shown(report.subject.version)
    yield Text(f"{name} {version} · suite {report.suite_version}".replace("  ", " "))
    yield Text(shown(sentence(report), 4000), "bold")
    if not report.ran:
        yield Text("nothing ran", "bold red")


def told(broken: Broken, kind: str = "adapter") -> Iterator[Text]:
    """Yield the lines about a broken rule: where first, what, the events around it, why, and where else."""
    run, finding = broken.places[0]
    level = finding.level.value
    yield Text.assemble(
        (f"{broken.code} {_name(broken.code)}", "bold"), "   ", (level, STYLES[level]), f"   {shown(run.name)}"
    )
    where = "the answer" if finding.index is None else f"event {finding.index}"
    yield Text(f"  {where}: {shown(finding.message)}")
    held = Report((finding,), events=[event if isinstance(event, dict) else {} for event in run.events])
    yield from (Text(line, "bold" if line.startswith("  ▸") else "dim") for line in around(held, finding.index))
    rule = find(broken.code)
    if rule is not None:
        yield Text(f"  why: {rule.why}")
    others = len(broken.places) - 1
    if others:
        yield Text(f"  and {'once' if others == 1 else f'{others} times'} more{_elsewhere(broken)}")
    alone = _ALONE.get(kind, "").format(shown(run.case))
    yield Text(f"  antiphon explain {broken.code}{alone}", "dim")


def _elsewhere(broken: Broken) -> str:
    cases = [case for case in broken.cases if case != broken.places[0][0].case]
    if not cases:
        return ", in other forms of this case"
    more = f", and {len(cases) - MOST_CASES} other cases" if len(cases) > MOST_CASES else ""
    return f": {', '.join(map(shown, cases[:MOST_CASES]))}{more}"


def _name(code: str) -> str:
    rule = find(code)
    return rule.name if rule is not None else ""


def _excuse(deviation: Deviation) -> str:
    issue = f" {deviation.issue}" if deviation.issue else ""
    return shown(f"{deviation.rule} in {deviation.case}: {deviation.reason}{issue}", 2000)


def _of(runs: list[Run]) -> str:
    cases = len({run.case for run in runs})
    return f"{cases} case" if cases == 1 else f"{cases} cases"
