"""SEQ: numbering."""

from __future__ import annotations

from collections.abc import Iterator

from antiphon_conformance.evidence import QUEUED, TEXT
from antiphon_conformance.read import quoted
from antiphon_conformance.rule import Found, Level, Need, folded, rule
from antiphon_conformance.trace import Trace


@rule(
    "SEQ001",
    "numbered-from-0-by-1",
    Level.MUST,
    since="1.0",
    sources=(TEXT, QUEUED),
    needs=(Need.NUMBERS,),
)
def numbered_from_0_by_1(trace: Trace) -> Iterator[Found]:
    """`sequence_number` is 0 on the first event and grows by exactly 1 on every event; after `starting_after=N` the
    first is N+1."""
    first = 0 if trace.starting_after is None else trace.starting_after + 1
    if _counted(trace, first):
        return
    yield from folded(_jumps(trace, first), "more jumps")


def _counted(trace: Trace, first: int) -> bool:
    """Whether the numbers are just those that are due, and each is a whole number."""
    numbers = trace.numbers
    return numbers == list(range(first, first + len(numbers))) and set(map(type, numbers)) <= {int}


def _jumps(trace: Trace, expected: int) -> Iterator[Found]:
    """Yield where the number is not the last one and 1; counting goes on from what is there."""
    for at, event in enumerate(trace.events):
        if trace.plain[at] is None:
            continue
        number = event.get("sequence_number")
        if number != expected or isinstance(number, bool):
            yield Found(at, f"sequence_number is {quoted(number)} where {expected} follows")
        expected = number + 1 if isinstance(number, int) else expected + 1
