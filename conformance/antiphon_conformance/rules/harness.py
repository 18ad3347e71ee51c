"""HAR: an adapter's part in a run of the suite: it gives an answer, and the answer ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from antiphon_conformance.rule import Client, Found, Level, rule

LOOP = Client("any program with `for event in …`", "is left by the exception, with an answer that never ended")
WAITING = Client("any client", "waits for the next event, and has no ground to stop")


@rule("HAR002", "adapter-gives-an-answer", Level.MUST, since="1.0", sources=(LOOP,), about="cases")
def adapter_gives_an_answer(problems: Iterable[str]) -> Iterator[Found]:
    """An adapter does not raise, and its process does not die; but what the source itself raised may come out after
    the terminal event."""
    yield from (Found(None, problem) for problem in problems)


@rule("HAR003", "answer-ends", Level.MUST, since="1.0", sources=(WAITING,), about="cases")
def answer_ends(problems: Iterable[str]) -> Iterator[Found]:
    """An adapter ends its answer in time, and with a number of events that has something to do with the chunks."""
    yield from (Found(None, problem) for problem in problems)
