"""The open items of a repaired stream. Each opens itself once, takes what is said of it, closes itself once.

They keep what the server says beside the canonical fields: its ids, `phase`, `namespace`, `encrypted_content`.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from antiphon.ids import Ids, Prefix
from antiphon.stream.chunk import fields, many, word
from antiphon.stream.emit import Emitter
from antiphon.stream.items import Status
from antiphon.stream.output import ANNOTATIONS, NO_SUCH
from antiphon.stream.scan import Scanner

from .facts import Json, Spot
from .read import CALLS, PART_TYPES


class Words(NamedTuple):
    """The words for a kind of part."""

    part: str
    text: str
    field: str
    counter: str


PARTS: dict[str, Words] = {
    "output_text": Words("response.content_part", "response.output_text", "text", "content_index"),
    "refusal": Words("response.content_part", "response.refusal", "refusal", "content_index"),
    "reasoning_text": Words("response.content_part", "response.reasoning_text", "text", "content_index"),
    "summary_text": Words(
        "response.reasoning_summary_part", "response.reasoning_summary_text", "text", "summary_index"
    ),
}
PREFIXES: dict[str, Prefix] = {"message": "msg_", "reasoning": "rs_", "custom_tool_call": "ctc_"}
# what an item of ours builds itself; all else is kept as the server says it
BUILT = {
    "message": frozenset({"id", "type", "status", "role", "content"}),
    "reasoning": frozenset({"id", "type", "status", "summary", "content"}),
    "function_call": frozenset({"id", "type", "status", "call_id", "name", "arguments"}),
    "custom_tool_call": frozenset({"id", "type", "status", "call_id", "name", "input"}),
}


class _Part:
    """A part, open until another opens or its item closes."""

    def __init__(self, item: Talk, spot: Spot, number: int) -> None:
        self.spot, self.words = spot, PARTS[spot.kind]
        self.annotations: list[Json] = []
        self._pieces: list[str] = []
        self.logprobs: list[Json] = []
        self._emit, self._place = item.emitter.emit, item.at(**{self.words.counter: number})
        self._emit(f"{self.words.part}.added", **self._place, part=self._as("", [], []))

    def extend(self, text: str, logprobs: Sequence[Json]) -> None:
        self._pieces.append(text)
        self.logprobs.extend(logprobs)
        of_text = {"logprobs": list(logprobs)} if self.spot.kind == "output_text" else {}
        self._emit(f"{self.words.text}.delta", **self._place, delta=text, **of_text)

    def annotate(self, annotation: Json) -> None:
        index = len(self.annotations)
        self._emit(
            "response.output_text.annotation.added", **self._place, annotation_index=index, annotation=annotation
        )
        self.annotations.append(annotation)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def close(self) -> Json:
        text = self.text
        of_text = {"logprobs": self.logprobs} if self.spot.kind == "output_text" else {}
        self._emit(f"{self.words.text}.done", **self._place, **{self.words.field: text}, **of_text)
        self._emit(f"{self.words.part}.done", **self._place, part=self._as(text, self.annotations, []))
        return self._as(text, self.annotations, self.logprobs)

    def _as(self, text: str, annotations: list[Json], logprobs: list[Json]) -> Json:
        held = {"type": self.spot.kind, self.words.field: text}
        more = {"annotations": annotations, "logprobs": logprobs} if self.spot.kind == "output_text" else {}
        return {**held, **more}


class _Open:
    """What all open items have: their place, and the two events that begin and end them."""

    def __init__(self, emitter: Emitter, output_index: int, ids: Ids, value: Json) -> None:
        self.emitter, self.output_index = emitter, output_index
        self.family = str(value["type"])
        self.item_id = word(value.get("id")) or ids.make(PREFIXES.get(self.family, "fc_"))
        self.begun = value

    def at(self, **place: Any) -> Json:
        return {"item_id": self.item_id, "output_index": self.output_index, **place}

    def added(self, **item: Any) -> None:
        self.emitter.emit("response.output_item.added", output_index=self.output_index, item=item)

    def done(self, **item: Any) -> Json:
        self.emitter.emit("response.output_item.done", output_index=self.output_index, item=item)
        return item

    def extra(self, value: Json) -> Json:
        """Return what the server says of the item beside the fields that are built here, and the id that it has last."""
        held = {**self.begun, **value}
        kept = {key: one for key, one in held.items() if key not in BUILT[self.family]}
        given = value.get("id")
        data: Json = {"id": given} if given and given != self.item_id else {}
        known = PART_TYPES.get((self.family, "content"), {})
        odd = [one for one in many(held.get("content")) if _type_of(one) not in known]
        data |= {"content": odd} if odd and known else {}
        return {**kept, "provider_data": {**fields(kept.get("provider_data")), **data}} if data else kept


class Talk(_Open):
    """A message, or a reasoning item: parts, of which at most the last is open."""

    def __init__(self, emitter: Emitter, output_index: int, ids: Ids, value: Json) -> None:
        super().__init__(emitter, output_index, ids, value)
        self._closed: list[tuple[Spot, Json]] = []
        self.part: _Part | None = None
        self._kept: dict[str, list[Any]] = {}  # what has no place in the events
        self.added(**self.extra({}), **self._own("in_progress", []))

    def extend(self, spot: Spot, text: str, logprobs: Sequence[Json]) -> None:
        """Take a piece of text, never empty."""
        self._at(spot).extend(text, logprobs)

    def annotate(self, spot: Spot, annotation: Json) -> None:
        """Take an annotation that is not known yet. One that is not whole, or of a part that is closed, is kept aside.

        Source: recording xai/vercel-ai--xai-xai-web-search-tool (citations with a URL alone).
        """
        known = next((part.get("annotations", ()) for closed, part in self._closed if closed == spot), None)
        if annotation in (self._at(spot).annotations if known is None else known):
            return
        whole = ANNOTATIONS.get(str(annotation.get("type")), NO_SUCH) <= annotation.keys()
        if known is None and whole and spot.kind == "output_text":
            self._at(spot).annotate(annotation)
        elif annotation not in self._kept.setdefault("annotations", []):
            self._kept["annotations"].append(annotation)

    def leave(self, spot: Spot, logprobs: Sequence[Json] = ()) -> None:
        """The part there gets no more. One that was never open was empty: it opens. `logprobs` are all it should have."""
        known = next((part for closed, part in self._closed if closed == spot), None)
        told = self._at(spot).logprobs if known is None else known.get("logprobs", ())
        if logprobs and not told:
            self._kept["logprobs"] = list(logprobs)

    def fitting(self, spot: Spot, text: str, taken: Container[Spot]) -> Spot:
        """Return the place of a part of the done item, which counts from 0, where the server may count otherwise.

        Source: recording bedrock-mantle/ruby_llm--roviders-bedrock-mantle-responses-chat-streams (a single part 1).
        """
        seen = [closed for closed, _ in self._closed] + ([self.part.spot] if self.part else [])
        for one in seen:
            if one == spot and one not in taken:
                return spot
        texts = [str(part.get(PARTS[closed.kind].field)) for closed, part in self._closed]
        texts += [self.part.text] if self.part else []
        alike = [
            one
            for one, said in zip(seen, texts, strict=True)
            if (one.parts, one.kind) == (spot.parts, spot.kind) and one not in taken and text.startswith(said)
        ]
        return alike[0] if alike else spot

    def close(self, status: Status, value: Json) -> Json:
        """Close the item. `value` is what the server says of it at its end."""
        self._close_part()
        kept = self.extra(value)
        if self._kept:
            kept["provider_data"] = {**fields(kept.get("provider_data")), **self._kept}
        return self.done(**kept, **self._own(status, self._closed))

    def _at(self, spot: Spot) -> _Part:
        if self.part is None or self.part.spot != spot:
            self._close_part()
            number = sum(PARTS[closed.kind].counter == PARTS[spot.kind].counter for closed, _ in self._closed)
            self.part = _Part(self, spot, number)
        return self.part

    def _close_part(self) -> None:
        if self.part is not None:
            self._closed.append((self.part.spot, self.part.close()))
            self.part = None

    def _own(self, status: str, parts: Sequence[tuple[Spot, Json]]) -> Json:
        head = {"id": self.item_id, "type": self.family}
        content = [part for spot, part in parts if spot.parts == "content"]
        if self.family == "message":
            return {**head, "status": status, "role": "assistant", "content": content}
        has_content = bool(content) or isinstance(self.begun.get("content"), list)
        summary = [part for spot, part in parts if spot.parts == "summary"]
        return {**head, "summary": summary, **({"content": content} if has_content else {})}


class Call(_Open):
    """A call. Its name and its call_id are known."""

    def __init__(self, emitter: Emitter, output_index: int, ids: Ids, value: Json) -> None:
        super().__init__(emitter, output_index, ids, value)
        self._field = CALLS[self.family]
        self._event = f"response.{self.family}_{self._field}"
        self.call_id = word(value.get("call_id")) or ids.make("call_")
        self._pieces: list[str] = []
        self._scanner = Scanner(self._pieces)
        self.added(**self.extra({}), **self._own(""), status="in_progress")

    def is_whole(self) -> bool:
        """Return whether the arguments are complete JSON. The input of a custom tool is never known to be complete."""
        return self.family == "function_call" and self._scanner.is_complete()

    def is_over(self, text: str) -> bool:
        """Return whether the arguments are complete without `text`, which is not white space."""
        return bool(text.strip()) and self.is_whole()

    def repeats(self, text: str) -> bool:
        """Return whether `text` is what was said already."""
        return text == "".join(self._pieces)

    def extend(self, text: str) -> None:
        """Take a piece of the arguments, or of the input, never empty."""
        self._pieces.append(text)
        self.emitter.emit(f"{self._event}.delta", **self.at(), delta=text)

    def close(self, status: Status, value: Json) -> Json:
        """Close the item. No arguments are `{}`, unless the call was cut."""
        if not self._pieces and status == "completed" and self.family == "function_call":
            self.extend("{}")
        text = "".join(self._pieces)
        self.emitter.emit(f"{self._event}.done", **self.at(**{self._field: text}))
        return self.done(**self.extra(value), **self._own(text), status=status)

    def _own(self, text: str) -> Json:
        head = {"id": self.item_id, "type": self.family, "call_id": self.call_id, "name": word(self.begun.get("name"))}
        return {**head, self._field: text}


class Hosted(_Open):
    """Any other item: what the server says of it passes, at its place."""

    def __init__(self, emitter: Emitter, output_index: int, ids: Ids, value: Json) -> None:
        super().__init__(emitter, output_index, ids, value)
        self.added(**{**value, "id": self.item_id})

    def tell(self, event: Mapping[str, Any]) -> None:
        """Pass an event of the item, at its place; an empty piece of text says nothing."""
        if event.get("delta") == "":
            return
        held = {key: one for key, one in event.items() if key not in ("type", "sequence_number", "output_index")}
        if "item_id" in held:
            held["item_id"] = self.item_id
        self.emitter.emit(str(event["type"]), output_index=self.output_index, **held)

    def close(self, status: Status, value: Json) -> Json:
        """Close the item as the server has it at its end, else as it was announced."""
        item = {**self.begun, **value, "id": self.item_id, "type": self.family}
        if item.get("status") == "in_progress" or (status == "incomplete" and item.get("status") == "completed"):
            item["status"] = status
        return self.done(**item)


OpenItem: TypeAlias = Talk | Call | Hosted


def open_item(emitter: Emitter, output_index: int, ids: Ids, value: Json) -> OpenItem:
    """Announce the item, and return it."""
    kind = str(value["type"])
    if kind in ("message", "reasoning"):
        return Talk(emitter, output_index, ids, value)
    return (Call if kind in CALLS else Hosted)(emitter, output_index, ids, value)


def _type_of(part: Any) -> str:
    return "text" if isinstance(part, str) else word(fields(part).get("type"))
