"""CPU time of subjects on workloads, taken side by side: each round times every cell of a group once, in turn."""

from __future__ import annotations

import asyncio
import gc
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .goals import GROUPS, Cell, Figure
from .streams import Open, drain
from .subjects import SUBJECTS
from .workloads import WORKLOADS, Load, prebuilt


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure. `least` is the CPU time that one timing takes at the least, `budget` what a cell may take."""

    rounds: int = 9
    scale: float = 1.0
    least: float = 0.02
    budget: float = 120.0


@dataclass(frozen=True, slots=True)
class Samples:
    """What was measured, one value a round. `unit` is that of the values; `note` says what is unusual about them."""

    values: list[float]
    unit: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Why there is no value."""

    reason: str


@dataclass(slots=True)
class _Timed:
    """A cell that is being measured."""

    open: Open
    load: Load
    repeats: int = 1
    rounds: int = 1
    seconds: list[float] = field(default_factory=list[float])  # a chunk


def groups(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return `cells` as those that are measured in the same rounds; each once, in the order of the workloads."""
    wanted = dict.fromkeys(cells)
    found = ([cell for name in group for cell in wanted if cell.workload == name] for group in GROUPS)
    return [group for group in found if group]


def measure(cells: list[Cell], settings: Settings, tell: Callable[[str], None]) -> dict[Figure, Samples | Skipped]:
    """Return CPU seconds a chunk for each of `cells`. `tell` is called with what comes next, outside the timings."""
    results: dict[Figure, Samples | Skipped] = {
        cell: Skipped(reason) for cell in cells if (reason := SUBJECTS[cell.subject].missing())
    }
    present = [cell for cell in cells if cell not in results]
    tell(f"{', '.join(dict.fromkeys(cell.workload for cell in present))}: making the inputs")
    with asyncio.Runner() as runner, _no_collections():
        timed = _prepared(present, settings)
        gc.collect()
        gc.freeze()
        for cell, one in timed.items():
            tell(f"{cell.workload} {cell.subject}: warming up")
            _calibrate(one, settings, runner)
        for number in range(max((one.rounds for one in timed.values()), default=0)):
            for cell, one in _in_turn(timed, number):
                if len(one.seconds) < one.rounds:
                    tell(f"{cell.workload} {cell.subject}: round {number + 1} of {one.rounds}")
                    one.seconds.append(_seconds(one, runner))
    return results | {cell: Samples(one.seconds, "s/chunk", _bounded(one, settings)) for cell, one in timed.items()}


def _prepared(cells: list[Cell], settings: Settings) -> dict[Cell, _Timed]:
    loads = dict(_loads(cells, settings.scale))
    return {cell: _Timed(SUBJECTS[cell.subject].prepare(), loads[cell.workload]) for cell in cells}


def _loads(cells: list[Cell], scale: float) -> Iterator[tuple[str, Load]]:
    for name in dict.fromkeys(cell.workload for cell in cells):
        reads = {SUBJECTS[cell.subject].reads for cell in cells if cell.workload == name}
        yield name, prebuilt(WORKLOADS[name], scale, objects="objects" in reads, wire="wire" in reads)


def _calibrate(one: _Timed, settings: Settings, runner: asyncio.Runner) -> None:
    """Run `one` untimed, and settle from how long that took how often it is run. Far too slow: that run is its only one."""
    first = _seconds(one, runner)
    if first * one.load.count > settings.budget / 2:
        one.seconds.append(first)
        return
    once = min(first, _seconds(one, runner)) * one.load.count  # the first run also fills caches
    one.repeats = max(1, math.ceil(settings.least / max(once, 1e-6)))
    one.rounds = max(1, min(settings.rounds, int(settings.budget / (once * one.repeats))))


def _in_turn(timed: dict[Cell, _Timed], number: int) -> list[tuple[Cell, _Timed]]:
    order = list(timed.items())
    return order[::-1] if number % 2 else order


def _seconds(one: _Timed, runner: asyncio.Runner) -> float:
    gc.collect()
    start = time.process_time()
    for _ in range(one.repeats):
        drain(one.open, one.load, runner)
    return (time.process_time() - start) / one.repeats / one.load.count


def _bounded(one: _Timed, settings: Settings) -> str:
    return "" if one.rounds >= settings.rounds else f"{one.rounds} rounds, since one takes {_duration(one)}"


def _duration(one: _Timed) -> str:
    return f"{one.seconds[0] * one.load.count:.0f} s"


@contextmanager
def _no_collections() -> Generator[None]:
    """Switch the cyclic garbage collector off; what was frozen within is thawed at the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.enable()
        gc.collect()
