"""`Answer`: what an adapter made of a case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

FaultKind: TypeAlias = Literal["raised", "hung", "endless", "died"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an adapter gave no whole answer: it raised, did not end in time, gave events without end, or died."""

    kind: FaultKind
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The events that came, as they came, and what went wrong."""

    events: list[Any]
    fault: Fault | None = None
