"""The peak memory of one conversion, in the process that this is: `python -m tests.bench.peak W3 agents kept 1.0`."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tracemalloc
from pathlib import Path

from .streams import Open, drain
from .subjects import SUBJECTS
from .workloads import WORKLOADS, Workload, passing

WARM_UP = 0.01


def process_peak(open: Open, workload: Workload, scale: float, runner: asyncio.Runner) -> float:
    """Return the most that this process has ever held, in MiB, after a conversion."""
    drain(open, passing(workload, scale), runner)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def kept(open: Open, workload: Workload, scale: float, runner: asyncio.Runner) -> float:
    """Return the most that a conversion held at once, in bytes a chunk."""
    load = passing(workload, scale)
    gc.collect()
    tracemalloc.start()
    drain(open, load, runner)
    return tracemalloc.get_traced_memory()[1] / load.count


def main(name: str, subject: str, figure: str, scale: str) -> None:
    """Print the `figure` of `subject` on the workload called `name`, as JSON, after a small conversion to warm up."""
    for one in SUBJECTS.values():
        one.missing()  # imports what it needs: the process holds the same modules whatever is measured
    open, workload = SUBJECTS[subject].prepare(), WORKLOADS[name]
    measure = {"process": process_peak, "kept": kept}[figure]
    with asyncio.Runner() as runner:
        drain(open, passing(workload, WARM_UP * float(scale)), runner)
        print(json.dumps({"memory": measure(open, workload, float(scale), runner)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
