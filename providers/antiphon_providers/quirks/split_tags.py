"""`SplitTags`: reasoning that stands between tags at the start of the content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from antiphon.stream.deltas import (
    CallDelta,
    Delta,
    ErrorDelta,
    FinishDelta,
    LogprobsDelta,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)

from .held import Held, overlap


class Place(Enum):
    """Where in the content a stream is."""

    START = "start"  # nothing visible came, or the beginning of a tag
    INSIDE = "inside"  # between the tags
    AFTER = "after"  # the closing tag came, and no visible text
    OFF = "off"  # all text is the answer's


@dataclass(frozen=True, slots=True)
class SplitTags:
    """What stands between `open` and `close` at the very start of the content is reasoning; later tags are text.

    White space before, within and after the tags, at their edges, is dropped. `opened_by_prompt`: the prompt ends with
    the opening tag, so the content begins inside, with or without it. Where the closing tag never comes, all after the
    opening one is reasoning; the beginning of a tag at the end is text of what is open. A native reasoning field
    switches it off. The log probabilities of the tags are the reasoning's.
    Source: bedrock-openai-compat/llama-stack--inference-3dcb9e38f66c963235, vllm/llama-stack--inference-0248ff8a1be5ff5ba8.
    """

    open: str = "<think>"
    close: str = "</think>"
    opened_by_prompt: bool = False

    def start(self) -> Splitting:
        """Return a fresh transducer."""
        return Splitting(self)


class Splitting:
    """`SplitTags` at work on one stream."""

    def __init__(self, tags: SplitTags) -> None:
        self._tags = tags
        self._place = Place.START
        self._begun = False  # visible reasoning came
        self._held = Held()
        self._readers: dict[Place, Callable[[], Iterator[Delta]]] = {
            Place.START: self._at_start,
            Place.INSIDE: self._inside,
            Place.AFTER: self._after,
            Place.OFF: self._off,
        }

    @property
    def idle(self) -> bool:
        """Whether no tag can come any more."""
        return self._place is Place.OFF

    def feed(self, one: Delta) -> Sequence[Delta]:
        """Return what `one` becomes, in order."""
        if self._place is Place.OFF:
            return (one,)
        match one:
            case TextDelta(text, logprobs):
                self._held.add(text, logprobs)
                return list(self._read())
            case LogprobsDelta("text", logprobs) if self._place is not Place.AFTER:
                self._held.add("", logprobs)
                return ()
            case ReasoningDelta():
                made = [*self._flush(), one]
                self._place = Place.OFF
                return made
            case CallDelta() | RefusalDelta() if self._place is Place.START and self._held.text.strip():
                made = [*self._flush(), one]  # what looked like the beginning of a tag is text
                self._place = Place.OFF
                return made
            case FinishDelta() | ErrorDelta():
                return [*self._flush(), one]
            case _:
                return (one,)

    def finish(self) -> Sequence[Delta]:
        """Return what was kept back."""
        return list(self._flush())

    def _read(self) -> Iterator[Delta]:
        """Yield what can be said of the held text."""
        return self._readers[self._place]()

    def _at_start(self) -> Iterator[Delta]:
        text, tags = self._held.text, self._tags
        visible = text.lstrip()
        if visible.startswith(tags.open):
            tag = self._held.take(len(text) - len(visible) + len(tags.open))
            yield from tag.only_logprobs("reasoning")
            self._place = Place.INSIDE
        elif tags.open.startswith(visible):
            return  # nothing, white space, or the beginning of the tag
        else:
            self._place = Place.INSIDE if tags.opened_by_prompt else Place.OFF
        yield from self._read()

    def _inside(self) -> Iterator[Delta]:
        text, close = self._held.text, self._tags.close
        if not self._begun:
            blank = len(text) - len(text.lstrip())
            yield from self._held.take(blank).only_logprobs("reasoning")
            text = text[blank:]
        at = text.find(close)
        said = text[:at] if at >= 0 else text[: len(text) - overlap(text, close)]
        size = len(said.rstrip())
        self._begun = self._begun or size > 0
        yield from self._held.take(size).as_reasoning()
        if at >= 0:
            yield from self._held.take(at - size + len(close)).only_logprobs("reasoning")
            self._place = Place.AFTER
            yield from self._read()

    def _after(self) -> Iterator[Delta]:
        text = self._held.text
        visible = text.lstrip()
        self._held.take(len(text) - len(visible))
        if visible:
            self._place = Place.OFF
            yield from self._read()

    def _off(self) -> Iterator[Delta]:
        yield from self._held.take_all().as_text()

    def _flush(self) -> Iterator[Delta]:
        """Yield what is held as what is open: it will be no tag."""
        held = self._held.take_all()
        if self._place is Place.INSIDE:
            yield from held.as_reasoning()
        else:
            self._place = Place.OFF if held.text else self._place
            yield from held.as_text()
