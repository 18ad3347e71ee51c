"""`SuiteReport`: what a whole run of the suite over one subject gave. Every written report is made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from .report import Finding, Level


class Outcome(Enum):
    """What became of one run of a case."""

    PASS = "pass"
    FAIL = "fail"
    EXPECTED = "expected"  # it fails as a baseline says
    NOT_APPLICABLE = "not_applicable"  # the subject does not have what the case needs
    ERROR = "error"  # the case itself, or the suite, is wrong


class Layer(Enum):
    """What was judged: the chunk stream of a backend, or the events that came of it."""

    CHUNKS = "chunks"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Deviation:
    """One line of a baseline: a rule that a subject is known to break in a case (`*`: in any), and why."""

    rule: str
    case: str
    reason: str
    issue: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One case in one form, put to the subject; or one probe, in one of its layers.

    `form` is "" for the case as it is written. `ran` are the codes of the rules that were applied. `expected` maps the
    codes that a baseline excuses to its line. `reason` says why a run did not apply, or what is wrong with the case.
    """

    case: str
    title: str
    outcome: Outcome
    form: str = ""
    layer: Layer = Layer.EVENTS
    rules: tuple[str, ...] = ()  # what the case is about
    needs: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    ran: tuple[str, ...] = ()
    expected: Mapping[str, Deviation] = field(default_factory=dict[str, Deviation])
    reason: str = ""
    new: tuple[Finding, ...] = ()  # of rules that are newer than what is required: shown, and not counted
    chunks: Sequence[Any] = field(default=(), repr=False)
    events: Sequence[Any] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        """The case's id, and the form in brackets where there is one."""
        return f"{self.case} [{self.form}]" if self.form else self.case

    def unexpected(self, *levels: Level) -> tuple[Finding, ...]:
        """Return the findings of these levels that no baseline excuses."""
        return tuple(one for one in self.findings if one.level in levels and one.code not in self.expected)


@dataclass(frozen=True, slots=True)
class Subject:
    """What was tested: its name, what it is ("adapter", "process", "server", "recording"), and its version if known."""

    name: str
    kind: str
    version: str = ""


Area: TypeAlias = str  # the three letters before a code's number

CLEAN, FINDINGS, WRONG_USE, NOTHING_RAN = 0, 1, 2, 3  # exit statuses
INTERRUPTED = 130  # 128 + SIGINT, which is what a shell reports of a program that Ctrl-C ended


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """All runs over one subject, in order. `stale` are the lines of the baseline that excused nothing.

    `notes` are sentences for a reader ("works, through these quirks: …"); `profile` is the source of the profile that
    fits a live backend, ready to paste, or "".
    """

    subject: Subject
    runs: tuple[Run, ...]
    suite_version: str
    package_version: str
    cases_hash: str
    stale: tuple[Deviation, ...] = ()
    notes: tuple[str, ...] = ()
    profile: str = ""
    strict: bool = False
    interrupted: bool = False

    @property
    def ran(self) -> tuple[Run, ...]:
        """The runs that took place."""
        return tuple(run for run in self.runs if run.outcome is not Outcome.NOT_APPLICABLE)

    @property
    def exit_status(self) -> int:
        """0 clean; 1 findings or a stale line; 2 the suite is wrong; 3 nothing ran; 130 interrupted, and nothing was
        broken until then."""
        outcomes = {run.outcome for run in self.runs}
        if Outcome.ERROR in outcomes:
            return WRONG_USE
        if self.stale or Outcome.FAIL in outcomes:
            return FINDINGS
        if self.interrupted:
            return INTERRUPTED
        return CLEAN if self.ran else NOTHING_RAN
