"""The findings of a report for a reader: by rule, then by case, with pictures of the streams where there is room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.timeline import SideBySide, excerpt, render_bars, render_close_up
from antiphon_conformance.report import Finding
from antiphon_conformance.results import Area, Layer, Run, SuiteReport
from antiphon_conformance.rule import Rule, find

from .grid import State, all_of, area_of, state_of, worst

PICTURES = 240  # in one page
DETAILED = 120  # cases of one rule that are told in full; of the others, the names
READ = 4_000_000  # chunks and events that are read for pictures

Place = tuple[Run, Finding]


@dataclass(frozen=True, slots=True)
class Picture:
    """The HTML of a finding's place, whole and from near, and what came there, as JSON."""

    bars: str
    near: str
    came: str
    what: str  # whose JSON it is


@dataclass(frozen=True, slots=True)
class Told:
    """What breaks a rule in one case. `others` names the other forms and places where it is broken too."""

    anchor: str
    run: Run
    finding: Finding
    state: State
    others: tuple[str, ...]
    picture: Picture | None

    @property
    def where(self) -> str:
        """The place in words."""
        side = "chunk" if self.run.layer is Layer.CHUNKS else "event"
        return "the stream" if self.finding.index is None else f"{side} {self.finding.index}"

    @property
    def excuse(self) -> str:
        """Why a baseline expects this, or ""."""
        line = self.run.expected.get(self.finding.code)
        return "" if line is None else f"{line.reason} {line.issue}".strip()


@dataclass(frozen=True, slots=True)
class Broken:
    """One rule that is broken: where, in full, and the names of the cases that are only listed."""

    code: str
    rule: Rule | None  # None for a code that this version does not know
    state: State
    level: str
    told: tuple[Told, ...]
    listed: tuple[tuple[str, str], ...]  # anchor, name

    @property
    def cases(self) -> int:
        """How many cases break it."""
        return len(self.told) + len(self.listed)


def broken_rules(report: SuiteReport) -> list[Broken]:
    """Return the broken rules, the worst first, then by code."""
    by_rule: dict[str, dict[str, list[Place]]] = {}
    for run in report.runs:
        for finding in all_of(run):
            by_rule.setdefault(finding.code, {}).setdefault(run.case, []).append((run, finding))
    painter = _Painter(_fair_share(len(by_rule)))
    made = [_broken(code, cases, report.strict, painter) for code, cases in by_rule.items()]
    order = list(State)
    return sorted(made, key=lambda one: (order.index(one.state), one.code))


def _fair_share(rules: int) -> int:
    """Return how many pictures each rule may have."""
    return max(1, PICTURES // max(rules, 1))


def _broken(code: str, cases: dict[str, list[Place]], strict: bool, painter: _Painter) -> Broken:
    ranked = sorted(cases.values(), key=lambda places: list(State).index(_state(places, strict)))
    painter.begin()
    told = tuple(_told(anchor_of(code, places[0][0].case), places, strict, painter) for places in ranked[:DETAILED])
    listed = tuple((anchor_of(code, run.case), run.name) for run, _ in (places[0] for places in ranked[DETAILED:]))
    state = worst(one.state for one in told)
    return Broken(code, find(code), state, told[0].finding.level.value, told, listed)


def _state(places: Sequence[Place], strict: bool) -> State:
    return worst(state_of(finding, run, strict) for run, finding in places)


def _told(anchor: str, places: Sequence[Place], strict: bool, painter: _Painter) -> Told:
    """Return what is told of one case: its worst place, and the names of the others."""
    order = list(State)
    run, finding = min(places, key=lambda place: order.index(state_of(place[1], place[0], strict)))
    others = dict.fromkeys(one.form or "as written" for one, _ in places if one.name != run.name)
    return Told(anchor, run, finding, state_of(finding, run, strict), tuple(others), painter.paint(run, finding))


def anchor_of(code: str, case: str) -> str:
    """Return the id of a finding in the page: letters, digits and hyphens, one for each rule and case."""
    from hashlib import blake2s

    return f"f-{area_of(code)}-{blake2s(f'{code}/{case}'.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def first_anchors(broken: Sequence[Broken]) -> dict[tuple[str, Area], str]:
    """Return where the page tells of a case and an area first."""
    anchors: dict[tuple[str, Area], str] = {}
    for rule in broken:
        for one in rule.told:
            anchors.setdefault((one.run.case, area_of(rule.code)), one.anchor)
        for anchor, name in rule.listed:
            anchors.setdefault((name.partition(" [")[0], area_of(rule.code)), anchor)
    return anchors


class _Painter:
    """Makes pictures until there is no more room for them. One stream is read once."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._left = each
        self._read = 0
        self._run: Run | None = None
        self._both = SideBySide(())

    def begin(self) -> None:
        """Begin with the next rule."""
        self._left = self._each

    def paint(self, run: Run, finding: Finding) -> Picture | None:
        """Return the picture of a finding, None where its run has no stream or the page is full."""
        if not (run.events or run.chunks) or self._left <= 0 or self._read > READ:
            return None
        self._left -= 1
        if run is not self._run:
            self._read += len(run.events) + len(run.chunks)
            self._run, self._both = run, SideBySide(run.events, run.chunks)
        return _picture(self._both, run, finding)


def _picture(both: SideBySide, run: Run, finding: Finding) -> Picture:
    chunks = run.layer is Layer.CHUNKS
    stream = run.chunks if chunks else run.events
    at = finding.index if finding.index is not None and 0 <= finding.index < len(stream) else None
    marks = {one.index: one.code for one in (*all_of(run), finding) if one.index is not None}
    lines = both.close_up(at, side="chunks" if chunks else "events", marks=marks)
    what = f"{'chunk' if chunks else 'event'} {at}" if at is not None else ""
    return Picture(
        bars=render_bars(both.timeline, at=None if chunks else at) if both.rows else "",
        near=render_close_up(lines, f"{run.name}: the stream around {what or 'its ends'}"),
        came=excerpt(stream[at]) if at is not None else "",
        what=what,
    )
