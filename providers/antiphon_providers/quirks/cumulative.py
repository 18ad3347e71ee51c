"""`CumulativeText`: servers that repeat the whole text so far in each delta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.stream.deltas import Delta, Json, ReasoningDelta, RefusalDelta, TextDelta


@dataclass(frozen=True, slots=True)
class CumulativeText:
    """Each delta holds all of its kind (text, refusal, reasoning) so far: only what is new goes on.

    A delta that is no continuation of what was said is a piece of its own: nothing is lost.
    Source: perplexity/rig--streaming-streaming-smoke, whose chunks carry such a `message` beside the delta.
    """

    def start(self) -> Shortening:
        """Return a fresh transducer."""
        return Shortening()


class Shortening:
    """`CumulativeText` at work on one stream."""

    def __init__(self) -> None:
        self._said: dict[type[Delta], str] = {}
        self._logprobs: tuple[Json, ...] = ()
        self._details: tuple[Json, ...] = ()

    @property
    def idle(self) -> bool:
        """Never: each delta is compared."""
        return False

    def feed(self, one: Delta) -> Sequence[Delta]:
        """Return what is new in `one`."""
        match one:
            case TextDelta(text, logprobs):
                new, tokens = self._new(TextDelta, text), _rest(self._logprobs, logprobs)
                self._logprobs = (*self._logprobs, *tokens) if new else self._logprobs
                return (TextDelta(new, tokens),) if new else ()
            case RefusalDelta(text):
                new = self._new(RefusalDelta, text)
                return (RefusalDelta(new),) if new else ()
            case ReasoningDelta(text, details):
                new, pieces = self._new(ReasoningDelta, text), _rest(self._details, details)
                self._details = (*self._details, *pieces)
                return (ReasoningDelta(new, pieces),) if new or pieces else ()
            case _:
                return (one,)

    def finish(self) -> Sequence[Delta]:
        """Nothing is kept back."""
        return ()

    def _new(self, kind: type[Delta], text: str) -> str:
        """Return what `text` adds to what was said of that kind; "" where it only repeats the beginning of it."""
        said = self._said.get(kind, "")
        if said.startswith(text):
            return ""
        new = text.removeprefix(said)
        self._said[kind] = said + new
        return new


def _rest(before: tuple[Json, ...], now: tuple[Json, ...]) -> tuple[Json, ...]:
    """Return `now` without `before`, if it begins so."""
    return now[len(before) :] if now[: len(before)] == before else now
