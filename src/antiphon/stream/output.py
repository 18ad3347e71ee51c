"""`Output`: the items of one response, in order. At most one is open; it is closed before another opens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from antiphon.ids import Ids

from .calls import Call
from .deltas import AnnotationDelta, Json, LogprobsDelta, ReasoningDelta, RefusalDelta, TextDelta
from .details import is_signed
from .emit import Emitter
from .items import (
    CALLS,
    Item,
    OpenCall,
    OpenItem,
    OpenMessage,
    OpenPart,
    OpenReasoning,
    PartKind,
    ReasoningForm,
    Status,
)
from .usual import Kind, nothing

Content: TypeAlias = TextDelta | RefusalDelta | ReasoningDelta | AnnotationDelta | LogprobsDelta
# annotation -> what it must have (openai types, `ResponseOutputText.annotations`); any other goes to provider_data
ANNOTATIONS: dict[str, frozenset[str]] = {
    "url_citation": frozenset({"url", "title", "start_index", "end_index"}),
    "file_citation": frozenset({"file_id", "filename", "index"}),
    "container_file_citation": frozenset({"container_id", "file_id", "filename", "start_index", "end_index"}),
    "file_path": frozenset({"file_id", "index"}),
}
NO_SUCH = frozenset({"no such annotation"})


class Flow(NamedTuple):
    """What usual chunks may go straight to: more of this kind to `write`, which returns its event, or None to refuse it.

    `call` is the index of the call whose arguments go on. Nothing goes straight anywhere where `kind` is None.
    """

    kind: Kind | None
    write: Callable[[Any], Any]
    call: int | None = None


NOTHING = Flow(None, nothing)


class Output:
    """Says content and calls as items. `before_first` is called before an item is announced.

    `make_id` gives a call a call_id, if it has none.

    `data` is the response's provider_data: what has no place in an item goes there.
    """

    def __init__(
        self,
        emitter: Emitter,
        ids: Ids,
        form: ReasoningForm,
        warn: Callable[[str, str], None],
        before_first: Callable[[], None],
        make_id: Callable[[Call, Callable[[], str]], None],
        data: dict[str, Any],
    ) -> None:
        self.open: OpenItem | None = None
        self.items: list[Item] = []  # the done ones
        self.status: Status = "completed"  # of the items that close now
        self._emitter = emitter
        self._ids = ids
        self._form = form
        self._warn = warn
        self._before_first = before_first
        self._make_id = make_id
        self._data = data
        self._blank: dict[type[Content], list[Any]] = {}  # white space of a kind that is not open
        self._blank_pieces: list[Json] = []  # of reasoning, that came with such white space
        self._late: list[Json] = []  # signed pieces of reasoning, for an item after the open one
        self._annotations: list[Json] = []  # waiting for a text part
        self._annotated: set[bytes] = set()  # all that came, as JSON: equal ones count once
        self._logprobs: list[Json] = []  # waiting for text of their part

    @property
    def is_inside_call(self) -> bool:
        """Whether a call is open whose arguments are not complete: nothing else may be said."""
        return isinstance(self.open, OpenCall) and not self.open.call.has_whole_input()

    def say(self, one: Content | Call) -> None:
        """Say content, or announce a call with what it has. A kind that is not open closes what is, and opens."""
        match one:
            case TextDelta():
                self._say_text(one)
            case Call():
                self._say_call(one)
            case ReasoningDelta():
                self._say_reasoning(one)
            case RefusalDelta():
                self._say_refusal(one)
            case AnnotationDelta(annotations):
                self._annotate(annotations)
            case LogprobsDelta("text", logprobs):
                self._logprobs.extend(logprobs)
            case LogprobsDelta(kind, logprobs):
                self._data.setdefault("logprobs", {}).setdefault(kind, []).extend(logprobs)

    def close(self) -> None:
        """Close the open item, if there is one. Signed reasoning that came too late for its item follows it."""
        if self.open is None:
            return
        self._leave_text()
        self.items.append(self.open.close(self.status))
        self.open = None
        if self._late:
            late, self._late = self._late, []
            item = OpenReasoning(self._emitter, len(self.items), self._ids.make("rs_"), self._form)
            item.extend("", late)
            self.items.append(item.close(self.status))

    def finish(self) -> None:
        """Close the open item, and keep what found no place, or say that it is dropped."""
        self.close()
        if self._annotations:
            self._data.setdefault("annotations", []).extend(self._annotations)
        if self._logprobs:
            self._warn("logprobs-dropped", "log probabilities came without text of their part")

    def flow(self) -> Flow:
        """Return what usual chunks may go straight to: something open, with nothing waiting for it."""
        match self.open:
            case OpenMessage(part=OpenPart(kind="output_text") as part) if not (self._logprobs or self._annotations):
                return Flow("logprobs", part.say) if part.has_logprobs else Flow("text", part.write)
            case OpenReasoning(write=write) if write is not None:
                return Flow("reasoning", write)
            case OpenCall(call=Call(index=int(index)), flows=True) as opened:
                return Flow("arguments", opened.go_on(), index)
            case _:
                return NOTHING

    def _say_call(self, call: Call) -> None:
        self._make_room()
        self._make_id(call, lambda: self._ids.make("call_"))
        prefix = CALLS[call.kind].prefix
        self.open = OpenCall(self._emitter, len(self.items), self._ids.make(prefix), call)
        self.open.flush()

    def _say_text(self, delta: TextDelta) -> None:
        part = self._part("output_text")
        if part is None:
            if not delta.text.strip():
                self._wait(delta)
                return
            part, blank = self._open_part("output_text", TextDelta)
            if blank:
                delta = TextDelta(
                    "".join(one.text for one in blank) + delta.text,
                    (*(entry for one in blank for entry in one.logprobs), *delta.logprobs),
                )
        part.extend(delta.text, (*self._logprobs, *delta.logprobs))
        self._logprobs.clear()
        waiting, self._annotations = self._annotations, []
        for one in waiting:
            part.annotate(one)

    def _say_refusal(self, delta: RefusalDelta) -> None:
        part = self._part("refusal")
        text = delta.text
        if part is None:
            if not text.strip():
                self._wait(delta)
                return
            part, blank = self._open_part("refusal", RefusalDelta)
            text = "".join(one.text for one in blank) + text
        part.extend(text)

    def _say_reasoning(self, delta: ReasoningDelta) -> None:
        text, details = delta.text, delta.details
        signed = any(map(is_signed, details))
        if isinstance(self.open, OpenReasoning):
            self.open.extend(text, details)
        elif text.strip() or (signed and self.open is None):
            blank = self._blank.pop(ReasoningDelta, [])
            pieces = [*self._blank_pieces, *details]
            self._make_room()
            self.open = OpenReasoning(self._emitter, len(self.items), self._ids.make("rs_"), self._form)
            self.open.extend("".join(one.text for one in blank) + text, pieces)
        elif signed or text:
            self._blank_pieces.extend(details)
            if signed:
                self._late.extend(self._blank_pieces)
                self._blank_pieces.clear()
            if text:
                self._wait(ReasoningDelta(text))

    def _annotate(self, annotations: Sequence[Json]) -> None:
        part = self._part("output_text")
        for one in annotations:
            as_json = msgspec.json.encode(one, order="sorted")
            if as_json in self._annotated:
                continue
            self._annotated.add(as_json)
            if not ANNOTATIONS.get(str(one.get("type")), NO_SUCH) <= one.keys():
                self._data.setdefault("annotations", []).append(one)
            elif part is None:
                self._annotations.append(one)
            else:
                part.annotate(one)

    def _wait(self, delta: TextDelta | RefusalDelta | ReasoningDelta) -> None:
        """Keep white space of a kind that is not open: it opens nothing and closes nothing."""
        self._blank.setdefault(type(delta), []).append(delta)

    def _part(self, kind: PartKind) -> OpenPart | None:
        """Return the open part of that kind, or None."""
        part = self.open.part if isinstance(self.open, OpenMessage) else None
        return part if part is not None and part.kind == kind else None

    def _open_part(self, kind: PartKind, of: type[Content]) -> tuple[OpenPart, list[Any]]:
        """Return a new part, in the open message or a new one, and the white space that waited for it."""
        blank = self._blank.pop(of, [])
        self._leave_text()
        if isinstance(self.open, OpenMessage):
            return self.open.open_part(kind), blank
        self._make_room()
        self.open = OpenMessage(self._emitter, len(self.items), self._ids.make("msg_"))
        return self.open.open_part(kind), blank

    def _make_room(self) -> None:
        """Close the open item, before another opens. White space that waits for another kind is dropped."""
        self.close()
        self._before_first()
        self._blank.clear()
        self._blank_pieces.clear()

    def _leave_text(self) -> None:
        """The open text part, if there is one, gets no more: log probabilities that wait for its text are dropped."""
        if self._logprobs and self._part("output_text") is not None:
            self._warn("logprobs-dropped", "log probabilities came without text of their part")
            self._logprobs.clear()
