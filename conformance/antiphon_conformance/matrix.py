"""The matrix: rules by subjects, for our own handler, converters of others, recorded servers and live ones.

    Peer, recordings, server -> SuiteReport -> Column -> table

A `Column` is what is kept of a report: how many cases ran, and in how many each rule is broken. It is data, so that a
page can be written again without measuring again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from antiphon.errors import BadInput

from .peers import Peer
from .report import Level
from .results import Deviation, Outcome, Run, Subject, SuiteReport

Kind: TypeAlias = Literal["adapter", "recording", "server"]
OWN = "antiphon"
LONGEST = 170  # characters of a reason
# A word with a UUID, or one of some length that has a digit in it.
_ID = re.compile(r"\b\w*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b\w*(?:[0-9]\w{7,}|\w{7,}[0-9])\w*")
MANY = 12  # a rule that is broken in more cases than this is one line of a baseline

RunSeen: TypeAlias = Callable[[Run], None]


class Counts(msgspec.Struct, frozen=True, array_like=True):
    """In how many cases a rule is broken, of how many in which it ran."""

    broken: int
    ran: int


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """What one subject gave. `rules`: counts by code; `command` measures it again."""

    name: str
    kind: Kind
    version: str
    what: str
    command: str
    cases: int
    clean: int
    rules: dict[str, Counts]


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """All columns, with the versions of the suite and of the cases."""

    suite: str
    cases_hash: str
    columns: list[Column]


def column_of(report: SuiteReport, *, what: str, command: str) -> Column:
    """Return the column of a report. A case counts as broken where any of its forms is; SHOULD does not count."""
    broken: dict[str, set[str]] = {}
    ran: dict[str, set[str]] = {}
    cases = {run.case for run in report.ran if run.outcome is not Outcome.ERROR}
    for run in report.ran:
        for code in run.ran:
            ran.setdefault(code, set()).add(run.case)
        for finding in run.findings:
            if finding.level is Level.MUST and run.outcome is not Outcome.ERROR:
                broken.setdefault(finding.code, set()).add(run.case)
                ran.setdefault(finding.code, set()).add(run.case)
    dirty = {case for some in broken.values() for case in some}
    return Column(
        name=report.subject.name,
        kind=_kind(report.subject.kind),
        version=report.subject.version,
        what=what,
        command=command,
        cases=len(cases),
        clean=len(cases - dirty),
        rules={code: Counts(len(broken.get(code, ())), len(ran[code])) for code in sorted(ran)},
    )


def _kind(kind: str) -> Kind:
    match kind:
        case "recording" | "server":
            return kind
        case _:
            return "adapter"


# --- measuring -----------------------------------------------------------------------------------------------------


def measure_own(*, forms: bool = False, on_run: RunSeen | None = None) -> SuiteReport:
    """Return what our own handler gives."""
    from antiphon import __version__

    from . import own
    from .adapters import PythonAdapter

    return _measured(PythonAdapter(own.dicts, OWN, style="dict", version=__version__), (), forms, on_run)


def measure_peer(
    peer: Peer, *, forms: bool = False, on_run: RunSeen | None = None, baseline: Sequence[Deviation] = ()
) -> SuiteReport:
    """Return what a peer gives. Raises ExtraMissing where it is not installed."""
    return _measured(peer.adapter(), baseline, forms, on_run)


def _measured(adapter: Any, baseline: Sequence[Deviation], forms: bool, on_run: RunSeen | None) -> SuiteReport:
    from .forms import FORMS
    from .running import Settings, run_suite

    settings = Settings(baseline=baseline, forms=tuple(FORMS) if forms else ())
    return run_suite(adapter, settings=settings, on_run=on_run)


def measure_recordings(folder: Path, *, pattern: str = "*") -> list[SuiteReport]:
    """Return a report for each folder of recorded event streams in `folder`, named by it.

    `pattern` says which files are event streams. Raises BadInput where there is none.
    """
    reports = [report for one in sorted(folder.iterdir()) if one.is_dir() for report in _recorded(one, pattern)]
    if not reports:
        raise BadInput(f"{folder} holds no folder with recorded event streams ({pattern})")
    return reports


def _recorded(folder: Path, pattern: str) -> Iterator[SuiteReport]:
    from .recordings import SUFFIXES, check_recordings

    files = sorted(file for file in folder.glob(pattern) if file.suffix in SUFFIXES and ".meta" not in file.suffixes)
    reports = [check_recordings(file) for file in files]
    if reports:
        runs = tuple(run for report in reports for run in report.runs)
        yield replace(reports[0], subject=Subject(folder.name, "recording"), runs=runs)


def measure_server(url: str, model: str, *, api_key: str = "") -> SuiteReport:
    """Return what a live server with a native /v1/responses gives."""
    from .live import LiveOptions, check_live

    report = check_live(LiveOptions(url=url, model=model, api="responses", api_key=api_key or None))
    return replace(report, subject=replace(report.subject, kind="server"))


# --- baselines -----------------------------------------------------------------------------------------------------


def baseline_of(report: SuiteReport, peer: Peer) -> str:
    """Return the text of the baseline that excuses what is broken: a line for each rule and case.

    A rule that is broken in very many cases has one line for all. The reasons are what the rules said.
    """
    from . import SUITE_VERSION

    lines = [f"  {_line(deviation)}," for deviation in deviations_of(report)]
    head = [
        f"# What {peer.package} breaks, as measured; `antiphon matrix {peer.name} --baselines DIR` writes it anew.",
        f"# measured: {peer.package} {report.subject.version}",
        f"# cases: {report.cases_hash} of suite {SUITE_VERSION}",
    ]
    return "\n".join([*head, "deviation = [", *lines, "]", ""])


def cases_of(baseline: str) -> str:
    """Return the hash of the cases that a baseline was measured with, "" where it does not say."""
    _, _, rest = baseline.partition("# cases: ")
    return rest.partition(" ")[0]


def deviations_of(report: SuiteReport) -> list[Deviation]:
    """Return the deviations that excuse all that is broken in a report."""
    found: dict[str, dict[str, str]] = {}
    for run in report.ran:
        for finding in run.findings:
            if finding.level is Level.MUST and run.outcome is not Outcome.ERROR:
                found.setdefault(finding.code, {}).setdefault(run.case, _reason(finding.message))
    return [deviation for code, cases in sorted(found.items()) for deviation in _deviations(code, cases)]


def _deviations(code: str, cases: dict[str, str]) -> Iterator[Deviation]:
    if len(cases) > MANY:
        commonest = max(sorted(set(cases.values())), key=list(cases.values()).count)
        yield Deviation(code, "*", f"in {len(cases)} cases, such as: {commonest}")
        return
    yield from (Deviation(code, case, reason) for case, reason in sorted(cases.items()))


def _reason(message: str) -> str:
    """Return what a finding says, on one line and not long, without the ids: these differ each time."""
    short = _ID.sub("#", " ".join(message.split()))
    return short if len(short) <= LONGEST else f"{short[: LONGEST - 1]}…"


def _line(deviation: Deviation) -> str:
    rule, case, reason = (
        msgspec.json.encode(one).decode().replace("\x7f", "\\u007f")
        for one in (deviation.rule, deviation.case, deviation.reason)
    )
    return f"{{ rule = {rule}, case = {case}, reason = {reason} }}"


def read_measured(text: bytes | str, name: str) -> Measured:
    """Return what was measured and saved. Raises BadInput where the text is none."""
    try:
        return msgspec.json.decode(text, type=Measured)
    except (msgspec.DecodeError, ValueError) as problem:
        raise BadInput(f"{name} is nothing that `antiphon matrix --save` wrote: {problem}") from None


def write_measured(measured: Measured) -> str:
    """Return what was measured as JSON, one subject a line."""
    columns = ",\n".join(msgspec.json.encode(column).decode() for column in measured.columns)
    head = msgspec.json.encode({"suite": measured.suite, "cases_hash": measured.cases_hash}).decode()[:-1]
    return f'{head},"columns":[\n{columns}\n]}}\n'


def joined(parts: Iterable[Measured]) -> Measured:
    """Return several measurements as one; of a subject that is in several, the last. Raises BadInput for none."""
    every = list(parts)
    if not every:
        raise BadInput("nothing was measured")
    columns = {(column.kind, column.name): column for one in every for column in one.columns}
    return Measured(suite=every[-1].suite, cases_hash=every[-1].cases_hash, columns=list(columns.values()))
