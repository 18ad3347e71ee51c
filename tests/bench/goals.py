"""The performance table as data: `GOALS`. Each compares two figures, each figure names what is measured.

`Sense.FASTER`: how many times more the peer needs, the more the better. `Sense.COST`: ours as a share of the other, the
less the better. A goal without a target is there to judge the others by.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal, TypeAlias


class Sense(Enum):
    FASTER = "≥"
    COST = "≤"


@dataclass(frozen=True, slots=True)
class Cell:
    """CPU time a chunk: one subject on one workload."""

    workload: str
    subject: str

    @property
    def label(self) -> str:
        return self.subject


@dataclass(frozen=True, slots=True)
class Import:
    """What `statement` costs in a process of its own, the bare interpreter taken off."""

    name: str
    statement: str
    figure: Literal["cpu", "memory"]

    @property
    def label(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Peak:
    """Memory of a conversion in a process of its own, whose chunks are made as they are read and events are dropped.

    `process` is the most the process ever held; `kept` the most the conversion held at once, a chunk, by tracemalloc.
    """

    workload: str
    subject: str
    figure: Literal["process", "kept"]

    @property
    def label(self) -> str:
        return self.subject


Figure: TypeAlias = Cell | Import | Peak


@dataclass(frozen=True, slots=True)
class Goal:
    """`ours` against `peer`. `workload` is how the table calls it."""

    letter: str
    workload: str
    ours: Figure
    peer: Figure
    sense: Sense
    target: float | None = None
    note: str = ""

    def ratio(self, ours: float, peer: float) -> float:
        """Return the ratio that `target` speaks of."""
        return peer / ours if self.sense is Sense.FASTER else ours / peer

    def verdict(self, ratio: float) -> str:
        """Return "yes", "within 10 %", "no", or "" where there is no target."""
        if self.target is None:
            return ""
        over = ratio / self.target if self.sense is Sense.FASTER else self.target / ratio
        return "yes" if over >= 1 else "within 10 %" if over >= 0.9 else "no"


def _faster(letter: str, workload: str, ours: str, peer: str, target: float | None = None, note: str = "") -> Goal:
    return Goal(letter, workload, Cell(workload, ours), Cell(workload, peer), Sense.FASTER, target, note)


def _cost(letter: str, workload: str, ours: str, peer: str, target: float | None = None, note: str = "") -> Goal:
    return Goal(letter, workload, Cell(workload, ours), Cell(workload, peer), Sense.COST, target, note)


def _growth(big: str, small: str, subject: str, target: float | None = None) -> Goal:
    return Goal("G", f"{big}/{small}", Cell(big, subject), Cell(small, subject), Sense.COST, target)


def _import(ours: Import, peer: str, target: float | None = None, note: str = "") -> Goal:
    return Goal("I", ours.figure, ours, Import(peer, f"import {peer}", ours.figure), Sense.FASTER, target, note)


def _peak(workload: str, figure: Literal["process", "kept"], target: float | None = None, note: str = "") -> Goal:
    ours, peer = Peak(workload, "ours.openai", figure), Peak(workload, "agents", figure)
    return Goal("J", workload, ours, peer, Sense.COST, target, note)


# The first conversion is part of it, so that nothing is left to be imported later.
_WIRE = """from antiphon import convert_sse
list(convert_sse([b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\\n\\n'], events="sse"))"""

GOALS: tuple[Goal, ...] = (
    _faster("A", "W1h", "ours.openai", "agents", 10),
    _faster("A", "W1", "ours.openai", "agents", 6),
    _faster("A", "W2", "ours.openai", "agents", 9),
    _faster("A", "W3", "ours.openai", "agents", 14),
    _faster("A", "W4", "ours.openai", "agents", 7),
    _faster("A", "W5q", "ours.openai", "agents", 11),
    _faster("A", "W1", "ours.openai.async", "agents", note="both asynchronous"),
    _faster("B", "W1h", "ours.dict", "agents", 20),
    _faster("B", "W1", "ours.dict", "agents", 10),
    _faster("B", "W2", "ours.dict", "agents", 14),
    _faster("B", "W3", "ours.dict", "agents", 20),
    _faster("B", "W4", "ours.dict", "agents", 11),
    _faster("C", "W1", "ours.sse", "agents.wire", 60),
    _faster("C", "W4", "ours.sse", "agents.wire", 60),
    _faster("C", "W7", "ours.sse.async", "agents.wire", 30),
    _cost("D", "W1", "ours.sse", "floor", 1.05),
    _cost("D", "W4", "ours.sse", "floor", 1.05),
    _cost("D", "W7", "ours.sse.async", "floor.async", 1.05),
    _cost("D", "W1", "ours.sse.whole", "floor.whole", note="the body in one piece"),
    _cost("D", "W4", "ours.sse.whole", "floor.whole", note="the body in one piece"),
    _cost("E", "W6", "ours.sse", "floor", 1.3),
    _faster("E", "W6", "ours.sse", "agents.wire", 40),
    _faster("F", "W6", "ours.openai", "agents", 1),
    _growth("W3", "W2", "ours.openai", 1.10),
    _growth("W3", "W2", "ours.dict", 1.10),
    _growth("W3", "W2", "ours.sse", 1.10),
    _growth("W3", "W2", "agents"),
    _growth("W5", "W5s", "ours.openai", 1.10),
    _growth("W5", "W5s", "ours.sse", 1.10),
    _growth("W5", "W5s", "agents"),
    _faster("H", "W1", "ours.parsed", "agents.wire", 20),
    _faster("H", "W1", "ours.parsed", "agents.parsed", note="neither encodes its events"),
    _import(Import("antiphon", "import antiphon", "cpu"), "agents", 35),
    _import(Import("wire core", _WIRE, "cpu"), "agents", 35, "with a first conversion of bytes to bytes"),
    _import(Import("antiphon", "import antiphon", "memory"), "agents", 12),
    _import(Import("wire core", _WIRE, "memory"), "agents", 12, "with a first conversion of bytes to bytes"),
    _peak("W2", "process", 1.1, "the whole process at its highest, agents and antiphon imported in both"),
    _peak("W3", "process", 1.1, "the whole process at its highest, agents and antiphon imported in both"),
    _peak("W2", "kept", note="the conversion alone"),
    _peak("W3", "kept", note="the conversion alone"),
)

# What is measured in the same rounds: the workloads that one goal compares with each other stand together.
GROUPS: tuple[tuple[str, ...], ...] = (
    ("W1",),
    ("W1h",),
    ("W4",),
    ("W6",),
    ("W7",),
    ("W2", "W3"),
    ("W5s", "W5q", "W5"),
)
