"""The open items. Each opens itself once, takes deltas, closes itself once, and alone builds its events.

`close(status)` gives the item its `.done` events and returns what the terminal event will list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from .calls import Call
from .deltas import Json
from .details import Details, is_signed, sealed
from .emit import Emitter, Writer

Status: TypeAlias = Literal["completed", "incomplete"]
PartKind: TypeAlias = Literal["output_text", "refusal"]
Item: TypeAlias = dict[str, Any]

# part -> its delta event, its done event, and the field that holds its text
PARTS: dict[PartKind, tuple[str, str, str]] = {
    "output_text": ("response.output_text.delta", "response.output_text.done", "text"),
    "refusal": ("response.refusal.delta", "response.refusal.done", "refusal"),
}


class _Open:
    """What all open items have: their place, and the two events that begin and end them."""

    def __init__(self, emitter: Emitter, output_index: int, item_id: str) -> None:
        self.emitter = emitter
        self.output_index = output_index
        self.item_id = item_id

    def added(self, **item: Any) -> None:
        self.emitter.emit("response.output_item.added", output_index=self.output_index, item=item)

    def done(self, **item: Any) -> Item:
        self.emitter.emit("response.output_item.done", output_index=self.output_index, item=item)
        return item

    def at(self, **place: Any) -> dict[str, Any]:
        return {"item_id": self.item_id, "output_index": self.output_index, **place}


class OpenPart:
    """A text or refusal part of a message."""

    def __init__(self, message: OpenMessage, content_index: int, kind: PartKind) -> None:
        self._delta, self._done, self._field = PARTS[kind]
        self.kind: PartKind = kind
        self.annotations: list[Json] = []
        self._logprobs: list[Json] = []
        self._said: list[str] = []
        self._place = message.at(content_index=content_index)
        self._emitter = message.emitter
        self._emitter.emit("response.content_part.added", **self._place, part=self._part("", [], []))
        of_text: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
        self.write = self._emitter.writer(self._delta, self._said.append, **self._place, **of_text)

    @property
    def has_logprobs(self) -> bool:
        """Whether log probabilities came with the text so far."""
        return bool(self._logprobs)

    def extend(self, text: str, logprobs: Sequence[Json] = ()) -> None:
        """Take a piece of text, never empty."""
        self._emitter.keep(self.say((text, logprobs)))

    def say(self, said: tuple[str, Sequence[Json]]) -> Any:
        """Take a piece of text with its log probabilities, and return its event, which is to be handed out at once."""
        text, logprobs = said
        if not logprobs:
            return self.write(text)
        self._logprobs.extend(logprobs)
        self._said.append(text)
        return self._emitter.make(self._delta, **self._place, delta=text, logprobs=logprobs)

    def annotate(self, annotation: Json) -> None:
        """Take an annotation of the text."""
        self._emitter.emit(
            "response.output_text.annotation.added",
            **self._place,
            annotation_index=len(self.annotations),
            annotation=annotation,
        )
        self.annotations.append(annotation)

    def close(self) -> dict[str, Any]:
        """Say that the part is done, and return it as it stands in the item."""
        text = "".join(self._said)
        of_text = {"logprobs": self._logprobs} if self.kind == "output_text" else {}
        self._emitter.emit(self._done, **self._place, **{self._field: text}, **of_text)
        part = self._part(text, self.annotations, [])
        self._emitter.emit("response.content_part.done", **self._place, part=part)
        return self._part(text, self.annotations, self._logprobs)

    def _part(self, text: str, annotations: list[Json], logprobs: list[Json]) -> dict[str, Any]:
        if self.kind == "refusal":
            return {"type": "refusal", "refusal": text}
        return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": logprobs}


class OpenMessage(_Open):
    """A `message` item: text and refusal parts, of which at most the last is open."""

    def __init__(self, emitter: Emitter, output_index: int, item_id: str) -> None:
        super().__init__(emitter, output_index, item_id)
        self.part: OpenPart | None = None
        self._content: list[dict[str, Any]] = []
        self.added(id=item_id, type="message", status="in_progress", role="assistant", content=[])

    def open_part(self, kind: PartKind) -> OpenPart:
        """Close the open part, if there is one, and return a new one."""
        self.close_part()
        self.part = OpenPart(self, len(self._content), kind)
        return self.part

    def close_part(self) -> None:
        if self.part is not None:
            self._content.append(self.part.close())
            self.part = None

    def close(self, status: Status) -> Item:
        self.close_part()
        return self.done(id=self.item_id, type="message", status=status, role="assistant", content=self._content)


class OpenReasoning(_Open):
    """A `reasoning` item: one part of summary (or of raw text), opened by its first text, and pieces for replay."""

    def __init__(self, emitter: Emitter, output_index: int, item_id: str, form: ReasoningForm) -> None:
        super().__init__(emitter, output_index, item_id)
        self._form = form
        self._said: list[str] = []
        self._details = Details()
        self._blank: list[str] = []  # white space before the first visible text
        self.write: Writer | None = None  # of the part, once it is open
        content: Item = {"content": []} if form.as_content else {}
        self.added(id=item_id, type="reasoning", summary=[], **content)

    def extend(self, text: str, details: Sequence[Json]) -> None:
        """Take reasoning text, which may be empty, and pieces to be replayed. White space alone opens no part."""
        for piece in details:
            self._details.add(piece)
        if self.write is None:
            if not text.strip():
                self._blank.append(text)
                return
            text = "".join((*self._blank, text))
            self.emitter.emit(self._form.part_added, **self._place(), part={"type": self._form.part, "text": ""})
            self.write = self.emitter.writer(self._form.delta, self._said.append, **self._place())
        if text:
            self.emitter.keep(self.write(text))

    def close(self, status: Status) -> Item:
        """Close the item. Reasoning has no status."""
        parts: list[dict[str, Any]] = []
        if self.write is not None:
            text = "".join(self._said)
            parts = [{"type": self._form.part, "text": text}]
            self.emitter.emit(self._form.done, **self._place(), text=text)
            self.emitter.emit(self._form.part_done, **self._place(), part=parts[0])
        content = {"content": parts} if self._form.as_content else {}
        summary = [] if self._form.as_content else parts
        return self.done(id=self.item_id, type="reasoning", summary=summary, **content, **self._replay())

    def _place(self) -> dict[str, Any]:
        return self.at(**{self._form.index: 0})

    def _replay(self) -> dict[str, Any]:
        pieces = self._details.pieces()
        if not any(map(is_signed, pieces)):
            return {}
        return {"encrypted_content": sealed(pieces), "provider_data": {"reasoning_details": pieces}}


class ReasoningForm:
    """The words for reasoning that is shown as a summary, or as raw text."""

    def __init__(self, part: str, index: str, part_event: str, text_event: str, *, as_content: bool) -> None:
        self.part = part
        self.index = index
        self.part_added, self.part_done = f"{part_event}.added", f"{part_event}.done"
        self.delta, self.done = f"{text_event}.delta", f"{text_event}.done"
        self.as_content = as_content


REASONING: Mapping[Literal["summary", "text"], ReasoningForm] = {
    "summary": ReasoningForm(
        "summary_text",
        "summary_index",
        "response.reasoning_summary_part",
        "response.reasoning_summary_text",
        as_content=False,
    ),
    "text": ReasoningForm(
        "reasoning_text", "content_index", "response.content_part", "response.reasoning_text", as_content=True
    ),
}


class OpenCall(_Open):
    """A call item, open until its arguments are complete: `function_call` or `custom_tool_call`."""

    def __init__(self, emitter: Emitter, output_index: int, item_id: str, call: Call) -> None:
        super().__init__(emitter, output_index, item_id)
        self.call = call
        self._words = CALLS[call.kind]
        self.added(**self._item(""), status="in_progress")
        self._write = emitter.writer(self._words.delta, _nowhere, **self.at())
        self._go_on = emitter.writer(self._words.delta, call.pieces.append, **self.at())

    @property
    def flows(self) -> bool:
        """Whether some arguments were said, and all that came."""
        return bool(self.call.pieces) and not self.call.unsaid

    def go_on(self) -> Callable[[str], Any]:
        """Return what takes bare fragments while the call `flows`, and returns the event of each, to be handed out.

        It returns None, and takes nothing, where a fragment may be a repetition of all that the call has.
        """
        call, write, first = self.call, self._go_on, self.call.pieces[0][0]

        def say(arguments: str) -> Any:
            if arguments[0] == first and len(arguments) == call.size:
                return None
            return write(arguments)

        return say

    def flush(self) -> None:
        """Say what the call was given and has not said. A lone `{}` waits: more may come instead."""
        if self.call.begun and not self.call.waits:
            self._say_all()

    def _say_all(self) -> None:
        for piece in self.call.unsaid:
            self.emitter.keep(self._write(piece))
        self.call.unsaid.clear()

    def close(self, status: Status) -> Item:
        if self.call.begun:
            self._say_all()
        text = self.call.arguments() if self.call.begun else ""
        if not text and status == "completed" and self.call.kind == "function":
            text = "{}"
            self.emitter.keep(self._write(text))
        self.call.closed = True
        self.emitter.emit(self._words.done, **self.at(**{self._words.field: text}))
        data = {"provider_data": self.call.data} if self.call.data else {}
        return self.done(**self._item(text), status=status, **data)

    def _item(self, text: str) -> Item:
        call = self.call
        head = {"id": self.item_id, "type": self._words.type, "call_id": call.call_id, "name": call.name}
        return {**head, self._words.field: text}


def _nowhere(text: str) -> None:
    """What a call says from its own pieces is kept there."""


class CallWords:
    """The words for a kind of call."""

    def __init__(self, type: str, prefix: Literal["fc_", "ctc_"], field: str, event: str) -> None:
        self.type = type
        self.prefix: Literal["fc_", "ctc_"] = prefix
        self.field = field
        self.delta, self.done = f"{event}.delta", f"{event}.done"


CALLS: Mapping[Literal["function", "custom"], CallWords] = {
    "function": CallWords("function_call", "fc_", "arguments", "response.function_call_arguments"),
    "custom": CallWords("custom_tool_call", "ctc_", "input", "response.custom_tool_call_input"),
}

OpenItem: TypeAlias = OpenMessage | OpenReasoning | OpenCall
