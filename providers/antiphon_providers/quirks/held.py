"""`Held`: text that a quirk keeps back, with the log probabilities of its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from antiphon.stream.deltas import Delta, Json, LogprobsDelta, ReasoningDelta, TextDelta


class Piece(NamedTuple):
    """A stretch of text, which may be empty, and the log probabilities of the tokens that end in it."""

    text: str
    logprobs: tuple[Json, ...]

    def as_text(self) -> Iterator[Delta]:
        """Yield it as text."""
        if self.text:
            yield TextDelta(self.text, self.logprobs)
        elif self.logprobs:
            yield LogprobsDelta("text", self.logprobs)

    def as_reasoning(self) -> Iterator[Delta]:
        """Yield it as reasoning."""
        if self.text:
            yield ReasoningDelta(self.text)
        yield from self.only_logprobs("reasoning")

    def only_logprobs(self, kind: Literal["text", "reasoning"]) -> Iterator[Delta]:
        """Yield its log probabilities as those of something without text."""
        if self.logprobs:
            yield LogprobsDelta(kind, self.logprobs)


@dataclass(slots=True)
class Held:
    """Text in the order in which it came. Adding costs what is added; only `text` and `take` look at the whole."""

    size: int = 0
    _pieces: list[str] = field(default_factory=list[str])
    _tokens: list[tuple[int, Json]] = field(default_factory=list[tuple[int, Json]])  # where each ends, in order

    def add(self, text: str, logprobs: Sequence[Json] = ()) -> None:
        """Take text to the end. Tokens that do not spell it (control tokens) end where it does."""
        words = [str(token.get("token", "")) for token in logprobs]
        spelled = "".join(words) == text
        at = self.size
        self.size += len(text)
        self._pieces.append(text)
        for word, token in zip(words, logprobs, strict=True):
            at += len(word)
            self._tokens.append((at if spelled else self.size, token))

    @property
    def text(self) -> str:
        """All the text."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def tail(self, size: int) -> str:
        """Return the last `size` characters, or all where there are fewer."""
        found, at = 0, len(self._pieces)
        while at and found < size:
            at -= 1
            found += len(self._pieces[at])
        return "".join(self._pieces[at:])[-size:] if size else ""

    def take(self, size: int) -> Piece:
        """Take the first `size` characters away, and return them."""
        text = self.text
        self._pieces, self.size = [text[size:]], self.size - size
        kept = [(end - size, token) for end, token in self._tokens if end > size]
        taken = tuple(token for end, token in self._tokens if end <= size)
        self._tokens = kept
        return Piece(text[:size], taken)

    def take_all(self) -> Piece:
        """Take all away, and return it."""
        return self.take(self.size)


def overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of `text` may be the beginning of `tag`."""
    longest = min(len(text), len(tag) - 1)
    return next((size for size in range(longest, 0, -1) if text.endswith(tag[:size])), 0)
