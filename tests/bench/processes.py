"""What needs a process of its own: what an import costs, and the peak memory of a conversion."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from .goals import Figure, Import, Peak
from .measure import Samples, Settings, Skipped
from .subjects import SUBJECTS

CHECKOUT = Path(__file__).parents[2]
T = TypeVar("T")
PEAK_ROUNDS = 3  # memory hardly varies

# The peak is VmHWM, that of the memory since `exec`; ru_maxrss can be the parent's. Source: proc(5), getrusage(2).
_REPORT = """
import json, time
cpu = time.process_time()
with open("/proc/self/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(json.dumps({"cpu": cpu, "memory": peak / 1024}))
"""
_UNITS = {"cpu": "s", "memory": "MiB", "process": "MiB", "kept": "B/chunk"}


def imports(figures: list[Import], settings: Settings, tell: Callable[[str], None]) -> dict[Figure, Samples | Skipped]:
    """Return what each import costs beyond the bare interpreter, each taken in turn with the others."""
    statements = list(dict.fromkeys(figure.statement for figure in figures))
    bare: list[dict[str, float]] = []
    costs: dict[str, list[dict[str, float] | Skipped]] = {statement: [] for statement in statements}
    for number in range(settings.rounds):
        tell(f"imports: round {number + 1} of {settings.rounds}")
        bare.append(_answer("-c", _REPORT))
        for statement in _in_turn(statements, number):
            costs[statement].append(_tried("-c", statement + _REPORT))
    return {figure: _beyond(bare, costs[figure.statement], figure.figure) for figure in figures}


def peaks(figures: list[Peak], settings: Settings, tell: Callable[[str], None]) -> dict[Figure, Samples | Skipped]:
    """Return the peak memory of each conversion, each taken in turn with the others."""
    results: dict[Figure, Samples | Skipped] = {
        figure: Skipped(reason) for figure in figures if (reason := SUBJECTS[figure.subject].missing())
    }
    present = [figure for figure in figures if figure not in results]
    values: dict[Peak, list[float]] = {figure: [] for figure in present}
    rounds = min(settings.rounds, PEAK_ROUNDS)
    for number in range(rounds):
        for figure in _in_turn(present, number):
            tell(f"{figure.workload} {figure.subject}: peak memory, round {number + 1} of {rounds}")
            arguments = (figure.workload, figure.subject, figure.figure, str(settings.scale))
            values[figure].append(_answer("-m", "tests.bench.peak", *arguments)["memory"])
    return results | {figure: Samples(values[figure], _UNITS[figure.figure]) for figure in present}


def _beyond(bare: list[dict[str, float]], costs: list[dict[str, float] | Skipped], name: str) -> Samples | Skipped:
    values: list[float] = []
    for least, cost in zip(bare, costs, strict=True):
        if isinstance(cost, Skipped):
            return cost
        values.append(cost[name] - least[name])
    return Samples(values, _UNITS[name])


def _in_turn(items: list[T], number: int) -> Iterable[T]:
    return reversed(items) if number % 2 else items


def _tried(*arguments: str) -> dict[str, float] | Skipped:
    try:
        return _answer(*arguments)
    except subprocess.CalledProcessError as error:
        return Skipped(error.stderr.strip().rpartition("\n")[2])


def _answer(*arguments: str) -> dict[str, Any]:
    """Run Python in the checkout and return the JSON object that it prints."""
    done = subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
