"""The goals that were measured as a table, for people (rich) and for programs (JSON), and how it was run."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.table import Table

from .goals import Figure, Goal
from .measure import Samples, Settings, Skipped
from .subjects import SUBJECTS
from .workloads import WORKLOADS

PACKAGES = ("antiphon", "openai", "openai-agents", "pydantic", "msgspec", "orjson", "httpx2")
METHOD = (
    "CPU time. In a round every cell of a group of workloads is timed once, in turn, in reversed order every other "
    "round; garbage collection frozen and off, inputs made before. Figures are medians of the rounds, a ratio is the "
    "median of the rounds' ratios, with the quartiles beside it: wide ones say that the machine was busy. "
    "≥: peer / ours; ≤: ours / peer."
)
_STYLES = {"yes": "green", "within 10 %": "yellow", "no": "bold red", "skipped": "dim"}


@dataclass(frozen=True, slots=True)
class Row:
    """A goal and what was found; `ratios` has one for each round, and is empty where the goal was skipped."""

    goal: Goal
    ours: float = 0.0
    peer: float = 0.0
    unit: str = ""
    ratios: tuple[float, ...] = ()
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def quartiles(self) -> tuple[float, float] | None:
        """The middle half of the ratios; None where there are too few."""
        if len(self.ratios) < 3:
            return None
        low, _, high = statistics.quantiles(self.ratios, n=4)
        return low, high

    @property
    def verdict(self) -> str:
        return "skipped" if self.ratio is None else self.goal.verdict(self.ratio)


def row(goal: Goal, found: Mapping[Figure, Samples | Skipped]) -> Row:
    """Return the row of `goal`."""
    ours, peer = found[goal.ours], found[goal.peer]
    if isinstance(ours, Samples) and isinstance(peer, Samples):
        return Row(
            goal,
            statistics.median(ours.values),
            statistics.median(peer.values),
            ours.unit,
            tuple(goal.ratio(one, other) for one, other in zip(ours.values, peer.values, strict=False)),
            _joined(goal.note, ours.note, peer.note),
        )
    return Row(goal, note=_joined(*(figure.reason for figure in (ours, peer) if isinstance(figure, Skipped))))


def table(rows: Iterable[Row]) -> Table:
    """Return `rows` as a table, a section for each letter."""
    shown = Table(title="antiphon: performance", title_justify="left")
    for name in ("goal", "workload", "ours", "", "peer", "", "ratio", "quartiles", "target", "met", "note"):
        shown.add_column(
            name, justify="right" if name in {"", "ratio", "quartiles", "target"} else "left", no_wrap=name != "note"
        )
    letter = ""
    for one in rows:
        if letter not in {"", one.goal.letter}:
            shown.add_section()
        letter = one.goal.letter
        shown.add_row(*_cells(one), style="" if one.goal.target else "dim")
    return shown


def as_json(rows: Iterable[Row], header: dict[str, Any]) -> dict[str, Any]:
    """Return everything in the table, and the ratio of each round, as a JSON value. Times are in seconds."""
    return {"header": header, "rows": [_record(one) for one in rows]}


def header(settings: Settings) -> dict[str, Any]:
    """Return how the table was made: method, versions, machine, settings, and what its short names stand for."""
    return {
        "method": METHOD,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs, {_processor()}",
        "load": round(os.getloadavg()[0], 1),
        "versions": {name: _version(name) for name in PACKAGES},
        "rounds": settings.rounds,
        "scale": settings.scale,
        "least": settings.least,
        "workloads": {name: workload.about for name, workload in WORKLOADS.items()},
        "subjects": {name: subject.about for name, subject in SUBJECTS.items()},
    }


def heading(facts: dict[str, Any]) -> str:
    """Return the header for people."""
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    lines = [
        f"{facts['python']} on {facts['machine']} (load {facts['load']}); {versions}",
        f"{facts['rounds']} rounds of at least {facts['least'] * 1e3:.0f} ms each. {facts['method']}",
    ]
    if facts["scale"] != 1:
        lines.append(f"Inputs at {facts['scale']} of their size: the figures say nothing about the goals.")
    return "\n".join(lines)


def _cells(one: Row) -> list[str]:
    goal, ratio, verdict = one.goal, one.ratio, one.verdict
    return [
        goal.letter,
        goal.workload,
        goal.ours.label,
        "" if ratio is None else _shown(one.ours, one.unit),
        goal.peer.label,
        "" if ratio is None else _shown(one.peer, one.unit),
        "–" if ratio is None else f"{ratio:.2f}",
        f"{one.quartiles[0]:.2f}–{one.quartiles[1]:.2f}" if one.quartiles else "",
        f"{goal.sense.value} {goal.target:g}" if goal.target else "",
        f"[{_STYLES[verdict]}]{verdict}[/]" if verdict else "",
        one.note,
    ]


def _record(one: Row) -> dict[str, Any]:
    goal, measured = one.goal, one.ratio is not None
    return {
        "goal": goal.letter,
        "workload": goal.workload,
        "ours": {"name": goal.ours.label, "value": one.ours if measured else None},
        "peer": {"name": goal.peer.label, "value": one.peer if measured else None},
        "unit": one.unit,
        "ratio": one.ratio,
        "quartiles": one.quartiles,
        "ratios": one.ratios,
        "sense": goal.sense.value,
        "target": goal.target,
        "met": one.verdict,
        "note": one.note,
    }


def _shown(value: float, unit: str) -> str:
    match unit:
        case "s/chunk":
            return f"{value * 1e6:.2f} µs/chunk"
        case "s":
            return f"{value * 1e3:.1f} ms"
        case _:
            return f"{value:.1f} {unit}"


def _joined(*notes: str) -> str:
    return "; ".join(dict.fromkeys(note for note in notes if note))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    """Return what Linux calls the processor. Source: proc(5)."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.processor())
