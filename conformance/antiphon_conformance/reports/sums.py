"""What a report comes to: the broken rules with their places, and the counts. Every written form says the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from antiphon_conformance.report import Finding, Level
from antiphon_conformance.results import Deviation, Outcome, Run, SuiteReport

_ORDER = {Level.MUST: 0, Level.SHOULD: 1, Level.MAY: 2}


@dataclass(slots=True)
class Broken:
    """A rule that is broken, and where: each finding with its run, the plainest first."""

    code: str
    level: Level
    places: list[tuple[Run, Finding]] = field(default_factory=list[tuple[Run, Finding]])

    @property
    def cases(self) -> list[str]:
        """The ids of the cases, each once."""
        return list(dict.fromkeys(run.case for run, _ in self.places))


@dataclass(frozen=True, slots=True)
class Counts:
    """How many there were. `reasons` says why cases did not apply; `broken` are the areas with an unexpected breach."""

    cases: int
    ran: int
    not_applicable: int
    reasons: Mapping[str, int]
    runs: int
    clean: tuple[str, ...]
    broken: tuple[str, ...]


def broken_rules(report: SuiteReport, *levels: Level) -> list[Broken]:
    """Return the rules of these levels (all, where none is given) that are broken and not excused, the gravest first."""
    made: dict[str, Broken] = {}
    for run in report.runs:
        if run.outcome is Outcome.ERROR:
            continue
        for finding in run.unexpected(*(levels or Level)):
            one = made.setdefault(finding.code, Broken(finding.code, finding.level))
            one.level = min(one.level, finding.level, key=_ORDER.__getitem__)
            one.places.append((run, finding))
    for one in made.values():
        one.places.sort(key=_plainness)
    return sorted(made.values(), key=lambda one: (_ORDER[one.level], one.code))


def _plainness(place: tuple[Run, Finding]) -> tuple[int, int, bool, bool, int]:
    """Return what places are sorted by: where little else is broken, a case that is about the rule, as it is written."""
    run, finding = place
    others = len({one.code for one in run.findings})
    return _ORDER[finding.level], others, bool(run.form), finding.code not in run.rules, len(run.chunks)


def expected_rules(report: SuiteReport) -> dict[Deviation, list[Run]]:
    """Return the lines of the baseline that excused something, with the runs."""
    made: dict[Deviation, list[Run]] = {}
    for run in report.runs:
        for deviation in run.expected.values():
            made.setdefault(deviation, []).append(run)
    return made


def new_rules(report: SuiteReport) -> Counter[str]:
    """Return the codes of broken rules that are newer than what is required, with how often."""
    return Counter(finding.code for run in report.runs for finding in run.new)


def count(report: SuiteReport) -> Counts:
    """Return how many cases there were, ran and did not apply, and which areas are clean."""
    cases, ran = {run.case for run in report.runs}, {run.case for run in report.ran}
    left_out = {run.case: run.reason for run in report.runs if run.outcome is Outcome.NOT_APPLICABLE}
    only = {case: reason for case, reason in left_out.items() if case not in ran}
    levels = (Level.MUST, Level.SHOULD) if report.strict else (Level.MUST,)
    areas = {code[:3] for run in report.runs for code in run.ran}
    broken = {one.code[:3] for one in broken_rules(report, *levels)}
    return Counts(
        len(cases),
        len(ran),
        len(only),
        Counter(only.values()),
        len(report.ran),
        tuple(sorted(areas - broken)),
        tuple(sorted(broken)),
    )


def sentence(report: SuiteReport) -> str:
    """Return the line that counts: areas, rules, cases, and why some did not apply. It is printed always."""
    counts = count(report)
    levels = (Level.MUST, Level.SHOULD) if report.strict else (Level.MUST,)
    rules = len(broken_rules(report, *levels))
    areas = f"{_number(len(counts.clean), 'area')} clean"
    if counts.broken:
        areas += f" · {len(counts.broken)} broken ({_number(rules, 'rule')})"
    why = f" ({together(counts.reasons)})" if counts.not_applicable else ""
    left_out = f", {counts.not_applicable} not applicable{why}"
    return f"{areas} · {_number(counts.cases, 'case')}, {counts.ran} ran in {_number(counts.runs, 'run')}{left_out}"


def together(reasons: Iterable[str]) -> str:
    """Return why cases did not apply: all that they need behind one word, and what else there is."""
    reasons = list(reasons)
    needs = sorted({need for one in reasons if one.startswith("needs: ") for need in one[7:].split(", ")})
    others = [one for one in reasons if not one.startswith("needs: ")]
    return "; ".join([*([f"needs: {', '.join(needs)}"] if needs else []), *others])


def _number(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
