"""`Report`: what `check` found, which rules ran, and which did not apply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class Level(Enum):
    """How strong a rule is, in the words of RFC 2119."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"


@dataclass(frozen=True, slots=True)
class Finding:
    """One breach. `index` is the place of the event from 0, or None where it is about the stream as a whole."""

    code: str
    level: Level
    index: int | None
    message: str

    def __str__(self) -> str:
        where = "the stream" if self.index is None else f"event {self.index}"
        return f"{self.code} {self.level.value} {where}: {self.message}"


@dataclass(frozen=True, slots=True)
class Report:
    """What the rules say about one stream.

    `findings` are in order of the events. `ran` are the codes of the rules that were applied; `not_applicable` maps
    the codes of the others to the reason. `events` are the events as they were read.
    """

    findings: tuple[Finding, ...]
    ran: tuple[str, ...] = ()
    not_applicable: Mapping[str, str] = field(default_factory=dict[str, str])
    events: Sequence[Any] = field(default=(), repr=False)

    @property
    def ok(self) -> bool:
        """Whether no MUST is broken."""
        return not self.at(Level.MUST)

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the broken rules, each once, in order of their numbers."""
        return tuple(sorted({finding.code for finding in self.findings}))

    def at(self, *levels: Level) -> tuple[Finding, ...]:
        """Return the findings of these levels."""
        return tuple(finding for finding in self.findings if finding.level in levels)

    def __str__(self) -> str:
        """Return one line for each finding, and a line that counts the rules."""
        counted = (
            f"{len(self.findings)} findings · {len(self.ran)} rules ran, {len(self.not_applicable)} not applicable"
        )
        return "\n".join([*map(str, self.findings), counted])
