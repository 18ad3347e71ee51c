"""`ToolCallTags`: tool calls that a model writes into the text, as Hermes and Qwen do, and no parser reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from antiphon.stream.deltas import CallDelta, Delta, ErrorDelta, FinishDelta, LogprobsDelta, TextDelta

from .held import Held, Piece, overlap

_ESCAPED = re.compile(r"\\.", re.DOTALL)


class Place(Enum):
    """Where in the content a stream is."""

    OUTSIDE = "outside"
    OPENED = "opened"  # a tag came, and nothing visible after it
    INSIDE = "inside"  # what came after the tag begins like an object


@dataclass(frozen=True, slots=True)
class ToolCallTags:
    """`<tool_call>{"name": …, "arguments": …}</tool_call>` in the text is a call; the arguments may be JSON in a string.

    What is between the tags and no such object stays text, to the letter. A call whose closing tag is missing at the end
    counts where its object is complete (the tag was a stop word). White space beside a call is kept only between texts.
    Calls go on with the finish, after all text, so it makes no difference how the text was cut.
    Source: the thread vllm-project/vllm#36435; vllm/llama-stack--inference-0248ff8a1be5ff5ba8, which names the tags.
    """

    open: str = "<tool_call>"
    close: str = "</tool_call>"

    def start(self) -> Collecting:
        """Return a fresh transducer."""
        return Collecting(self)


class Collecting:
    """`ToolCallTags` at work on one stream."""

    def __init__(self, tags: ToolCallTags) -> None:
        self._tags = tags
        self._place = Place.OUTSIDE
        self._held = Held()
        self._before = 0  # how much of the held text is white space before the opening tag
        self._beside = False  # the held white space is beside a call
        self._spoke = False  # visible text went on
        self._calls: list[CallDelta] = []
        self._index = 0  # the next that is free

    @property
    def idle(self) -> bool:
        """Never: a call may come at any time."""
        return False

    def feed(self, one: Delta) -> Sequence[Delta]:
        """Return what `one` becomes, in order."""
        match one:
            case TextDelta(text, logprobs):
                self._held.add(text, logprobs)
                return list(self._read(len(text)))
            case LogprobsDelta("text", logprobs) if self._held.size:
                self._held.add("", logprobs)
                return ()
            case CallDelta(index=index):
                self._index = max(self._index, (index or 0) + 1)
                return (one,)
            case FinishDelta() | ErrorDelta():
                return [*self._flush(), one]
            case _:
                return (one,)

    def finish(self) -> Sequence[Delta]:
        """Return what was kept back, and the calls."""
        return list(self._flush())

    def _read(self, added: int) -> Iterator[Delta]:
        """Yield what can be said of the held text, of which the last `added` characters are new."""
        close = self._tags.close
        if self._place is Place.INSIDE and close not in self._held.tail(added + len(close) - 1):
            return
        before = None
        while before != (self._place, self._held.size):
            before = (self._place, self._held.size)
            yield from self._outside() if self._place is Place.OUTSIDE else self._inside()

    def _outside(self) -> Iterator[Delta]:
        """Yield text up to white space or a tag, whole or begun, that ends what is held."""
        text = self._held.text
        at = text.find(self._tags.open)
        said = text[:at] if at >= 0 else text[: len(text) - overlap(text, self._tags.open)]
        yield from self._say(self._held.take(len(said.rstrip())))
        if at >= 0:
            self._place, self._before = Place.OPENED, len(said) - len(said.rstrip())

    def _inside(self) -> Iterator[Delta]:
        """Take a call out of what is held, or yield as text what is none. Nothing happens while it may become one."""
        text, begin = self._held.text, self._before + len(self._tags.open)
        first = text[begin:].lstrip()[:1]
        if first not in ("", "{"):
            yield from self._leave(begin)
            return
        self._place = Place.INSIDE if first else Place.OPENED
        at = text.find(self._tags.close, begin)
        while at >= 0 and _in_string(text[begin:at]):
            at = text.find(self._tags.close, at + 1)
        if at >= 0:
            yield from self._leave(at + len(self._tags.close), _call(text[begin:at]))

    def _leave(self, size: int, call: CallDelta | None = None) -> Iterator[Delta]:
        """Take what is before `size` away: it is a call, or text to the letter."""
        self._place = Place.OUTSIDE
        if call is None:
            yield from self._say(self._held.take(size))
            return
        blank = self._held.take(self._before)
        yield from self._held.take(size - self._before).only_logprobs("reasoning")
        self._calls.append(CallDelta(self._index, "", call.name, call.arguments))
        self._index += 1
        self._beside = True
        self._put_back(blank)

    def _put_back(self, blank: Piece) -> None:
        """Put white space before what is held."""
        rest = self._held.take_all()
        self._held.add(*blank)
        self._held.add(*rest)

    def _say(self, said: Piece) -> Iterator[Delta]:
        if self._beside and not self._spoke:
            said = Piece(said.text.lstrip(), said.logprobs)
        if said.text:
            self._spoke, self._beside = True, False
        yield from said.as_text()

    def _flush(self) -> Iterator[Delta]:
        """Yield what is held: it will get no longer. Then the calls."""
        text, begin = self._held.text, self._before + len(self._tags.open)
        call = _call(text[begin:]) if self._place is Place.INSIDE else None
        if self._place is not Place.OUTSIDE:
            yield from self._leave(len(text), call)
        rest = self._held.take_all()
        if rest.text.strip() or not self._beside:
            yield from self._say(rest)
        calls, self._calls = self._calls, []
        yield from calls


def _in_string(payload: str) -> bool:
    """Return whether `payload` ends within a JSON string, so that a tag after it is part of the string."""
    return _ESCAPED.sub("", payload).count('"') % 2 == 1


def _call(payload: str) -> CallDelta | None:
    """Return the call that `payload` describes, None where it is none."""
    found = _object(payload)
    if found is None or not isinstance(found.get("name"), str) or not found["name"]:
        return None
    match found.get("arguments"):
        case None | "":
            return CallDelta(name=found["name"], arguments="{}")
        case str(text) if _object(text) is not None:
            return CallDelta(name=found["name"], arguments=text)
        case dict():
            return CallDelta(name=found["name"], arguments=json.dumps(found["arguments"]))
        case _:
            return None


def _object(text: str) -> dict[str, Any] | None:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]
