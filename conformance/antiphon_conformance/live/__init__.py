"""Live backends: probes put to a server, what it answered judged in two layers, and the profile that fits it.

    probes -> budget -> requests -> exchanges -> (chunk rules | conversion -> event rules) -> SuiteReport

An exchange is all that is judged: a run and its recording give the same report.
"""

from __future__ import annotations

from .options import Budget, LiveOptions, Progress, Step
from .progress import bar
from .running import check_live, describe

__all__ = ["Budget", "LiveOptions", "Progress", "Step", "bar", "check_live", "describe"]
