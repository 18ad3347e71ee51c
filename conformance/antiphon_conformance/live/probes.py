"""The probes, in the order in which they run."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase

from antiphon.errors import BadInput
from antiphon.near import listing

from .probe import Probe
from .probes_of_calls import CALLS
from .probes_of_conduct import REFUSED, TOGETHER
from .probes_of_forms import FORMS, REASONING
from .probes_of_text import TEXTS

PROBES: tuple[Probe, ...] = (*TEXTS, *CALLS, *FORMS, *REASONING, *REFUSED, *TOGETHER)

# Those whose answers decide how the others are asked: they run first, one after the other.
FACTS = 7


def chosen(patterns: tuple[str, ...]) -> tuple[Probe, ...]:
    """Return the probes that `patterns` name, all of them without any. Raises BadInput where a pattern names none."""
    for pattern in patterns:
        if not any(fnmatchcase(probe.id, pattern) for probe in PROBES):
            raise BadInput(f"no probe is called {pattern!r}{listing(pattern, (probe.id for probe in PROBES))}")
    return tuple(
        probe for probe in PROBES if not patterns or any(fnmatchcase(probe.id, pattern) for pattern in patterns)
    )


def probes_hash() -> str:
    """Return a hash of the table: two reports with the same one asked the same."""
    return hashlib.sha256(repr(PROBES).encode()).hexdigest()[:16]
